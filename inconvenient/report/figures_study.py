"""Figures of the severity study, drawn from its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inconvenient.report.figures import GREY, STYLES
from inconvenient.report.material import TASK_FAMILIES
from inconvenient.report.study import KNOBS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STUDY_FIGURES"]

Row = dict[str, Any]

MODE_COLOURS = {"at_least": "#b0305c", "band": "#1b6ca8"}
SCORES = {"regression": "R2", "classification": "AUC"}
DIMENSIONS = {
    "min_fraction": "minimum fraction",
    "importance_bin": "importance bin",
    "factor": "operation and factor",
}


def _models(rows: Sequence[Row]) -> list[str]:
    return sorted({row["baseline"] for row in rows})


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _point(axes: Axes, at: float, row: Mapping[str, Any], name: str, **style: Any) -> None:
    """Draw a mean with its interval upright."""
    low, high = _known(row[f"{name}_low"]), _known(row[f"{name}_high"])
    if math.isfinite(low):
        axes.plot([at, at], [low, high], color=style["color"], linewidth=1.1)
    axes.plot([at], [_known(row[name])], linestyle="", markersize=5, **style)


def _keys(models: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    colours = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=f"mode {mode}")
        for mode, colour in MODE_COLOURS.items()
    ]
    shapes = [
        Line2D([], [], marker=STYLES[i % 5], linestyle="", color=GREY, label=model)
        for i, model in enumerate(models)
    ]
    return [*colours, *shapes]


def _doses(names: Sequence[str]) -> list[str]:
    """Return the factors, the operation under the middle one of its own."""
    operations = [name.partition(" ")[0] for name in names]
    out = []
    for i, name in enumerate(names):
        own = [j for j, operation in enumerate(operations) if operation == operations[i]]
        factor = name.partition(" ")[2]
        words = operations[i] if i == own[(len(own) - 1) // 2] else ""
        out.append(f"{factor}\n{words}")
    return out


def levels(study: Mapping[str, Any]) -> Figure:
    """Degradation at each level of each severity, verified shifts, both modes and models."""
    from matplotlib.figure import Figure

    rows = study["levels"]
    models = _models(rows)
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    grid = figure.subplots(2, 3, squeeze=False, width_ratios=[1, 1, 2])
    series = [(mode, model) for mode in MODE_COLOURS for model in models]
    for family, line in zip(TASK_FAMILIES, grid):
        for (dimension, words), axes in zip(DIMENSIONS.items(), line):
            own = [r for r in rows if (r["task_family"], r["dimension"]) == (family, dimension)]
            names = list(dict.fromkeys(row["level"] for row in own))
            for row in own:
                place = series.index((row["mode"], row["baseline"]))
                at = names.index(row["level"]) + 0.6 * ((place + 0.5) / len(series) - 0.5)
                _point(
                    axes,
                    at,
                    row["verified"],
                    "degradation",
                    marker=STYLES[models.index(row["baseline"]) % 5],
                    color=MODE_COLOURS[row["mode"]],
                )
            if not own:
                axes.text(0.5, 0.5, "no shifts", ha="center", transform=axes.transAxes, color=GREY)
            ticks = _doses(names) if dimension == "factor" else names
            axes.set_xticks(range(len(names)), ticks)
            axes.axhline(0, color="black", linewidth=0.6)
            axes.grid(axis="x", visible=False)
            if family == "regression":
                # R2 has no floor: a few linear fits lose more than all others together.
                axes.set_yscale("symlog", linthresh=0.5, linscale=1.5)
                axes.set_yticks([-0.5, 0, 0.25, 0.5, 1, 3, 10], minor=False)
                axes.set_yticks([], minor=True)
                axes.yaxis.set_major_formatter("{x:g}")
                top = max([0.5, *(_known(r["verified"]["degradation_high"]) for r in own)])
                axes.set_ylim(-0.1, 1.3 * top if math.isfinite(top) else None)
            axes.set_title(f"{family}, by {words}")
        line[0].set_ylabel(f"degradation ({SCORES[family]})")
    figure.legend(handles=_keys(models), loc="outside lower center", ncols=2 + len(models))
    return figure


def knobs(study: Mapping[str, Any]) -> Figure:
    """Rank correlation of each severity with the degradation, with its interval."""
    from matplotlib.figure import Figure

    rows = [row for row in study["knobs"] if row["operation"] == "both"]
    models = _models(rows)
    figure = Figure(figsize=(11, 3.3), layout="constrained")
    panels = figure.subplots(1, 2, squeeze=False, sharey=True)[0]
    series = [(mode, model) for mode in MODE_COLOURS for model in models]
    names = list(KNOBS)
    for family, axes in zip(TASK_FAMILIES, panels):
        for row in rows:
            if row["task_family"] != family or not row["features"]:
                continue
            place = series.index((row["mode"], row["baseline"]))
            at = names.index(row["knob"]) + 0.6 * ((place + 0.5) / len(series) - 0.5)
            colour = MODE_COLOURS[row["mode"]]
            low, high = _known(row["rho_low"]), _known(row["rho_high"])
            if math.isfinite(low):
                axes.plot([low, high], [at, at], color=colour, linewidth=1.1)
            marker = STYLES[models.index(row["baseline"]) % 5]
            axes.plot([_known(row["rho"])], [at], marker=marker, color=colour, markersize=5)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_xlim(-1, 1)
        axes.set_yticks(range(len(names)), list(KNOBS.values()))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_title(family)
        axes.set_xlabel("rank correlation with the degradation")
    figure.legend(handles=_keys(models), loc="outside lower center", ncols=2 + len(models))
    return figure


#: Figures of the study by the name under which the page shows them.
STUDY_FIGURES: dict[str, Callable[[Mapping[str, Any]], Figure]] = {"levels": levels, "knobs": knobs}
