"""What every estimator is: fit on labelled outputs, then reduce unlabelled rows to sums and read the answer off.

An estimator sees the target only through :meth:`Estimator.reduce`, which turns a block of rows into sums. Sums of
blocks add up, so that one block in memory, a stream of files and a cluster are the same computation. A method that
needs several passes (optimal transport) carries a small ``State`` from pass to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.columns import Columns
from leadline.data.decisions import same_decisions
from leadline.data.outputs import FloatArray, Outputs, as_logits, same_classes
from leadline.data.segments import segment_rows
from leadline.errors import InputError
from leadline.estimators.groups import ALL
from leadline.estimators.integrity import not_a_number
from leadline.estimators.passes import Driven, Solved, drive
from leadline.estimators.recalibration import NO_BATCHES, Batch, expected_gap, learn_batch, moved
from leadline.estimators.scans import InMemory, scan_blocks
from leadline.estimators.sources import labelled, learn_profile
from leadline.estimators.steps import Steps
from leadline.estimators.sums import Reduced, State
from leadline.results.estimate import ClassEstimate, Estimate
from leadline.results.estimates import Estimates
from leadline.results.markup import html_table
from leadline.shift.intervals import MODEL_ERROR, SAMPLING_ONLY, hull, sampling_interval
from leadline.shift.judgement import Judgement
from leadline.shift.source import SourceProfile

__all__ = ["Estimator", "Reduced", "State"]


class Estimator(Steps):
    """Base of all estimators, with scikit-learn's conventions.

    A subclass stores its options in ``__init__``, learns in ``_fit`` into attributes that end in ``_``, and turns
    rows into sums in ``reduce``. It says in ``passes`` how often the rows must be gone over, and overrides ``start``,
    ``informed`` or ``advance``, and ``_accuracy``, only if one pass and a plain mean are not enough.
    """

    n_classes_: int
    classes_: tuple[str | int, ...]
    columns_: Columns | None
    source_: SourceProfile
    # What labels of targets showed; without an annotation, as models that were never told of any do not keep it.
    labelled_batches_ = NO_BATCHES

    def fit(self, logits: Any, labels: Any = None) -> Self:
        """Learn from a labelled source set.

        Parameters
        ----------
        logits
            Shape (n, c): the classifier's outputs before softmax; or labelled ``Outputs``, whose class names are kept.
        labels
            Shape (n,): index of the true class of each row; None where ``Outputs`` bring them.

        Returns
        -------
        Self
            The estimator itself.
        """
        source = labelled(logits, labels)
        return self._fit_outputs(source, learn_profile(source))

    def _fit_outputs(self, source: Outputs, profile: SourceProfile) -> Self:
        """Learn from labelled outputs whose profile is known: that of one source serves every method."""
        assert source.labels is not None
        self._forget()
        self._check_options()
        self.n_classes_, self.source_ = source.n_classes, profile
        self.classes_ = source.classes or tuple(range(source.n_classes))
        self.columns_ = source.columns
        try:
            self._fit(profile.rows(source.logits), source.labels)
            if lost := not_a_number(self._learned()):
                raise InputError(
                    f"fit of {self.method} diverged: {lost} is no number. Choose other options, or look at the range "
                    "of the logits."
                )
        except BaseException:  # an interrupted fit must not pass for a finished one either
            self._forget()
            raise
        return self

    @property
    def source_accuracy_(self) -> float:
        """True accuracy on the source."""
        return self.source_.accuracy

    @property
    def n_source_(self) -> int:
        """Number of rows of the source."""
        return self.source_.n_rows

    def estimate(self, logits: Any, *, confidence_level: float = 0.9, lower_bound: bool = False) -> Estimate:
        """Estimate the accuracy on unlabelled rows.

        Parameters
        ----------
        logits
            Shape (n, c): the same classifier's outputs on the target; or ``Outputs``, whose classes must be those of
            the source.
        confidence_level
            Nominal coverage of the interval.
        lower_bound
            Also work out a lower bound by disagreement discrepancy (:mod:`leadline.shift.bounds`); slower.
        """
        target = self._target(logits)
        found = self._estimate(target, confidence_level=confidence_level)
        if not lower_bound:
            return found
        from leadline.shift.bounds import lower_bound as bound

        source = (self.source_.logits, self.source_.labels)
        guaranteed = bound(source, target, confidence_level=confidence_level)
        diagnostics = {**found.diagnostics, "lower_bound": guaranteed.to_dict()}
        return replace(found, lower_bound=guaranteed.accuracy, diagnostics=diagnostics)

    def _estimate(self, logits: FloatArray, *, confidence_level: float, judgement: Judgement | None = None) -> Estimate:
        """Estimate on validated rows, shape (n, c), whose judgement may be known."""
        rows = InMemory(logits)
        found = self._drive(rows, judgement)
        values = found.done[ALL][1].values
        return found.estimate(ALL, confidence_level, rows.values if values is None else values)

    def _drive(self, rows: InMemory, judgement: Judgement | None = None) -> Driven:
        """Go over rows in memory."""
        solved: dict[int, Solved | None] | None = None
        if type(self)._solve is not Estimator._solve:
            solved = {ALL: self._solve(rows.logits)}
            solved |= {group: self._solve(rows.logits[chosen]) for group, chosen in rows.by_group()}
        return drive(self, rows.scan, grouped=rows.groups is not None, judgement=judgement, solved=solved)

    def estimate_by(
        self, outputs: Outputs, by: Sequence[str] | str, *, confidence_level: float = 0.9, together: bool = False
    ) -> Estimates:
        """Estimate the accuracy on unlabelled rows and on each segment of them.

        Parameters
        ----------
        outputs
            Outputs with metadata. Labels, where there are any, give each segment's true accuracy and are used for
            nothing else.
        by
            Metadata columns; ``time:week`` (or hour, day, month) cuts times. Each combination of values is a segment.
        confidence_level
            Nominal coverage of the intervals.
        together
            Widen the intervals of the segments so that all of them together have that coverage.

        Returns
        -------
        Estimates
            Of all rows, and of each segment in the order of its values.

        Notes
        -----
        The target is judged as a whole; segments borrow that verdict as far as their own rows are too few to tell.
        """
        if not isinstance(outputs, Outputs):
            raise InputError(
                f"outputs must be leadline.Outputs with the metadata to group by; got {type(outputs).__name__}."
            )
        names = [by] if isinstance(by, str) else list(by)
        target = self._target(outputs)
        right = None if outputs.labels is None else target.argmax(axis=1) == outputs.labels
        numbers, labels = segment_rows(outputs.metadata, len(outputs), names)
        found = self._drive(InMemory(target, numbers if names else None, right))
        return found.estimates(names, labels, confidence_level=confidence_level, together=together)

    def estimate_blocks(self, blocks: Callable[[], Iterable[Any]], *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy over rows that come in blocks, with only one block in memory at a time.

        Parameters
        ----------
        blocks
            Called once for each pass over the data; gives arrays of shape (any, c), the same rows every time.
        confidence_level
            Nominal coverage of the interval.
        """
        valid = lambda: (self.rows_of(block, partial=True) for block in blocks())  # noqa: E731
        return drive(self, scan_blocks(valid)).estimate(ALL, confidence_level)

    def rows_of(self, logits: Any, *, partial: bool = False) -> FloatArray:
        """Return a classifier's outputs, validated, as the rows that ``reduce`` takes.

        Parameters
        ----------
        logits
            Shape (n, c).
        partial
            These are some rows of more, which by themselves may be none or all equal.

        Returns
        -------
        ndarray
            Shape (n, c): the logits, moved where the classifier has a threshold of its own, so that the largest value
            of each row is that of the predicted class.
        """
        n_classes = self._check_fitted()
        return self.source_.rows(as_logits(logits, n_classes=n_classes, partial=partial))

    def _target(self, logits: Any) -> FloatArray:
        """Return validated rows of a target; refuse classes and thresholds that are not those of the source."""
        if not isinstance(logits, Outputs):
            return self.rows_of(logits)
        self._check_fitted()
        self._check_classes(logits.classes)
        rows = self.rows_of(logits.logits)
        if logits.threshold is not None:
            same_decisions(logits.logits, logits.threshold, self.source_.decision_threshold)
        return rows

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of the classes, in the order of the logits; None where the source had none."""
        return tuple(name for name in self.classes_ if isinstance(name, str)) or None

    def _check_classes(self, classes: Sequence[str] | None) -> None:
        """Refuse names of classes, where both sides have any, that are others or in another order."""
        if classes is not None and self.class_names is not None:
            same_classes(classes, self.class_names)

    def _interval(
        self, accuracy: float, total: Reduced, judgement: Judgement | None, confidence_level: float
    ) -> tuple[float, float]:
        """Return the interval: the method's own sampling error, and whatever the judgement holds likely.

        A method is not wrong by less because it does not know it: whatever it says, the interval reaches as far as that
        of the combined judgement.
        """
        n = total.n_rows
        mean = total.sums["value"].sum() / n
        sampling = sampling_interval(
            accuracy,
            target_variance=float(total.sums["square"].sum() / n - mean * mean),
            n_target=n,
            source_accuracy=self.source_accuracy_,
            n_source=self.n_source_,
            confidence_level=confidence_level,
        )
        if judgement is None:
            return sampling
        return hull(sampling, judgement.interval(judgement.accuracy, confidence_level))

    def conclude(
        self,
        state: State,
        total: Reduced,
        *,
        judgement: Judgement | None = None,
        confidence_level: float = 0.9,
        values: NDArray[np.float64] | None = None,
    ) -> Estimate:
        """Turn the sums of the last pass into an :class:`Estimate`.

        Parameters
        ----------
        state, total
            Of the last pass.
        judgement
            Of the target; without one, the interval covers sampling error only.
        confidence_level
            Nominal coverage of the interval.
        values
            Shape (n,): the per-sample values, where they were kept.
        """
        if not 0.0 < confidence_level < 1.0:
            raise InputError(f"confidence_level must be between 0 and 1; got {confidence_level}.")
        accuracy = self.accuracy_of(state, total)
        if not np.isfinite(accuracy):
            raise InputError(
                f"{self.method} finds no number for the accuracy (it computes {accuracy}): the outputs or its options "
                "are too extreme for it. Look at the range of the logits, or use another method."
            )
        counts, shares = total.sums["count"], self._by_class(state, total)
        found = Estimate(
            accuracy=accuracy,
            interval=self._interval(accuracy, total, judgement, confidence_level),
            confidence_level=confidence_level,
            n_samples=total.n_rows,
            method=self.method,
            by_class=tuple(
                ClassEstimate(label, int(number), share if number else None)
                for label, number, share in zip(self.classes_, counts.tolist(), shares.tolist(), strict=True)
            ),
            correctness=None if values is None else self._corrected(values, state, total),
            shift=None if judgement is None else judgement.shift(),
            diagnostics={
                **self._diagnostics(state, total),
                "source_accuracy": self.source_accuracy_,
                "n_source": self.n_source_,
                "interval_covers": SAMPLING_ONLY if judgement is None else MODEL_ERROR,
            },
        )
        if judgement is None or not len(self.labelled_batches_):
            return found
        return moved(found, expected_gap(self.labelled_batches_, judgement.confidences))

    def recalibrate(self, outputs: Any, labels: Any = None) -> Self:
        """Return an estimator that knows what labels of a target showed, for later targets that look like it.

        Parameters
        ----------
        outputs
            The target: ``Outputs``, or logits of shape (n, c); or some of its rows, drawn at random.
        labels
            Shape (n,): the true class of each row, by index or name; None for rows without. Not needed where
            ``Outputs`` bring them.

        Returns
        -------
        Self
            A copy that has been told, of several targets one after the other. Its estimates are moved by the gaps that
            labels showed, as far as these are more than noise and the target's confidences are like theirs
            (:mod:`leadline.estimators.recalibration`). Labels of a plan: :func:`leadline.recalibrate_with_labels`.
        """
        given = outputs.labels if labels is None and isinstance(outputs, Outputs) else labels
        return self._with_batch(learn_batch(self, self._target(outputs), given))

    def _with_batch(self, batch: Batch) -> Self:
        """Return a copy that knows one more labelled target."""
        other = copy(self)
        other.labelled_batches_ = np.vstack([self.labelled_batches_, batch])
        return other

    @property
    def model_id(self) -> str | None:
        """What tells this fitted model from others: 16 digits of the checksum that its file has; None if it has none.

        Models that cannot be saved, because options or state of theirs are no plain values, have no checksum.
        """
        from leadline.estimators.persistence import checksum

        try:
            return checksum(self)[:16]
        except InputError:
            return None

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted estimator to one file (safetensors; no pickle)."""
        from leadline.estimators.persistence import save

        save(self, path, force=force)

    def _repr_html_(self) -> str:
        """Return a notebook's view: the options, and what was learned from."""
        options = html_table(
            ["option", "value"], [[name, repr(value)] for name, value in self.get_params().items()], left=(0, 1)
        )
        state = "not fitted yet"
        if self.is_fitted:
            state = (
                f"fitted on {self.n_source_:,} samples of {self.n_classes_} classes, "
                f"of which {self.source_accuracy_:.1%} were predicted right"
            )
        title = f"<strong>{type(self).__name__}</strong> ({self.method}), {state}"
        return f"<p>{title}</p><details><summary>options</summary>{options}</details>"

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been called."""
        return hasattr(self, "n_classes_")

    def _check_fitted(self) -> int:
        """Return the number of classes, or say that ``fit`` comes first."""
        if not self.is_fitted:
            raise InputError(f"this {type(self).__name__} is not fitted yet; call fit(logits, labels) first.")
        return self.n_classes_
