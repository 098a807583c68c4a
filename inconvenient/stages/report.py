"""Stage ``report``: one self-contained page, and its tables as JSON."""

from __future__ import annotations

import json

from inconvenient.report.build import build_report
from inconvenient.report.seeds_view import SEED_FRAMES
from inconvenient.stages.run import Run

PARAMETERS = ("filter", "report", "profile.grid", "profile.tuning")

ARTEFACTS = (
    "split/datasets",
    "reference/datasets",
    "reference/coefficients",
    "shifts/candidates",
    "shifts/shifts",
    "filter/filter",
    "evaluate/default",
    "evaluate/tuned",
    "collateral/collateral",
)


def main(run: Run) -> None:
    """Write report/report.html and report/tables.json."""
    frames = {name: run.read(name) for name in ARTEFACTS}
    # One profile has the stage, for it repeats the whole construction.
    frames |= {name: run.read_of("quick", name) for name in SEED_FRAMES}
    hashes = frames["split/datasets"][["dataset", "hash"]].itertuples(index=False)
    run.inputs.update({f"data/{row.dataset}": str(row.hash) for row in hashes})
    html, tables = build_report(frames, run.params, run.facts(PARAMETERS))
    text = json.dumps(tables, indent=1, allow_nan=False) + "\n"
    files = {"report.html": html.encode("utf-8"), "tables.json": text.encode("utf-8")}
    run.write_files(files)
