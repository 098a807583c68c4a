"""Other split seeds: the tables against numbers by hand, the stage against the other stages."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from synthetic import profile_frames

from inconvenient.config import Params, load_params
from inconvenient.report.material import Material, join
from inconvenient.report.seeds import SPREAD, agreement_table, seed_tables
from inconvenient.stages.__main__ import main

DATASETS = [(f"{task}_{letter}", task) for task in ("regression", "binary") for letter in "abc"]
PUBLISHED = 1


@pytest.fixture(scope="module")
def params(root: Path) -> Params:
    return load_params(root / "params.yaml")


def material(params: Params, *, worse: float = 0.0, without: str = "") -> Material:
    """Return made-up frames; every score after a shift lower, or shifts of a dataset not found."""
    frames = profile_frames(DATASETS)
    frames["evaluate/default"]["score_ood"] -= worse
    gone = frames["shifts/shifts"]["dataset"] == without
    ids = frames["shifts/shifts"].loc[~gone, "shift_id"]
    for name, frame in frames.items():
        if "shift_id" in frame and name != "shifts/candidates":
            frames[name] = frame[frame["shift_id"].isin(ids)].reset_index(drop=True)
    return join(frames, params, {})


def one(frame: pd.DataFrame, **values: Any) -> pd.Series:
    for column, value in values.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


VERIFIED = {"task": "binary", "baseline": "linear", "shift_set": "verified", "main": False}


def test_a_loss_that_all_share_is_the_spread(params: Params) -> None:
    worse = {PUBLISHED: 0.0, 2: 0.01, 3: 0.05}
    found = seed_tables(
        {seed: material(params, worse=w) for seed, w in worse.items()}, published=PUBLISHED
    )
    summary, spread = found["summary"], found["spread"]
    rows = [one(summary, seed=seed, **VERIFIED) for seed in worse]
    assert [row["published"] for row in rows] == [True, False, False]
    scores = material(params).default.query("task == 'binary' and baseline == 'linear'")
    scores = scores.dropna(subset=["degradation"])
    medians = scores.groupby("dataset")["degradation"].median()
    for row, extra in zip(rows, worse.values()):
        assert row["shifts"] - row["failed"] == len(scores)
        assert row["datasets"] == 3
        assert row["headline"] == pytest.approx(medians.mean() + extra)
        assert row["mean_degradation"] == pytest.approx(scores["degradation"].mean() + extra)
        assert row["headline_low"] <= row["headline"] <= row["headline_high"]
    expected = np.std(list(worse.values()), ddof=1)
    for number in ("headline", "bias", "mean_degradation"):
        row = one(spread, number=number, **VERIFIED)
        assert row["seeds"] == 3
        assert row["between_sd"] == pytest.approx(expected)
        assert row["greatest"] - row["least"] == pytest.approx(0.05)
        assert row["published"] == pytest.approx(rows[0][number])
    row = one(spread, number="headline", **VERIFIED)
    assert row["dataset_sd"] == pytest.approx(expected)  # each dataset moves by as much
    width = np.mean([r["headline_high"] - r["headline_low"] for r in rows])
    assert row["within_se"] == pytest.approx(width / 3.92, rel=1e-3)
    for number in ("size", "collateral"):  # neither depends on the score after a shift
        assert one(spread, number=number, **VERIFIED)["between_sd"] == pytest.approx(0, abs=1e-12)
    assert np.isnan(one(spread, number="collateral", **VERIFIED)["low"])


def test_every_row_of_every_table(params: Params) -> None:
    seeds = {seed: material(params) for seed in (PUBLISHED, 2)}
    found = seed_tables(seeds, published=PUBLISHED)
    keys = ["task", "baseline", "shift_set", "main"]
    assert not found["summary"].duplicated(["seed", *keys]).any()
    assert not found["spread"].duplicated([*keys, "number"]).any()
    assert len(found["spread"]) == len(found["summary"]) // 2 * len(SPREAD)
    datasets = found["datasets"]
    assert not datasets.duplicated(["seed", "dataset", *keys]).any()
    unsplit = datasets[datasets["dataset"] == "unsplit"]
    assert len(unsplit)
    assert unsplit["status"].str.contains("10 were needed").all()
    assert (unsplit["shifts"] == 0).all()
    sums = datasets.groupby(["seed", *keys])["shifts"].sum()
    counts = found["summary"].set_index(["seed", *keys])
    scored = counts["shifts"] - counts["failed"]
    known = sums.index.intersection(scored.index)
    assert len(known) == 2 * 2 * 2 * 3 * 2  # multiclass has no dataset
    assert (sums[known] == scored[known]).all()


def test_a_number_that_a_seed_lacks(params: Params) -> None:
    lost = material(params)
    for name in ("default", "shifts"):
        frame = getattr(lost, name)
        frame["retained"] &= frame["task"] != "binary"
    found = seed_tables({PUBLISHED: material(params), 2: lost}, published=PUBLISHED)
    row = one(found["spread"], number="headline", **{**VERIFIED, "shift_set": "retained"})
    assert row["seeds"] == 1
    assert np.isnan(row["between_sd"])
    assert np.isnan(row["dataset_sd"])
    assert row["published"] == row["mean"]


@pytest.mark.parametrize("unit", ["cell", "triple"])
def test_agreement_by_counting(params: Params, unit: str) -> None:
    seeds = {1: material(params), 2: material(params, without="binary_a"), 3: material(params)}
    keep = seeds[3].shifts["dataset"] != "binary_b"
    seeds[3].shifts["retained"] &= keep
    table = agreement_table(seeds)

    def name(shift: Any) -> str:
        if unit == "cell":
            return str(shift.shift_id)
        return f"{shift.dataset}/{shift.label}/{'+' if shift.operation == 'amplify' else '-'}"

    for flag, operation in itertools.product(("verified", "retained"), ("flip", "all")):
        sets = []
        for own in seeds.values():
            shifts = own.shifts[(own.shifts["task"] == "binary") & own.shifts[flag]]
            if operation != "all":
                shifts = shifts[shifts["operation"] == operation]
            sets.append({name(shift) for shift in shifts.itertuples()})
        times = {x: sum(x in s for s in sets) for x in set().union(*sets)}
        row = one(table, task="binary", operation=operation, shift_set=flag, unit=unit)
        assert row["in_any"] == len(times) > 0
        for k in (1, 2, 3):
            assert row[f"in_{k}"] == sum(t == k for t in times.values())
        pairs = [len(a & b) for a, b in itertools.permutations(sets, 2)]
        assert row["again"] == pytest.approx(sum(pairs) / (2 * sum(map(len, sets))))
        assert 0 < row["base"] <= 1
        assert row["candidates"] == row["in_all_grids"]
    every = table[(table["task"] == "regression") & (table["shift_set"] == "verified")]
    assert (every["in_3"] == every["in_any"]).all()
    assert (every["again"] == 1).all()


# The stage ----------------------------------------------------------------------------------------


@pytest.fixture
def checkout(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a small profile of two real datasets."""
    values = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
    quick = values["profiles"]["quick"]
    quick["datasets"] = ["anes_turnout_1984", "college_graduation_rate"]
    quick["grid"] |= {"min_fractions": [0.5], "amplify": [1.5], "modes": ["at_least"]}
    values["shifts"]["uniform_samples"] = 10
    values["filter"]["controls"] = values["evaluate"]["controls"] = 3
    values["seeds"]["other_splits"] = [7]
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    monkeypatch.chdir(folder)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return folder


