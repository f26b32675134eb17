"""What late labels need of each row: a hash of its id, where it belongs, what was predicted, how sure that is.

One entry of the ledger holds the rows of a batch as arrays, so that a million rows are one write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import as_column
from leadline.errors import InputError
from leadline.estimators.draws import strata_of
from leadline.labels.intervals import exact_interval, stratified_accuracy, stratified_interval
from leadline.monitor.blobs import pack, require, unpack
from leadline.monitor.records import Array, IntArray, Realised

NO_LABEL = -1
NO_PLAN = 0


def hash_ids(ids: Any, salt: bytes, name: str = "ids") -> IntArray:
    """Return a hash of each id, shape (n,): the same for 17, "17" and 17.0, other in every store."""
    column = as_column(ids, name)
    if column.ndim != 1:
        raise InputError(f"{name} must have shape (n,); got {column.shape}.")
    texts = _texts(column, name)
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8, key=salt).digest() for text in texts)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


def _texts(column: NDArray[Any], name: str) -> list[str]:
    """Return ids as texts."""
    if column.dtype.kind == "f":
        if not np.isfinite(column).all():
            raise InputError(f"{name} must have a value for each row; got {column[~np.isfinite(column)][0]}.")
        if (column == np.floor(column)).all():
            column = column.astype(np.int64)
    if column.dtype.kind in "iu":
        return [str(value) for value in column.tolist()]
    values = column.tolist()
    missing = next((row for row, value in enumerate(values) if value is None or value != value), None)  # noqa: PLR0124
    if missing is not None:
        raise InputError(f"{name} must have a value for each row; row {missing} has none.")
    return [str(value).strip() for value in values]


@dataclass(frozen=True, eq=False)
class Entry:
    """Rows of a batch, in the order of their ids' hashes.

    Attributes
    ----------
    ids
        Shape (n,): hashes of the row ids, rising.
    windows, segments
        Shape (n,): numbers of the window, and of the segment in the store.
    predicted
        Shape (n,): the predicted class.
    correctness
        Shape (n,): the probability that the prediction is right; NaN where the method gives none.
    labels, plans
        Shape (n,): the true class, ``NO_LABEL`` where it is not known; the plan by which the row was labelled,
        ``NO_PLAN`` without one.
    """

    ids: IntArray
    windows: IntArray
    segments: NDArray[np.int32]
    predicted: NDArray[np.int32]
    correctness: NDArray[np.float32]
    labels: NDArray[np.int32]
    plans: NDArray[np.int32]

    @classmethod
    def of_rows(
        cls, ids: IntArray, windows: IntArray, segments: IntArray, predicted: IntArray, correctness: Array | None
    ) -> Entry:
        """Return an entry of rows without labels."""
        order = np.argsort(ids, kind="stable")
        twice = np.flatnonzero(np.diff(ids[order]) == 0)
        if len(twice):
            raise InputError(
                f"ids must be distinct within a batch; rows {order[twice[0]]} and {order[twice[0] + 1]} have the same."
            )
        n = len(ids)
        sure = np.full(n, np.nan) if correctness is None else correctness[order].round(6)
        return cls(
            ids[order], windows[order], segments[order].astype(np.int32), predicted[order].astype(np.int32),
            sure.astype(np.float32), np.full(n, NO_LABEL, dtype=np.int32), np.full(n, NO_PLAN, dtype=np.int32),
        )  # fmt: skip

    @property
    def right(self) -> NDArray[np.bool_]:
        """Shape (n,): whether the row has a label, and the prediction is right."""
        return np.asarray((self.labels != NO_LABEL) & (self.labels == self.predicted))

    @classmethod
    def from_bytes(cls, data: bytes) -> Entry:
        """Return the entry that :meth:`to_bytes` gave."""
        arrays = unpack(data)
        require(arrays.keys() == {field.name for field in fields(cls)}, "an entry of the ledger")
        require({array.shape for array in arrays.values()} == {arrays["ids"].shape[:1]}, "an entry of the ledger")
        kinds = {name: array.dtype.kind for name, array in arrays.items()}
        require(kinds.pop("correctness") == "f" and set(kinds.values()) == {"i"}, "an entry of the ledger")
        return cls(**arrays)

    def to_bytes(self) -> bytes:
        """Return the entry as bytes."""
        return pack(vars(self))

    def find(self, ids: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return which of these ids the entry has, shape (k,), and the rows that those are."""
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[places] == ids
        return known, places[known]

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Entry:
        """Return some of the rows."""
        return Entry(**{name: column[rows] for name, column in vars(self).items()})

    def by_segment(self) -> Iterator[tuple[int, Entry]]:
        """Yield the rows of each segment."""
        order = np.argsort(self.segments, kind="stable")
        numbers, starts = np.unique(self.segments[order], return_index=True)
        for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            yield number, self.take(rows)

    def labelled(self, rows: NDArray[np.intp], labels: IntArray, plans: IntArray) -> Entry:
        """Return the entry with labels of some rows."""
        of_rows, of_plans = self.labels.copy(), self.plans.copy()
        of_rows[rows], of_plans[rows] = labels, plans
        return replace(self, labels=of_rows, plans=of_plans)


def joined(entries: Sequence[Entry]) -> Entry:
    """Return the rows of several entries as one; their ids are no longer in order."""
    return Entry(**{name: np.concatenate([vars(entry)[name] for entry in entries]) for name in vars(entries[0])})


def realise(rows: Entry, cuts: Mapping[int, Array], confidence_level: float) -> Realised | None:
    """Return what labels say of rows; None without labels.

    Parameters
    ----------
    rows
        Of a window, or of a segment in it.
    cuts
        Of each plan, values of the correctness between its strata.
    confidence_level
        Of the interval.
    """
    known = rows.labels != NO_LABEL
    n_rows, n_labels = len(known), int(known.sum())
    if not n_labels:
        return None
    right = rows.right
    count = int(right.sum())
    used = np.unique(rows.plans[known])
    if n_labels < n_rows and len(used) == 1 and used[0] != NO_PLAN:
        require(int(used[0]) in cuts, "labels of a plan that it holds")
        # A plan rounds to six digits, which single precision tells apart.
        strata = strata_of(rows.correctness.astype(np.float64), cuts[int(used[0])].astype(np.float32))
        size = int(strata.max()) + 1
        of_rows, of_labels, of_right = (
            np.bincount(strata[which], minlength=size) for which in (np.ones(n_rows, dtype=bool), known, right)
        )
        there = of_rows > 0
        counts = of_right[there], of_labels[there], of_rows[there]
        low, high = stratified_interval(*counts, confidence_level)
        accuracy = float(np.clip(stratified_accuracy(*counts), low, high))
        return Realised(accuracy, (float(low), float(high)), n_labels, n_rows, "planned")
    interval = exact_interval(count, n_labels, n_rows, confidence_level)
    return Realised(count / n_labels, interval, n_labels, n_rows, "all" if n_labels == n_rows else "unknown")
