"""The command line on real tables, and on tables that cannot be used."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import inconvenient as ic

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(diabetes: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tables"
    folder.mkdir()
    diabetes.to_csv(folder / "my.csv", index=False)
    return folder / "my.csv"


def make(cli: Cli, table: Path, *more: str, target: str = "progression") -> tuple[int, str, str]:
    return cli("shifts", "make", str(table), "--target", target, *more)


def test_make_writes_the_selected_rows_and_both_coefficients(cli: Cli, table: Path) -> None:
    status, out, err = make(cli, table, "--feature", "bmi", "--min-fraction", "0.2")
    assert (status, err) == (0, "")
    written = table.with_name("my-flip-bmi.csv")
    assert str(written) in out
    lines = table.read_text().splitlines()
    chosen = written.read_text().splitlines()
    assert chosen[0] == lines[0]
    assert set(chosen[1:]) <= set(lines[1:])
    assert len(chosen) - 1 >= 0.2 * (len(lines) - 1)
    assert "before" in out
    assert "after" in out


def test_json_agrees_with_an_independent_fit(cli: Cli, table: Path) -> None:
    import statsmodels.api as sm

    status, out, _ = make(cli, table, "--feature", "bmi", "--json", "--out", "some/rows.csv")
    said = json.loads(out)
    assert status == 0
    assert said["verified"] is True
    pool, rows = pd.read_csv(table), pd.read_csv("some/rows.csv")
    assert len(rows) == said["selected"]
    scaled = (rows - pool.mean()) / pool.std(ddof=0)
    fit = sm.OLS(scaled["progression"], sm.add_constant(scaled.drop(columns="progression"))).fit()
    (entry,) = said["coefficients"]
    np.testing.assert_allclose(fit.params["bmi"], entry["sample"], rtol=1e-8)
    assert entry["sample"] * entry["reference"] < 0


def test_rows_are_copied_as_they_stand(cli: Cli, diabetes: pd.DataFrame, tmp_path: Path) -> None:
    text = diabetes.astype(str)
    text["note"] = [f'line one\nsaid "{i}", ünd; 007' if i % 2 else "NA" for i in range(len(text))]
    text["bmi"] = text["bmi"] + "00"
    source = tmp_path / "odd.csv"
    text.to_csv(source, index=False, sep=";", lineterminator="\r\n", encoding="utf-8-sig")
    status, _, err = make(cli, source, "--feature", "bmi", "--drop", "note")
    assert (status, err) == (0, "")
    written = tmp_path / "odd-flip-bmi.csv"
    assert written.read_bytes().startswith(source.read_bytes()[:20])
    with open(source, encoding="utf-8-sig", newline="") as file:
        known = {tuple(row) for row in csv.reader(file, delimiter=";")}
    with open(written, encoding="utf-8-sig", newline="") as file:
        assert all(tuple(row) in known for row in csv.reader(file, delimiter=";"))


def test_parquet_keeps_schema_and_values(cli: Cli, cancer: pd.DataFrame, tmp_path: Path) -> None:
    source = tmp_path / "cancer.parquet"
    cancer.astype({"diagnosis": "category"}).to_parquet(source)
    status, out, err = make(cli, source, "--feature", "mean texture", "--json", target="diagnosis")
    assert (status, err) == (0, "")
    written = tmp_path / "cancer-flip-mean_texture.parquet"
    assert pq.read_schema(written) == pq.read_schema(source)
    assert len(pd.read_parquet(written)) == json.loads(out)["selected"]


def test_nothing_is_overwritten_without_force(cli: Cli, table: Path) -> None:
    here = table.with_name("rows.csv")
    here.write_text("mine")
    arguments = ("--feature", "bmi", "--out", str(here))
    status, _, err = make(cli, table, *arguments)
    assert status == 1
    assert "rows.csv exists and is not overwritten; use --force or another --out" in err
    assert here.read_text() == "mine"
    assert make(cli, table, *arguments, "--force")[0] == 0
    assert here.read_text() != "mine"


def test_rows_without_a_target_can_be_dropped(cli: Cli, table: Path) -> None:
    frame = pd.read_csv(table)
    frame.loc[:9, "progression"] = np.nan
    frame.to_csv(table, index=False)
    status, _, err = make(cli, table, "--feature", "bmi")
    assert status == 1
    assert "progression" in err
    assert "--missing-target drop" in err
    status, out, _ = make(cli, table, "--feature", "bmi", "--missing-target", "drop", "--json")
    assert status == 0
    assert json.loads(out)["rows_without_target"] == 10
    assert pd.read_csv(table.with_name("my-flip-bmi.csv"))["progression"].notna().all()


def hostile(diabetes: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, tuple[str, ...], str]]:
    """Return by name: a table, options, and what the message must name."""
    d, n = diabetes, len(diabetes)
    t, bmi = "progression", ("--feature", "bmi")
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n), unit="D")
    return {
        "absent target": (d.drop(columns=t), bmi, t),
        "constant target": (d.assign(**{t: 1.5}), bmi, t),
        "missing target": (d.assign(**{t: np.nan}), bmi, t),
        "one row per class": (d.assign(**{t: [f"c{i}" for i in range(n)]}), bmi, t),
        "constant feature": (d.assign(bmi=3.0), bmi, "bmi"),
        "missing feature": (d.assign(bmi=np.nan), bmi, "bmi"),
        "absent feature": (d, ("--feature", "bmy"), "bmi"),
        "infinite value": (d.assign(bmi=d["bmi"].where(d.index != 7, np.inf)), bmi, "bmi"),
        "too few rows": (d.head(8), bmi, ""),
        "datetime feature": (d.assign(when=when), bmi, "--drop when"),
        "datetime target": (d.assign(**{t: when}), bmi, t),
        "min_fraction 20": (d, (*bmi, "--min-fraction", "20"), "min_fraction"),
        "factor 0.5": (d, (*bmi, "--operation", "amplify", "--factor", "0.5"), "factor"),
        "no such operation": (d, (*bmi, "--operation", "turn"), "amplify, attenuate, flip"),
        "no such mode": (d, (*bmi, "--mode", "most"), "mode"),
        "no such drop": (d, (*bmi, "--drop", "x"), "'x'"),
        "unmet": (d, (*bmi, "--min-fraction", "0.99"), "smaller min_fraction"),
    }


HOSTILE = [
    "absent target", "constant target", "missing target", "one row per class", "constant feature",
    "missing feature", "absent feature", "infinite value", "too few rows", "datetime feature",
    "datetime target", "min_fraction 20", "factor 0.5", "no such operation", "no such mode",
    "no such drop", "unmet",
]  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_input_is_one_line_and_writes_nothing(
    cli: Cli, diabetes: pd.DataFrame, tmp_path: Path, case: str, suffix: str
) -> None:
    frame, options, named = hostile(diabetes)[case]
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    before = sorted(os.listdir(tmp_path))
    status, out, err = make(cli, path, *options)
    assert status == 1
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert named in err
    assert sorted(os.listdir(tmp_path)) == before


def test_a_perfectly_collinear_feature_is_named(
    cli: Cli, diabetes: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    diabetes.assign(zz=2 * diabetes["bmi"] + 1).to_csv(path, index=False)
    for feature, twin in (("zz", "bmi"), ("bmi", "zz")):
        status, _, err = make(cli, path, "--feature", feature)
        assert status == 1
        assert f"column '{feature}' is perfectly collinear with '{twin}'" in err
        assert f"--drop {twin}" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"a,b,a\n1,2,3\n", "'a'"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3\n", "line 2"),
    ],
)
def test_hostile_files(cli: Cli, tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "t.csv"
    if content is not None:
        path.write_bytes(content)
    status, _, err = make(cli, path, target="b")
    assert status == 1
    assert "t.csv" in err
    assert said in err


def test_usage_errors_and_help(cli: Cli, table: Path) -> None:
    assert cli("shifts", "make", str(table))[0] == 2
    assert cli("nonsense")[0] == 2
    assert cli("--version")[:2] == (0, "0.1.0\n")
    status, out, _ = cli("shifts", "make", "--help")
    assert status == 0
    assert "--min-fraction" in out


def test_data_list_and_show(cli: Cli, data_folder: Path) -> None:
    status, out, _ = cli("data", "list", "--json")
    names = [row["name"] for row in json.loads(out)]
    assert status == 0
    assert len(names) >= 12
    status, out, _ = cli("data", "show", names[0], "--json")
    assert status == 0
    assert json.loads(out)["name"] == names[0]
    status, _, err = cli("data", "show", names[0] + "x")
    assert status == 1
    assert names[0] in err
    assert cli("data", "verify")[0] == 0


def test_doctor(cli: Cli) -> None:
    status, out, _ = cli("doctor", "--json")
    assert status == 0
    said = json.loads(out)
    assert said["problems"] == []
    assert said["libraries"]["numba"]
    assert said["shifts"]["quick"] == len(ic.list_shifts(profile="quick"))


def test_report_says_what_to_run(cli: Cli) -> None:
    status, _, err = cli("report", "--profile", "none")
    assert status == 1
    assert "dvc repro report@none" in err


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (27266.0, "27266"),
        (15_500.4, "15500"),
        (0.0134967, "0.0135"),
        (-3.4929, "-3.493"),
        (1e20, "1e+20"),
        (float("nan"), ""),
        (float("inf"), "inf"),
    ],
)
def test_numbers_in_tables(value: float, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    from inconvenient.cli.output import print_facts

    print_facts({"x": value}, as_json=False)
    assert capsys.readouterr().out.split()[1:] == ([shown] if shown else [])
