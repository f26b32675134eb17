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
from numpy.typing import NDArray

from leadline.compiled import load_loops
from leadline.data.outputs import FloatArray
from leadline.estimators.alsa.kernels import plain
from leadline.estimators.alsa.kernels.base import (
    AnchorField,
    Float32,
    Gradients,
    Kernel,
    Precision,
    decay_rates,
    precision_for,
    unit_rows,
)
from leadline.threads import scratch, slices, team

Field = AnchorField[Float32]

LOOPS = "leadline.estimators.alsa.kernels.loops"
TILE_VALUES = 1 << 18  # 1 MB of float32: half of a common second-level cache
_TILE_ANCHORS = 4096
_WIDE_CLASSES = 64  # from here on the product is most of the work, and BLAS wants as many rows at a time
_WIDE_ROWS = 512
PARALLEL_FROM = 1 << 16  # pairs; below, handing work to threads costs more than it saves
# Pairs from which compiled loops are worth it: to load them takes half a second, and NumPy some milliseconds for these.
_COMPILED_FROM = 1 << 21


def scratch_of(precision: Precision, size: int) -> NDArray[Any]:
    """Return this thread's scratch memory as ``size`` numbers of that precision."""
    length = size * np.dtype(precision).itemsize // np.dtype(np.float32).itemsize
    return scratch(length)[:length].view(precision)


class CPUKernel(Kernel):
    """Anchors on the CPU.

    Parameters
    ----------
    pairs
        How many pairs of row and anchor there are to go over; None for many.
    """

    def __init__(self, pairs: int | None = None) -> None:
        compiled = pairs is None or pairs >= _COMPILED_FROM
        self._loops: Any = load_loops(LOOPS) if compiled else plain

    def asarray(self, values: NDArray[Any]) -> Float32:
        """Return values as contiguous float32."""
        return np.ascontiguousarray(values, dtype=np.float32)

    def to_numpy(self, values: Float32) -> Float32:
        """Return values as they are."""
        return values

    def influence(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the total influence on each row, shape (n,)."""
        return self._over_pairs(logits, field, self._loops.add_influence)

    def strongest(self, logits: FloatArray, field: Field) -> NDArray[np.float64]:
        """Return the largest absolute influence of any single anchor on each row, shape (n,)."""
        return self._over_pairs(logits, field, self._loops.raise_strongest)

    def _over_pairs(self, logits: FloatArray, field: Field, visit: Callable[..., None]) -> NDArray[np.float64]:
        """Visit every tile of rows and anchors, rows in parallel."""
        (n, c), k = logits.shape, len(field.peaks)
        result = np.zeros(n)
        rates = decay_rates(field.widths)
        precision = precision_for(float(rates.min()), field.power)
        directions = unit_rows(field.anchors, precision)
        tiles = [
            (np.ascontiguousarray(directions[cut].T), field.peaks[cut], rates[cut]) for cut in slices(k, _TILE_ANCHORS)
        ]
        width = min(k, _TILE_ANCHORS)
        height = max(TILE_VALUES // width, _WIDE_ROWS if c >= _WIDE_CLASSES else 1)

        def work(cut: slice) -> None:
            units = unit_rows(logits[cut], precision)
            for columns, tile_peaks, tile_rates in tiles:
                cosines = scratch_of(precision, len(units) * columns.shape[1]).reshape(len(units), -1)
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
