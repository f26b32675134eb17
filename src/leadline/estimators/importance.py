"""IM: the source's accuracy, reweighted until the source's confidences look like the target's."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.errors import InputError
from leadline.estimators.confidence import SoftmaxEstimator
from leadline.estimators.integrity import require
from leadline.estimators.sums import Reduced, State, Tally

# Keeps the KLIEP weights finite where the target's shares lie outside what any reweighting of the source can reach.
_KLIEP_RIDGE = 1e-4
_ROUNDING = 1e-12  # a confidence on the edge of a bin, but for that, is in the bin above

_MOST_BINS = 10**6


class ImportanceReweighting(SoftmaxEstimator):
    """IM: importance-weighted source accuracy on slices of the confidence (Chen et al., 2021, Mandoline).

    Right when samples of equal confidence are right equally often on source and target.

    Parameters
    ----------
    weights
        "bins": target share over source share in equal-width bins of the confidence, the accuracy of a bin without
        source rows being that of the nearest one. "renormalised": as published, the same weights divided by their sum
        over the source, so that target rows in such a bin count for nothing. "kliep": Mandoline's log-linear weights
        (KLIEP), with the bins and the predicted classes as slices.
    n_bins
        Number of bins on [0, 1].
    temperature_scaling
        Calibrate on the source first.

    Notes
    -----
    The three differ on target rows in bins that the source never reached; their share is the diagnostic
    ``uncovered_share``. Where it is 0, "bins" and "renormalised" are the same estimate. KLIEP weights match the other
    rows only.
    """

    method = "im"

    source_counts_: NDArray[np.float64]
    source_correct_: NDArray[np.float64]

    def __init__(
        self,
        *,
        weights: Literal["bins", "renormalised", "kliep"] = "bins",
        n_bins: int = 10,
        temperature_scaling: bool = True,
    ) -> None:
        super().__init__(temperature_scaling=temperature_scaling)
        self.weights = weights
        self.n_bins = n_bins

    def _check_options(self) -> None:
        super()._check_options()
        if not 1 <= self.n_bins <= _MOST_BINS:
            raise InputError(f"n_bins must be from 1 to {_MOST_BINS}; got {self.n_bins}.")

    def _check_learned(self) -> None:
        counts, correct = self.source_counts_, self.source_correct_
        require(len(counts) == self.n_bins, "source_counts_ do not fit n_bins")
        require(bool((counts >= 0).all() and counts.sum() > 0), "source_counts_ are no counts")
        require(bool((correct >= 0).all() and (correct <= counts).all()), "source_correct_ are no counts")

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        shape = (self.n_bins, self.n_classes_)
        predicted, bins = self._bins(logits)
        cells = bins * shape[1] + predicted
        self.source_counts_ = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        right = np.bincount(cells, weights=predicted == labels, minlength=shape[0] * shape[1])
        self.source_correct_ = right.reshape(shape).astype(np.float64)

    def _bins(self, logits: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return predicted class and confidence bin of each row, shapes (n,)."""
        found = self._read(logits)
        bins = (found.probability * self.n_bins + _ROUNDING).astype(np.intp)
        return found.classes, np.minimum(bins, self.n_bins - 1)

    def _bin_accuracy(self) -> NDArray[np.float64]:
        """Return the source accuracy per bin, empty bins filled from the nearest one, shape (n_bins,)."""
        count = self.source_counts_.sum(axis=1)
        filled = np.flatnonzero(count)
        nearest = filled[np.abs(np.arange(self.n_bins)[:, None] - filled).argmin(axis=1)]
        return np.asarray(self.source_correct_.sum(axis=1)[nearest] / count[nearest])

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Count the target per bin, with the source accuracy of the bin as each row's value."""
        predicted, bins = self._bins(logits)
        values, tally = self._bin_accuracy()[bins], {"bins": Tally(bins, self.n_bins)}
        reduced = Reduced.from_predicted(predicted, self.n_classes_, values, tally)
        return reduced if self.weights == "bins" else Reduced(reduced.sums, rows=reduced.rows)

    def _accuracy(self, state: State, total: Reduced) -> float:
        if self.weights == "bins":
            return super()._accuracy(state, total)
        weights = self._cell_weights(total)
        return float((weights * self.source_correct_).sum() / (weights * self.source_counts_).sum())

    def _by_class(self, state: State, total: Reduced) -> NDArray[np.float64]:
        if self.weights == "bins":
            return super()._by_class(state, total)
        weights = self._cell_weights(total)
        mass = (weights * self.source_counts_).sum(axis=0)
        overall = (weights * self.source_correct_).sum() / mass.sum()
        with np.errstate(invalid="ignore"):  # a class that the source never predicted has no accuracy of its own
            return np.asarray(np.where(mass > 0, (weights * self.source_correct_).sum(axis=0) / mass, overall))

    def _cell_weights(self, total: Reduced) -> NDArray[np.float64]:
        """Return the weights of the source cells up to a factor, shape (n_bins, c)."""
        if self.weights == "kliep":
            return self._kliep_weights(total)
        source = self.source_counts_.sum(axis=1)
        ratio = _shares_within(total.sums["bins"], source) / np.maximum(source, 1.0)
        return np.broadcast_to(ratio[:, None], self.source_counts_.shape)

    def _kliep_weights(self, total: Reduced) -> NDArray[np.float64]:
        """Return log-linear weights of the source cells up to a factor, shape (n_bins, c).

        Maximises ``mean_T(theta . g) - log mean_S exp(theta . g)`` over theta, g being the indicators of bin and
        predicted class: a concave problem on the table of cells, whatever the number of rows. No weights give mass to
        a slice that the source lacks: the target's shares are those among the slices that it has.
        """
        from scipy.optimize import minimize

        n_bins = self.n_bins
        source = self.source_counts_ / self.source_counts_.sum()
        present = source > 0
        target = np.concatenate(
            [
                _shares_within(total.sums["bins"], source.sum(axis=1)),
                _shares_within(total.sums["count"], source.sum(axis=0)),
            ]
        )

        def exponents(theta: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.where(present, theta[:n_bins, None] + theta[None, n_bins:], -np.inf)

        def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            exponent = exponents(theta)
            top = exponent.max()
            mass = source * np.exp(exponent - top)
            normaliser = mass.sum()
            expected = np.concatenate([mass.sum(axis=1), mass.sum(axis=0)]) / normaliser
            value = top + np.log(normaliser) - theta @ target + 0.5 * _KLIEP_RIDGE * theta @ theta
            return float(value), expected - target + _KLIEP_RIDGE * theta

        exponent = exponents(minimize(loss, np.zeros(len(target)), jac=True, method="L-BFGS-B").x)
        return np.asarray(np.exp(exponent - exponent.max()))

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        empty = self.source_counts_.sum(axis=1) == 0
        uncovered = total.sums["bins"][empty].sum() / total.sums["bins"].sum()
        return super()._diagnostics(state, total) | {"uncovered_share": float(uncovered)}


def _shares_within(amounts: NDArray[np.float64], source: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares of the amounts in the slices that the source has; the source's own where there are none."""
    within = np.where(source > 0, amounts, 0.0)
    return np.asarray(within / within.sum() if within.any() else source / source.sum())
