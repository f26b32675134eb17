"""Empty environments, and the files of a release built from a clean copy of this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Environment:
    """A virtual environment with nothing in it but what is installed here, without pip and without compiled files.

    Parameters
    ----------
    root
        The folder to make.
    python
        The interpreter; that of this process by default.
    """

    def __init__(self, root: Path, python: Path | None = None) -> None:
        if python is None:
            venv.create(root, with_pip=False, symlinks=True)
        else:
            subprocess.run([python, "-m", "venv", "--without-pip", root], check=True)
        self.programs = root / "bin"
        (self.packages,) = (root / "lib").glob("python*/site-packages")

    def install(self, *what: object) -> None:
        """Install by this process's pip, from wherever that is told to look."""
        options = ["--quiet", "--disable-pip-version-check", "--python", str(self.programs / "python")]
        words = [sys.executable, "-m", "pip", *options, "install", "--no-compile", *map(str, what)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"pip install {' '.join(map(str, what))} failed:\n{done.stderr}")

    def run(self, program: str, *words: object, folder: Path, **more: str) -> str:
        """Return what a program of the environment prints in a folder, with more variables; end where it fails."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [self.programs / program, *map(str, words)],
            capture_output=True, text=True, check=False, cwd=folder, env=clean | more,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{program} {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def copy_tree(folder: Path) -> Path:
    """Copy the files under version control to a folder: a build leaves files behind, and takes in stray ones."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(work: Path) -> tuple[Path, Path]:
    """Build the source distribution and, from it, the wheel; return both.

    Parameters
    ----------
    work
        An empty folder to work in.
    """
    builder = Environment(work / "builder")
    builder.install("build")
    builder.run("python", "-m", "build", "--outdir", work / "dist", copy_tree(work / "tree"), folder=work)
    (sdist,), (wheel,) = (work / "dist").glob("*.tar.gz"), (work / "dist").glob("*.whl")
    return sdist, wheel


def interpreters(wanted: tuple[str, ...]) -> dict[str, Path]:
    """Return the interpreters of these versions that are on the path or among pyenv's, by version."""
    found = {}
    for version in wanted:
        on_path = shutil.which(f"python{version}")
        candidates = [
            *([Path(on_path)] if on_path else []),
            *sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")),
        ]
        for candidate in candidates:
            says = [str(candidate), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
            done = subprocess.run(says, capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                found[version] = candidate
                break
    return found
