"""Semi-discrete optimal transport of many rows onto a few labels, in passes over the rows.

Each row i of n has mass 1/n, label k has mass pi_k, and moving row i to label k costs ``1 - p_ik``. The dual has one
potential per label, whatever the number of rows:

    g(u) = pi . u + mean_i min_k (1 - p_ik - u_k)

is concave and its maximum is the cost of transport. It is piecewise linear, so it is smoothed: with
``w_i = softmax((p_i + u) / epsilon)`` the maximum of

    g_epsilon(u) = pi . u + 1 - epsilon mean_i log sum_k exp((p_ik + u_k) / epsilon)

has ``mean_i w_i = pi``, which makes w a transport plan that costs at most ``epsilon log c`` too much. Newton's method
follows this maximum down to an epsilon where almost every row has one label and the plan is that of the linear
program. Where optimal plans are not unique (tied rows), w tends to the one of them with the largest entropy, which
treats equal rows equally.

Of many rows, a sample shows where the potentials are, and how far they may be off. Only rows whose best label is ahead
of the next by less than that can go elsewhere at the potentials of all rows; the others are settled. So a pass that
counts the settled rows and keeps the near ones (:mod:`leadline.estimators.transport_base`) leaves a small problem with
the same solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leadline.compiled import load_loops
from leadline.data.outputs import FloatArray
from leadline.threads import slices, team

Array = NDArray[np.float64]

_LOOPS, _OVERLAPS = "leadline.rowwise.loops", "leadline.rowwise.overlaps"
_FIRST_EPSILON = 0.3  # costs lie in [0, 1]: smooth enough for Newton's method to start from zero
LAST_EPSILON = 1e-8  # as small as rounding allows the shares of tied rows to be solved for
UNDECIDED = 20 * LAST_EPSILON  # labels nearer than this to a row's best one have a share in it to speak of
_NEGLIGIBLE = 40.0  # exp(-40) is below the rounding of a sum of shares
_COARSELY_NEGLIGIBLE = 18.0  # ... of a point on the way
REACH = _NEGLIGIBLE * LAST_EPSILON  # rows whose best label is ahead by more go there as a whole
_TOLERANCE = 1e-9  # of the label masses, in sum
_COARSE_TOLERANCE = 1e-5  # of a point on the way
_MAX_STEPS = 200
_COARSE_EPSILON = 1e-3  # above, points are on the way, and digits beyond the eighth are not worth their time
_COARSELY_FLAT = 0.1  # in units of epsilon: p that differ by less count as equal in the curvature on the way
_MOST_PARTS = 16  # that rows are cut into to be added up by themselves
_LEAST_PART, _MOST_PRODUCTS = 1 << 16, 1 << 22  # values of a part that is worth it, and of the products of all parts
_RADIUS = 4.0  # longest step in units of epsilon, beyond which the quadratic model says nothing
_MAX_RADIUS = 20.0
_MANY_VALUES = 1 << 20  # of a problem in which it is worth looking for rows that are settled
_NEAR_EPSILON = 2e-3  # where most rows are far from every border between two labels
_NEAR = 20 * _NEAR_EPSILON  # ... by more than this, many times what the potentials still move
_SETTLED = 0.5  # a Newton step shorter than this, in units of epsilon, allows a smaller epsilon


@dataclass(frozen=True, eq=False)
class Assignment:
    """Where rows go at given potentials.

    Attributes
    ----------
    label
        Shape (n,): the best label of each row, the only one of all rows but those in ``split``.
    reduced
        Shape (n,): ``max_k p_ik + u_k``.
    split
        Shape (s,): numbers of the rows with other labels within reach of epsilon.
    exponents
        Shape (s, c): ``(p_ik + u_k - reduced_i) / epsilon`` of the split rows.
    shares
        Shape (s, c): the shares of the split rows' mass.
    log_mass
        Shape (s,): ``log sum_k exp(exponents)``.
    """

    label: NDArray[np.intp]
    reduced: FloatArray
    split: NDArray[np.intp]
    exponents: FloatArray
    shares: FloatArray
    log_mass: FloatArray

    def dense_shares(self) -> Array:
        """Return the share of each row's mass that goes to each label, shape (n, c)."""
        shares = np.zeros((len(self.label), self.shares.shape[1]))
        shares[np.arange(len(shares)), self.label] = 1.0
        shares[self.split] = self.shares
        return shares

    def tied(self, overlap: Array) -> Array:
        """Return how many rows are split as each row is, itself included, shape (n,).

        Rows without ties split no pair of labels twice (two rows that did would form a cycle, and moving mass around
        it would make the plan cheaper), so that the sum of ``w_ik w_il`` over all rows i, ``overlap``, is that of
        the row itself. With m equal rows it is m times as large.
        """
        tied = np.ones(len(self.label))
        if len(self.split):
            best = np.argpartition(self.shares, -2, axis=1)[:, -2:]
            product = np.take_along_axis(self.shares, best, axis=1).prod(axis=1)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                estimate = overlap[best[:, 0], best[:, 1]] / product
            tied[self.split] = np.maximum(np.rint(np.nan_to_num(estimate, nan=1.0)), 1.0)
        return tied


