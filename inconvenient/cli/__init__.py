"""The command line: each command reads, calls one function below, and prints or writes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

__all__ = ["main"]

_STOPPED = 130  # by Ctrl-C, which typer may turn into an exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        0; 1 after an error that was explained; 2 after wrong usage; 130 after Ctrl-C.
    """
    from typer.main import get_command

    from inconvenient.cli.app import app
    from inconvenient.errors import InconvenientError

    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show must not stop a command half-way.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    command = get_command(app)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command.main(args=given, prog_name="inconvenient")
    except InconvenientError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        # A path that the system refuses as such (too long, a loop of links) or that went away.
        place = f" ({error.filename})" if error.filename else ""
        print(f"error: {error.strerror or error}{place}; name another path", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        code = _STOPPED
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    else:
        code = 0
    if code == _STOPPED:
        print("stopped; the same command again goes on from here", file=sys.stderr)
    return code
