"""Figures of the report as inline SVG; the same numbers give the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inconvenient.report.material import OPERATIONS, TASKS, Material
from inconvenient.report.summary import dataset_medians

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "STYLES", "draw"]

COLOURS = {"amplify": "#1b6ca8", "attenuate": "#d98200", "flip": "#b0305c"}
#: Marker of each model, in the order of their names.
STYLES = "o^sDv"
SIZE_COLOUR, BIAS_COLOUR, GREY = "#9aa7b1", "#37474f", "#9e9e9e"
SCORES = {"regression": "R2", "binary": "AUC", "multiclass": "AUC"}
#: Scatter points per panel; more are thinned evenly, for the page would grow by megabytes.
MAX_POINTS = 800

_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def draw(name: str, make: Callable[[Any], Figure], data: Any) -> str:
    """Draw a figure.

    Parameters
    ----------
    name : str
    make : callable
        One of FIGURES or STUDY_FIGURES.
    data
        What it draws.

    Returns
    -------
    str
        An ``svg`` element whose ids start with ``name``; no date, no address.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = make(data)
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=empty, bbox_inches="tight")
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    # In HTML the namespaces are implied, and ids of several figures must not meet.
    text = re.sub(r'\s+xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)


def _panels(height: float, columns: int = 3) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, height), layout="constrained")
    grid = figure.subplots(1, columns, squeeze=False)
    return figure, list(grid[0])


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no shifts", ha="center", va="center", transform=axes.transAxes, color=GREY)


def _legend(figure: Figure, handles: list[Any]) -> None:
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _dots(labels: dict[str, str], **style: Any) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], marker="o", linestyle="", color=colour, label=label, **style)
        for label, colour in labels.items()
    ]


def scatter(material: Material) -> Figure:
    """ID against OOD per task; verified shifts of the main tables, retained ones filled."""
    from matplotlib.lines import Line2D

    figure, panels = _panels(4.0)
    markers = {name: STYLES[i % 5] for i, name in enumerate(_models(material.default))}
    for task, axes in zip(TASKS, panels):
        own = material.default
        own = own[(own["task"] == task) & own["main"]].dropna(subset=["id", "ood"])
        if len(own) > MAX_POINTS:
            own = own.iloc[np.linspace(0, len(own) - 1, MAX_POINTS).astype(int)]
        low = max(-0.5, float(own["ood"].min())) - 0.03 if len(own) else 0.0
        outside = int((own["ood"] < low).sum())
        for (operation, model), part in own.groupby(["operation", "baseline"]):
            colour = COLOURS[str(operation)]
            # Apart, for a list of faces with "none" in it and a transparency paints those black.
            for kept, face in ((False, "none"), (True, colour)):
                side = part[part["retained"] == kept]
                axes.scatter(
                    side["id"],
                    side["ood"].clip(lower=low),
                    s=13,
                    marker=markers[str(model)],
                    facecolors=face,
                    edgecolors=colour,
                    linewidths=0.5,
                    alpha=0.55,
                )
        start = min(low, float(own["id"].min()) - 0.03) if len(own) else 0.0
        axes.plot([start, 1], [start, 1], color=GREY, linewidth=0.8, zorder=0)
        if not len(own):
            _nothing(axes)
        else:
            axes.set_xlim(float(own["id"].min()) - 0.05, min(1.0, float(own["id"].max()) + 0.05))
            axes.set_ylim(low - 0.02, min(1.0, float(own["id"].max()) + 0.05))
        note = f"; {outside} below the axis" if outside else ""
        axes.set_title(f"{task} ({len(own)} points{note})")
        axes.set_xlabel(f"ID {SCORES[task]}")
        axes.set_ylabel(f"OOD {SCORES[task]}")
    shapes = [
        Line2D([], [], marker=marker, linestyle="", color=GREY, markerfacecolor="none", label=name)
        for name, marker in markers.items()
    ]
    line = Line2D([], [], color=GREY, linewidth=0.8, label="no degradation")
    _legend(figure, [*_dots(COLOURS), *shapes, line])
    return figure


def _models(scores: pd.DataFrame) -> list[str]:
    return sorted(str(name) for name in scores["baseline"].unique())


def prices(material: Material) -> Figure:
    """Price of size and price of bias per task, operation and model, main tables, retained."""
    from matplotlib.patches import Patch

    figure, panels = _panels(3.4)
    chosen = material.default[material.default["main"] & material.default["retained"]]
    models = _models(material.default)
    hatches = {name: ("", "////", "....", "xxxx", "++++")[i % 5] for i, name in enumerate(models)}
    for task, axes in zip(TASKS, panels):
        own = chosen[chosen["task"] == task]
        for i, operation in enumerate(OPERATIONS):
            for j, model in enumerate(models):
                part = own[(own["operation"] == operation) & (own["baseline"] == model)]
                place = i + 0.8 * ((j + 0.5) / len(models) - 0.5)
                _price_bars(axes, part, material, place, 0.36 / len(models), hatches[model])
        if own.empty:
            _nothing(axes)
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_xticks(range(len(OPERATIONS)), OPERATIONS)
        axes.set_xlim(-0.55, len(OPERATIONS) - 0.45)
        axes.grid(axis="x", visible=False)
        axes.set_title(task)
        axes.set_ylabel(f"loss of {SCORES[task]}")
    handles = [
        Patch(color=SIZE_COLOUR, label="price of size (ID minus control)"),
        Patch(color=BIAS_COLOUR, label="price of bias (control minus OOD)"),
    ]
    handles += [
        Patch(facecolor="white", edgecolor="black", hatch=hatch, label=name)
        for name, hatch in hatches.items()
    ]
    _legend(figure, handles)
    return figure


