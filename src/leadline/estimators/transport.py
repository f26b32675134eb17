"""COT and COTT: what it costs to move the target's confidences onto labels as frequent as the source's."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from functools import reduce as fold
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray, row_blocks
from leadline.errors import InputError
from leadline.estimators import dual
from leadline.estimators.confidence import SoftmaxEstimator
from leadline.estimators.passes import Solved, drive
from leadline.estimators.scans import InMemory
from leadline.estimators.sums import Reduced, State
from leadline.numeric import of_class
from leadline.threads import slices, team

Array = NDArray[np.float64]

# The network simplex needs less than a second up to here; its time grows with the square of the rows.
_EXACT_ROWS = 20_000
_EXACT_VALUES = 1_000_000
_TILE_VALUES = 1 << 16  # half a megabyte of float64: what is done to a tile stays in the second-level cache
_PARALLEL_FROM = 1 << 18
# Rows that agree to here are one row for the exact solver, so that ties are split evenly and in any order of rows.
_DECIMALS = 12


class TransportEstimator(SoftmaxEstimator):
    """Base of the methods that transport softmax outputs onto labels distributed as in the source."""

    passes = "many"
    #: Whether the estimate differs between plans of the same least cost.
    _needs_one_plan: ClassVar[bool]

    label_share_: Array

    def __init__(self, *, solver: Literal["auto", "exact", "dual"] = "auto", temperature_scaling: bool = True) -> None:
        super().__init__(temperature_scaling=temperature_scaling)
        self.solver = solver

    def _fit_softmax(self, log_probabilities: Array, predicted: NDArray[np.intp], labels: IntArray) -> None:
        del log_probabilities, predicted
        if self.solver not in ("auto", "exact", "dual"):
            raise InputError(f"solver must be 'auto', 'exact' or 'dual'; got {self.solver!r}.")
        self.label_share_ = np.bincount(labels, minlength=self.n_classes_) / len(labels)

    @abstractmethod
    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        """Return the value of each row, shape (n,), given where its mass goes.

        Parameters
        ----------
        logits
            Shape (n, c).
        shares
            Shape (n, k): the share of each row's mass that goes to each of the k labels that the source has.
        tied
            Shape (n,): how many rows have the same shares for the same reason.
        """

    @property
    def _labels(self) -> NDArray[np.intp]:
        """The labels that the source has; no mass goes to any other, shape (k,)."""
        return np.flatnonzero(self.label_share_)

    def _take(self, columns: FloatArray) -> FloatArray:
        """Return the columns of the labels that the source has."""
        labels = self._labels
        return columns if len(labels) == self.n_classes_ else columns[:, labels]

    def _probabilities(self, logits: FloatArray, *, coarse: bool = False) -> FloatArray:
        """Return calibrated probabilities of the labels that the source has, shape (n, k)."""
        outputs, dtype = self.source_.outputs(logits), np.float32 if coarse else np.float64
        probabilities: FloatArray = np.array(outputs, dtype=dtype, order="C")
        probabilities -= probabilities.max(axis=1, keepdims=True)
        probabilities /= self.temperature_
        np.exp(probabilities, out=probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return self._take(probabilities)

    # --------------------------------------------------------------------------------------- in passes over blocks
    def start(self) -> State:
        """Return potentials of zero, and much smoothing."""
        return dual.start(len(self._labels))

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Sum shares and curvature at the potentials of the state; in the last pass, values too."""
        return fold(Reduced.__add__, (self._reduce_block(block, state) for block in row_blocks(logits)))

    def _reduce_block(self, logits: FloatArray, state: State) -> Reduced:
        sums = self._dual_sums(logits, state)
        if not state["final"]:
            return Reduced(Reduced.from_values(logits, np.zeros(len(logits)), **sums).sums)
        values = [self._values(tile, *self._dual_shares(tile, state)) for tile in row_blocks(logits, _TILE_VALUES)]
        return Reduced.from_values(logits, np.concatenate(values), **sums)

    def _dual_sums(self, logits: FloatArray, state: State) -> dict[str, Array]:
        """Return the sums of the dual, worked out on all cores if there is enough to do."""
        coarse = dual.is_coarse(state)
        with team(worth_it=logits.size >= _PARALLEL_FROM) as workers:
            cuts = slices(len(logits), workers.step(len(logits), len(logits)))
            found: dict[int, dict[str, Array]] = {}

            def work(cut: slice) -> None:
                tiles = row_blocks(logits[cut], _TILE_VALUES)
                probabilities = (self._probabilities(tile, coarse=coarse) for tile in tiles)
                found[cut.start] = dual.block_sums(probabilities, state)

            workers.run(work, cuts)
        return {name: sum((found[cut.start][name] for cut in cuts[1:]), amount) for name, amount in found[0].items()}

    def _dual_shares(self, logits: FloatArray, state: State) -> tuple[Array, Array]:
        """Return the shares (n, k) of each row's mass and the number (n,) of rows tied with it, in the last pass."""
        found = dual.assign(self._probabilities(logits), state)
        return found.dense_shares(), found.tied(state["overlap"])

    def advance(self, state: State, total: Reduced) -> State | None:
        """Move the potentials, smooth less, or end."""
        n = float(total.sums["count"].sum())
        return dual.advance(state, total.sums, n, self.label_share_[self._labels])

    # --------------------------------------------------------------------------------------------- all rows at once
    def _exact_shares(self, logits: FloatArray) -> tuple[Array, Array] | None:
        """Return what ``_dual_shares`` does, by the linear program; None where that is not wanted or too slow."""
        n, values = len(logits), logits.size
        if self.solver == "dual" or (self.solver == "auto" and (n > _EXACT_ROWS or values > _EXACT_VALUES)):
            return None
        import ot  # brings every array library that is installed, which takes seconds: only where it is needed

        rounded = np.round(self._probabilities(logits), _DECIMALS)
        rows, place, count = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
        costs = 1.0 - rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it warns of is in the log
            plan, log = ot.emd(count / n, self.label_share_[self._labels], costs, numItermax=100_000_000, log=True)
        if log["warning"]:
            return None
        if self._needs_one_plan:
            # More pairs without slack than a tree has edges: there is a cycle to move mass around at no cost. What
            # counts as slack is what the dual can tell apart, so that both agree on which plans are unique.
            slack = costs - log["u"][:, None] - log["v"]
            if np.count_nonzero(slack < dual.UNDECIDED) > sum(costs.shape) - 1:
                return None
        place = place.reshape(-1)
        return (plan / plan.sum(axis=1, keepdims=True))[place], count[place].astype(np.float64)

    def _solve(self, logits: FloatArray) -> Solved | None:
        found = self._exact_shares(logits)
        if found is None:
            return None
        shares, tied = found
        kept = float((shares * np.exp(self._take(self._log_softmax(logits)))).sum())
        return {}, Reduced.from_values(logits, self._values(logits, shares, tied), kept=kept)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        n = float(total.sums["count"].sum())
        found: dict[str, Any] = {"transport_cost": 1.0 - float(total.sums["kept"]) / n, "solver": "exact"}
        if state:
            found |= {
                "solver": "dual",
                "passes": int(state["passes"]) + 1,
                "duality_gap": dual.duality_gap(state, total.sums, n, self.label_share_[self._labels]),
            }
        return super()._diagnostics(state, total) | found


class ConfidenceTransport(TransportEstimator):
    """COT: one minus the cost of moving the target's softmax outputs onto the source's labels (Lu et al., 2023).

    Right when the target's classes are as frequent as the source's and its errors are what it takes to make the
    predictions so.

    Parameters
    ----------
    solver
        "exact": the linear program, by network simplex (POT). "dual": Newton's method on the smoothed dual, in passes
        over blocks of rows; it agrees to well below 1e-4. "auto": exact up to 20,000 rows and 1,000,000 logits. Rows
        that come in blocks are always solved by the dual. The dual needs matrices of c x c numbers.
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

    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        del tied
        log_probabilities = self._log_softmax(logits)
        kept = np.einsum("ik,ik->i", shares, np.exp(self._take(log_probabilities)))
        short = of_class(log_probabilities, logits.argmax(axis=1)) - log_probabilities.max(axis=1)
        return np.asarray(kept * np.exp(short))


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

    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        costs, masses = _pieces(self._take(self._log_softmax(logits)), shares, tied)
        right = (masses * (costs <= self.threshold_)).sum(axis=1)
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
