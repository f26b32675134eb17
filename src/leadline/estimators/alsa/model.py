"""ALSA: anchors in logit space (Liu et al., BMVC 2025)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.errors import InputError
from leadline.estimators.alsa.constants import CONSTANTS, DEFAULTS, PAPER, PAPER_ANCHORS
from leadline.estimators.alsa.folds import assign_folds, fold_slices, joined_history
from leadline.estimators.alsa.geometry import Geometry, lift_for, place_vectors, with_lift, without_lift
from leadline.estimators.alsa.kernels import AnchorField, Kernel, get_kernel
from leadline.estimators.alsa.kernels.base import MAX_WIDTH
from leadline.estimators.alsa.options import check_ranges
from leadline.estimators.alsa.reach import alpha_of_threshold, harmless_threshold, rectification_threshold
from leadline.estimators.alsa.training import (
    PARTS,
    Init,
    Training,
    default_anchor_count,
    default_epochs,
    place,
    train,
)
from leadline.estimators.base import Estimator
from leadline.estimators.integrity import require
from leadline.estimators.sums import Reduced, State
from leadline.numeric import sigmoid
from leadline.shift.judgement import Judgement

# From the best end of a training, and of a search for widths, to the worst: of several fits, the worst is told.
_STOPS = ("converged", "nothing_to_learn", "max_epochs")
_SEARCHES = ("given", "solved", "at_limit")


class ALSA(Estimator):
    """ALSA: learned anchors in logit space tell how likely each prediction is right.

    Each anchor has a position, a peak and a width, and influences logit vectors near it in cosine distance. The
    sigmoid of the total influence is the probability that a prediction is correct; samples that the anchors barely
    reach count 1/c. The estimate is the mean probability. Works on raw logits, without temperature scaling.

    Anchors memorise a small source: what they say of its own rows shows nothing of what they say of the next. By
    default they are fitted several times, each time without some of the rows; the estimate is the mean of the fits,
    moved by as much as they are wrong on the rows they have not seen. :meth:`paper` has the paper's own choices.

    Parameters
    ----------
    influence
        "gaussian" for ``p exp(-v^2 d^2)`` (ALSA-G), "exponential" for ``p exp(-v^2 d)`` (ALSA-E).
    n_anchors
        Number of anchors k, of all fits together; None chooses it from the numbers of samples and classes.
    geometry
        "lifted" takes cosines of centred logits with one constant coordinate more, which lets them see length as far as
        there are few classes; "cosine" takes them of the logits as they are, as the paper does.
    folds
        Number of fits, each without one of as many parts of the source; 1 for a single fit on all of it, as in the
        paper.
    alpha
        Share of an anchor's area of influence that counts as within reach. None takes 0.98 (Gaussian) or 0.9
        (exponential), raised until rectification changes the estimate on the source itself by 2 points at most.
    rectify
        Which samples count 1/c: those whose "total" influence is below the threshold (the paper's equation), those
        on which no "single" anchor has more (its appendix), or None of them.
    init
        "balanced" draws the positions from the source logits, equally from each predicted class, so that rare classes
        have anchors too; "sample" from all of them alike, as the paper does; "random" from a normal distribution with
        the logits' mean and spread.
    peak
        The size of every initial peak, with the sign of its sample; None for the size with which the estimate on the
        source starts out right.
    width
        Mean and standard deviation of the initial widths; None for widths that follow the data's own distances.
    unit_anchors
        Whether initial positions are scaled to length 1, or are the logits as they are.
    learn
        Which of "anchors", "peaks" and "widths" training may change.
    epsilon
        Training stops after an epoch over which estimated and true source accuracy differ by less.
    max_epochs
        Training stops after this many epochs at the latest; None chooses the number from that of samples.
    learning_rate, batch_size
        Of the Adam optimiser; the rate falls linearly to a twentieth.
    backend, device
        "numba" on CPUs, or "torch" on any torch device.
    seed
        Of everything random.

    Attributes
    ----------
    anchors_, peaks_, widths_
        Shapes (k, c), (k,) and (k,): what was learned.
    alpha_, threshold_
        Share of the area within reach, and the influence at its edge, below which a sample is out of reach.
    history_
        One dict per epoch: epoch, and the means of loss and estimated accuracy over its batches.
    stop_reason_
        "converged" where every fit was, "max_epochs" or "nothing_to_learn".
    width_search_
        "solved", or "at_limit" where no initial width was large enough: the cosines within a class hardly differ, as
        with two classes whose logits are a score and its negative and geometry "cosine". All that ALSA then tells apart
        is the class.
    folds_
        Number of fits; the anchors of each follow one another.
    lift_
        The constant coordinate, in units of the logits; 0 with geometry "cosine".
    correction_
        Accuracy of the source less what the fits say of the rows that each has not seen; 0 with a single fit.

    Notes
    -----
    With geometry "cosine" the estimate is invariant to scaling each logit vector, but not to adding constants to them;
    softmax methods are the reverse. With "lifted" it is invariant to adding a constant to each logit vector, and to
    scaling all vectors of source and target alike.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = rng.normal(size=(500, 3)) + 2 * np.eye(3)[labels]
    >>> estimate = ALSA(seed=0).fit(logits, labels).estimate(logits)
    >>> bool(abs(estimate.accuracy - np.mean(logits.argmax(1) == labels)) < 0.05)
    True
    """

    _stored_as: ClassVar = {"influence": "influence_kind"}

    anchors_: NDArray[np.float32]
    peaks_: NDArray[np.float32]
    widths_: NDArray[np.float32]
    alpha_: float
    threshold_: float
    history_: list[dict[str, float]]
    stop_reason_: str
    width_search_: str
    folds_: int
    lift_: float
    correction_: float

    def __init__(
        self,
        *,
        influence: Literal["gaussian", "exponential"] = "gaussian",
        n_anchors: int | None = None,
        alpha: float | None = None,
        rectify: Literal["total", "single"] | None = "total",
        init: Init = "balanced",
        peak: float | None = None,
        width: tuple[float, float] | None = None,
        unit_anchors: bool = True,
        geometry: Geometry = "lifted",
        folds: int = CONSTANTS.folds,
        learn: Collection[str] = PARTS,
        epsilon: float = CONSTANTS.epsilon,
        max_epochs: int | None = None,
        learning_rate: float = CONSTANTS.learning_rate,
        batch_size: int = CONSTANTS.batch_size,
        backend: Literal["numba", "torch"] = "numba",
        device: str | None = None,
        seed: int = 0,
    ) -> None:
        self.influence_kind = influence
        self.n_anchors = n_anchors
        self.alpha = alpha
        self.rectify = rectify
        self.init = init
        self.peak = peak
        self.width = width
        self.unit_anchors = unit_anchors
        self.geometry = geometry
        self.folds = folds
        self.learn = learn
        self.epsilon = epsilon
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.backend = backend
        self.device = device
        self.seed = seed

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what would replace a method by an option of the same name."""
        if name in self._stored_as:
            raise AttributeError(f"{name} is a method; to change the option, use set_params({name}={value!r}).")
        super().__setattr__(name, value)

    @classmethod
    def paper(
        cls, influence: Literal["gaussian", "exponential"] = "gaussian", *, dataset: str | None = None, **options: Any
    ) -> Self:
        """Return ALSA with the paper's own choices.

        Anchors are sampled from the source's logits as they are, peaks are constant with the sign of their sample,
        widths are normally distributed, alpha is fixed for each influence, one fit sees the whole source, and training
        stops by the paper's rule. What
        the paper does not give (peak, mean and spread of the widths, rate, epochs, alpha) has one setting for all data
        (docs/alsa-defaults.md); each is an option.

        Parameters
        ----------
        influence
            As for ``ALSA``.
        dataset
            One of the paper's, for its number of anchors: cifar10, cifar100, imagenet, amazon, waterbirds, mnist or
            office31. None chooses the number from those of samples and classes, as ``ALSA`` does.
        options
            Further options of ``ALSA``; they win.

        Examples
        --------
        >>> ALSA.paper("exponential", dataset="mnist").n_anchors
        3000
        """
        if influence not in PAPER:
            raise InputError(f"influence must be one of {', '.join(PAPER)}; got {influence!r}.")
        if dataset is not None and dataset not in PAPER_ANCHORS:
            raise InputError(f"dataset must be one of {', '.join(PAPER_ANCHORS)}; got {dataset!r}.")
        choices = {
            "n_anchors": None if dataset is None else PAPER_ANCHORS[dataset],
            "init": "sample",
            "unit_anchors": False,
            "geometry": "cosine",
            "folds": 1,
            **asdict(PAPER[influence]),
        }
        return cls(influence=influence, **{**choices, **options})

    @property
    def method(self) -> str:
        """The name of this method in ``leadline.METHODS``."""
        return "alsa-g" if self.influence_kind == "gaussian" else "alsa-e"

    def _check_options(self) -> None:
        super()._check_options()
        check_ranges(self)

    def _check_learned(self) -> None:
        require(abs(self.threshold_) < np.inf and 0.0 < self.alpha_ <= 1.0, "threshold_ or alpha_ is out of range")
        numbers = (value for epoch in self.history_ for value in dict(epoch).values())
        require(all(isinstance(value, int | float) for value in numbers), "history_ holds no numbers")

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        predicted = logits.argmax(axis=1)
        correct = predicted == labels
        n, c = logits.shape
        kernel, rng = get_kernel(self.backend, self.device), np.random.default_rng(self.seed)
        n_anchors = self.n_anchors or default_anchor_count(n, c, self.folds)
        self.folds_ = max(1, min(self.folds, n_anchors, n // 2))
        self.lift_ = lift_for(logits) if self.geometry == "lifted" else 0.0
        vectors = self._vectors(logits)
        fields, histories, stops, searches = [], [], [], []
        unseen: list[tuple[IntArray, NDArray[np.float64], NDArray[np.float64]]] = []
        cuts = fold_slices(n_anchors, self.folds_)
        for cut, held in zip(cuts, assign_folds(predicted, correct, self.folds_, rng), strict=True):
            kept = np.delete(np.arange(n), held)
            placed = place(
                kernel, vectors[kept], predicted[kept], correct[kept],
                n_classes=c, n_anchors=cut.stop - cut.start, power=self._power, init=self.init, rng=rng,
                peak=self.peak, width=self.width, unit_anchors=self.unit_anchors,
            )  # fmt: skip
            options = Training(
                learn=frozenset(self.learn), epsilon=self.epsilon,
                max_epochs=self.max_epochs or default_epochs(len(kept), self.batch_size, self._power),
                learning_rate=self.learning_rate, batch_size=self.batch_size, fixed_columns=int(self.lift_ > 0),
            )  # fmt: skip
            field, history, stop = train(kernel, vectors[kept], correct[kept], placed.field, options, rng)
            others = held if len(held) else kept[placed.others]
            moved = self._field(kernel, field.anchors, field.peaks, field.widths)
            unseen.append((others, *self._felt(kernel, vectors[others], moved)))
            fields.append(field)
            histories.append(history)
            stops.append(stop)
            searches.append(placed.width_search)
        self.history_, self.stop_reason_ = joined_history(histories), max(stops, key=_STOPS.index)
        self.width_search_ = max(searches, key=_SEARCHES.index)
        vectors = np.concatenate([field.anchors for field in fields])
        self.anchors_ = without_lift(vectors, self.lift_) if self.lift_ else vectors
        self.peaks_, self.widths_ = (np.concatenate([getattr(f, part) for f in fields]) for part in ("peaks", "widths"))
        others, total, felt = (np.concatenate(values) for values in zip(*unseen, strict=True))
        self.alpha_ = self.alpha if self.alpha is not None else self._harmless_alpha(total, felt)
        self.threshold_ = rectification_threshold(self.alpha_, self.influence_kind)
        self.correction_ = 0.0
        if self.folds_ > 1:
            self.correction_ = float(correct[others].mean() - self._rectified(total, felt)[0].mean())

    def _harmless_alpha(self, total: NDArray[np.float64], felt: NDArray[np.float64]) -> float:
        """Return the alpha that :func:`harmless_threshold` gives on source rows that are no anchors."""
        start = DEFAULTS[self._power].alpha
        if self.rectify is None:
            return start
        highest = rectification_threshold(start, self.influence_kind)
        threshold = harmless_threshold(total, felt, self.n_classes_, highest, DEFAULTS[self._power].tolerance)
        return alpha_of_threshold(threshold, self.influence_kind) if threshold < highest else start

    @property
    def _power(self) -> int:
        """The power of the distance in the influence."""
        return 2 if self.influence_kind == "gaussian" else 1

    def _vectors(self, logits: FloatArray) -> FloatArray:
        """Return the vectors whose cosines are taken, shape (n, c) or (n, c + 1)."""
        return place_vectors(logits, self.lift_) if self.lift_ else logits

    def _fits(self, n_rows: int) -> tuple[Kernel, list[AnchorField[Any]]]:
        """Return where to compute the influence on so many rows, and the anchors of each fit there."""
        kernel = get_kernel(self.backend, self.device, pairs=n_rows * len(self.peaks_))
        vectors = with_lift(self.anchors_, self.lift_) if self.lift_ else self.anchors_
        return kernel, [
            self._field(kernel, vectors[cut], self.peaks_[cut], self.widths_[cut])
            for cut in fold_slices(len(vectors), self.folds_)
        ]

    def _field(self, kernel: Kernel, anchors: FloatArray, peaks: FloatArray, widths: FloatArray) -> AnchorField[Any]:
        """Return the anchors of one fit, where the backend wants them."""
        return AnchorField(kernel.asarray(anchors), kernel.asarray(peaks), kernel.asarray(widths), self._power)

    def influence(self, logits: Any) -> NDArray[np.float64]:
        """Return the total influence of the anchors on each row, the mean over the fits, shape (n,)."""
        vectors = self._vectors(self.rows_of(logits))
        kernel, fields = self._fits(len(vectors))
        return np.asarray(np.mean([kernel.influence(vectors, field) for field in fields], axis=0))

    def _felt(
        self, kernel: Kernel, vectors: FloatArray, field: AnchorField[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the total influence of one fit on each row, and what is compared with the threshold, shapes (n,)."""
        total = kernel.influence(vectors, field)
        return total, kernel.strongest(vectors, field) if self.rectify == "single" else np.abs(total)

    def _rectified(
        self, total: NDArray[np.float64], felt: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the probability that each row is right by one fit, and whether it is out of reach, shapes (n,)."""
        outside = felt < self.threshold_ if self.rectify is not None else np.zeros(len(total), dtype=bool)
        return np.where(outside, 1.0 / self.n_classes_, sigmoid(total)), outside

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum probabilities of correctness, and count the rows out of reach."""
        correctness, outside = self.probabilities(logits)
        return Reduced.from_values(logits, correctness, {"rectified": outside})

    def _correction(self, state: State) -> float:
        return self.correction_

    def probabilities(self, logits: FloatArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probability that each valid row is right, before the correction, and the share of fits that it is
        out of reach of, shapes (n,).
        """
        vectors = self._vectors(logits)
        kernel, fields = self._fits(len(vectors))
        fits = [self._rectified(*self._felt(kernel, vectors, field)) for field in fields]
        correctness, outside = (np.mean(values, axis=0) for values in zip(*fits, strict=True))
        return correctness, outside

    def _interval(
        self, accuracy: float, total: Reduced, judgement: Judgement | None, confidence_level: float
    ) -> tuple[float, float]:
        """Return the interval, wider by as much as the fits were wrong on rows of the source they had not seen."""
        low, high = super()._interval(accuracy, total, judgement, confidence_level)
        wrong = abs(self.correction_)
        return max(0.0, low - wrong), min(1.0, high + wrong)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return {
            "rectified_share": float(np.sum(total.sums["rectified"]) / total.sums["count"].sum()),
            "alpha": self.alpha_,
            "threshold": self.threshold_,
            "n_anchors": len(self.peaks_),
            "folds": self.folds_,
            "correction": self.correction_,
            "lift": self.lift_,
            "stop_reason": self.stop_reason_,
            "width_search": self.width_search_,
            "widths_at_limit": float(np.mean(np.abs(self.widths_) >= MAX_WIDTH)),
            "epochs": len(self.history_),
        }