def _price_bars(
    axes: Axes,
    scores: pd.DataFrame,
    material: Material,
    place: float,
    width: float,
    hatch: str,
) -> None:
    """Draw the two prices of a group side by side, each with its interval."""
    sides = (("size", -0.5, SIZE_COLOUR), ("bias", 0.5, BIAS_COLOUR))
    for part, shift, colour in sides:
        medians = dataset_medians(scores, part)
        if medians.empty:
            continue
        at = place + shift * width
        height = float(medians.mean())
        axes.bar(at, height, width=width, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        low, high = material.bootstrap.interval(medians)
        if np.isfinite(low):
            axes.plot([at, at], [low, high], color="black", linewidth=0.9)


def fractions(material: Material) -> Figure:
    """Degradation against the minimum fraction, mean of datasets' medians over both models."""
    figure, panels = _panels(3.2)
    main = material.default[material.default["main"]]
    for task, axes in zip(TASKS, panels):
        own = main[main["task"] == task]
        if own.empty:
            _nothing(axes)
        levels = sorted(own["min_fraction"].unique())
        for operation in OPERATIONS:
            part = own[own["operation"] == operation]
            for column, line in (("degradation", "-"), ("size", ":")):
                means = [
                    dataset_medians(part[part["min_fraction"] == level], column).mean()
                    for level in levels
                ]
                axes.plot(levels, means, line, marker="o", markersize=3.5, color=COLOURS[operation])
        axes.axhline(0, color="black", linewidth=0.6)
        if levels:
            axes.set_xticks(levels)
        axes.set_title(task)
        axes.set_xlabel("minimum fraction")
        axes.set_ylabel(f"loss of {SCORES[task]}")
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color="black", linestyle="-", label="degradation"),
        Line2D([], [], color="black", linestyle=":", label="of it the price of size"),
    ]
    _legend(figure, [*_dots(COLOURS), *lines])
    return figure


def collateral(material: Material) -> Figure:
    """Collateral effect of shifts beside that of their controls, medians and quartiles."""
    figure, panels = _panels(3.0)
    for task, axes in zip(TASKS, panels):
        own = material.shifts[material.shifts["task"] == task]
        for i, operation in enumerate(OPERATIONS):
            part = own[own["operation"] == operation]
            sides = (("collateral", 0.15, COLOURS[operation]), ("collateral_control", -0.15, GREY))
            for column, shift, colour in sides:
                values = part[column].dropna()
                if values.empty:
                    continue
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
                axes.plot([low, high], [i + shift] * 2, color=colour, linewidth=2.5)
                axes.plot([middle], [i + shift], marker="o", color=colour, markersize=6)
        if own["collateral"].notna().any():
            axes.set_xlim(left=0)
        else:
            _nothing(axes)
        axes.set_yticks(range(len(OPERATIONS)), OPERATIONS)
        axes.set_ylim(len(OPERATIONS) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_title(task)
        axes.set_xlabel("collateral effect (relative L2 change)")
    handles = [*_dots(COLOURS), *_dots({"control of the same size": GREY})]
    _legend(figure, handles)
    return figure


def doses(material: Material) -> Figure:
    """Achieved over asked factor of shifts in mode band, with the band that was allowed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 2.8), layout="constrained")
    axes = figure.subplots()
    band = material.shifts[material.shifts["mode"] == "band"]
    cells = list(band.groupby(["operation", "factor"], sort=True))
    for i, ((operation, _), part) in enumerate(cells):
        low, high = (1.0, 1.1) if operation == "amplify" else (0.9, 1.0)
        axes.fill_between([i - 0.35, i + 0.35], low, high, color="#e3edf4", linewidth=0)
        part = part.iloc[np.linspace(0, len(part) - 1, min(len(part), MAX_POINTS // 4)).astype(int)]
        # A spread by rank, not by chance: the figure must not need a seed.
        spread = (np.arange(len(part)) * 0.6180339887) % 1.0 - 0.5
        axes.scatter(
            i + 0.6 * spread,
            part["achieved"] / part["factor"],
            s=10,
            color=COLOURS[str(operation)],
            alpha=0.55,
            linewidths=0,
        )
    if not cells:
        _nothing(axes)
    names = [f"{operation} x{factor:g}\n{len(part)} shifts" for (operation, factor), part in cells]
    axes.set_xticks(range(len(cells)), names)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("achieved / asked")
    return figure


#: Every figure by the name under which the page shows it.
FIGURES: dict[str, Callable[[Material], Figure]] = {
    "scatter": scatter,
    "prices": prices,
    "fractions": fractions,
    "collateral": collateral,
    "doses": doses,
}
