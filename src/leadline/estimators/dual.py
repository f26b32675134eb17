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
treats equal rows equally. A pass needs only sums over rows (shares, curvature, drift with epsilon), so that rows may
come in blocks of any size and order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray

Array = NDArray[np.float64]

_FIRST_EPSILON = 0.3  # costs lie in [0, 1]: smooth enough for Newton's method to start from zero
_LAST_EPSILON = 1e-8  # as small as rounding allows the shares of tied rows to be solved for
UNDECIDED = 20 * _LAST_EPSILON  # labels nearer than this to a row's best one have a share in it to speak of
_NEGLIGIBLE = 40.0  # exp(-40) is below the rounding of a sum of shares
_TOLERANCE = 1e-9  # of the label masses, in sum
_COARSE_TOLERANCE = 1e-5  # in single precision
_MAX_PASSES = 200
_COARSE_EPSILON = 1e-3  # above, single precision is good enough for a point on the way
_SPARSE = 0.1  # share of non-zeros below which the product of shares is faster without the zeros
_RADIUS = 4.0  # longest step in units of epsilon, beyond which the quadratic model says nothing
_MAX_RADIUS = 20.0
_SETTLED = 0.5  # a Newton step shorter than this, in units of epsilon, allows a smaller epsilon


def start(n_labels: int) -> dict[str, Array]:
    """Return the state of the first pass."""
    return _as_state(
        potentials=np.zeros(n_labels),
        epsilon=_FIRST_EPSILON,
        passes=0,
        final=0,
        ratio=0.3,
        radius=_RADIUS,
        corrections=0,
        base_value=-np.inf,
        base_step=np.zeros(n_labels),
    )


def _as_state(**entries: Array | float) -> dict[str, Array]:
    return {name: np.asarray(entry, dtype=np.float64) for name, entry in entries.items()}


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


def is_coarse(state: Mapping[str, Array]) -> bool:
    """Say whether single precision will do in this pass."""
    return bool(state["epsilon"] > _COARSE_EPSILON)


def assign(probabilities: FloatArray, state: Mapping[str, Array]) -> Assignment:
    """Send rows, shape (n, c), to labels by the potentials and the epsilon of the state."""
    epsilon = float(state["epsilon"])
    scores = probabilities + state["potentials"].astype(probabilities.dtype)
    label = scores.argmax(axis=1)
    reduced = scores[np.arange(len(scores)), label]
    near = scores > (reduced - _NEGLIGIBLE * epsilon)[:, None]
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


