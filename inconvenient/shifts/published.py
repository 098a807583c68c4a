"""What scoring published shifts needs: their rows, splits, and the seed of uniform samples."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from inconvenient.errors import NotAvailableError
from inconvenient.shifts.loading import open_table, profile_folder

if TYPE_CHECKING:
    from inconvenient.data import Split

__all__ = ["Published", "read_published"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Published shifts with what their scores were computed from.

    Parameters
    ----------
    shifts : DataFrame
        One row per shift, sorted by ``shift_id``, all columns, ``rows`` packed.
    splits : dict of str to Split
        Of their datasets.
    draws_seed : int
        Seed of the uniform samples that are the controls.
    """

    shifts: pd.DataFrame
    splits: dict[str, Split]
    draws_seed: int


def read_published(shift_ids: Collection[str], profile: str | None = None) -> Published:
    """Read published shifts with their splits.

    Parameters
    ----------
    shift_ids : collection of str
        Known ids.
    profile : str, optional
        "full" if that is present, else "quick".

    Raises
    ------
    NotAvailableError
        If the tables are absent, damaged, or not of one version.
    """
    from inconvenient.data import Split

    folder = profile_folder(profile)
    path = folder / "publish" / "shifts.parquet"
    with open_table(path) as file:
        facts = json.loads((file.schema_arrow.metadata or {}).get(b"inconvenient", b"{}"))
        table = file.read()
    wanted = pc.is_in(table["shift_id"], value_set=pa.array(sorted(shift_ids), pa.string()))
    shifts = table.filter(wanted).to_pandas()
    seed = facts.get("parameters", {}).get("shifts", {}).get("seed")
    names = sorted(set(shifts["dataset"]))
    with open_table(folder / "split" / "split.parquet") as file:
        table = file.read(columns=["dataset", "row_id", "part"])
    wanted = pc.is_in(table["dataset"], value_set=pa.array(names, pa.string()))
    parts = {
        (str(name), str(part)): rows.to_numpy()
        for (name, part), rows in table.filter(wanted)
        .to_pandas()
        .groupby(["dataset", "part"])["row_id"]
    }
    absent = [n for n in names for part in ("pool", "filter", "report") if (n, part) not in parts]
    if absent or seed is None:
        what = f"a split of {absent[0]}" if absent else "the seed of the uniform samples"
        raise NotAvailableError(
            f"{folder} lacks {what}: its tables are not of one version; bring them again with "
            "`inconvenient fetch`, in a checkout with `dvc pull`"
        )
    splits = {
        name: Split(parts[name, "pool"], parts[name, "filter"], parts[name, "report"])
        for name in names
    }
    return Published(shifts, splits, int(seed))
