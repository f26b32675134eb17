"""ALSA: anchors in logit space (Liu et al., BMVC 2025)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.errors import InputError
from leadline.estimators.alsa.constants import CONSTANTS, DEFAULTS, PAPER, PAPER_ANCHORS
from leadline.estimators.alsa.kernels import AnchorField, get_kernel
from leadline.estimators.alsa.kernels.base import MAX_WIDTH
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
from leadline.estimators.sums import Reduced, State
from leadline.numeric import sigmoid


def rectification_threshold(alpha: float, influence: Literal["gaussian", "exponential"]) -> float:
    """Return the influence below which a sample counts as out of reach.

    The value of an influence with the unified peak 6 where a share ``alpha`` of the area under it lies nearer:
    ``6 exp(-erfinv(alpha)^2)`` for the Gaussian influence, ``6 (1 - alpha)`` for the exponential one (the paper's
    appendix on the unified threshold).

    Examples
    --------
    >>> round(rectification_threshold(0.9, "gaussian"), 2), round(rectification_threshold(0.9, "exponential"), 2)
    (1.55, 0.6)
    """
    from scipy.special import erfinv

    if influence == "gaussian":
        return float(CONSTANTS.unified_peak * np.exp(-np.square(erfinv(alpha))))
    return CONSTANTS.unified_peak * (1.0 - alpha)


def harmless_threshold(
    total: NDArray[np.float64], felt: NDArray[np.float64], n_classes: int, highest: float, tolerance: float
) -> float:
    """Return the highest threshold whose rectification changes the mean correctness by the tolerance at most.

    Parameters
    ----------
    total
        Shape (n,): total influence on the source rows.
    felt
        Shape (n,): the influence that is compared with the threshold.
    n_classes
        Rectified rows count one over this.
    highest
        Never more than this.
    tolerance
        How much the mean may change.
    """
    order = np.argsort(felt)
    change = np.abs(np.cumsum(sigmoid(total[order]) - 1.0 / n_classes)) / len(total)
    too_many = np.flatnonzero(change > tolerance)
    return float(min(felt[order[too_many[0]]], highest)) if len(too_many) else highest


def _alpha_of_threshold(threshold: float, influence: Literal["gaussian", "exponential"]) -> float:
    """Invert :func:`rectification_threshold`."""
    from scipy.special import erf

    share = threshold / CONSTANTS.unified_peak
    with np.errstate(divide="ignore"):  # where influence underflows to zero, alpha is 1
        return float(erf(np.sqrt(-np.log(share)))) if influence == "gaussian" else 1.0 - share


class ALSA(Estimator):
    """ALSA: learned anchors in logit space tell how likely each prediction is right.

    Each anchor has a position, a peak and a width, and influences logit vectors near it in cosine distance. The
    sigmoid of the total influence is the probability that a prediction is correct; samples that the anchors barely
    reach count 1/c. The estimate is the mean probability. Works on raw logits, without temperature scaling.

    Parameters
    ----------
    influence
        "gaussian" for ``p exp(-v^2 d^2)`` (ALSA-G), "exponential" for ``p exp(-v^2 d)`` (ALSA-E).
    n_anchors
        Number of anchors k; None chooses it from the numbers of samples and classes.
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
        Training stops after an epoch in which estimated and true source accuracy differ by less.
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
        One dict per epoch: epoch, loss, accuracy.
    stop_reason_
        "converged", "max_epochs" or "nothing_to_learn".
    width_search_
        "solved", or "at_limit" where no initial width was large enough: the cosines within a class hardly differ, as
        with two classes whose logits are a score and its negative. All that ALSA then tells apart is the class.

    Notes
    -----
    The cosine distance makes the estimate invariant to scaling a logit vector, but not to adding a constant to it;
    softmax methods are the reverse.

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
        widths are normally distributed, alpha is fixed for each influence, and training stops by the paper's rule. What
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
            **asdict(PAPER[influence]),
        }
        return cls(influence=influence, **{**choices, **options})

    @property
    def method(self) -> str:
        """The name of this method in ``leadline.METHODS``."""
        return "alsa-g" if self.influence_kind == "gaussian" else "alsa-e"

    def _check_options(self) -> None:
        """Refuse options that make no sense, before any work."""
        choices: dict[str, tuple[Any, tuple[Any, ...]]] = {
            "influence": (self.influence_kind, ("gaussian", "exponential")),
            "rectify": (self.rectify, ("total", "single", None)),
            "init": (self.init, get_args(Init)),
        }
        for name, (value, allowed) in choices.items():
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
        unknown = set(self.learn) - set(PARTS)
        if isinstance(self.learn, str) or unknown:
            raise InputError(f"learn must be a collection of {', '.join(PARTS)}; got {self.learn!r}.")
        if self.alpha is not None and not 0.0 < self.alpha < 1.0:
            raise InputError(f"alpha must be between 0 and 1; got {self.alpha}.")
        positive = {
            "n_anchors": self.n_anchors, "epsilon": self.epsilon, "max_epochs": self.max_epochs,
            "learning_rate": self.learning_rate, "batch_size": self.batch_size, "peak": self.peak,
        }  # fmt: skip
        for name, amount in positive.items():
            if amount is not None and not amount > 0:
                raise InputError(f"{name} must be positive; got {amount}.")

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        self._check_options()
        correct = logits.argmax(axis=1) == labels
        n, c = logits.shape
        kernel = get_kernel(self.backend, self.device)
        rng = np.random.default_rng(self.seed)
        placed = place(
            kernel, logits, correct,
            n_anchors=self.n_anchors or default_anchor_count(n, c), power=self._power, init=self.init, rng=rng,
            peak=self.peak, width=self.width, unit_anchors=self.unit_anchors,
        )  # fmt: skip
        options = Training(
            learn=frozenset(self.learn), epsilon=self.epsilon,
            max_epochs=self.max_epochs or default_epochs(n, self.batch_size, self._power),
            learning_rate=self.learning_rate, batch_size=self.batch_size,
        )  # fmt: skip
        self.width_search_ = placed.width_search
        field, self.history_, self.stop_reason_ = train(kernel, logits, correct, placed.field, options, rng)
        self.anchors_, self.peaks_, self.widths_ = field.anchors, field.peaks, field.widths
        self.alpha_ = self.alpha if self.alpha is not None else self._harmless_alpha(logits[placed.others])
        self.threshold_ = rectification_threshold(self.alpha_, self.influence_kind)

    def _harmless_alpha(self, logits: FloatArray) -> float:
        """Return the alpha that :func:`harmless_threshold` gives on source rows that are no anchors."""
        start = DEFAULTS[self._power].alpha
        if self.rectify is None:
            return start
        total = get_kernel(self.backend, self.device).influence(logits, self._field)
        felt = np.abs(total) if self.rectify == "total" else self._strongest(logits)
        highest = rectification_threshold(start, self.influence_kind)
        threshold = harmless_threshold(total, felt, self.n_classes_, highest, DEFAULTS[self._power].tolerance)
        return _alpha_of_threshold(threshold, self.influence_kind) if threshold < highest else start

    @property
    def _power(self) -> int:
        """The power of the distance in the influence."""
        return 2 if self.influence_kind == "gaussian" else 1

    @property
    def _field(self) -> AnchorField[Any]:
        """The learned anchors, where the backend wants them."""
        as_array = get_kernel(self.backend, self.device).asarray
        return AnchorField(as_array(self.anchors_), as_array(self.peaks_), as_array(self.widths_), self._power)

    def influence(self, logits: Any) -> NDArray[np.float64]:
        """Return the total influence of the anchors on each row, shape (n,)."""
        return get_kernel(self.backend, self.device).influence(self.rows_of(logits), self._field)

    def _strongest(self, logits: FloatArray) -> NDArray[np.float64]:
        """Return the largest absolute influence of any single anchor on each row, shape (n,)."""
        return get_kernel(self.backend, self.device).strongest(logits, self._field)

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum probabilities of correctness, and count the rows out of reach."""
        total = get_kernel(self.backend, self.device).influence(logits, self._field)
        correctness = sigmoid(total)
        if self.rectify is None:
            return Reduced.from_values(logits, correctness, {"rectified": np.zeros(len(logits))})
        felt = np.abs(total) if self.rectify == "total" else self._strongest(logits)
        outside = felt < self.threshold_
        correctness[outside] = 1.0 / self.n_classes_
        return Reduced.from_values(logits, correctness, {"rectified": outside.astype(np.float64)})

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return {
            "rectified_share": float(total.sums["rectified"] / total.sums["count"].sum()),
            "alpha": self.alpha_,
            "threshold": self.threshold_,
            "n_anchors": len(self.peaks_),
            "stop_reason": self.stop_reason_,
            "width_search": self.width_search_,
            "widths_at_limit": float(np.mean(np.abs(self.widths_) >= MAX_WIDTH)),
            "epochs": len(self.history_),
        }
