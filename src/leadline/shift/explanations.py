"""Why do the target's predictions look other than the source's: other labels, or another behaviour?

Three explanations of a target are built from labelled source rows and compared. *Label shift*: the source's rows with
other class frequencies, and nothing else. *Label shift and more*: the classifier is also surer or less sure of them, so
that other class frequencies are not the whole of it. *Collapse*: the source's class frequencies, and a classifier that
drifts towards some classes, noisier, surer or less sure. The nearer the histogram of predictions of one comes to the
target's, beyond what sampling noise explains, the more it is believed. What looks like collapse can also be another mix
of easy and hard rows, and is believed only as far as it is unlike one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leadline.data.outputs import FloatArray
from leadline.numeric import Array, sigmoid
from leadline.shift.cells import TopTwo, bin_edges, bins_of, histogram, noise_floor, squared_distance
from leadline.shift.moved_rows import NOISES, SCALES, UNMOVED, MovedRows
from leadline.shift.priors import restoring_bias

DISTANCE_FLOOR = 0.015  # Hellinger distances below this are equal: nothing in practice is closer
BELIEF_WIDTH = 0.1  # log ratio of distances over which belief changes by one logit; .05 to .15 do alike
_SURE, _SUREST = 0.75, 0.95  # shares of the source that its sure and its surest rows are surer than
_OF_TWO_CLASSES = 0.5  # of the belief in collapse; .25 does alike


@dataclass(frozen=True, eq=False)
class Explained:
    """The explanations of a target compared. Distances are Hellinger, with the expected noise removed.

    Attributes
    ----------
    label_shift_weight, collapse_weight
        Belief in label shift and in collapse; the rest of 1 is that in label shift and more, or another mix of rows.
    doubted_weight
        Belief in collapse that was not kept, because another mix of rows would look alike.
    label_marginal
        Shape (c,): the target's class frequencies if it is label shift.
    label_shift_distance, collapse_distance, unchanged_distance
        How far the target is from label shift, alone or with more, from collapse, and from the source as it is.
    noise
        The distance that sampling noise alone would show.
    effective_rows
        How many rows the source, reweighted to that marginal, is worth.
    share_outside
        Share of the target in cells of top class and confidence where the source has no row.
    """

    label_shift_weight: float
    collapse_weight: float
    doubted_weight: float
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
    """How far a target is from the source as it is: see :class:`Explained`.

    Attributes
    ----------
    doubt
        The mean doubt in the target's predictions over that in the source's.
    extreme
        How much surer its sure rows are than a choice of the source's sure rows: 0 if they are as sure, to 1.
    """

    distance: float
    noise: float
    share_outside: float
    doubt: float
    extreme: float


def unchanged(source: TopTwo, target: TopTwo, c: int) -> Unchanged:
    """Compare a target with the source as it is.

    Parameters
    ----------
    source, target
        Top class, runner-up and log-odds of each row, shapes (n,) and (m,); many rows see smaller shifts.
    c
        Number of classes.
    """
    edges = bin_edges(target[2], source[2])
    as_is, wanted = (histogram(rows, edges, c) for rows in (source, target))
    floor = float(noise_floor(wanted, as_is, len(target[0]), len(source[0])))
    doubt, usual = (float(np.mean(sigmoid(-rows[2]))) for rows in (target, source))
    return Unchanged(
        distance=float(np.sqrt(max(float(squared_distance(wanted, as_is)) - floor, 0.0))),
        noise=float(np.sqrt(max(floor, 0.0))),
        share_outside=float(2.0 * wanted[0][as_is[0] == 0].sum()),
        doubt=doubt / max(usual, np.finfo(float).tiny),
        extreme=_extreme(source[2], target[2]),
    )


def _extreme(source: FloatArray, target: FloatArray) -> float:
    """Return how much surer the sure rows of a target are than those of the source, by their log-odds."""
    bins = bins_of(target, np.quantile(source, (_SURE, _SUREST)))
    sure, surest = (int(np.count_nonzero(bins >= least)) for least in (1, 2))
    expected = (1.0 - _SUREST) / (1.0 - _SURE)
    return max(surest / max(sure, 1) - expected, 0.0) / (1.0 - expected)


def _credible(as_is: Unchanged, c: int) -> float:
    """Return how far a target of c classes that looks like collapse is not just another mix of rows, from 0 to 1.

    Notes
    -----
    A classifier that drifts is mostly less sure than it was, and one that is surer has mostly got easier rows: belief
    falls with the square of the target's mean doubt over the source's. The outputs of two classes are one number, which
    does not tell drift from a choice of rows: half of the belief is left. Neither holds where the target's sure rows
    are surer than a choice of the source's sure rows would be.
    """
    kept = (_OF_TWO_CLASSES if c == 2 else 1.0) * min(as_is.doubt, 1.0) ** 2
    return as_is.extreme + (1.0 - as_is.extreme) * kept


def explain(source: MovedRows, target: TopTwo, mean_softmax: Array, as_is: Unchanged) -> Explained:
    """Fit the explanations to a target.

    Parameters
    ----------
    source
        Labelled rows.
    target
        Top class, runner-up and calibrated log-odds of each row, shapes (m,).
    mean_softmax
        Shape (c,): of these rows.
    as_is
        How far the target is from the source as it is; on these rows, or on more.
    """
    n, c = source.scores.shape
    m, edges = len(target[0]), bin_edges(target[2], source.odds)
    wanted = histogram(target, edges, c)

    by_class = source.cells.counted(edges)
    marginals, models = by_class.fit_marginals(wanted, source.marginal)
    effective = 1.0 / (marginals**2 / by_class.denominator).sum(axis=1)
    unlike = squared_distance(wanted, models)
    shifted = unlike - noise_floor(wanted, models, m, effective)
    gain = float(squared_distance(wanted, histogram(source.as_they_are, edges, c)) - unlike[UNMOVED])

    models = np.stack([histogram(rows, edges, c) for rows in _collapsed(source, mean_softmax)])
    collapsed = squared_distance(wanted, models) - noise_floor(wanted, models, m, n)
    nearest = shifted[UNMOVED], np.delete(shifted, UNMOVED).min(), collapsed.min()
    distances = np.sqrt(np.maximum(nearest, 0.0) + DISTANCE_FLOOR**2)
    (label_shift_weight, _, collapse_weight), kept = _beliefs(distances), _credible(as_is, c)
    return Explained(
        label_shift_weight=label_shift_weight,
        collapse_weight=collapse_weight * kept,
        doubted_weight=collapse_weight * (1.0 - kept),
        label_marginal=_shrunk(marginals[UNMOVED], source.marginal, gain, m, n),
        label_shift_distance=float(distances[:2].min()),
        collapse_distance=float(distances[2]),
        unchanged_distance=as_is.distance,
        noise=as_is.noise,
        effective_rows=float(effective[UNMOVED]),
        share_outside=as_is.share_outside,
    )


def _beliefs(distances: Array) -> list[float]:
    """Return the beliefs in label shift, label shift and more, and collapse, at these distances, shape (3,)."""
    nearness = (distances / distances.min()) ** (-1.0 / BELIEF_WIDTH)
    return [float(belief) for belief in nearness / nearness.sum()]


def _shrunk(marginal: Array, source: Array, gain: float, n_target: int, n_source: int) -> Array:
    """Return class shares as far from the source's as sampling does not explain: shrunk as James and Stein do.

    Parameters
    ----------
    marginal, source
        Shapes (c,): the class shares that explain the target best, and the source's.
    gain
        By how much they come nearer to it, in squared distance. Without any shift they would come nearer by as much as
        the class shares of two samples differ; twice that is asked, as by Akaike's criterion.
    n_target, n_source
        Numbers of rows.
    """
    wanted, known = (np.stack([shares, shares]) / 2.0 for shares in (marginal, source))
    by_chance = 2.0 * float(noise_floor(wanted, known, n_target, n_source))
    kept = 1.0 - by_chance / gain if gain > by_chance else 0.0
    return source + kept * (marginal - source)


def _collapsed(source: MovedRows, wanted: Array) -> Iterator[TopTwo]:
    """Yield what the source's rows are after each move, drifted to a mean softmax, shape (c,)."""
    for noise in NOISES:
        bias = np.zeros_like(wanted)
        for scale in SCALES:
            moved = source.at(noise, scale)
            bias = restoring_bias(moved, wanted, iterations=12, tolerance=1e-4, start=bias)
            yield moved.top_two(bias)
