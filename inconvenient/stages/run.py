"""What every stage has: its parameters, the artefacts it reads, and the folder it writes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from inconvenient import __version__
from inconvenient.config import Params, ProfileParams, as_json, load_params
from inconvenient.errors import ConfigError, NotAvailableError
from inconvenient.store import (
    ALGORITHM,
    Store,
    Unit,
    frame_bytes,
    library_versions,
    read_frame,
    run_units,
    worker_count,
    write_folder,
)

__all__ = ["Run", "stack"]


class Run:
    """One run of a stage.

    Parameters
    ----------
    root : path
        The checkout: params.yaml, artefacts/.
    stage : str
    profile : str
        An entry of ``profiles`` in params.yaml.
    workers : int, optional
        See :func:`inconvenient.store.worker_count`.

    Raises
    ------
    ConfigError
        If params.yaml cannot be used or has no such profile.
    """

    def __init__(self, root: Path, stage: str, profile: str, workers: int | None = None) -> None:
        self.stage = stage
        self.profile_name = profile
        self.params: Params = load_params(root / "params.yaml")
        if profile not in self.params.profiles:
            known = ", ".join(sorted(self.params.profiles))
            raise ConfigError(f"profile must be one of {known}, got {profile!r}")
        self.profile: ProfileParams = self.params.profiles[profile]
        self.folder = root / "artefacts" / profile
        self.store = Store()
        self.workers = worker_count(workers)
        self.inputs: dict[str, str] = {}

    def read(self, name: str) -> pd.DataFrame:
        """Return an artefact of an earlier stage, such as "split/datasets", and note its hash."""
        return self._read(self.profile_name, name, name)

    def read_of(self, profile: str, name: str) -> pd.DataFrame:
        """Return an artefact of another profile."""
        return self._read(profile, name, f"{profile}/{name}")

    def _read(self, profile: str, name: str, noted: str) -> pd.DataFrame:
        path = self.folder.parent / profile / f"{name}.parquet"
        try:
            value = path.read_bytes()
        except FileNotFoundError as error:
            earlier = name.partition("/")[0]
            raise NotAvailableError(
                f"{path} is needed and absent; run `dvc repro {earlier}@{profile}`"
            ) from error
        self.inputs[noted] = hashlib.sha256(value).hexdigest()
        return read_frame(value)

    def compute(self, units: Sequence[Unit]) -> list[pd.DataFrame]:
        """Return the frames of units, from the record store where it has them."""
        label = f"{self.stage} {self.profile_name}"
        return run_units(units, store=self.store, workers=self.workers, label=label)

    def facts(self, parameters: Sequence[str]) -> dict[str, Any]:
        """Return what an artefact says of itself: version, parameters, hashes of its inputs."""
        return {
            "stage": self.stage,
            "profile": self.profile_name,
            "package": __version__,
            "libraries": library_versions("numba", "pyarrow"),
            "algorithm": ALGORITHM[self.stage],
            "parameters": {name: self._parameter(name) for name in sorted(parameters)},
            "inputs": dict(sorted(self.inputs.items())),
        }

    def _parameter(self, name: str) -> Any:
        block, _, entry = name.partition(".")
        if block == "profile":
            return as_json(getattr(self.profile, entry))
        return as_json(getattr(self.params, block))

    def write(self, frames: Mapping[str, pd.DataFrame], parameters: Sequence[str]) -> None:
        """Write the stage's folder, one Parquet file per frame, all or nothing."""
        facts = self.facts(parameters)
        self.write_files({f"{k}.parquet": frame_bytes(v, facts) for k, v in frames.items()})

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write the stage's folder from bytes, all or nothing."""
        write_folder(self.folder / self.stage, files)


def stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return frames under one another; empty ones, whose columns have no types, are left out."""
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]
