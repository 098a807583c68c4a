"""TabPFN: the package's own classes on a fixture; without weights it says so at once, offline."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
import tabpfn
import torch
from hostile import hostile_frame, hostile_target
from make_tabpfn_fixture import train_checkpoint
from tabpfn.checkpoint import Checkpoint
from tabpfn.settings import settings

from inconvenient.baselines import require
from inconvenient.baselines.encoding import NativeEncoder
from inconvenient.baselines.tabpfn import (
    TABPFN,
    WEIGHTS,
    TabPFNModel,
    weights_file,
    weights_label,
)
from inconvenient.errors import InputError, MissingDependencyError, MissingWeightsError
from inconvenient.evaluation.protocol import Sample, tune
from inconvenient.evaluation.scores import r2, score

FOLDER = Path(__file__).parent / "data"
CLASSIFIER = FOLDER / "tabpfn_fixture_classifier.ckpt"
REGRESSOR = FOLDER / "tabpfn_fixture_regressor.ckpt"


@pytest.fixture(autouse=True)
def _fixture_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WEIGHTS, str(FOLDER))


def fitted(X, y, task, n_classes=0, seed=0, **changes) -> TabPFNModel:
    setting = {**TABPFN.default(task), "n_estimators": 2, **changes}
    return TABPFN.make(setting, task=task, n_classes=n_classes, seed=seed).fit(X, y)


# -- predictions -----------------------------------------------------------------------------------


def test_the_fixture_is_better_than_a_constant(wine):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = (X["a"] - 0.5 * X["b"]).to_numpy() + 0.2 * rng.normal(size=300)
    estimator = fitted(X[:100], y[:100], "regression", n_estimators=8)
    assert r2(y[100:], estimator.predict(X[100:])) > 0.4
    order = rng.permutation(len(wine))
    X, y = wine.iloc[order, :6], wine["cultivar"].to_numpy(np.int64)[order]
    estimator = fitted(X[:100], y[:100], "multiclass", 3)
    assert score(estimator, X[100:], y[100:], task="multiclass") > 0.8


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_it_is_what_the_package_predicts(task):
    X = hostile_frame()
    y = hostile_target(X, 0 if task == "regression" else 3)
    encoder = NativeEncoder.fit(X[:150])
    Z, rows = encoder.transform(X[:150]), encoder.transform(X)
    kind, path = tabpfn.TabPFNClassifier, CLASSIFIER
    if task == "regression":
        kind, path = tabpfn.TabPFNRegressor, REGRESSOR
    theirs = kind(
        n_estimators=2, model_path=path, categorical_features_indices=encoder.categorical,
        device="cpu", inference_precision=torch.float32, fit_mode="fit_with_cache", random_state=5,
    ).fit(Z, y[:150])  # fmt: skip
    ours = fitted(X[:150], y[:150], task, 3, seed=5)
    assert type(ours.model_) is kind
    if task == "regression":
        # on other numbers of threads sums may be taken in another order
        np.testing.assert_allclose(ours.predict(X), theirs.predict(rows), rtol=1e-4)
    else:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(rows), atol=1e-5)


def test_the_same_bytes_whatever_the_threads_and_the_random_state():
    X = hostile_frame()[:120]
    y = hostile_target(X, 3)
    before = torch.get_num_threads()
    found = []
    try:
        for threads, state in ((1, 3), (2, 4)):
            torch.set_num_threads(threads)
            torch.manual_seed(state)
            np.random.seed(state)
            found.append(fitted(X, y, "multiclass", 3, seed=1).predict_proba(X))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
    other = fitted(X, y, "multiclass", 3, seed=2).predict_proba(X)
    assert not np.array_equal(other, found[0])


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_order_and_company_of_the_rows_to_predict_do_not_matter(task):
    X = hostile_frame()
    y = hostile_target(X, 0 if task == "regression" else 2)
    model = fitted(X[:100], y[:100], task, 2)
    predict = model.predict if task == "regression" else model.predict_proba
    whole = predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    # single precision: how a product is cut into blocks may depend on the number of rows
    np.testing.assert_allclose(predict(X.iloc[order]), whole[order], atol=1e-5)
    np.testing.assert_allclose(predict(X.iloc[:5]), whole[:5], atol=1e-5)


def test_more_rows_than_the_package_allows_on_a_cpu_are_scored():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=1100)})
    y = X["x"].to_numpy() + 0.1 * rng.normal(size=1100)
    theirs = tabpfn.TabPFNRegressor(model_path=REGRESSOR, device="cpu")
    with pytest.raises(RuntimeError, match="more than 1000 samples is not allowed"):
        theirs.fit(X, y)
    assert np.isfinite(fitted(X, y, "regression", n_estimators=1).predict(X)).all()


def test_more_classes_than_the_network_has_outputs_are_a_failure_that_says_so():
    X = pd.DataFrame({"x": np.arange(48.0)})
    y = np.arange(48) % 12
    with pytest.raises(ValueError, match="Number of classes `12` exceeds the maximum number"):
        fitted(X, y, "multiclass", 12)
    # what counts are the classes in the sample
    few = fitted(X[y < 9], y[y < 9], "multiclass", 12).predict_proba(X)
    assert (few[:, 9:] == 0).all()
    np.testing.assert_allclose(few.sum(axis=1), 1)


def test_settings_drawn_from_the_space_name_the_weights():
    X = hostile_frame()[:60]
    y = hostile_target(X, 2)
    tuned = tune(TABPFN, Sample(X, y), task="binary", n_classes=2, trials=2, seed=0)
    assert [trial.failure for trial in tuned.trials] == ["", ""]
    for trial in tuned.trials:
        assert trial.setting["weights"] == weights_label(CLASSIFIER)
    drawn = {"n_estimators": 8, "softmax_temperature": 0.9, "average_before_softmax": True}
    assert TABPFN.suggest(optuna.trial.FixedTrial(drawn), "regression", 60) == {
        **drawn,
        "weights": weights_label(REGRESSOR),
    }


# -- weights ---------------------------------------------------------------------------------------

#: Every way out is closed: sockets, look-ups, browsers and questions end the process.
OFFLINE = """
import builtins, socket, sys, webbrowser

