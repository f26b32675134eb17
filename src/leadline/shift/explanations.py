"""Why do the target's predictions look other than the source's: other labels, or another behaviour?

Two explanations of a target are built from labelled source rows and compared. *Label shift*: the source's rows with
other class frequencies. *Collapse*: the source's class frequencies, and a classifier that drifts towards some classes.
Both may flatten, sharpen and add noise to the logits. The one whose histogram of predictions comes nearer, beyond what
sampling noise explains, gets the belief.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array, sigmoid, softmax, top_two
from leadline.shift.priors import restoring_bias

SCALES = (0.25, 0.4, 0.55, 0.75, 1.0, 1.3)  # logits flatter or sharper than the source's
NOISES = (0.0, 0.4)  # share of another row's logits mixed in
N_BINS = 4  # confidence quartiles: 2 lose power, 8 only add cells to estimate
TEMPLATE_ROWS = 10.0  # pseudo-rows of the average class added to each: rare and absent classes borrow from it
DISTANCE_FLOOR = 0.015  # Hellinger distances below this are equal: nothing in practice is closer
BELIEF_OFFSET = 0.1  # label shift has c - 1 free weights: it must fit this much better, in log distance, to be believed
BELIEF_WIDTH = 0.1  # log ratio of distances over which belief changes by one logit


@dataclass(frozen=True, eq=False)
class Explained:
    """The two explanations of a target compared. Distances are Hellinger, with the expected noise removed.

    Attributes
    ----------
    collapse_weight
        Belief in collapse against label shift, from 0 to 1.
    label_marginal
        Shape (c,): the target's class frequencies if it is label shift.
    label_shift_distance, collapse_distance, unchanged_distance
        How far the target is from either explanation, and from the source as it is.
    noise
        The distance that sampling noise alone would show.
    effective_rows
        How many rows the source, reweighted to that marginal, is worth.
    share_outside
        Share of the target in cells of top class and confidence where the source has no row.
    """

    collapse_weight: float
    label_marginal: Array
    label_shift_distance: float
    collapse_distance: float
    unchanged_distance: float
    noise: float
    effective_rows: float
    share_outside: float

    def mixed(self, other: Explained, share: float) -> Explained:
        """Return this comparison mixed with another, of which ``share`` counts."""
        return Explained(
            **{name: (1 - share) * value + share * vars(other)[name] for name, value in vars(self).items()}
        )


class Unchanged(NamedTuple):
    """How far a target is from the source as it is: see :class:`Explained`."""

    distance: float
    noise: float
    share_outside: float


TopTwo = tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]


def unchanged(source: TopTwo, target: TopTwo, c: int) -> Unchanged:
    """Compare a target with the source as it is.

    Parameters
    ----------
    source, target
        Top class, runner-up and log-odds of each row, shapes (n,) and (m,); many rows see smaller shifts.
    c
        Number of classes.
    """
    edges = _edges(source, target)
    as_is, wanted = (_histogram(_cells(*rows, edges, c), c) for rows in (source, target))
    floor = _noise_floor(wanted, as_is, len(target[0]), len(source[0]))
    return Unchanged(
        distance=float(np.sqrt(max(_squared(wanted, as_is) - floor, 0.0))),
        noise=float(np.sqrt(max(floor, 0.0))),
        share_outside=float(2.0 * wanted[0][as_is[0] == 0].sum()),
    )


def _edges(source: TopTwo, target: TopTwo) -> Array:
    """Return the log-odds that cut source and target together into bins of equal size."""
    return np.asarray(np.quantile(np.concatenate([target[2], source[2]]), np.arange(1, N_BINS) / N_BINS))


def explain(
    source: FloatArray, labels: IntArray, others: FloatArray, target: FloatArray, as_is: Unchanged
) -> Explained:
    """Fit label shift and collapse to a target.

    Parameters
    ----------
    source
        Shape (n, c): calibrated log-probabilities of labelled rows.
    labels
        Shape (n,): their classes.
    others
        Shape (n, c): for each of them another row's centred logits, to serve as noise.
    target
        Shape (m, c): calibrated log-probabilities.
    as_is
        How far the target is from the source as it is; on these rows, or on more.
    """
    n, c = source.shape
    source_marginal = np.bincount(labels, minlength=c) / n
    mean_target = softmax(target).mean(axis=0, dtype=np.float64)
    of_target = top_two(target)
    edges = _edges(top_two(source), of_target)
    wanted = _histogram(_cells(*of_target, edges, c), c)

    cells = [_cells(*top_two(_moved(source, others, *move)), edges, c) for move in product(NOISES, SCALES)]
    by_class = _ClassCells(np.stack(cells), labels, c)
    best_shift = (np.inf, 0.0, source_marginal, float(n))
    for marginal, model in zip(*by_class.fit_marginals(wanted, source_marginal), strict=True):
        effective = float(1.0 / (marginal**2 / by_class.denominator).sum())
        floor = _noise_floor(wanted, model, len(target), effective)
        best_shift = min(best_shift, (_squared(wanted, model) - floor, floor, marginal, effective), key=_first)
    best_collapse = (np.inf, 0.0)
    for noise in NOISES:
        bias = np.zeros(c)
        for scale in SCALES:
            moved = _moved(source, others, noise, scale)
            bias = restoring_bias(moved, mean_target, iterations=12, tolerance=1e-4, start=bias)
            model = _histogram(_cells(*top_two(moved + bias.astype(moved.dtype)), edges, c), c)
            floor = _noise_floor(wanted, model, len(target), n)
            best_collapse = min(best_collapse, (_squared(wanted, model) - floor, floor), key=_first)
    shift_distance, collapse_distance = (
        float(np.sqrt(max(excess, 0.0) + DISTANCE_FLOOR**2)) for excess in (best_shift[0], best_collapse[0])
    )
    ratio = np.log(shift_distance / collapse_distance)
    return Explained(
        collapse_weight=float(sigmoid(np.asarray((ratio + BELIEF_OFFSET) / BELIEF_WIDTH))),
        label_marginal=best_shift[2],
        label_shift_distance=shift_distance,
        collapse_distance=collapse_distance,
        unchanged_distance=as_is.distance,
        noise=as_is.noise,
        effective_rows=best_shift[3],
        share_outside=as_is.share_outside,
    )


def _moved(source: FloatArray, others: FloatArray, noise: float, scale: float) -> FloatArray:
    """Return the source's rows with noise, flatter or sharper."""
    return scale * (source + noise * others) if noise else scale * source


