"""COT and COTT: what it costs to move the target's confidences onto labels as frequent as the source's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray, row_blocks
from leadline.estimators.passes import drive
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Reduced, State
from leadline.estimators.transport_base import TransportEstimator
from leadline.numeric import read
from leadline.rowwise import Assigned

Array = NDArray[np.float64]
_TILE_VALUES = 1 << 16


class ConfidenceTransport(TransportEstimator):
    """COT: one minus the cost of moving the target's softmax outputs onto the source's labels (Lu et al., 2023).

    Right when the target's classes are as frequent as the source's and its errors are what it takes to make the
    predictions so.

    Parameters
    ----------
    solver
        "auto": Newton's method on the smoothed dual, of many rows on a sample first and then on those that a few passes
        find near the borders between labels; it needs matrices of c x c numbers. "exact": the linear program, by the
        network simplex of POT, whose time grows with the square of the rows; rows that come in blocks are solved by the
        dual all the same, which agrees to well below 1e-4.
    temperature_scaling
        Calibrate on the source first.

    Notes
    -----
    With p the softmax outputs of n rows and pi the source's label shares, the cost is

        min over plans P >= 0 with sum_k P_ik = 1/n and sum_i P_ik = pi_k of sum_ik P_ik ||e_k - p_i||_1 / 2

    where ``||e_k - p_i||_1 / 2 = 1 - p_ik``. Published code draws n one-hot labels and solves an n x n problem; equal
    labels are equal points, and merging equal points changes no plan's cost, so the n x c problem has the same value.
    Labels that the source does not have receive no mass. ``correctness`` is one minus each row's own cost; rows with
    equal probabilities share theirs. Where a classifier with a threshold of its own does not predict the likeliest
    class, that is multiplied by the probability of the predicted class over that of the likeliest one.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.log([[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    >>> model = ConfidenceTransport(temperature_scaling=False).fit(logits, [0, 0, 1])
    >>> round(model.estimate(np.log([[0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])).accuracy, 4)
    0.6333
    """

    method = "cot"
    _needs_one_plan = False

    def _whole_values(self, logits: FloatArray, found: Assigned) -> Array:
        return np.maximum(found.kept, 0.0) * self._of_predicted(logits)

    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        del tied
        kept = np.einsum("ik,ik->i", shares, self._probabilities(logits))
        return np.asarray(kept * self._of_predicted(logits))

    def _of_predicted(self, logits: FloatArray) -> Array | float:
        """Return the probability of the predicted class over that of the likeliest one, shape (n,), or 1 for all."""
        if self.source_.decision_threshold is None:
            return 1.0
        predicted = logits.argmax(axis=1)
        return np.exp(read(self.source_.outputs(logits), self.temperature_, classes=predicted).own)


class ThresholdedTransport(TransportEstimator):
    """COTT: the share of the target moved at no more than the source's threshold cost (Lu et al., 2023).

    As COT, but counts what is expensive to move, as ATC counts low confidences: the threshold is the cost above which
    lies as much of the source, moved onto its own label shares, as the source has errors.

    Parameters
    ----------
    solver
        As for :class:`ConfidenceTransport`, for source and target. The exact solver leaves it to the dual where it
        finds that the optimal plan is not unique.
    temperature_scaling
        Calibrate on the source first.

    Notes
    -----
    A row costs ``n sum_k P_ik (1 - p_ik)`` with P the optimal plan, and the estimate is the share of rows that cost
    ``threshold_`` or less. Almost every row goes to one label; without ties, fewer rows than there are classes are
    split. Where ties leave several plans of least cost, the one of largest entropy is taken, which does not depend on
    the order of rows and classes. Where equal rows go to different labels, as many of them as the plan says count with
    the cost of each label, and the ``correctness`` of each is the share of them that counts as right. Costs
    are taken from log-probabilities, so that those of saturated outputs still differ. On the source itself the
    estimate is the source accuracy, but for rows that cost as much as the threshold.
    """

    method = "cott"
    _needs_one_plan = True

    threshold_: float

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(logits, labels)
        exact = self._exact_shares(logits)
        self.threshold_ = np.inf  # every row counts as right until the threshold is known
        state = drive(self, InMemory(logits).scan, judged=False).state() if exact is None else {}
        costs, masses, done = [], [], 0
        for tile in row_blocks(logits, _TILE_VALUES):
            rows = slice(done, done + len(tile))
            done += len(tile)
            shares, tied = self._dual_shares(tile, state) if exact is None else (exact[0][rows], exact[1][rows])
            cost, mass = _pieces(self._take(self._log_softmax(tile)), shares, tied)
            costs.append(cost[mass > 0])
            masses.append(mass[mass > 0])
        errors = round((1.0 - self.source_accuracy_) * self.n_source_)
        self.threshold_ = _matching_cost(np.concatenate(costs), np.concatenate(masses), errors)

    def _whole_values(self, logits: FloatArray, found: Assigned) -> Array:
        read_off = read(self.source_.outputs(logits), self.temperature_, classes=found.labels)
        return (read_off.improbability <= self.threshold_).astype(np.float64)

    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        costs, masses = _pieces(self._take(self._log_softmax(logits)), shares, tied)
        right: Array = (masses * (costs <= self.threshold_)).sum(axis=1)
        return np.minimum(right, 1.0)  # the dual leaves a millionth of the mass undecided

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        return super()._diagnostics(state, total) | {"threshold": self.threshold_}


def _pieces(log_probabilities: FloatArray, shares: Array, tied: Array) -> tuple[Array, Array]:
    """Return cost and mass of the pieces that a row's mass is moved in, shapes (n, k + 1).

    Of m tied rows, as many as fit go to one label each; what is left over makes rows that are split, with the mean
    cost of their parts (the last column). A row without ties is one such piece, with the cost of the row.
    """
    costs = -np.expm1(log_probabilities)  # 1 - p, with all digits of costs near zero
    # A thousandth of a row is not worth splitting it for: so much may remain of labels that are barely out of reach.
    whole = np.floor(shares * tied[:, None] * (1 + 1e-6) + 1e-3) / tied[:, None]
    rest = np.maximum(shares - whole, 0.0)
    mass = np.maximum(1.0 - whole.sum(axis=1), 0.0)
    mass[mass * tied < 0.5] = 0.0
    parts = np.maximum(rest.sum(axis=1), np.finfo(np.float64).tiny)
    mean_cost = np.einsum("ik,ik->i", rest, costs) / parts
    return np.column_stack([costs, mean_cost]), np.column_stack([whole, mass])


def _matching_cost(costs: Array, masses: Array, errors: int) -> float:
    """Return the cost above which lies as much mass as there are errors, a row having mass 1.

    A little more than the largest cost that counts as right, so that sums in another order do not push that row out;
    without a single right row, a little less than the smallest cost.
    """
    n = masses.sum()
    if n - errors < 0.5:
        least = float(costs.min())
        return min(least * (1 - 1e-9), float(np.nextafter(least, -np.inf)))
    order = np.argsort(costs)
    reached = np.cumsum(masses[order])
    # A millionth of the mass is what the dual may leave undecided.
    last = int(np.searchsorted(reached, n - errors - 1e-6 * n))
    return float(costs[order[last]]) * (1 + 1e-9)
