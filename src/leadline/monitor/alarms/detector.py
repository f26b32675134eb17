"""Evidence that accuracy is below a level, gathered window by window, with a promise on false alarms.

The detector is the Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo, *E-detectors*, 2024)

    M_t = (M_(t-1) + w_t) L_t,

with L_t the wealth that bets against "accuracy is at least tau" win in window t, at most 1 on average while that is
true given the past, and w_t in [0, 1] known beforehand. Then E[M] at any stopping time is at most the mean number of
windows until then, so that M reaches A on average after no fewer than A windows, whatever the dependence between
windows. A mean of such detectors (over bets, over segments) is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.monitor.records import Array

#: Bets are on an accuracy that is lower than tau by one of these parts of it; their mean loses log(7) at most.
FALLS = 2.0 ** -np.arange(1, 8)
#: While accuracy stays below tau, windows to a false all-clear, on average at least.
ALL_CLEAR = 20.0
#: Expected share of falsely listed segments, at most.
FALSELY_LISTED = 0.1
_STARTING_ROWS = 100.0  # a window of fewer rows counts less as one in which a fall may have begun
_CHUNK = 512  # windows gone through at once
_EDGE = 1e-6  # from 0 and 1, at least, of levels
_LONGEST = 1e9  # windows: more than there ever are


def log_bets(right: Array, wrong: Array, tau: Array | float) -> Array:
    """Return the log wealth of each bet on an accuracy below tau, shape (..., g).

    Parameters
    ----------
    right, wrong
        Shapes (...): counts, or their expected values under an estimate.
    tau
        Broadcastable to (...): the level that nobody has to worry above.

    Notes
    -----
    With counts this is the likelihood ratio of an accuracy tau (1 - f) against tau, f in ``FALLS``: the product over
    rows of 1 + l (tau - z), l = f / (1 - tau). With estimated correctness c_i in place of z the product is at least
    this, as the logarithm is concave: each row counts as the coin that it is believed to be, and the mean of the c_i
    is all that is needed. What that gives away makes up for the noise that the rows of a window have in common.

    Examples
    --------
    >>> won, lost = (float(log_bets(np.array(n), np.array(100 - n), 0.9).max().round(1)) for n in (80, 95))
    >>> won, lost
    (4.4, -0.4)
    """
    level = np.clip(np.asarray(tau, dtype=np.float64), _EDGE, 1 - _EDGE)
    lost, won = np.log1p(-FALLS), np.log1p(FALLS * (level / (1 - level))[..., None])
    return np.asarray(np.asarray(right)[..., None] * lost + np.asarray(wrong)[..., None] * won)


def starting_weights(count: Array) -> Array:
    """Return how much windows of some numbers of rows count as ones in which a fall may have begun: at most 1."""
    return np.asarray(np.minimum(1.0, count / _STARTING_ROWS))


def accumulate(bets: Array, weights: Array, state: Array) -> Array:
    """Return log M after each window, shape (t, ...).

    Parameters
    ----------
    bets
        Shape (t, ...): log L.
    weights
        Broadcastable to (t, ...): w.
    state
        Shape (...): log M before the first window.

    Notes
    -----
    With C_t the sum of log L up to t, M_t = exp(C_t) (M_0 + sum_j w_j exp(-C_(j-1))): one pass, in logarithms, whatever
    the numbers of rows.
    """
    total = np.cumsum(bets, axis=0)
    with np.errstate(divide="ignore"):
        started = np.log(np.broadcast_to(weights, bets.shape)) - (total - bets)
    return np.asarray(np.logaddexp.accumulate(np.concatenate([state[None], started]), axis=0)[1:] + total)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a rule bets on: k tracks over t windows.

    Attributes
    ----------
    against
        Gives log wealth of bets that something is wrong, shape (m, k, g), for windows from ... to.
    recovery
        The same for bets that all is well again.
    weights
        Shape (t, k): how much each window counts as one in which it may have begun; 0 before a track is judged.
    shares
        Shape (t, k): of the tracks in the one detector; they add up to at most 1, and that of a track never grows once
        it is judged.
    """

    against: Callable[[int, int], Array]
    recovery: Callable[[int, int], Array]
    weights: Array
    shares: Array


