"""``ic.evaluate`` and its command: any model, on any published shifts, each failure its own."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scoring import MODELS, SMALL, needs_publication, some, written
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import inconvenient as ic
from inconvenient.baselines import BASELINES, Baseline
from inconvenient.errors import InputError, MissingDependencyError
from inconvenient.evaluation import runner
from inconvenient.evaluation.estimators import own_model
from inconvenient.evaluation.evaluate import evaluate, summarise
from inconvenient.evaluation.identity import UnknownSource, identity_of
from inconvenient.evaluation.labels import Labels, class_scores
from inconvenient.store import Store

pytestmark = [needs_publication, pytest.mark.usefixtures("data_folder")]

Cli = Callable[..., tuple[int, str, str]]
QUICK = {"profile": "quick", "workers": 1, "controls": 2}
SCORES = ["score_id", "score_control", "control_sd", "score_ood"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return written(tmp_path, "own_models")


def test_a_baseline_gets_its_published_scores(root: Path) -> None:
    from inconvenient.config import load_params

    seed = load_params(root / "params.yaml").evaluate.seed
    ids = some()
    result = evaluate("linear", ids, profile="quick", workers=1, seed=seed)
    shifts = ic.list_shifts(profile="quick").set_index("shift_id").loc[ids]
    columns = ["linear_id", "linear_control", "linear_control_sd", "linear_ood"]
    np.testing.assert_allclose(result[SCORES], shifts[columns], rtol=1e-8)
    assert result["shift_id"].tolist() == ids
    assert set(result["status"]) == {"ok"}
    np.testing.assert_allclose(
        result["degradation"], result["price_of_size"] + result["price_of_bias"], atol=1e-15
    )


def test_a_tuned_baseline_is_tuned_on_each_training_set(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = BASELINES["linear"]

    def make(setting, **options):
        model = real.make(setting, **options)
        fit = model.fit
        model.fit = lambda X, y: (sizes.append(len(X)), fit(X, y))
        return model

    spy = Baseline("linear", real.default, real.suggest, make)
    monkeypatch.setitem(BASELINES, "linear", spy)
    (shift_id,) = some("regression")
    result = evaluate("linear", shift_id, trials=3, **QUICK)
    shift = ic.load_shift(shift_id, "quick")
    pool, size = shift.pool_rows, shift.size
    early = [n for n in sizes if n not in {pool, size} and n < 0.85 * pool]
    assert len(early) >= 9  # three trials on four fifths of pool, control and sample each
    assert result["status"].tolist() == ["ok"]
    assert result["score_id"].notna().all()
    setting, tried = (json.loads(result[name][0]) for name in ("setting", "trials"))
    assert list(setting) == list(tried) == ["id", "control", "ood"]
    for role, settings in tried.items():
        best = max(settings, key=lambda trial: trial["value"])
        assert len(settings) == 3
        assert best["setting"] == setting[role]


def test_notes_tell_the_model_and_the_seed_behind_a_key(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    (shift_id,) = some("regression")
    for seed in (7, 8):
        evaluate("linear", shift_id, seed=seed, store=store, **QUICK)
    notes = store.notes()
    assert set(notes["model"]) == {"linear"}
    assert notes["seed"].value_counts().to_dict() == {7: 3, 8: 3}  # pool, controls, sample
    assert notes["key"].is_unique


def test_an_estimator_is_cloned_and_told_its_dataset(models: ModuleType, tmp_path: Path) -> None:
    estimator = models.Linear(folder=str(tmp_path))
    result = evaluate(estimator, some(), **QUICK)
    assert set(result["status"]) == {"ok"}
    assert vars(estimator) == {"alpha": 1.0, "folder": str(tmp_path)}
    assert result["model"].unique().tolist() == ["Linear"]
    by_class = evaluate(models.Linear, some(), **QUICK)
    pd.testing.assert_frame_equal(result[SCORES], by_class[SCORES])


def test_the_context_is_the_datasets(models: ModuleType) -> None:
    told = []

    class Listens(models.Linear):
        def fit(self, X, y, context=None):
            told.append((context, X, y))
            return super().fit(X, y, context)

    (shift_id,) = some("multiclass")
    with pytest.warns(UserWarning, match="not stored between runs"):
        evaluate(Listens(), [shift_id], **QUICK)
    shift = ic.load_shift(shift_id, "quick")
    X, y = shift.train()
    assert len(told) == 1 + 2 + 1
    assert all(context == shift.context for context, _, _ in told)
    _, last_X, last_y = told[-1]
    pd.testing.assert_frame_equal(last_X, X.sort_index().reset_index(drop=True))
    pd.testing.assert_series_equal(last_y, y.sort_index().reset_index(drop=True))


def test_other_kinds_of_models(models: ModuleType) -> None:
    ids = some("binary", "multiclass")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (
            make_pipeline(SimpleImputer(), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
    )
    search = GridSearchCV(make_pipeline(encoder, LogisticRegression()), {}, cv=2)
    for model in (models.Plain, models.Plain(), models.Margin(), models.labels, models.frame):
        result = evaluate(model, ids, **QUICK)
        assert set(result["status"]) == {"ok"}, result["status"].tolist()
        assert result["score_id"].between(0.45, 1.0).all()
    assert set(evaluate(search, ids, **QUICK)["status"]) == {"ok"}
    proba = evaluate(models.Linear(), ids, **QUICK)
    np.testing.assert_array_equal(result[SCORES], proba[SCORES])  # columns in another order


def test_draws_follow_the_seed_and_nothing_else(models: ModuleType) -> None:
    ids = some("regression")
    np.random.seed(1)
    first = evaluate(models.Draws(), ids, seed=3, store="a", **QUICK)
    state = np.random.get_state()[1]
    np.random.seed(1)
    np.testing.assert_array_equal(state, np.random.get_state()[1])
    np.random.seed(2)
    again = evaluate(models.Draws(), ids, seed=3, store=Store("b"), **QUICK)
    pd.testing.assert_frame_equal(first, again)
    other = evaluate(models.Draws(), ids, seed=4, **QUICK)
    assert (other["score_ood"] != first["score_ood"]).all()


def test_a_failure_is_a_row_and_costs_its_own_shifts(models: ModuleType) -> None:
    result = evaluate(models.Fails(), some(), **QUICK).set_index("task")
    assert result.loc["binary", "status"] == "RuntimeError: two classes are too few"
    assert result.loc["binary", SCORES].isna().all()
    others = result.drop(index="binary")
    assert set(others["status"]) == {"ok"}
    table = summarise(result.reset_index()).set_index("task")
    assert table["failed"].to_dict() == {"regression": 0, "binary": 1, "multiclass": 0}
    assert np.isnan(table.loc["binary", "ood_mean"])
    assert table.loc["regression", "ood_median"] == result.loc["regression", "score_ood"]
    assert table.index.tolist() == list(SMALL)


@pytest.mark.slow
def test_a_unit_over_its_limit_is_ended_alone(models: ModuleType) -> None:
    ids = some("binary")
    options = {**QUICK, "controls": 1, "workers": 2}
    result = evaluate(models.Grows(), ids, memory_limit=1000, **options).set_index("task")
    assert result.loc["binary", "status"] == "MemoryLimit: over 1,000 MB"
    assert result.loc["binary", ["score_control", "score_ood"]].isna().all()
    assert np.isfinite(result.loc["binary", "score_id"])


def test_which_shifts(models: ModuleType) -> None:
    from inconvenient.evaluation.choice import choose

    known = ic.list_shifts(profile="quick")
    flips = choose(known, ["kakadu_wtp/*/flip/*", "recidivism_nc/*/flip/*"])
    assert len(flips)
    assert set(flips["operation"]) == {"flip"}
    assert set(flips["dataset"]) == {"kakadu_wtp", "recidivism_nc"}
    assert set(choose(known, tasks=("binary",))["task"]) == {"binary"}
    (named,) = some("regression")
    assert choose(known, [named, "kakadu_wtp/*"], tasks=("binary",))["shift_id"].tolist() == [named]
    drawn = choose(known, limit=20, seed=1)
    assert len(drawn) == drawn["shift_id"].nunique() == 20
    assert drawn["shift_id"].tolist() == choose(known, limit=20, seed=1)["shift_id"].tolist()
    assert drawn["shift_id"].tolist() != choose(known, limit=20, seed=2)["shift_id"].tolist()
    assert len(choose(known, limit=10**6)) == len(known)
    with pytest.raises(InputError, match="no published shift matches 'kakadu_wtpp/x'; closest are"):
        choose(known, ["kakadu_wtpp/x"])
    with pytest.raises(InputError, match="got none of"):
        choose(known, ["kakadu_wtp/*"], tasks=("binary",))
    shift = ic.load_shift(named, "quick")
    frame = known[known["shift_id"] == named]
    for given in ([shift], frame, named, [named]):
        assert evaluate(models.Linear, given, **QUICK)["shift_id"].tolist() == [named]


def test_a_classifier_is_not_scored_on_numbers() -> None:
    ids = some("regression", "binary")
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    result = evaluate(model, ids, **QUICK).set_index("task")
    assert (
        "is for binary and multiclass targets, got a regression" in result["status"]["regression"]
    )
    assert result["status"]["binary"] == "ok"
    assert own_model(Ridge()).tasks == ("regression",)
    assert own_model(Ridge).tasks == ("regression",)


def test_what_cannot_be_scored(models: ModuleType) -> None:
    (shift_id,) = some("binary")
    with pytest.raises(InputError, match="trials are for baselines"):
        evaluate(models.Linear(), shift_id, trials=2, **QUICK)
    with pytest.raises(InputError, match="baseline must be one of .*, got 'magic'"):
        evaluate("magic", shift_id, **QUICK)
    with pytest.raises(InputError, match="controls must be at least 1"):
        evaluate(models.Linear(), shift_id, profile="quick", controls=0)
    for strange in (3, object(), dict):
        with pytest.raises(InputError, match="an estimator with fit and predict"):
            evaluate(strange, shift_id, **QUICK)
    with pytest.raises(InputError, match="Baseline must be constructible without arguments"):
        evaluate(Baseline, shift_id, **QUICK)


# -- what predictions mean -------------------------------------------------------------------------

THREE = Labels("y", np.dtype(object), ("a", "b", "c"), np.array(["a", "b", "c"], dtype=object))
TWO = Labels("y", np.dtype(np.int64), ("0", "1"), np.array([0, 1]))


def test_scores_of_classes() -> None:
    proba = np.array([[0.2, 0.8], [0.6, 0.4]])
    expected = [[0.8, 0.0, 0.2], [0.4, 0.0, 0.6]]
    np.testing.assert_array_equal(class_scores(proba, THREE, n=2, present=["c", "a"]), expected)
    frame = pd.DataFrame(proba, columns=["c", "a"], index=[5, 5])
    np.testing.assert_array_equal(class_scores(frame, THREE, n=2), expected)
    seen = class_scores(proba, THREE, n=2, seen=np.array([0, 2]))
    np.testing.assert_array_equal(seen, [[0.2, 0, 0.8], [0.6, 0, 0.4]])
    one = class_scores(np.ones((2, 1)), THREE, n=2, present=["b"])
    np.testing.assert_array_equal(one, [[0, 1, 0], [0, 1, 0]])
    given = class_scores(["c", "a"], THREE, n=2)
    np.testing.assert_array_equal(given, [[0, 0, 1], [1, 0, 0]])
    margin = class_scores(np.array([-2.0, 3.0]), THREE, n=2, present=["a", "c"])
    np.testing.assert_array_equal(margin, [[2, 0, -2], [-3, 0, 3]])
    np.testing.assert_array_equal(class_scores(np.array([0.3, 0.9]), TWO, n=2)[:, 1], [0.3, 0.9])
    for labels in ([0, 1], [0.0, 1.0], [False, True], ["0", "1"], pd.Series([0, 1], index=[7, 7])):
        np.testing.assert_array_equal(class_scores(labels, TWO, n=2), np.eye(2))


@pytest.mark.parametrize(
    ("values", "present", "message"),
    [
        (np.ones((2, 2)), ["a", "b", "c"], "a column for each of 3 classes, got 2"),
        (np.ones((2, 2)), ["a", "z"], "must be distinct classes of a, b, c, got a, z"),
        (np.ones((2, 2)), ["a", "a"], "must be distinct classes"),
        (np.ones((2, 4)), None, "set classes_ or return a DataFrame"),
        (np.ones((3, 3)), None, "one row per row to predict, 2"),
        (np.array(["a", "z"]), None, r"labels of the dataset's classes.*\['z'\]"),
        (np.array([0.1, 0.9]), None, "labels of the dataset's classes"),
        (np.float64(1), None, "one row per row"),
    ],
)
def test_predictions_that_cannot_be_told(values, present, message) -> None:
    with pytest.raises(InputError, match=message):
        class_scores(values, THREE, n=2, present=present)


# -- what is stored, and for what ------------------------------------------------------------------


def test_a_second_run_fits_nothing(models: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(models.Linear(), some(), **QUICK)
    monkeypatch.setattr(runner, "fit_score", None)
    pd.testing.assert_frame_equal(evaluate(models.Linear(), some(), **QUICK), first)
    other = evaluate(models.Linear(alpha=2.0), some(), **QUICK)
    assert (other["status"] != "ok").all()


def test_one_more_shift_costs_one_fit(models: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    real = runner.fit_score
    monkeypatch.setattr(runner, "fit_score", lambda *a, **k: (fits.append(a), real(*a, **k))[1])
    shifts = ic.list_shifts("kakadu_wtp", "quick")
    pair = shifts[shifts.duplicated("size", keep=False)].sort_values("size")["shift_id"].tolist()
    evaluate(models.Linear(), pair[:1], **QUICK)
    assert len(fits) == 1 + 2 + 1
    evaluate(models.Linear(), pair[:2], **QUICK)
    assert len(fits) == 1 + 2 + 1 + 1


def test_an_edit_changes_the_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "import helper_module\nfrom helper_module import SCALE\n" + MODELS
    helper = "import json\nSCALE = 1\n"
    written(tmp_path, "helper_module", helper)

    def identity(name: str = "Linear", source: str = text, **parameters: float) -> str:
        module = written(tmp_path, "edited_models", source)
        held = getattr(module, name)
        return json.dumps(identity_of(held(**parameters) if parameters else held))

    first = identity()
    assert identity() == first
    assert "scikit-learn" not in first
    assert '"sklearn"' in first
    assert identity(source=text + "\n# more\n") != first
    assert identity(alpha=1.0) != identity(alpha=2.0)
    assert identity("labels") != identity("frame")
    written(tmp_path, "helper_module", helper.replace("1", "2"))
    assert identity() != first
    module = written(tmp_path, "edited_models", text)
    (tmp_path / "edited_models.py").write_text("\n" + text)
    with pytest.raises(UnknownSource, match="edited after it was imported"):
        identity_of(module.Linear)


@pytest.mark.slow
def test_workers_run_what_was_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "def constant(X, y, Z): return y.mean() + LEVEL + 0 * Z.index\nLEVEL = "
    ids = some("regression", k=2)
    found = []
    for level in (10, 50):
        module = written(tmp_path, "reloaded", f"{source}{level}")
        for workers in (2, 1):
            store = Store(tmp_path / f"{level}-{workers}")
            options = {"profile": "quick", "controls": 1, "workers": workers, "store": store}
            found.append(evaluate(module.constant, ids, **options)["score_id"])
    assert found[0].tolist() == found[1].tolist()
    assert found[2].tolist() == found[3].tolist()
    assert (found[0] > found[2]).all()


def test_functions_are_told_by_what_they_hold(tmp_path: Path) -> None:
    source = "def make(a):\n    return lambda X, y, Z: a\nLEVEL = 1\ndef f(X, y, Z): return LEVEL\n"
    source += "pair = [lambda X, y, Z: 1, lambda X, y, Z: 2]\n"
    module = written(tmp_path, "functions", source)
    assert identity_of(module.make(1)) == identity_of(module.make(1))
    assert identity_of(module.make(1)) != identity_of(module.make(2))
    assert identity_of(module.make([1, {"a": np.arange(3)}])) == identity_of(
        module.make([1, {"a": np.arange(3)}])
    )
    assert identity_of(module.pair[0]) != identity_of(module.pair[1])
    before = identity_of(module.f)
    module.LEVEL = 2
    assert identity_of(module.f) != before
    with pytest.raises(UnknownSource, match="cannot be pickled"):
        identity_of(module.make(k for k in ()))


def test_what_has_no_source_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    space: dict[str, object] = {"__name__": "typed_at_a_prompt"}
    exec("def mean(X, y, Z): return [y.mean()] * len(Z)", space)
    ids = some("regression")
    with pytest.warns(UserWarning, match="mean are not stored between runs; define it in a file"):
        result = evaluate(space["mean"], ids, store=Store(tmp_path / "own"), **QUICK)
    assert result["status"].tolist() == ["ok"]
    assert result["score_id"].iloc[0] == pytest.approx(0.0, abs=0.02)
    assert not (tmp_path / "own").exists()


# -- the command -----------------------------------------------------------------------------------


def test_command(cli: Cli, models: ModuleType, tmp_path: Path) -> None:
    ids = some()
    arguments = [word for shift_id in ids for word in ("--shifts", shift_id)]
    arguments += ["--profile", "quick", "--controls", "2", "--workers", "1"]
    status, out, err = cli("evaluate", "--model", "own_models:Fails", *arguments, "--out", "r.csv")
    assert status == 0
    assert out.splitlines()[0].split()[:5] == ["model", "task", "datasets", "shifts", "failed"]
    assert "own_models:Fails: 1 shift failed: RuntimeError: two classes are too few" in err
    assert "3 rows written to r.csv" in err
    table = pd.read_csv("r.csv")
    expected = evaluate(models.Fails, ids, **QUICK).assign(model="own_models:Fails")
    pd.testing.assert_frame_equal(table, expected, check_exact=True, check_dtype=False)

    status, out, _ = cli("evaluate", "--model", "own_models:Fails", *arguments, "--json")
    said = json.loads(out)
    assert status == 0
    assert [row["failed"] for row in said["summary"]] == [0, 1, 0]
    assert [row["shift_id"] for row in said["shifts"]] == ids
    status, _, err = cli(
        "evaluate", "--model", "own_models:Fails", "--shifts", some("binary")[0], *arguments[-6:]
    )
    assert status == 1
    assert "no shift could be scored; the first: RuntimeError: two classes" in err


def test_command_goes_on_without_a_baseline(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Baseline("missing", None, None, None, requires=("no_such_library",))
    monkeypatch.setitem(BASELINES, "missing", missing)
    (shift_id,) = some("binary")
    more = ["--shifts", shift_id, "--profile", "quick", "--controls", "2", "--workers", "1"]
    status, out, err = cli("evaluate", "--baseline", "missing", "--baseline", "linear", *more)
    assert status == 0
    assert "missing: the baseline 'missing' needs the library no_such_library" in err
    assert "linear" in out
    status, out, err = cli("evaluate", "--baseline", "missing", *more)
    assert (status, out) == (1, "")
    assert "no_such_library" in err
    with pytest.raises(MissingDependencyError, match="no_such_library"):
        evaluate("missing", shift_id, **QUICK)


@pytest.mark.slow
def test_a_model_that_ends_its_process_costs_no_other(cli: Cli, models: ModuleType) -> None:
    more = [
        "--shifts",
        some("binary")[0],
        "--profile",
        "quick",
        "--controls",
        "2",
        "--workers",
        "2",
    ]
    named = ["--model", "own_models:Ends", "--model", "own_models:Linear"]
    status, out, err = cli("evaluate", *named, *more)
    assert status == 0
    assert "own_models:Ends: a worker process died" in err
    assert "own_models:Linear" in out
    assert "own_models:Ends" not in out
    status, out, _ = cli("evaluate", *named[:2], *more)
    assert (status, out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --model or --baseline"),
        (("--model", "own_models"), "--model takes package.module:Class, got 'own_models'"),
        (("--model", "no_such:Class"), "no_such cannot be imported from"),
        (("--model", "own_models:Classs"), "there is no 'Classs' in own_models"),
        (("--baseline", "magic"), "the baseline must be one of"),
        (("--baseline", "linear", "--shifts", "x/y"), "no published shift matches 'x/y'"),
        (("--baseline", "linear", "--task", "none"), "task must be one of"),
        (("--baseline", "linear", "--limit", "0"), "shifts to score on were needed"),
        (("--baseline", "linear", "--out", "x.txt"), "must end in .csv or .parquet"),
    ],
)
def test_command_explains(cli: Cli, models: ModuleType, arguments, message: str) -> None:
    status, out, err = cli("evaluate", *arguments, "--profile", "quick")
    assert (status, out) == (1, "")
    assert err.startswith("error: ")
    assert message in err


def test_command_draws_and_filters(cli: Cli, models: ModuleType) -> None:
    status, out, _ = cli(
        "evaluate", "--model", "own_models:Linear", "--profile", "quick", "--dataset", "kakadu_wtp",
        "--operation", "flip", "--limit", "2", "--controls", "1", "--workers", "1", "--json",
    )  # fmt: skip
    rows = json.loads(out)["shifts"]
    assert status == 0
    assert len(rows) == 2
    assert {(row["dataset"], row["operation"]) for row in rows} == {("kakadu_wtp", "flip")}


def test_warnings_are_the_only_thing_said(models: ModuleType, capsys) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(models.Linear, some("binary"), **QUICK)
    assert capsys.readouterr().out == ""