def _first(item: tuple[float, ...]) -> float:
    return item[0]


def _cells(top: NDArray[np.intp], second: NDArray[np.intp], odds: FloatArray, edges: Array, c: int) -> NDArray[np.intp]:
    """Return two cells of each row, shape (n, 2): top class and runner-up, each by confidence bin."""
    bins = np.searchsorted(edges, odds)
    return np.stack([top * N_BINS + bins, (c + second) * N_BINS + bins], axis=1)


def _histogram(cells: NDArray[np.intp], c: int) -> Array:
    """Return shares of the cells, shape (2, c * N_BINS): top classes, runners-up; each table sums to one half."""
    return np.asarray(np.bincount(cells.ravel(), minlength=2 * c * N_BINS).reshape(2, -1) / cells.size)


def _squared(target: Array, model: Array) -> float:
    """Return the squared Hellinger distance of two histograms."""
    return float(1.0 - np.sqrt(target * model).sum())


def _noise_floor(target: Array, model: Array, n_target: float, n_model: float) -> float:
    """Return the expected squared Hellinger distance if both histograms were samples of their pool.

    ``E[1 - sum sqrt(p q)]`` with independent Poisson counts: exact for sparse cells, where the familiar
    cells / 8 (1/n + 1/m) is not. The two tables hold the same rows, so their floors average.
    """
    pooled = 2.0 * (target * n_target + model * n_model) / (n_target + n_model)
    kept = (pooled * _root_efficiency(n_target * pooled) * _root_efficiency(n_model * pooled)).sum(axis=1)
    return float(np.mean(1.0 - kept))


def _root_efficiency(mean: Array) -> Array:
    """Return ``E sqrt(N) / sqrt(mean)`` for Poisson N."""
    log_mean, table = _poisson_roots()
    inside = np.interp(np.log(np.maximum(mean, 1e-4)), log_mean, table)
    return np.asarray(np.where(mean > 400.0, 1.0 - 1.0 / (8.0 * np.maximum(mean, 1.0)), inside))


@lru_cache(maxsize=1)
def _poisson_roots() -> tuple[Array, Array]:
    """Return the logarithms of means and the efficiency of the root at them."""
    mean = np.exp(np.linspace(np.log(1e-4), np.log(400.0), 400))
    counts = np.arange(900)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    log_mass = counts * np.log(mean)[:, None] - mean[:, None] - log_factorials
    return np.log(mean), (np.sqrt(counts) * np.exp(log_mass)).sum(axis=1) / np.sqrt(mean)


