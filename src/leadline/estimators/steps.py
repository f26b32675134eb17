"""What a method does with the rows of a target, step by step: the part of an estimator that methods write anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.estimators.parameters import Parameters
from leadline.estimators.passes import Solved
from leadline.estimators.samples import Sample
from leadline.estimators.sums import Reduced, State
from leadline.numeric import limited, with_mean
from leadline.shift.judgement import Judgement


class Steps(Parameters, ABC):
    """What a subclass of :class:`leadline.estimators.base.Estimator` defines or overrides."""

    #: How often the rows of a target are gone over: "one" pass; "two", the second with what ``informed`` makes of the
    #: judgement; "many", the first for a sample that ``begin`` is given, the others until ``advance`` returns None.
    passes: ClassVar[Literal["one", "two", "many"]] = "one"

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Refuse a class that says one thing of its passes and does another."""
        super().__init_subclass__(**keywords)
        for hook, passes in (("begin", "many"), ("advance", "many"), ("informed", "two")):
            if hook in vars(cls) and cls.passes != passes:
                raise TypeError(f"{cls.__name__} defines {hook}, so it must say passes = {passes!r}.")

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of this method in ``leadline.METHODS``."""

    @abstractmethod
    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn from validated source outputs, shapes (n, c) and (n,)."""

    @abstractmethod
    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Turn a block of validated rows, shape (n, c), into sums. Pure."""

    def _check_learned(self) -> None:
        """Raise a ``ValueError`` where learned state, each value of which can be right, does not fit together."""

    def start(self) -> State:
        """Return what the first pass over the target needs to know."""
        return {}

    def informed(self, judgement: Judgement) -> State:
        """Return what the second of two passes needs to know, given the judgement of the target."""
        raise TypeError(f"{type(self).__name__} needs no second pass over {judgement}.")

    @property
    def sample_rows(self) -> int:
        """How many rows a method of many passes wants in its sample, as far as memory allows."""
        return 0

    def begin(self, sample: Sample, n_rows: int, n_groups: int) -> State:
        """Return the state of the second of many passes.

        Parameters
        ----------
        sample
            Of the rows of all the target, or of a group.
        n_rows
            How many rows it has.
        n_groups
            How many groups share the memory; 1 for that of all rows.
        """
        raise TypeError(f"{type(self).__name__} needs no pass after {sample}, {n_rows}, {n_groups}.")

    def advance(self, state: State, total: Reduced, sample: Sample | None) -> State | None:
        """Return the state of the next of many passes; None when this was the last.

        Parameters
        ----------
        state, total
            Of this pass.
        sample
            Of the first pass.
        """
        raise TypeError(f"{type(self).__name__} needs no pass after {state}, {total}, {sample}.")

    def _accuracy(self, state: State, total: Reduced) -> float:
        """Read the estimate off the sums."""
        return _mean(total) + self._correction(state)

    def _correction(self, state: State) -> float:
        """Return what the mean of the per-sample values misses of the accuracy on the source itself."""
        return 0.0

    def _corrected(self, values: NDArray[np.float64], state: State, total: Reduced) -> NDArray[np.float64]:
        """Return per-sample values, or their means over some rows, with the correction.

        They move towards 1 or towards 0 in proportion, so that they stay probabilities and their mean is the estimate.
        """
        mean, accuracy = _mean(total), self.accuracy_of(state, total)
        return values if accuracy == mean else with_mean(values, mean, accuracy)

    def _by_class(self, state: State, total: Reduced) -> NDArray[np.float64]:
        """Return the estimated accuracy per predicted class, shape (c,); NaN where never predicted."""
        with np.errstate(invalid="ignore"):
            return np.clip(self._corrected(total.sums["value"] / total.sums["count"], state, total), 0.0, 1.0)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        """Return what is worth telling about this estimate."""
        return {}

    def _solve(self, logits: FloatArray) -> Solved | None:
        """Return last state and final sums from all rows at once; None to go by passes."""
        return None

    def accuracy_of(self, state: State, total: Reduced) -> float:
        """Return the estimated accuracy that final sums say."""
        return limited(self._accuracy(state, total))


def _mean(total: Reduced) -> float:
    """Return the mean of the per-sample values."""
    return float(total.sums["value"].sum() / total.sums["count"].sum())
