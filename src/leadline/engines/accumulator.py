"""An estimate that grows with the data, for people who estimate inside their serving process."""

from __future__ import annotations

from typing import Any

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL, Block, GroupSums
from leadline.estimators.passes import Pass, drive
from leadline.estimators.persistence import to_bytes
from leadline.results.estimate import Estimate
from leadline.shift.source import sample_size as rows_looked_at


class Accumulator:
    """Takes logits as they come, keeps sums only, and says at any time how accurate the predictions were.

    Parameters
    ----------
    model
        A fitted estimator.
    sample_size
        For methods of several passes (``auto``, COT, COTT), which cannot look at rows again: how many rows to keep. The
        estimate is that on a uniform sample of so many of the distinct rows, and its interval that of a target of this
        size.
        The estimates of methods of one pass are exact.

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
        # Of a method that needs more than one pass over the rows, only the sample is of use.
        rows = rows_looked_at(model.n_classes_) if self.exact else sample_size
        self._pass = Pass(model, grouped=False, shared=model.start(), sample_rows=rows, summed=self.exact)
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._sums = GroupSums(grouped=False, sample_rows=self._pass.sample_rows)

    @property
    def n_samples(self) -> int:
        """How many rows have been taken."""
        return self._sums.n_rows

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
            self._sums.add(self._pass.reduce(Block(block)))

    def merge(self, other: Accumulator) -> None:
        """Take all that another accumulator of the same model has; the other stays as it is."""
        if not _same(self.model, other.model):
            raise InputError("accumulators must have the same model to be merged; these have different ones.")
        self._sums.merge(other._sums)

    def estimate(self, *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy on all rows taken so far."""
        if not self.n_samples:
            raise InputError("there is nothing to estimate yet; call update(logits) first.")
        if self.exact:
            return drive(self.model, lambda one: self._sums).estimate(ALL, confidence_level)
        sample = self._sums.sample(ALL)
        assert sample is not None
        return self.model._estimate(sample.draw(self.sample_size), confidence_level=confidence_level)


def _same(one: Estimator, other: Estimator) -> bool:
    """Say whether two estimators learned the same."""
    return one is other or to_bytes(one) == to_bytes(other)
