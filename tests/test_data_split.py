"""The split: shares, classes, clusters, seeds, and the reasons why there is none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import yaml
from conftest import ROOT

from inconvenient.data import Dataset, load_dataset, split_dataset
from inconvenient.errors import SplitError

QUICK = yaml.safe_load((ROOT / "params.yaml").read_text())["profiles"]["quick"]["datasets"]


def table(target: list[str], groups: np.ndarray | None = None) -> Dataset:
    frame = pd.DataFrame({"x": np.arange(len(target), dtype=float), "y": target})
    classes = tuple(sorted(set(target)))
    return Dataset("table", frame, "y", "binary", classes=classes, groups=groups)


@pytest.mark.parametrize("name", QUICK)
def test_every_dataset_splits(name: str, data_folder) -> None:
    dataset = load_dataset(name)
    split = split_dataset(dataset, seed=7)
    parts = (split.pool, split.filter, split.report)
    assert all((np.diff(rows) > 0).all() and rows.dtype == np.int64 for rows in parts)
    assert not any(rows.flags.writeable for rows in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(dataset)))
    np.testing.assert_array_equal(split.test, np.setdiff1d(np.arange(len(dataset)), split.pool))
    assert 0.45 <= len(split.pool) / len(dataset) <= 0.55
    y = dataset.y
    if dataset.task == "regression":
        means = [y[rows].mean() for rows in parts]
        assert np.ptp(means) < 0.25 * y.std()
    else:
        for rows, least in zip(parts, (10, 5, 5)):
            assert np.bincount(y[rows], minlength=len(dataset.classes)).min() >= least
        shares = [np.bincount(y[rows]) / len(rows) for rows in parts]
        assert np.abs(np.diff(shares, axis=0)).max() < 0.02
    if dataset.groups is not None:
        clusters = [set(dataset.groups[rows]) for rows in parts]
        assert sum(map(len, clusters)) == len(set().union(*clusters))
    again = split_dataset(dataset, seed=7)
    np.testing.assert_array_equal(split.filter, again.filter)
    assert not np.array_equal(split.pool, split_dataset(dataset, seed=8).pool)


def test_quick_has_clusters_gaps_and_many_levels(data_folder) -> None:
    datasets = [load_dataset(name) for name in QUICK]
    assert any(d.groups is not None for d in datasets)
    assert any(d.X.isna().to_numpy().any() for d in datasets)
    levels = [d.X[c].nunique() for d in datasets for c in d.X if d.X[c].dtype.kind not in "fib"]
    assert max(levels) > 20
    tasks = pd.Series([d.task for d in datasets]).value_counts()
    assert tasks.to_dict() == {"regression": 4, "binary": 4, "multiclass": 4}
    assert len({d.domain for d in datasets}) >= 5
    assert all(500 <= len(d) <= 20_000 for d in datasets)


def test_ties_in_the_target_are_harmless() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.where(np.arange(60) < 50, 0.0, 1.0)})
    split = split_dataset(Dataset("ties", frame, "y", "regression"), seed=0)
    assert len(split.pool) == 30
    ones = [int((rows >= 50).sum()) for rows in (split.pool, split.test)]
    assert max(ones) - min(ones) <= 2


def test_small_class_is_named() -> None:
    with pytest.raises(SplitError, match=r"class 'b' has 19 rows in the table, needed at least 20"):
        split_dataset(table(["a"] * 60 + ["b"] * 19), seed=0)
    split_dataset(table(["a"] * 60 + ["b"] * 20), seed=0)


def test_small_table_is_refused() -> None:
    with pytest.raises(SplitError, match=r"at least 40 rows, got 39"):
        split_dataset(table(["a"] * 20 + ["b"] * 19), seed=0)


def test_few_clusters_are_refused() -> None:
    target = ["a", "b"] * 50
    with pytest.raises(SplitError, match=r"in 3 clusters, needed at least 4"):
        split_dataset(table(target, np.arange(100) % 3), seed=0)


def test_uneven_clusters_are_refused() -> None:
    groups = np.where(np.arange(200) < 150, 0, np.arange(200))
    with pytest.raises(SplitError, match=r"clusters are too large to be divided evenly"):
        split_dataset(table(["a", "b"] * 100, groups), seed=0)


def test_class_lost_with_its_cluster_is_named() -> None:
    target = ["a", "b"] * 200 + ["c"] * 20
    groups = np.concatenate([np.arange(400), np.full(20, 400)])
    dataset = dataclasses.replace(table(target, groups), task="multiclass")
    with pytest.raises(SplitError, match=r"class 'c' has 0 rows in the"):
        split_dataset(dataset, seed=0)
