"""Sums of blocks by group: what one pass over a target adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.samples import MOST_GROUP_VALUES, NO_LIMIT, GroupSamples, Sample
from leadline.estimators.sums import Array, Reduced, Rows

ALL = -1  # the number of the group of all rows


@dataclass(frozen=True, eq=False)
class Block:
    """Some validated rows.

    Attributes
    ----------
    logits
        Shape (n, c).
    groups
        Shape (n,): the number of each row's group, from 0; None where there is no group but that of all rows.
    right
        Shape (n,): whether each prediction is right, where the labels are known; else None.
    rows
        Shape (n,): the number of each row in the target, from 0, where rows have any; else None.
    """

    logits: FloatArray
    groups: NDArray[np.intp] | None = None
    right: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None

    @property
    def group_of_rows(self) -> NDArray[np.intp]:
        """The number of each row's group, shape (n,)."""
        return np.zeros(len(self.logits), dtype=np.intp) if self.groups is None else self.groups


@dataclass(frozen=True, eq=False)
class Partial:
    """What a block leaves behind.

    Attributes
    ----------
    block
        The rows.
    keys
        Shape (n,): their hashes, where rows are sampled.
    rows
        What they add to the sums of any group.
    sums
        Sums of groups that have a state of their own, or of methods that have more to say than ``rows``.
    values
        Shape (n,): the per-sample values, where the method has any.
    kept
        Shape (n, k): what a sample keeps of each row; None for its logits.
    """

    block: Block
    keys: NDArray[np.uint64] | None = None
    rows: tuple[Rows, ...] = ()
    sums: Mapping[int, Reduced] = field(default_factory=dict)
    values: Array | None = None
    kept: FloatArray | None = None


