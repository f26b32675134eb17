"""Rows of which only sums and a bounded sample were kept: estimates of them, for all and by group.

Methods of one pass need the sums alone. For others the sums are those of calibrated confidence, which are exact and
add up, and the method goes over the sample: what it says there beyond confidence is added to the confidence of all
rows, predicted class by predicted class. Where the sample holds every row, that is the estimate on every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL, GroupSums
from leadline.estimators.passes import Driven, Solved, drive, judge_sample
from leadline.estimators.samples import NO_LIMIT, GroupSamples, Sample, hashes
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Array, Reduced, State
from leadline.numeric import sigmoid, top_two
from leadline.results.estimate import Estimate

_POOLING_ROWS = 20.0  # rows of a group and class at which its own difference counts as much as that of all rows


def reduce_for_keeping(model: Estimator, logits: FloatArray) -> Reduced:
    """Return the sums of validated rows, shape (n, c), that are kept: with ``rows``, to be grouped in any way."""
    if model.passes == "one":
        return model.reduce(logits, model.start())
    return Reduced.from_values(logits, _confidence(model, logits))


def marked_rows(logits: FloatArray, numbers: NDArray[Any]) -> FloatArray:
    """Return rows, shape (n, c), with the number of each one's group, below 2^24, as a last column."""
    return np.column_stack([logits.astype(np.float32, copy=False), numbers.astype(np.float32)])


def keep(
    model: Estimator, logits: FloatArray, groups: NDArray[np.intp], numbers: Sequence[int], size: int
) -> tuple[dict[int, Reduced], Sample]:
    """Return the sums of each group that validated rows are of, by its number, and a sample of all rows.

    Parameters
    ----------
    model
        A fitted estimator.
    logits
        Shape (n, c).
    groups
        Shape (n,): the place of each row's group in ``numbers``.
    numbers
        The numbers of the groups, each below 2^24.
    size
        Distinct rows of the sample, at most. Their last column is the number of the group.
    """
    stacked: dict[str, Array] = {}
    single: dict[int, Reduced] = {}
    samples = GroupSamples(size, most_values=NO_LIMIT)
    column = np.asarray(numbers)
    start = 0
    for block in row_blocks(logits):
        of_block = groups[start : start + len(block)]
        start += len(block)
        marked = marked_rows(block, column[of_block])
        samples.add(marked, hashes(marked), np.zeros(len(block), dtype=np.intp))
        reduced = reduce_for_keeping(model, block)
        if reduced.rows is not None:
            stacked = stacked or reduced.rows.empty(len(numbers))
            reduced.rows.add_to(stacked, of_block)
            continue
        for place in np.unique(of_block).tolist():
            part = reduce_for_keeping(model, block[of_block == place])
            single[place] = single[place] + part if place in single else Reduced(part.sums)
    if stacked:
        there = np.flatnonzero(stacked["count"].sum(axis=1)).tolist()
        single = {place: Reduced({name: sums[place] for name, sums in stacked.items()}) for place in there}
    sample = samples.of(0)
    assert sample is not None
    return {numbers[place]: sums for place, sums in single.items()}, sample


def _confidence(model: Estimator, logits: FloatArray) -> Array:
    """Return the calibrated confidence of each row, shape (n,)."""
    return sigmoid(top_two(model.source_.log_probabilities(logits), logits.argmax(axis=1))[2])


@dataclass(frozen=True, eq=False)
class Kept:
    """Rows of a target and its groups, as far as they were kept.

    Attributes
    ----------
    sums
        By number of the group: its sums. Together they are all rows.
    rows
        Shape (m, c): a uniform sample of all rows.
    groups
        Shape (m,): the number of each one's group.
    """

    sums: Mapping[int, Reduced]
    rows: FloatArray
    groups: NDArray[np.intp]

    @classmethod
    def of_sample(cls, sums: Mapping[int, Reduced], sample: Sample, most: int) -> Kept:
        """Take a sample of rows whose last column is the number of the group."""
        drawn = sample.draw(most)
        return cls(sums, drawn[:, :-1], drawn[:, -1].astype(np.intp))

    @property
    def total(self) -> Reduced:
        """The sums of all rows."""
        first, *others = self.sums.values()
        return sum(others, first)


