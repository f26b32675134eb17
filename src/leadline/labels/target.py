"""What plans and labels need of a target, wherever its rows are: the estimate without labels, draws, single rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, Outputs
from leadline.data.segments import segment_rows
from leadline.engines.arrow import StreamProgress
from leadline.engines.table import NumberedRows, Table, Taken, opened_table
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.draws import Correctness, Draw, checksum, strata_of
from leadline.estimators.groups import ALL, GroupSums
from leadline.estimators.passes import Driven, Pass, drive
from leadline.estimators.scans import InMemory
from leadline.labels.strata import IntArray, allocate, cut_points
from leadline.numeric import Array
from leadline.results.estimate import Estimate

_FEW_VALUES = 10  # distinct values of the correctness, below which it says right or wrong and not how likely


class LabelTarget:
    """A target of which some rows are to be labelled, or have been.

    Parameters
    ----------
    model
        A fitted estimator.
    rows
        The rows.
    """

    def __init__(self, model: Estimator, rows: NumberedRows) -> None:
        self.model = model
        self._rows = rows

    @cached_property
    def _driven(self) -> Driven:
        return drive(self.model, lambda one: self._rows.scan(one, ())[0])

    def estimate(self, confidence_level: float = 0.9) -> Estimate:
        """Return the estimate without labels."""
        return self._driven.estimate(ALL, confidence_level)

    def unmoved(self) -> float:
        """Return the accuracy that the method alone says, before what is known of other targets moves it."""
        return self.model.accuracy_of(*self._driven.done[ALL])

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self._driven.done[ALL][1].n_rows

    @property
    def confidences(self) -> Array:
        """Shares of the rows by confidence, shape (10,)."""
        assert self._driven.whole is not None
        return self._driven.whole.confidences

    @cached_property
    def _sample(self) -> tuple[Correctness, Array]:
        """How likely each row is right, and how likely those of a sample are.

        Where the method does not say, or says right or wrong only, it is the calibrated confidence.
        """
        kept = self._driven.sums.sample(ALL)
        assert kept is not None
        logits = kept.draw()
        found = Correctness(*self._driven.done[ALL])
        values = found.of(self.model, logits)
        if len(np.unique(values)) < _FEW_VALUES:
            found = Correctness(*self._driven.done[ALL], by_method=False)
            values = found.of(self.model, logits)
        return found, values

    def correctness(self, logits: FloatArray) -> Array:
        """Return how likely rows of the target, shape (n, c), are predicted right, shape (n,)."""
        return self._sample[0].of(self.model, logits)

    def cuts(self, budget: int) -> Array:
        """Return the values of the correctness between strata for so many labels."""
        return cut_points(self._sample[1], budget)

    def allocate(self, cuts: Array, sizes: IntArray, budget: int) -> IntArray:
        """Return how many labels each stratum gets, shape (h,)."""
        return allocate(self._sample[1], strata_of(self._sample[1], cuts), sizes, budget)

    def draw(self, cuts: Array, seed: int | None, count: int, by: Sequence[str] = ()) -> Drawn:
        """Go over the rows and draw some.

        Parameters
        ----------
        cuts
            Values of the correctness between the strata.
        seed
            Of the draw; None for the rows that are likeliest wrong.
        count
            How many rows to draw of each stratum, where it has as many; 0 to count rows only.
        by
            Columns to count by.
        """
        draw = Draw(self._sample[0], cuts, seed)
        sums, labels = self._rows.scan(Pass(self.model, True, None, sample_rows=count, draw=draw), by)
        return Drawn(sums, draw.parts, labels)

    def take(self, rows: IntArray, columns: Sequence[str] = (), by: Sequence[str] = ()) -> Taken:
        """Return rows by their numbers, in this order, with some columns and those that it takes to group by these."""
        return self._rows.take(rows, columns, by)

    def require_distinct(self, column: str, values: NDArray[Any]) -> None:
        """Refuse a column in which other rows than these, shape (k,), have the same values."""
        if self._rows.count(column, values) > len(values):
            raise InputError(f"column {column!r} must tell all rows apart; other rows have ids of the planned ones.")


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a draw found.

    Attributes
    ----------
    sums
        By group and stratum.
    parts
        The number of strata h.
    labels
        The values of each group, by its number.
    """

    sums: GroupSums
    parts: int
    labels: list[tuple[Any, ...]]

    @cached_property
    def counts(self) -> IntArray:
        """Rows by group, stratum and predicted class, shape (g, h, c)."""
        known = set(self.sums.numbers()) - {ALL}
        size = len(self.sums.of(next(iter(known))).sums["count"])
        found = np.zeros((len(self.labels) * self.parts, size), dtype=np.int64)
        for number in known:
            found[number] = self.sums.of(number).sums["count"]
        return found.reshape(len(self.labels), self.parts, size)

    @property
    def sizes(self) -> IntArray:
        """Rows of each stratum, shape (h,)."""
        return np.asarray(self.counts.sum(axis=(0, 2)))

    @property
    def checksum(self) -> str:
        """What tells the target from others."""
        return checksum(self.sums.of(ALL).sums["checksum"])

    def keys(self, stratum: int = 0) -> NDArray[np.uint64]:
        """Return the keys of the rows drawn from a stratum, rising."""
        sample = self.sums.sample(stratum)
        return np.zeros(0, dtype=np.uint64) if sample is None else sample.keys

    def rows(self, stratum: int = 0) -> IntArray:
        """Return the rows drawn from a stratum, in the order of their keys."""
        sample = self.sums.sample(stratum)
        return np.zeros(0, dtype=np.int64) if sample is None else sample.logits[:, 0].astype(np.int64)

    def truth(self, group: int | None = None) -> float | None:
        """Return the true accuracy of a group, or of all rows, where all labels are known."""
        if group is None:
            return self.sums.truth(ALL)
        numbers = set(range(group * self.parts, (group + 1) * self.parts)) & set(self.sums.numbers())
        rows, labelled, right, _ = np.sum([self.sums.counts(number) for number in numbers], axis=0)
        return float(right / rows) if labelled == rows else None