def records(tmp_path: Path) -> set[Path]:
    return {path for path in (tmp_path / "store").rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.jit
def test_the_published_seed_is_the_pipeline(
    checkout: Path, tmp_path: Path, data_folder: Path
) -> None:
    def run(stage: str) -> None:
        assert main([stage, "quick", "--workers", "1"]) == 0

    run("seeds")
    folder = checkout / "artefacts" / "quick"
    assert {p.stem for p in (folder / "seeds").iterdir()} == {
        "agreement",
        "datasets",
        "spread",
        "summary",
    }
    first = {p.name: p.read_bytes() for p in (folder / "seeds").iterdir()}
    made = records(tmp_path)
    # What the other stages do with the published seed is all in the store; tuning alone is not.
    values = yaml.safe_load((checkout / "params.yaml").read_text(encoding="utf-8"))
    values["profiles"]["quick"]["tuning"] = {"shifts_per_dataset": 0, "trials": 0}
    (checkout / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    for stage in ("split", "reference", "shifts", "filter", "evaluate", "collateral"):
        run(stage)
    run("seeds")
    assert records(tmp_path) == made
    assert {p.name: p.read_bytes() for p in (folder / "seeds").iterdir()} == first

    scores = pd.read_parquet(folder / "evaluate" / "default.parquet")
    shifts = pd.read_parquet(folder / "shifts" / "shifts.parquet")
    own = scores.merge(shifts[["shift_id", "dataset", "task"]], on="shift_id")
    summary = pd.read_parquet(folder / "seeds" / "summary.parquet")
    published = load_params(checkout / "params.yaml").split.seed
    for task, baseline in itertools.product(("regression", "binary"), ("linear", "lightgbm")):
        rows = own[(own["task"] == task) & (own["baseline"] == baseline)]
        where = {**VERIFIED, "task": task, "baseline": baseline}
        at = one(summary, seed=published, **where)
        assert at["shifts"] == len(rows) > 0
        assert at["mean_degradation"] == pytest.approx(
            (rows["score_id"] - rows["score_ood"]).mean(), rel=1e-12
        )
        assert one(summary, seed=7, **where)["mean_degradation"] != at["mean_degradation"]


def test_seeds_must_differ(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (checkout / "params.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    values["seeds"]["other_splits"] = [values["split"]["seed"]]
    (checkout / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    assert main(["seeds", "quick"]) == 1
    assert "seeds.other_splits must differ" in capsys.readouterr().err
