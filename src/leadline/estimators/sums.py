"""What blocks of rows leave behind: sums that add up exactly, whatever the blocks and their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.samples import Sample

Array = NDArray[np.float64]
Sums = Mapping[str, Array]
#: What a method carries from one pass over a target to the next.
State = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Tally:
    """A histogram to which every row adds one.

    Attributes
    ----------
    places
        Shape (n,): the bin of each row.
    size
        The number of bins.
    """

    places: NDArray[np.intp]
    size: int


@dataclass(frozen=True, eq=False)
class Rows:
    """What each row of a block adds to the sums, so that the sums can be taken by any grouping of the rows.

    Attributes
    ----------
    predicted
        Shape (n,): the predicted class of each row.
    n_classes
        The number of classes c.
    values
        Shape (n,): the per-sample values.
    more
        Further sums by name: amounts of shape (n,), or a :class:`Tally`.
    """

    predicted: NDArray[np.intp]
    n_classes: int
    values: Array
    more: Mapping[str, Array | Tally] = field(default_factory=dict)

    def empty(self, n_groups: int) -> dict[str, Array]:
        """Return sums of no rows: shapes (n_groups, c), (n_groups,) or (n_groups, bins)."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("count", "value", "square"), (self.n_classes,))
        shapes |= {name: (amount.size,) if isinstance(amount, Tally) else () for name, amount in self.more.items()}
        return {name: np.zeros((n_groups, *shape)) for name, shape in shapes.items()}

    def add_to(self, sums: Mapping[str, Array], groups: NDArray[np.intp]) -> None:
        """Add every row to the sums of its group, in place.

        Parameters
        ----------
        sums
            From :meth:`empty`.
        groups
            Shape (n,): the number of each row's group.
        """
        cells = groups * self.n_classes + self.predicted
        np.add.at(sums["count"].reshape(-1), cells, 1.0)
        np.add.at(sums["value"].reshape(-1), cells, self.values)
        np.add.at(sums["square"].reshape(-1), cells, self.values * self.values)
        for name, amount in self.more.items():
            if isinstance(amount, Tally):
                np.add.at(sums[name].reshape(-1), groups * amount.size + amount.places, 1.0)
            else:
                np.add.at(sums[name], groups, amount)

    def sums(self) -> dict[str, Array]:
        """Return the sums over all rows: shapes (c,), () and (bins,)."""
        c = self.n_classes
        sums = {
            "count": np.bincount(self.predicted, minlength=c),
            "value": np.bincount(self.predicted, weights=self.values, minlength=c),
            "square": np.bincount(self.predicted, weights=self.values * self.values, minlength=c),
        }
        for name, amount in self.more.items():
            if isinstance(amount, Tally):
                sums[name] = np.bincount(amount.places, minlength=amount.size)
            else:
                sums[name] = np.asarray(amount.sum())
        return {name: amount.astype(np.float64) for name, amount in sums.items()}


@dataclass(frozen=True, eq=False)
class Reduced:
    """What a block of rows leaves behind.

    Attributes
    ----------
    sums
        Named float64 arrays that add up over blocks. ``count``, ``value`` and ``square`` of shape (c,) are always
        there: number, sum and sum of squares of the per-sample values by predicted class.
    values
        Shape (n,): the per-sample values whose mean is the estimate; not carried when blocks are added.
    rows
        What each row adds to the sums, where that says it all: sums by group need no further look at the logits. Not
        carried when blocks are added.
    kept
        Some of the rows, for methods of many passes.
    """

    sums: Sums
    values: Array | None = None
    rows: Rows | None = None
    kept: Sample | None = None

    @classmethod
    def from_values(
        cls,
        logits: FloatArray,
        values: Array,
        by_row: Mapping[str, Array | Tally] | None = None,
        /,
        **more: Array | float,
    ) -> Self:
        """Sum per-sample values by predicted class and what ``by_row`` has for each row; take more sums as they are."""
        return cls.from_predicted(logits.argmax(axis=1), logits.shape[1], values, by_row, **more)

    @classmethod
    def from_predicted(
        cls,
        predicted: NDArray[np.intp],
        n_classes: int,
        values: Array,
        by_row: Mapping[str, Array | Tally] | None = None,
        /,
        **more: Array | float,
    ) -> Self:
        """Do what :meth:`from_values` does, where the predicted class of each row, shape (n,), is known already."""
        rows = Rows(predicted, n_classes, values, by_row or {})
        sums = rows.sums() | {name: np.asarray(amount, dtype=np.float64) for name, amount in more.items()}
        return cls(sums, values, None if more else rows)

    @property
    def n_rows(self) -> int:
        """How many rows were reduced."""
        return int(self.sums["count"].sum())

    def __add__(self, other: Reduced) -> Reduced:
        """Merge two blocks; exact up to the rounding of float64, in any order."""
        kept = None if self.kept is None or other.kept is None else self.kept + other.kept
        return Reduced({name: amount + other.sums[name] for name, amount in self.sums.items()}, kept=kept)
