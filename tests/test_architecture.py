"""The layers import downwards only, and only some of them touch files or a network."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest
from import_graph import ROOT, imported, modules, own

#: Layers from the top; a module imports from its own layer and from those below.
LAYERS = [
    {"cli", "stages"},
    {"report", "verify"},
    {"benchmark"},
    {"llm", "evaluation"},
    {"baselines"},
    {"shifts"},
    {"selection"},
    {"data"},
    {"kernels"},
]
LEAVES = {"config", "store", "errors", "fetch"}
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

#: Layers that may open files; the others get and give values, or go through the store.
FILES = {"data", "shifts", "store", "config", "fetch", "stages", "cli"}
FILE_CALLS = {
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "rmtree",
    "read_csv", "read_parquet", "to_csv", "to_parquet", "read_table", "write_table", "mkstemp",
    "makedirs",
}  # fmt: skip
NETWORK = {"socket", "http", "urllib.request", "requests", "httpx", "aiohttp", "distributed"}


def layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_go_one_way(module: str) -> None:
    mine = layer(module)
    for name in own(module):
        other = layer(name)
        if not other or other == mine:
            continue
        if mine in LEAVES or not mine:
            assert other in LEAVES, f"{module} is a leaf and imports {name}"
        elif other not in LEAVES:
            # The two of the top layer and of `llm`, `evaluation` do not import each other either.
            assert RANK[other] > RANK[mine], f"{module} imports {name} from a layer above or beside"


def test_every_module_has_a_layer() -> None:
    assert {layer(m) for m in modules()} - {""} <= set(RANK) | LEAVES


def test_kernels_import_numpy_and_numba_only() -> None:
    allowed = {"numpy", "numba", "inconvenient", *sys.stdlib_module_names}
    for module in modules():
        if layer(module) == "kernels":
            assert {name.split(".")[0] for name in imported(module)} <= allowed, module


def test_nothing_imports_the_folder_kernels_by_its_own_name() -> None:
    for module in modules():
        assert not any(name.split(".")[0] == "kernels" for name in imported(module)), module


def calls(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            found.add(getattr(function, "attr", getattr(function, "id", "")))
    return found


@pytest.mark.parametrize("module", sorted(modules()))
def test_only_some_layers_touch_files(module: str) -> None:
    # The kernels keep compiled code; the report reads the template that ships with it.
    allowed = {"inconvenient.kernels.jit": FILE_CALLS, "inconvenient.report.build": {"read_text"}}
    if layer(module) not in FILES:
        assert not calls(modules()[module]) & FILE_CALLS - allowed.get(module, set())


@pytest.mark.parametrize("module", sorted(modules()))
def test_only_some_layers_use_a_network(module: str) -> None:
    allowed = ".data.sources" in module or module == "inconvenient.store.cluster"
    if layer(module) not in {"llm", "fetch"} and not allowed:
        assert not imported(module) & NETWORK


def test_no_module_is_a_drawer() -> None:
    assert not [m for m in modules() if m.rsplit(".")[-1] in {"utils", "util", "helpers", "common"}]


@pytest.mark.parametrize("module", sorted(modules()))
def test_modules_open_with_a_promise_and_name_what_is_public(module: str) -> None:
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module opens with one sentence that says what it promises"


@pytest.mark.parametrize("module", sorted(modules()))
def test_files_stay_readable(module: str) -> None:
    # Near 300 lines is the aim; a file far above holds a second idea.
    assert len(modules()[module].read_text(encoding="utf-8").splitlines()) <= 450


def test_the_version_is_stated_once_in_two_places() -> None:
    import inconvenient

    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert inconvenient.__version__ == metadata["project"]["version"]


def test_every_requirement_of_make_is_pinned() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    pinned = {canonicalize_name(pin.name) for pin in pins}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = metadata["project"]
    asked = list(project["dependencies"])
    for extra in ("quick", "build", "dev", "dvc", "report", "llm", "local-llm"):
        asked += project["optional-dependencies"][extra]
    names = {canonicalize_name(Requirement(text).name) for text in asked}
    assert names - {"inconvenient"} <= pinned
