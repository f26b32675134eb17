"""All compiled loops of the CPU kernel, and nothing else.

Numba keeps compiled loops for as long as the file they are written in stays the same, and looks at no other file. So
this one imports nothing of Leadline: whatever a loop is made of stands here or comes in as an argument.

Cosines come in float32 or float64, see :func:`leadline.estimators.alsa.kernels.base.precision_for`. What is subtracted
from one keeps their precision; everything after the distance is float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_f4 = np.float32
_i4 = np.int32
_ANCHORS_AT_ONCE, _TURNED_AT_ONCE = 512, 64  # few enough for the first-level cache, by row and by coordinate
_OPTIONS: dict[str, Any] = {"fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}


def _for_both(signature: str) -> list[str]:
    """Return the signature with float32 and with float64 in place of the cosines' type ``fc``."""
    return [signature.replace("fc", "f4"), signature.replace("fc", "f8")]


def _reinterpretation(source: Any, target: Any, code: ir.Type) -> Any:
    """Return a compiled function that reads the bits of a 32-bit number as one of another type."""

    @intrinsic
    def reinterpret(typing_context: Any, value: Any) -> Any:
        del typing_context, value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            return builder.bitcast(arguments[0], code)

        return target(source), generate

    return reinterpret


_float_of_bits = _reinterpretation(types.int32, types.float32, ir.FloatType())
_bits_of_float = _reinterpretation(types.float32, types.int32, ir.IntType(32))


@njit(inline="always", **_OPTIONS)  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Any:
    """Return exp(x) for x <= 0 to float32 precision, in arithmetic that compiles to vector instructions.

    exp(x) = 2^whole 2^part with the part in [-1/2, 1/2] by a minimax polynomial, the whole power written into
    the exponent bits. Below -50 the value is held at 2e-22: nothing beside the unified peak of 6, and far
    from the denormal numbers on which processors slow down a hundredfold.
    """
    scaled = max(x, _f4(-50.0)) * _f4(1.44269504)
    whole = _i4(scaled - _f4(0.5))
    part = scaled - _f4(whole)
    series = _f4(1.3276472e-3)
    series = series * part + _f4(9.675542e-3)
    series = series * part + _f4(5.550713e-2)
    series = series * part + _f4(2.402212e-1)
    series = series * part + _f4(6.9314694e-1)
    series = series * part + _f4(1.0)
    return series * _float_of_bits((whole + _i4(127)) << _i4(23))


@njit(_for_both("void(fc[:,::1], f4[::1], f4[::1], i8, f8[::1])"), **_OPTIONS)
def add_influence(cosines: Any, peaks: Any, rates: Any, power: Any, total: Any) -> None:
    """Add the influence of a tile of anchors to the total of each row; rates are -widths^2."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        amount = _f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(_f4(1.0) - row[j])
                amount += peaks[j] * _exp(rates[j] * distance * distance)
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(_f4(1.0) - row[j]), _f4(0.0))
                amount += peaks[j] * _exp(rates[j] * distance)
        total[i] += amount


@njit(_for_both("void(fc[:,::1], f4[::1], f4[::1], i8, f8[::1])"), **_OPTIONS)
def raise_strongest(cosines: Any, peaks: Any, rates: Any, power: Any, strongest: Any) -> None:
    """Raise the largest single influence on each row by those of a tile of anchors.

    Floats above zero have the order of their bits, and a maximum of integers compiles to vector instructions
    where one of floats does not.
    """
    for i in range(cosines.shape[0]):
        row = cosines[i]
        best = _bits_of_float(_f4(strongest[i]))
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(_f4(1.0) - row[j])
                best = max(best, _bits_of_float(abs(peaks[j]) * _exp(rates[j] * distance * distance)))
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(_f4(1.0) - row[j]), _f4(0.0))
                best = max(best, _bits_of_float(abs(peaks[j]) * _exp(rates[j] * distance)))
        strongest[i] = _float_of_bits(best)


@njit(inline="always", **_OPTIONS)  # type: ignore[untyped-decorator]
def _decay(distances: Any, peaks: Any, rates: Any, power: Any, decays: Any) -> Any:
    """Store exp(-v^2 d^power) of a row and some anchors for the way back, and return their influence."""
    amount = _f4(0.0)
    if power == 2:
        for j in range(distances.shape[0]):
            distance = _f4(distances[j])
            decay = _exp(rates[j] * distance * distance)
            decays[j] = decay
            amount += peaks[j] * decay
    else:
        for j in range(distances.shape[0]):
            decay = _exp(rates[j] * max(_f4(distances[j]), _f4(0.0)))
            decays[j] = decay
            amount += peaks[j] * decay
    return amount


@njit(inline="always", **_OPTIONS)  # type: ignore[untyped-decorator]
def _weigh(distances: Any, decays: Any, residual: Any, power: Any, of_peak: Any, of_rate: Any, of_pull: Any) -> None:
    """Add what a row does to some anchors, and turn the decays into the weights of its pull.

    of_peak_j = sum_i r_i E_ij; of_rate_j = sum_i r_i E_ij d_ij^power; of_pull_j = sum_i w_ij with the weights
    w_ij = power r_i E_ij d_ij^(power - 1).
    """
    if power == 2:
        for j in range(distances.shape[0]):
            pulled = residual * decays[j]
            of_peak[j] += pulled
            pulled *= distances[j]
            of_rate[j] += pulled * distances[j]
            pulled *= _f4(2.0)
            of_pull[j] += pulled
            decays[j] = pulled
    else:
        for j in range(distances.shape[0]):
            pulled = residual * decays[j]
            of_peak[j] += pulled
            of_rate[j] += pulled * distances[j]
            of_pull[j] += pulled
            decays[j] = pulled


@njit(_for_both("void(fc[:,::1], f4[::1], f4[::1], i8, fc[:,::1], f8[::1])"), **_OPTIONS)
def store_decays(cosines: Any, peaks: Any, rates: Any, power: Any, decays: Any, total: Any) -> None:
    """Turn the cosines of a tile into distances, store its decays, and add its influence to each row's total."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        for j in range(row.shape[0]):
            row[j] = _f4(1.0) - row[j]
        total[i] += _decay(row, peaks, rates, power, decays[i])


