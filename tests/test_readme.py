"""The README's example runs as it stands there, and what it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_example(readme: str, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said, score = done.stdout.splitlines()
    assert said in readme
    assert f"{float(score):.2f};" in readme


def test_folders_and_commands_exist(root: Path, readme: str) -> None:
    tracked = {"kernels", "inconvenient", "dvc-store", "tests", "bench"}
    for name in re.findall(r"`((?:\w|-)+/(?:\w+/)?)`", readme):
        if name.split("/")[0] in tracked:
            assert (root / name).is_dir(), name
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", readme, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_extras_are_those_of_the_metadata(root: Path, readme: str) -> None:
    import tomllib

    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    for extra in extras:
        assert f"`{extra}`" in readme, extra
