"""What `data list` and `data show` print: an overview, and one dataset as a card to read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

__all__ = ["dataset_facts", "print_card", "print_overview"]

# Where nobody reads, a line is a row, for grep and the like.
_UNREAD = 1000
# Wider lines are harder to read, not easier.
_LONGEST = 120
# So many levels of a category are named, fewer if they have more letters than that.
_LEVELS = 4
_LETTERS = 50


def dataset_facts(name: str) -> dict[str, Any]:
    """Return what is known of a dataset, as plain values.

    Parameters
    ----------
    name : str

    Returns
    -------
    dict
        Facts by name; ``columns`` has one record per feature.
    """
    from inconvenient.data import load_dataset
    from inconvenient.data.loading import dataset_entry

    dataset = load_dataset(name)
    entry = dataset_entry(name)
    target, features = dataset.frame[dataset.target], dataset.X
    counts = target.astype(str).value_counts()
    return {
        "name": dataset.name,
        "description": dataset.description,
        "task": dataset.task,
        "target": dataset.target,
        "target description": dataset.target_description,
        "rows": len(dataset.frame),
        "features": len(dataset.features),
        "classes": list(dataset.classes),
        "class rows": [int(counts[label]) for label in dataset.classes],
        "target values": "" if dataset.classes else _values(target),
        "cluster column": str(entry["group_column"]),
        "clusters": None if dataset.groups is None else int(dataset.groups.max()) + 1,
        "rows without target": dataset.dropped_rows,
        "row filter": str(entry["row_filter"]),
        "merged classes": json.loads(entry.get("merged_classes") or "{}"),
        "dropped classes": json.loads(entry.get("dropped_classes") or "{}"),
        "dropped columns": json.loads(entry["dropped_columns"]),
        "leaks answered": json.loads(entry.get("leaks_answered") or "{}"),
        "notes": str(entry["notes"]),
        "domain": dataset.domain,
        "family": dataset.family,
        "flags": str(entry["flags"]),
        "source": dataset.source,
        "licence": dataset.licence,
        "hash": dataset.hash,
        "columns": [
            {
                "feature": column,
                "type": str(features[column].dtype),
                "values": _values(features[column]),
                "missing": int(features[column].isna().sum()),
                "distinct": int(features[column].nunique()),
                "description": dataset.feature_descriptions.get(column, ""),
            }
            for column in dataset.features
        ],
    }


def _values(column: pd.Series) -> str:
    """Return the range of numbers, or the most frequent levels of a category."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return f"{column.min():.6g} to {column.max():.6g}"
    levels = list(map(str, column.value_counts().index))
    shown = levels[: _LEVELS + 1] if len(levels) == _LEVELS + 1 else levels[:_LEVELS]
    while len(shown) > 1 and sum(map(len, shown)) > _LETTERS:
        shown = shown[:-1]
    rest = len(levels) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _console() -> Console:
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    width = min(console.width, _LONGEST) if console.is_terminal else _UNREAD
    return Console(markup=False, highlight=False, emoji=False, width=width)


def print_overview(frame: pd.DataFrame) -> None:
    """Print one line per dataset; names are never cut, sources stand where there is room."""
    from rich.table import Table

    console = _console()
    shown = ["name", "task", "rows", "features", "domain", "target", "source"]
    if console.width < _LONGEST:
        shown = ["name", "task", "rows", "features", "domain"]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in shown:
        number = name in ("rows", "features")
        table.add_column(
            name,
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if number else "left",
            min_width=int(frame[name].map(len).max()) if name in ("name", "task") else None,
        )
    for row in frame[shown].itertuples(index=False):
        table.add_row(*map(str, row))
    console.print(table)
    tasks = ", ".join(f"{count} {task}" for task, count in frame["task"].value_counts().items())
    console.print(f"{len(frame)} datasets: {tasks}")


def print_card(facts: dict[str, Any]) -> None:
    """Print a dataset's facts, wrapped to the terminal, and its features below."""
    from rich.table import Table

    console = _console()
    console.print(facts["name"], style="bold")
    if facts["description"]:
        console.print(facts["description"])
    console.print()
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="bold", no_wrap=True)
    lines.add_column(overflow="fold")
    for label, text in _lines(facts):
        lines.add_row(label, text)
    console.print(lines)
    console.print()
    table = Table(box=None, header_style="bold", pad_edge=False)
    longest = max(len(record["feature"]) for record in facts["columns"])
    table.add_column("feature", overflow="fold", min_width=min(longest, 20))
    table.add_column("values", overflow="fold", max_width=30)
    table.add_column("missing", justify="right")
    table.add_column("description", overflow="fold", ratio=1)
    for record in facts["columns"]:
        missing = str(record["missing"]) if record["missing"] else ""
        table.add_row(record["feature"], record["values"], missing, record["description"])
    console.print(table)


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of what there is to say."""
    target = f"{facts['target']} ({facts['task']})"
    if facts["target values"]:
        target += f", {facts['target values']}"
    if facts["target description"]:
        target += f": {facts['target description']}"
    classes = zip(facts["classes"], facts["class rows"])
    clusters = f"{facts['cluster column']}, {facts['clusters']} clusters that stay together"
    gone = facts["rows without target"]
    both = [("merged", "merged classes"), ("left out", "dropped classes")]
    lines = [
        ("target", target),
        ("classes", ", ".join(f"{label} ({rows} rows)" for label, rows in classes)),
        ("rows", f"{facts['rows']}, with {facts['features']} features"),
        ("rows kept", facts["row filter"]),
        ("left out", f"{gone} rows without a target" if gone else ""),
        *((label, "; ".join(f"{a}: {b}" for a, b in facts[key].items())) for label, key in both),
        ("clusters", clusters if facts["clusters"] else ""),
        ("dropped", "; ".join(f"{a}: {b}" for a, b in facts["dropped columns"].items())),
        ("no leak", "; ".join(f"{a}: {b}" for a, b in facts["leaks answered"].items())),
        ("notes", facts["notes"]),
        ("domain", facts["domain"]),
        ("family", facts["family"] if facts["family"] != facts["name"] else ""),
        ("flags", facts["flags"]),
        ("source", facts["source"]),
        ("licence", facts["licence"]),
        ("SHA-256", facts["hash"]),
    ]
    return [(label, text) for label, text in lines if text]