@njit(_for_both("void(fc[:,::1], fc[:,::1], f4[::1], i8, fc[::1], fc[::1], fc[::1])"), **_OPTIONS)
def weigh(distances: Any, decays: Any, residuals: Any, power: Any, of_peak: Any, of_rate: Any, of_pull: Any) -> None:
    """Add what the rows of a tile do to its anchors; see :func:`_weigh`."""
    for i in range(distances.shape[0]):
        _weigh(distances[i], decays[i], residuals[i], power, of_peak, of_rate, of_pull)


@njit(_for_both("void(f4[:,::1], fc[:,::1], f4[::1])"), **_OPTIONS)
def normalise(anchors: Any, directions: Any, lengths: Any) -> None:
    """Scale each anchor to length 1, and store how long it was; an anchor at zero stays."""
    for j in range(anchors.shape[0]):
        square = _f4(0.0)
        for column in range(anchors.shape[1]):
            directions[j, column] = anchors[j, column]
            square += directions[j, column] * directions[j, column]
        length = np.sqrt(square) if square > 0 else _f4(1.0)
        lengths[j] = length
        for column in range(anchors.shape[1]):
            directions[j, column] /= length


@njit(_for_both("void(fc[:,::1], fc[:,::1], fc[::1], f4[::1])"), **_OPTIONS)
def turn(pulls: Any, directions: Any, along: Any, scale: Any) -> None:
    """Take away the part of each pull along its anchor, which no cosine feels, and scale the rest.

    That part is sum_i w_ij cos_ij = of_pull_j - power of_rate_j, with the sums of :func:`_weigh`.
    """
    for j in range(pulls.shape[0]):
        for column in range(pulls.shape[1]):
            pulls[j, column] = (pulls[j, column] - along[j] * directions[j, column]) * scale[j]


@njit(_for_both("void(f4[:,::1], fc[:,::1], fc[::1])"), **_OPTIONS)
def normalise_columns(anchors: Any, columns: Any, lengths: Any) -> None:
    """Do what :func:`normalise` does, and write coordinate after coordinate; rows beyond the last one are zero."""
    k, c = anchors.shape
    for start in range(0, k, _TURNED_AT_ONCE):
        stop = min(start + _TURNED_AT_ONCE, k)
        part, length = anchors[start:stop], lengths[start:stop]
        length[:] = _f4(0.0)
        for column in range(c):
            out = columns[column, start:stop]
            for j in range(stop - start):
                out[j] = part[j, column]
                length[j] += out[j] * out[j]
        for j in range(stop - start):
            length[j] = np.sqrt(length[j]) if length[j] > 0 else _f4(1.0)
        for column in range(c):
            out = columns[column, start:stop]
            for j in range(stop - start):
                out[j] /= length[j]
        columns[c:, start:stop] = _f4(0.0)


@njit(inline="always", **_OPTIONS)  # type: ignore[untyped-decorator]
def _measure(row: Any, columns: Any, start: Any, stop: Any, distances: Any) -> None:
    """Store the distances of a row from anchors ``start`` to ``stop``, four coordinates at a time."""
    for column in range(0, columns.shape[0], 4):
        first, second = columns[column, start:stop], columns[column + 1, start:stop]
        third, fourth = columns[column + 2, start:stop], columns[column + 3, start:stop]
        a, b, c, d = row[column], row[column + 1], row[column + 2], row[column + 3]
        if column == 0:
            for j in range(distances.shape[0]):
                distances[j] = _f4(1.0) - (a * first[j] + b * second[j] + c * third[j] + d * fourth[j])
        else:
            for j in range(distances.shape[0]):
                distances[j] -= a * first[j] + b * second[j] + c * third[j] + d * fourth[j]


