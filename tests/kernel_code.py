"""Prints what the machine code of every kernel calls and contains; run in a process of its own.

With a fresh ``NUMBA_CACHE_DIR``: code that was loaded from disk cannot be looked at.
"""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import float64, njit
from numba.core.dispatcher import Dispatcher

import inconvenient.kernels

#: Memory, exceptions and reference counts; and two functions whose results IEEE 754 prescribes.
HARMLESS = re.compile(
    r"mem(set|cpy|move)|Py\w+|_Py\w+|NRT_\w+|numba_(gil_ensure|gil_release|unpickle|do_raise"
    r"|runtime_build_excinfo_struct)|sqrt|floor"
)
#: Operations on floats that are exact, or exactly rounded, or only move values.
EXACT = re.compile(r"llvm\.(sqrt|floor|fabs|copysign|masked\.\w+)\.")
DECLARED = re.compile(r'^declare .*?@"?([^"(\s]+)"?\(', flags=re.MULTILINE)
#: What would let the compiler change the order of a sum, or how often it rounds.
LOOSE = re.compile(
    r"= (?:\w+ )?(?:f\w+|call|select|phi)\s(?:\w+ )*?(fast|reassoc|contract|arcp|afn) "
)
#: Fused multiply-adds, and approximations that each make of processor has its own of.
INEXACT = re.compile(r"\bv?(?:fn?m(?:add|sub)|rcp|rsqrt)\w*")
CALLED = re.compile(r"(?:movabsq\s+\$|(?:callq?|jmpq?)\s+)([A-Za-z_][\w.$]*)")


def outside(name: str) -> bool:
    """Tell whether a declared function may compute what differs between machines."""
    if name.startswith("llvm."):
        floats = re.search(r"\.(v\d+)?f\d+\b", name) is not None
        foreign = name.startswith("llvm.x86.") and ".atomic." not in name
        return foreign or (floats and not EXACT.match(name))
    # Numba's own symbols are mangled: kernels that kernels call.
    return not (HARMLESS.fullmatch(name) or name.startswith(("_ZN", ".")))


def findings(dispatcher: Any) -> dict[str, list[str]]:
    """Look at the optimised intermediate code and at the assembly of a compiled function."""
    found: dict[str, set[str]] = {"calls": set(), "flags": set(), "instructions": set()}
    for signature in dispatcher.signatures:
        code, assembly = dispatcher.inspect_llvm(signature), dispatcher.inspect_asm(signature)
        found["calls"] |= {name for name in DECLARED.findall(code) if outside(name)}
        found["calls"] |= {name for name in CALLED.findall(assembly) if outside(name)}
        found["flags"] |= {*LOOSE.findall(code)}
        if '"unsafe-fp-math"="true"' in code:
            found["flags"].add("unsafe-fp-math")
        found["instructions"] |= {*INEXACT.findall(assembly)}
    return {kind: sorted(names) for kind, names in found.items()}


def kernels() -> Iterator[tuple[str, Any]]:
    """Yield every function that is compiled once all kernels are loaded."""
    package = inconvenient.kernels
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(module).items():
            own = isinstance(value, Dispatcher) and value.__module__ == module.__name__
            if own and value.signatures:  # what they call among themselves included
                yield f"{info.name}.{name}", value


def controls() -> Iterator[tuple[str, Any]]:
    """Yield functions that do what a kernel must not."""

    def compiled(function: Any, *types: Any, **options: Any) -> Any:
        dispatcher = njit(**options)(function)
        dispatcher.compile(types)
        return dispatcher

    yield "clean", compiled(lambda x, y: math.sqrt(abs(x)) + math.floor(y), float64, float64)
    yield "exp", compiled(lambda x: math.exp(x), float64)
    yield "log1p", compiled(lambda x: np.log1p(x), float64)
    yield "sin", compiled(lambda x: np.sin(x), float64)
    yield "pow", compiled(lambda x, y: x**y, float64, float64)
    yield "exp of an array", compiled(lambda x: np.exp(x), float64[::1])
    yield "dot", compiled(lambda x: np.dot(x, x), float64[::1])
    yield "fastmath", compiled(lambda x: x.sum(), float64[::1], fastmath=True)
    options = {"fastmath": {"contract"}}
    yield "contract", compiled(lambda x, y, z: x * y + z, float64, float64, float64, **options)


if __name__ == "__main__":
    groups = {"kernels": kernels(), "controls": controls()}
    print(json.dumps({g: {name: findings(f) for name, f in groups[g]} for g in groups}))
