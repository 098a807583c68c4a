"""From verified shifts to tables of scores: shared training sets, failures, resumption, order."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from hostile import diabetes_table, shifts_of, split_of, wine_table

from inconvenient.baselines import BASELINES, Baseline
from inconvenient.config import TuningParams, load_params
from inconvenient.errors import InputError, MissingDependencyError
from inconvenient.evaluation import runner
from inconvenient.evaluation.plan import draw_shifts, plans, training_rows
from inconvenient.evaluation.protocol import fit_score, sample_rows, tune
from inconvenient.selection.chance import shared_size, uniform_rows
from inconvenient.shifts.rows import rows_hash
from inconvenient.store import Store, run_units


@pytest.fixture
def world(root, monkeypatch):
    params = load_params(root / "params.yaml")
    params = dataclasses.replace(
        params,
        evaluate=dataclasses.replace(params.evaluate, controls=3, baselines=("linear",)),
    )
    tables = {t.name: t for t in (diabetes_table(), wine_table())}
    splits = {name: split_of(len(t.y)) for name, t in tables.items()}
    monkeypatch.setattr(runner, "_dataset", lambda name, digest: tables[name])
    return tables, splits, shifts_of(list(tables.values()), splits), params


def run(units, tmp_path):
    return run_units(units, store=Store(tmp_path / "store"), workers=1, label="test")


def test_default_scores(world, tmp_path):
    tables, splits, shifts, params = world
    units = runner.default_units(tables, splits, shifts, params)
    assert len(units) == 2 * 3  # per dataset: the pool, the controls, the two row sets
    frames = run(units, tmp_path)
    table = runner.assemble_default(splits, shifts.sample(frac=1, random_state=0), params, frames)
    assert list(table.columns) == [
        "shift_id", "baseline", "status", "score_id", "score_control", "control_sd",
        "score_ood", "setting",
    ]  # fmt: skip
    assert table["shift_id"].tolist() == sorted(shifts["shift_id"])
    assert set(table["status"]) == {"ok"}

    name, model = "diabetes", BASELINES["linear"]
    dataset, split = tables[name], splits[name]
    scored = sample_rows(dataset, split.report)

    def by_hand(rows):
        return fit_score(
            model, {"alpha": 1.0}, sample_rows(dataset, rows), scored,
            task="regression", n_classes=0, seed=params.evaluate.seed,
        )  # fmt: skip

    row = table.iloc[0]
    shift = shifts.set_index("shift_id").loc[row["shift_id"]]
    size = shared_size(int(shift["size"]))
    controls = [
        by_hand(uniform_rows(split.pool, size, draw, seed=params.shifts.seed, name=name))
        for draw in range(3)
    ]
    order = split.pool[np.argsort(dataset.X.iloc[split.pool, 0].to_numpy(), kind="stable")]
    assert row["score_id"] == by_hand(split.pool)
    assert row["score_control"] == pytest.approx(np.mean(controls), rel=1e-14)
    assert row["control_sd"] == pytest.approx(np.std(controls, ddof=1), rel=1e-12)
    assert row["score_ood"] == by_hand(order[: int(shift["size"])])


def test_units_hold_each_training_set_once_a_dataset_after_the_other(world):
    tables, splits, shifts, params = world
    todo = plans(splits, shifts, controls=3, seed=params.shifts.seed)
    tests = {name: split.report for name, split in splits.items()}
    models = [BASELINES["linear"], BASELINES["lightgbm"]]
    units = runner.score_units(tables, todo, tests, models, stage="evaluate", seed=1, batch_size=2)
    found = []
    for unit in units:
        common, batch, _ = unit.arguments
        assert len({item.role for item in batch}) == 1
        assert 1 <= len(batch) <= 2
        found += [(common.dataset, common.model.name, item) for item in batch]
    # most work first: 442 rows of 10 columns, then 178 of 6 with three classes
    expected = [
        (name, model, item)
        for name in ("diabetes", "wine")
        for model in ("linear", "lightgbm")
        for plan in (todo[name],)
        for item in (
            plan.full,
            *(i for size in sorted(plan.controls) for i in plan.controls[size]),
            *(plan.samples[digest] for digest in sorted(plan.samples)),
        )
    ]
    assert found == expected
    assert len({unit.key for unit in units}) == len(units)


def test_rows_of_training_sets(world):
    _, splits, shifts, params = world
    seed = params.shifts.seed
    plan = plans(splits, shifts, controls=2, seed=seed)["wine"]
    pool = splits["wine"].pool

    def rows(item):
        return training_rows(item, plan.pool, seed=plan.seed, name=plan.name)

    np.testing.assert_array_equal(rows(plan.full), pool)
    for size, drawn in plan.controls.items():
        for draw, item in enumerate(drawn):
            expected = uniform_rows(pool, size, draw, seed=seed, name="wine")
            np.testing.assert_array_equal(rows(item), expected)
    for digest, item in plan.samples.items():
        assert rows_hash(rows(item)) == digest
        assert (np.diff(rows(item)) > 0).all()


def test_a_second_run_computes_nothing_and_other_inputs_have_other_keys(world, tmp_path):
    tables, splits, shifts, params = world
    units = runner.default_units(tables, splits, shifts, params)
    frames = run(units, tmp_path)

    def fail(*_):
        raise AssertionError("computed again")

    again = run([unit._replace(function=fail) for unit in units], tmp_path)
    for a, b in zip(frames, again, strict=True):
        pd.testing.assert_frame_equal(a, b)

    keys = {unit.key for unit in units}
    other = {**tables, "wine": dataclasses.replace(tables["wine"], hash="1" * 64)}
    changed = {u.key for u in runner.default_units(other, splits, shifts, params)}
    assert keys & changed
    assert keys != changed
    renamed = shifts.assign(shift_id=shifts["shift_id"] + "x")
    assert {u.key for u in runner.default_units(tables, splits, renamed, params)} == keys
    seeded = dataclasses.replace(params, evaluate=dataclasses.replace(params.evaluate, seed=1))
    assert not {u.key for u in runner.default_units(tables, splits, shifts, seeded)} & keys


def test_a_failure_is_a_record(world, tmp_path, monkeypatch):
    tables, splits, shifts, params = world
    real = BASELINES["linear"]

    def make(setting, *, task, **options):
        if task == "multiclass":
            raise RuntimeError("out of\nluck")
        return real.make(setting, task=task, **options)

    monkeypatch.setitem(BASELINES, "linear", Baseline("linear", real.default, real.suggest, make))
    frames = run(runner.default_units(tables, splits, shifts, params), tmp_path)
    table = runner.assemble_default(splits, shifts, params, frames)
    wine = table["shift_id"].str.startswith("wine")
    assert set(table.loc[wine, "status"]) == {"RuntimeError: out of luck"}
    assert table.loc[wine, ["score_id", "score_control", "score_ood"]].isna().all(axis=None)
    assert set(table.loc[~wine, "status"]) == {"ok"}


def test_tuned_scores(world, tmp_path):
    tables, splits, shifts, params = world
    tuning = TuningParams(shifts_per_dataset=2, trials=2)
    frames = run(runner.tuned_units(tables, splits, shifts, params, tuning), tmp_path)
    table = runner.assemble_tuned(splits, shifts, params, tuning, frames)
    assert len(table) == 4
    assert set(table["status"]) == {"ok"}
    row = table.iloc[0]
    setting, trials = json.loads(row["setting"]), json.loads(row["trials"])
    assert list(setting) == ["id", "control", "ood"]
    assert [len(trials[role]) for role in setting] == [2, 2, 2]

    dataset, split = tables["diabetes"], splits["diabetes"]
    options = {"task": "regression", "n_classes": 0, "seed": params.evaluate.seed}
    size = shared_size(int(shifts.set_index("shift_id").loc[row["shift_id"], "size"]))
    samples = [
        sample_rows(
            dataset, uniform_rows(split.pool, size, draw, seed=params.shifts.seed, name="diabetes")
        )
        for draw in range(3)
    ]
    model = BASELINES["linear"]
    tuned = tune(model, samples[0], **options, trials=2)
    assert tuned.setting == setting["control"]
    scored = sample_rows(dataset, split.report)
    scores = [fit_score(model, tuned.setting, s, scored, **options) for s in samples]
    assert row["score_control"] == pytest.approx(np.mean(scores), rel=1e-14)


def test_nothing_to_tune_and_nothing_verified(world, tmp_path):
    tables, splits, shifts, params = world
    none = TuningParams(shifts_per_dataset=0, trials=0)
    assert runner.tuned_units(tables, splits, shifts, params, none) == []
    empty = runner.assemble_tuned(splits, shifts, params, none, [])
    assert len(empty) == 0
    assert str(empty["score_ood"].dtype) == "float64"
    assert runner.default_units(tables, splits, shifts.iloc[:0], params) == []
    assert len(runner.assemble_default(splits, shifts.iloc[:0], params, [])) == 0


def test_unknown_and_missing_baselines_stop_before_any_work(world, monkeypatch):
    import sys

    tables, splits, shifts, params = world

    def units(name):
        evaluate = dataclasses.replace(params.evaluate, baselines=(name,))
        changed = dataclasses.replace(params, evaluate=evaluate)
        return runner.default_units(tables, splits, shifts, changed)

    with pytest.raises(InputError, match="got 'magic'"):
        units("magic")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match="lightgbm"):
        units("lightgbm")


def test_plans_hold_each_row_set_once(world):
    _, splits, shifts, params = world
    plan = plans(splits, shifts, controls=2, seed=params.shifts.seed)["wine"]
    own = shifts[shifts["dataset"] == "wine"]
    assert set(plan.samples) == set(own["rows_hash"])
    assert set(plan.controls) == {shared_size(int(s)) for s in own["size"]}
    assert all(len(drawn) == 2 for drawn in plan.controls.values())


def test_drawn_shifts_alternate_operations_and_share_no_row_set():
    rows = [
        (f"{d}/f{i}/{op}/{j}", d, op, f"{d}{op}{i}{'' if op == 'flip' else j}")
        for d in ("a", "b")
        for op, k in (("amplify", 6), ("attenuate", 1), ("flip", 4))
        for i in range(k)
        for j in range(2)
    ]
    shifts = pd.DataFrame(rows, columns=["shift_id", "dataset", "operation", "rows_hash"])
    drawn = draw_shifts(shifts, per_dataset=7, seed=3)
    own = shifts[shifts["shift_id"].isin(drawn)]
    assert own["rows_hash"].is_unique
    counts = own.groupby(["dataset", "operation"]).size()
    for name in "ab":
        assert counts[name].sum() == 7
        assert counts[name]["attenuate"] <= 2
        assert abs(counts[name]["amplify"] - counts[name]["flip"]) <= 1
    assert drawn == draw_shifts(shifts.sample(frac=1, random_state=1), per_dataset=7, seed=3)
    alone = draw_shifts(shifts[shifts["dataset"] == "b"], per_dataset=7, seed=3)
    assert alone == [s for s in drawn if s.startswith("b")]
    assert drawn != draw_shifts(shifts, per_dataset=7, seed=4)
    assert len(draw_shifts(shifts, per_dataset=1000, seed=3)) == shifts["rows_hash"].nunique()
