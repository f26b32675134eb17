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


@njit(_for_both("void(fc[:,::1], f4[::1], f4[::1], i8, fc[:,::1], f8[::1])"), **_OPTIONS)
def store_decays(cosines: Any, peaks: Any, rates: Any, power: Any, decays: Any, total: Any) -> None:
    """Store exp(-v^2 d^power) of a tile for the backward pass, and add its influence to each row's total."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        out = decays[i]
        amount = _f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(_f4(1.0) - row[j])
                decay = _exp(rates[j] * distance * distance)
                out[j] = decay
                amount += peaks[j] * decay
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(_f4(1.0) - row[j]), _f4(0.0))
                decay = _exp(rates[j] * distance)
                out[j] = decay
                amount += peaks[j] * decay
        total[i] += amount


@njit(_for_both("void(fc[:,::1], fc[:,::1], f4[::1], i8, f4[::1], f4[::1], fc[::1])"), **_OPTIONS)
def pull(cosines: Any, decays: Any, residuals: Any, power: Any, of_peak: Any, of_rate: Any, along: Any) -> None:
    """Sum the gradients of a tile over its rows, and turn the decays into the weights of the rows' pull.

    of_peak_j = sum_i r_i E_ij; of_rate_j = sum_i r_i E_ij d_ij^power; along_j = sum_i w_ij cos_ij with the
    weights w_ij = power r_i E_ij d_ij^(power - 1).
    """
    for i in range(cosines.shape[0]):
        residual = residuals[i]
        row = cosines[i]
        weights = decays[i]
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(1.0) - row[j]
                pulled = residual * weights[j]
                of_peak[j] += pulled
                pulled *= distance
                of_rate[j] += pulled * distance
                pulled *= _f4(2.0)
                weights[j] = pulled
                along[j] += pulled * row[j]
        else:
            for j in range(row.shape[0]):
                distance = _f4(1.0) - row[j]
                pulled = residual * weights[j]
                of_peak[j] += pulled
                of_rate[j] += pulled * distance
                weights[j] = pulled
                along[j] += pulled * row[j]


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
    """Take away the part of each pull along its anchor, which no cosine feels, and scale the rest."""
    for j in range(pulls.shape[0]):
        for column in range(pulls.shape[1]):
            pulls[j, column] = (pulls[j, column] - along[j] * directions[j, column]) * scale[j]


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
