"""The README's example runs as it stands there, and what it names exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from scoring import needs_publication


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(readme: str, kind: str, section: str) -> list[str]:
    """Return the blocks of code of a section."""
    (text,) = re.findall(rf"^{section}\n(.*?)^## ", readme, flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL)


def test_example(readme: str, tmp_path: Path) -> None:
    code = blocks(readme, "python", "## Example")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said, score = done.stdout.splitlines()
    assert said in readme
    assert f"{float(score):.2f};" in readme


@pytest.mark.slow
@needs_publication
@pytest.mark.usefixtures("data_folder")
def test_a_new_users_model_is_scored_by_the_commands_shown(
    readme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = "## Score your own model"
    model, again = blocks(readme, "python", section)
    assert len([line for line in model.splitlines() if line.strip()]) == 12
    (tmp_path / "mymodel.py").write_text(model, encoding="utf-8")
    first, second = blocks(readme, "sh", section)[0].splitlines()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)

    def run(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kept() -> int:
        return sum(path.is_file() for path in (tmp_path / "store").glob("??/*"))

    run(first)
    fits = kept()
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert len(scores) == scores["shift_id"].nunique() == 10
    assert set(scores["status"]) == {"ok"}
    assert scores["score_ood"].notna().all()
    assert "linear (published)" in run(second)
    assert kept() == fits > 10 * 3  # nothing is fitted twice

    code = "import inconvenient as ic\nfrom mymodel import Boosting\n" + again
    names = {"email_spam/*": scores["shift_id"][0], "workers=2": "workers=1"}
    for name, value in names.items():
        assert name in code
        code = code.replace(name, value)
    run(f"{sys.executable} -W error -c {shlex.quote(code + 'print(table)')}")


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
