"""Sums by group, and the passes over the data that lead from them to estimates.

This is the one computation behind every engine. A block of rows becomes a :class:`Partial` (pure, so that it can be
worked out anywhere and in any order), partials are added to :class:`GroupSums`, and :class:`Passes` reads states and
estimates off the sums. Methods of one pass are summed for all groups at once; methods of several passes keep a state
for each group and reduce each group's rows by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.data.segments import ordered
from leadline.engines.samples import GroupSamples
from leadline.estimators.base import Estimator, Reduced, State
from leadline.estimators.sums import Rows, Sample, hashes
from leadline.results.estimate import Estimate
from leadline.shift.intervals import each_of

ALL = -1  # the number of the group of all rows
_SLICE_VALUES = 1 << 17  # a megabyte of float64: temporaries of this size stay in the cache


@dataclass(frozen=True, eq=False)
class Block:
    """Some validated rows.

    Attributes
    ----------
    logits
        Shape (n, c).
    groups
        Shape (n,): the number of each row's group, from 0.
    right
        Shape (n,): whether each prediction is right, where the labels are known; else None.
    """

    logits: FloatArray
    groups: NDArray[np.intp]
    right: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Partial:
    """What a block leaves behind: its rows' hashes, and what they add to any sums or sums of each group and of all."""

    block: Block
    keys: NDArray[np.uint64] | None = None
    rows: tuple[Rows, ...] = ()
    sums: Mapping[int, Reduced] = field(default_factory=dict)


class Passes:
    """The states of all groups, from the first pass over the data to the last.

    Parameters
    ----------
    estimator
        A fitted estimator.
    grouped
        Whether there are groups besides the one of all rows.
    """

    def __init__(self, estimator: Estimator, *, grouped: bool = True) -> None:
        self.estimator = estimator
        self.grouped = grouped
        self.first = True
        self.done: dict[int, tuple[State, Reduced]] = {}
        self._states: dict[int, State] = {}
        self._samples: dict[int, Sample] = {}

    @property
    def sample_rows(self) -> int:
        """How many rows to keep in this pass: those of the first pass are those of all."""
        return self.estimator.sample_rows if self.first else 0

    @property
    def once(self) -> bool:
        """Whether one pass is enough."""
        return type(self.estimator).advance is Estimator.advance

    def state(self, group: int) -> State | None:
        """Return the state of a group in this pass; None when it needs no further pass."""
        return self.estimator.start() if self.first else self._states.get(group)

    def states(self) -> dict[int, State]:
        """Return the states of the groups that need another pass."""
        return dict(self._states)

    def partial(self, block: Block) -> Partial:
        """Reduce a block."""
        keys = hashes(block.logits) if self.sample_rows else None
        if self.once:
            rows = self._by_row(block.logits)
            if rows is not None:
                return Partial(block, keys, rows)
        sums = {ALL: state_sums} if (state_sums := self._reduce(block.logits, ALL)) is not None else {}
        if self.grouped:
            order = np.argsort(block.groups, kind="stable")
            groups, starts = np.unique(block.groups[order], return_index=True)
            for group, rows_of in zip(groups.tolist(), np.split(order, starts[1:]), strict=True):
                reduced = self._reduce(block.logits[rows_of], group)
                if reduced is not None:
                    sums[group] = reduced
        return Partial(block, keys, sums=sums)

    def _reduce(self, logits: FloatArray, group: int) -> Reduced | None:
        state = self.state(group)
        return None if state is None else self.estimator.reduce(logits, state)

    def _by_row(self, logits: FloatArray) -> tuple[Rows, ...] | None:
        """Return what the rows add, slice by slice; None if the method has more to say than that."""
        found = []
        for part in row_blocks(logits, _SLICE_VALUES):
            rows = self.estimator.reduce(part, self.estimator.start()).rows
            if rows is None:
                return None
            found.append(rows)
        return tuple(found)

    def advance(self, sums: GroupSums) -> bool:
        """Take the sums of this pass, and say whether there must be another."""
        following: dict[int, State] = {}
        for group in sums.numbers():
            state = self.state(group)
            if state is None:
                continue
            total = sums.of(group)
            if self.first and total.sample is not None:
                self._samples[group] = total.sample
            coming = self.estimator.advance(state, total)
            if coming is None:
                self.done[group] = state, total
            else:
                following[group] = coming
        self._states, self.first = following, False
        return bool(following)

    def estimates(
        self, sums: GroupSums, labels: Sequence[tuple[Any, ...]], level: float, *, together: bool = False
    ) -> list[GroupEstimate]:
        """Read the estimate of all rows off the final sums, and that of each group in the order of its labels.

        Parameters
        ----------
        sums
            Of the last pass.
        labels
            What each group is, by its number.
        level
            Nominal coverage of the intervals.
        together
            Whether all groups together are to have that coverage, instead of each alone.
        """
        known = set(sums.numbers())
        numbers = [number for number in ordered(labels) if number in known]
        own = each_of(len(numbers), level) if together else level
        found = [GroupEstimate(None, self.estimate(ALL, level), sums.truth(ALL))]
        found += [GroupEstimate(labels[number], self.estimate(number, own), sums.truth(number)) for number in numbers]
        return found

    def estimate(self, group: int, level: float) -> Estimate:
        """Return the estimate of a group once its last pass is over."""
        state, total = self.done[group]
        if total.sample is None:
            total = replace(total, sample=self._samples.get(group))
        return self.estimator.conclude(state, total, confidence_level=level)


