"""Elicited priors on published shifts: knowledge closes the gap, its reverse does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scoring import needs_publication
from scripted_llm import Scripted, saying
from test_llm_elicitation import Likely, table_of

import inconvenient as ic
from inconvenient.benchmark.prior_study import (
    FLAT,
    ORACLE,
    REVERSED,
    SAMPLE_SD,
    PriorStudy,
    distinct_requests,
    drawn_shifts,
    pose_priors,
    study_priors,
)
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.llm.cache import CachedClient, Client
from inconvenient.llm.elicitation import elicit_prior
from inconvenient.llm.elicitation_prompt import scale_of
from inconvenient.llm.priors import PriorModel, gap_closed, oracle_prior, prior_key
from inconvenient.llm.prompts import Message
from inconvenient.shifts.published import read_published
from inconvenient.store import Store

pytestmark = [needs_publication, pytest.mark.slow, pytest.mark.usefixtures("data_folder")]

#: Datasets whose oracle takes longest, and a third to have as many of each task.
SLOW = ("anes_turnout_1984", "hpc_job_class", "forbes2000_market_value")

Truth = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def shifts() -> pd.DataFrame:
    """Return a flip of each of nine datasets, three per task."""
    drawn = drawn_shifts(12, profile="quick", seed=0)
    return drawn[~drawn["dataset"].isin(SLOW)].reset_index(drop=True)


@pytest.fixture(scope="module")
def two(shifts: pd.DataFrame) -> pd.DataFrame:
    """Return those of two datasets with two tasks."""
    return shifts[shifts["dataset"].isin(["recidivism_nc", "college_graduation_rate"])]


@pytest.fixture(scope="module")
def truth(shifts: pd.DataFrame) -> Truth:
    """Return the pool's coefficients as the question has them, by target, feature, level, class."""
    splits = read_published(shifts["shift_id"].tolist(), "quick").splits
    found: Truth = {}
    for name, split in splits.items():
        dataset = ic.load_dataset(name)
        X, y = dataset.X.iloc[split.pool], dataset.y[split.pool]
        spread = y.std() if dataset.task == "regression" else 1.0
        for key, term in oracle_prior(dataset, split.pool).terms.items():
            feature, level = key if isinstance(key, tuple) else (key, None)
            column = X[feature] if level is None else X[feature].astype(str) == level
            unit = float(np.nanstd(column.to_numpy(dtype=float))) / spread
            own = (dataset.target, feature, *(() if level is None else (level,)))
            if isinstance(term, Mapping):
                found |= {(*own, class_): mean * unit for class_, (mean, _) in term.items()}
            else:
                found[own] = term[0] * unit
    return found


def knowing(truth: Truth, sign: int = 1) -> Scripted:
    """Return a client that says of each named coefficient its sign and its size in a word."""

    def script(messages: Sequence[Message]) -> str:
        table = table_of(messages)
        scale = 1.0 if "a linear regression" in messages[-1]["content"] else scale_of("binary")
        said = []
        for feature in table["features"]:
            for one in feature["coefficients"]:
                names = (one[key] for key in ("level", "class") if key in one)
                value = truth.get((table.get("target", ""), feature.get("name", ""), *names))
                if value is None:
                    continue
                place = int(np.searchsorted([0.05, 0.2, 0.4], abs(value) / scale))
                said.append(
                    {
                        "id": one["id"],
                        "sign": "+" if sign * value > 0 else "-",
                        "size": ("none", "small", "medium", "large")[place],
                        "confidence": 90,
                    }
                )
        return json.dumps({"coefficients": said})

    return Scripted(script)


