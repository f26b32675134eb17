"""What a few labels say of the accuracy, beside the estimate without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrays import as_column
from leadline.data.partial import NOT_LABELLED, partial_labels
from leadline.data.segments import ordered, segment_rows
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.labels.intervals import exact_interval, labels_needed, stratified_accuracy, stratified_interval
from leadline.labels.plan import LabelPlan
from leadline.labels.strata import IntArray
from leadline.labels.target import Drawn, LabelTarget, opened
from leadline.results.estimate import ClassEstimate, Estimate
from leadline.results.estimates import Estimates, Segment
from leadline.shift.intervals import each_of

METHOD = "labels"  # of estimates that rest on them
_ANY_SHIFT = "the luck of the draw of the labelled rows, and holds whatever the shift"
_HALF_WIDTHS = (0.02, 0.03, 0.05)
_LEAST_LABELS = 10  # that say something of a class or a segment
_MOST_SKIPPED = 0.05  # of the rows of a beginning, that were left out when labelling it
_MOST_MOVED = 0.01  # of the rows, that rounding may put into another stratum


def estimate_with_labels(
    model: Estimator, outputs: Any, plan: LabelPlan, labels: Any, confidence_level: float = 0.9
) -> Estimate:
    """Estimate the accuracy on a target from labels for the first rows of a plan.

    Parameters
    ----------
    model
        The fitted estimator that the plan was made with.
    outputs
        The target that the plan was made for: ``Outputs``, logits of shape (n, c), or a table in files, as for
        :func:`leadline.plan_labels`.
    plan
        Of :func:`leadline.plan_labels`.
    labels
        Shape (k,), k <= ``plan.budget``: the true classes of ``plan.rows[:k]``, as indices or names. None stands for a
        row that could not be labelled.
    confidence_level
        Nominal coverage of the interval.

    Returns
    -------
    Estimate
        With ``method`` "labels". Classes with fewer than 10 labels have no accuracy. ``diagnostics`` holds
        ``n_labels``; ``without_labels``, what the model alone says, and ``agrees``, whether both intervals overlap;
        ``simple_sample_interval``, what as many labels of a simple random sample with the same share right would have
        given; ``labels_for``, how many labels in all would give 2, 3 and 5 points either way.

    Notes
    -----
    The interval holds for any shift, if the number of labels was chosen without looking at them. Rows that were left
    out count as wrong for its lower end and as right for its upper end, as nobody knows why they were; of a plan with
    gaps, the longest beginning counts of which at least 95 % is labelled.
    """
    with opened(model, outputs) as target:
        return _Labelled.read(target, plan, labels, ()).estimate(None, confidence_level)


def estimate_with_labels_by(
    model: Estimator,
    outputs: Any,
    plan: LabelPlan,
    labels: Any,
    by: Sequence[str] | str,
    confidence_level: float = 0.9,
    *,
    together: bool = False,
) -> Estimates:
    """Estimate the accuracy on a target and on each segment of it from labels for the first rows of a plan.

    Parameters
    ----------
    model, outputs, plan, labels, confidence_level
        As for :func:`leadline.estimate_with_labels`; the target with the columns to group by.
    by
        Metadata columns, as for ``estimate_by``.
    together
        Widen the intervals of the segments so that all of them together have that coverage.

    Returns
    -------
    Estimates
        Of all rows, and of each segment with 10 labels or more.
    """
    names = [by] if isinstance(by, str) else list(by)
    with opened(model, outputs) as target:
        found = _Labelled.read(target, plan, labels, names)
    overall = Segment({}, found.estimate(None, confidence_level), found.population.truth())
    segments = found.population.labels if names else []
    enough = [i for i in ordered(segments) if found.count(found.segments == i) >= _LEAST_LABELS]
    level = each_of(len(enough), confidence_level) if together and enough else confidence_level
    rows = [
        Segment(dict(zip(names, segments[i], strict=True)), found.estimate(i, level), found.population.truth(i))
        for i in enough
    ]
    return Estimates(tuple(names), overall, tuple(rows), (), model.model_id, datetime.now(UTC))


@dataclass(frozen=True, eq=False)
class _Labelled:
    """A target of which a beginning of a plan has been labelled.

    Attributes
    ----------
    population
        How many rows there are by segment, stratum and predicted class.
    sizes
        Shape (h,): rows of each stratum, as the plan has them.
    strata, segments, predicted
        Shape (k,): of each row of the beginning, the stratum, the segment and the predicted class.
    right, skipped
        Shape (k,): whether each was predicted right, and whether it was not labelled.
    set_aside
        Labels of later rows, not used.
    """

    model: Estimator
    before: Estimate
    population: Drawn
    sizes: IntArray
    strata: IntArray
    segments: NDArray[np.intp]
    predicted: NDArray[np.intp]
    right: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    set_aside: int

    @classmethod
    def read(cls, target: LabelTarget, plan: LabelPlan, labels: Any, by: Sequence[str]) -> _Labelled:
        """Check that all belongs together."""
        model, population = target.model, target.draw(plan.cuts, plan.seed, 0, by)
        plan.check_target(population)
        if np.abs(population.sizes - plan.sizes).sum() / 2 > _MOST_MOVED * plan.n_rows:
            raise InputError("model must be the one that the plan was made with; this one ranks the rows otherwise.")
        given = label_indices(labels, model, plan.budget)
        used = given[: beginning(given != NOT_LABELLED)]
        taken = target.take(plan.rows[: len(used)], by=by)
        predicted = taken.logits.argmax(axis=1)
        numbers, values = segment_rows(taken.metadata, len(taken), by)
        known = {value: number for number, value in enumerate(population.labels)}
        return cls(
            model, target.estimate(), population, plan.sizes, plan.strata[: len(used)],
            segments=np.array([known[value] for value in values])[numbers],
            predicted=predicted,
            right=used == predicted,
            skipped=used == NOT_LABELLED,
            set_aside=int(np.count_nonzero(given[len(used) :] != NOT_LABELLED)),
        )  # fmt: skip

    def count(self, inside: NDArray[np.bool_]) -> int:
        """Return how many rows of a part of the beginning, shape (k,), are labelled."""
        return int(np.count_nonzero(inside & ~self.skipped))

    def estimate(self, segment: int | None, confidence_level: float) -> Estimate:
        """Return the estimate for all rows, or for those of a segment."""
        if segment is None:
            inside, rows, sizes = np.ones_like(self.right), self.population.counts.sum(axis=0), self.sizes
        else:
            inside, rows = self.segments == segment, self.population.counts[segment]
            sizes = rows.sum(axis=1)
        counts = self._counts(inside, sizes)
        n_labels, n_rows = int(counts.labelled.sum()), int(counts.sizes.sum())
        interval = counts.interval(confidence_level)
        accuracy = float(np.clip(counts.accuracy, *interval))
        of_strata = counts.right, counts.labelled, counts.sizes
        diagnostics: dict[str, Any] = {
            "n_labels": n_labels,
            "n_skipped": int(counts.skipped.sum()),
            "n_set_aside": self.set_aside,
            "simple_sample_interval": list(
                exact_interval(round(accuracy * n_labels), n_labels, n_rows, confidence_level)
            ),
            "labels_for": {f"{half:.2f}": labels_needed(*of_strata, half, confidence_level) for half in _HALF_WIDTHS},
            "source_accuracy": self.model.source_accuracy_,
            "n_source": self.model.n_source_,
            "interval_covers": _ANY_SHIFT,
        }
        if segment is None:
            before = self.before
            diagnostics["without_labels"] = {
                "method": before.method, "accuracy": before.accuracy, "interval": list(before.interval),
                "shift": None if before.shift is None else before.shift.kind.value,
            }  # fmt: skip
            diagnostics["agrees"] = before.interval[0] <= interval[1] and interval[0] <= before.interval[1]
        return Estimate(
            accuracy, interval, confidence_level, n_rows, METHOD,
            by_class=tuple(self._of_class(number, inside, of_class) for number, of_class in enumerate(rows.T)),
            diagnostics=diagnostics,
        )  # fmt: skip

    def _of_class(self, number: int, inside: NDArray[np.bool_], sizes: IntArray) -> ClassEstimate:
        """Return what the labels say of the rows that were predicted to be of a class."""
        chosen = inside & (self.predicted == number)
        accuracy = self._counts(chosen, sizes).accuracy if self.count(chosen) >= _LEAST_LABELS else None
        return ClassEstimate(self.model.classes_[number], int(sizes.sum()), accuracy)

    def _counts(self, inside: NDArray[np.bool_], sizes: IntArray) -> _Counts:
        """Return the counts of a part in the strata that it has rows of, given its rows of the beginning, shape (k,).

        A part of a simple random sample is one of the part, of a size that says nothing of what is right.
        """
        right, skipped, drawn = (
            np.bincount(self.strata[chosen], minlength=len(sizes))
            for chosen in (inside & self.right, inside & self.skipped, inside)
        )
        # Rounding may have moved a row of the plan to another stratum since.
        sizes = np.maximum(sizes, drawn)
        some = sizes > 0
        return _Counts(right[some], skipped[some], drawn[some], sizes[some])


@dataclass(frozen=True, eq=False)
class _Counts:
    """Labelled rows by stratum, shape (h,) each: predicted right, left out, and drawn in all; and rows there are."""

    right: IntArray
    skipped: IntArray
    drawn: IntArray
    sizes: IntArray

    @property
    def labelled(self) -> IntArray:
        """How many rows are labelled."""
        return self.drawn - self.skipped

    @property
    def accuracy(self) -> float:
        """The estimate."""
        return float(stratified_accuracy(self.right, self.labelled, self.sizes))

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return the interval, in which rows that were left out count against both ends."""
        low, _ = _ends(self.right, self.drawn, self.sizes, confidence_level)
        _, high = _ends(self.right + self.skipped, self.drawn, self.sizes, confidence_level)
        return low, high


