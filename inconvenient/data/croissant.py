"""Croissant metadata of the exported datasets: what each file and column holds, for other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from inconvenient import __version__
from inconvenient.data.loading import catalogue
from inconvenient.data.stored import GROUP_COLUMN
from inconvenient.errors import NotAvailableError
from inconvenient.store import write_atomic

__all__ = ["CROISSANT", "croissant_bytes", "write_croissant"]

#: File of the metadata, in the folder of the datasets.
CROISSANT = "croissant.json"

_PAPER = "https://arxiv.org/abs/2610.21038"
_CITE = (
    "@misc{inconvenient, title={INCONVENIENT: A Benchmark to Assess LLM Generalization "
    "Capabilities from Convenience Samples}, eprint={2610.21038}, archivePrefix={arXiv}}"
)
_PUBLISHED = "2026-11-30"
_TYPES = {
    "number": "sc:Float",
    "integer": "sc:Integer",
    "boolean": "sc:Boolean",
    "text": "sc:Text",
}

# That of Croissant 1.0, as its specification prints it.
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant_bytes(folder: str | Path) -> bytes:
    """Return the metadata of a folder of datasets, the same bytes for the same data.

    Parameters
    ----------
    folder : path
        With ``catalogue.parquet`` and the file of every dataset in it.

    Returns
    -------
    bytes
        JSON-LD by Croissant 1.0: one file and one record set per dataset, one field per column.

    Raises
    ------
    NotAvailableError
        If the catalogue or a file is absent or damaged.
    """
    place = Path(folder)
    rows = catalogue(place).to_dict("records")
    content = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "inconvenient",
        "description": (
            f"The {len(rows)} datasets from which INCONVENIENT selects convenience samples. Each "
            "is a table with a target; its record set says what the columns are, and which one "
            "is the target."
        ),
        "url": _PAPER,
        "citeAs": _CITE,
        "datePublished": _PUBLISHED,
        "version": __version__,
        "license": sorted({str(row["licence"]) for row in rows}),
        "distribution": [_file(place, row) for row in rows],
        "recordSet": [_records(row) for row in rows],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8")


def write_croissant(folder: str | Path) -> Path:
    """Write the metadata of a folder of datasets beside them."""
    path = Path(folder) / CROISSANT
    write_atomic(path, croissant_bytes(folder))
    return path


def _file(folder: Path, row: Mapping[Any, Any]) -> dict[str, Any]:
    name = f"{row['name']}.parquet"
    try:
        size = (folder / name).stat().st_size
    except OSError as error:
        raise NotAvailableError(
            f"{folder / name} is needed and absent; bring it with `dvc pull data.dvc` or "
            f"`inconvenient data build {row['name']}`"
        ) from error
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "description": f"{row['source']}; licence: {row['licence']}",
        "contentUrl": name,
        "contentSize": f"{size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": row["sha256"],
    }


def _records(row: Mapping[Any, Any]) -> dict[str, Any]:
    texts = {
        **json.loads(row["feature_descriptions"]),
        row["target"]: f"Target ({row['task']}). {row['target_description']}".strip(),
        GROUP_COLUMN: f"Cluster of the row, by {row['group_column']}; no feature.",
    }
    name = row["name"]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": row["description"],
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{quote(column, safe='')}",
                "name": column,
                **({"description": texts[column]} if texts.get(column) else {}),
                "dataType": _TYPES[kind],
                "source": {
                    "fileObject": {"@id": f"{name}.parquet"},
                    "extract": {"column": column},
                },
            }
            for column, kind in json.loads(row["schema"]).items()
        ],
    }
