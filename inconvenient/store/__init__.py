"""Files and records: atomic, byte-stable, resumable; a leaf that imports no other layer."""

from inconvenient.store.files import (
    canonical_json,
    check_writable,
    file_hash,
    frame_bytes,
    pack_frames,
    read_frame,
    unpack_frames,
    write_atomic,
    write_folder,
    write_frame,
)
from inconvenient.store.limits import Limits
from inconvenient.store.records import ALGORITHM, Store, content_key, library_versions
from inconvenient.store.units import Unit, run_units, worker_count
from inconvenient.store.work import last_line

__all__ = [
    "ALGORITHM",
    "Limits",
    "Store",
    "Unit",
    "canonical_json",
    "check_writable",
    "content_key",
    "file_hash",
    "frame_bytes",
    "last_line",
    "library_versions",
    "pack_frames",
    "read_frame",
    "run_units",
    "unpack_frames",
    "worker_count",
    "write_atomic",
    "write_folder",
    "write_frame",
]
