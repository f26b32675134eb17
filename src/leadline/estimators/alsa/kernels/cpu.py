"""Anchors on CPUs: BLAS for the cosines, compiled loops for everything after them, tile by tile.

A tile of rows times a tile of anchors fits into the cache, so that the n x k matrix never exists and the
exponentials run at the speed of the arithmetic. Threads are plain Python threads over rows (or, in training,
over anchors): the compiled loops release the lock, and BLAS keeps to one thread per worker meanwhile, because
two thread pools that spin against each other on the same cores cost far more than either gains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray
from leadline.estimators.alsa.kernels.base import AnchorField, Gradients, Kernel, decay_rates, unit_rows
from leadline.threads import scratch, slices, team

Float32 = NDArray[np.float32]
Field = AnchorField[Float32]

TILE_VALUES = 1 << 18  # 1 MB of float32: half of a common second-level cache
_TILE_ANCHORS = 4096
_WIDE_CLASSES = 64  # from here on the product is most of the work, and BLAS wants as many rows at a time
_WIDE_ROWS = 512
PARALLEL_FROM = 1 << 16  # pairs; below, handing work to threads costs more than it saves

f4 = np.float32
_i4 = np.int32
OPTIONS: dict[str, Any] = {"fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}


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


@njit(inline="always", **OPTIONS)  # type: ignore[untyped-decorator]
def exp(x: Any) -> Any:
    """Return exp(x) for x <= 0 to float32 precision, in arithmetic that compiles to vector instructions.

    exp(x) = 2^whole 2^part with the part in [-1/2, 1/2] by a minimax polynomial, the whole power written into
    the exponent bits. Below -50 the value is held at 2e-22: nothing beside the unified peak of 6, and far
    from the denormal numbers on which processors slow down a hundredfold.
    """
    scaled = max(x, f4(-50.0)) * f4(1.44269504)
    whole = _i4(scaled - f4(0.5))
    part = scaled - f4(whole)
    series = f4(1.3276472e-3)
    series = series * part + f4(9.675542e-3)
    series = series * part + f4(5.550713e-2)
    series = series * part + f4(2.402212e-1)
    series = series * part + f4(6.9314694e-1)
    series = series * part + f4(1.0)
    return series * _float_of_bits((whole + _i4(127)) << _i4(23))


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **OPTIONS)
def _add_influence(cosines: Any, peaks: Any, rates: Any, power: Any, total: Any) -> None:
    """Add the influence of a tile of anchors to the total of each row; rates are -widths^2."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        amount = f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = f4(1.0) - row[j]
                amount += peaks[j] * exp(rates[j] * distance * distance)
        else:
            for j in range(row.shape[0]):
                distance = max(f4(1.0) - row[j], f4(0.0))
                amount += peaks[j] * exp(rates[j] * distance)
        total[i] += amount


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **OPTIONS)
def _raise_strongest(cosines: Any, peaks: Any, rates: Any, power: Any, strongest: Any) -> None:
    """Raise the largest single influence on each row by those of a tile of anchors.

    Floats above zero have the order of their bits, and a maximum of integers compiles to vector instructions
    where one of floats does not.
    """
    for i in range(cosines.shape[0]):
        row = cosines[i]
        best = _bits_of_float(f4(strongest[i]))
        if power == 2:
            for j in range(row.shape[0]):
                distance = f4(1.0) - row[j]
                best = max(best, _bits_of_float(abs(peaks[j]) * exp(rates[j] * distance * distance)))
        else:
            for j in range(row.shape[0]):
                distance = max(f4(1.0) - row[j], f4(0.0))
                best = max(best, _bits_of_float(abs(peaks[j]) * exp(rates[j] * distance)))
        strongest[i] = _float_of_bits(best)


class NumbaKernel(Kernel):
    """Anchors on the CPU."""

    def asarray(self, values: NDArray[Any]) -> Float32:
        """Return values as contiguous float32."""
        return np.ascontiguousarray(values, dtype=np.float32)

    def to_numpy(self, values: Float32) -> Float32:
        """Return values as they are."""
        return values

    def influence(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the total influence on each row, shape (n,)."""
        return self._over_pairs(logits, field, _add_influence)

    def strongest(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the largest absolute influence of any single anchor on each row, shape (n,)."""
        return self._over_pairs(logits, field, _raise_strongest)

    def _over_pairs(self, logits: FloatArray, field: Field, visit: Callable[..., None]) -> NDArray[np.float64]:
        """Visit every tile of rows and anchors, rows in parallel."""
        (n, c), k = logits.shape, len(field.peaks)
        result = np.zeros(n)
        directions, rates = unit_rows(field.anchors), decay_rates(field.widths)
        tiles = [
            (np.ascontiguousarray(directions[cut].T), field.peaks[cut], rates[cut]) for cut in slices(k, _TILE_ANCHORS)
        ]
        width = min(k, _TILE_ANCHORS)
        height = max(TILE_VALUES // width, _WIDE_ROWS if c >= _WIDE_CLASSES else 1)

        def work(cut: slice) -> None:
            units = unit_rows(logits[cut])
            buffer = scratch(len(units) * width)
            for columns, tile_peaks, tile_rates in tiles:
                cosines = buffer[: len(units) * columns.shape[1]].reshape(len(units), -1)
                np.matmul(units, columns, out=cosines)
                visit(cosines, tile_peaks, tile_rates, field.power, result[cut])

        with team(worth_it=n * k >= PARALLEL_FROM) as workers:
            workers.run(work, slices(n, workers.step(n, height)))
        return result

    def gradients(self, units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
        """Return the loss on a batch and its gradients; anchors in parallel."""
        from leadline.estimators.alsa.kernels.steps import gradients

        return gradients(units, correct, field)

    def descend(
        self, value: Float32, gradient: Float32, mean: Float32, square: Float32, rates: tuple[float, float]
    ) -> None:
        """Take one step of Adam; parts of the arrays in parallel."""
        from leadline.estimators.alsa.kernels.steps import descend

        descend(value, gradient, mean, square, rates)
