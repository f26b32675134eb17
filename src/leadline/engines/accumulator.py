"""An estimate that grows with the data, for people who estimate inside their serving process."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.data.outputs import as_logits
from leadline.errors import InputError
from leadline.estimators.base import Estimator, Reduced
from leadline.estimators.sums import Sample
from leadline.results.estimate import Estimate


class Accumulator:
    """Takes logits as they come, keeps sums only, and says at any time how accurate the predictions were.

    Parameters
    ----------
    model
        A fitted estimator.
    sample_size
        For methods of several passes (COT, COTT), which cannot look at rows again: how many rows to keep. The estimate
        is that on a uniform sample of so many of the distinct rows, and its interval that of a target of this size.
        Methods of one pass keep no rows, and their estimates are exact.

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
        self._total: Reduced | None = None
        self._sample: Sample | None = None
        self._n_samples = 0

    @property
    def n_samples(self) -> int:
        """How many rows have been taken."""
        return self._n_samples

    @property
    def exact(self) -> bool:
        """Whether the estimate rests on every row, and not on a sample."""
        return type(self.model).advance is Estimator.advance

    def update(self, logits: Any) -> None:
        """Take more rows.

        Parameters
        ----------
        logits
            Shape (n, c), or (c,) for a single row. A block with a bad row is refused whole.
        """
        if getattr(logits, "ndim", 2) == 1:
            logits = logits[None]
        block = as_logits(logits, n_classes=self.model.n_classes_, partial=True)
        if not len(block):
            return
        if self.exact:
            rows = self.model.sample_rows
            sample = Sample.of(block, rows) if rows else None
            self._add(self.model.reduce(block, self.model.start()), sample, len(block))
        else:
            self._add(None, Sample.of(block, self.sample_size), len(block))

    def merge(self, other: Accumulator) -> None:
        """Take all that another accumulator of the same model has; the other stays as it is."""
        if not _same(self.model, other.model):
            raise InputError("accumulators must have the same model to be merged; these have different ones.")
        self._add(other._total, other._sample, other._n_samples)

    def _add(self, total: Reduced | None, sample: Sample | None, n: int) -> None:
        if total is not None:
            # Only sums are kept: what the single rows were would grow with their number.
            self._total = Reduced(total.sums) if self._total is None else self._total + Reduced(total.sums)
        if sample is not None:
            self._sample = sample if self._sample is None else self._sample + sample
        self._n_samples += n

    def estimate(self, *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy on all rows taken so far."""
        if not self._n_samples:
            raise InputError("there is nothing to estimate yet; call update(logits) first.")
        if self._total is not None:
            total = Reduced(self._total.sums, sample=self._sample)
            return self.model.conclude(self.model.start(), total, confidence_level=confidence_level)
        assert self._sample is not None
        return self.model.estimate(self._sample.draw(self.sample_size), confidence_level=confidence_level)


def _same(one: Estimator, other: Estimator) -> bool:
    """Say whether two estimators learned the same."""
    if one is other:
        return True
    mine, theirs = one._learned(), other._learned()
    return (
        repr(one) == repr(other)
        and mine.keys() == theirs.keys()
        and all(np.array_equal(mine[name], theirs[name]) for name in mine)
    )
