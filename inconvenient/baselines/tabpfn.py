"""The TabPFN baseline: the package's own classes on weights that are on this machine, offline."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inconvenient.baselines.registry import Baseline, Setting, register, require_module
from inconvenient.baselines.sample_model import SampleModel
from inconvenient.baselines.threads import torch_alone
from inconvenient.errors import InputError, MissingWeightsError
from inconvenient.store import file_hash

__all__ = ["FIXTURE_MARK", "TABPFN", "WEIGHTS", "TabPFNModel", "weights_file", "weights_label"]

#: Environment variable that names the weights: a folder, or files with ``os.pathsep`` between.
WEIGHTS = "INCONVENIENT_TABPFN_WEIGHTS"

#: What the entry ``fixture`` of the tests' small checkpoints holds.
FIXTURE_MARK = "INCONVENIENT test fixture, not TabPFN"

_FIXTURE = "fixture, not TabPFN: "  # begins the label of such a file

KINDS = ("classifier", "regressor")
SUFFIXES = (".ckpt", ".safetensors")

#: The package would fetch weights, open a browser and (some versions) report use; it may not.
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TABPFN_NO_BROWSER": "1",
    "TABPFN_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


class TabPFNModel(SampleModel):
    """TabPFN with its encoder: the sample is the context of a pretrained network.

    Parameters
    ----------
    setting : dict
        ``n_estimators``, ``softmax_temperature`` and ``average_before_softmax`` of the package's
        classes, and ``weights``, the :func:`weights_label` of the file to use.
    task, n_classes, seed
        See :class:`~inconvenient.baselines.sample_model.SampleModel`.

    Notes
    -----
    Numbers, category codes and gaps are handed over as they are, with the positions of the
    categories; the package's own preprocessing follows. It works on the CPU, on one thread, in
    single precision (its own choice depends on the processor), and caches the sample when it is
    fitted, so that a prediction depends on the sample and its own row alone, but for the last
    digits of single precision (a permutation of 150 rows moved an R2 by 6e-10).

    A sample with one class, with one row, or with no column that varies, yields a constant
    prediction. The package's limits on rows and columns (10,000 and 500 for its version 2, 1,000
    rows on a CPU) are lifted: a sample beyond them is scored, outside what the network was trained
    for. More classes in a sample than the network has outputs (10) cannot be lifted, and the unit
    is a failure with the package's message, "Number of classes `12` exceeds the maximum number of
    classes `10` officially supported by TabPFN".
    """

    standardises_target = False  # the package does

    def _train(self, Z: NDArray[np.float64], labels: NDArray[Any]) -> Any:
        path = weights_file(self.task)
        if weights_label(path) != self.setting["weights"]:
            raise InputError(
                f"TabPFN's weights must be {self.setting['weights']}, found "
                f"{weights_label(path)}; let nothing change them during a run"
            )
        with _package(self.seed) as (torch, tabpfn):
            return self._unfitted(torch, tabpfn, path).fit(Z, labels)

    def _unfitted(self, torch: Any, tabpfn: Any, path: Path) -> Any:
        own = ("n_estimators", "softmax_temperature", "average_before_softmax")
        kind = tabpfn.TabPFNRegressor if self.task == "regression" else tabpfn.TabPFNClassifier
        return kind(
            **{name: self.setting[name] for name in own},
            model_path=str(path),
            categorical_features_indices=self.encoder_.categorical or None,
            device="cpu",
            inference_precision=torch.float32,
            fit_mode="fit_with_cache",
            kv_cache_precision="auto",
            ignore_pretraining_limits=True,
            random_state=self.seed % 2**31,
            n_preprocessing_jobs=1,
        )

    def _outcome(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        with _package(self.seed):
            classes = self.task != "regression"
            raw = self.model_.predict_proba(Z) if classes else self.model_.predict(Z)
        return np.asarray(raw, dtype=np.float64)


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep the package from network, browser and reports, whatever the environment says."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _package(seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield ``torch`` and ``tabpfn``: offline, seeded, on one thread, without warnings."""
    require_module("tabpfn", needed_by="the baseline 'tabpfn'", extra="tabpfn")
    from threadpoolctl import threadpool_limits

    with _offline(), torch_alone(seed) as torch:
        import tabpfn

        with threadpool_limits(1):
            yield torch, tabpfn


