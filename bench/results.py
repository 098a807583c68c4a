"""Everything that is timed, in one run: ``python bench/results.py`` writes ``bench/RESULTS.md``.

Names of parts as arguments run these alone and print them instead.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import bench_audit
import loading
import memory
import scoring
import startup
import trajectories

HERE = Path(__file__).parent
PACKAGES = ("numpy", "numba", "scipy", "pandas", "scikit-learn", "statsmodels")
RATIOS = trajectories.HEADER

#: Title, table head and rows of each part.
PARTS: dict[str, tuple[str, str, Callable[[], list[str]]]] = {
    "trajectories": ("Trajectories", RATIOS, trajectories.rows),
    "scoring": ("The scoring pass", RATIOS, scoring.rows),
    "audit": ("`ic.audit`", bench_audit.HEADER, bench_audit.rows),
    "memory": ("Memory and growth", memory.HEADER, memory.rows),
    "startup": ("The first call", startup.HEADER, startup.rows),
    "loading": ("Loading and preparing", loading.HEADER, loading.rows),
}

TEXT = """# Timings

Written by `make bench` (`python bench/results.py`), all in one run; how each side works is said in
the file of its part. Ratios say how many times as long the other side took, or what share of a
bandwidth was reached: medians, with the least and the greatest. "wanted" is what the project set
out to reach; why some figures are below it is said at the end.

{machine}

"""


def machine() -> str:
    """Return a table of machine and versions."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {
        "processor": f"{model}, {len(os.sched_getaffinity(0))} cores, "
        f"last-level cache {scoring.last_level_cache() / 2**20:.0f} MB",
        "memory": f"{memory_gb:.0f} GB",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES),
        "date": time.strftime("%Y-%m-%d"),
    }
    return "\n".join(["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in facts.items())])


def part(name: str) -> str:
    """Return a part as text."""
    title, head, rows = PARTS[name]
    start = time.perf_counter()
    lines = rows()
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    rule = "| --- " * (head.count("|") - 1) + "|"
    return "\n".join([f"## {title}", "", head, rule, *lines, ""])


def main(names: list[str]) -> None:
    """Print the named parts, or write all of them."""
    warnings.simplefilter("ignore")
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if names:
        print("\n".join(part(name) for name in names))
        return
    text = TEXT.format(machine=machine()) + "\n".join(part(name) for name in PARTS)
    notes = (HERE / "NOTES.md").read_text(encoding="utf-8")
    (HERE / "RESULTS.md").write_text(text + "\n" + notes, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
