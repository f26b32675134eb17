"""The wheel that people install: built from this tree, installed apart from it, and used from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import leadline
from command_line import Result

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from a copy: a build leaves files behind, and takes in those that an earlier one left."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(built)]
    subprocess.run([*PIP, "wheel", *options, str(tree)], check=True)
    (path,) = built.glob("*.whl")
    return path


class Environment:
    """A virtual environment with the wheel in it, which borrows all other packages from that of the tests."""

    def __init__(self, root: Path, wheel: Path) -> None:
        venv.create(root, with_pip=False)
        places = sysconfig.get_paths("venv", {"base": str(root), "platbase": str(root)})
        self.packages, self.programs = Path(places["purelib"]), Path(places["scripts"])
        python = self.programs / Path(sys.executable).name
        subprocess.run([*PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], check=True)
        # A path in such a file is looked through after this environment's own, and .pth files in it count for nothing:
        # an editable install of Leadline there stays out of sight.
        borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (self.packages / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")

    def run(self, folder: Path, program: str, *words: str) -> Result:
        """Run a program of the environment in a folder."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [str(self.programs / program), *words],
            capture_output=True, text=True, check=False, cwd=folder, env=environment,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"), wheel)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("leadline/")}
    package = ROOT / "src" / "leadline"
    files = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    assert inside == {name for name in files if "__pycache__" not in name}


def test_the_installed_copy_is_the_one_that_runs(installed: Environment, tmp_path: Path) -> None:
    result = installed.run(tmp_path, "python", "-c", "import leadline; print(leadline.__file__)")
    assert (result.code, result.err) == (0, "")
    assert result.out.strip() == str(installed.packages / "leadline" / "__init__.py")


def test_from_the_version_to_a_report(installed: Environment, tmp_path: Path) -> None:
    def call(*words: str) -> Result:
        result = installed.run(tmp_path, "leadline", *words)
        assert (result.code, result.err) == (0, ""), result
        return result

    assert call("--version").out == f"leadline {leadline.__version__}\n"
    assert "mean absolute error" in call("demo", "-o", "d", "--quiet").out
    assert call("fit", "d/source.npz", "-o", "m.leadline", "--format", "json").data["n_samples"] == 599
    (row,) = call("estimate", "m.leadline", "d/target_noise2.npz", "--format", "json").data
    assert row["interval"][0] <= row["accuracy"] <= row["interval"][1]
    call("report", "d/source.npz", "d/target_noise2.npz", "--methods", "auto,ac", "-o", "page.html")
    assert "<!doctype html>" in (tmp_path / "page.html").read_text().lower()
    assert [line["method"] for line in call("methods", "--format", "json").data] == list(leadline.METHODS)
    assert "cifar10" in [line["name"] for line in call("bench", "list", "--format", "json").data]
