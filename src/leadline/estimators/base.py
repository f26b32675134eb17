"""What every estimator is: fit on labelled outputs, then reduce unlabelled rows to sums and read the answer off.

An estimator sees the target only through :meth:`Estimator.reduce`, which turns a block of rows into sums. Sums of
blocks add up, so that one block in memory, a stream of files and a cluster are the same computation. A method that
needs several passes (optimal transport) carries a small ``State`` from pass to pass.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce as fold
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray, as_labels, as_logits, row_blocks
from leadline.errors import InputError
from leadline.estimators.sums import Rows, Sample, Tally, hashes
from leadline.results.estimate import ClassEstimate, Estimate
from leadline.results.markup import html_table
from leadline.shift.intervals import MODEL_ERROR, SAMPLING_ONLY, sampling_interval
from leadline.shift.judgement import Grounds, Judgement, SourceRows, sample_size

Sums = Mapping[str, NDArray[np.float64]]
State = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Reduced:
    """What a block of rows leaves behind.

    Attributes
    ----------
    sums
        Named float64 arrays that add up over blocks. ``count``, ``value`` and ``square`` of shape (c,) are always
        there: number, sum and sum of squares of the per-sample values by predicted class.
    values
        Shape (n,): the per-sample values whose mean is the estimate; not carried when blocks are added.
    rows
        What each row adds to the sums, where that says it all: sums by group need no further look at the logits. Not
        carried when blocks are added.
    sample
        A bounded sample of the rows, for methods that need more than sums.
    """

    sums: Sums
    values: NDArray[np.float64] | None = None
    rows: Rows | None = None
    sample: Sample | None = None

    @classmethod
    def from_values(
        cls,
        logits: FloatArray,
        values: NDArray[np.float64],
        by_row: Mapping[str, NDArray[np.float64] | Tally] | None = None,
        /,
        **more: NDArray[np.float64] | float,
    ) -> Self:
        """Sum per-sample values by predicted class and what ``by_row`` has for each row; take more sums as they are."""
        rows = Rows(logits.argmax(axis=1), logits.shape[1], values, by_row or {})
        sums = rows.sums() | {name: np.asarray(amount, dtype=np.float64) for name, amount in more.items()}
        return cls(sums, values, None if more else rows)

    def __add__(self, other: Reduced) -> Reduced:
        """Merge two blocks; exact up to the rounding of float64, in any order."""
        sample = other.sample if self.sample is None else self.sample
        if self.sample is not None and other.sample is not None:
            sample = self.sample + other.sample
        return Reduced({name: amount + other.sums[name] for name, amount in self.sums.items()}, sample=sample)


class Estimator(ABC):
    """Base of all estimators, with scikit-learn's conventions.

    A subclass stores its options in ``__init__``, learns in ``_fit`` into attributes that end in ``_``, and turns
    rows into sums in ``reduce``. It overrides ``start``, ``advance`` and ``_accuracy`` only if one pass and a plain
    mean are not enough.
    """

    #: Options whose attribute has another name, because a method took it.
    _stored_as: ClassVar[Mapping[str, str]] = {}

    n_classes_: int
    n_source_: int
    source_accuracy_: float
    source_logits_: NDArray[np.float32]
    source_labels_: IntArray
    source_marginal_: NDArray[np.float64]

    # ------------------------------------------------------------------------------------------- for subclasses
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

    def start(self) -> State:
        """Return what the first pass over the target needs to know."""
        return {}

    def advance(self, state: State, total: Reduced) -> State | None:
        """Return the state of the next pass, given the sums of this one; None when this pass was the last."""
        return None

    def _accuracy(self, state: State, total: Reduced) -> float:
        """Read the estimate off the sums."""
        return float(total.sums["value"].sum() / total.sums["count"].sum())

    def _by_class(self, total: Reduced) -> NDArray[np.float64]:
        """Return the estimated accuracy per predicted class, shape (c,); NaN where never predicted."""
        with np.errstate(invalid="ignore"):
            return np.clip(total.sums["value"] / total.sums["count"], 0.0, 1.0)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        """Return what is worth telling about this estimate."""
        return {}

    def _reduce_whole(self, logits: FloatArray) -> tuple[State, Reduced] | None:
        """Reduce a whole target in a way that needs all rows at once; None to go by blocks and passes."""
        return None

    @property
    def sample_rows(self) -> int:
        """How many rows of the target ``conclude`` wants to see besides the sums; 0 for none."""
        return sample_size(self.n_classes_)

    # --------------------------------------------------------------------------------------------- the contract
    def fit(self, logits: Any, labels: Any) -> Self:
        """Learn from a labelled source set.

        Parameters
        ----------
        logits
            Shape (n, c): the classifier's outputs before softmax.
        labels
            Shape (n,): index of the true class of each row.

        Returns
        -------
        Self
            The estimator itself.
        """
        logits = as_logits(logits)
        labels = as_labels(labels, logits)
        self._forget()
        self.n_source_, self.n_classes_ = (int(size) for size in logits.shape)
        self.source_accuracy_ = float(np.mean(logits.argmax(axis=1) == labels))
        self.source_marginal_ = np.bincount(labels, minlength=self.n_classes_) / len(labels)
        # A bounded sample of the source stays, to judge targets against: in random order, but the same for any order of
        # its rows and of its classes.
        kept = np.argsort(hashes(np.sort(logits, axis=1)), kind="stable")[: sample_size(self.n_classes_)]
        self.source_logits_, self.source_labels_ = logits[kept].astype(np.float32), labels[kept]
        try:
            self._fit(logits, labels)
        except BaseException:  # an interrupted fit must not pass for a finished one either
            self._forget()
            raise
        return self

    def estimate(self, logits: Any, *, confidence_level: float = 0.9, lower_bound: bool = False) -> Estimate:
        """Estimate the accuracy on unlabelled rows.

        Parameters
        ----------
        logits
            Shape (n, c): the same classifier's outputs on the target.
        confidence_level
            Nominal coverage of the interval.
        lower_bound
            Also work out a lower bound by disagreement discrepancy (:mod:`leadline.shift.bounds`); slower.
        """
        logits = as_logits(logits, n_classes=self._check_fitted())
        state, total, values = self._reduce_all(logits)
        if total.sample is None:
            total = replace(total, sample=Sample.of(logits, sample_size(self.n_classes_)))
        found = self.conclude(state, total, confidence_level=confidence_level, values=values)
        if not lower_bound:
            return found
        from leadline.shift.bounds import lower_bound as bound

        guaranteed = bound((self.source_logits_, self.source_labels_), logits, confidence=confidence_level)
        diagnostics = {**found.diagnostics, "lower_bound": guaranteed.to_dict()}
        return replace(found, lower_bound=guaranteed.accuracy, diagnostics=diagnostics)

    def _reduce_all(self, logits: FloatArray) -> tuple[State, Reduced, NDArray[np.float64] | None]:
        """Return the last state, the sums and the per-sample values of rows that are all in memory."""
        whole = self._reduce_whole(logits)
        if whole is not None:
            return *whole, whole[1].values
        parts: list[NDArray[np.float64] | None] = []

        def keep(block: Reduced) -> Reduced:
            parts.append(block.values)
            return block

        state = self.start()
        while True:
            parts.clear()
            total = fold(Reduced.__add__, (keep(self.reduce(block, state)) for block in row_blocks(logits)))
            following = self.advance(state, total)
            if following is None:
                break
            state = following
        known = [part for part in parts if part is not None]
        return state, total, np.concatenate(known) if len(known) == len(parts) else None

    def estimate_blocks(self, blocks: Callable[[], Iterable[Any]], *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy over rows that come in blocks, with only one block in memory at a time.

        Parameters
        ----------
        blocks
            Called once for each pass over the data; gives arrays of shape (any, c), the same rows every time.
        confidence_level
            Nominal coverage of the interval.
        """
        n_classes = self._check_fitted()
        state, n_before = self.start(), None
        while True:
            valid = (as_logits(block, n_classes=n_classes, partial=True) for block in blocks())
            reduced = (self._with_sample(block, self.reduce(block, state)) for block in valid if len(block))
            first = next(reduced, None)
            total = None if first is None else fold(Reduced.__add__, reduced, first)
            n = 0 if total is None else int(total.sums["count"].sum())
            if n_before not in (None, n):
                raise InputError(f"blocks must give the same rows every time it is called; got {n_before}, then {n}.")
            if total is None:
                raise InputError("blocks must give at least one row; got none.")
            n_before = n
            following = self.advance(state, total)
            if following is None:
                return self.conclude(state, total, confidence_level=confidence_level)
            state = following

    def _with_sample(self, logits: FloatArray, reduced: Reduced) -> Reduced:
        """Add a bounded sample of the rows, from which targets are judged."""
        if reduced.sample is not None:
            return reduced
        return replace(reduced, sample=Sample.of(logits, sample_size(self.n_classes_)))

    @property
    def _source(self) -> SourceRows:
        """The sample of the source that was kept."""
        return SourceRows(
            self.source_logits_, self.source_labels_, self.source_marginal_, self.source_accuracy_, self.n_source_
        )

    def _judge(self, total: Reduced) -> tuple[Grounds, Judgement] | None:
        """Return what can be said about the target at large; None without a sample of its rows."""
        if total.sample is None:
            return None
        rows = total.sample.draw(sample_size(self.n_classes_))
        return self._source.grounds(), self._source.judge(rows, int(total.sums["count"].sum()))

    def _interval(
        self, accuracy: float, total: Reduced, judged: tuple[Grounds, Judgement] | None, level: float
    ) -> tuple[float, float]:
        """Return the interval: with a sample of the rows, the smallest that holds the estimate and what is likely.

        A method is not wrong by less because it does not know it: whatever it says, the interval reaches as far as that
        of the combined judgement.
        """
        n = int(total.sums["count"].sum())
        mean = total.sums["value"].sum() / n
        low, high = sampling_interval(
            accuracy,
            target_variance=float(total.sums["square"].sum() / n - mean * mean),
            n_target=n,
            source_accuracy=self.source_accuracy_,
            n_source=self.n_source_,
            level=level,
        )
        if judged is None:
            return low, high
        likely = judged[1].interval(judged[1].accuracy, level)
        return min(accuracy, likely[0]), max(accuracy, likely[1])

    def conclude(
        self,
        state: State,
        total: Reduced,
        *,
        confidence_level: float = 0.9,
        values: NDArray[np.float64] | None = None,
    ) -> Estimate:
        """Turn the sums of the last pass into an :class:`Estimate`."""
        if not 0.0 < confidence_level < 1.0:
            raise InputError(f"confidence_level must be between 0 and 1; got {confidence_level}.")
        count = total.sums["count"]
        accuracy = float(np.clip(self._accuracy(state, total), 0.0, 1.0))
        judged = self._judge(total)
        return Estimate(
            accuracy=accuracy,
            interval=self._interval(accuracy, total, judged, confidence_level),
            confidence_level=confidence_level,
            n_samples=int(count.sum()),
            method=self.method,
            by_class=tuple(
                ClassEstimate(label, int(number), float(share) if number else None)
                for label, (number, share) in enumerate(zip(count, self._by_class(total), strict=True))
            ),
            correctness=values,
            diagnostics={
                **self._diagnostics(state, total),
                "source_accuracy": self.source_accuracy_,
                "n_source": self.n_source_,
                "interval_covers": SAMPLING_ONLY if judged is None else MODEL_ERROR,
                **({} if judged is None else {"trust": judged[1].diagnostics(judged[0])}),
            },
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the fitted estimator to one file (safetensors; no pickle)."""
        from leadline.estimators.persistence import save

        save(self, path, force=force)

    # ----------------------------------------------------------------------------------------------- parameters
    @classmethod
    def _parameter_names(cls) -> list[str]:
        """Return the names of the options, those of ``__init__``; a class without one has none."""
        if cls.__init__ is object.__init__:  # its signature has *args and **kwargs, and takes neither
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    @classmethod
    def _require_options(cls, names: Iterable[str]) -> None:
        """Refuse names that are no options of this class."""
        known = cls._parameter_names()
        for name in names:
            if name not in known:
                raise InputError(f"{cls.__name__} has no option {name!r}; it has {', '.join(known) or 'none'}.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options, by name."""
        return {name: getattr(self, self._stored_as.get(name, name)) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change options, by name."""
        self._require_options(params)
        for name, value in params.items():
            setattr(self, self._stored_as.get(name, name), value)
        return self

    def __repr__(self) -> str:
        """Return the call that makes an estimator like this one."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({options})"

    def _learned(self) -> dict[str, Any]:
        """Return the learned state, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def _forget(self) -> None:
        """Drop the learned state, all of it."""
        for name in self._learned():
            delattr(self, name)

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
