"""Any model scored on published shifts, one row per shift."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inconvenient.baselines import BASELINES, Baseline, get_baseline, require
from inconvenient.errors import InputError
from inconvenient.evaluation.choice import TASKS, chosen
from inconvenient.evaluation.estimators import OwnModel, bound, own_model
from inconvenient.evaluation.plan import Plan, plans
from inconvenient.evaluation.runner import BATCH, score_units, tune_units
from inconvenient.evaluation.tables import score_table
from inconvenient.shifts.published import Published
from inconvenient.store import Limits, Store, Unit, run_units, worker_count

if TYPE_CHECKING:
    from inconvenient.data import Dataset

__all__ = ["evaluate", "summarise", "tasks_of"]

_FACTS = ("shift_id", "dataset", "task", "operation", "importance_bin", "min_fraction")
_SCORES = ("score_id", "score_control", "control_sd", "score_ood")


def evaluate(
    estimator: Any,
    shifts: Any = None,
    *,
    trials: int = 0,
    seed: int = 0,
    workers: int | None = None,
    controls: int = 10,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    cluster: str | None = None,
    store: Store | str | Path | None = None,
    profile: str | None = None,
) -> pd.DataFrame:
    """Score a model on published shifts.

    Parameters
    ----------
    estimator : object, class, function or str
        - An estimator with ``fit(X, y)`` and ``predict``, ``predict_proba`` or
          ``decision_function``, as in scikit-learn. It is cloned for each fit (copied, if it has
          no ``get_params``) and never fitted itself.
        - A class, constructed without arguments for each fit.
        - A function ``f(X_train, y_train, X_test)`` that returns values for regression; for
          classification a matrix of scores or a DataFrame with the classes as columns, or labels.
        - The name of a baseline, such as "catboost".
    shifts : str, iterable of str, DataFrame, optional
        Ids, patterns such as "email_spam/*/flip/*", or rows of :func:`inconvenient.list_shifts`;
        by default all published shifts whose datasets are on this machine. Of patterns, and by
        default, those of the tasks that an estimator is for, as far as scikit-learn's tags say.
    trials : int
        Of a baseline: settings tried per training sample by the paper's protocol (it took 20); 0
        for the default setting.
    seed : int
        Given to every ``random_state`` that is None, and to the global generators of ``random``,
        NumPy and PyTorch before each fit and predict.
    workers : int, optional
        Processes; the cores, or ``$INCONVENIENT_WORKERS``, by default. The result is the same.
    controls : int
        Uniform samples per size, 10 in published scores.
    time_limit : float, optional
        Seconds that may be spent on one training sample (of a tuned baseline, on its trials or on
        the controls of a size together); what takes longer is ended alone and is a failure.
    memory_limit : int, optional
        Likewise, megabytes of memory, Python and libraries included.
    cluster : str, optional
        Address of a Dask scheduler, such as "tcp://host:8786", whose workers do the work.
    store : Store, str or Path, optional
        Where finished work is kept, so that a stopped run goes on where it was.
    profile : str, optional
        "full" if that is present, else "quick".

    Returns
    -------
    DataFrame
        One row per shift, sorted by ``shift_id``: ``model``, ``dataset``, ``task``,
        ``operation``, ``importance_bin``, ``min_fraction``; ``status``, "ok" or the last line of
        the first failure; ``score_id``, ``score_control``, ``control_sd``, ``score_ood`` (R2 or
        AUC on the report half, NaN after a failure); ``degradation`` (ID minus OOD),
        ``price_of_size`` (ID minus control) and ``price_of_bias`` (control minus OOD). With
        trials ``setting`` and ``trials``, JSON with entries "id", "control" and "ood": the best
        setting, and every one that was tried with its objective.

    Raises
    ------
    InputError
        If there is no such shift or baseline, or the estimator is none.
    NotAvailableError
        If shifts or datasets are not on this machine.
    MissingDependencyError
        If the library or the weights of a baseline are absent.

    Notes
    -----
    ``X`` are the raw columns, and ``y`` labels or values as the table holds them, as in
    ``Shift.train()``, but in the order of the table and numbered from 0: neither the order of
    selection nor row ids tell what a sample lacks. If ``fit`` (or the function) has a parameter
    ``context``, it is given the :class:`~inconvenient.shifts.Context` of the dataset, which says
    nothing of the shift.

    Of a classifier the score of each class is taken from ``predict_proba``, else
    ``decision_function``, else from the predicted labels as 1 and 0; columns are told by
    ``classes_``, a class without one has 0, and rows are not renormalised.

    Training on the full pool and on the controls happens once per dataset and size. Finished work
    is stored under a key of rows, data, model (its source, what that imports, parameters), seed
    and library versions; of a model without a source file nothing is kept between runs.
    """
    given: dict[str, Any] = {"trials": trials, "seed": seed}
    for name, value in given.items():
        if not isinstance(value, Integral) or value < 0:
            raise InputError(f"{name} must be a whole number from 0 on, got {value!r}")
    model = _resolved(estimator, trials)
    if controls < 1:
        raise InputError(f"controls must be at least 1, got {controls}; published scores have 10")
    published, datasets = chosen(shifts, tasks_of(model), profile)
    todo = plans(published.splits, published.shifts, controls=controls, seed=published.draws_seed)
    limits = None
    if time_limit is not None or memory_limit is not None:
        limits = Limits(seconds=time_limit, megabytes=memory_limit)
    single = limits is not None  # one training set a unit, where one may be ended alone
    units = _units(model, datasets, published, todo, trials=trials, seed=seed, single=single)
    count = worker_count(workers)
    with ExitStack() as stack:
        if isinstance(model, OwnModel) and count > 1:
            _renew_workers(model)
        if isinstance(model, OwnModel) and model.identity is None:
            warnings.warn(
                f"{model.unknown}: the scores of {model.name} are not stored between runs; "
                "define it in a file to keep them",
                stacklevel=2,
            )
            store = Store(stack.enter_context(tempfile.TemporaryDirectory()))
        frames = run_units(
            units,
            store=store if isinstance(store, Store) else Store(store),
            workers=count,
            label=f"evaluate {model.name}",
            limits=limits,
            cluster=cluster,
        )
    scores = score_table(todo, published.shifts, [model.name], frames, by_role=trials > 0)
    return _result(published.shifts, scores, more=("setting", "trials") if trials else ())


_sources: list[Any] = []  # of the last model


def _renew_workers(model: OwnModel) -> None:
    """End idle worker processes if the model's source is another than that of the last model.

    They outlive a call, and hold the modules that they imported: after an edit and a reload they
    would compute by the old source what is stored under the new one.
    """
    sources = None if model.identity is None else model.identity["sources"]
    if [sources] != _sources or sources is None:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
        _sources[:] = [sources]


def tasks_of(model: Any) -> tuple[str, ...]:
    """Return the tasks that a model is for: those that scikit-learn's tags name, else all."""
    if isinstance(model, str | Baseline):
        return TASKS
    return (model if isinstance(model, OwnModel) else own_model(model)).tasks


