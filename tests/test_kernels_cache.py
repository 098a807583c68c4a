"""Compiled code on disk: an edited callee and another compiler setting make it invalid."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.jit

CALLEE = """
from .jit import inline

@inline
def step(x):
    return x + {amount}
"""

CALLER = """
import numpy as np
from numba import types
from .callee import step
from .jit import VECTOR, kernel

@kernel(types.float64(VECTOR, types.int64))
def stepped(x, i):
    return step(x[i])

hits = sum(stepped.stats.cache_hits.values())
"""


@pytest.fixture
def run(root, tmp_path):
    """A package of two kernels files beside our compiler switch, run in a process of its own."""
    package = tmp_path / "little"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(root / "kernels" / "jit.py", package / "jit.py")
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(amount=1))

    def call(index=0, **extra):
        code = (
            "import numpy as np; from little import caller; "
            f"print(caller.stepped(np.zeros(2), {index}), caller.hits)"
        )
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **extra}
        environment.pop("NUMBA_CACHE_DIR", None)
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )

    call.package = package
    return call


def test_an_edited_callee_is_compiled_again(run):
    assert run().stdout.split() == ["1.0", "0"]
    assert run().stdout.split() == ["1.0", "1"]
    (run.package / "callee.py").write_text(CALLEE.format(amount=2))
    assert run().stdout.split() == ["2.0", "0"]


def test_bounds_are_checked_although_unchecked_code_is_cached(run):
    assert run().returncode == 0
    checked = run(index=2, NUMBA_BOUNDSCHECK="1")
    assert checked.returncode != 0
    assert "IndexError" in checked.stderr
    # And the checked code is not what a plain run loads.
    assert run().stdout.split() == ["1.0", "1"]
