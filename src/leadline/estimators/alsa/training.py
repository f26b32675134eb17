"""How ALSA's anchors are placed and trained.

The paper leaves the optimiser, the batches, the number of epochs and the initial peaks and widths open; what was chosen
stands in ``constants.py``. What the choices have in common is that nothing is set in absolute terms: widths follow the
data's own distances and peaks the data's own accuracy, so that a fit starts neither saturated nor blind, with 2 classes
or 1,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.alsa.constants import CONSTANTS, DEFAULTS
from leadline.estimators.alsa.kernels import AnchorField, Gradients, Kernel
from leadline.estimators.alsa.kernels.base import MEAN_DECAY, SQUARE_DECAY, unit_rows
from leadline.numeric import find_root, sigmoid

PARTS = ("anchors", "peaks", "widths")
Init = Literal["balanced", "sample", "random"]


@dataclass(frozen=True)
class Training:
    """Options of :func:`train`; so many of the last coordinates of the positions stay as they are."""

    learn: frozenset[str]
    epsilon: float
    max_epochs: int
    learning_rate: float
    batch_size: int
    fixed_columns: int = 0


@dataclass(frozen=True, eq=False)
class Placed:
    """What :func:`place` gives.

    Attributes
    ----------
    field
        The anchors.
    others
        Numbers of the rows that are no anchors; all rows where hardly any are left.
    width_search
        How the search for the initial widths ended: "solved", or "at_limit" where even the largest width leaves the
        anchors reaching too much, because cosines hardly differ within a class.
    """

    field: AnchorField[Any]
    others: NDArray[np.intp]
    width_search: str


def default_anchor_count(n_samples: int, n_classes: int, folds: int = 1) -> int:
    """Return the number of anchors: some for every class, and half of the samples at most, see :func:`place`.

    Several fits have twice as many between them: each then has fewer than one alone would, which memorises less.
    """
    wanted = (CONSTANTS.anchors + CONSTANTS.anchors_per_class * n_classes) * min(folds, 2)
    return max(1, min(n_samples // 2, wanted))


def default_epochs(n_samples: int, batch_size: int, power: int) -> int:
    """Return how many epochs make the default number of steps."""
    steps_per_epoch = -(-n_samples // batch_size)
    return max(CONSTANTS.fewest_epochs, -(-DEFAULTS[power].steps // steps_per_epoch))


def _draw_rows(predicted: NDArray[np.intp], count: int, init: Init, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the numbers of the rows that become anchors; none for random positions."""
    if init == "random":
        return np.empty(0, dtype=np.intp)
    shares = None
    if init == "balanced":
        shares = 1.0 / np.bincount(predicted)[predicted]
        shares /= shares.sum()
    return rng.choice(len(predicted), count, replace=count > len(predicted), p=shares)


def place(
    kernel: Kernel,
    vectors: FloatArray,
    predicted: NDArray[np.intp],
    correct: NDArray[np.bool_],
    *,
    n_classes: int,
    n_anchors: int,
    power: int,
    init: Init,
    rng: np.random.Generator,
    reach: float | None = None,
    peak: float | None = None,
    width: tuple[float, float] | None = None,
    unit_anchors: bool = True,
) -> Placed:
    """Place anchors where the source's logits are.

    What the anchors reach is judged by rows that are not themselves anchors: an anchor feels itself perfectly, which
    says nothing about the next sample.

    Parameters
    ----------
    kernel
        Where to compute.
    vectors
        Shape (n, d): the source's logits, where cosines are taken.
    predicted, correct
        Shapes (n,): the predicted class of each row, and whether it is right.
    n_classes
        Number of classes c.
    n_anchors
        Number of anchors k.
    power
        2 for Gaussian influence, 1 for exponential.
    init
        "balanced" takes k of the rows, each predicted class as likely as any other; "sample" takes k of the rows, all
        alike; "random" draws from a normal distribution with the mean and spread of each class's logits, and takes the
        sign of the nearest of a sample of rows.
    rng
        Of everything random.
    reach
        How much of its own class an anchor feels at first; None for the default of the influence.
    peak
        The size of every initial peak; None for the one with which the estimate on the source starts out right.
    width
        Mean and standard deviation of the initial widths; None for those that give this reach.
    unit_anchors
        Whether positions have length 1; otherwise they are the logits as they are.
    """
    n, d = vectors.shape
    chosen = _draw_rows(predicted, n_anchors, init, rng)
    others = np.setdiff1d(np.arange(n), chosen)
    if len(others) < min(n, CONSTANTS.fewest_others):
        others = np.arange(n)
    sample = rng.choice(others, min(len(others), CONSTANTS.sample), replace=False)
    neighbours = unit_rows(vectors[sample])
    if init == "random":
        positions = unit_rows(rng.normal(vectors.mean(axis=0), vectors.std(axis=0), size=(n_anchors, d)))
        right = correct[sample[(positions @ neighbours.T).argmax(axis=1)]]
    else:
        positions = unit_rows(vectors[chosen]) if unit_anchors else np.asarray(vectors[chosen])
        right = correct[chosen]
    signs = np.where(right, 1.0, -1.0)
    drawn = None if width is None else rng.normal(*width, size=n_anchors)

    width_search = "given"
    if drawn is None:
        target = (reach or DEFAULTS[power].reach) / n_classes
        log_width, width_search = _search_width(kernel, positions, neighbours, power, target)
        drawn = np.exp(log_width) * (1.0 + CONSTANTS.width_spread * rng.normal(size=n_anchors))
    field = AnchorField(kernel.asarray(positions), kernel.asarray(signs), kernel.asarray(drawn), power)
    if peak is not None:
        return Placed(replace(field, peaks=kernel.asarray(peak * signs)), others, width_search)
    influence = kernel.influence(vectors[sample], field)
    typical = float(np.abs(influence).mean()) + 1e-30  # where the widths solved for leave nothing
    bounds = (
        float(np.log(min(CONSTANTS.least_influence / typical, CONSTANTS.unified_peak))),
        float(np.log(CONSTANTS.unified_peak)),
    )
    accuracy = float(correct.mean())
    log_peak = find_root(lambda peak: float(sigmoid(np.exp(peak) * influence).mean()) - accuracy, *bounds)
    field = AnchorField(field.anchors, kernel.asarray(np.exp(log_peak) * signs), field.widths, power)
    return Placed(field, others, width_search)


