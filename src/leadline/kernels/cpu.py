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

from leadline.kernels.base import (
    ADAM_FLOOR,
    MEAN_DECAY,
    SQUARE_DECAY,
    AnchorField,
    Gradients,
    Kernel,
    decay_rates,
    unit_rows,
)
from leadline.kernels.threads import Team, scratch, slices, team
from leadline.outputs import FloatArray

Float32 = NDArray[np.float32]
Field = AnchorField[Float32]

_TILE_VALUES = 1 << 18  # 1 MB of float32: half of a common second-level cache
_TILE_ANCHORS = 4096
_WIDE_CLASSES = 64  # from here on the product is most of the work, and BLAS wants as many rows at a time
_WIDE_ROWS = 512
_STEP_PAIRS = 1 << 20  # pairs of row and anchor that training keeps at a time
_PARALLEL_FROM = 1 << 16  # pairs; below, handing work to threads costs more than it saves

_f4 = np.float32
_i4 = np.int32
_options: dict[str, Any] = {"fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}


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


@njit(inline="always", **_options)  # type: ignore[untyped-decorator]
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


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **_options)
def _add_influence(cosines: Any, peaks: Any, rates: Any, power: Any, total: Any) -> None:
    """Add the influence of a tile of anchors to the total of each row; rates are -widths^2."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        amount = _f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(1.0) - row[j]
                amount += peaks[j] * _exp(rates[j] * distance * distance)
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(1.0) - row[j], _f4(0.0))
                amount += peaks[j] * _exp(rates[j] * distance)
        total[i] += amount


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **_options)
def _raise_strongest(cosines: Any, peaks: Any, rates: Any, power: Any, strongest: Any) -> None:
    """Raise the largest single influence on each row by those of a tile of anchors.

    Floats above zero have the order of their bits, and a maximum of integers compiles to vector instructions
    where one of floats does not.
    """
    for i in range(cosines.shape[0]):
        row = cosines[i]
        best = _bits_of_float(_f4(strongest[i]))
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(1.0) - row[j]
                best = max(best, _bits_of_float(abs(peaks[j]) * _exp(rates[j] * distance * distance)))
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(1.0) - row[j], _f4(0.0))
                best = max(best, _bits_of_float(abs(peaks[j]) * _exp(rates[j] * distance)))
        strongest[i] = _float_of_bits(best)


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f4[:,::1], f8[::1])", **_options)
def _decay(cosines: Any, peaks: Any, rates: Any, power: Any, decays: Any, total: Any) -> None:
    """Store exp(-v^2 d^power) of a tile for the backward pass, and add its influence to each row's total."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        out = decays[i]
        amount = _f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = _f4(1.0) - row[j]
                out[j] = _exp(rates[j] * distance * distance)
                amount += peaks[j] * out[j]
        else:
            for j in range(row.shape[0]):
                distance = max(_f4(1.0) - row[j], _f4(0.0))
                out[j] = _exp(rates[j] * distance)
                amount += peaks[j] * out[j]
        total[i] += amount


@njit("void(f4[:,::1], f4[:,::1], f4[::1], i8, f4[::1], f4[::1], f4[::1])", **_options)
def _pull(cosines: Any, decays: Any, residuals: Any, power: Any, of_peak: Any, of_rate: Any, along: Any) -> None:
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


@njit("void(f4[:,::1], f4[:,::1], f4[::1])", **_options)
def _normalise(anchors: Any, directions: Any, lengths: Any) -> None:
    """Scale each anchor to length 1, and store how long it was; an anchor at zero stays."""
    for j in range(anchors.shape[0]):
        square = _f4(0.0)
        for column in range(anchors.shape[1]):
            square += anchors[j, column] * anchors[j, column]
        length = np.sqrt(square) if square > 0 else _f4(1.0)
        lengths[j] = length
        for column in range(anchors.shape[1]):
            directions[j, column] = anchors[j, column] / length


@njit("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1])", **_options)
def _turn(pull: Any, directions: Any, along: Any, scale: Any) -> None:
    """Take away the part of each pull along its anchor, which no cosine feels, and scale the rest."""
    for j in range(pull.shape[0]):
        for column in range(pull.shape[1]):
            pull[j, column] = (pull[j, column] - along[j] * directions[j, column]) * scale[j]