class GroupSums:
    """The sums of one pass, by group.

    Parameters
    ----------
    grouped
        Whether there are groups besides the one of all rows.
    sample_rows
        How many rows to keep of all rows, and of each group as far as the memory cap of all groups allows.
    drawn
        Whether so many rows are wanted of each group, whatever that takes, and none of all rows.
    """

    def __init__(self, *, grouped: bool = True, sample_rows: int = 0, drawn: bool = False) -> None:
        self.grouped = grouped
        self._all_samples = GroupSamples(0 if drawn else sample_rows, most_values=NO_LIMIT)
        self._samples = GroupSamples(
            sample_rows if grouped else 0, most_values=NO_LIMIT if drawn else MOST_GROUP_VALUES
        )
        self._stacked: dict[str, Array] = {}
        self._single: dict[int, Reduced] = {}
        # By group: rows, rows with a label, rows whose prediction is right, rows left out.
        self._counts = np.zeros((0, 4))
        self._all_counts: Array | None = None

    def fresh(self) -> GroupSums:
        """Return sums of nothing, to be merged into these."""
        other = GroupSums(grouped=self.grouped)
        other._all_samples, other._samples = self._all_samples.fresh(), self._samples.fresh()
        return other

    def add(self, partial: Partial) -> None:
        """Add a block."""
        groups, right = partial.block.group_of_rows, partial.block.right
        if partial.keys is not None:
            kept = partial.block.logits if partial.kept is None else partial.kept
            self._all_samples.add(kept, partial.keys, np.zeros(len(groups), dtype=np.intp))
            self._samples.add(kept, partial.keys, groups)
        n_groups = int(groups.max()) + 1
        self._counts = _grown(self._counts, n_groups)
        self._counts[:n_groups, 0] += np.bincount(groups)
        if right is not None:
            self._counts[:n_groups, 1] += np.bincount(groups)
            self._counts[:n_groups, 2] += np.bincount(groups, weights=right)
        start = 0
        for rows in partial.rows:
            self._make_room(rows.empty(0), n_groups)
            rows.add_to(self._stacked, groups[start : start + len(rows.values)])
            start += len(rows.values)
        self._add_single(partial.sums)

    def merge(self, other: GroupSums) -> None:
        """Add the sums of other blocks, with the same numbers for groups."""
        n_groups = len(other._counts)
        self._all_samples.merge(other._all_samples)
        self._samples.merge(other._samples)
        self._counts = _grown(self._counts, n_groups)
        self._counts[:n_groups] += other._counts
        self._make_room(other._stacked, n_groups)
        for name, amount in other._stacked.items():
            self._stacked[name][: len(amount)] += amount
        self._add_single(other._single)

    def put(self, group: int, reduced: Reduced | None, counts: Array, sample: Sample | None) -> None:
        """Set the sums, the :meth:`counts` and the sample of a group, as they were elsewhere."""
        if reduced is not None:
            self._single[group] = reduced
        if sample is not None:
            (self._all_samples if group == ALL else self._samples).put(max(group, 0), sample)
        if group == ALL:
            self._all_counts = counts
        else:
            self._counts = _grown(self._counts, group + 1)
            self._counts[group] = counts

    def leave_out(self, groups: NDArray[np.intp]) -> None:
        """Count rows of these groups, shape (n,), as left out."""
        self._counts = _grown(self._counts, int(groups.max()) + 1)
        self._counts[: int(groups.max()) + 1, 3] += np.bincount(groups)

    def counts(self, group: int) -> Array:
        """Return how many rows a group has, with a label, with a right prediction, and left out, shape (4,)."""
        if group == ALL and self._all_counts is not None:
            return self._all_counts
        return np.asarray(self._counts.sum(axis=0) if group == ALL else self._counts[group])

    def _add_single(self, sums: Mapping[int, Reduced]) -> None:
        for group, reduced in sums.items():
            self._single[group] = self._single[group] + reduced if group in self._single else reduced

    def _make_room(self, like: Mapping[str, Array], n_groups: int) -> None:
        for name, amount in like.items():
            known = self._stacked.get(name, amount[:0])
            self._stacked[name] = _grown(known, n_groups)

    @property
    def n_rows(self) -> int:
        """The number of rows added."""
        return int(self.counts(ALL)[0])

    def numbers(self) -> list[int]:
        """Return the numbers of the groups that have rows, that of all rows first."""
        found = np.flatnonzero(self._counts[:, 0]).tolist() if self.grouped else []
        return [ALL, *found]

    def largest(self, most: int) -> list[int]:
        """Return the numbers of the largest groups, at most so many; of equal ones beyond that, none."""
        if not self.grouped:
            return []
        return largest_groups({group: int(self._counts[group, 0]) for group in self.numbers()[1:]}, most)

    def of(self, group: int) -> Reduced:
        """Return the sums of a group."""
        if group in self._single:
            return self._single[group]
        return Reduced(
            {name: amount.sum(axis=0) if group == ALL else amount[group] for name, amount in self._stacked.items()}
        )

    def sample(self, group: int) -> Sample | None:
        """Return the sample of a group; None where none was kept."""
        return self._all_samples.of(0) if group == ALL else self._samples.of(group)

    def truth(self, group: int) -> float | None:
        """Return the true accuracy of a group where all labels are known."""
        rows, labelled, right, _ = self.counts(group)
        return float(right / rows) if labelled == rows > 0 else None


def largest_groups(counts: Mapping[int, int], most: int) -> list[int]:
    """Return the groups with the most rows, at most so many; of equal ones beyond that, none.

    Which groups these are must not depend on the order in which they were seen.

    Examples
    --------
    >>> largest_groups({0: 5, 1: 9, 2: 5, 3: 7}, 3)
    [1, 3]
    """
    ordered = sorted(counts, key=lambda group: -counts[group])
    if len(ordered) <= most:
        return ordered
    limit = counts[ordered[most]]
    return [group for group in ordered[:most] if counts[group] > limit]


def _grown(array: Array, n_groups: int) -> Array:
    """Return an array with at least as many groups, the new ones zero; room doubles, so that growing stays cheap."""
    if len(array) >= n_groups:
        return array
    larger = np.zeros((max(n_groups, 2 * len(array)), *array.shape[1:]))
    larger[: len(array)] = array
    return larger
