"""The one driver behind every engine: passes over a target, from the first block to the estimates.

A :class:`Pass` turns blocks of rows into sums (pure, so that it can be worked out anywhere and in any order). An engine
is a function that makes one pass: it brings the blocks of its files, arrays or cluster to :meth:`Pass.reduce`, adds up
what comes back in :class:`leadline.estimators.groups.GroupSums`, and returns that. :func:`drive` calls it as often as
the method needs, judges the target from the sample of rows that the first pass kept, and concludes.

Groups borrow: the target is judged as a whole once, and the verdict on a group is that of the whole, moved towards what
the group's own rows show as far as their number allows. However many groups there are, at most ``MOST_JUDGED`` are
looked at by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.data.segments import ordered
from leadline.errors import InputError
from leadline.estimators.draws import Draw
from leadline.estimators.groups import ALL, Block, GroupSums, Partial
from leadline.estimators.samples import Sample, hashes
from leadline.estimators.sums import Array, Reduced, Rows, State
from leadline.numeric import limited
from leadline.results.estimate import Estimate
from leadline.results.estimates import Estimates, LeftOut, Segment
from leadline.shift.intervals import each_of
from leadline.shift.judgement import Judgement, judge
from leadline.shift.source import SourceProfile, sample_size

if TYPE_CHECKING:
    from leadline.estimators.base import Estimator

MOST_JUDGED = 200  # groups: judging one takes tens of milliseconds
LEAST_JUDGED_ROWS = 50  # fewer rows say too little of a group to be worth the time
_POOLING_ROWS = 300.0  # rows of a group at which its own evidence counts as much as the whole's
_SLICE_VALUES = 1 << 20  # eight megabytes of float64: enough for all cores, and temporaries stay in the cache


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over a target: what each block becomes.

    Attributes
    ----------
    estimator
        A fitted estimator.
    grouped
        Whether there are groups besides the one of all rows.
    shared
        The state of all rows and of every group without one of its own; None where each has its own.
    own
        The states of groups, by their numbers, that do not share; where nothing is shared, those that are not done.
    sample_rows
        How many rows to keep; 0 for none.
    summed
        Whether rows are reduced at all; a pass may be there for the sample only.
    draw
        Which rows to keep, where the pass is there to draw some; else None.
    """

    estimator: Estimator
    grouped: bool
    shared: State | None
    own: Mapping[int, State] = field(default_factory=dict)
    sample_rows: int = 0
    summed: bool = True
    draw: Draw | None = None

    @property
    def parts(self) -> int:
        """How many parts each group is cut into by the values of its rows; part p of group g is group g parts + p."""
        return 1 if self.draw is None else self.draw.parts

    def sums(self) -> GroupSums:
        """Return the sums of no rows, to add blocks to."""
        return GroupSums(grouped=self.grouped, sample_rows=self.sample_rows, drawn=self.draw is not None)

    def reduce(self, block: Block) -> Partial:
        """Reduce a block."""
        if self.draw is not None:
            return self.draw.reduce(self.estimator, block, keep=self.sample_rows > 0)
        keys = hashes(block.logits) if self.sample_rows else None
        if not self.summed:
            return Partial(block, keys)
        if self.shared is not None:
            found = self._by_row(block.logits, self.shared)
            if found is not None:
                rows, values = found
                return Partial(block, keys, rows, self._of_groups(block, shared=None), values)
        of_all = self._reduce(block.logits, ALL)
        sums = {ALL: of_all} if of_all is not None else {}
        sums |= self._of_groups(block, shared=self.shared)
        return Partial(block, keys, sums=sums, values=None if of_all is None else of_all.values)

    def _by_row(self, logits: FloatArray, state: State) -> tuple[tuple[Rows, ...], Array | None] | None:
        """Return what the rows add, slice by slice, and their values; None if the method has more to say than that."""
        rows, values = [], []
        for part in row_blocks(logits, _SLICE_VALUES):
            reduced = self.estimator.reduce(part, state)
            if reduced.rows is None:
                return None
            rows.append(reduced.rows)
            values.append(reduced.values)
        known = [value for value in values if value is not None]
        return tuple(rows), np.concatenate(known) if len(known) == len(values) else None

    def _reduce(self, logits: FloatArray, group: int) -> Reduced | None:
        state = self.own.get(group, self.shared)
        return None if state is None else self.estimator.reduce(logits, state)

    def _of_groups(self, block: Block, *, shared: State | None) -> dict[int, Reduced]:
        """Return the sums of the groups that have a state: their own, or the shared one."""
        if not self.grouped or block.groups is None or (shared is None and not self.own):
            return {}
        rows = np.arange(len(block.groups)) if shared is not None else self._rows_with_own_state(block.groups)
        order = rows[np.argsort(block.groups[rows], kind="stable")]
        groups, starts = np.unique(block.groups[order], return_index=True)
        parts = np.split(block.logits[order], starts[1:])
        found = {}
        for group, part in zip(groups.tolist(), parts, strict=False):
            state = self.own.get(group, shared)
            assert state is not None
            found[group] = self.estimator.reduce(part, state)
        return found

    def _rows_with_own_state(self, groups: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which rows, by the numbers of their groups, shape (n,), have a group with a state of its own."""
        has_own = np.zeros(int(groups.max()) + 1, dtype=bool)
        numbers = np.fromiter(self.own, dtype=np.intp)
        has_own[numbers[(numbers >= 0) & (numbers < len(has_own))]] = True
        return np.flatnonzero(has_own[groups])


#: Makes one pass over all rows.
Scan = Callable[[Pass], GroupSums]
#: The last state of a group, and its final sums.
Solved = tuple[State, Reduced]


@dataclass(eq=False)
class Driven:
    """A target after its last pass: everything that estimates are read off.

    Attributes
    ----------
    estimator
        The fitted estimator.
    sums
        Of the first pass, with the counts and labels of all rows.
    whole
        The judgement of all rows; None where no rows were kept.
    own
        By group: its own judgement, and the share that it counts.
    done
        By group: the last state and the final sums.
    """

    estimator: Estimator
    sums: GroupSums
    whole: Judgement | None = None
    own: dict[int, tuple[Judgement, float]] = field(default_factory=dict)
    done: dict[int, Solved] = field(default_factory=dict)

    def state(self, group: int = ALL) -> State:
        """Return the state of a group in its last pass."""
        return self.done[group][0]

    def estimate(self, group: int, confidence_level: float, values: Array | None = None) -> Estimate:
        """Return the estimate of a group."""
        state, total = self.done[group]
        return self.estimator.conclude(
            state, total, judgement=self._judgement(group), confidence_level=confidence_level, values=values
        )

    @cached_property
    def _accuracy_of_all(self) -> float:
        return self.estimator.accuracy_of(*self.done[ALL])

    def _judgement(self, group: int) -> Judgement | None:
        """Return the verdict on a group: that of the whole, as if the method erred on both alike, and its own."""
        if group == ALL or self.whole is None:
            return self.whole
        expected = limited(self.estimator.accuracy_of(*self.done[group]) + self.whole.accuracy - self._accuracy_of_all)
        borrowed = self.whole.of_segment(self.done[group][1].n_rows, expected)
        return borrowed.pooled(*self.own[group]) if group in self.own else borrowed

    def estimates(
        self,
        by: Sequence[str],
        labels: Sequence[tuple[Any, ...]],
        *,
        confidence_level: float,
        together: bool = False,
        left_out: Sequence[LeftOut] = (),
    ) -> Estimates:
        """Return the estimates of all rows and of each group, in the order of the groups' labels.

        Parameters
        ----------
        by
            What the groups were made by.
        labels
            The values of each group, by its number.
        confidence_level
            Nominal coverage of the intervals.
        together
            Whether all groups together are to have that coverage, instead of each alone.
        left_out
            What was bad and not taken.
        """
        known = set(self.sums.numbers())
        numbers = [number for number in ordered(labels) if number in known] if by else []
        own_level = each_of(len(numbers), confidence_level) if together else confidence_level
        rows = [
            Segment(
                dict(zip(by, labels[number], strict=True)), self.estimate(number, own_level), self.sums.truth(number)
            )
            for number in numbers
        ]
        overall = Segment({}, self.estimate(ALL, confidence_level), self.sums.truth(ALL))
        return Estimates(
            tuple(by), overall, tuple(rows), tuple(left_out), self.estimator.model_id, estimated_at=datetime.now(UTC)
        )


def drive(
    estimator: Estimator,
    scan: Scan,
    *,
    grouped: bool = False,
    judged: bool = True,
    judgement: Judgement | None = None,
    solved: Mapping[int, Solved | None] | None = None,
) -> Driven:
    """Go over a target as often as the method needs.

    Parameters
    ----------
    estimator
        A fitted estimator.
    scan
        Makes one pass over all rows, the same rows every time.
    grouped
        Whether there are groups besides the one of all rows.
    judged
        Whether to judge the target from a sample of its rows.
    judgement
        The judgement of all rows, where it is known already.
    solved
        By group, where rows are all at hand: what a method found from them at once, or None if it must go by passes.
    """
    many = estimator.passes == "many"
    kept = sample_size(estimator.n_classes_) if judged and (grouped or judgement is None) else 0
    if many and (solved is None or None in solved.values()):
        kept = max(kept, estimator.sample_rows)
    start = estimator.start()
    sums = scan(Pass(estimator, grouped, start, sample_rows=kept, summed=estimator.passes == "one"))
    found = Driven(estimator, sums, judgement)
    if judged:
        _judge(found)
    if estimator.passes == "two":
        return _second_pass(found, scan, grouped=grouped)
    if not many:
        found.done = {group: (start, sums.of(group)) for group in sums.numbers()}
        return found
    found.done = {group: known for group, known in (solved or {}).items() if known is not None}
    states = {group: _begin(found, group) for group in solved or sums.numbers() if group not in found.done}
    while states:
        states = _advance(found, scan(Pass(estimator, grouped, None, states)), states)
    return found


def _begin(found: Driven, group: int) -> State:
    """Return the state of a group after the first of many passes."""
    sums, sample = found.sums, found.sums.sample(group)
    assert sample is not None
    n_groups = 1 if group == ALL else len(sums.numbers()) - 1
    return found.estimator.begin(sample, int(sums.counts(group)[0]), n_groups)


def _second_pass(found: Driven, scan: Scan, *, grouped: bool) -> Driven:
    """Reduce the rows once more, now that the target has been judged."""
    estimator, whole = found.estimator, found.whole
    if whole is None:
        raise InputError(f"method {estimator.method} judges targets by their rows; none were kept.")
    shared = estimator.informed(whole)
    own = {group: estimator.informed(whole.pooled(*judged)) for group, judged in found.own.items()}
    sums = scan(Pass(estimator, grouped, shared, own))
    found.done = {group: (own.get(group, shared), sums.of(group)) for group in sums.numbers()}
    return found


def _advance(found: Driven, sums: GroupSums, states: Mapping[int, State]) -> dict[int, State]:
    """Take the sums of a pass; keep those of the groups that are done, and return the states of the others."""
    following = {}
    for group, state in states.items():
        total = sums.of(group)
        coming = found.estimator.advance(state, total, found.sums.sample(group))
        if coming is None:
            found.done[group] = state, total
        else:
            following[group] = coming
    return following


def judge_rows(profile: SourceProfile, logits: FloatArray) -> Judgement:
    """Judge a target whose rows are all in memory, shape (n, c): what :func:`drive` finds in its first pass."""
    return judge_sample(profile, Sample.of(logits, sample_size(logits.shape[1])), len(logits))


def judge_sample(profile: SourceProfile, sample: Sample, n_rows: int) -> Judgement:
    """Judge a target of so many rows by a sample of them."""
    size = sample_size(sample.logits.shape[1])
    return judge(profile, sample.cut(size).draw(size), n_rows)


def _judge(found: Driven) -> None:
    """Judge all rows, unless that was done before, and the largest groups, from the samples of the first pass."""
    profile, sums = found.estimator.source_, found.sums
    if found.whole is None:
        sample = sums.sample(ALL)
        if sample is None:
            return
        found.whole = judge_sample(profile, sample, sums.n_rows)
    for group in sums.largest(MOST_JUDGED):
        sample = sums.sample(group)
        rows = 0.0 if sample is None else min(float(sample.counts.sum()), sample_size(found.estimator.n_classes_))
        if sample is not None and rows >= LEAST_JUDGED_ROWS:
            own = judge_sample(profile, sample, int(sums.counts(group)[0]))
            found.own[group] = own, rows / (rows + _POOLING_ROWS)
