"""What the first selection of a process costs beyond the second: ``python bench/startup.py``.

Prints a Markdown table, each figure the best of five processes that find compiled kernels on disk.
The limits are 0.7 s for the import and 1.5 s for all that comes once, on an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys

COLUMNS = ("what", "seconds, best of five", "limit")

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


def rows(rounds: int = 5) -> list[str]:
    """Return the rows of the table."""
    measured = {task: measure(task, rounds) for task in ("regression", "binary", "multiclass")}
    alone = min(alone for alone, _ in measured.values())
    lines = [("import inconvenient", alone, 0.7)]
    lines += [
        (f"first select less second, {task}, 1,000 rows", once, 1.5)
        for task, (_, once) in measured.items()
    ]
    return [f"| {what} | {seconds:.3f} s | {limit} s |" for what, seconds, limit in lines]


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print("| --- " * len(COLUMNS) + "|")
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