@dataclass(frozen=True, eq=False)
class Span:
    """Windows over which an alarm holds; windows are counted from 0.

    Attributes
    ----------
    raised, last
        When the detector reached its threshold, and when recovery was shown; without that, the last window.
    open
        Whether recovery has not been shown.
    onset, until
        From when to when it has probably been so; without recovery, to the last window.
    tracks
        Those whose evidence alone would do, or else the one with the most.
    listed
        Tracks with controlled false discoveries, as of ``last``; those after the first are segments.
    log_evidence
        log M at its highest.
    """

    raised: int
    last: int
    open: bool
    onset: int
    until: int
    tracks: NDArray[np.intp]
    listed: NDArray[np.intp]
    log_evidence: float


def spans(evidence: Evidence, false_alarm_every: float, begin: int = 0, end: int | None = None) -> Iterator[Span]:
    """Go through the windows; yield when an alarm is raised and when it ends, after which the detector starts anew.

    Parameters
    ----------
    evidence
        What is bet on.
    false_alarm_every
        The threshold of the detector: as many windows are between false alarms on average, at least.
    begin, end
        The windows to go through.
    """
    end = len(evidence.weights) if end is None else end
    while begin < end:
        raised = _raised(evidence, begin, end, false_alarm_every)
        if raised is None:
            return
        origin, place = raised
        tracks, onset = _cause(evidence, origin, place, false_alarm_every)
        recovered = _recovered(evidence, tracks, place + 1, end)
        until, last = recovered or (end - 1, end - 1)
        log_evidence, listed = _standing(evidence, origin, place, last, false_alarm_every)
        yield Span(place, last, recovered is None, onset, until, tracks, listed, log_evidence)
        begin = last + 1


