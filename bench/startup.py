"""What the first selection of a process costs beyond the second: ``python bench/startup.py``.

Prints a Markdown table, each figure the best of five processes that find compiled kernels on disk.
The limits are 0.7 s for the import and 1.5 s for all that comes once, on an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys

IMPORT_LIMIT, FIRST_LIMIT = 0.7, 1.5
HEADER = "| what | seconds, best of five | limit |"
TASKS = ("regression", "binary", "multiclass")

# Everything a script waits for counts, the import of NumPy included; making the data does not.
CODE = """
import json, time
start = time.perf_counter()
import inconvenient as ic
alone = time.perf_counter() - start
import numpy as np
imports = time.perf_counter() - start
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 5))
score = X @ [0.5, -0.3, 0.2, 0.1, 0.0] + rng.normal(size=1000)
y = {"regression": score, "binary": score > 0, "multiclass": np.digitize(score, [-0.5, 0.5])}
seconds = []
for _ in range(2):
    start = time.perf_counter()
    assert ic.select(X, y["TASK"], feature="x0", min_fraction=0.3).verified
    seconds.append(time.perf_counter() - start)
print(json.dumps([alone, imports + seconds[0] - seconds[1]]))
"""


def measure(task: str, rounds: int) -> tuple[float, float]:
    """Return the least seconds of the import alone, and of all that the second call spares."""
    found = []
    for _ in range(rounds + 1):  # the first one may compile
        command = [sys.executable, "-c", CODE.replace("TASK", task)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return min(alone for alone, _ in found[1:]), min(once for _, once in found[1:])


def figures(rounds: int = 5) -> list[tuple[str, float, float]]:
    """Return what was measured, its seconds and their limit."""
    measured = {task: measure(task, rounds) for task in TASKS}
    alone = min(alone for alone, _ in measured.values())
    return [
        ("import inconvenient", alone, IMPORT_LIMIT),
        *(
            (f"import and first select less second, {task}, 1,000 rows", once, FIRST_LIMIT)
            for task, (_, once) in measured.items()
        ),
    ]


def rows(rounds: int = 5) -> list[str]:
    """Return the rows of the table."""
    return list(map(line, figures(rounds)))


def line(figure: tuple[str, float, float]) -> str:
    what, took, limit = figure
    return f"| {what} | {took:.3f} | {limit} |"


def main() -> int:
    """Print the table; 1 if a figure is over its limit."""
    found = figures()
    print(f"{HEADER}\n| --- | ---: | ---: |")
    print("\n".join(map(line, found)))
    return int(any(took > limit for _, took, limit in found))


if __name__ == "__main__":
    sys.exit(main())