def closed(*arguments, **options):
    print("reached for the world", arguments)
    sys.exit(3)

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = closed
builtins.input = webbrowser.open = webbrowser.get = closed
from inconvenient.baselines import BASELINES, require
from inconvenient.errors import MissingWeightsError
for attempt in (
    lambda: require(BASELINES["tabpfn"]),
    lambda: BASELINES["tabpfn"].default("regression"),
):
    try:
        attempt()
    except MissingWeightsError as error:
        print(error)
require(BASELINES["linear"])
require(BASELINES["mlp"])
"""


@pytest.mark.parametrize("version", ["v2", "v3.5"])
def test_without_weights_it_says_so_at_once_and_offline(tmp_path, version):
    environment = {name: value for name, value in os.environ.items() if name != WEIGHTS}
    environment |= {"TABPFN_MODEL_CACHE_DIR": str(tmp_path), "TABPFN_MODEL_VERSION": version}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = done.stdout.splitlines()
    for line in (first, second):
        assert line.startswith("unavailable: weights missing; ")
        assert WEIGHTS in line
        assert str(tmp_path) in line
    assert "https://huggingface.co/Prior-Labs/" in first
    if version == "v2":
        assert "Prior-Labs/TabPFN-v2-clf, download tabpfn-v2-classifier-" in first
        assert "Prior-Labs/TabPFN-v2-reg, download tabpfn-v2-regressor.ckpt" in second
    assert list(tmp_path.iterdir()) == []  # nothing was begun there


def test_weights_where_the_package_keeps_them(tmp_path, monkeypatch):
    monkeypatch.delenv(WEIGHTS)
    monkeypatch.setattr(settings.tabpfn, "model_cache_dir", tmp_path)
    monkeypatch.setattr(settings.tabpfn, "model_version", tabpfn.constants.ModelVersion.V2)
    with pytest.raises(MissingWeightsError, match="^unavailable: weights missing; "):
        weights_file("regression")
    place = tmp_path / "tabpfn-v2-regressor.ckpt"
    shutil.copy(REGRESSOR, place)
    assert weights_file("regression") == place
    with pytest.raises(MissingWeightsError, match="download tabpfn-v2-classifier"):
        weights_file("binary")


def test_weights_named_by_folder_and_by_file(tmp_path, monkeypatch):
    assert weights_file("multiclass") == CLASSIFIER
    assert weights_file("regression") == REGRESSOR
    monkeypatch.setenv(WEIGHTS, os.pathsep.join([str(CLASSIFIER), str(REGRESSOR)]))
    assert weights_file("binary") == CLASSIFIER
    monkeypatch.setenv(WEIGHTS, str(CLASSIFIER))
    with pytest.raises(MissingWeightsError, match=r"looked for .*ckpt \(the regressor\)"):
        weights_file("regression")
    both = tmp_path / "both.ckpt"  # since 3.5 one file serves both tasks
    shutil.copy(REGRESSOR, both)
    monkeypatch.setenv(WEIGHTS, str(tmp_path))
    assert weights_file("binary") == weights_file("regression") == both
    shutil.copy(CLASSIFIER, tmp_path)
    assert weights_file("binary").name == CLASSIFIER.name
    shutil.copy(CLASSIFIER, tmp_path / "other_classifier.ckpt")
    with pytest.raises(InputError, match="must name one file of weights for the classifier, got"):
        weights_file("binary")
    monkeypatch.setenv(WEIGHTS, str(tmp_path / "nowhere"))
    with pytest.raises(MissingWeightsError, match="nowhere"):
        weights_file("binary")


def test_a_file_that_is_no_checkpoint_is_named(tmp_path, monkeypatch):
    for kind in ("classifier", "regressor"):
        (tmp_path / f"{kind}.ckpt").write_bytes(b"<html>not found</html>")
    monkeypatch.setenv(WEIGHTS, str(tmp_path))
    with pytest.raises(InputError, match="classifier.ckpt must be a checkpoint of TabPFN"):
        require(TABPFN)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'inconvenient\[tabpfn\]'"):
        require(TABPFN)


def test_weights_that_change_during_a_run_are_noticed(tmp_path, monkeypatch):
    X = hostile_frame()[:30]
    y = hostile_target(X, 0)
    setting = TABPFN.default("regression")
    own = tmp_path / REGRESSOR.name
    checkpoint = Checkpoint(REGRESSOR).load()
    torch.save({**checkpoint, "remark": "other bytes"}, own)
    monkeypatch.setenv(WEIGHTS, str(own))
    assert TABPFN.default("regression") != setting  # and so the key of a record
    with pytest.raises(InputError, match="let nothing change them during a run"):
        TABPFN.make(setting, task="regression", n_classes=0, seed=0).fit(X, y)


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("TABPFN_NO_BROWSER", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    before = dict(os.environ)
    weights_file("binary")
    assert dict(os.environ) == before


# -- the fixture is no TabPFN ----------------------------------------------------------------------


def test_runs_refuse_the_fixture_under_any_name(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="got the tests' fixture"):
        require(TABPFN)
    shutil.copy(CLASSIFIER, tmp_path / "tabpfn-v2-classifier.ckpt")
    shutil.copy(REGRESSOR, tmp_path / "tabpfn-v2-regressor.ckpt")
    monkeypatch.setenv(WEIGHTS, str(tmp_path))
    with pytest.raises(InputError, match="must not pass for TabPFN's"):
        require(TABPFN)
    label = TABPFN.default("binary")["weights"]
    assert label.startswith("fixture, not TabPFN: tabpfn-v2-classifier.ckpt sha256:")
    require(dataclasses.replace(TABPFN, name="fixture", available=None))


def test_weights_without_the_mark_are_taken_for_tabpfn(tmp_path, monkeypatch):
    for path in (CLASSIFIER, REGRESSOR):
        checkpoint = Checkpoint(path).load()
        del checkpoint["fixture"]
        torch.save(checkpoint, tmp_path / path.name)
    monkeypatch.setenv(WEIGHTS, str(tmp_path))
    require(TABPFN)
    assert TABPFN.default("binary")["weights"].startswith("tabpfn_fixture_classifier.ckpt sha256:")


@pytest.mark.parametrize("path", [CLASSIFIER, REGRESSOR], ids=["classifier", "regressor"])
def test_the_script_makes_such_a_checkpoint(path, tmp_path):
    kind = path.stem.removeprefix("tabpfn_fixture_")
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices=[]):
            train_checkpoint(kind, tmp_path / path.name, steps=2)
    finally:
        torch.set_num_threads(threads)
    ours, kept = (Checkpoint(p).load() for p in (tmp_path / path.name, path))
    for entry in ("config", "architecture_name", "fixture"):
        assert ours[entry] == kept[entry]
    shapes = [{k: v.shape for k, v in c["state_dict"].items()} for c in (ours, kept)]
    assert shapes[0] == shapes[1]
    assert kept["architecture_name"] == "tabpfn_v2"
    assert path.stat().st_size < 260_000