def _ends(right: IntArray, labelled: IntArray, sizes: IntArray, confidence_level: float) -> tuple[float, float]:
    """Return the interval: exact where there is one stratum."""
    if len(sizes) == 1:
        return exact_interval(int(right[0]), int(labelled[0]), int(sizes[0]), confidence_level)
    low, high = stratified_interval(right, labelled, sizes, confidence_level)
    return float(low), float(high)


def beginning(labelled: NDArray[np.bool_]) -> int:
    """Return how many first rows of a plan count: the most of which at least 95 % are labelled, the last one too.

    It depends on which rows are labelled alone, and not on what the labels say.

    Examples
    --------
    >>> beginning(np.array([True] * 30 + [False] + [True] * 9 + [False] * 50 + [True]))
    40
    """
    share = np.cumsum(~labelled) / np.arange(1, len(labelled) + 1)
    fitting = np.flatnonzero(labelled & (share <= _MOST_SKIPPED))
    if not len(fitting):
        raise InputError(
            "labels must begin with the first row of the plan; got none for it or for too many that follow."
        )
    return int(fitting[-1]) + 1


def label_indices(labels: Any, model: Estimator, most: int) -> IntArray:
    """Return labels by index or name as indices, ``NOT_LABELLED`` where there is none (None or NaN)."""
    given = as_column(labels, "labels")
    if given.ndim != 1 or not 0 < len(given) <= most:
        raise InputError(
            f"labels must be for the first rows of the plan, 1 to {most} of them; got shape {given.shape}."
        )
    return partial_labels(given, model.n_classes_, model.class_names)
