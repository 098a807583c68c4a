"""Stage ``split``: the pool, the filter half and the report half of every dataset."""

from __future__ import annotations

import pandas as pd

from inconvenient.data import load_dataset, split_dataset
from inconvenient.data.loading import catalogue, data_folder
from inconvenient.errors import SplitError
from inconvenient.stages.run import Run, stack

PARAMETERS = ("split", "profile.datasets")


def main(run: Run) -> None:
    """Write split/split (dataset, row_id, part) and split/datasets (what became of each)."""
    parts, outcomes = [], []
    for name in _names(run.profile.datasets):
        dataset = load_dataset(name)
        run.inputs[f"data/{name}"] = dataset.hash
        sizes = {"pool": 0, "filter": 0, "report": 0}
        status = "ok"
        try:
            split = split_dataset(dataset, seed=run.params.split.seed)
        except SplitError as error:
            status = str(error)
        else:
            for part in sizes:
                ids = getattr(split, part)
                sizes[part] = len(ids)
                parts.append(pd.DataFrame({"dataset": name, "row_id": ids, "part": part}))
        facts = {"dataset": name, "family": dataset.family, "status": status}
        facts["hash"] = dataset.hash
        outcomes.append({**facts, "rows": len(dataset.frame), **sizes})
    run.write({"split": stack(parts), "datasets": pd.DataFrame(outcomes)}, PARAMETERS)


def _names(wanted: tuple[str, ...]) -> list[str]:
    """Return the datasets of a profile, sorted; "all" alone stands for every embedded one."""
    if wanted == ("all",):
        wanted = tuple(catalogue(data_folder())["name"])
    return sorted(wanted)
