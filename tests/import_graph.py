"""What each module of the package imports, read from its syntax."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "inconvenient"


@functools.cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name; kernels through their link."""
    found = {}
    folders = [PACKAGE, *(p for p in PACKAGE.iterdir() if p.is_dir())]
    paths = {path for folder in folders for path in folder.rglob("*.py")}
    for path in sorted(paths):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _statements(node: ast.AST, *, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test) and not lazy:
            yield from (s for other in child.orelse for s in _statements(other, lazy=lazy))
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _statements(child, lazy=lazy)


def _is_lazy(module: str, tree: ast.Module) -> bool:
    """Tell whether a package imports the names it shows types for when they are first used.

    The package itself does so, too, but holds every module: counting what it shows would make
    everything depend on everything.
    """
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return "." in module and "__getattr__" in names


@functools.cache
def imported(module: str) -> frozenset[str]:
    """Return the names that a module imports when loaded or run, not those for types alone."""
    path = modules()[module]
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement in _statements(tree, lazy=_is_lazy(module, tree)):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
            continue
        base = statement.module or ""
        if statement.level:
            package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
            kept = package[: len(package) - statement.level + 1]
            base = ".".join([*kept, *([base] if base else [])])
        names.add(base)
        names.update(f"{base}.{alias.name}" for alias in statement.names)
    return frozenset(names)


def own(module: str) -> set[str]:
    """Return the modules of the package that a module imports, with the packages they lie in."""
    found = set()
    for name in imported(module):
        if name in modules():
            parts = name.split(".")
            found.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
    return {name for name in found if name in modules()}


def closure(*start: str) -> set[str]:
    """Return the modules that importing and running the given ones can load."""
    todo, done = list(start), set()
    while todo:
        module = todo.pop()
        if module not in done:
            done.add(module)
            todo.extend(own(module))
    return done


def dependency(module: str) -> str:
    """Return the path that dvc.yaml names for a module: its layer, or a leaf's or stage's file."""
    path = modules()[module].relative_to(ROOT)
    if path.parts[1] == "kernels":
        return "kernels"
    if len(path.parts) == 2 or path.parts[1] == "stages":
        return path.as_posix()
    return "/".join(path.parts[:2])