def study(
    client: Client, shifts: pd.DataFrame, folder: Path, *, likelihood: bool = False
) -> PriorStudy:
    posed = pose_priors(shifts, likelihood=likelihood)
    return study_priors(posed, shifts, client, profile="quick", workers=1, store=Store(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def known(shifts: pd.DataFrame, truth: Truth, folder: Path) -> PriorStudy:
    return study(knowing(truth), shifts, folder)


def closed(found: PriorStudy, prior: str) -> pd.DataFrame:
    own = found.closed[found.closed["prior"] == prior].set_index("task")
    assert own.index.tolist() == ["regression", "binary", "multiclass"]
    return own


def test_answers_that_are_right_close_most_of_the_gap(known: PriorStudy) -> None:
    own = closed(known, "documented")
    assert (own["closed"] > 0.5).all()
    assert (own["low"] > 0.3).all()
    assert (own["shifts"] == 3).all()
    assert (closed(known, ORACLE)["closed"] > 0.7).all()
    # without names this client has no answer, and its masked prior is the flat one
    over = closed(known, "documented over masked")
    pd.testing.assert_frame_equal(over.drop(columns="prior"), own.drop(columns="prior"))


def test_the_reverse_closes_less_by_far(
    known: PriorStudy, shifts: pd.DataFrame, truth: Truth, folder: Path
) -> None:
    right = closed(known, "documented")["closed"]
    assert (closed(known, REVERSED)["closed"] < right - 0.5).all()
    wrong = study(knowing(truth, -1), shifts, folder)
    for task in ("binary", "multiclass"):
        assert closed(wrong, "documented")["closed"][task] < 0
    # what a client reverses is what its reversed prior reverses back
    for one, other in (("documented", REVERSED), (REVERSED, "documented")):
        both = closed(wrong, one), closed(known, other)
        pd.testing.assert_frame_equal(*(table.drop(columns="prior") for table in both))


def test_at_its_word_a_prior_drowns_in_the_rows_of_a_sample(
    shifts: pd.DataFrame, truth: Truth, folder: Path
) -> None:
    """Why a prior counts by the size of a sample: at strength 1 right and wrong do not differ."""
    own = shifts[shifts["task"] == "regression"]
    options = {"profile": "quick", "workers": 1, "controls": 1, "store": Store(folder)}
    base = ic.evaluate(PriorModel(), own, **options)
    datasets = [ic.load_dataset(name) for name in own["dataset"]]
    found = {}
    for sign in (1, -1):
        said = {prior_key(ds): elicit_prior(ds, knowing(truth, sign)).prior for ds in datasets}
        for strength in (1.0, "size"):
            model = PriorModel(said, strength=strength, sample_sd=SAMPLE_SD)
            closed = gap_closed(ic.evaluate(model, own, **options), base)
            found[strength, sign] = closed["closed"].iloc[0]
    assert found["size", 1] - found["size", -1] > 0.5
    assert abs(found[1.0, 1] - found[1.0, -1]) < 0.2


def test_one_that_says_nothing_is_the_linear_baseline_exactly(
    known: PriorStudy, shifts: pd.DataFrame, folder: Path
) -> None:
    found = study(saying("I would rather not."), shifts, folder)
    tables = dict(list(found.scores.groupby("prior")))
    columns = ["shift_id", "score_id", "score_control", "score_ood"]
    flat = tables[FLAT][columns].reset_index(drop=True)
    for name in ("documented", "masked", REVERSED):
        pd.testing.assert_frame_equal(tables[name][columns].reset_index(drop=True), flat)
        assert (closed(found, name)["closed"] == 0).all()
    assert (closed(found, "documented over masked")["closed"] == 0).all()
    linear = ic.evaluate(
        "linear", shifts["shift_id"], profile="quick", workers=1, controls=1, store=Store(folder)
    )
    # the optimiser of scikit-learn stops at a tolerance of its own
    np.testing.assert_allclose(flat[columns[1:]], linear[columns[1:]], atol=1e-4)
    assert (found.answers["missing"] == found.answers["asked"]).all()
    # without names one who knows the truth of names knows nothing
    assert (closed(known, "masked")["closed"] == 0).all()


def test_what_names_add_is_in_units_of_the_same_gap(two: pd.DataFrame, folder: Path) -> None:
    def script(messages: Sequence[Message]) -> str:
        table = table_of(messages)
        ids = [one["id"] for feature in table["features"] for one in feature["coefficients"]]
        said = {"sign": "+" if "target" in table else "-", "size": "medium", "confidence": 80}
        return json.dumps({"coefficients": [{"id": id_, **said} for id_ in ids]})

    found = study(Scripted(script), two, folder).closed.set_index(["prior", "task"])["closed"]
    for task in ("regression", "binary"):
        added = found["documented", task] - found["masked", task]
        assert abs(added) > 0.01
        assert found["documented over masked", task] == pytest.approx(added, rel=1e-9)


def test_answers_are_counted_per_variant_and_dataset(
    known: PriorStudy, shifts: pd.DataFrame
) -> None:
    own = known.answers.set_index(["variant", "dataset"])
    assert len(own) == 2 * shifts["dataset"].nunique() == 18
    assert (own.loc["documented"]["said"] > 0.8 * own.loc["documented"]["asked"]).all()
    assert (own.loc["masked"]["missing"] == own.loc["masked"]["asked"]).all()
    assert (own["questions"] == np.ceil(own["asked"] / 15)).all()
    assert (own["tokens_in"] > 500).all()
    told = known.beliefs.groupby(["variant", "dataset"]).size()
    assert told.to_dict() == own.loc[["documented"], "said"].to_dict()
    assert known.beliefs["sd"].between(0.03, 3.0).all()


def test_every_distinct_request_is_sent_once(two: pd.DataFrame, folder: Path) -> None:
    client = saying("")
    posed = pose_priors(two, likelihood=True)
    study_priors(posed, two, client, profile="quick", workers=1, store=Store(folder))
    sent = [request.of("") for request in client.asked]
    assert len(sent) == len(set(sent)) == len(distinct_requests(posed))
    every = [request.of("") for one in posed.values() for request in one.requests]
    assert set(every) == set(sent)
    assert len(every) > 1.5 * len(sent)  # without names there is little to tell apart


def test_a_replay_sends_nothing(
    two: pd.DataFrame, truth: Truth, folder: Path, tmp_path: Path
) -> None:
    client = knowing(truth)
    first = study(CachedClient(tmp_path, client), two, folder)
    asked = len(client.asked)
    again = study(CachedClient(tmp_path, model=client.model), two, folder)
    assert len(client.asked) == asked
    pd.testing.assert_frame_equal(again.scores, first.scores)
    pd.testing.assert_frame_equal(again.closed, first.closed)
    with pytest.raises(NotAvailableError, match="was needed"):
        study(CachedClient(tmp_path, model=client.model), two, folder, likelihood=True)


def test_log_probabilities_of_one_who_knows_signs(
    two: pd.DataFrame, truth: Truth, folder: Path
) -> None:
    signs = {names[1:]: np.sign(value) for names, value in truth.items()}

    def script(statement: str) -> str:
        quoted = statement.split('"')[1::2]
        up = " lower " not in statement
        sign = next((signs[(name,)] for name in quoted if (name,) in signs), 0.0)
        return str(1.0 if sign == 0 else 3.0 if up == (sign > 0) else 1 / 3)

    client = Likely(script)
    found = study(client, two, folder, likelihood=True)
    own = found.closed.set_index(["prior", "task"])["closed"]
    for task in ("regression", "binary"):
        assert own["documented", task] > 0.2
        assert own[REVERSED, task] < own["documented", task] - 0.5
        assert own["masked", task] == 0
    # per coefficient eight requests; of masked ones those of a level or number alone are left
    asked = found.answers.set_index("variant").groupby(level=0)[["asked", "questions"]].sum()
    assert (asked["questions"] == 8 * asked["asked"]).all()
    assert len(client.asked) < asked.loc["documented", "questions"] + 4 * 8 + 1


def test_shifts_are_spread_over_the_datasets() -> None:
    few = drawn_shifts(7, profile="quick", seed=3)
    assert len(few) == few["dataset"].nunique() == 7
    assert set(few["operation"]) == {"flip"}
    more = drawn_shifts(20, profile="quick", seed=3)
    assert set(few["shift_id"]) < set(more["shift_id"])
    assert more["dataset"].value_counts().max() == 2
    every = drawn_shifts(10_000, operation="attenuate", profile="quick")
    assert len(every) == len(ic.list_shifts(profile="quick", operation="attenuate"))
    with pytest.raises(InputError, match="operation must be one of .* got 'bend'"):
        drawn_shifts(3, operation="bend", profile="quick")
    with pytest.raises(InputError, match="at least 1, got 0"):
        drawn_shifts(0, profile="quick")


def test_the_command_replays_and_estimates(
    cli: Callable[..., tuple[int, str, str]], truth: Truth, tmp_path: Path
) -> None:
    drawn = drawn_shifts(2, profile="quick", seed=5)
    client = knowing(truth)
    answers = tmp_path / "answers"
    study_priors(
        pose_priors(drawn, seed=5), drawn, CachedClient(answers, client), profile="quick", workers=1
    )
    how = ["priors", "--model", client.model, "--shifts", "2", "--profile", "quick", "--seed", "5"]
    how += ["--answers", str(answers), "--workers", "1", "--replay"]
    status, stdout, _ = cli(*how, "--json", "--out", str(tmp_path / "scores.csv"))
    assert status == 0
    said = json.loads(stdout)
    shown = {"documented", "masked", REVERSED, ORACLE, FLAT, "documented over masked"}
    assert {row["prior"] for row in said["closed"]} == shown
    assert {row["dataset"] for row in said["answers"]} == set(drawn["dataset"])
    assert len(pd.read_csv(tmp_path / "scores.csv")) == len(said["scores"]) == 10
    assert len(said["beliefs"]) == sum(row["said"] for row in said["answers"])

    status, stdout, _ = cli(*how, "--variant", "documented")
    assert status == 0
    assert "documented" in stdout
    assert "masked" not in stdout

    status, stdout, _ = cli(*how, "--dry-run", "--json")
    assert status == 0
    assert json.loads(stdout)["calls"] == 0
    assert json.loads(stdout)["kept answers"] == len(client.asked)
    status, stdout, _ = cli(*how, "--dry-run", "--json", "--likelihood")
    assert json.loads(stdout)["calls"] == len(
        distinct_requests(pose_priors(drawn, seed=5, likelihood=True))
    )
    status, _, stderr = cli(*how, "--likelihood")
    assert status == 1
    assert "was needed, but" in stderr
    status, _, stderr = cli(*how, "--variant", "names")
    assert status == 1
    assert "variant must be one of documented, masked, got 'names'" in stderr


def test_the_command_without_a_model(cli: Callable[..., tuple[int, str, str]]) -> None:
    status, _, stderr = cli("priors", "--shifts", "2")
    assert status == 1
    assert "give --model" in stderr
