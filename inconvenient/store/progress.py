"""How far the units of a run are: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from inconvenient.store.units import Unit

__all__ = ["Progress"]

# Seconds between two lines in a log.
_BETWEEN = 60.0


class Progress:
    """Says on stderr how many units are done and which are at work.

    Parameters
    ----------
    label : str
    units : sequence of Unit
        In the order in which they are begun.
    workers : int
        How many are at work at a time.
    """

    def __init__(self, label: str, units: Sequence[Unit], workers: int) -> None:
        self._label, self._total, self._workers = label, len(units), workers
        self._waiting = {unit.key: unit.name for unit in units}
        self._started = self._said = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and self._total:
            from rich.console import Console
            from rich.progress import MofNCompleteColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (*Bar.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(self._text(), total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, key: str) -> None:
        """Note that the unit of a key is done."""
        self._waiting.pop(key, None)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=self._text())
        elif self._waiting and time.monotonic() - self._said >= _BETWEEN:
            self._said = time.monotonic()
            minutes = (self._said - self._started) / 60
            count = self._total - len(self._waiting)
            text = f"{self._text()}: {count} of {self._total} done in {minutes:.0f} min"
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line of its own."""
        line = f"{self._label}: {text}"
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def at_work(self) -> str:
        """Return the names of the units at work."""
        # Units begin in order, so the first that are not done are those at work.
        names = list(dict.fromkeys(list(self._waiting.values())[: self._workers]))
        return ", ".join(name for name in names if name)

    def _text(self) -> str:
        at_work = self.at_work()
        return f"{self._label} ({at_work})" if at_work else self._label
