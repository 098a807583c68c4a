"""Tables on a terminal: nothing is cut, however narrow it is."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from inconvenient.cli.output import counting, print_table

SCORES = [f"{part}_{kind}" for part in ("id", "control", "ood") for kind in ("mean", "median")]
ID = "airline_route_fare/bin:middle/flip/0.5/at_least"


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_numbers_are_whole_on_a_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {name: [0.1234 + k / 1000] for k, name in enumerate(SCORES)}
    frame = pd.DataFrame({"model": ["mymodel:Boosting"], "task": ["binary"], **values})
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(frame, as_json=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, said.splitlines())) <= width
    words = said.split()
    for name, (value,) in values.items():
        assert words.count(name) == 1
        assert words.count(f"{value:.4g}") == 1
    assert ("\n\n" in said) == (width < 120)


def test_text_is_folded_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"rows": [12345], "shift_id": [ID]})
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "30")
    print_table(frame, as_json=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "12345" in said
    assert ID in "".join(word for word in said.split() if word != "12345")


def test_one_table_where_the_output_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(pd.DataFrame({"id": [ID], "a": [0.5], "note": ["word " * 40]}), as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_brackets_in_what_is_counted_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with counting("questions to local:[/INST]") as done:
        done(1, 2)
