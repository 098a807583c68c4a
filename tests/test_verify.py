"""Published shifts of three small datasets are verified; a change of any number is found out."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from inconvenient.config import as_json
from inconvenient.errors import InputError
from inconvenient.shifts.rows import pack_rows, rows_hash, unpack_rows
from inconvenient.store import read_frame
from inconvenient.verify import PARTS, Settings, verify_shifts

ROOT = Path(__file__).parents[1]
NAMES = ("college_graduation_rate", "kakadu_wtp", "recidivism_nc")

pytestmark = [pytest.mark.jit, pytest.mark.slow, pytest.mark.usefixtures("data_folder")]


@dataclasses.dataclass(frozen=True)
class Publication:
    """What a run of the stages published."""

    root: Path
    shifts: pd.DataFrame
    split: pd.DataFrame
    settings: Settings

    def one(self, task: str, **wanted: Any) -> pd.DataFrame:
        """Return the first published shift of a task with some values, as a table of one row."""
        own = self.shifts[self.shifts["task"] == task]
        for column, value in wanted.items():
            own = own[own[column] == value]
        return own.iloc[:1].reset_index(drop=True)

    def wrong(self, shifts: pd.DataFrame, *skip: str) -> pd.DataFrame:
        return verify_shifts(shifts, self.split, self.settings, skip=skip).wrong


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Publication:
    from inconvenient.stages.run import Run

    root = tmp_path_factory.mktemp("checkout")
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    quick = params["profiles"]["quick"]
    quick["datasets"] = list(NAMES)
    quick["grid"] |= {"min_fractions": [0.2, 0.5], "n_single": 1}
    quick["tuning"] = {"shifts_per_dataset": 0, "trials": 0}
    params["profiles"] = {"quick": quick}
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    (root / "dvc.yaml").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INCONVENIENT_STORE", str(root / "store"))
        for stage in ("split", "shifts", "filter", "evaluate", "collateral", "publish"):
            run = Run(root, stage, "quick", workers=1)
            importlib.import_module(f"inconvenient.stages.{stage}").main(run)
    folder = root / "artefacts" / "quick"
    return Publication(
        root,
        read_frame(folder / "publish" / "shifts.parquet"),
        read_frame(folder / "split" / "split.parquet"),
        Settings.of(as_json(run.params)),
    )


def test_what_was_published_passes(published: Publication) -> None:
    assert set(published.shifts["task"]) == {"regression", "binary", "multiclass"}
    report = verify_shifts(published.shifts, published.split, published.settings, workers=2)
    assert report.wrong.empty, report.wrong.to_string()
    assert not report.unchecked
    assert (report.shifts, report.datasets) == (len(published.shifts), len(NAMES))
    found = report.deviations.set_index("column")
    assert (found["largest"] <= found["limit"]).all()
    assert found.loc["b_sample", "compared"] >= len(published.shifts)


def changed(value: Any, share: float = 1e-6) -> Any:
    """Return another value of the same kind; a number differs in its seventh digit."""
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, int | np.integer):
        return int(value) + 1
    if isinstance(value, float):
        return 1e-6 if value == 0.0 else 0.5 if math.isnan(value) else value * (1.0 + share)
    if isinstance(value, bytes):
        return value[:-4]
    return [changed(value[0]), *value[1:]]


#: Columns that say what is recomputed; all others hold what comes out.
ASKED = {
    "dataset", "features", "columns", "classes", "feature", "kind", "importance_bin", "operation",
    "factor", "mode", "min_fraction", "rows", "shift_id",
}  # fmt: skip


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_a_change_in_any_outcome_is_found_out(published: Publication, task: str) -> None:
    row = published.one(task, kind="single", retained=True)
    # Whether it is subsumed in the paper's way, its row alone cannot say.
    columns = set(published.shifts.columns) - ASKED - {"retained_paper"}
    for column in columns:
        # Iterative fits that stop at 1e-6 are compared to six digits.
        share = 1e-5 if column.startswith("collateral") else 1e-6
        row[column] = pd.Series([changed(row[column][0], share)])
    assert set(published.wrong(row)["column"]) == columns


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("column", sorted(ASKED - {"dataset", "rows"}))
def test_a_change_of_what_is_asked_is_found_out(
    published: Publication, task: str, column: str
) -> None:
    row = published.one(task, kind="single", operation="amplify", mode="band")
    row[column] = pd.Series([changed(row[column][0])])
    assert column in set(published.wrong(row, *PARTS)["column"])


def test_the_class_of_a_coefficient_is_found_out(published: Publication) -> None:
    row = published.one("multiclass", kind="single")
    own = published.shifts[published.shifts["dataset"] == row["dataset"][0]]
    others = {name for names in own["classes"] for name in names} - {*row["classes"][0]}
    row["classes"] = [[sorted(others)[0]]]
    assert {"classes", "b_reference"} <= set(published.wrong(row, *PARTS)["column"])


def test_flags_that_do_not_follow_are_found_out(published: Publication) -> None:
    row = published.one("regression", retained=True, retained_paper=True)
    skip = ("chance", "collateral", "scores")
    none = row.assign(retained=False, retained_paper=False)
    assert set(published.wrong(none, *skip)["column"]) == {"retained"}
    strict = dataclasses.replace(published.settings.filter, min_gap_r2=9.0)
    settings = dataclasses.replace(published.settings, filter=strict)
    wrong = verify_shifts(row, published.split, settings, skip=skip).wrong
    assert set(wrong["column"]) == {"retained", "retained_paper"}


def test_a_row_of_another_dataset_is_found_out(published: Publication) -> None:
    row = published.one("binary").assign(dataset=NAMES[0])
    wrong = set(published.wrong(row, *PARTS)["column"])
    assert {"dataset", "task", "data_hash", "rows"} <= wrong


@pytest.mark.parametrize("adapted", [False, True])
def test_one_row_id_is_found_out(published: Publication, adapted: bool) -> None:
    row = published.one("regression", kind="single")
    rows = np.array(unpack_rows(row["rows"][0]))
    own = published.split[published.split["dataset"] == row["dataset"][0]]
    pool = own.loc[own["part"] == "pool", "row_id"].to_numpy()
    rows[-1] = np.setdiff1d(pool, rows)[0]
    row["rows"] = [pack_rows(rows)]
    if adapted:
        row["rows_hash"] = rows_hash(rows)
    columns = set(published.wrong(row, "chance")["column"])
    assert {"b_sample", "achieved", "collateral", "linear_ood", "gap"} <= columns
    assert ("rows_hash" in columns) != adapted


def test_a_row_id_beyond_the_pool_is_found_out(published: Publication) -> None:
    row = published.one("binary")
    rows = np.array(unpack_rows(row["rows"][0]))
    own = published.split[published.split["dataset"] == row["dataset"][0]]
    rows[0] = own.loc[own["part"] == "report", "row_id"].iloc[0]
    row["rows"], row["rows_hash"] = [pack_rows(rows)], rows_hash(rows)
    (line,) = published.wrong(row).to_dict("records")
    assert line["column"] == "rows"
    assert "lie in the pool" in line["recomputed"]


def test_a_sample_that_does_not_meet_its_criterion_is_found_out(published: Publication) -> None:
    row = published.one("regression", kind="single", operation="flip")
    own = published.split[published.split["dataset"] == row["dataset"][0]]
    rows = own.loc[own["part"] == "pool", "row_id"].to_numpy()[: row["size"][0]]
    row["rows"], row["rows_hash"] = [pack_rows(rows)], rows_hash(rows)
    assert "criterion" in set(published.wrong(row, *PARTS)["column"])


def test_two_row_sets_that_are_nearly_the_same_are_found_out(published: Publication) -> None:
    first, second = (
        published.shifts[published.shifts["task"] == "binary"].iloc[[i]] for i in (0, 1)
    )
    second = second.assign(rows=first["rows"].tolist())
    wrong = published.wrong(pd.concat([first, second]), "scores", "chance", "collateral")
    assert (wrong["published"] == f"Jaccard 1.0000 with {second['shift_id'].iloc[0]}").sum() == 1


def test_another_split_is_found_out(published: Publication) -> None:
    row = published.one("binary")
    split = published.split.copy()
    own = split[split["dataset"] == row["dataset"][0]]
    at = [own.index[own["part"] == part][0] for part in ("filter", "report")]
    split.loc[at, "part"] = ["report", "filter"]
    wrong = verify_shifts(row, split, published.settings, skip=PARTS).wrong
    assert set(wrong["column"]) == {"split.filter", "split.report"}
    lacking = published.split.drop(index=at[0])
    wrong = verify_shifts(row, lacking, published.settings, skip=PARTS).wrong
    assert set(wrong["column"]) == {"split", "split.filter"}


def test_results_do_not_depend_on_what_is_verified_beside(published: Publication) -> None:
    shifts = published.shifts.copy()
    shifts["b_sample"] = [changed(value) for value in shifts["b_sample"]]
    one = published.wrong(shifts.iloc[[3]], *PARTS)
    everything = published.wrong(shifts, *PARTS)
    assert set(everything["shift_id"]) == set(shifts["shift_id"])
    own = everything[everything["shift_id"] == shifts["shift_id"].iloc[3]]
    pd.testing.assert_frame_equal(own.reset_index(drop=True), one)


def test_what_cannot_be_verified_is_refused(published: Publication) -> None:
    with pytest.raises(InputError, match="parts that can be skipped are chance, .*got 'fits'"):
        published.wrong(published.shifts, "fits")
    with pytest.raises(InputError, match="at least one published shift"):
        published.wrong(published.shifts.iloc[:0])
    with pytest.raises(InputError, match="lacks gap, data_hash|lacks data_hash, gap"):
        published.wrong(published.shifts.drop(columns=["gap", "data_hash"]))
    with pytest.raises(InputError, match="lacks split, reference"):
        Settings.of({"shifts": {}})


CODE = """
import sys
import inconvenient.cli
status = inconvenient.cli.main(sys.argv[1:])
names = [n for n in sys.modules if n.split(".")[0] in ("numba", "llvmlite") or "kernels" in n]
# Scikit-learn and SciPy have modules of kernels of their own.
print([n for n in names if n.startswith(("numba", "llvmlite", "kernels", "inconvenient."))])
sys.exit(status)
"""


def test_no_kernel_is_imported(published: Publication) -> None:
    ids = [published.one(task)["shift_id"][0] for task in ("regression", "binary", "multiclass")]
    done = subprocess.run(
        [sys.executable, "-c", CODE, "shifts", "verify", *ids, "--workers", "1"],
        capture_output=True,
        text=True,
        cwd=published.root,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    *_, message, modules = done.stdout.splitlines()
    assert message.startswith("3 shifts of 3 datasets")
    assert message.endswith("every number agrees")
    assert modules == "[]"


def test_the_command_fails_where_a_number_differs(
    published: Publication,
    cli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import inconvenient.cli.verify as command

    monkeypatch.chdir(published.root)
    name = published.one("regression")["shift_id"][0]
    few = ("--skip", "chance,collateral,scores,filter", "--workers", "1")
    status, out, _ = cli("shifts", "verify", "--dataset", NAMES[0], *few, "--json")
    assert status == 0
    assert json.loads(out)["wrong"] == []
    read = command._published

    def tampered(folder: Path) -> tuple[pd.DataFrame, Settings]:
        table, settings = read(folder)
        return table.assign(label_tv=table["label_tv"] + 1e-6), settings

    monkeypatch.setattr(command, "_published", tampered)
    status, out, _ = cli("shifts", "verify", name, *few)
    assert status == 1
    assert f"{name}  label_tv" in out
    status, out, _ = cli("shifts", "verify", name, *few, "--json")
    assert status == 1
    assert json.loads(out)["wrong"][0]["column"] == "label_tv"
    status, _, err = cli("shifts", "verify", name[:-1])
    assert status == 1
    assert f"closest: {name}" in err
    assert cli("shifts", "verify")[0] == 1
