"""Published flips of real datasets: a true prior closes the gap, a reversed one widens it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scoring import needs_publication

import inconvenient as ic
from inconvenient.data.bootstrap import Bootstrap
from inconvenient.errors import InputError
from inconvenient.evaluation.identity import identity_of
from inconvenient.llm.priors import (
    Prior,
    PriorModel,
    flat_prior,
    gap_closed,
    oracle_prior,
    prior_key,
    reversed_prior,
)
from inconvenient.selection.design import build_design
from inconvenient.selection.engine import Engine
from inconvenient.selection.reference import fit_reference
from inconvenient.shifts.published import read_published
from inconvenient.shifts.records import context_of
from inconvenient.store import Store

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder")]

QUICK = {"profile": "quick", "workers": 1, "controls": 1}
Priors = dict[str, Prior]


@pytest.fixture(scope="module")
def flips() -> list[str]:
    """Return up to four flips of each of the twelve datasets, spread over their list."""
    shifts = ic.list_shifts(profile="quick", operation="flip")
    picked = []
    for _, own in shifts.groupby("dataset"):
        places = np.unique(np.linspace(0, len(own) - 1, 4).astype(int))
        picked += own["shift_id"].iloc[places].tolist()
    return picked


@pytest.fixture(scope="module")
def oracles(flips: list[str]) -> Priors:
    splits = read_published(flips, "quick").splits
    datasets = {name: ic.load_dataset(name) for name in splits}
    return {prior_key(ds): oracle_prior(ds, splits[name].pool) for name, ds in datasets.items()}


@pytest.fixture(scope="module")
def base(flips: list[str], tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    store = Store(tmp_path_factory.mktemp("store"))
    return ic.evaluate("linear", flips, store=store, **QUICK)


def test_the_oracle_closes_most_of_the_gap(
    flips: list[str], oracles: Priors, base: pd.DataFrame
) -> None:
    found = gap_closed(ic.evaluate(PriorModel(oracles), flips, **QUICK), base)
    assert found["task"].tolist() == ["regression", "binary", "multiclass"]
    assert found["left_out"].sum() == 0
    assert (found["datasets"] == 4).all()
    assert found["shifts"].sum() == len(flips)
    assert (found["gap"] > 0.05).all()
    assert (found["closed"] > 0.5).all()
    assert (found["low"] > 0.5).all()
    assert (found["closed"] < 1.1).all()  # it is an oracle of coefficients, not of the test set


@pytest.mark.parametrize("strength", [1.0, "size"])
def test_the_reversed_oracle_widens_the_gap(
    flips: list[str], oracles: Priors, base: pd.DataFrame, strength: float | str
) -> None:
    reverse = {key: reversed_prior(prior) for key, prior in oracles.items()}
    model = PriorModel(reverse, strength=strength)
    found = gap_closed(ic.evaluate(model, flips, **QUICK), base)
    assert (found["closed"] < 0).all()
    if strength == "size":  # no longer half way between two wrong fits
        assert (found["high"] < 0).all()


def test_the_flat_prior_is_the_linear_baseline(flips: list[str], base: pd.DataFrame) -> None:
    result = ic.evaluate(PriorModel(flat_prior()), flips[::3], **QUICK)
    base = base[base["shift_id"].isin(result["shift_id"])]
    for column in ("score_id", "score_control", "score_ood"):
        np.testing.assert_allclose(result[column], base[column], atol=1e-6)  # its own tolerance
    np.testing.assert_allclose(gap_closed(result, base)["closed"], 0.0, atol=1e-5)


def test_a_strength_chosen_by_the_sample_turns_the_truth_down(
    flips: list[str], oracles: Priors, base: pd.DataFrame
) -> None:
    """Why the strength is fixed by default: the sample holds no hint of its own bias."""
    found = gap_closed(ic.evaluate(PriorModel(oracles, strength="cv"), flips[::2], **QUICK), base)
    assert (found["closed"] < 0.5).all()


def test_a_dataset_without_a_prior_is_a_failure_of_its_own(
    flips: list[str], oracles: Priors
) -> None:
    shifts = [flips[0], flips[-1]]
    name = flips[0].split("/")[0]
    own = {key: p for key, p in oracles.items() if key != prior_key(ic.load_dataset(name))}
    result = ic.evaluate(PriorModel(own), shifts, **QUICK).set_index("shift_id")
    assert result.loc[flips[-1], "status"] == "ok"
    assert "no prior for this dataset" in result.loc[flips[0], "status"]


def test_records_are_kept_by_what_the_prior_says(oracles: Priors) -> None:
    again = {
        key: Prior(dict(reversed(prior.terms.items())), True) for key, prior in oracles.items()
    }
    assert identity_of(PriorModel(oracles)) == identity_of(PriorModel(again))
    key = next(iter(oracles))
    changed = PriorModel({**oracles, key: reversed_prior(oracles[key])})
    assert identity_of(PriorModel(oracles)) != identity_of(changed)
    assert identity_of(PriorModel(oracles)) != identity_of(PriorModel(oracles, strength="size"))


@pytest.mark.parametrize("name", ["psid_wages_panel", "flchain_death", "nmes1988_selfhealth"])
def test_a_certain_oracle_is_the_reference_model(flips: list[str], name: str) -> None:
    """On any sample its linear predictor is that of the reference model but for the intercept."""
    ids = [one for one in flips if one.startswith(f"{name}/")]
    pool = read_published(ids, "quick").splits[name].pool
    dataset, shift = ic.load_dataset(name), ic.load_shift(ids[0], "quick")
    X, y = shift.train()
    model = PriorModel(oracle_prior(dataset, pool), strength=1e12)
    model.fit(X, y, context=context_of(dataset))
    design = build_design(
        dataset.X.iloc[pool].reset_index(drop=True),
        dataset.y[pool],
        task=dataset.task,
        n_classes=len(dataset.classes),
        rare_level_share=0.01,
    )
    b = fit_reference(Engine(design), ridge=1e-3).coefficients
    # Of the sample, for a level that it lacks has no column; a gap is filled with its own median.
    known = X[X.select_dtypes("number").notna().all(axis=1)].iloc[:200]
    theirs = design.transform(known)[:, 1:] @ b[1:] * design.y_scale
    ours = model.encoder_.transform(known) @ np.atleast_2d(model.coef_).T * model.y_scale_
    if ours.shape[1] > 1:
        theirs = theirs - theirs.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0), atol=1e-6)


def test_an_oracle_counts_as_the_rows_of_the_pool(flips: list[str]) -> None:
    """Its precision in a sample's units is the pool's sum of squares, over the target's."""
    name = "psid_wages_panel"
    ids = [one for one in flips if one.startswith(f"{name}/")]
    pool = read_published(ids, "quick").splits[name].pool
    dataset = ic.load_dataset(name)
    terms = oracle_prior(dataset, pool).terms
    X, y = dataset.X.iloc[pool], dataset.y[pool]
    whole = [key for key in terms if isinstance(key, str) and X[key].notna().all()]
    assert len(whole) > 2
    for feature in whole:
        sd = terms[feature][1] * X[feature].std(ddof=0) / y.std()
        assert sd == pytest.approx(len(pool) ** -0.5)


