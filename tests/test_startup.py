"""What a first selection loads: no scikit-learn, and the kernels of its own task only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = "inconvenient.kernels."

# Notes which modules are there when verification begins, and once the call has returned.
CODE = """
import json, sys

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "fit_independent":
        sys.setprofile(None)
        before.extend(sys.modules)

before = []
sys.setprofile(watch)
import inconvenient as ic
import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 5))
score = X @ [0.5, -0.3, 0.2, 0.1, 0.0] + rng.normal(size=1000)
y = {"regression": score, "binary": score > 0, "multiclass": np.digitize(score, [-0.5, 0.5])}
CALL
sys.setprofile(None)
print(json.dumps([before, list(sys.modules)]))
"""


def loaded(call: str) -> tuple[set[str], set[str]]:
    code = CODE.replace("CALL", call)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before, "the call was never verified"
    return set(before), set(after)


def kernels(modules: set[str]) -> set[str]:
    return {name.removeprefix(KERNELS) for name in modules if name.startswith(KERNELS)}


@pytest.mark.jit
@pytest.mark.parametrize(
    ("task", "own"),
    [
        ("regression", {"ols", "screen_ols"}),
        ("binary", {"elementary", "logistic", "screen_logistic"}),
        ("multiclass", {"elementary", "multinomial", "multinomial_influence"}),
    ],
)
@pytest.mark.parametrize(
    "wish",
    ['operation="flip"', 'operation="attenuate", factor=0.5', 'bin="top", strategy="steer"'],
    ids=["push", "exchange", "steer"],
)
def test_select_loads_what_its_task_needs(task: str, own: set[str], wish: str) -> None:
    call = f"assert ic.select(X, y['{task}'], {wish}, on_unmet='raise').verified"
    before, after = loaded(call)
    for modules in (before, after):
        assert not modules & {"sklearn", "statsmodels", "scipy.stats", "scipy.optimize"}
        assert {"jit", "linalg"} <= kernels(modules)
        assert kernels(modules) - {"jit", "linalg", "ranking", "screen"} <= own
    assert not {m for m in after if m.startswith("inconvenient.")} & {
        "inconvenient.config", "inconvenient.store", "inconvenient.data.loading",
        "inconvenient.data.reading", "inconvenient.data.split", "inconvenient.shifts",
    }  # fmt: skip


@pytest.mark.jit
@pytest.mark.parametrize(
    ("task", "own"),
    [
        ("regression", {"ols", "elementary"}),
        ("binary", {"elementary", "logistic", "removal_logistic"}),
    ],
)
def test_audit_loads_what_its_task_needs(task: str, own: set[str]) -> None:
    before, after = loaded(f"ic.audit(X[:200], y['{task}'][:200], feature='x4', goals='flip')")
    assert not (before | after) & {"sklearn", "statsmodels", "scipy.stats", "scipy.optimize"}
    shared = {"jit", "linalg", "ranking", "removal", "removal_rows", "removal_shortlist"}
    assert kernels(after) - shared == own


def test_a_split_brings_its_library_itself() -> None:
    code = (
        "import sys, inconvenient.data as data\n"
        "assert data.Split and set(data.__all__) <= set(dir(data))\n"
        "assert 'sklearn' not in sys.modules\n"
        "assert all(callable(getattr(data, name)) for name in data.__all__)\n"
        "try: data.no_such_name\n"
        "except AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "module 'inconvenient.data' has no attribute 'no_such_name'"


@pytest.mark.slow
@pytest.mark.jit
def test_the_bench_of_it_prints_rows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its seconds are judged by a person on an idle machine.
    monkeypatch.syspath_prepend(str(root / "bench"))
    import startup

    rows = [row.strip("| ").split(" | ") for row in startup.rows(rounds=1)]
    assert [limit for _, _, limit in rows] == ["0.7", "1.5", "1.5", "1.5"]
    assert all(float(seconds) >= 0.0 for _, seconds, _ in rows)
