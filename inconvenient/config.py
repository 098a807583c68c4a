"""The parameter file as frozen records that reject bad entries, and where a checkout lies."""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from inconvenient.errors import ConfigError

__all__ = [
    "PROFILES",
    "CollateralParams",
    "EvaluateParams",
    "FilterParams",
    "GridParams",
    "Params",
    "ProfileParams",
    "ReferenceParams",
    "ReportParams",
    "SeedsParams",
    "ShiftsParams",
    "SplitParams",
    "StudyParams",
    "TuningParams",
    "as_json",
    "as_record",
    "checkouts",
    "load_params",
    "user_folder",
]

#: Profiles by falling preference, where none is asked for.
PROFILES = ("full", "quick")

R = TypeVar("R")


@dataclasses.dataclass(frozen=True, slots=True)
class SplitParams:
    """Block ``split``."""

    seed: int


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceParams:
    """Block ``reference``."""

    rare_level_share: float
    ridge: float


@dataclasses.dataclass(frozen=True, slots=True)
class ShiftsParams:
    """Block ``shifts``: selection, feasibility and chance."""

    seed: int
    uniform_samples: int
    rows_per_coefficient: int
    expected_per_class: int
    min_class: int


@dataclasses.dataclass(frozen=True, slots=True)
class FilterParams:
    """Block ``filter``: what is retained, decided on the filter half."""

    seed: int
    controls: int
    min_gap_auc: float
    min_gap_r2: float
    max_jaccard: float
    r2_lower_bound: float


@dataclasses.dataclass(frozen=True, slots=True)
class EvaluateParams:
    """Block ``evaluate``: the published scores, on the report half."""

    seed: int
    controls: int
    baselines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class CollateralParams:
    """Block ``collateral``."""

    ridge: float


@dataclasses.dataclass(frozen=True, slots=True)
class ReportParams:
    """Block ``report``: which shifts and datasets the main tables hold."""

    seed: int
    p_uniform_max: float
    min_reference_r2: float
    min_reference_auc: float


@dataclasses.dataclass(frozen=True, slots=True)
class SeedsParams:
    """Block ``seeds``: split seeds beside the published one."""

    other_splits: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class StudyParams:
    """Block ``study``: the tuned study, on shifts of the full profile."""

    seed: int
    datasets_per_task: int
    max_pool: int
    shifts_per_dataset: int
    trials: int
    baselines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class GridParams:
    """The grid of candidate shifts of one profile."""

    min_fractions: tuple[float, ...]
    amplify: tuple[float, ...]
    attenuate: tuple[float, ...]
    n_single: int
    modes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TuningParams:
    """How many shifts of a dataset are scored by tuned baselines, and with how many trials."""

    shifts_per_dataset: int
    trials: int


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileParams:
    """One entry of ``profiles``."""

    datasets: tuple[str, ...]
    grid: GridParams
    tuning: TuningParams


@dataclasses.dataclass(frozen=True, slots=True)
class Params:
    """The whole of params.yaml."""

    split: SplitParams
    reference: ReferenceParams
    shifts: ShiftsParams
    filter: FilterParams
    evaluate: EvaluateParams
    collateral: CollateralParams
    seeds: SeedsParams
    study: StudyParams
    report: ReportParams
    profiles: dict[str, ProfileParams]


def _convert(kind: Any, value: Any, where: str) -> Any:
    """Return ``value`` as ``kind``, or raise ConfigError naming the entry."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, value, where)
    origin = typing.get_origin(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where} must be a list, got {value!r}; write it as [a, b]")
        item = typing.get_args(kind)[0]
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{where} must be a mapping, got {value!r}; give named entries")
        item = typing.get_args(kind)[1]
        return {str(k): _convert(item, v, f"{where}.{k}") for k, v in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(
            f"{where} must be of type {kind.__name__}, got {value!r}; correct params.yaml"
        )
    return value


def _record(kind: type[R], value: Any, where: str) -> R:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a block of named entries, got {value!r}")
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(value) - set(hints))
    missing = sorted(set(hints) - set(value))
    if unknown or missing:
        parts = []
        if missing:
            parts.append(f"lacks {', '.join(missing)}")
        if unknown:
            parts.append(f"has unknown entries {', '.join(map(str, unknown))}")
        raise ConfigError(
            f"{where} {' and '.join(parts)}; it takes exactly {', '.join(sorted(hints))}"
        )
    prefix = "" if where == "params.yaml" else f"{where}."
    return kind(**{k: _convert(hints[k], v, f"{prefix}{k}") for k, v in value.items()})


def load_params(path: str | Path) -> Params:
    """Read a parameter file.

    Parameters
    ----------
    path : path
        A YAML file with the blocks of :class:`Params`.

    Returns
    -------
    Params

    Raises
    ------
    ConfigError
        If the file is absent, is no YAML, or an entry is missing, unknown or of the wrong type.
    """
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"a parameter file was needed at {path}, but it cannot be read "
            f"({error.strerror}); run from a checkout or name one"
        ) from error
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    return _record(Params, raw, "params.yaml")


def as_json(record: Any) -> Any:
    """Return a record as plain dicts, lists and scalars, for keys and provenance."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: as_json(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, dict | types.MappingProxyType):
        return {str(k): as_json(v) for k, v in record.items()}
    if isinstance(record, tuple | list):
        return [as_json(v) for v in record]
    return record


def as_record(kind: type[R], value: Any, where: str) -> R:
    """Return the record that :func:`as_json` made plain; ConfigError, naming ``where``, if none."""
    return _record(kind, value, where)


def checkouts() -> list[Path]:
    """Return the checkouts at hand: around the current folder, then around this package."""
    found: list[Path] = []
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if (folder / "params.yaml").is_file() and (folder / "dvc.yaml").is_file():
                found.append(folder)
                break
    return list(dict.fromkeys(found))


def user_folder() -> Path:
    """Return where data and shifts lie without a checkout: $INCONVENIENT_HOME, or a default."""
    named = os.environ.get("INCONVENIENT_HOME")
    if named:
        return Path(named)
    share = os.environ.get("XDG_DATA_HOME")
    return (Path(share) if share else Path.home() / ".local" / "share") / "inconvenient"