@dataclass(frozen=True, eq=False)
class KeptEstimates:
    """Estimates on all rows and on each group.

    Attributes
    ----------
    whole
        On all rows.
    groups
        By number of the group.
    correctness
        Shape (m,): the probability that the prediction for each row of the sample is right; None where the method
        gives no such thing.
    """

    whole: Estimate
    groups: Mapping[int, Estimate]
    correctness: Array | None


def estimate_kept(model: Estimator, kept: Kept, *, confidence_level: float) -> KeptEstimates:
    """Estimate the accuracy on rows of which sums and a sample were kept, and on each of their groups."""
    total = kept.total
    # In the order of their hashes, as rows that are all in memory are judged.
    judgement = judge_sample(model.source_, Sample.of(kept.rows, len(kept.rows)), total.n_rows)
    if model.passes == "many":
        return _on_sample(model, kept, confidence_level)
    state = model.informed(judgement) if model.passes == "two" else model.start()
    values = model.reduce(kept.rows, state).values
    done: dict[int, Solved] = {ALL: (state, total)} | {number: (state, sums) for number, sums in kept.sums.items()}
    if model.passes == "two":
        done = _with_differences(model, kept, state, values)
    driven = Driven(model, GroupSums(), judgement, done=done)
    whole = driven.estimate(ALL, confidence_level, values)
    return KeptEstimates(
        whole, {number: driven.estimate(number, confidence_level) for number in kept.sums}, whole.correctness
    )


def _on_sample(model: Estimator, kept: Kept, confidence_level: float) -> KeptEstimates:
    """Estimate with a method of many passes: on the sample, as if that were all rows."""
    rows = InMemory(kept.rows, kept.groups)
    driven = drive(model, rows.scan, grouped=True)
    sampled = set(kept.groups.tolist())
    whole = driven.estimate(ALL, confidence_level)
    found = {number: driven.estimate(number, confidence_level) if number in sampled else whole for number in kept.sums}
    return KeptEstimates(whole, found, None)


def _with_differences(model: Estimator, kept: Kept, state: State, values: Array | None) -> dict[int, Solved]:
    """Return the sums of the method, for all rows and each group: confidence, moved by what the sample shows."""
    assert values is not None
    c, predicted = model.n_classes_, kept.rows.argmax(axis=1)
    moved = values - _confidence(model, kept.rows)
    everywhere = _mean_by(predicted, moved, c, float(moved.mean()), 0.0)
    done: dict[int, Solved] = {}
    for number, sums in kept.sums.items():
        mine = kept.groups == number
        own = _mean_by(predicted[mine], moved[mine], c, everywhere, 0.0 if _all_kept(sums, mine) else _POOLING_ROWS)
        done[number] = state, _moved(sums, own)
    first, *others = (solved[1] for solved in done.values())
    done[ALL] = state, sum(others, first)
    return done


def _all_kept(sums: Reduced, mine: NDArray[np.bool_]) -> bool:
    """Say whether the sample holds all rows of a group."""
    return int(np.count_nonzero(mine)) == sums.n_rows


def _mean_by(classes: NDArray[np.intp], values: Array, c: int, otherwise: Array | float, prior_rows: float) -> Array:
    """Return the mean of values by class, shape (c,), drawn towards ``otherwise`` by so many rows of it."""
    counts = np.bincount(classes, minlength=c)
    sums = np.bincount(classes, weights=values, minlength=c) + prior_rows * np.broadcast_to(otherwise, c)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts + prior_rows > 0, sums / (counts + prior_rows), otherwise)


def _moved(sums: Reduced, difference: Array) -> Reduced:
    """Return the sums of values that differ from those summed by so much on average, by class, shape (c,)."""
    count, value = sums.sums["count"], sums.sums["value"] + sums.sums["count"] * difference
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(count > 0, sums.sums["square"] - sums.sums["value"] ** 2 / count, 0.0)
        square = np.where(count > 0, np.maximum(spread, 0.0) + value**2 / count, 0.0)
    return Reduced({"count": count, "value": value, "square": square})
