from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inconvenient.cli.app import app
from inconvenient.errors import InputError

TABLES = {
    "headline": [{"task": "binary", "shifts": 3, "mean": 0.25, "low": None}],
    "study": {
        "knobs": [{"knob": "factor", "retained": {"rho": 0.5}, "verified": {"rho": 0.4}}],
        "statements": ["A word."],
    },
    "seeds": None,
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user folder with a report of a profile that no checkout has."""
    folder = tmp_path / "artefacts" / "own" / "report"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<html>", encoding="utf-8")
    (folder / "tables.json").write_text(json.dumps(TABLES), encoding="utf-8")
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path))
    return folder


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["report", "--profile", "own", *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.stdout


def test_the_place_is_said(home: Path) -> None:
    assert run().strip() == str(home / "report.html")
    assert json.loads(run("--json"))["tables"] == str(home / "tables.json")


def test_a_table_is_printed_by_its_path(home: Path) -> None:
    lines = run("--table", "headline").splitlines()
    assert lines[0].split() == ["task", "shifts", "mean", "low"]
    assert lines[1].split() == ["binary", "3", "0.25"]
    assert json.loads(run("--table", "study.knobs", "--json")) == TABLES["study"]["knobs"]


def test_a_nested_part_is_a_table_of_its_own(home: Path) -> None:
    lines = [line.split() for line in run("--table", "study.knobs").splitlines()]
    assert lines[:3] == [["retained"], ["knob", "rho"], ["factor", "0.5"]]
    assert lines[3:] == [[], ["verified"], ["knob", "rho"], ["factor", "0.4"]]


def test_tables_are_listed(home: Path) -> None:
    listed = json.loads(run("--table", "?", "--json"))
    assert listed == [{"table": "headline", "rows": 1}, {"table": "study.knobs", "rows": 1}]
    with pytest.raises(InputError, match=r"one of headline, study\.knobs, got 'nothing'"):
        run("--table", "nothing")
