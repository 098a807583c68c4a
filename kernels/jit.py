"""The compiler switch of all kernels, with a disk cache that any edit here invalidates."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba import config, njit, types
from numba.core import caching

__all__ = [
    "CACHE_FOLDER",
    "CODES",
    "CODES_OUT",
    "FLAGS",
    "MATRIX",
    "MATRIX_OUT",
    "ROWS",
    "ROWS_OUT",
    "SINGLE",
    "SINGLE_OUT",
    "TENSOR",
    "TENSOR_OUT",
    "VECTOR",
    "VECTOR_OUT",
    "inline",
    "kernel",
    "source_digest",
]

# Argument types of the signatures: inputs are read-only and C-order, filled arrays are not.
VECTOR = types.Array(types.float64, 1, "C", readonly=True)
MATRIX = types.Array(types.float64, 2, "C", readonly=True)
TENSOR = types.Array(types.float64, 3, "C", readonly=True)
ROWS = types.Array(types.int64, 1, "C", readonly=True)
FLAGS = types.Array(types.boolean, 1, "C", readonly=True)
CODES = types.Array(types.int8, 3, "C", readonly=True)
SINGLE = types.Array(types.float32, 1, "C", readonly=True)
VECTOR_OUT = types.Array(types.float64, 1, "C")
MATRIX_OUT = types.Array(types.float64, 2, "C")
TENSOR_OUT = types.Array(types.float64, 3, "C")
ROWS_OUT = types.Array(types.int64, 1, "C")
CODES_OUT = types.Array(types.int8, 3, "C")
SINGLE_OUT = types.Array(types.float32, 1, "C")


def source_digest(folder: Path | None = None) -> str:
    """Return the SHA-256 hex digest over names and contents of all kernel files.

    Numba's own cache looks at the file of the compiled function only, so an edited callee in
    another file would leave stale machine code; here the digest is part of every cache key.
    """
    digest = hashlib.sha256()
    for path in sorted((folder or Path(__file__).parent).glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


_DIGEST = source_digest()


def _cache_folder() -> Path | None:
    """Return a writable folder for compiled code, or None where there is none."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    candidates = [
        config.CACHE_DIR,
        os.path.join(home, "inconvenient", "numba"),
        os.path.join(tempfile.gettempdir(), "inconvenient-numba"),
    ]
    for candidate in filter(None, candidates):
        # By Numba's version too: two that share a folder would overwrite each other's files, and an
        # index of the one may then point at code of the other.
        folder = Path(candidate, f"kernels-{_DIGEST[:16]}-numba-{numba.__version__}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


#: Where compiled code is kept; None without the JIT or without a folder that can be written.
CACHE_FOLDER = None if config.DISABLE_JIT else _cache_folder()


class _Locator(caching._CacheLocator):
    """Places compiled functions in our folder, stamped with the digest of all kernel files."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._line = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(CACHE_FOLDER)

    def get_source_stamp(self) -> str:
        return _DIGEST

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _CacheImpl(caching.CompileResultCacheImpl):
    """Numba's storage of compiled functions, with our locator."""

    _locator_classes = (_Locator,)


class _Cache(caching.FunctionCache):
    """Numba's function cache; the digest is in the key too, should a user force other locators."""

    _impl_class = _CacheImpl

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        # A full disk must not stop a computation that only lacks a place for its machine code.
        with contextlib.suppress(OSError):
            yield

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        # Numba's key does not tell code with bounds checks from code without.
        return (*super()._index_key(sig, codegen), _DIGEST, bool(config.BOUNDSCHECK))


def inline(py_func: Callable[..., Any]) -> Any:
    """Compile a small helper that only kernels call, into each of them.

    A division by zero gives infinity or NaN, as in NumPy: a check before every division would keep
    loops out of the vector registers.
    """
    return njit(error_model="numpy", nogil=True)(py_func)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for one explicit signature, or load it from the cache.

    Parameters
    ----------
    signature : numba signature
        Of the array types of this module. Arrays that are filled come last and have names
        ending in ``_out``.
    """

    def decorate(py_func: Callable[..., Any]) -> Any:
        compiled = inline(py_func)
        if config.DISABLE_JIT:
            return compiled
        if CACHE_FOLDER is not None:
            compiled._cache = _Cache(py_func)
        compiled.compile(signature)
        compiled.disable_compile()
        return compiled

    return decorate
