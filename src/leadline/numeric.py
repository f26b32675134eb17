"""Small numeric helpers that several packages need."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leadline import rowwise
from leadline.data.outputs import FloatArray
from leadline.rowwise import WORTH_IT_FROM

Array = NDArray[np.float64]
_Float = TypeVar("_Float", bound=np.floating[Any])
_FEW_COLUMNS = 32


def sigmoid(x: FloatArray) -> Array:
    """Return ``1 / (1 + exp(-x))`` in float64, without overflow.

    Here and not from SciPy, whose special functions take longer to import than most estimates take.

    Examples
    --------
    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    decay = np.exp(-np.abs(np.asarray(x, dtype=np.float64)))
    return np.asarray(np.where(np.asarray(x) >= 0, 1.0, decay) / (1.0 + decay))


def _copied(values: NDArray[Any], dtype: type[_Float]) -> NDArray[_Float]:
    """Return a copy, shape (n, c), by columns where there are few: along short rows NumPy takes ten times as long."""
    return np.array(values, dtype=dtype, order="F" if values.shape[1] < _FEW_COLUMNS else "C")


def _across(combine: np.ufunc, values: NDArray[_Float]) -> NDArray[_Float]:
    """Return the sum or the maximum of each row, shape (n, 1)."""
    return np.asarray(combine.reduce(values, axis=1, keepdims=True))


def _largest(values: NDArray[_Float]) -> NDArray[np.intp]:
    """Return the place of the largest value of each row, the first of several, shape (n,)."""
    if not values.flags.f_contiguous:
        return np.asarray(values.argmax(axis=1))
    c = values.shape[1]
    ranks = np.arange(c, 0, -1, dtype=np.min_scalar_type(c))  # the first of several has the highest
    is_largest = values == _across(np.maximum, values)
    return np.asarray(c - (is_largest * ranks).max(axis=1).astype(np.intp))


def _compiled(values: FloatArray) -> bool:
    """Say whether an array is worth the compiled loops; NumPy is as fast with single precision."""
    return values.dtype == np.float64 and values.size >= WORTH_IT_FROM


def log_softmax(logits: FloatArray, temperature: float = 1.0) -> NDArray[np.float64]:
    """Return log softmax(logits / temperature) in float64, shape (n, c).

    The largest entry keeps its precision when the confidence is 1 to the last bit: ``log p = -log1p(rest)`` tells
    1 - 1e-20 from 1 - 1e-30, on which thresholded methods depend to break ties.
    """
    if logits.size >= WORTH_IT_FROM:
        return rowwise.log_softmax(logits, temperature)
    shifted = _copied(logits, np.float64)
    shifted -= _across(np.maximum, shifted)
    shifted /= temperature
    top = shifted.argmax(axis=1)
    rows = np.arange(len(shifted))
    exponentials = np.exp(shifted)
    exponentials[rows, top] = 0.0
    shifted -= np.log1p(_across(np.add, exponentials))
    return shifted


