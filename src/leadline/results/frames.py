"""Results as tables of other tools: Arrow, pandas, polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Tabular(ABC):
    """A result that is a table: says its columns once, as Arrow."""

    @abstractmethod
    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""

    def to_pandas(self) -> Any:
        """Return the same as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the same as a polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_arrow())
