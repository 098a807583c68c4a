"""``python -m inconvenient.stages STAGE PROFILE``: run one stage, and log how long it took."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from inconvenient.errors import InconvenientError

STAGES = (
    "split",
    "reference",
    "shifts",
    "filter",
    "evaluate",
    "collateral",
    "publish",
    "seeds",
    "report",
)
#: What takes hours and so is no stage of dvc.yaml, but is run like one.
STUDY = "study"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a stage in the current folder; return 0, 1 after an error that it explained, or 130."""
    parser = argparse.ArgumentParser(prog="python -m inconvenient.stages", description=__doc__)
    parser.add_argument("stage", choices=(*STAGES, STUDY))
    parser.add_argument("profile", help="an entry of `profiles` in params.yaml")
    parser.add_argument("--workers", type=int, help="processes; default: $INCONVENIENT_WORKERS")
    given = parser.parse_args(arguments)
    # Before NumPy is loaded: a library that reads these once must not read another number.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    start = time.perf_counter()
    try:
        from inconvenient.stages.run import Run

        run = Run(Path.cwd(), given.stage, given.profile, given.workers)
        importlib.import_module(f"inconvenient.stages.{given.stage}").main(run)
    except InconvenientError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; what is finished is kept, run again to go on", file=sys.stderr)
        return 130
    _log(given.stage, given.profile, run.workers, time.perf_counter() - start)
    return 0


def _log(stage: str, profile: str, workers: int, seconds: float) -> None:
    """Append to a log that is no artefact: times differ from run to run."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = {"profile": profile, "stage": stage, "workers": workers}
    line = json.dumps({**entry, "seconds": round(seconds, 2), "finished": now})
    print(f"{stage}@{profile}: {seconds:.1f} s", file=sys.stderr)
    folder = Path("logs")
    folder.mkdir(exist_ok=True)
    with open(folder / "stages.jsonl", "a", encoding="utf-8") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
