"""Stage ``publish``: one table of all that is published of each shift."""

from __future__ import annotations

from inconvenient.shifts.publication import publish
from inconvenient.stages.run import Run

#: All that the rows depend on, so that the file says it where there is no params.yaml.
PARAMETERS = (
    "split",
    "reference",
    "shifts",
    "filter",
    "evaluate",
    "collateral",
    "profile.grid",
)


def main(run: Run) -> None:
    """Write publish/shifts, one row per published shift, sorted by shift id."""
    datasets = run.read("split/datasets")
    hashes = {str(name): str(value) for name, value in zip(datasets["dataset"], datasets["hash"])}
    run.inputs.update({f"data/{name}": value for name, value in hashes.items()})
    table = publish(
        run.read("shifts/shifts"),
        run.read("filter/filter"),
        run.read("evaluate/default"),
        run.read("collateral/collateral"),
        hashes,
    )
    run.write({"shifts": table}, PARAMETERS)
