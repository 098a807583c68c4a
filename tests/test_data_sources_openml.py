"""OpenML through its real client, from a local server with recorded answers and with faults."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
import yaml
from sources_server import Server, add_openml, add_openml_suite, quick, serving

import inconvenient as ic
from inconvenient.data import sources_web
from inconvenient.errors import InputError, MissingDependencyError, NotAvailableError, StoreError

openml = pytest.importorskip("openml", reason="the extra `sources` is not installed")
__all__ = ["quick"]


@pytest.fixture
def server(quick, monkeypatch):
    with serving() as running:
        monkeypatch.setattr(openml.config, "server", f"{running.url}/api/v1/xml")
        monkeypatch.setattr(openml.config, "connection_n_retries", 1)
        yield running


def bits(server: Server) -> set[str]:
    return {path for path, _ in server.asked}


def test_a_dataset_with_its_description(server, quick) -> None:
    add_openml(server, 561)
    dataset = ic.load_dataset("openml:561")
    assert (dataset.name, dataset.task, dataset.target) == ("openml:561", "regression", "class")
    assert dataset.features == ["vendor", "MYCT", "MMIN", "MMAX", "CACH", "CHMIN", "CHMAX"]
    assert len(dataset) == 209
    assert dataset.y[0] == 199
    assert dataset.licence == "Public"
    assert dataset.source == "OpenML dataset 561, cpu version 1"
    assert dataset.description.startswith("**Author**")
    described = dataset.feature_descriptions
    assert described["MYCT"] == "machine cycle time in nanoseconds (integer)"
    # What the client holds as small integers must not overflow.
    assert {dataset.frame[c].dtype.kind for c in ("CHMIN", "CACH", "MMAX")} <= {"i", "f"}
    assert {str(dataset.frame[c].dtype) for c in dataset.features[1:]} <= {"int64", "float64"}
    # Parquet, facts, and nothing of the download.
    files = sorted(p.relative_to(quick).as_posix() for p in quick.rglob("*") if p.is_file())
    assert files == ["datasets/openml/561.parquet", "datasets/openml/561.yaml"]
    facts = yaml.safe_load((quick / "datasets/openml/561.yaml").read_text(encoding="utf-8"))
    assert facts["checksum"] == "e1c69097976ecd20de7d215919130ccc"
    content = (quick / "datasets/openml/561.parquet").read_bytes()
    assert facts["sha256"] == hashlib.sha256(content).hexdigest() == dataset.hash


def test_the_second_load_needs_no_network(server, quick, monkeypatch) -> None:
    add_openml(server, 42585)
    first = ic.load_dataset("openml:42585")
    assert first.classes == ("Adelie", "Chinstrap", "Gentoo")
    asked = len(server.asked)
    for module in [m for m in sys.modules if m.split(".")[0] in ("openml", "requests")]:
        monkeypatch.setitem(sys.modules, module, None)
    second = ic.load_dataset("openml:42585")
    assert len(server.asked) == asked
    assert second.hash == first.hash
    assert second.frame.equals(first.frame)
    assert second.frame["sex"].isna().sum() > 0
    assert not any(value is None for value in second.frame["sex"])


def test_binary_and_the_same_bytes_twice(server) -> None:
    add_openml(server, 3)
    dataset = ic.add_dataset("openml:3")
    assert (dataset.task, dataset.classes, len(dataset.features)) == (
        "binary",
        ("nowin", "won"),
        36,
    )
    assert ic.add_dataset("openml:3", again=True).hash == dataset.hash


def test_ignored_columns_and_rare_classes(server, quick) -> None:
    add_openml(server, 62)
    with pytest.raises(
        InputError, match=r"openml:62: target 'type' .* 'amphibian' has 4; .*--drop-"
    ):
        ic.load_dataset("openml:62")
    assert not (quick / "datasets").exists()
    dataset = ic.add_dataset("openml:62", drop_rare=True)
    assert "animal" not in dataset.features
    facts = yaml.safe_load((quick / "datasets/openml/62.yaml").read_text(encoding="utf-8"))
    assert facts["dropped_columns"] == {"animal": "the source says to ignore it"}
    assert facts["dropped_classes"] == {"amphibian": "4 rows"}
    assert len(dataset) == 101 - 4


def test_row_ids_several_marks_and_constants(server, quick) -> None:
    add_openml(server, 42585, row_id_attribute="island", ignore_attribute="sex,flipper_length_mm")
    facts = ic.add_dataset("openml:42585")
    assert facts.features == ["culmen_length_mm", "culmen_depth_mm", "body_mass_g"]
    text = (quick / "datasets/openml/42585.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["dropped_columns"]["island"] == "the source's row id"


def test_dates_become_days(server) -> None:
    rows = "".join(f"'2020-01-{1 + j % 28:02d}',{j % 7},1,{j}\n" for j in range(60))
    file = (
        "@RELATION d\n@ATTRIBUTE 'the day' DATE 'yyyy-MM-dd'\n@ATTRIBUTE x NUMERIC\n"
        f"@ATTRIBUTE one NUMERIC\n@attribute y numeric\n@DATA\n{rows}"
    ).encode()
    kinds = {"MYCT": "date"}
    md5 = hashlib.md5(file).hexdigest()
    add_openml(server, 561, file=file, kinds=kinds, md5_checksum=md5, default_target_attribute="y")
    features = server.files["/api/v1/xml/data/features/561"].replace(b"MYCT", b"the day")
    server.files["/api/v1/xml/data/features/561"] = features
    dataset = ic.load_dataset("openml:561")
    assert dataset.features == ["the day", "x"]  # `one` is constant
    assert dataset.frame["the day"].iloc[0] == 18262
    assert dataset.feature_descriptions["the day"] == "(days since 1970-01-01)"


def test_text_columns_and_a_target_with_gaps(server) -> None:
    add_openml(server, 40945)
    dataset = ic.load_dataset("openml:40945")
    assert (dataset.task, dataset.target, len(dataset)) == ("binary", "survived", 1309)
    assert dataset.frame["age"].isna().sum() == 263
    assert isinstance(dataset.frame["name"].iloc[0], str)
    with pytest.raises(
        InputError, match=r"is there with the target 'survived' \(binary\), not 'fare"
    ):
        ic.add_dataset("openml:40945", target="fare")
    with pytest.raises(InputError, match=r"1 of 1309 are missing.*--missing-target drop"):
        ic.add_dataset("openml:40945", target="fare", again=True)
    assert ic.load_dataset("openml:40945").target == "survived"
    fares = ic.add_dataset("openml:40945", target="fare", again=True, missing_target="drop")
    assert (fares.task, fares.dropped_rows, len(fares)) == ("regression", 1, 1308)


def test_a_dataset_without_a_target(server) -> None:
    add_openml(server, 40945, default_target_attribute=None)
    with pytest.raises(InputError, match=r"names no target; .*--target COLUMN.*pclass, survived"):
        ic.load_dataset("openml:40945")
    with pytest.raises(InputError, match=r"target 'Fare' is no column; did you mean 'fare'"):
        ic.add_dataset("openml:40945", target="Fare")
    assert ic.add_dataset("openml:40945", target="survived", drop=["boat", "body"]).task == "binary"


def test_other_targets_are_no_features(server) -> None:
    add_openml(server, 40945, default_target_attribute="survived,boat")
    with pytest.raises(InputError, match=r"names no target"):
        ic.load_dataset("openml:40945")
    assert "boat" not in ic.add_dataset("openml:40945", target="survived").features


def test_the_paper_names_a_target_where_the_source_does_not(server) -> None:
    add_openml(server, 3, default_target_attribute=None)
    assert ic.load_dataset("openml:3").target == "class"


def test_a_suite(server, cli) -> None:
    for number in (3, 61, 561):
        add_openml(server, number)
    tasks = [
        (1, 61, "class", "Supervised Classification"),
        (2, 561, "CACH", "Supervised Regression"),
        (3, 61, "class", "Supervised Classification"),
        (4, 99, "y", "Supervised Regression"),
    ]
    add_openml_suite(server, 353, tasks)
    status, out, err = cli("data", "add", "--suite", "openml:353", "--json")
    assert status == 1, err
    assert '"target": "CACH"' in out, err
    assert "openml:99: not added: OpenML" in err
    assert "2 of 3 datasets were added" in err
    status, out, _ = cli("data", "list")
    assert "openml:61 " in out
    assert cli("data", "show", "openml:561")[0] == 0


@pytest.mark.parametrize("place", ["description", "features", "data"])
@pytest.mark.parametrize("fault", [404, 500, "stall", "cut"])
def test_faults_become_one_sentence(server, quick, cli, place: str, fault: int | str) -> None:
    data = add_openml(server, 61)
    paths = {
        "description": "/api/v1/xml/data/61",
        "features": "/api/v1/xml/data/features/61",
        "data": data,
    }
    server.ranges = False
    server.faults[paths[place]] = [fault] * 10
    status, _, err = cli("data", "add", "openml:61")
    assert status == 1
    assert err.startswith("error: OpenML ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not (quick / "datasets").exists()
    if isinstance(fault, int):
        assert f"error {fault}" in err
    # It was the server's fault alone.
    server.faults.clear()
    assert cli("data", "add", "openml:61")[0] == 0


def test_a_broken_download_goes_on_where_it_stopped(server) -> None:
    path = add_openml(server, 3)
    size = len(server.files[path])
    server.faults[path] = ["cut", "cut"]
    assert len(ic.load_dataset("openml:3")) == 3196
    asked = [wanted for place, wanted in server.asked if place == path]
    assert asked == ["", f"bytes={size // 2}-", f"bytes={size // 2 + (size - size // 2) // 2}-"]


def test_a_download_goes_on_in_the_next_run(server, quick) -> None:
    path = add_openml(server, 3)
    server.faults[path] = ["cut", 500, 500]
    with pytest.raises(
        NotAvailableError, match=r"file of dataset 3.*error 500.*has arrived is kept"
    ):
        ic.load_dataset("openml:3")
    assert (quick / "downloads/openml/3/3.arff.part").stat().st_size > 0
    server.asked.clear()
    ic.load_dataset("openml:3")
    assert next(wanted for place, wanted in server.asked if place == path).startswith("bytes=2")
    assert not list((quick / "downloads").rglob("*.part"))


def test_a_full_disk_is_no_fault_of_the_network(server, quick) -> None:
    add_openml(server, 61)
    folder = quick / "downloads/openml/61"
    folder.mkdir(parents=True)
    (folder / "61.arff.part").symlink_to("/dev/full")
    with pytest.raises(StoreError, match=r"61.arff.part had to be written, but: No space left"):
        ic.load_dataset("openml:61")


def test_two_processes_fetch_once(server, quick) -> None:
    path = add_openml(server, 61)
    code = (
        f"import openml, inconvenient as ic; openml.config.server = {openml.config.server!r}; "
        "print(ic.load_dataset('openml:61').hash)"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {run.communicate(timeout=60)[0] for run in runs}
    assert len(said) == 1
    assert [place for place, _ in server.asked].count(path) == 1


def test_a_wrong_checksum_is_refused(server, quick) -> None:
    path = add_openml(server, 61)
    server.faults[path] = ["damage"]
    with pytest.raises(NotAvailableError, match=r"MD5 \w{32}, but its description says ad484452"):
        ic.load_dataset("openml:61")
    assert not (quick / "datasets").exists()
    assert not list(quick.rglob("*.arff*[!k]"))
    assert len(ic.load_dataset("openml:61")) == 150


def test_an_unknown_number(server) -> None:
    from sources_server import NAMESPACE

    error = f"<oml:error {NAMESPACE}><oml:code>111</oml:code><oml:message>Unknown dataset"
    server.errors["/api/v1/xml/data/9"] = (412, f"{error}</oml:message></oml:error>".encode())
    with pytest.raises(InputError, match=r"OpenML has no dataset 9; check the number"):
        ic.load_dataset("openml:9")


def test_without_a_network(server, cli, monkeypatch) -> None:
    monkeypatch.setattr(openml.config, "server", "http://127.0.0.1:9/api/v1/xml")
    status, _, err = cli("data", "add", "openml:61")
    assert status == 1
    assert err == (
        "error: OpenML was asked for dataset 61, but it cannot be reached; check the network "
        "connection and run the same again, what has arrived is kept\n"
    )
    status, _, err = cli("data", "add", "--suite", "paper")
    assert status == 1
    assert "3 in a row got no answer; the rest was not tried" in err
    assert err.splitlines()[-1] == "0 of 200 datasets were added"


def test_the_clients_settings_are_put_back(server) -> None:
    add_openml(server, 61)
    before = dict(openml.config.get_config_as_dict())
    requests = openml._api_calls.requests
    ic.load_dataset("openml:61")
    with pytest.raises(NotAvailableError):
        ic.load_dataset("openml:62")
    assert openml.config.get_config_as_dict() == before
    assert openml._api_calls.requests is requests


def test_a_missing_client_names_the_extra(quick, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "openml", None)
    with pytest.raises(MissingDependencyError, match=r"openml is needed.*inconvenient\[sources\]"):
        ic.load_dataset("openml:61")


def test_damaged_files_are_not_loaded(server, quick) -> None:
    add_openml(server, 61)
    ic.load_dataset("openml:61")
    path = quick / "datasets/openml/61.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(
        NotAvailableError, match=r"damaged.*`inconvenient data add openml:61 --again`"
    ):
        ic.load_dataset("openml:61")
    path.with_suffix(".yaml").write_text("name: x")
    with pytest.raises(ic.InconvenientError, match=r"exactly the keys.*openml:61 --again"):
        ic.load_dataset("openml:61")
    assert len(ic.add_dataset("openml:61", again=True)) == 150


def test_the_file_that_is_no_arff(server) -> None:
    file = b"<html>moved</html>\n"
    add_openml(server, 61, file=file, md5_checksum=hashlib.md5(file).hexdigest())
    with pytest.raises(InputError, match=r"file of dataset 61 is no ARFF that can be read: "):
        ic.load_dataset("openml:61")


def test_a_sparse_file(server) -> None:
    rows = "".join(f"{{0 {j % 9},1 b,2 {j}}}\n{{1 c}}\n" for j in range(1, 60))
    head = "@relation s\n@attribute n numeric\n@attribute c {a,b,c}\n@attribute y numeric\n@data\n"
    file = (head + rows + "{2 3,0 ?}\n").encode()
    md5 = hashlib.md5(file).hexdigest()
    add_openml(
        server, 561, file=file, md5_checksum=md5, format="Sparse_ARFF", default_target_attribute="y"
    )
    frame = ic.load_dataset("openml:561").frame
    assert frame.iloc[:2].to_numpy().tolist() == [[1, "b", 1], [0, "c", 0]]
    assert frame["c"].iloc[-1] == "a"
    assert frame["n"].isna().sum() == 1


def test_an_address_that_is_none(server) -> None:
    add_openml(server, 61, url="file:///etc/hostname")
    with pytest.raises(InputError, match=r"must have an address with http or https"):
        ic.load_dataset("openml:61")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openml:titanic", r"OpenML's datasets have numbers, as in openml:40945, got 'titanic'"),
        ("openml:", r"is named openml:NUMBER, kaggle:.*got 'openml:'"),
        ("openml:../3", r"'openml:../3' names no dataset; it must read openml:NUMBER"),
    ],
)
def test_names_that_are_none(quick, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ic.load_dataset(name)


def test_selection_runs_on_what_was_added(server) -> None:
    add_openml(server, 561)
    dataset = ic.load_dataset("openml:561")
    selection = ic.select(dataset.X, dataset.y, operation="attenuate", feature="MMAX", factor=0.5)
    assert np.isin(selection.indices, np.arange(209)).all()


def test_lines_that_describe_columns() -> None:
    text = (
        "1. Age: in years\n * `sex` - f or m\n- **rank**: place (1 is best)\nB.M.I = kg/m2\nNote: x"
    )
    found = sources_web.column_texts(text, ["age", "sex", "rank", "b.m.i", "other"])
    assert found == {
        "age": "in years", "sex": "f or m", "rank": "place (1 is best)", "b.m.i": "kg/m2",
    }  # fmt: skip