class _ClassCells:
    """P(cell | class) from labelled rows, smoothed by the average class, without a dense table of classes by cells.

    Of the rows as they are after each of k moves, all at once: with few classes, the calls cost more than the work.

    Parameters
    ----------
    cells
        Shape (k, n, 2): two cells of each row after each move.
    labels
        Shape (n,): the classes of the rows.
    c
        Number of classes.
    """

    def __init__(self, cells: NDArray[np.intp], labels: IntArray, c: int) -> None:
        k, n, _ = cells.shape
        self._shape = (k, 2, c, N_BINS)
        self.denominator = np.bincount(labels, minlength=c) + TEMPLATE_ROWS
        # Which cells the rows of which class are in, and how often; each row has two cells, of one half each.
        n_cells = 2 * c * N_BINS
        found = [np.unique(labels[:, None] * n_cells + moved, return_counts=True) for moved in cells]
        move = np.repeat(np.arange(k), [len(pairs) for pairs, _ in found])
        label, cell = np.divmod(np.concatenate([pairs for pairs, _ in found]), n_cells)
        self._classes, self._cells = move * c + label, move * n_cells + cell
        self._counts = 0.5 * np.concatenate([counts for _, counts in found])
        # The average class, for either table: shares of the bins where the cell is of the class itself and where it is
        # of another, which other one it is, and what makes up for not being oneself.
        tables = np.arange(2 * k).reshape(k, 1, 2)
        classes, bins = (cells // N_BINS) % c, cells % N_BINS
        own = classes == labels[:, None]

        def count(values: NDArray[np.intp], size: int, kept: NDArray[np.bool_]) -> NDArray[np.intp]:
            return np.bincount((tables * size + values)[kept], minlength=2 * k * size).reshape(k, 2, size)

        total = 2.0 * (n + 2)
        # Two pseudo-rows over the bins of both cases: no cell of the target is impossible under every class.
        self._hit = (count(bins, N_BINS, own) + 1.0 / N_BINS) / total
        self._miss = (count(bins, N_BINS, ~own) + 1.0 / N_BINS) / total
        to = count(classes, c, ~own) + 0.5
        self._to = to / to.sum(axis=2, keepdims=True)
        self._scale = 1.0 / (1.0 - np.minimum(self._to, 1.0 - 1e-9))

    def mix(self, marginals: Array) -> Array:
        """Return the cells of populations with these class shares, shapes (k, 2, c * N_BINS) and (k, c)."""
        k, _, c, _ = self._shape
        weights = marginals / self.denominator
        template = (weights * TEMPLATE_ROWS)[:, None]
        scaled = template * self._scale
        others = self._to * (scaled.sum(axis=2, keepdims=True) - scaled)
        smoothed = template[..., None] * self._hit[:, :, None] + others[..., None] * self._miss[:, :, None]
        of_pairs = self._counts * weights.ravel()[self._classes]
        own = np.bincount(self._cells, weights=of_pairs, minlength=smoothed.size)
        return np.asarray((own.reshape(self._shape) + smoothed).reshape(k, 2, c * N_BINS))

    def _expected(self, ratio: Array) -> Array:
        """Return the expectation of quantities per cell for each class, shapes (k, c) and (k, 2, c * N_BINS)."""
        k, _, c, _ = self._shape
        of_pairs = self._counts * ratio.ravel()[self._cells]
        found = np.bincount(self._classes, weights=of_pairs, minlength=k * c).reshape(k, c)
        of_cells = ratio.reshape(self._shape)
        hit, miss = (np.matmul(of_cells, shares[..., None])[..., 0] for shares in (self._hit, self._miss))
        elsewhere = self._to * miss
        template = hit + self._scale * (elsewhere.sum(axis=2, keepdims=True) - elsewhere)
        return np.asarray((found + TEMPLATE_ROWS * template.sum(axis=1)) / self.denominator)

    def fit_marginals(self, target: Array, start: Array, iterations: int = 100) -> tuple[Array, Array]:
        """Return by EM the class shares after each move that explain the target's cells best, and the cells they give.

        Parameters
        ----------
        target
            Shape (2, c * N_BINS): shares of the target's cells.
        start
            Shape (c,): class shares to begin with.
        iterations
            The most.

        Returns
        -------
        tuple
            Class shares of shape (k, c), cells of shape (k, 2, c * N_BINS).
        """
        k, _, c, _ = self._shape
        marginal = np.maximum(start, 1e-4 / c)  # EM never leaves zero
        marginals = np.tile(marginal / marginal.sum(), (k, 1))
        moving = np.ones(k, dtype=bool)
        for _ in range(iterations):
            updated = marginals * self._expected(target / np.maximum(self.mix(marginals), 1e-15))
            updated = updated / updated.sum(axis=1, keepdims=True)
            steps = np.abs(updated - marginals).max(axis=1)
            marginals[moving] = updated[moving]
            moving &= steps >= 1e-5
            if not moving.any():
                break
        return marginals, self.mix(marginals)