@njit("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4)", **_options)
def _descend(value: Any, gradient: Any, mean: Any, square: Any, rate: Any, square_rate: Any) -> None:
    """Take one step of Adam in one pass over memory."""
    for i in range(value.shape[0]):
        slope = gradient[i]
        first = _f4(MEAN_DECAY) * mean[i] + _f4(1.0 - MEAN_DECAY) * slope
        second = _f4(SQUARE_DECAY) * square[i] + _f4(1.0 - SQUARE_DECAY) * slope * slope
        mean[i], square[i] = first, second
        value[i] -= rate * first / (np.sqrt(second * square_rate) + _f4(ADAM_FLOOR))


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
        height = max(_TILE_VALUES // width, _WIDE_ROWS if c >= _WIDE_CLASSES else 1)

        def work(cut: slice) -> None:
            units = unit_rows(logits[cut])
            buffer = scratch(len(units) * width)
            for columns, tile_peaks, tile_rates in tiles:
                cosines = buffer[: len(units) * columns.shape[1]].reshape(len(units), -1)
                np.matmul(units, columns, out=cosines)
                visit(cosines, tile_peaks, tile_rates, field.power, result[cut])

        with team(worth_it=n * k >= _PARALLEL_FROM) as workers:
            workers.run(work, slices(n, workers.step(n, height)))
        return result

    def gradients(self, units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
        """Return the loss on a batch and its gradients; anchors in parallel."""
        rows, k = len(units), len(field.peaks)
        with team(worth_it=rows * k >= _PARALLEL_FROM) as workers:
            step = _Step(field, workers)
            loss = sum(step.add(units[cut], correct[cut]) for cut in slices(rows, max(64, _STEP_PAIRS // k)))
            return step.gradients(loss, rows)

    def descend(
        self, value: Float32, gradient: Float32, mean: Float32, square: Float32, rates: tuple[float, float]
    ) -> None:
        """Take one step of Adam; parts of the arrays in parallel."""
        values, slopes, means, squares = (array.reshape(-1) for array in (value, gradient, mean, square))
        rate, square_rate = _f4(rates[0]), _f4(rates[1])
        with team(worth_it=value.size >= _PARALLEL_FROM) as workers:
            workers.run(
                lambda cut: _descend(values[cut], slopes[cut], means[cut], squares[cut], rate, square_rate),
                slices(value.size, workers.step(value.size, _TILE_VALUES)),
            )


class _Step:
    """The gradients of one batch, added up over blocks of its rows."""

    def __init__(self, field: Field, workers: Team) -> None:
        k, c = field.anchors.shape
        self.field, self.workers = field, workers
        self.directions, self.lengths = np.empty_like(field.anchors), np.empty_like(field.peaks)
        self.rates = decay_rates(field.widths)
        self.of_peak, self.of_rate, self.along = (np.zeros(k, dtype=np.float32) for _ in range(3))
        self.pull, self.pulled = np.empty_like(field.anchors), False
        # waking a thread takes longer than to go over a tile
        self.anchor_cuts = slices(k, workers.step(k, max(1, _TILE_VALUES // c)) if k * c > _TILE_VALUES else k)
        workers.run(
            lambda cut: _normalise(field.anchors[cut], self.directions[cut], self.lengths[cut]), self.anchor_cuts
        )

    def add(self, units: Float32, correct: Float32) -> float:
        """Add the gradients of a block of rows, and return the sum of its losses."""
        rows, k, power, workers = len(units), len(self.rates), self.field.power, self.workers
        cuts = slices(k, workers.step(k, max(1, _TILE_VALUES // rows)))
        memory = scratch(2 * rows * k)[: 2 * rows * k].reshape(2, rows * k)
        tiles = [memory[:, rows * cut.start : rows * cut.stop].reshape(2, rows, -1) for cut in cuts]
        totals = np.zeros((len(cuts), rows))

        def forward(part: int) -> None:
            cut, (cosines, decays) = cuts[part], tiles[part]
            np.matmul(units, self.directions[cut].T, out=cosines)
            _decay(cosines, self.field.peaks[cut], self.rates[cut], power, decays, totals[part])

        def backward(part: int) -> None:
            cut, (cosines, decays) = cuts[part], tiles[part]
            _pull(
                cosines, decays, residuals, power, self.of_peak[cut], self.of_rate[cut], self.along[cut]
            )  # fmt: skip
            if self.pulled:
                self.pull[cut] += np.matmul(decays.T, units)
            else:
                np.matmul(decays.T, units, out=self.pull[cut])

        workers.run(forward, range(len(cuts)))
        total = totals.sum(axis=0)
        with np.errstate(over="ignore"):
            residuals = (1.0 / (1.0 + np.exp(-total)) - correct).astype(np.float32)
        workers.run(backward, range(len(cuts)))
        self.pulled = True
        return float(np.sum(np.logaddexp(0.0, total) - correct * total))  # log(1 + exp(I)) - delta I

    def gradients(self, loss: float, rows: int) -> Gradients[Float32]:
        """Turn the sums over all rows into the gradients of the mean."""
        peaks, widths = self.field.peaks, self.field.widths
        scale = -self.rates * peaks / (self.lengths * np.float32(rows))
        self.workers.run(
            lambda cut: _turn(self.pull[cut], self.directions[cut], self.along[cut], scale[cut]), self.anchor_cuts
        )
        return Gradients(
            loss=loss / rows,
            anchors=self.pull,
            peaks=self.of_peak / np.float32(rows),
            widths=self.of_rate * peaks * widths * np.float32(-2.0 / rows),
        )
