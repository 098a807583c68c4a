"""Peak memory and growth of time of a selection: ``python bench/memory.py``.

Prints a Markdown table: how much memory ``ic.select`` takes at its peak above the caller's array,
as a multiple of the float64 design, and how much longer ten times the rows take.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

ROWS, COLUMNS = 1_000_000, 50
MEMORY_LIMIT, GROWTH_LIMIT = 2.2, 12.0
HEADER = "| what | n | p | median | least to most | limit |"

# In a process of its own, for the peak is the process's; a first selection on few rows loads all.
CODE = """
import json, resource, sys, threading, time
import numpy as np
import inconvenient as ic

n, p = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
X = np.empty((n, p - 1))
for start in range(0, n, 10_000):
    X[start : start + 10_000] = rng.normal(size=(min(10_000, n - start), p - 1))
y = X @ (0.3 * rng.normal(size=p - 1))
y += rng.normal(size=n)
ic.select(X[:2000], y[:2000], feature="x01", min_fraction=0.3)

def now():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

peak, done = [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], now())

before = now()
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
found = ic.select(X, y, feature="x01", min_fraction=0.2)
seconds = time.perf_counter() - start
done.set()
watcher.join()
assert found.verified
print(json.dumps([(peak[0] - before) / (8 * n * p), seconds]))
"""


def measure(n: int, p: int = COLUMNS) -> tuple[float, float]:
    """Return peak memory over the float64 design, and seconds."""
    command = [sys.executable, "-c", CODE, str(n), str(p)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    memory, seconds = json.loads(done.stdout)
    return memory, seconds


def rows(rounds: int = 3) -> list[str]:
    """Return the rows of the table."""
    small = [measure(ROWS // 10) for _ in range(rounds)]
    large = [measure(ROWS) for _ in range(rounds)]
    memory = [m for m, _ in large]
    growth = [b / a for (_, a), (_, b) in zip(small, large, strict=True)]
    return [
        f"| ic.select, flip: peak memory over the float64 design | {ROWS:,} | {COLUMNS} "
        f"| {statistics.median(memory):.2f} | {min(memory):.2f} to {max(memory):.2f} "
        f"| at most {MEMORY_LIMIT} |",
        f"| ic.select, flip: time over that of {ROWS // 10:,} rows | {ROWS:,} | {COLUMNS} "
        f"| {statistics.median(growth):.1f} | {min(growth):.1f} to {max(growth):.1f} "
        f"| at most {GROWTH_LIMIT:.0f} |",
    ]


def main() -> None:
    """Print the table."""
    print(f"{HEADER}\n{'| --- ' * 6}|")
    print("\n".join(rows()))


if __name__ == "__main__":
    main()
