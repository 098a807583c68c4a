"""What loading a dataset costs: ``python bench/loading.py``.

Prints the median and the slowest of the datasets on this machine, each the best of five loads, hash
check included. The limit for the median is 0.1 s, on an idle machine.
"""

from __future__ import annotations

import statistics
import sys
import time

import inconvenient as ic

LIMIT = 0.1


def seconds(name: str) -> float:
    """Return the least seconds of five loads."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        ic.load_dataset(name)
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> int:
    """Print the table; 1 if the median is over the limit."""
    taken = {name: seconds(name) for name in ic.list_datasets()["name"]}
    median = statistics.median(taken.values())
    slowest = max(taken, key=lambda name: taken[name])
    print("| what | seconds, best of five | limit |\n| --- | ---: | ---: |")
    print(f"| median of {len(taken)} datasets | {median:.4f} | {LIMIT} |")
    print(f"| slowest, {slowest} | {taken[slowest]:.4f} | |")
    return int(median > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
