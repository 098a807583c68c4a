"""All published shifts of one dataset, recomputed: what they share is computed once."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inconvenient.errors import InconvenientError, InputError
from inconvenient.shifts.rows import rows_hash, unpack_rows
from inconvenient.verify.chance import BAND_SIZE, Uniform, bounds, meets
from inconvenient.verify.checks import Findings
from inconvenient.verify.fits import Family, fit, t_values, usable
from inconvenient.verify.importance import allowed_bins, strength
from inconvenient.verify.outcome import Outcomes
from inconvenient.verify.pool import Pool, pool_matrix
from inconvenient.verify.split import check_split

if TYPE_CHECKING:
    from inconvenient.data import Dataset, Split
    from inconvenient.verify.settings import Settings

__all__ = ["verify_dataset"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A criterion that is met only within this of its bound excludes a shift; coefficients up to ZERO
# are none to bend; entries of a feature that are equal to TIE may stand for it alike.
_HAIR = 1e-6
_ZERO = 1e-9
_TIE = 1e-8

_STRATEGIES = ("push", "steer", "exchange")


def verify_dataset(
    name: str,
    published: pd.DataFrame,
    parts: pd.DataFrame,
    params: Settings,
    wanted: frozenset[str],
) -> Findings:
    """Recompute published shifts of a dataset.

    Parameters
    ----------
    name : str
    published : DataFrame
        Rows of the published table to check.
    parts : DataFrame
        Its rows of the table of splits: ``row_id`` and ``part``.
    params : Settings
    wanted : frozenset of str
        Those of :data:`inconvenient.verify.PARTS` that are not skipped.

    Returns
    -------
    Findings
    """
    from inconvenient.data import load_dataset

    findings = Findings()
    try:
        dataset = load_dataset(name)
        split = check_split(dataset, parts, params, findings)
        shared_work = _Shared.of(dataset, split, params, wanted)
    except InconvenientError as error:
        findings.add(name, "data", "", str(error))
        return findings
    for row in published.to_dict("records"):
        _verify_shift({str(k): v for k, v in row.items()}, shared_work, findings)
    if "filter" in wanted:
        _distinct(published, params.filter.max_jaccard, findings)
    return findings


def _distinct(published: pd.DataFrame, most: float, findings: Findings) -> None:
    """Check that no two row sets of a dataset are more similar than is allowed."""
    try:
        sets = [unpack_rows(rows) for rows in published["rows"]]
    except InputError:
        return  # was said of its shift
    member = np.zeros((len(sets), 1 + max(int(rows.max(initial=0)) for rows in sets)), np.float32)
    for line, rows in zip(member, sets, strict=True):
        line[rows] = 1.0
    both = (member @ member.T).astype(np.float64)
    size = np.diag(both)
    similar = both / np.maximum(size[:, None] + size - both, 1.0)
    ids = published["shift_id"].tolist()
    for i, j in np.argwhere(np.triu(similar > most, 1)).tolist():
        findings.add(
            ids[i], "rows", f"Jaccard {similar[i, j]:.4f} with {ids[j]}", f"at most {most}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Shared:
    """What all shifts of a dataset have in common."""

    dataset: Dataset
    params: Settings
    wanted: frozenset[str]
    pool: Pool
    family: Family
    separable: bool
    reference: Floats
    coefficients: Floats
    t: Floats
    bins: dict[str, set[str]]
    uniform: Uniform
    outcomes: Outcomes
    samples: dict[str, tuple[str, Floats | None]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls, dataset: Dataset, split: Split, params: Settings, wanted: frozenset[str]
    ) -> _Shared:
        pool = pool_matrix(dataset, split.pool, rare_share=params.reference.rare_level_share)
        family = Family(len(pool.classes))
        reference = fit(pool.X, pool.y, family)
        separable = False
        if reference is None:
            # Only in doubt does the linear programme of the package decide.
            from inconvenient.selection.separation import is_separable

            separable = bool(family.n_classes) and is_separable(
                pool.X, pool.y, n_classes=family.n_classes
            )
            family = Family(family.n_classes, params.reference.ridge)
            reference = fit(pool.X, pool.y, family)
        if reference is None:
            raise InputError(f"the pool of {dataset.name} has no fit")
        frame, y = dataset.X.iloc[split.pool], dataset.y[split.pool]
        return cls(
            dataset=dataset,
            params=params,
            wanted=wanted,
            pool=pool,
            family=family,
            separable=separable,
            reference=reference,
            coefficients=family.reported(reference),
            t=t_values(pool.X, pool.y, reference, family),
            bins=allowed_bins(strength(frame, y, task=dataset.task)),
            uniform=Uniform(
                pool=pool,
                family=family,
                reference=reference,
                samples=params.shifts.uniform_samples,
                seed=params.shifts.seed,
                name=dataset.name,
            ),
            outcomes=Outcomes.of(dataset, split, pool, params, wanted),
        )

    def sample(self, digest: str, at: Ints) -> tuple[str, Floats | None]:
        """Return why a sample has no fit, or "" and its coefficients (p, C)."""
        if digest not in self.samples:
            X, y = self.pool.X[at], self.pool.y[at]
            k = self.family.n_classes
            why = usable(X, y, n_classes=k, min_class=self.params.shifts.min_class)
            found = None if why else fit(X, y, self.family, start=self.reference)
            if not why and found is None:
                why = "separation"
            self.samples[digest] = why, None if found is None else self.family.reported(found)
        return self.samples[digest]


def _verify_shift(row: dict[str, Any], work: _Shared, findings: Findings) -> None:
    name = str(row["shift_id"])
    _identity(name, row, work, findings)
    try:
        rows = unpack_rows(row["rows"])
        at = work.pool.positions(rows)
    except InputError as error:
        findings.add(name, "rows", f"{len(row['rows'])} bytes", str(error))
        return
    digest = rows_hash(rows)
    n = len(work.pool.rows)
    findings.equal(name, "rows_hash", row["rows_hash"], digest)
    findings.equal(name, "size", int(row["size"]), len(rows))
    findings.equal(name, "pool_rows", int(row["pool_rows"]), n)
    findings.number(name, "fraction", row["fraction"], len(rows) / n)
    _size(name, row, len(rows), work, findings)
    at = np.sort(at)
    entries = _entries(name, row, work, findings)
    if entries is not None:
        _coefficients(name, row, digest, at, entries, work, findings)
        if "chance" in work.wanted:
            _chance(name, row, len(rows), entries, work, findings)
    _composition(name, row, at, work.pool, findings)
    work.outcomes.check(name, row, digest, at, findings)


def _identity(name: str, row: dict[str, Any], work: _Shared, findings: Findings) -> None:
    """Compare what names a shift with what it holds."""
    dataset = work.dataset.name
    operation, factor = str(row["operation"]), float(row["factor"])
    group = len(row["features"]) > 1
    label = f"bin:{row['importance_bin']}" if group else str(row["feature"])
    dose = operation if math.isnan(factor) else f"{operation}-x{factor:g}"
    fraction = float(row["min_fraction"])
    made = f"{dataset}/{label}/{dose}/{fraction:g}/{row['mode']}"
    findings.equal(name, "shift_id", name, made)
    # Part by part, to name the column at fault; a label may hold a stroke, the others do not.
    own, _, rest = name.partition("/")
    named, dosed, size, mode = ["", "", "", *rest.rsplit("/", 3)][-4:]
    findings.equal(name, "dataset", dataset, own)
    findings.equal(name, "importance_bin" if group else "feature", label, named)
    findings.equal(name, "operation", operation, dosed.partition("-x")[0])
    findings.number(name, "factor", factor, _number(dosed.partition("-x")[2]))
    findings.number(name, "min_fraction", fraction, _number(size))
    findings.equal(name, "mode", row["mode"], mode)
    findings.equal(name, "kind", row["kind"], "group" if group else "single")
    findings.equal(name, "feature", row["feature"], "" if group else str(row["features"][0]))
    findings.equal(name, "task", row["task"], work.dataset.task)
    findings.equal(name, "outcome", row["outcome"], "verified")
    known = row["strategy"] in _STRATEGIES
    findings.holds(name, "strategy", known, row["strategy"], f"one of {', '.join(_STRATEGIES)}")
    findings.equal(name, "separable", bool(row["separable"]), work.separable)
    findings.number(name, "ridge", row["ridge"], work.family.ridge)
    findings.equal(name, "data_hash", row["data_hash"], work.dataset.hash)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _size(name: str, row: dict[str, Any], size: int, work: _Shared, findings: Findings) -> None:
    """Check size against severity, mode and the least rows per coefficient and class."""
    least = math.ceil(float(row["min_fraction"]) * len(work.pool.rows) - 1e-9)
    findings.holds(name, "min_fraction", size >= least, size, f"at least {least} rows")
    if row["mode"] == "band":
        most = max(least, int((1.0 + BAND_SIZE) * least))
        findings.holds(name, "size", size <= most, size, f"at most {most} rows in a band")
    need = work.params.shifts.rows_per_coefficient * work.pool.free_coefficients
    findings.holds(name, "size", least >= need, least, f"at least {need} rows for the coefficients")
    if work.pool.classes:
        rarest = int(np.bincount(work.pool.y.astype(np.int64)).min())
        expected = rarest * least / len(work.pool.rows)
        wanted = work.params.shifts.expected_per_class
        enough = expected >= wanted - 1e-9
        findings.holds(name, "size", enough, expected, f"{wanted} expected rows of each class")


def _entries(
    name: str, row: dict[str, Any], work: _Shared, findings: Findings
) -> tuple[Ints, Ints] | None:
    """Return column and class of each bent coefficient, after checking that they are the ones."""
    pool, features = work.pool, [str(f) for f in row["features"]]
    columns, classes = [str(c) for c in row["columns"]], [str(c) for c in row["classes"]]
    labels = pool.classes if pool.task == "multiclass" else ("",)
    findings.holds(
        name,
        "columns",
        len(columns) == len(features) and {*columns} <= {*pool.columns[1:]},
        columns,
        "a column of the design for each feature",
    )
    findings.holds(
        name,
        "classes",
        len(classes) == len(features) and {*classes} <= {*labels},
        classes,
        "a class for each feature",
    )
    if not len(features) == len(columns) == len(classes) or not (
        {*columns} <= {*pool.columns[1:]} and {*classes} <= {*labels}
    ):
        return None
    at = np.array([pool.columns.index(c) for c in columns], dtype=np.int64)
    of = np.array([labels.index(c) for c in classes], dtype=np.int64)
    size = np.abs(work.coefficients)
    for feature, j, c in zip(features, at, of, strict=True):
        own = [i for i, f in enumerate(pool.feature_of) if f == feature]
        best = size[own].max() if own else math.nan
        where = f"that of the largest coefficient of {feature}"
        in_column = j in own and bool(size[j].max() >= best * (1.0 - _TIE))
        findings.holds(name, "columns", in_column, pool.columns[j], where)
        largest = bool(size[j, c] >= size[j].max() * (1.0 - _TIE))
        findings.holds(name, "classes", largest, labels[c], where)
    bin_ = str(row["importance_bin"])
    may = all(bin_ in work.bins.get(f, set()) for f in features)
    found = sorted({b for f in features for b in work.bins.get(f, set())})
    findings.holds(name, "importance_bin", may, bin_, " or ".join(found))
    if row["kind"] == "group":
        must = {
            f
            for f, bins in work.bins.items()
            if bins == {bin_}
            and any(size[j].max() > _ZERO for j, g in enumerate(pool.feature_of) if g == f)
        }
        whole = must <= {*features} and len(features) >= 2
        findings.holds(name, "features", whole, features, f"all of {sorted(must)}")
    else:
        findings.equal(name, "features", features, [str(row["feature"])])
    return at, of


def _coefficients(
    name: str,
    row: dict[str, Any],
    digest: str,
    at: Ints,
    entries: tuple[Ints, Ints],
    work: _Shared,
    findings: Findings,
) -> None:
    """Compare coefficients of pool and sample, and decide anew whether the criterion holds."""
    reference = work.coefficients[entries]
    findings.numbers(name, "b_reference", row["b_reference"], reference.tolist())
    findings.numbers(name, "t_pool", row["t_pool"], work.t[entries].tolist())
    why, fitted = work.sample(digest, at)
    if fitted is None:
        findings.add(name, "b_sample", row["b_sample"], why)
        return
    sample = fitted[entries]
    findings.numbers(name, "b_sample", row["b_sample"], sample.tolist())
    operation, factor, mode = str(row["operation"]), float(row["factor"]), str(row["mode"])
    ratio = sample / reference
    least = float(ratio.min() if operation == "amplify" else ratio.max())
    findings.number(name, "achieved", row["achieved"], least)
    low, high = bounds(operation, factor, mode)
    met = bool(meets(ratio, operation, factor, mode))
    for bound in (low, high):
        # No sample lies too near to a coefficient of zero when that is allowed.
        if math.isfinite(bound) and not (bound == 0.0 and operation == "attenuate"):
            met = met and bool((np.abs(ratio - bound) > 0.999 * _HAIR * (bound or 1.0)).all())
    findings.holds(name, "criterion", met, f"{ratio.min()} to {ratio.max()}", f"[{low}, {high}]")


def _chance(
    name: str,
    row: dict[str, Any],
    size: int,
    entries: tuple[Ints, Ints],
    work: _Shared,
    findings: Findings,
) -> None:
    criterion = str(row["operation"]), float(row["factor"]), str(row["mode"])
    low, high = work.uniform.share_range(entries, work.coefficients[entries], criterion, size)
    value = float(row["p_uniform"])
    # Of the shares that samples at a hair leave open, the nearest to the published one.
    findings.number(name, "p_uniform", value, min(max(value, low), high))


def _composition(name: str, row: dict[str, Any], at: Ints, pool: Pool, findings: Findings) -> None:
    """Compare label and columns of a sample with those of its pool."""
    bins = pool.y.astype(np.int64)
    if not pool.classes:
        cuts = np.unique(np.quantile(pool.y, np.arange(1, 10) / 10))
        bins = np.searchsorted(cuts, pool.y, side="left").astype(np.int64)
    k = int(bins.max()) + 1
    ours = np.bincount(bins[at], minlength=k) / len(at)
    label_tv = 0.5 * float(np.abs(ours - np.bincount(bins, minlength=k) / len(bins)).sum())
    findings.number(name, "label_tv", row["label_tv"], label_tv)
    smd = np.abs(pool.X[at, 1:].mean(axis=0) - pool.X[:, 1:].mean(axis=0))
    findings.number(name, "smd_mean", row["smd_mean"], float(smd.mean()))
    findings.number(name, "smd_max", row["smd_max"], float(smd.max()))
