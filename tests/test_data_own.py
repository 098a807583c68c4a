"""A user's own table: one call, and it loads by name; or the line and column that are at fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import inconvenient as ic
from inconvenient.data import prepare_table, read_table
from inconvenient.data.own import read_entry
from inconvenient.errors import ConfigError, InputError, NotAvailableError

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def houses() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "rooms": rng.integers(1, 6, 60),
            "area": rng.normal(80.0, 10.0, 60).round(1),
            "region": rng.choice(["north", "south"], 60),
            "level": pd.Categorical(rng.integers(0, 3, 60)),
            "street": [f"s{i % 12}" for i in range(60)],
            "price": rng.normal(200.0, 50.0, 60).round(2),
        }
    )
    frame.loc[::7, "area"] = np.nan
    frame.loc[::9, "region"] = None
    return frame


def write(frame: pd.DataFrame, kind: str) -> Path:
    path = Path(f"houses.{kind}")
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif kind == "feather":
        frame.to_feather(path)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        kinds = ["numeric", "numeric", "{north, south}", "{0, 1, 2}", "string", "numeric"]
        head = [f"@attribute {name} {k}" for name, k in zip(frame.columns, kinds, strict=True)]
        rows = frame.to_csv(index=False, header=False, na_rep="?").splitlines()
        path.write_text("\n".join(["@relation houses", *head, "@data", *rows]))
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx", "feather", "parquet", "arff"])
def test_a_file_becomes_a_dataset(kind: str, houses: pd.DataFrame) -> None:
    added = ic.add_dataset(write(houses, kind), target="price")
    loaded = ic.load_dataset("own:houses")
    assert (loaded.name, loaded.task, loaded.hash) == ("own:houses", "regression", added.hash)
    wanted = prepare_table(houses, target="price")
    assert loaded.features == wanted.features
    np.testing.assert_array_equal(loaded.y, wanted.y)
    for column in ("rooms", "area"):
        np.testing.assert_array_equal(
            loaded.frame[column].astype(float), houses[column].astype(float)
        )
    assert loaded.frame["region"].isna().tolist() == houses["region"].isna().tolist()
    row = ic.list_datasets().set_index("name").loc["own:houses"]
    assert (row["rows"], row["features"], row["target"]) == (60, 5, "price")
    X, y = loaded.X.drop(columns="street"), loaded.frame["price"]
    assert ic.select(X, y, min_fraction=0.5, on_unmet="best").size >= 30


def test_a_frame_becomes_a_dataset(houses: pd.DataFrame, home: Path) -> None:
    before = houses.copy(deep=True)
    ic.add_dataset(houses, name="mine", target="price", groups="street", drop=["area"])
    loaded = ic.load_dataset("own:mine")
    assert loaded.features == ["rooms", "region", "level"]
    assert loaded.frame["level"].tolist() == houses["level"].astype(str).tolist()
    assert loaded.groups.tolist() == pd.factorize(houses["street"])[0].tolist()
    assert not loaded.groups.flags.writeable
    pd.testing.assert_frame_equal(houses, before)
    facts = yaml.safe_load((home / "datasets" / "own" / "mine.yaml").read_text())
    assert (facts["target"], facts["rows"]) == ("price", 60)


def test_texts_in_the_file_of_facts_may_be_edited(houses: pd.DataFrame, home: Path) -> None:
    ic.add_dataset(houses, name="mine", target="price")
    path = home / "datasets" / "own" / "mine.yaml"
    path.write_text(path.read_text().replace("description: ''", "description: Houses.", 1))
    assert ic.load_dataset("own:mine").description == "Houses."
    assert ic.add_dataset(houses, name="mine", target="price").description == "Houses."


def test_the_same_name_twice(houses: pd.DataFrame) -> None:
    ic.add_dataset(houses, name="mine", target="price")
    with pytest.raises(InputError, match=r"own:mine is there already with other content; pass aga"):
        ic.add_dataset(houses[:50], name="mine", target="price")
    assert len(ic.load_dataset("own:mine")) == 60
    ic.add_dataset(houses[:50], name="own:mine", target="price", again=True)
    assert len(ic.load_dataset("own:mine")) == 50


def test_a_damaged_file(houses: pd.DataFrame, home: Path) -> None:
    ic.add_dataset(houses, name="mine", target="price")
    path = home / "datasets" / "own" / "mine.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        NotAvailableError, match=r"is damaged or of another version: .*data add FILE --again`"
    ):
        ic.load_dataset("own:mine")


CASES: dict[str, tuple[Callable[[pd.DataFrame], Any], type[Exception], str]] = {
    "absent": (lambda d: ic.load_dataset("own:none"), InputError, "there is no own:none; add its"),
    "no name": (lambda d: ic.add_dataset(d, target="price"), InputError, "needs a name; pass name"),
    "a bad name": (
        lambda d: ic.add_dataset(d, target="price", name="../x"),
        InputError,
        r"a name is letters, digits and _ \. -, got '../x'",
    ),
    "no target": (lambda d: ic.add_dataset(d, name="a"), InputError, "column to predict is needed"),
    "no such target": (
        lambda d: ic.add_dataset(d, name="a", target="Price"),
        InputError,
        "did you mean 'price'",
    ),
    "own as a source": (
        lambda d: ic.add_dataset("own:a"),
        InputError,
        "to add a table, pass its file or the table",
    ),
    "options of an own table": (
        lambda d: ic.add_dataset("openml:1", groups="street"),
        InputError,
        "name, groups and entry are for an own table, not for openml:1",
    ),
    "documentation of nothing": (
        lambda d: ic.add_dataset(
            d, name="a", entry={"target": "price", "documentation": {"romms": "how many"}}
        ),
        InputError,
        "documentation names 'romms', which is no column; closest: 'rooms'",
    ),
    "no file": (lambda d: ic.add_dataset("none.csv", target="a"), InputError, "does not exist"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_added(case: str, houses: pd.DataFrame, home: Path) -> None:
    call, kind, words = CASES[case]
    with pytest.raises(kind, match=words):
        call(houses)
    assert not (home / "datasets").exists()


# -- the command ---------------------------------------------------------------------------------

ENTRY = """
target: "price "
drop: {sold: a date}
groups: street
na: [unknown]
description: Houses of a town.
documentation: {rooms: how many, "price ": in EUR}
"""


def test_a_hostile_file_with_an_entry_beside_it(cli: Cli, tmp_path: Path) -> None:
    rows = [
        f"{i % 5 or 'unknown'};{'?' if i % 7 == 0 else i};{'north' if i % 2 else 'NA'};s{i % 12};"
        f"2020-01-{i % 28 + 1:02d};1.{i:03d},{i % 10}5"
        for i in range(60)
    ]
    text = "\r\n".join(["rooms;area;region;street;sold;price ", *rows])
    (tmp_path / "my.csv").write_text(text, encoding="utf-8-sig", newline="")
    (tmp_path / "my.yaml").write_text(ENTRY)
    status, out, err = cli("data", "add", "my.csv", "--json")
    assert (status, err) == (0, "")
    (facts,) = json.loads(out)["added"]
    assert (facts["name"], facts["rows"], facts["features"]) == ("own:my", 60, 3)
    dataset = ic.load_dataset("own:my")
    assert dataset.y[:2].tolist() == [1000.05, 1001.15]
    assert dataset.frame["rooms"].isna().sum() == 12
    assert dataset.frame["area"].isna().sum() == 9
    assert len(np.unique(dataset.groups)) == 12
    assert dataset.description == "Houses of a town."
    assert (dataset.target_description, dataset.feature_descriptions) == (
        "in EUR",
        {"rooms": "how many"},
    )
    status, out, _ = cli("data", "show", "own:my")
    assert status == 0
    assert "Houses of a town." in out
    assert "sold: a date" in out
    status, out, _ = cli("data", "list", "--json")
    assert "own:my" in {row["name"] for row in json.loads(out)}


def test_options_go_before_the_entry(cli: Cli, houses: pd.DataFrame, tmp_path: Path) -> None:
    write(houses, "csv")
    Path("other.yaml").write_text("target: area\nname: theirs\n")
    status, out, _ = cli(
        *("data", "add", "houses.csv", "--entry", "other.yaml", "--target", "price"),
        *("--text", "rooms", "--drop", "level"),
    )
    assert status == 0
    assert "own:theirs: 60 rows, 4 features, target price (regression); load it with" in out
    assert (
        ic.load_dataset("own:theirs").frame["rooms"].tolist() == houses["rooms"].map(str).tolist()
    )
    houses.assign(price=houses["price"].where(houses.index > 3)).to_csv("gaps.csv", index=False)
    status, _, err = cli("data", "add", "gaps.csv", "--target", "price")
    assert status == 1
    assert "--missing-target drop" in err
    status, out, _ = cli(
        "data", "add", "gaps.csv", "--target", "price", "--missing-target", "drop", "--name", "g"
    )
    assert status == 0
    assert "own:g: 56 rows, 4 without a target left out" in out


def test_a_misfit_is_named_with_line_and_column(cli: Cli, houses: pd.DataFrame) -> None:
    houses = houses.astype({"area": object})
    houses.loc[20, "area"] = "large"
    houses.to_csv("houses.csv", index=False)
    status, _, err = cli("data", "add", "houses.csv", "--target", "price")
    assert status == 1
    assert "houses.csv, line 22, column 'area': a number was needed" in err
    assert cli("data", "add", "houses.csv", "--target", "price", "--na", "large")[0] == 0
    make = ("shifts", "make", "houses.csv", "--target", "price", "--drop", "street")
    assert "line 22, column 'area'" in cli(*make)[2]
    assert "line 22" not in cli(*make, "--na", "large")[2]


ENTRIES = {
    "no mapping": ("- a", "must be a mapping with the key target"),
    "no YAML": ("a: [", "is no YAML"),
    "unknown key": ("targt: price", "has the unknown key 'targt'; did you mean target?"),
    "far key": ("zzz: price", "unknown key 'zzz'; known are target, name"),
    "wrong type": (
        "target: price\ndrop: [a]",
        r"drop must be a mapping, as {column: reason}, got \['a'\]",
    ),
    "yes": ("target: yes", r"target must be a text \(quote it\), got True"),
    "no target": ("name: a", "lacks target, the column to predict"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_entries_that_are_none(case: str, houses: pd.DataFrame) -> None:
    text, words = ENTRIES[case]
    Path("e.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        ic.add_dataset(houses, name="a", entry="e.yaml")


def test_an_entry_in_memory(houses: pd.DataFrame) -> None:
    gaps = houses.assign(price=houses["price"].where(houses.index > 3))
    entry = {"target": "price", "missing_target": "raise", "drop": {"area": "many gaps"}}
    added = ic.add_dataset(gaps, name="a", missing_target="drop", drop="level", entry=entry)
    assert (added.dropped_rows, added.features) == (4, ["rooms", "region", "street"])
    with pytest.raises(ConfigError, match="entry has the unknown key 'taget'; did you mean target"):
        ic.add_dataset(houses, name="b", entry={"taget": "price"})


def test_an_entry_that_is_absent(houses: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="none.yaml cannot be read: No such file"):
        ic.add_dataset(houses, name="a", entry="none.yaml")


def test_a_damaged_entry_does_not_hide_the_other_datasets(home):
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    ic.add_dataset(frame, target="y", name="good")
    (home / "datasets" / "own" / "bad.yaml").write_text("")
    with pytest.warns(UserWarning, match="own:bad is left out"):
        assert "own:good" in set(ic.list_datasets()["name"])


def test_numbers_may_stand_for_gaps_in_an_entry(tmp_path):
    table = tmp_path / "my.csv"
    table.write_text("x,y\n" + "\n".join(f"{i if i % 7 else -9},{i * i}" for i in range(60)))
    table.with_suffix(".yaml").write_text("target: y\nna: [-9]\n")
    entry = read_entry(table.with_suffix(".yaml"))
    assert entry["na"] == ["-9"]
    assert read_table(table, na=entry["na"])["x"].isna().sum() == 9


def test_a_dataset_is_named_by_a_text():
    with pytest.raises(InputError, match="named by a text, got None"):
        ic.load_dataset(None)
