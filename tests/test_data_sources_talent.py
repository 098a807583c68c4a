"""TALENT from an archive with the layout of the released one, here and at an address."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sources_server import quick, serving

import inconvenient as ic
from inconvenient.data import sources_web
from inconvenient.data.sources_talent import ARCHIVE
from inconvenient.errors import InputError, NotAvailableError

__all__ = ["quick"]


def array(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def contents() -> dict[str, bytes]:
    """Return the files of three datasets, one per task, split as the collection splits them."""
    rng = np.random.default_rng(0)
    files = {}
    for name, task in (("wine", "regression"), ("club", "binclass"), ("beans", "multiclass")):
        n, classes = 200, 2 if task == "binclass" else 3
        numbers = rng.normal(size=(n, 2)).round(3)
        numbers[0, 1] = np.nan
        levels = np.array([["a", "nan"], ["b", "x"]], dtype=object)[np.arange(n) % 2]
        y = numbers[:, 0] * 2 if task == "regression" else np.arange(n) % classes
        y = np.array([f"kind {v}" for v in y], dtype=object) if task == "multiclass" else y
        info = {"task_type": task, "n_num_features": 2, "n_cat_features": 2, "name": name.title()}
        if task == "regression":
            info["num_feature_intro"] = {"acid": "acidity in g/l", "sugar": "sugar in g/l"}
        for part, rows in (
            ("train", slice(0, 120)),
            ("val", slice(120, 160)),
            ("test", slice(160, n)),
        ):
            files[f"data/{name}/N_{part}.npy"] = array(numbers[rows])
            files[f"data/{name}/y_{part}.npy"] = array(y[rows])
            if task != "multiclass":
                files[f"data/{name}/C_{part}.npy"] = array(levels[rows])
        files[f"data/{name}/info.json"] = json.dumps(info).encode()
    return files


def packed(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return archive.getvalue()


@pytest.fixture
def archive(tmp_path, quick, monkeypatch) -> Path:
    path = tmp_path / "talent.zip"
    path.write_bytes(packed(contents()))
    monkeypatch.setenv(ARCHIVE, str(path))
    return path


def test_a_regression_with_names(archive) -> None:
    dataset = ic.load_dataset("talent:wine")
    assert (dataset.task, dataset.target, len(dataset)) == ("regression", "target", 200)
    assert dataset.features == ["acid", "sugar", "c0", "c1"]
    assert dataset.feature_descriptions == {"acid": "acidity in g/l", "sugar": "sugar in g/l"}
    assert dataset.frame["sugar"].isna().sum() == 1
    assert dataset.frame["c1"].isna().sum() == 100
    np.testing.assert_allclose(dataset.y, 2 * dataset.frame["acid"], rtol=1e-15)
    archive.unlink()
    assert ic.load_dataset("talent:wine").hash == dataset.hash


def test_classes(archive) -> None:
    assert ic.load_dataset("talent:club").classes == ("0", "1")
    dataset = ic.load_dataset("talent:beans")
    assert dataset.classes == ("kind 0", "kind 1", "kind 2")
    assert dataset.features == ["n0", "n1"]


def test_an_unpacked_folder(tmp_path, quick, archive) -> None:
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "unpacked")
    one = ic.add_dataset("talent:wine", archive=str(tmp_path / "unpacked"))
    assert ic.add_dataset("talent:wine", again=True).hash == one.hash


def test_an_address(quick, archive, cli) -> None:
    with serving() as server:
        server.files["/talent.zip"] = archive.read_bytes()
        server.faults["/talent.zip"] = ["cut"]
        address = f"{server.url}/talent.zip"
        assert cli("data", "add", "talent:wine", "--archive", address)[0] == 0
        assert [wanted != "" for _, wanted in server.asked] == [False, True]
        # The archive stays for the next dataset.
        assert cli("data", "add", "talent:club", "--archive", address)[0] == 0
        assert len(server.asked) == 2


@pytest.mark.parametrize("fault", [404, 500, "stall", "cut"])
def test_an_address_that_fails(quick, archive, fault: int | str) -> None:
    with serving() as server:
        server.ranges = False
        server.files["/talent.zip"] = archive.read_bytes()
        server.faults["/talent.zip"] = [fault] * 10
        with pytest.raises(
            (NotAvailableError, InputError), match=r"of the TALENT archive (was|has)"
        ):
            ic.add_dataset("talent:wine", archive=f"{server.url}/talent.zip")


def test_an_address_of_something_else(quick) -> None:
    with serving() as server:
        server.files["/talent.zip"] = b"<html>please log in</html>"
        for _ in range(2):
            with pytest.raises(NotAvailableError, match=r"is no zip archive"):
                ic.add_dataset("talent:wine", archive=f"{server.url}/talent.zip")
        assert len(server.asked) == 2


def test_no_archive(quick, monkeypatch, tmp_path) -> None:
    monkeypatch.delenv(ARCHIVE, raising=False)
    with pytest.raises(NotAvailableError, match=r"none is named; download the archive.*--archive"):
        ic.load_dataset("talent:wine")
    with pytest.raises(NotAvailableError, match=r"was needed at .*nothing.zip, absent"):
        ic.add_dataset("talent:wine", archive=str(tmp_path / "nothing.zip"))


def test_an_unknown_name(archive) -> None:
    with pytest.raises(InputError, match=r"no dataset 'Wine' among its 3; did you mean 'wine'"):
        ic.load_dataset("talent:Wine")


class _Program:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("info.json", b"{", r"info.json is no JSON"),
        ("info.json", b'{"task_type": "ranking"}', r"needs a task_type of regression, binclass"),
        ("y_val.npy", None, r"200 rows of features and 160 targets"),
        ("N_val.npy", array(np.ones((40, 3))), r"parts of N do not have the same columns"),
        ("N_val.npy", b"nothing", r"N_val.npy is no array of numbers or strings"),
        ("N_val.npy", array(np.full((40, 2), "x", dtype=object)), r"N_\*.npy holds what is no num"),
        ("y_val.npy", array(np.full(40, "x", dtype=object)), r"y holds what is no number"),
    ],
)
def test_damaged_datasets(tmp_path, quick, file: str, content: bytes | None, message: str) -> None:
    files = contents()
    files.pop(f"data/wine/{file}")
    if content is not None:
        files[f"data/wine/{file}"] = content
    path = tmp_path / "damaged.zip"
    path.write_bytes(packed(files))
    with pytest.raises(InputError, match=rf"talent:wine.*{message}|{message}"):
        ic.add_dataset("talent:wine", archive=str(path))


def test_an_array_runs_no_program(tmp_path, quick, capsys) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "|O", "fortran_order": False, "shape": (40, 2)}
    )
    files = contents()
    files["data/wine/C_val.npy"] = file.getvalue() + pickle.dumps(_Program())
    path = tmp_path / "hostile.zip"
    path.write_bytes(packed(files))
    with pytest.raises(InputError, match=r"C_val.npy is no array.*it asks for builtins.print"):
        ic.add_dataset("talent:wine", archive=str(path))
    assert capsys.readouterr().out == ""


def test_a_damaged_member(tmp_path, quick) -> None:
    content = bytearray(packed(contents()))
    place = content.index(b"data/wine/N_train.npy") + 200
    content[place : place + 20] = bytes(20)
    path = tmp_path / "damaged.zip"
    path.write_bytes(bytes(content))
    with pytest.raises(NotAvailableError, match=r"N_train.npy of the TALENT archive is damaged"):
        ic.add_dataset("talent:wine", archive=str(path))


def test_a_file_that_changed_meanwhile_is_brought_anew(tmp_path, quick) -> None:
    with serving() as server:
        server.files["/a.zip"] = bytes(range(256)) * 20
        server.faults["/a.zip"] = ["cut", 500, 500]
        path = tmp_path / "a.zip"
        with pytest.raises(NotAvailableError, match=r"error 500"):
            sources_web.download(f"{server.url}/a.zip", path, host="H", what="a")
        assert path.with_name("a.zip.part").stat().st_size == 2560
        server.files["/a.zip"] = bytes(5000)
        sources_web.download(f"{server.url}/a.zip", path, host="H", what="a")
        assert path.read_bytes() == bytes(5000)
        assert sorted(p.name for p in tmp_path.glob("a.zip*")) == ["a.zip", "a.zip.lock"]
