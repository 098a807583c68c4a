"""The tuned study: what is eligible, what is published of it, and that it can be recomputed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inconvenient.baselines import get_baseline
from inconvenient.benchmark.study import study_order, study_shifts, study_table
from inconvenient.config import StudyParams, load_params
from inconvenient.data import load_dataset, split_dataset
from inconvenient.errors import InputError
from inconvenient.evaluation.protocol import fit_score, sample_rows
from inconvenient.selection.chance import uniform_rows
from tuned_study import tables

STUDY = StudyParams(3, 2, 100, 2, 20, ("linear",))
FAMILIES = {"a0": "twins", "a1": "twins"}


def made_up_shifts(names: str = "ab", each: int = 6) -> pd.DataFrame:
    """Shifts of ``each`` datasets per task, two operations with two row sets each."""
    rows = [
        (f"{t}{d}/{o}{i}", f"{t}{d}", t, ("flip", "amplify")[o], f"{t}{d}{o}{i}", True)
        for t in names
        for d in range(each)
        for o in range(2)
        for i in range(2)
    ]
    columns = ["shift_id", "dataset", "task", "operation", "rows_hash", "retained"]
    return pd.DataFrame(rows, columns=columns)


def catalogue(names: set[str]) -> pd.DataFrame:
    family = [FAMILIES.get(name, "") for name in sorted(names)]
    return pd.DataFrame({"name": sorted(names), "family": family})


def drawn(shifts: pd.DataFrame, study: StudyParams = STUDY, **sizes: int) -> pd.DataFrame:
    pools = dict.fromkeys(shifts["dataset"], 50) | sizes
    return study_shifts(shifts, catalogue(set(shifts["dataset"])), pools, study)


def test_the_draw_takes_eligible_datasets_only():
    shifts = made_up_shifts()
    shifts.loc[shifts["dataset"] == "b0", "retained"] = False
    shifts.loc[shifts["dataset"] == "b1", "operation"] = "flip"
    shifts.loc[shifts["dataset"] == "b2", "rows_hash"] = "one"
    found = set()
    for seed in range(40):
        own = drawn(shifts, dataclasses.replace(STUDY, seed=seed), b3=101)
        names = set(own["dataset"])
        assert (own.groupby("dataset").size() == 2).all()
        assert (own.groupby("dataset")["operation"].nunique() == 2).all()
        assert names & {"b4", "b5"} == {"b4", "b5"}
        assert len(names & {"a0", "a1", "a2", "a3", "a4", "a5"}) == 2
        assert not {"a0", "a1"} <= names, "two of a family"
        found |= names
    assert found == {"a0", "a1", "a2", "a3", "a4", "a5", "b4", "b5"}


def test_the_draw_does_not_depend_on_the_order_of_rows():
    shifts = made_up_shifts()
    mixed = shifts.sample(frac=1.0, random_state=5)
    pd.testing.assert_frame_equal(drawn(shifts), drawn(mixed))


def test_too_few_datasets_are_an_error():
    shifts = made_up_shifts(each=4)
    shifts.loc[shifts["dataset"].isin(["b0", "b1"]), "retained"] = False
    with pytest.raises(InputError, match="3 datasets of task b .* found 2"):
        drawn(shifts, dataclasses.replace(STUDY, datasets_per_task=3))


def test_groups_hold_one_dataset_of_each_task():
    own = drawn(made_up_shifts(), dataclasses.replace(STUDY, datasets_per_task=4))
    groups = study_order(own)
    assert [len(group) for group in groups] == [2, 2, 2, 2]
    assert all({name[0] for name in group} == {"a", "b"} for group in groups)


def test_the_table_is_that_of_a_count_by_hand():
    shifts = pd.DataFrame(
        {"shift_id": ["s", "t", "u"], "dataset": ["d", "d", "e"], "task": ["binary"] * 3}
    )
    tuned = pd.DataFrame(
        {
            "shift_id": ["s", "t", "u"] * 2,
            "baseline": ["x"] * 3 + ["y"] * 3,
            "status": ["ok"] * 5 + ["Error: no"],
            "score_id": [0.9, 0.9, 0.8, 0.9, 0.9, np.nan],
            "score_control": [0.8, 0.7, 0.8, 0.8, 0.8, np.nan],
            "score_ood": [0.6, 0.4, 0.7, 0.7, 0.5, np.nan],
        }
    )
    found = study_table(shifts, tuned, catalogue({"d", "e"}), seed=0).set_index("baseline")
    x, y = found.loc["x"], found.loc["y"]
    assert x["score_ood"] == pytest.approx((0.5 + 0.7) / 2)
    assert x["degradation"] == pytest.approx((0.4 + 0.1) / 2)
    assert x["price_of_size"] == pytest.approx((0.15 + 0.0) / 2)
    assert x["price_of_bias"] == pytest.approx((0.25 + 0.1) / 2)
    assert y["score_ood"] == pytest.approx(0.6)
    assert (x["mean_rank"], y["mean_rank"]) == (2.0, 1.0)
    assert list(found["datasets"]) == [2, 1]
    assert list(found["failed"]) == [0, 1]


@pytest.fixture(scope="module")
def published(root: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = root / "study"
    if not (folder / "tuned.parquet").is_file():
        pytest.skip("study/ is not here; run dvc pull study.dvc")
    return pd.read_parquet(folder / "shifts.parquet"), pd.read_parquet(folder / "tuned.parquet")


def test_the_published_study_is_what_was_asked_for(root: Path, published) -> None:
    shifts, tuned = published
    study = load_params(root / "params.yaml").study
    assert (shifts.groupby("task")["dataset"].nunique() == study.datasets_per_task).all()
    assert (shifts.groupby("dataset").size() == study.shifts_per_dataset).all()
    assert set(tuned["baseline"]) == set(study.baselines)
    pairs = set(zip(tuned["shift_id"], tuned["baseline"], strict=True))
    assert len(pairs) == len(tuned) == len(shifts) * len(study.baselines)
    for text in tuned["trials"]:
        tried = json.loads(text)
        assert set(tried) == {"id", "control", "ood"}
        assert all(len(trials) == study.trials for trials in tried.values())


def test_the_page_holds_the_tables_that_the_command_prints(root: Path, published) -> None:
    page = (root / "docs" / "tuned_study.md").read_text(encoding="utf-8")
    seed = load_params(root / "params.yaml").study.seed
    assert page.rstrip().endswith(tables(root / "study", seed))


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("baseline", ["linear", "lightgbm", "random_forest"])
def test_scores_are_those_of_the_published_settings(root: Path, published, baseline) -> None:
    """ID and the control's draws, fitted anew with the settings that stand beside the scores."""
    shifts, tuned = published
    params = load_params(root / "params.yaml")
    name = "recreation_trips"
    row = tuned[
        (tuned["baseline"] == baseline)
        & tuned["shift_id"].isin(shifts.loc[shifts["dataset"] == name, "shift_id"])
    ].iloc[0]
    size = int(shifts.set_index("shift_id").loc[row["shift_id"], "size"])
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=params.split.seed)
    pool = np.sort(split.pool)
    settings = json.loads(row["setting"])

    def score(rows, setting):
        return fit_score(
            get_baseline(baseline),
            setting,
            sample_rows(dataset, rows),
            sample_rows(dataset, split.report),
            task=dataset.task,
            n_classes=len(dataset.classes),
            seed=params.evaluate.seed,
        )

    assert score(pool, settings["id"]) == pytest.approx(row["score_id"], rel=1e-8)
    assert size < 50, "every size under 50 is shared with none"
    drawn_rows = [
        uniform_rows(pool, size, draw, seed=params.shifts.seed, name=name)
        for draw in range(params.evaluate.controls)
    ]
    scores = [score(rows, settings["control"]) for rows in drawn_rows]
    assert np.mean(scores) == pytest.approx(row["score_control"], rel=1e-8)
