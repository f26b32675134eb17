"""An estimate that grows with the data, for people who estimate inside their serving process."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.kept import Kept, estimate_kept, marked_rows, reduce_for_keeping
from leadline.estimators.persistence import to_bytes
from leadline.estimators.samples import NO_LIMIT, GroupSamples, Sample, hashes
from leadline.estimators.sums import Reduced
from leadline.results.estimate import Estimate


class Accumulator:
    """Takes logits as they come, keeps sums only, and says at any time how accurate the predictions were.

    Parameters
    ----------
    model
        A fitted estimator.
    sample_size
        How many of the distinct rows to keep, at random. The target is judged by them. Methods of several passes, which
        cannot look at rows again, go over them: what ``auto`` says of them beyond confidence is added to the confidence
        of all rows; COT and COTT estimate on them alone. The estimates of methods of one pass are exact.

    Notes
    -----
    Memory does not grow with the number of rows. Not safe to update from several threads at once: give each its own,
    and :meth:`merge` them.

    Examples
    --------
    >>> import numpy as np
    >>> import leadline as ll
    >>> logits = np.log([[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    >>> model = ll.make("ac", temperature_scaling=False).fit(logits, [0, 0, 1])
    >>> running = ll.Accumulator(model)
    >>> for row in logits:
    ...     running.update(row)
    >>> round(running.estimate().accuracy, 6), running.n_samples
    (0.7, 3)
    """

    def __init__(self, model: Estimator, *, sample_size: int = 10_000) -> None:
        if not isinstance(model, Estimator):
            raise InputError(f"model must be a fitted estimator; got {type(model).__name__}. Use leadline.load(path).")
        if sample_size < 1:
            raise InputError(f"sample_size must be at least 1; got {sample_size}.")
        model._check_fitted()
        self.model = model
        self.sample_size = sample_size
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._sums: Reduced | None = None
        self._samples = GroupSamples(self.sample_size, most_values=NO_LIMIT)

    @property
    def n_samples(self) -> int:
        """How many rows have been taken."""
        return 0 if self._sums is None else self._sums.n_rows

    @property
    def exact(self) -> bool:
        """Whether the estimate rests on every row, and not on a sample."""
        return self.model.passes == "one"

    def update(self, logits: Any) -> None:
        """Take more rows.

        Parameters
        ----------
        logits
            Shape (n, c), or (c,) for a single row. A block with a bad row is refused whole.
        """
        if getattr(logits, "ndim", 2) == 1:
            logits = logits[None]
        block = self.model.rows_of(logits, partial=True)
        if len(block):
            self._add(reduce_for_keeping(self.model, block))
            marked = marked_rows(block, np.zeros(len(block)))
            self._samples.add(marked, hashes(marked), np.zeros(len(block), dtype=np.intp))

    def merge(self, other: Accumulator) -> None:
        """Take all that another accumulator of the same model has; the other stays as it is."""
        if not _same(self.model, other.model):
            raise InputError("accumulators must have the same model to be merged; these have different ones.")
        if other._sums is not None:
            self._add(other._sums)
            self._samples.merge(other._samples)

    def _add(self, reduced: Reduced) -> None:
        self._sums = Reduced(reduced.sums) if self._sums is None else self._sums + reduced

    def kept(self) -> tuple[Reduced, Sample]:
        """Return the sums of all rows taken so far, and the sample, whose last column is 0."""
        sample = self._samples.of(0)
        if self._sums is None or sample is None:
            raise InputError("there is nothing to estimate yet; call update(logits) first.")
        return self._sums, sample

    def estimate(self, *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy on all rows taken so far."""
        sums, sample = self.kept()
        kept = Kept.of_sample({0: sums}, sample, self.sample_size)
        return estimate_kept(self.model, kept, confidence_level=confidence_level).whole


def _same(one: Estimator, other: Estimator) -> bool:
    """Say whether two estimators learned the same."""
    return one is other or to_bytes(one) == to_bytes(other)