@contextmanager
def opened(model: Estimator, target: Any, progress: StreamProgress | None = None) -> Iterator[LabelTarget]:
    """Give a target for a fitted estimator: ``Outputs``, logits, a ``Table`` or where one is, or one given before."""
    if isinstance(target, LabelTarget):
        yield target
    elif isinstance(target, Table | str | Path):
        table = target if isinstance(target, Table) else Table(str(target))
        with opened_table(table, model, progress) as rows:
            yield LabelTarget(model, rows)
    else:
        yield LabelTarget(model, _MemoryRows(model, target))


class _MemoryRows:
    """The rows of a target in memory."""

    def __init__(self, model: Estimator, target: Any) -> None:
        self._logits = model._target(target)
        self._metadata = target.metadata if isinstance(target, Outputs) else {}
        labels = target.labels if isinstance(target, Outputs) else None
        self._right = None if labels is None else self._logits.argmax(axis=1) == labels

    def scan(self, one: Pass, by: Sequence[str]) -> tuple[GroupSums, list[tuple[Any, ...]]]:
        """Make one pass."""
        numbers, labels = segment_rows(self._metadata, len(self._logits), by)
        return InMemory(self._logits, numbers if by else None, self._right).scan(one), labels

    def take(self, rows: IntArray, columns: Sequence[str], by: Sequence[str]) -> Taken:
        """Return rows by their numbers."""
        names = dict.fromkeys([*columns, *(self._metadata if by else ())])
        return Taken(self._logits[rows], {name: self._column(name)[rows] for name in names})

    def count(self, column: str, values: NDArray[Any]) -> int:
        """Return how many rows have one of these values in a column."""
        return int(np.isin(self._column(column), values).sum())

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._metadata:
            known = ", ".join(map(repr, self._metadata)) or "none"
            raise InputError(f"column {name!r} is not in the target; its columns: {known}.")
        return self._metadata[name]
