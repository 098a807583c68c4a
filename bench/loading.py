"""Time of listing all published shifts and of loading one, in a fresh process and in a warm one.

``python bench/loading.py [PROFILE]``, best of five on an idle machine; a first call comes after the
imports, which `import pandas` dominates.
"""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, sys, time
import pandas, pyarrow.compute, pyarrow.parquet
import inconvenient as ic
from inconvenient.data import load_dataset
profile, shift_id = sys.argv[1] or None, sys.argv[2]
times = []
for _ in range(2):
    start = time.perf_counter()
    ic.load_shift(shift_id, profile) if shift_id else ic.list_shifts(profile=profile)
    times.append(1000 * (time.perf_counter() - start))
print(json.dumps(times))
"""


def best(profile: str, shift_id: str) -> tuple[float, float]:
    """Return the milliseconds of a first and of a second call, each the best of five processes."""
    runs = []
    for _ in range(5):
        command = [sys.executable, "-c", CODE, profile, shift_id]
        runs.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))
    first, second = (min(column) for column in zip(*runs))
    return first, second


def main() -> None:
    """Print the four times."""
    import inconvenient as ic

    profile = sys.argv[1] if len(sys.argv) > 1 else ""
    listed = ic.list_shifts(profile=profile or None)
    middle = str(listed["shift_id"].iloc[len(listed) // 2])
    print(f"{len(listed)} shifts of {listed['dataset'].nunique()} datasets, ms of first and second")
    print("list all  {:6.0f} {:6.0f}".format(*best(profile, "")))
    print("load one  {:6.0f} {:6.0f}".format(*best(profile, middle)))


if __name__ == "__main__":
    main()