def e_bh(log_e_values: Array, alpha: float = FALSELY_LISTED) -> NDArray[np.intp]:
    """Return which hypotheses the e-BH procedure rejects (Wang and Ramdas 2022), the strongest first.

    Parameters
    ----------
    log_e_values
        Shape (k,), however dependent.
    alpha
        Bound of the expected share of true hypotheses among those rejected.
    """
    order = np.argsort(-log_e_values, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    enough = np.flatnonzero(log_e_values[order] >= np.log(len(order) / (alpha * ranks)))
    return order[: enough[-1] + 1] if len(enough) else order[:0]


def _walk(evidence: Evidence, begin: int, end: int, budget: int) -> Iterator[tuple[int, Array]]:
    """Yield log M, shape (m, k, g), by chunks, from a fresh start; falls begin in the first ``budget`` windows only."""
    state: Array | None = None
    for low in range(begin, end, _CHUNK):
        high = min(low + _CHUNK, end)
        weights = evidence.weights[low:high] * (np.arange(low, high) < begin + budget)[:, None]
        bets = evidence.against(low, high)
        state = np.full(bets.shape[1:], -np.inf) if state is None else state
        found = accumulate(bets, weights[..., None], state)
        state = found[-1]
        yield low, found


def _raised(evidence: Evidence, begin: int, end: int, every: float) -> tuple[int, int] | None:
    """Return where the detector last started, and where it reached its threshold; None where it did not.

    It starts anew after every ``every`` windows, which takes nothing from the promise, as M only gets smaller, and
    makes (M + every - sum of w) / every an e-process: see :func:`_standing`.
    """
    budget = _budget(every)
    for origin in range(begin, end, budget):
        for low, found in _walk(evidence, origin, min(origin + budget, end), budget):
            above = np.flatnonzero(_combined(found, evidence.shares[low : low + len(found)]) >= np.log(every))
            if len(above):
                return origin, low + int(above[0])
    return None


def _cause(evidence: Evidence, origin: int, place: int, every: float) -> tuple[NDArray[np.intp], int]:
    """Return the tracks that raised an alarm, and since when the strongest of them speaks for it."""
    *_, (_, found) = _walk(evidence, origin, place + 1, _budget(every))
    each = _mixed(found[-1])
    with np.errstate(divide="ignore"):
        strongest = int(np.argmax(each + np.log(evidence.shares[place])))
    enough = np.flatnonzero(each >= np.log(every))
    bets = evidence.against(origin, place + 1)[:, strongest, int(np.argmax(found[-1, strongest]))]
    before = np.cumsum(bets) - bets
    before[evidence.weights[origin : place + 1, strongest] == 0] = np.inf
    return (enough if len(enough) else np.array([strongest])), origin + int(np.argmin(before))


def _recovered(evidence: Evidence, tracks: NDArray[np.intp], begin: int, end: int) -> tuple[int, int] | None:
    """Return the last window that was low, and the one at which each of some tracks has shown that all is well again.

    M_t = max(M_(t-1), 1) L_t here, the e-CUSUM: it is below the Shiryaev-Roberts detector, so that the same is
    promised, and it does not grow by itself where windows say nothing.
    """
    lowest: Array | float = 0.0
    total: Array | float = 0.0
    most = np.full(len(tracks), -np.inf)
    for low in range(begin, end, _CHUNK):
        bets = evidence.recovery(low, min(low + _CHUNK, end))[:, tracks]
        totals = total + np.cumsum(bets, axis=0)
        lows = np.minimum(np.minimum.accumulate(totals - bets, axis=0), lowest)
        found, total, lowest = totals - lows, totals[-1], lows[-1]
        reached = np.maximum(np.maximum.accumulate(_mixed(found), axis=0), most)
        shown = np.flatnonzero((reached >= np.log(ALL_CLEAR)).all(axis=1))
        if len(shown):
            place = low + int(shown[0])
            return _lowest(evidence, tracks, begin, place), place
        most = reached[-1]
    return None


def _lowest(evidence: Evidence, tracks: NDArray[np.intp], begin: int, place: int) -> int:
    """Return the last window before the stretch that speaks most for recovery, for the track that recovered last."""
    bets = evidence.recovery(begin, place + 1)[:, tracks]
    totals = bets.sum(axis=0)
    track = int(totals.max(axis=1).argmin())
    before = np.cumsum(bets[:, track, int(totals[track].argmax())])
    return begin - 1 + int(np.argmin(np.concatenate([[0.0], before[:-1]])))


def _standing(evidence: Evidence, origin: int, raised: int, last: int, every: float) -> tuple[float, NDArray[np.intp]]:
    """Return the highest log M while an alarm held, and the segments to list at its last window.

    Notes
    -----
    M itself is no e-value: its mean grows with the windows. But M_t + (A - sum of w up to t), with falls that begin in
    the first A windows after the start only, is a supermartingale that starts at A. Divided by A it is an e-process, an
    e-value whenever one looks, for "this segment was never below its level since the start"; e-BH takes it.
    """
    budget = _budget(every)
    highest = -np.inf
    for low, found in _walk(evidence, origin, last + 1, budget):
        values = _combined(found, evidence.shares[low : low + len(found)])
        highest = max(highest, float(values[max(raised - low, 0) :].max(initial=-np.inf)))
    spent = evidence.weights[origin : min(last + 1, origin + budget)].sum(axis=0)
    with np.errstate(divide="ignore"):
        left = np.log(np.maximum(every - spent, 0.0))
    e_values = np.logaddexp(_mixed(found[-1]), left) - np.log(every)
    judged = np.flatnonzero(evidence.shares[last] > 0)
    segments = judged[judged > 0]
    return highest, segments[e_bh(e_values[segments])]


def _budget(every: float) -> int:
    """Return the number of whole windows in ``every``, at least 1."""
    return max(int(min(every, _LONGEST)), 1)


def _mixed(found: Array) -> Array:
    """Return the log of the mean of M over the bets: shape (..., k) of (..., k, g)."""
    return np.asarray(_log_sum(found) - np.log(found.shape[-1]))


def _combined(found: Array, shares: Array) -> Array:
    """Return log of the one detector, shape (m,), of log M, shape (m, k, g), and the shares of the tracks, (m, k)."""
    with np.errstate(divide="ignore"):
        return _log_sum(_mixed(found) + np.log(shares))


def _log_sum(values: Array) -> Array:
    """Return log sum exp over the last axis; minus infinity where all are."""
    peak = values.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - np.where(np.isfinite(peak), peak, 0.0)).sum(axis=-1))
    return np.asarray(total + np.where(np.isfinite(peak), peak, 0.0)[..., 0])
