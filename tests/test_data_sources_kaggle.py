"""Kaggle through kagglehub itself, from a local server in the place of its own."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile

import pandas as pd
import pytest
from sources_server import quick, serving

import inconvenient as ic
from inconvenient.errors import InputError, MissingDependencyError, NotAvailableError

pytest.importorskip("kagglehub", reason="the extra `sources` is not installed")
__all__ = ["quick"]

API = "/api/v1/datasets.DatasetApiService"
FILE = "ruthgn/beers/beer ratings.csv"


@pytest.fixture
def server(quick, monkeypatch, tmp_path):
    from kagglesdk import kaggle_env

    monkeypatch.setenv("HOME", str(tmp_path))  # no login of this machine's user
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLEHUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as running:
        # The client knows its servers by name; this one is called its local one.
        monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
        local = kaggle_env.KaggleEnv.LOCAL
        monkeypatch.setitem(kaggle_env._env_to_endpoint, local, running.url)
        facts = {
            "ref": "ruthgn/beers", "title": "Beers", "currentVersionNumber": 3,
            "licenseName": "CC0: Public Domain", "description": "Ratings.\n- abv: share of alcohol",
        }  # fmt: skip
        running.files[f"{API}/GetDataset"] = json.dumps(facts).encode()
        columns = [{"name": "overall", "description": "mean of all reviews", "type": "numeric"}]
        data = [{"name": "beer ratings.csv", "columns": columns}]
        running.files[f"{API}/GetDatasetMetadata"] = json.dumps({"info": {"data": data}}).encode()
        running.files[f"{API}/DownloadDataset"] = table()
        yield running


def table(encoding: str = "utf-8", n: int = 400) -> bytes:
    frame = pd.DataFrame(
        {
            "style": [f"Kölsch {j % 5}" for j in range(n)],
            "abv": [j % 13 / 2 for j in range(n)],
            "when": [f"2020-01-{1 + j % 28:02d}" for j in range(n)],
            "overall": [j % 50 / 10 for j in range(n)],
        }
    )
    return frame.to_csv(index=False).encode(encoding)


def test_a_file_with_what_its_page_says(server, quick) -> None:
    dataset = ic.add_dataset(f"kaggle:{FILE}", target="overall")
    assert (dataset.task, len(dataset)) == ("regression", 400)
    assert dataset.features == ["style", "abv", "when"]
    assert dataset.target_description == "mean of all reviews"
    assert dataset.feature_descriptions["abv"] == "share of alcohol"
    assert dataset.frame["when"].iloc[0] == 18262
    assert dataset.licence == "CC0: Public Domain"
    assert dataset.source == "Kaggle dataset ruthgn/beers version 3, file beer ratings.csv"
    files = sorted(p.relative_to(quick / "datasets").as_posix() for p in quick.rglob("*.parquet"))
    assert files == [f"kaggle/{FILE}.parquet"]
    assert not (quick / "downloads" / "kaggle" / "ruthgn" / "beers").exists()
    assert "KAGGLEHUB_CACHE" not in os.environ
    asked = len(server.asked)
    assert ic.load_dataset(f"kaggle:{FILE}").hash == dataset.hash
    assert len(server.asked) == asked


def test_no_target_is_known(server) -> None:
    with pytest.raises(InputError, match=r"names no target.*style, abv, when, overall"):
        ic.load_dataset(f"kaggle:{FILE}")


def test_a_page_that_wants_a_login_costs_the_texts_alone(server) -> None:
    server.faults[f"{API}/GetDatasetMetadata"] = [403]
    dataset = ic.add_dataset(f"kaggle:{FILE}", target="overall")
    assert dataset.target_description == ""
    assert dataset.feature_descriptions["abv"] == "share of alcohol"


def test_windows_text(server) -> None:
    server.files[f"{API}/DownloadDataset"] = table("cp1252")
    dataset = ic.add_dataset(f"kaggle:{FILE}", target="overall")
    assert dataset.frame["style"].iloc[0] == "Kölsch 0"


@pytest.mark.parametrize("count", [1, 2])
def test_a_whole_dataset_holds_one_table(server, count: int) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("about.txt", "x")
        for j in range(count):
            file.writestr(f"part {j}.csv", table())
    server.files[f"{API}/DownloadDataset"] = archive.getvalue()
    if count == 1:
        assert len(ic.add_dataset("kaggle:ruthgn/beers", target="overall")) == 400
    else:
        with pytest.raises(
            InputError, match=r"one table, got part 0.csv, part 1.csv; name one, as"
        ):
            ic.add_dataset("kaggle:ruthgn/beers", target="overall")


def test_a_broken_download_goes_on_where_it_stopped(server) -> None:
    # The client writes a mebibyte at a time; what is less than one is lost with the connection.
    server.files[f"{API}/DownloadDataset"] = table(n=100_000)
    server.faults[f"{API}/DownloadDataset"] = ["cut"]
    assert len(ic.add_dataset(f"kaggle:{FILE}", target="overall")) == 100_000
    assert (f"{API}/DownloadDataset", f"bytes={1 << 20}-") in server.asked


@pytest.mark.parametrize(
    ("call", "fault", "error", "message"),
    [
        ("GetDataset", 404, InputError, r"Kaggle has no such file or dataset ruthgn/beers"),
        ("DownloadDataset", 404, InputError, r"Kaggle has no such file or dataset ruthgn/beers"),
        ("GetDataset", 500, NotAvailableError, r"Kaggle was asked for .* error 500"),
        ("DownloadDataset", 500, NotAvailableError, r"Kaggle was asked for .* error 500"),
        (
            "DownloadDataset",
            403,
            NotAvailableError,
            r"known users only \(error 403\); log in first",
        ),
        ("GetDataset", "stall", NotAvailableError, r"Kaggle was asked for .* silent for too long"),
        ("DownloadDataset", "stall", NotAvailableError, r"Kaggle was asked .* silent for too long"),
        ("DownloadDataset", "damage", NotAvailableError, r"another MD5 than it announced"),
        ("DownloadDataset", "cut", NotAvailableError, r"the connection broke off"),
    ],
)
def test_faults(server, quick, call: str, fault: int | str, error: type, message: str) -> None:
    server.faults[f"{API}/{call}"] = [fault] * 10
    server.ranges = False
    with pytest.raises(error, match=message) as raised:
        ic.add_dataset(f"kaggle:{FILE}", target="overall")
    assert "\n" not in str(raised.value)
    assert not (quick / "datasets").exists()


def test_without_a_network(server, cli, monkeypatch) -> None:
    from kagglesdk import kaggle_env

    monkeypatch.setitem(
        kaggle_env._env_to_endpoint, kaggle_env.KaggleEnv.LOCAL, "http://127.0.0.1:9"
    )
    status, _, err = cli("data", "add", f"kaggle:{FILE}", "--target", "overall")
    assert status == 1
    assert err.startswith(
        "error: Kaggle was asked for dataset ruthgn/beers, but it cannot be reach"
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["kaggle:ruthgn", "kaggle:a/b/versions/x/c.csv"])
def test_names_that_are_none(quick, name: str) -> None:
    with pytest.raises(InputError, match=r"named owner/name/file.csv"):
        ic.load_dataset(name)


def test_an_older_version(server) -> None:
    name = "kaggle:ruthgn/beers/versions/2/beer ratings.csv"
    assert " version 2, " in ic.add_dataset(name, target="overall").source


def test_a_missing_client_names_the_extra(quick, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "kagglehub", None)
    with pytest.raises(MissingDependencyError, match=r"kagglehub is needed.*\[sources\]"):
        ic.load_dataset(f"kaggle:{FILE}")
