"""What a user's model is, for keys of records: its source, what that imports, its parameters."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import pickle
import site
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["UnknownSource", "identity_of"]


class UnknownSource(Exception):
    """A model whose source or state cannot be told, so that its results cannot be stored."""


def identity_of(model: Any) -> dict[str, Any]:
    """Return JSON-able facts that change whenever the results of a model could.

    Parameters
    ----------
    model : object
        An estimator, a class or a function.

    Returns
    -------
    dict
        ``value``: names and parameters, nested as they are; of a function, the values it takes
        from around it, too. ``sources``: SHA-256 of the source of every module of the user's that
        its imports reach. ``libraries``: versions of the installed packages among them.

    Raises
    ------
    UnknownSource
        If a class or function has no source file (it was typed in a notebook or at a prompt) or
        one that was edited after it was imported, or if a parameter cannot be pickled.

    Notes
    -----
    What a model reads from elsewhere (files, the environment, a server) is not seen.
    """
    seen = _Seen()
    value = seen.value(model)
    return {"value": value, "sources": seen.sources, "libraries": seen.libraries}


class _Seen:
    """The modules met on the way through a model."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.libraries: dict[str, str] = {}
        self._facts: dict[int, tuple[Any, Any]] = {}  # by id, with the object, which keeps its id

    def value(self, value: Any) -> Any:
        """Return a value as JSON-able facts."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return [type(value).__name__, repr(value)]
        if id(value) not in self._facts:
            self._facts[id(value)] = value, "itself"
            self._facts[id(value)] = value, self._compound(value)
        return self._facts[id(value)][1]

    def _compound(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [type(value).__name__, *map(self.value, value)]
        if isinstance(value, Mapping):
            pairs = [[self.value(k), self.value(v)] for k, v in value.items()]
            return [type(value).__name__, *sorted(pairs, key=repr)]
        if isinstance(value, set | frozenset):
            return ["set", *sorted(map(self.value, value), key=repr)]
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return ["array", value.dtype.str, list(value.shape), digest]
        if isinstance(value, type):
            for base in value.__mro__:
                self._module(base.__module__)
            return ["class", value.__module__, value.__qualname__]
        if isinstance(value, types.ModuleType):
            self._module(value.__name__)
            return ["module", value.__name__]
        if isinstance(value, types.BuiltinFunctionType | np.ufunc):
            return ["builtin", repr(value)]
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return ["method", value.__func__.__qualname__, self.value(value.__self__)]
        if isinstance(value, functools.partial):
            return ["partial", *map(self.value, (value.func, value.args, value.keywords))]
        own = self.value(type(value))
        if hasattr(value, "get_params"):
            return [own, self.value(value.get_params(deep=False))]
        try:
            return [own, hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()]
        except Exception as error:  # whatever its class raises
            raise UnknownSource(f"{type(value).__name__} cannot be pickled ({error})") from error

    def _function(self, function: types.FunctionType) -> Any:
        """Return a function's place and, of a user's, the values it takes from around it."""
        place = [function.__module__, function.__qualname__]
        if not self._module(function.__module__):
            return ["function", *place]
        code = function.__code__
        names = sorted(name for name in code.co_names if name in function.__globals__)
        around = {name: self.value(function.__globals__[name]) for name in names}
        cells = [self.value(cell.cell_contents) for cell in function.__closure__ or ()]
        defaults = self.value([function.__defaults__, function.__kwdefaults__])
        where = repr(list(code.co_positions()))  # of several functions on one line
        return ["function", *place, where, around, cells, defaults]

    def _module(self, name: str) -> bool:
        """Note a module, and those it imports if it is the user's; return whether it is."""
        if name in self.sources:
            return True
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return False
        if top in self.libraries:
            return False
        path = _path(name)
        if path is None:
            raise UnknownSource(f"{name} has no source file")
        if top == "inconvenient" or path.startswith(_installed()):
            self.libraries[top] = _version(top)
            return False
        source = _source(name, path)
        self.sources[name] = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        for other in _imported(name, path, source):
            if _path(other) is not None:  # else a name in a module, or one that is not installed
                self._module(other)
        return True


def _path(name: str) -> str | None:
    """Return the source file of a module, imported or not; of an installed one, any file."""
    module = sys.modules.get(name)
    if module is not None:
        place: str | None = getattr(module, "__file__", None)
        if place is None and getattr(module, "__path__", None):  # a namespace package
            place = str(next(iter(module.__path__))) + os.sep
        return place
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return None if spec is None or not spec.has_location else spec.origin


def _source(name: str, path: str) -> str:
    """Return the source of a module, which must still be what was imported."""
    module = sys.modules.get(name)
    if path.endswith(os.sep):
        return ""
    try:
        if module is not None:
            source = inspect.getsource(module)
        else:
            loader: Any = getattr(importlib.util.find_spec(name), "loader", None)
            source = loader.get_source(name)
        code = compile(source, path, "exec", dont_inherit=True)
    except (OSError, TypeError, SyntaxError, AttributeError, ImportError) as error:
        raise UnknownSource(f"the source of {name} cannot be read") from error
    if module is not None:
        written = set(_codes(code))
        if any(own not in written for own in _running(module, path)):
            raise UnknownSource(f"{path} was edited after it was imported")
    return source


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _running(module: types.ModuleType, path: str) -> Iterator[types.CodeType]:
    """Yield the code of a module's functions and methods."""
    for held in list(vars(module).values()):
        if getattr(held, "__module__", None) != module.__name__:
            continue
        members = list(vars(held).values()) if isinstance(held, type) else [held]
        for member in members:
            if isinstance(member, types.FunctionType) and member.__code__.co_filename == path:
                yield member.__code__


def _imported(name: str, path: str, source: str) -> list[str]:
    """Return the modules that a module imports anywhere, and names that may be modules."""
    package = getattr(sys.modules.get(name), "__package__", None)
    if package is None:
        inside = os.path.basename(path).startswith("__init__.")
        package = name if inside else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = importlib.util.resolve_name(
                    "." * node.level + (node.module or ""), package or None
                )
            except ImportError:
                continue
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return sorted(found)


def _version(top: str) -> str:
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:  # its distribution has another name
        return str(getattr(sys.modules.get(top), "__version__", ""))


@functools.cache
def _installed() -> tuple[str, ...]:
    """Return the folders of installed packages."""
    paths = [sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(path + os.sep for path in paths)