def made_up() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(2)
    names = ic.list_datasets()["name"].tolist()[:6]
    own = np.repeat(names, 5)
    base = pd.DataFrame({"shift_id": [f"{n}/{i}" for i, n in enumerate(own)], "dataset": own})
    base = base.assign(task="binary", score_id=0.9, score_ood=rng.uniform(0.5, 0.8, len(own)))
    table = base.assign(score_ood=base["score_ood"] + rng.uniform(-0.05, 0.2, len(own)))
    return table.assign(score_id=0.5), base  # the model's own ID score plays no part


def test_share_is_a_ratio_of_means_with_the_quantiles_of_its_resamples() -> None:
    table, base = made_up()
    table.loc[3, "score_ood"] = np.nan
    found = gap_closed(table.sample(frac=1, random_state=0), base, seed=5).iloc[0]
    kept = np.arange(len(base)) != 3
    gained = (table["score_ood"] - base["score_ood"])[kept]
    gap = (0.9 - base["score_ood"])[kept]
    assert found["closed"] == pytest.approx(gained.mean() / gap.mean())
    assert (found["shifts"], found["left_out"], found["datasets"]) == (29, 1, 6)

    catalogue = ic.list_datasets()
    families = {n: f or n for n, f in zip(catalogue["name"], catalogue["family"])}
    bootstrap = Bootstrap(families, seed=5)
    sums = [part.groupby(base["dataset"][kept]).sum() for part in (gained, gap)]
    weights = bootstrap._draw(tuple(sums[0].index))
    assert weights is not None
    ratios = (weights @ sums[0].to_numpy()) / (weights @ sums[1].to_numpy())
    low, high = np.quantile(ratios, [0.025, 0.975])
    # quantiles are interpolated between neighbouring resamples in either way
    assert found["low"] == pytest.approx(low, abs=1e-3)
    assert found["high"] == pytest.approx(high, abs=1e-3)
    assert low < found["closed"] < high


def test_share_where_there_is_no_gap_and_of_doubled_shifts() -> None:
    table, base = made_up()
    nothing = gap_closed(table, base.assign(score_id=base["score_ood"]))
    assert nothing[["closed", "low", "high"]].isna().all(axis=None)
    with pytest.raises(InputError, match="one row per shift, got '.*/0' more than once"):
        gap_closed(pd.concat([table, table.iloc[:1]]), base)
