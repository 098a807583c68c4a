"""Results beside published baselines: differences, intervals, ranks and tests, done by hand."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from publications import published_frame
from scipy.stats import rankdata, wilcoxon
from scoring import needs_publication, some
from statsmodels.stats.multitest import multipletests

from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError
from inconvenient.evaluation import compare as module
from inconvenient.evaluation.compare import compare

NAMES = [(f"d{i}", "binary") for i in range(8)] + [(f"r{i}", "regression") for i in range(4)]
FAMILY = {"d0": "s", "d1": "s", "d2": "s"}
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    import inconvenient.data

    frame = published_frame(NAMES)
    catalogue = pd.DataFrame(
        {"name": [n for n, _ in NAMES], "family": [FAMILY.get(n, "") for n, _ in NAMES]}
    )
    monkeypatch.setattr(module, "list_shifts", lambda profile=None: frame)
    monkeypatch.setattr(inconvenient.data, "list_datasets", lambda: catalogue, raising=False)
    return frame


def result_of(published: pd.DataFrame, name: str = "own", seed: int = 0) -> pd.DataFrame:
    """Return a made-up result: the linear baseline's scores and something that depends on both."""
    rng = np.random.default_rng(seed)
    out = published[["shift_id", "dataset", "task"]].copy()
    out.insert(0, "model", name)
    out["status"] = "ok"
    shift = published["dataset"].map({n: rng.normal(0.02, 0.03) for n, _ in NAMES})
    out["score_id"] = published["linear_id"] + 0.01
    out["score_ood"] = published["linear_ood"] + shift + rng.normal(0, 0.01, len(out))
    out["degradation"] = out["score_id"] - out["score_ood"]
    return out


def test_differences_are_paired_means_over_datasets(published: pd.DataFrame) -> None:
    result = result_of(published)
    result.loc[3, ["status", "score_id", "score_ood", "degradation"]] = ["failed", *[np.nan] * 3]
    found = compare(result, seed=4).differences.set_index(["task", "baseline", "quantity"])
    assert set(found["model"]) == {"own"}
    assert set(found.index.get_level_values("baseline")) == {"lightgbm", "linear"}
    for task in ("regression", "binary"):
        for baseline in ("linear", "lightgbm"):
            own = published["task"] == task
            ood = result["score_ood"] - published[f"{baseline}_ood"]
            lost = published[f"{baseline}_id"] - published[f"{baseline}_ood"]
            for quantity, gap in (
                ("score_ood", ood),
                ("degradation", result["degradation"] - lost),
            ):
                gap = gap[own].dropna()
                means = gap.groupby(published["dataset"]).mean()
                row = found.loc[task, baseline, quantity]
                assert row["mean"] == pytest.approx(means.mean(), rel=1e-12)
                assert row["shifts"] == len(gap)
                assert row["shifts"] + row["left_out"] == own.sum()
                assert row["datasets"] == len(means)
                ends = Bootstrap(FAMILY, seed=4).interval(means)
                assert (row["low"], row["high"]) == pytest.approx(ends, rel=1e-12)
    assert found.loc["binary", "linear", "score_ood"]["left_out"] >= 1  # the failure above
    assert found.loc["binary", "lightgbm", "score_ood"]["left_out"] >= 2  # and the baseline's


def test_ranks_are_averaged_over_datasets_and_ties(published: pd.DataFrame) -> None:
    twin = result_of(published, "twin").assign(score_ood=published["linear_ood"])
    result = pd.concat([result_of(published), twin], ignore_index=True)
    found = compare(result).ranks
    own = result_of(published)
    for task in ("regression", "binary"):
        table = pd.DataFrame(
            {
                "own": own["score_ood"],
                "twin": published["linear_ood"],
                "lightgbm (published)": published["lightgbm_ood"],
                "linear (published)": published["linear_ood"],
            }
        )[published["task"] == task].dropna()
        means = table.groupby(published["dataset"]).mean()
        expected = rankdata(-means.to_numpy(), axis=1).mean(axis=0)
        rows = found[found["task"] == task]
        assert rows["model"].tolist() == list(table.columns)
        np.testing.assert_allclose(rows["mean_rank"], expected, rtol=1e-12)
        assert set(rows["shifts"]) == {len(table)}
        ranks = rows.set_index("model")["mean_rank"]
        assert ranks["twin"] == ranks["linear (published)"]
        assert ranks.sum() == pytest.approx(1 + 2 + 3 + 4)