@njit(inline="always", **_OPTIONS)  # type: ignore[untyped-decorator]
def _pull(weights: Any, rows: Any, start: Any, stop: Any, pulls: Any) -> None:
    """Add the pull of four rows on anchors ``start`` to ``stop``, coordinate after coordinate."""
    first, second, third, fourth = (
        weights[0, start:stop], weights[1, start:stop], weights[2, start:stop], weights[3, start:stop]
    )  # fmt: skip
    for column in range(pulls.shape[0]):
        pull = pulls[column, start:stop]
        a, b, c, d = rows[0, column], rows[1, column], rows[2, column], rows[3, column]
        for j in range(pull.shape[0]):
            pull[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]


@njit(
    _for_both("void(fc[:,::1], f4[::1], fc[:,::1], f4[::1], f4[::1], i8, fc[:,::1], fc[:,:,::1], f8[::1])"), **_OPTIONS
)
def add_gradients(
    units: Any, correct: Any, columns: Any, peaks: Any, rates: Any, power: Any, sums: Any, memory: Any, told: Any
) -> None:
    """Sum the gradients over rows of few classes, from the cosines to the pull.

    Four rows at a time go forth and back while what they leave is in the cache. ``columns`` are the anchors' directions
    by coordinate, a multiple of four of them. ``sums``, shape (3 + c, k), are those of :func:`_weigh`, then the pull by
    coordinate. ``memory`` has shape (2, 4, k). ``told`` are the sums of loss, log(1 + exp(I)) - correct I, and of
    probability.
    """
    n, c = units.shape
    width, k = columns.shape
    rows = np.zeros((4, width), dtype=units.dtype)
    residuals = np.zeros(4, dtype=np.float32)
    for first in range(0, n, 4):
        for row in range(4):
            for column in range(c):
                rows[row, column] = units[min(first + row, n - 1), column]
            amount = _f4(0.0)
            for start in range(0, k, _ANCHORS_AT_ONCE):
                stop = min(start + _ANCHORS_AT_ONCE, k)
                distances = memory[0, row, start:stop]
                _measure(rows[row], columns, start, stop, distances)
                amount += _decay(distances, peaks[start:stop], rates[start:stop], power, memory[1, row, start:stop])
            residuals[row] = _f4(0.0)
            if first + row < n:  # what fills up the last four pulls at nothing
                total, right = np.float64(amount), np.float64(correct[first + row])
                probability = 1.0 / (1.0 + np.exp(-total))
                told[0] += max(total, 0.0) + np.log1p(np.exp(-abs(total))) - right * total
                told[1] += probability
                residuals[row] = _f4(probability - right)
        for start in range(0, k, _ANCHORS_AT_ONCE):
            stop = min(start + _ANCHORS_AT_ONCE, k)
            of_peak, of_rate, of_pull = sums[0, start:stop], sums[1, start:stop], sums[2, start:stop]
            for row in range(4):
                decays = memory[1, row, start:stop]
                _weigh(memory[0, row, start:stop], decays, residuals[row], power, of_peak, of_rate, of_pull)
            _pull(memory[1], rows, start, stop, sums[3:])


@njit(_for_both("void(fc[:,::1], fc[:,::1], f4[::1], i8, f4[:,::1])"), **_OPTIONS)
def turn_columns(sums: Any, columns: Any, scale: Any, power: Any, gradient: Any) -> None:
    """Do what :func:`turn` does, to the sums of :func:`add_gradients`, and write row after row."""
    k, c = gradient.shape
    for start in range(0, k, _TURNED_AT_ONCE):
        stop = min(start + _TURNED_AT_ONCE, k)
        part, own_scale = gradient[start:stop], scale[start:stop]
        of_rate, of_pull = sums[1, start:stop], sums[2, start:stop]
        for column in range(c):
            pulls, directions = sums[3 + column, start:stop], columns[column, start:stop]
            for j in range(stop - start):
                along = of_pull[j] - power * of_rate[j]
                part[j, column] = (pulls[j] - along * directions[j]) * own_scale[j]


@njit("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4, f8, f8, f4)", **_OPTIONS)
def descend(
    value: Any,
    gradient: Any,
    mean: Any,
    square: Any,
    rate: Any,
    square_rate: Any,
    mean_decay: Any,
    square_decay: Any,
    floor: Any,
) -> None:
    """Take one step of Adam in one pass over memory."""
    for i in range(value.shape[0]):
        slope = gradient[i]
        first = _f4(mean_decay) * mean[i] + _f4(1.0 - mean_decay) * slope
        second = _f4(square_decay) * square[i] + _f4(1.0 - square_decay) * slope * slope
        mean[i], square[i] = first, second
        value[i] -= rate * first / (np.sqrt(second * square_rate) + floor)