def block_sums(tiles: Iterable[FloatArray], state: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a pass needs to know of some rows.

    Parameters
    ----------
    tiles
        FloatArray of the labels with mass, shape (any, c) each: few enough rows together for their shares to be
        held in memory.
    state
        From :func:`start` or :func:`advance`.

    Returns
    -------
    dict
        Sums over rows: ``share`` (c,), ``drift`` (c,), ``curvature`` (c, c), and scalars ``kept`` (of p over the
        plan), ``reduced`` and ``smooth`` (the smoothed ``reduced``).
    """
    epsilon = float(state["epsilon"])
    c = len(state["potentials"])
    share, drift, softened = np.zeros(c), np.zeros(c), np.zeros(c)
    kept = reduced = log_mass = 0.0
    parts: list[FloatArray] = []
    for tile in tiles:
        found = assign(tile, state)
        split, w = found.split, found.shares
        of_best = tile[np.arange(len(tile)), found.label]
        of_best[split] = np.einsum("ik,ik->i", w, tile[split])
        kept += of_best.sum(dtype=np.float64)
        reduced += found.reduced.sum(dtype=np.float64)
        log_mass += found.log_mass.sum(dtype=np.float64)
        of_split = w.sum(axis=0)
        share += np.bincount(found.label, minlength=c) - np.bincount(found.label[split], minlength=c) + of_split
        softened += of_split
        mean_exponent = np.einsum("ik,ik->i", w, found.exponents)
        drift += np.einsum("ik,ik->k", w, found.exponents) - mean_exponent @ w
        parts.append(w)
    # Rows with a single label have no curvature; leaving them out keeps the little that there is free of rounding.
    curvature = np.diag(softened) - _product(np.concatenate(parts))
    return _as_state(
        share=share,
        drift=drift,
        curvature=curvature,
        kept=kept,
        reduced=reduced,
        smooth=reduced + epsilon * log_mass,
    )


def _product(shares: FloatArray) -> FloatArray:
    """Return ``shares.T @ shares``."""
    if np.count_nonzero(shares) > _SPARSE * shares.size:
        return np.asarray(shares.T @ shares)
    from scipy.sparse import csr_array

    sparse = csr_array(shares)
    return np.asarray((sparse.T @ sparse).toarray())


def advance(
    state: Mapping[str, Array], sums: Mapping[str, Array], n: float, label_share: Array
) -> dict[str, Array] | None:
    """Return the state of the next pass; None when this pass was the last.

    Parameters
    ----------
    state
        The state of this pass.
    sums
        The sums of :func:`block_sums` over all rows.
    n
        The number of rows.
    label_share
        Shape (c,): the masses of the labels, all positive, with sum 1.

    Notes
    -----
    The shares' mean m(u, epsilon) has the derivatives ``curvature / epsilon`` in u and ``-drift / epsilon`` in
    epsilon. A step at constant epsilon solves ``curvature h = epsilon (pi - m)``; a step that also goes to a smaller
    epsilon' solves ``curvature h = epsilon (pi - m) + (epsilon' - epsilon) drift``.
    """
    if state["final"]:
        return None
    epsilon, potentials = float(state["epsilon"]), state["potentials"]
    passes, corrections = float(state["passes"]) + 1, float(state["corrections"])
    ratio, radius = float(state["ratio"]), float(state["radius"])
    missing = label_share - sums["share"] / n
    violation = float(np.abs(missing).sum())
    value = float(label_share @ potentials - sums["smooth"] / n)
    coarse = is_coarse(state)
    # The shares of split rows are no more accurate than the potentials that they depend on.
    noise = np.finfo(np.float64).eps / epsilon * float(sums["curvature"].trace()) / n
    converged = violation <= (_COARSE_TOLERANCE if coarse else _TOLERANCE + noise)
    following = dict(state) | _as_state(passes=passes)
    if passes >= _MAX_PASSES - 1:
        return following | _as_state(final=1, overlap=-sums["curvature"])
    if value < state["base_value"] - (1e-7 if coarse else 1e-13) and not converged:
        shorter = state["base_step"] / 4
        return following | _as_state(
            potentials=potentials - state["base_step"] + shorter, base_step=shorter, radius=max(radius / 4, 0.1)
        )
    newton = _DampedNewton(sums["curvature"] / n, np.maximum(sums["share"] / n, label_share), coarse)
    step = newton.step(epsilon * missing, radius * epsilon)
    if converged and epsilon <= _LAST_EPSILON:
        polish = newton.step(epsilon * missing, _SETTLED * epsilon)
        return following | _as_state(potentials=potentials + polish, final=1, overlap=-sums["curvature"])
    if epsilon > _LAST_EPSILON and (converged or np.abs(step).max() < _SETTLED * epsilon):
        if corrections == 0:
            ratio = max(0.7 * ratio, 0.02)
        elif corrections > 1:
            ratio = min(ratio**0.5, 0.6)
        smaller = max(ratio * epsilon, _LAST_EPSILON)
        step = newton.step(epsilon * missing + (smaller - epsilon) * sums["drift"] / n, _RADIUS * epsilon)
        return following | _as_state(
            potentials=potentials + step, epsilon=smaller, ratio=ratio, radius=_RADIUS, corrections=0,
            base_value=-np.inf,
        )  # fmt: skip
    return following | _as_state(
        potentials=potentials + step,
        radius=min(2 * radius, _MAX_RADIUS),
        corrections=corrections + 1,
        base_value=value,
        base_step=step,
    )


def duality_gap(state: Mapping[str, Array], sums: Mapping[str, Array], n: float, label_share: Array) -> float:
    """Return by how much the cost of the plan, made to meet the label masses, can exceed the least cost.

    The plan costs ``1 - kept / n``, and moving the mass that is at the wrong label costs at most 1 for each unit; the
    unsmoothed dual ``pi . u + 1 - reduced / n`` is below the least cost at any potentials.
    """
    violation = float(np.abs(label_share - sums["share"] / n).sum())
    above = 1.0 - float(sums["kept"] / n) + 0.5 * violation
    below = float(label_share @ state["potentials"]) + 1.0 - float(sums["reduced"] / n)
    return max(above - below, 0.0)


class _DampedNewton:
    """Solves with the curvature, damped until the step stays within a radius (Levenberg and Marquardt)."""

    def __init__(self, curvature: Array, scale: Array, coarse: bool) -> None:
        self._least_damping = 1e-5 if coarse else 1e-10
        self._root = np.sqrt(scale)
        # The potentials are defined up to a constant; the rank-one term takes this direction out.
        self._matrix = curvature / np.outer(self._root, self._root) + np.outer(self._root, self._root)

    def step(self, right: Array, radius: float) -> Array:
        """Return the step, its middle at zero, no component longer than the radius."""
        from scipy.linalg import cho_factor, cho_solve

        damping = self._least_damping
        while True:
            damped = self._matrix.copy()
            damped.flat[:: len(damped) + 1] += damping
            step = cho_solve(cho_factor(damped, overwrite_a=True), right / self._root) / self._root
            step -= 0.5 * (step.max() + step.min())
            if np.abs(step).max() <= radius:
                return np.asarray(step)
            damping *= 10