def weights_file(task: str) -> Path:
    """Return the file of the weights for a task, without a look at any network.

    Parameters
    ----------
    task : {"regression", "binary", "multiclass"}

    Returns
    -------
    Path
        Of what :data:`WEIGHTS` names, the file whose name says "classifier" or "regressor", else
        the one that says neither, for both tasks. Without it, what the package itself would load:
        its default weights in its cache folder (``TABPFN_MODEL_CACHE_DIR``,
        ``TABPFN_MODEL_VERSION``).

    Raises
    ------
    MissingWeightsError
        If there is none.
    InputError
        If several are named for the task.
    """
    kind = KINDS[task == "regression"]
    with _package(0):
        from tabpfn import model_loading

        version = model_loading.settings.tabpfn.model_version
        expected = Path(
            model_loading.resolve_model_path(None, kind, version.value)[0][0]
        ).absolute()
        source = model_loading._get_model_source(version, model_loading.ModelType(kind))
    named = os.environ.get(WEIGHTS, "")
    if not named:
        if expected.is_file():
            return expected
        looked = str(expected)
    else:
        found = _named_files(named)
        own = [f for f in found if kind in f.name]
        own = own or [f for f in found if not any(word in f.name for word in KINDS)]
        if len(own) == 1:
            return own[0]
        if own:
            raise InputError(
                f"{WEIGHTS} must name one file of weights for the {kind}, got "
                f"{', '.join(sorted(f.name for f in own))}; name the file instead of the folder"
            )
        looked = f"{named} (the {kind})"
    raise MissingWeightsError(
        f"unavailable: weights missing; the baseline 'tabpfn' looked for {looked}. To get them, "
        f"accept their licence at https://huggingface.co/{source.repo_id}, download "
        f"{source.default_filename} there, and put it at {expected}, or name file or folder by "
        f"--tabpfn-weights or {WEIGHTS}; nothing is downloaded during a run"
    )


def _named_files(named: str) -> list[Path]:
    found: list[Path] = []
    for path in (Path(part).expanduser().absolute() for part in named.split(os.pathsep) if part):
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [file for file in inside if file.is_file() and file.suffix in SUFFIXES]
    return found


def weights_label(path: Path) -> str:
    """Return name and hash of a file of weights, which settings and so keys of records hold."""
    status = path.stat()
    return _label(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _label(path: Path, _changed: int, _size: int) -> str:
    mark = _FIXTURE if _is_fixture(path) else ""
    return f"{mark}{path.name} sha256:{file_hash(path)[:16]}"


def _is_fixture(path: Path) -> bool:
    with _package(0):
        from tabpfn.checkpoint import Checkpoint

        try:
            held = Checkpoint(path).load()
        except Exception as error:
            raise InputError(
                f"{path} must be a checkpoint of TabPFN, but it cannot be read ({error}); "
                "download it again"
            ) from error
    return bool(held.get("fixture") == FIXTURE_MARK)


def _available() -> None:
    """Raise what keeps TabPFN from being used: missing weights, or a fixture in their place."""
    for task in ("binary", "regression"):
        if weights_label(weights_file(task)).startswith(_FIXTURE):
            raise InputError(
                "the baseline 'tabpfn' needs TabPFN's weights, got the tests' fixture "
                f"{weights_file(task)}, whose scores must not pass for TabPFN's; name others by "
                f"--tabpfn-weights or {WEIGHTS}"
            )


def _weights(task: str) -> str:
    return weights_label(weights_file(task))


def _default(task: str) -> Setting:
    """The package's own defaults; what is "auto" is read from the weights."""
    return {
        "n_estimators": "auto",
        "softmax_temperature": "auto",
        "average_before_softmax": False,
        "weights": _weights(task),
    }


def _suggest(trial: Any, task: str, n_rows: int) -> Setting:
    """Draw from the search space.

    It is the simple space of the authors' tabpfn-extensions (``hpo.TabPFNSearchSpace``): 1-8
    estimators, softmax temperature 0.75-1.0 (steps of 0.05 there, continuous here), averaging
    before or after the softmax. Their large space also exchanges preprocessing and weights.
    """
    return {
        "n_estimators": trial.suggest_int("n_estimators", 1, 8),
        "softmax_temperature": trial.suggest_float("softmax_temperature", 0.75, 1.0),
        "average_before_softmax": trial.suggest_categorical(
            "average_before_softmax", [False, True]
        ),
        "weights": _weights(task),
    }


def _make(setting: Setting, *, task: str, n_classes: int, seed: int) -> TabPFNModel:
    return TabPFNModel(setting, task=task, n_classes=n_classes, seed=seed)


TABPFN = register(
    Baseline(
        "tabpfn",
        _default,
        _suggest,
        _make,
        requires=("tabpfn", "torch"),
        takes_codes=True,
        extra="tabpfn",
        available=_available,
    )
)
