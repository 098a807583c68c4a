"""Kernels call nothing that differs between machines, and their sums are not rearranged."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_code import kernels

pytestmark = pytest.mark.jit


# "haswell" has fused multiply-adds, which this machine may lack.
@pytest.fixture(scope="module", params=["", "haswell"], ids=["this processor", "haswell"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    if request.param:
        environment["NUMBA_CPU_NAME"] = request.param
    script = Path(__file__).with_name("kernel_code.py")
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "fuses": bool(request.param)}


@pytest.mark.slow
def test_no_call_no_flag_no_fused_instruction(code: Any) -> None:
    assert {name: found for name, found in code["kernels"].items() if any(found.values())} == {}


@pytest.mark.slow
def test_every_kernel_was_looked_at(root: Path, code: Any) -> None:
    written = set()
    for path in (root / "kernels").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if any(ast.unparse(mark).startswith("kernel(") for mark in marks):
                written.add(f"{path.stem}.{node.name}")
    assert len(written) >= 28
    assert written <= set(code["kernels"])


@pytest.mark.slow
def test_what_is_looked_for_would_be_found(code: Any) -> None:
    found = code["controls"]
    assert not any(found.pop("clean").values())
    assert found.pop("fastmath")["flags"] == ["fast"]
    contract = found.pop("contract")
    assert contract["flags"] == ["contract"]
    if code["fuses"]:
        assert contract["instructions"]
    assert {name: set(f["calls"]) & {"exp", "log1p", "sin", "pow", "numba_xxdot"}
            for name, f in found.items()} == {
        "exp": {"exp"}, "log1p": {"log1p"}, "sin": {"sin"}, "pow": {"pow"},
        "exp of an array": {"exp"}, "dot": {"numba_xxdot"},
    }  # fmt: skip


def test_no_kernel_asks_for_fast_math_or_threads() -> None:
    options = {name: function.targetoptions for name, function in kernels()}
    assert len(options) >= 28
    for name, chosen in options.items():
        assert not set(chosen) & {"fastmath", "parallel", "inline"}, name
