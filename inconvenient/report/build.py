"""One self-contained page and its tables from the frames of a profile; it touches no files."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import Any

import pandas as pd

from inconvenient.config import GridParams, Params
from inconvenient.errors import MissingDependencyError
from inconvenient.report import counts as counting
from inconvenient.report import doses as dosing
from inconvenient.report import paper as comparing
from inconvenient.report import study as studying
from inconvenient.report import tables as tabulating
from inconvenient.report import variants as varying
from inconvenient.report.format import DASH, FILTERS, interval_text
from inconvenient.report.material import Material, join
from inconvenient.report.seeds_view import SEED_NUMBERS, seeds_view
from inconvenient.report.summary import rounded

__all__ = ["build_report"]

SEVERITIES = {
    "min_fraction": "minimum fraction",
    "importance_bin": "importance bin",
    "factor": "factor, the modes at_least and band apart",
    "strategy": "strategy that found the sample",
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
        "collateral/collateral"; "seeds/summary", "seeds/spread" and "seeds/agreement" are shown
        if given; others are ignored. Frames may be empty.
    params : Params
        Blocks ``filter`` and ``report`` and the grid of the profile are used.
    facts : mapping
        JSON-able provenance, shown at the end: ``profile``, ``package``, ``parameters``, ``inputs``
        and whatever else it holds; ``families``, a mapping of dataset to survey family, guides the
        bootstrap where "split/datasets" has no column ``family``.

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
    from inconvenient.report.figures_study import STUDY_FIGURES

    material = join(frames, params, facts)
    tables = rounded(_tables(frames, material, facts))
    figures = {name: draw(name, make, material) for name, make in FIGURES.items()}
    figures |= {name: draw(name, make, tables["study"]) for name, make in STUDY_FIGURES.items()}
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
        "publication": counting.publication_table(material),
        "published_by_operation": counting.operations_table(material),
        "counts": counting.counts_table(material),
        "nothing": counting.nothing_table(material),
        "reasons": counting.reasons_table(material),
        "failures": counting.failures_table(material),
        "degradation": tabulating.degradation_table(material.default),
        "degradation_tuned": tabulating.degradation_table(material.tuned),
        "severity": {name: tabulating.severity_table(material, name, grid) for name in SEVERITIES},
        "paper": _paper(material, grid),
        "study": _study(material),
        "collateral": tabulating.collateral_table(material),
        "composition": tabulating.composition_table(material),
        "chance": tabulating.chance_table(material),
        "bounds": tabulating.bounds_table(material, frames["shifts/shifts"]),
        "seeds": seeds_view(frames),
        "facts": dict(facts),
    }


def _paper(material: Material, grid: GridParams | None) -> dict[str, Any]:
    fractions = set(material.candidates.get("min_fraction", []))
    fractions |= set(grid.min_fractions) if grid is not None else set()
    facts = comparing.paper_facts()
    comparison = comparing.comparison_table(material)
    variants = varying.variants_table(material)
    return {
        "stated": facts,
        "comparison": comparison,
        "trends": comparing.trends_table(material),
        "collateral": comparing.collateral_comparison(material),
        "variants": variants,
        "statements": varying.paper_statements(comparison, variants, facts),
        "cells": comparing.cells_table(material, tuple(sorted(fractions))),
    }


def _study(material: Material) -> dict[str, Any]:
    knobs = studying.knobs_table(material)
    row_sets, doses = dosing.row_sets_table(material), dosing.dose_table(material)
    return {
        "levels": studying.levels_table(material),
        "paired": studying.paired_table(material),
        "knobs": knobs,
        "row_sets": row_sets,
        "dose": doses,
        "statements": dosing.study_statements(knobs, row_sets, doses, material),
    }


def _page(tables: dict[str, Any], figures: dict[str, str], params: Params) -> str:
    import jinja2
    from markupsafe import Markup

    folder = importlib.resources.files("inconvenient.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals["interval"] = interval_text
    page: str = environment.get_template("report.html.jinja").render(
        **tables,
        figures={name: Markup(svg) for name, svg in figures.items()},
        severities=SEVERITIES,
        dash=DASH,
        count_names=counting.COUNTS,
        breaks=("candidates", "verified", "retained"),
        knob_names=studying.KNOBS,
        seed_numbers=SEED_NUMBERS,
        reason_names=counting.REASONS,
        report=params.report,
        filters=params.filter,
        tasks=("regression", "binary", "multiclass"),
        score={"regression": "R2", "binary": "AUC", "multiclass": "AUC"},
    )
    return page