def _search_width(
    kernel: Kernel, positions: FloatArray, neighbours: FloatArray, power: int, target: float
) -> tuple[float, str]:
    """Return the logarithm of the width at which the average pair decays to a target, and how the search went."""
    some = kernel.asarray(positions[:: max(1, len(positions) // CONSTANTS.anchor_sample)])
    ones = np.ones(len(some))

    def excess(log_width: float) -> float:
        equal = AnchorField(some, kernel.asarray(ones / len(some)), kernel.asarray(np.exp(log_width) * ones), power)
        return float(kernel.influence(neighbours, equal).mean()) - target

    found = find_root(excess, *CONSTANTS.log_widths)
    return found, "at_limit" if found == CONSTANTS.log_widths[1] else "solved"


def train(
    kernel: Kernel,
    vectors: FloatArray,
    correct: NDArray[np.bool_],
    field: AnchorField[Any],
    options: Training,
    rng: np.random.Generator,
    on_epoch: Callable[[int, AnchorField[Any]], None] | None = None,
) -> tuple[AnchorField[NDArray[np.float32]], list[dict[str, float]], str]:
    """Minimise the binary cross-entropy of correctness with Adam, at a rate that falls linearly.

    ``on_epoch`` sees the anchors after each epoch, in arrays that the next epoch changes.

    Returns
    -------
    tuple
        The trained anchors, one dict per epoch (epoch, loss, accuracy), and why training stopped: "converged" when
        the estimated accuracy on the source came within epsilon of the true one, "max_epochs", or "nothing_to_learn".

    Notes
    -----
    Loss and estimated accuracy of an epoch are means over its batches, each by the anchors as they were before its own
    step: a pass over all rows after the epoch would take a quarter of its time again.
    """
    units, targets = kernel.asarray(unit_rows(vectors)), kernel.asarray(correct)
    accuracy, n = correct.mean(), len(vectors)
    optimiser = _Adam(kernel, field, options.learn, options.learning_rate)
    field = optimiser.field
    history: list[dict[str, float]] = []
    stop_reason = "max_epochs" if options.learn else "nothing_to_learn"
    for epoch in range(1, options.max_epochs + 1 if options.learn else 2):
        order = rng.permutation(n)
        loss = estimated = 0.0
        for start in range(0, n, options.batch_size):
            batch = order[start : start + options.batch_size]
            gradients = kernel.gradients(units[batch], targets[batch], field)
            loss += gradients.loss * len(batch) / n
            estimated += gradients.accuracy * len(batch) / n
            if options.fixed_columns:
                gradients.anchors[:, -options.fixed_columns :] = 0.0
            done = (epoch - 1 + (start + len(batch)) / n) / options.max_epochs
            optimiser.step(gradients, 1.0 - CONSTANTS.rate_fall * done)
        history.append({"epoch": epoch, "loss": loss, "accuracy": estimated})
        if on_epoch is not None:
            on_epoch(epoch, field)
        if abs(estimated - accuracy) < options.epsilon and options.learn:
            stop_reason = "converged"
            break
    learned = {part: kernel.to_numpy(getattr(field, part)) for part in PARTS}
    return AnchorField(**learned, power=field.power), history, stop_reason


class _Adam:
    """Adam on the arrays of any backend; the values it starts from stay as they are."""

    def __init__(self, kernel: Kernel, field: AnchorField[Any], learn: frozenset[str], learning_rate: float) -> None:
        self._kernel = kernel
        self._learning_rate = learning_rate
        self._values = {part: 1.0 * getattr(field, part) if part in learn else getattr(field, part) for part in PARTS}
        self._means, self._squares = ({part: 0.0 * self._values[part] for part in sorted(learn)} for _ in range(2))
        self._steps = 0
        self.field = AnchorField(**self._values, power=field.power)

    def step(self, gradients: Gradients[Any], scale: float) -> None:
        """Move ``field`` against the gradients, at the learning rate times ``scale``."""
        self._steps += 1
        rate = scale * self._learning_rate / (1.0 - MEAN_DECAY**self._steps)
        rates = (rate, 1.0 / (1.0 - SQUARE_DECAY**self._steps))
        for part, mean in self._means.items():
            self._kernel.descend(self._values[part], getattr(gradients, part), mean, self._squares[part], rates)