def _resolved(estimator: Any, trials: int) -> Baseline | OwnModel:
    if isinstance(estimator, str):
        baseline = get_baseline(estimator)
        require(baseline)
        return baseline
    if trials:
        raise InputError(
            f"trials are for baselines ({', '.join(sorted(BASELINES))}), got {trials} for an "
            "estimator; let it search by itself, as scikit-learn's GridSearchCV does"
        )
    return own_model(estimator)


def _units(
    model: Baseline | OwnModel,
    datasets: dict[str, Dataset],
    published: Published,
    todo: dict[str, Plan],
    *,
    trials: int,
    seed: int,
    single: bool,
) -> list[Unit]:
    tests = {name: split.report for name, split in published.splits.items()}
    if isinstance(model, Baseline):
        if trials:
            return tune_units(datasets, todo, tests, [model], trials=trials, seed=seed)
        size = 1 if single else BATCH
        return score_units(
            datasets, todo, tests, [model], stage="evaluate", seed=seed, batch_size=size
        )
    units: list[Unit] = []
    for name in sorted(todo, key=lambda name: -todo[name].full.size * len(todo[name].samples)):
        units += score_units(
            datasets,
            {name: todo[name]},
            tests,
            [bound(model, datasets[name])],
            stage="evaluate",
            seed=seed,
            batch_size=1,  # one that takes its process down costs itself alone
            identity=model.identity,
        )
    return units


def _result(shifts: pd.DataFrame, scores: pd.DataFrame, more: Sequence[str]) -> pd.DataFrame:
    out = shifts.sort_values("shift_id", ignore_index=True)[list(_FACTS)]
    own = scores.set_index("shift_id").loc[out["shift_id"]].reset_index(drop=True)
    out.insert(0, "model", own["baseline"])
    out[["status", *_SCORES]] = own[["status", *_SCORES]]
    out["degradation"] = out["score_id"] - out["score_ood"]
    out["price_of_size"] = out["score_id"] - out["score_control"]
    out["price_of_bias"] = out["score_control"] - out["score_ood"]
    return out.assign(**{name: own[name] for name in more})


def summarise(result: pd.DataFrame) -> pd.DataFrame:
    """Return what a result comes to per model and task.

    Parameters
    ----------
    result : DataFrame
        Of :func:`evaluate`, of one model or several under one another.

    Returns
    -------
    DataFrame
        ``model``, ``task``, ``datasets``, ``shifts``, ``failed``; over the shifts that did not
        fail, ``mean`` and ``median`` of ID, control, OOD and degradation.
    """
    parts = {"id": "score_id", "control": "score_control", "ood": "score_ood"}
    parts["degradation"] = "degradation"
    rows = []
    for (model, task), own in result.groupby(["model", "task"], sort=False):
        sound = own[own["status"] == "ok"]
        row: dict[str, Any] = {"model": model, "task": task, "datasets": own["dataset"].nunique()}
        row |= {"shifts": len(own), "failed": len(own) - len(sound)}
        for name, column in parts.items():
            values = sound[column].to_numpy()
            row[f"{name}_mean"] = float(values.mean()) if values.size else float("nan")
            row[f"{name}_median"] = float(np.median(values)) if values.size else float("nan")
        rows.append(row)
    order = {task: k for k, task in enumerate(TASKS)}
    table = pd.DataFrame(rows)
    return table.sort_values("task", key=lambda c: c.map(order), kind="stable", ignore_index=True)
