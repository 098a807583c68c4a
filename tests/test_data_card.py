"""``data list`` and ``data show``: an overview and a card, for a terminal and for programs."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from inconvenient.cli import card


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that has the command line print to a terminal of a width."""
    from rich.console import Console

    def set_width(width: int) -> None:
        monkeypatch.setattr(
            card, "_console", lambda: Console(markup=False, highlight=False, width=width)
        )

    return set_width


@pytest.mark.parametrize("width", [80, 120])
def test_a_card_fits_and_cuts_nothing(cli, data_folder, terminal, width: int) -> None:
    terminal(width)
    status, out, _ = cli("data", "show", "birthweight_ucb")
    assert status == 0
    assert max(map(len, out.splitlines())) <= width
    words = " ".join(out.split())
    assert out.startswith("birthweight_ucb\nBirth weights of boys")
    assert "wt (regression), 55 to 176: birth weight (in ounces)" in words
    assert "plurality: constant" in words
    assert "mother's prepregnancy weight (in pounds)" in words.replace("22 ", "")
    assert "…" not in out


def test_classes_clusters_and_missing_targets_are_told(cli, data_folder) -> None:
    _, out, _ = cli("data", "show", "chile_plebiscite_vote")
    assert "Y (868 rows)" in out
    assert "168 rows without a target" in out
    _, out, _ = cli("data", "show", "psid_wages_panel")
    assert "id, 595 clusters that stay together" in out


@pytest.mark.parametrize("width", [80, 120])
def test_names_are_not_cut_in_the_overview(cli, data_folder, terminal, width: int) -> None:
    terminal(width)
    _, out, _ = cli("data", "list")
    names = [line.split()[0] for line in out.splitlines()[1:-1]]
    _, text, _ = cli("data", "list", "--json")
    assert names == [row["name"] for row in json.loads(text)]
    assert max(map(len, out.splitlines())) <= width


def test_the_overview_by_task_and_domain(cli, data_folder) -> None:
    _, text, _ = cli("data", "list", "--task", "binary", "--domain", "health", "--json")
    rows = json.loads(text)
    assert {(row["task"], row["domain"]) for row in rows} == {("binary", "health")}
    status, _, err = cli("data", "list", "--task", "ranking")
    assert status == 1
    assert "no dataset has task 'ranking'; there are binary, multiclass, regression" in err


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ([1, 2.5, None], "1 to 2.5"),
        (["a", "a", "b", None], "a, b"),
        ([True, False, True], "True, False"),
        (list("aaabbcdef"), "a, b, c, d and 2 more"),
        (list("aaabbcde"), "a, b, c, d, e"),
        (["x" * 40, "x" * 40, "y" * 40], "x" * 40 + " and 1 more"),
    ],
)
def test_values_of_a_column(column, text: str) -> None:
    assert card._values(pd.Series(column)) == text