class GroupSums:
    """The sums of one pass, by group.

    Parameters
    ----------
    grouped
        Whether there are groups besides the one of all rows.
    sample_rows
        How many rows to keep of all rows, and of each group.
    sample_groups
        Whether to keep rows of groups too.
    """

    def __init__(self, *, grouped: bool = True, sample_rows: int = 0, sample_groups: bool = True) -> None:
        self.grouped = grouped
        self._all_samples = GroupSamples(sample_rows)
        self._samples = GroupSamples(sample_rows if grouped and sample_groups else 0)
        self._stacked: dict[str, NDArray[np.float64]] = {}
        self._single: dict[int, Reduced] = {}
        # By group: rows, rows with a label, rows whose prediction is right, rows left out.
        self._counts = np.zeros((0, 4))
        self._all_counts: NDArray[np.float64] | None = None

    def fresh(self) -> GroupSums:
        """Return sums of nothing, to be merged into these."""
        other = GroupSums(grouped=self.grouped)
        other._all_samples, other._samples = self._all_samples.fresh(), self._samples.fresh()
        return other

    def add(self, partial: Partial) -> None:
        """Add a block."""
        groups, right = partial.block.groups, partial.block.right
        if partial.keys is not None:
            self._all_samples.add(partial.block.logits, partial.keys, np.zeros(len(groups), dtype=np.intp))
            self._samples.add(partial.block.logits, partial.keys, groups)
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
        for group, reduced in partial.sums.items():
            self._single[group] = self._single[group] + reduced if group in self._single else reduced

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
        for group, reduced in other._single.items():
            self._single[group] = self._single[group] + reduced if group in self._single else reduced

    def put(self, group: int, reduced: Reduced, counts: NDArray[np.float64]) -> None:
        """Set the sums of a group and its :meth:`counts`, as they were elsewhere."""
        self._single[group] = reduced
        if group == ALL:
            self._all_counts = counts
        else:
            self._counts = _grown(self._counts, group + 1)
            self._counts[group] = counts

    def leave_out(self, groups: NDArray[np.intp]) -> None:
        """Count rows of these groups, shape (n,), as left out."""
        self._counts = _grown(self._counts, int(groups.max()) + 1)
        self._counts[: int(groups.max()) + 1, 3] += np.bincount(groups)

    def counts(self, group: int) -> NDArray[np.float64]:
        """Return how many rows a group has, with a label, with a right prediction, and left out, shape (4,)."""
        if group == ALL and self._all_counts is not None:
            return self._all_counts
        return np.asarray(self._counts.sum(axis=0) if group == ALL else self._counts[group])

    def _make_room(self, like: Mapping[str, NDArray[np.float64]], n_groups: int) -> None:
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

    def of(self, group: int) -> Reduced:
        """Return the sums of a group, and its sample."""
        found = self._sums_of(group)
        return replace(found, sample=self.sample(group)) if found.sample is None else found

    def _sums_of(self, group: int) -> Reduced:
        if self._stacked:
            return Reduced(
                {name: amount.sum(axis=0) if group == ALL else amount[group] for name, amount in self._stacked.items()}
            )
        return self._single[group]

    def sample(self, group: int) -> Sample | None:
        """Return the sample of a group; None where none was kept."""
        return self._all_samples.of(0) if group == ALL else self._samples.of(group)

    def truth(self, group: int) -> float | None:
        """Return the true accuracy of a group where all labels are known."""
        rows, labelled, right, _ = self.counts(group)
        return float(right / rows) if labelled == rows > 0 else None


def _grown(array: NDArray[np.float64], n_groups: int) -> NDArray[np.float64]:
    """Return an array with at least as many groups, the new ones zero; room doubles, so that growing stays cheap."""
    if len(array) >= n_groups:
        return array
    larger = np.zeros((max(n_groups, 2 * len(array)), *array.shape[1:]))
    larger[: len(array)] = array
    return larger


@dataclass(frozen=True, eq=False)
class GroupEstimate:
    """The estimate for a group.

    Attributes
    ----------
    group
        The values of the columns grouped by, None for missing ones; None for all rows together.
    estimate
        Its estimate.
    truth
        The true accuracy where labels are known.
    """

    group: tuple[Any, ...] | None
    estimate: Estimate
    truth: float | None = None
