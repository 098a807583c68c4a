"""One self-contained page and its tables from the frames of a profile; it touches no files."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from inconvenient.config import Params
from inconvenient.errors import MissingDependencyError
from inconvenient.report import counts as counting
from inconvenient.report import tables as tabulating
from inconvenient.report.material import Material, join
from inconvenient.report.summary import rounded

__all__ = ["build_report"]

DASH = "\N{EN DASH}"

SEVERITIES = {
    "min_fraction": "Minimum fraction (sample over pool)",
    "importance_bin": "Importance bin",
    "factor": "Factor, the modes at_least and band apart",
    "strategy": "Strategy that found the sample",
}


def build_report(
    frames: Mapping[str, pd.DataFrame], params: Params, facts: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Build the report of a profile.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        The artefacts by name: "split/datasets", "reference/datasets", "shifts/candidates",
        "shifts/shifts", "filter/filter", "evaluate/default", "evaluate/tuned" and
        "collateral/collateral"; others are ignored. Frames may be empty.
    params : Params
        Blocks ``filter`` and ``report`` and the grid of the profile are used.
    facts : mapping
        JSON-able provenance, shown at the end: ``profile``, ``package``, ``parameters``, ``inputs``
        and whatever else it holds; ``families``, a mapping of dataset to survey family, guides the
        bootstrap.

    Returns
    -------
    html : str
        One page: inline style and figures, no script, nothing from a network. The same input gives
        the same bytes.
    tables : dict
        Every number shown, JSON-able, floats with 6 significant digits, None where there is none.

    Raises
    ------
    InputError
        If a frame is absent.
    MissingDependencyError
        If jinja2 or matplotlib is not installed.
    """
    _require("jinja2", "matplotlib")
    from inconvenient.report.figures import FIGURES, draw

    material = join(frames, params, facts)
    tables = rounded(_tables(frames, material, facts))
    figures = {name: draw(name, material) for name in FIGURES}
    return _page(tables, figures, params), tables


def _require(*modules: str) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise MissingDependencyError(
                f"a report needs {name}, which is not installed; "
                "run `pip install 'inconvenient[report]'`"
            ) from error


def _tables(
    frames: Mapping[str, pd.DataFrame], material: Material, facts: Mapping[str, Any]
) -> dict[str, Any]:
    profile = material.params.profiles.get(str(facts.get("profile")))
    grid = None if profile is None else profile.grid
    return {
        "headline": tabulating.headline_table(material),
        "counts": counting.counts_table(material),
        "nothing": counting.nothing_table(material),
        "reasons": counting.reasons_table(material),
        "failures": counting.failures_table(material),
        "degradation": tabulating.degradation_table(material.default),
        "degradation_tuned": tabulating.degradation_table(material.tuned),
        "severity": {name: tabulating.severity_table(material, name, grid) for name in SEVERITIES},
        "dose": tabulating.dose_table(material),
        "collateral": tabulating.collateral_table(material),
        "chance": tabulating.chance_table(material),
        "bounds": tabulating.bounds_table(material, frames["shifts/shifts"]),
        "facts": dict(facts),
    }


def _number(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed digits, a true minus sign, a dash for none."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def _percent(value: float | None, digits: int = 0) -> str:
    return DASH if value is None else f"{_number(100 * value, digits)} %"


def _count(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def _range(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{_number(low)}, {_number(high)}]"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def _page(tables: dict[str, Any], figures: dict[str, str], params: Params) -> str:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {"number": _number, "percent": _percent, "count": _count, "pretty": _pretty}
    )
    environment.globals["interval"] = _range
    source = importlib.resources.files("inconvenient.report").joinpath("report.html.jinja")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    page: str = template.render(
        **tables,
        figures={name: Markup(svg) for name, svg in figures.items()},
        severities=SEVERITIES,
        dash=DASH,
        count_names=counting.COUNTS,
        breaks=("candidates", "verified", "retained"),
        reason_names=counting.REASONS,
        report=params.report,
        filters=params.filter,
        tasks=("regression", "binary", "multiclass"),
        score={"regression": "R2", "binary": "AUC", "multiclass": "AUC"},
    )
    return page
