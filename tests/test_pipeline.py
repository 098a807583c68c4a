"""dvc.yaml names what its stages read, and the stages read nothing else."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from import_graph import closure, dependency

from inconvenient.errors import ConfigError, NotAvailableError
from inconvenient.stages.__main__ import STAGES, main
from inconvenient.stages.run import Run
from inconvenient.store import ALGORITHM

PROFILES = ["quick", "full"]
#: Stages that not every profile has.
PROFILES_OF = {"seeds": ["quick"]}


@pytest.fixture(scope="module")
def pipeline(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def test_stages_are_one_list(pipeline: dict[str, Any]) -> None:
    assert tuple(pipeline) == STAGES == tuple(ALGORITHM)
    # DVC's cost per stage grows with their number.
    assert len(STAGES) * len(PROFILES) <= 50


@pytest.mark.parametrize("stage", STAGES)
def test_code_dependencies_are_the_import_graph(pipeline: dict[str, Any], stage: str) -> None:
    start = ("inconvenient", "inconvenient.stages.__main__", f"inconvenient.stages.{stage}")
    graph = {dependency(module) for module in closure(*start, "inconvenient.stages")}
    named = {d for d in pipeline[stage]["deps"] if d.startswith(("inconvenient", "kernels"))}
    assert named == graph


@pytest.mark.parametrize("stage", STAGES)
def test_parameters_commands_and_outs(pipeline: dict[str, Any], stage: str) -> None:
    entry = pipeline[stage]
    module = importlib.import_module(f"inconvenient.stages.{stage}")
    named = [name.replace("profiles.${item.profile}", "profile") for name in entry["params"]]
    assert sorted(named) == sorted(module.PARAMETERS)
    assert entry["matrix"] == {"profile": PROFILES_OF.get(stage, PROFILES)}
    assert entry["cmd"] == f"python -m inconvenient.stages {stage} ${{item.profile}}"
    assert entry["outs"] == [f"artefacts/${{item.profile}}/{stage}"]


def test_profiles_are_those_of_the_parameters(root: Path) -> None:
    from inconvenient.config import load_params

    assert sorted(load_params(root / "params.yaml").profiles) == sorted(PROFILES)


def test_a_stage_without_its_input_says_which_to_run(root: Path, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    run = Run(tmp_path, "reference", "quick", 1)
    with pytest.raises(NotAvailableError, match="run `dvc repro split@quick`"):
        run.read("split/datasets")
    with pytest.raises(ConfigError, match="profile must be one of full, quick, got 'fast'"):
        Run(tmp_path, "split", "fast")


def test_the_command_explains_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    assert main(["split", "quick"]) == 1
    assert "error: a parameter file was needed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