def assign(probabilities: FloatArray, potentials: Array, epsilon: float = LAST_EPSILON) -> Assignment:
    """Send rows, shape (n, c), to labels by the potentials, shape (c,), smoothed by epsilon."""
    scores = probabilities + potentials.astype(probabilities.dtype)
    label = scores.argmax(axis=1)
    reduced = scores[np.arange(len(scores)), label]
    negligible = _NEGLIGIBLE if scores.dtype == np.float64 else _COARSELY_NEGLIGIBLE
    near = scores > (reduced - negligible * epsilon)[:, None]
    split = np.flatnonzero(np.count_nonzero(near, axis=1) > 1)
    exponents = scores[split]
    exponents -= reduced[split, None]
    exponents /= epsilon
    # Processors are slow with the denormal numbers that exp would give further below.
    np.maximum(exponents, -2 * _NEGLIGIBLE, out=exponents)
    shares = np.exp(exponents)
    shares *= near[split]
    mass = shares.sum(axis=1)
    shares /= mass[:, None]
    return Assignment(label, reduced, split, exponents, shares, np.log(mass))


class Sums(NamedTuple):
    """Sums over rows at given potentials.

    Attributes
    ----------
    share
        Shape (c,): the masses that go to the labels.
    drift
        Shape (c,): how they change with epsilon.
    overlap
        Shape (c, c), below the diagonal: the sum of the products of shares, which says how they change with potentials.
    smooth
        The smoothed largest values of p + potential.
    """

    share: Array
    drift: Array
    overlap: Array
    smooth: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows in memory that are to be moved onto labels.

    Attributes
    ----------
    probabilities
        Shape (n, c): of the labels with mass.
    weights
        Shape (n,): how many rows each stands for.
    label_share
        Shape (c,): the masses of the labels, all positive, with sum 1.
    settled
        Shape (c,): further rows that go to each label whatever the potentials.
    """

    probabilities: FloatArray
    weights: Array
    label_share: Array
    settled: Array

    @property
    def n(self) -> float:
        """The number of all rows."""
        return float(self.weights.sum() + self.settled.sum())

    @cached_property
    def _cuts(self) -> list[slice]:
        """The parts of the rows that are added up by themselves: as many for any number of cores, so are the digits."""
        rows, c = self.probabilities.shape
        parts = min(_MOST_PARTS, max(1, _MOST_PRODUCTS // (c * c)), max(1, rows * c // _LEAST_PART))
        return slices(rows, max(1, -(-rows // parts)))

    @cached_property
    def _room(self) -> tuple[Array, Array]:
        """Memory for the sums and products of each part, shapes (parts, 5, c) and (parts, c, c)."""
        parts, c = len(self._cuts), self.probabilities.shape[1]
        return np.empty((parts, 5, c)), np.empty((parts, c, c))

    def near(self, potentials: Array) -> Problem:
        """Return the problem with those rows settled whose best label is far ahead of the next."""
        label = np.empty(len(self.probabilities), dtype=np.intp)
        loops = load_loops(_LOOPS)

        def work(cut: slice) -> None:
            loops.find_alone(self.probabilities[cut], potentials, _NEAR, label[cut])

        with team(worth_it=len(self._cuts) > 1) as workers:
            workers.run(work, self._cuts)
        far = label >= 0
        settled = np.bincount(label[far], weights=self.weights[far], minlength=len(potentials))
        return Problem(self.probabilities[~far], self.weights[~far], self.label_share, self.settled + settled)

    def sums(self, potentials: Array, epsilon: float) -> Sums:
        """Add up over all rows, on all cores."""
        sums, products = self._room
        coarse = epsilon > _COARSE_EPSILON
        negligible, flat = (_COARSELY_NEGLIGIBLE, _COARSELY_FLAT) if coarse else (_NEGLIGIBLE, 0.0)
        loops = load_loops(_LOOPS)

        def work(part: int) -> None:
            sums[part], products[part] = 0.0, 0.0
            rows, weights = self.probabilities[self._cuts[part]], self.weights[self._cuts[part]]
            loops.add_shares(rows, weights, potentials, epsilon, negligible, flat, sums[part], products[part])

        with team(worth_it=len(self._cuts) > 1) as workers:
            workers.run(work, range(len(self._cuts)))
        share, drift, apart, (levels, *_), (smooth, *_) = sums.sum(axis=0)
        level, overlap = np.exp((potentials - potentials.max()) / epsilon), np.zeros(products.shape[1:])
        load_loops(_OVERLAPS).add_products(products, apart, levels, level, overlap)
        return Sums(share + self.settled, drift, overlap, float(smooth + self.settled @ potentials))


@dataclass(frozen=True, eq=False)
class Solution:
    """Where Newton's method ended.

    Attributes
    ----------
    potentials
        Shape (c,).
    overlap
        Shape (c, c): the sum of the products of shares over all rows, off the diagonal: for :meth:`Assignment.tied`.
    """

    potentials: Array
    overlap: Array


def solve(
    problem: Problem,
    start: Array | None = None,
    *,
    first_epsilon: float = _FIRST_EPSILON,
    last_epsilon: float = LAST_EPSILON,
) -> Solution:
    """Return the potentials of the least cost.

    Parameters
    ----------
    problem
        Rows and labels.
    start
        Shape (c,): potentials to begin with; zeros by default.
    first_epsilon, last_epsilon
        Of the smoothing: costs lie in [0, 1], and from zero the first one must be smooth enough for Newton's method.

    Notes
    -----
    The shares' mean m(u, epsilon) has the derivatives ``curvature / epsilon`` in u and ``-drift / epsilon`` in
    epsilon. A step at constant epsilon solves ``curvature h = epsilon (pi - m)``; a step that also goes to a smaller
    epsilon' solves ``curvature h = epsilon (pi - m) + (epsilon' - epsilon) drift``.
    """
    n, label_share = problem.n, problem.label_share
    potentials = np.zeros(len(label_share)) if start is None else start
    epsilon, ratio, radius, corrections = max(first_epsilon, last_epsilon), 0.3, _RADIUS, 0
    base_value, base_step = -np.inf, np.zeros_like(potentials)
    rest, looked_at = problem, None
    for _ in range(_MAX_STEPS):
        if looked_at is None and epsilon <= _NEAR_EPSILON and problem.probabilities.size >= _MANY_VALUES:
            rest, looked_at = problem.near(potentials), potentials
        sums = rest.sums(potentials, epsilon)
        coarse = epsilon > _COARSE_EPSILON
        missing = label_share - sums.share / n
        value = float(label_share @ potentials - sums.smooth / n)
        # The shares of split rows are no more accurate than the potentials that they depend on.
        noise = np.finfo(np.float64).eps / epsilon * 2 * float(sums.overlap.sum()) / n
        converged = float(np.abs(missing).sum()) <= (_COARSE_TOLERANCE if coarse else _TOLERANCE + noise)
        if value < base_value - (1e-7 if coarse else 1e-13) and not converged:
            potentials = potentials - base_step
            base_step = base_step / 4
            potentials, radius = potentials + base_step, max(radius / 4, 0.1)
        else:
            newton = _DampedNewton(sums.overlap / n, np.maximum(sums.share / n, label_share), coarse)
            step = newton.step(epsilon * missing, radius * epsilon)
            if converged and epsilon <= last_epsilon:
                potentials = potentials + newton.step(epsilon * missing, _SETTLED * epsilon)
                break
            if epsilon > last_epsilon and (converged or np.abs(step).max() < _SETTLED * epsilon):
                if corrections == 0:
                    ratio = max(0.7 * ratio, 0.02)
                elif corrections > 1:
                    ratio = min(ratio**0.5, 0.6)
                smaller = max(ratio * epsilon, last_epsilon)
                step = newton.step(epsilon * missing + (smaller - epsilon) * sums.drift / n, _RADIUS * epsilon)
                epsilon, radius, corrections, base_value = smaller, _RADIUS, 0, -np.inf
            else:
                radius, corrections = min(2 * radius, _MAX_RADIUS), corrections + 1
                base_value, base_step = value, step
            potentials = potentials + step
    if looked_at is not None:
        moved = float(np.ptp(potentials - looked_at))
        if moved + _NEGLIGIBLE * last_epsilon > _NEAR:  # rows that were settled may go elsewhere
            return solve(problem, potentials, first_epsilon=moved, last_epsilon=last_epsilon)
    return Solution(potentials, sums.overlap + sums.overlap.T)


def duality_gap(potentials: Array, sums: Mapping[str, Array], n: float, label_share: Array) -> float:
    """Return by how much the cost of the plan, made to meet the label masses, can exceed the least cost.

    The plan costs ``1 - kept / n``, and moving the mass that is at the wrong label costs at most 1 for each unit; the
    unsmoothed dual ``pi . u + 1 - reduced / n`` is below the least cost at any potentials.
    """
    violation = float(np.abs(label_share - sums["share"] / n).sum())
    above = 1.0 - float(sums["kept"] / n) + 0.5 * violation
    below = float(label_share @ potentials) + 1.0 - float(sums["reduced"] / n)
    return max(above - below, 0.0)


class _DampedNewton:
    """Solves with the curvature, damped until the step stays within a radius (Levenberg and Marquardt)."""

    def __init__(self, overlap: Array, scale: Array, coarse: bool) -> None:
        self._least_damping = 1e-5 if coarse else 1e-10
        self._root = np.sqrt(scale)
        # The potentials are defined up to a constant; the product of the roots takes this direction out.
        self._matrix = np.zeros_like(overlap)
        load_loops(_OVERLAPS).scaled_laplacian(overlap, self._root, self._matrix)
        self._factors: dict[float, Array | None] = {}

    def step(self, right: Array, radius: float) -> Array:
        """Return the step, its middle at zero, no component longer than the radius."""
        from scipy.linalg.lapack import dpotrs

        damping = self._least_damping
        while True:
            factor = self._factor(damping)
            if factor is not None:
                step = dpotrs(factor, right / self._root)[0] / self._root
                step -= 0.5 * (step.max() + step.min())
                if np.abs(step).max() <= radius:
                    return np.asarray(step)
            damping *= 10

    def _factor(self, damping: float) -> Array | None:
        """Return the factor of the damped matrix, worked out once; None where rounding leaves it without."""
        from scipy.linalg.lapack import dpotrf

        if damping not in self._factors:
            # By columns, as LAPACK wants it, the lower half is the upper one.
            damped = self._matrix.copy().T
            damped.flat[:: len(damped) + 1] += damping
            factor, failed = dpotrf(damped, overwrite_a=True, clean=False)
            self._factors[damping] = None if failed else factor
        return self._factors[damping]
