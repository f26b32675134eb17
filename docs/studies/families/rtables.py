"""Tables in packages of R, as Debian has them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import rdata
from downloads import debian_packages, file_in


def table(package: str, name: str, cache: Path) -> pd.DataFrame:
    """Return a table of a package, such as ``r-cran-mlbench``, which is only unpacked, never installed."""
    file = file_in(debian_packages((package,), cache)[package], f"{name}.rda")
    frame: pd.DataFrame = rdata.read_rda(file, default_encoding="ascii")[name]
    return frame.reset_index(drop=True).rename(columns=str)
