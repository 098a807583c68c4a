"""Loading: what a dataset holds, and what is said where data are absent or damaged."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest

from inconvenient.data import Dataset, list_datasets, load_dataset, loading
from inconvenient.data.stored import GROUP_COLUMN, with_gaps
from inconvenient.errors import InputError, NotAvailableError
from inconvenient.store import read_frame


@pytest.fixture
def home(tmp_path, data_folder, monkeypatch):
    """Put a copy of two datasets and the catalogue where no checkout is in the way."""
    folder = tmp_path / "home" / "data"
    folder.mkdir(parents=True)
    for name in ("catalogue.parquet", "catalogue.sha256", "email_spam.parquet"):
        shutil.copyfile(data_folder / name, folder / name)
    monkeypatch.setattr(loading, "checkouts", list)
    monkeypatch.setenv("INCONVENIENT_HOME", str(folder.parent))
    return folder


def flip(path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))


def test_a_dataset_and_its_documentation(data_folder) -> None:
    listed = list_datasets()
    for name in listed["name"]:
        dataset = load_dataset(name)
        assert set(dataset.feature_descriptions) == set(dataset.features), name
        assert all(dataset.feature_descriptions.values())
        assert dataset.description
        assert dataset.target_description
        assert dataset.target not in dataset.features
        assert not dataset.frame[dataset.target].isna().any()
        assert isinstance(dataset.frame.index, pd.RangeIndex)
        assert GROUP_COLUMN not in dataset.frame
        row = listed.set_index("name").loc[name]
        assert (row["rows"], row["features"]) == (len(dataset), len(dataset.features))
        assert list(dataset.classes) == sorted(dataset.classes)
        if dataset.task == "regression":
            assert dataset.y.dtype == np.float64
            assert np.isfinite(dataset.y).all()
        else:
            assert dataset.y.dtype == np.int64
            np.testing.assert_array_equal(np.unique(dataset.y), np.arange(len(dataset.classes)))
        assert not dataset.y.flags.writeable
        for column in dataset.frame:
            values = dataset.frame[column]
            assert not any(value is None for value in values), f"{name}: {column} has None"


def test_known_leaks_are_gone(data_folder) -> None:
    leaks = {
        "flchain_death": {"futime", "chapter", "flc.grp"},
        "recidivism_nc": {"cens", "durat", "ldurat", "follow"},
        "kakadu_wtp": {"lower", "upper"},
        "forbes2000_market_value": {"rank", "name"},
        "psid_wages_panel": {"id"},
    }
    for name, columns in leaks.items():
        assert not columns & set(load_dataset(name).frame.columns)


def test_wrong_values_are_mended(data_folder) -> None:
    countries = set(load_dataset("forbes2000_market_value").frame["country"])
    assert not {"Korea", "Africa", "Islands", "Kong/China"} & countries
    kakadu = load_dataset("kakadu_wtp").frame["future"]
    assert kakadu.max() == 5
    assert kakadu.isna().sum() == 1
    assert load_dataset("college_graduation_rate").y.max() <= 100


def test_target_is_stored_transformed(data_folder) -> None:
    y = load_dataset("psid_wages_panel").y
    assert np.expm1(y).min() == pytest.approx(100)
    assert np.expm1(y).max() == pytest.approx(5100)


def test_home_is_read_without_a_checkout(home) -> None:
    assert len(load_dataset("email_spam")) == 3921


def test_absent_data(home, tmp_path, monkeypatch) -> None:
    with pytest.raises(NotAvailableError, match=r"flchain_death.parquet.*`dvc pull data.dvc`"):
        load_dataset("flchain_death")
    monkeypatch.setenv("INCONVENIENT_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(NotAvailableError, match=r"`inconvenient data build`"):
        list_datasets()


@pytest.mark.parametrize("name", ["email_spam.parquet", "catalogue.parquet", "catalogue.sha256"])
def test_a_flipped_byte_is_refused(home, name: str) -> None:
    load_dataset("email_spam")
    flip(home / name, (home / name).stat().st_size // 2)
    with pytest.raises(NotAvailableError, match=r"damaged|lacks"):
        load_dataset("email_spam")


def test_unknown_name_gets_the_closest(data_folder) -> None:
    with pytest.raises(InputError, match=r"'email_span'; closest: email_spam"):
        load_dataset("email_span")


def test_none_becomes_nan() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", None], dtype=object), "b": [1, 2]})
    assert np.isnan(with_gaps(frame)["a"].iloc[1])


def test_record_checks_itself() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]})
    with pytest.raises(InputError, match=r"no target column 'z'"):
        Dataset("t", frame, "z", "binary")
    with pytest.raises(InputError, match=r"task must be one of"):
        Dataset("t", frame, "y", "ranking")
    with pytest.raises(InputError, match=r"row 1 of the target 'y' is 'b'"):
        _ = Dataset("t", frame, "y", "binary", classes=("a",)).y


def test_files_hold_no_pandas_metadata(data_folder) -> None:
    import pyarrow.parquet as pq

    assert b"pandas" not in (pq.read_schema(data_folder / "email_spam.parquet").metadata or {})
    assert read_frame(data_folder / "psid_wages_panel.parquet").columns[-1] == GROUP_COLUMN