def test_tests_are_over_datasets_and_corrected(published: pd.DataFrame) -> None:
    result = pd.concat([result_of(published, f"m{k}", k) for k in range(3)], ignore_index=True)
    found = compare(result).tests
    binary = found[(found["task"] == "binary") & (found["quantity"] == "score_ood")]
    assert len(binary) == 3 * 2
    for row in binary.itertuples():
        own = result[result["model"] == row.model].reset_index(drop=True)
        gap = (own["score_ood"] - published[f"{row.baseline}_ood"])[own["task"] == "binary"]
        expected = wilcoxon(gap.groupby(own["dataset"]).mean())
        assert (row.statistic, row.p, row.datasets) == (expected.statistic, expected.pvalue, 8)
    corrected = multipletests(binary["p"], method="holm")[1]
    np.testing.assert_allclose(binary["p_holm"], corrected, rtol=1e-12)
    assert (binary["p_holm"] > binary["p"]).any()
    regression = found[found["task"] == "regression"]
    assert regression[["statistic", "p", "p_holm"]].isna().all(axis=None)
    assert set(regression["note"]) == {"no test: 4 datasets, at least 6 are needed"}


def test_the_published_against_itself(published: pd.DataFrame) -> None:
    same = result_of(published).assign(score_ood=published["linear_ood"])
    tests = compare(same).tests.set_index(["task", "baseline", "quantity"])
    row = tests.loc["binary", "linear", "score_ood"]
    assert (row["p"], row["note"]) == (1.0, "no dataset differs")


def test_what_cannot_be_compared(published: pd.DataFrame) -> None:
    result = result_of(published)
    with pytest.raises(InputError, match="a shift once per model"):
        compare(pd.concat([result, result]))
    with pytest.raises(InputError, match="results must be of published shifts, got 'x/y'"):
        compare(result.assign(shift_id="x/y").iloc[:1])


def test_all_failed(published: pd.DataFrame) -> None:
    result = result_of(published).assign(status="broken", score_ood=np.nan, degradation=np.nan)
    found = compare(result)
    assert (found.differences["shifts"] == 0).all()
    assert found.differences["mean"].isna().all()
    assert found.ranks["mean_rank"].isna().all()
    assert set(found.tests["note"]) == {"no test: 0 datasets, at least 6 are needed"}


@needs_publication
@pytest.mark.usefixtures("data_folder")
def test_command(cli: Cli) -> None:
    arguments = [word for shift_id in some() for word in ("--shifts", shift_id)]
    arguments += ["--profile", "quick", "--controls", "1", "--workers", "1", "--compare"]
    status, out, _ = cli("evaluate", "--baseline", "linear", *arguments, "--json")
    assert status == 0
    said = json.loads(out)["compare"]
    assert list(said) == ["differences", "ranks", "tests"]
    own = [
        r for r in said["differences"] if (r["baseline"], r["quantity"]) == ("linear", "score_ood")
    ]
    # Made by the same code from the same rows.
    assert [row["mean"] for row in own] == pytest.approx([0.0] * 3, abs=1e-8)
    status, out, _ = cli("evaluate", "--baseline", "linear", *arguments)
    assert status == 0
    assert "no test: 1 datasets, at least 6 are needed" in out
    assert "linear (published)" in out


def test_the_tuned_study_stands_beside(
    published: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its baselines as others, failures left out; a shift that it lacks is an error."""
    tuned = published[["shift_id"]].assign(baseline="catboost", status="ok")
    tuned["score_id"] = published["linear_id"] + 0.03
    tuned["score_ood"] = published["linear_ood"] + 0.02
    monkeypatch.setattr(module, "read_study", lambda: tuned)
    result = result_of(published)
    found = compare(result, study=True, seed=4)
    assert set(found.differences["baseline"]) == {"linear", "lightgbm", "catboost, tuned"}
    differences = found.differences.set_index(["task", "baseline", "quantity"])["mean"]
    for task in ("regression", "binary"):
        gap = (result["score_ood"] - tuned["score_ood"])[published["task"] == task]
        expected = gap.groupby(published["dataset"]).mean().mean()
        assert differences[task, "catboost, tuned", "score_ood"] == pytest.approx(expected)
        beside = differences[task, "linear", "degradation"] - 0.01
        if not published["linear_ood"].isna().any():
            assert differences[task, "catboost, tuned", "degradation"] == pytest.approx(beside)
    assert "catboost, tuned (published)" in set(found.ranks["model"])
    monkeypatch.setattr(module, "read_study", lambda: tuned.iloc[1:])
    with pytest.raises(InputError, match="of its shifts"):
        compare(result, study=True)