def top_two(
    logits: FloatArray, top: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return the top class, the runner-up and the log-odds of the top class against all others, each of shape (n,).

    Log-odds rank like confidence but do not saturate. The top class is that of the largest logit unless given, shape
    (n,); its log-odds are then negative where others are likelier.
    """
    if _compiled(logits):
        return rowwise.top_two(logits, top)
    if logits.shape[1] == 2:
        ahead = logits[:, 1] - logits[:, 0]
        if top is None:
            top = (ahead > 0).astype(np.intp)
            return top, 1 - top, np.abs(ahead)
        return top, 1 - top, np.where(top == 1, ahead, -ahead)
    rest, rows = _copied(logits, logits.dtype.type), np.arange(len(logits))
    top = _largest(rest) if top is None else top
    best = rest[rows, top]
    rest[rows, top] = -np.inf
    second = _largest(rest)
    highest = rest[rows, second]
    rest -= highest[:, None]
    return top, second, best - highest - np.log(_across(np.add, np.exp(rest, out=rest))[:, 0])


def top_two_of_weights(weights: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return what :func:`top_two` does of logarithms of weights above zero, shape (n, c), which may be overwritten."""
    weights, n = np.asfortranarray(weights), len(weights)
    top = _largest(weights)
    columns, places = weights.T.reshape(-1), top * n + np.arange(n)
    own = columns[places]
    columns[places] = 0.0
    return top, _largest(weights), np.log(own / _across(np.add, weights)[:, 0])


def of_class(values: FloatArray, classes: NDArray[np.intp]) -> Array:
    """Return of each row of values, shape (n, c), that of its class, shape (n,), in float64."""
    return np.asarray(values[np.arange(len(values)), classes], dtype=np.float64)


def softmax(logits: FloatArray) -> FloatArray:
    """Return softmax over the classes, shape (n, c), in the precision of the logits."""
    return softmax_with_total(logits)[0]


def probabilities(logits: FloatArray, temperature: float) -> Array:
    """Return softmax(logits / temperature) in float64, shape (n, c)."""
    if logits.size >= WORTH_IT_FROM:
        found = np.empty(logits.shape)
        rowwise.softmax(logits, temperature, result=found)
        return found
    return np.asarray(softmax(np.asarray(logits, dtype=np.float64) / temperature))


def softmax_with_total(logits: FloatArray, bias: Array | None = None) -> tuple[FloatArray, FloatArray]:
    """Return softmax(logits + bias), shape (n, c), and the logarithms of its denominators, shape (n,)."""
    if _compiled(logits):
        return rowwise.softmax(logits, bias=bias)
    exponentials = _copied(logits, logits.dtype.type)
    if bias is not None:
        exponentials += bias.astype(logits.dtype)
    highest = _across(np.maximum, exponentials)
    exponentials -= highest
    np.exp(exponentials, out=exponentials)
    total = _across(np.add, exponentials)
    exponentials /= total
    return exponentials, (np.log(total) + highest)[:, 0]


def read(
    logits: FloatArray,
    temperature: float = 1.0,
    *,
    bias: Array | None = None,
    classes: NDArray[np.intp] | None = None,
    entropy: bool = False,
) -> rowwise.Reading:
    """Return what softmax(logits / temperature + bias) says of one class of each row: see :func:`rowwise.read`."""
    if logits.size >= WORTH_IT_FROM:
        return rowwise.read(logits, temperature, bias=bias, classes=classes, entropy=entropy)
    scores = _copied(logits, np.float64)
    scores /= temperature
    if bias is not None:
        scores += bias
    chosen = scores.argmax(axis=1) if classes is None else classes
    scores -= _across(np.maximum, scores)
    own = of_class(scores, chosen)
    exponentials = np.exp(np.maximum(scores, rowwise.LEAST_EXPONENT))
    exponentials[np.arange(len(scores)), chosen] = 0.0
    others = _across(np.add, exponentials)[:, 0]
    found = rowwise.Reading(chosen, own, others, np.empty(0))
    if not entropy:
        return found
    # p log p, in which the logarithm of each p is its exponent less that of the denominator
    along = np.einsum("ij,ij->i", exponentials, scores) + np.exp(own) * own
    rest = others + np.expm1(own)
    return found._replace(negative_entropy=along / (1.0 + rest) - np.log1p(rest))


def assign(logits: FloatArray, temperature: float, potentials: Array) -> rowwise.Assigned:
    """Send each row, shape (n, c), to the label with the largest softmax(logits / temperature) + potential."""
    if logits.size >= WORTH_IT_FROM:
        return rowwise.assign(logits, temperature, potentials)
    shares = probabilities(logits, temperature)
    scores = shares + potentials
    rows, labels = np.arange(len(scores)), scores.argmax(axis=1)
    best = scores[rows, labels]
    scores[rows, labels] = -np.inf
    return rowwise.Assigned(labels, of_class(shares, labels), best, best - scores.max(axis=1))


def find_root(function: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-9) -> float:
    """Return where a monotone function is zero, or the end of the range at which it comes nearer to that.

    Chandrupatla's method (1997): steps by inverse quadratic interpolation, and by halves where that cannot be trusted.
    A few lines here, because importing SciPy's own takes longer than most estimates.

    Examples
    --------
    >>> round(find_root(lambda x: x**3 - 2.0, 0.0, 2.0), 9)
    1.25992105
    >>> find_root(lambda x: x + 1.0, 0.0, 2.0)
    0.0
    """
    # The newest point is a, the root lies between it and b, and c is the one that was given up last.
    a, b, share = high, low, 0.5
    at_a, at_b = function(a), function(b)
    while True:
        best = a if abs(at_a) < abs(at_b) else b
        closest = 0.5 * tolerance / max(abs(b - a), 0.5 * tolerance)
        if closest >= 0.5 or at_a == 0.0 or at_b == 0.0 or (at_a > 0.0) == (at_b > 0.0):
            return best
        new = a + min(max(share, closest), 1.0 - closest) * (b - a)
        at_new = function(new)
        if (at_new > 0.0) == (at_a > 0.0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = new, at_new
        place, value = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        share = 0.5
        if value**2 < place and (1.0 - value) ** 2 < 1.0 - place:
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)


_ALMOST_ONE = math.nextafter(1.0, 0.0)  # of a level of 0.9999999999999999, rounding leaves 1


def normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(min(share, _ALMOST_ONE))


def limited(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return a number held within limits, as a float; of one number, np.clip takes thirty times as long."""
    return float(min(max(value, low), high))  # in this order, what is no number stays so


def with_mean(values: Array, mean: float, wanted: float) -> Array:
    """Return probabilities moved towards 1 or towards 0 in proportion, so that those of one mean have another.

    Examples
    --------
    >>> with_mean(np.array([0.5, 1.0]), 0.75, 0.9).round(3).tolist()
    [0.8, 1.0]
    """
    if wanted < mean:
        return values * (wanted / mean)
    return values + (1.0 - values) * ((wanted - mean) / (1.0 - mean) if mean < 1.0 else 0.0)
