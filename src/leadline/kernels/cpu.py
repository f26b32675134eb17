"""Anchors on CPUs: BLAS for the cosines, compiled loops for everything after them, tile by tile.

A tile of rows times a tile of anchors fits into the second-level cache, so that the n x k matrix never exists and the
exponentials run at the speed of the arithmetic. Threads are plain Python threads over rows (or, in training, over
anchors): the compiled loops release the lock, and BLAS keeps to one thread per worker meanwhile, because two thread
pools that spin against each other on the same cores cost far more than either gains.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from leadline.kernels.base import AnchorField, Gradients, Kernel, unit_rows
from leadline.outputs import FloatArray

Float32 = NDArray[np.float32]
Field = AnchorField[Float32]

_TILE_VALUES = 1 << 18  # 1 MB of float32: half of a common second-level cache
_TILE_ANCHORS = 4096
_PARALLEL_FROM = 1 << 16  # pairs of row and anchor; below, handing work to threads costs more than it saves

_f4 = np.float32
_i4 = np.int32
_options: dict[str, Any] = {"fastmath": True, "nogil": True, "cache": True, "error_model": "numpy"}


@intrinsic  # type: ignore[untyped-decorator]
def _float_of_bits(typing_context: Any, bits: Any) -> Any:
    """Reinterpret an int32 as a float32."""
    del typing_context, bits

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@njit(inline="always", **_options)  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Any:
    """Return exp(x) for x <= 0 to float32 precision, in arithmetic that compilers turn into vector instructions.

    exp(x) = 2^whole 2^part with the part in [-1/2, 1/2] by a polynomial and the whole power written into the exponent
    bits. Below -50 the value is held at 2e-22: nothing beside the unified peak of 6, and far from the denormal numbers
    on which processors slow down a hundredfold.
    """
    scaled = max(x, _f4(-50.0)) * _f4(1.44269504)
    whole = _i4(scaled - _f4(0.5))
    part = scaled - _f4(whole)
    series = _f4(1.33335581e-3)
    series = series * part + _f4(9.61812911e-3)
    series = series * part + _f4(5.55041087e-2)
    series = series * part + _f4(2.40226507e-1)
    series = series * part + _f4(6.93147182e-1)
    series = series * part + _f4(1.0)
    return series * _float_of_bits((whole + _i4(127)) << _i4(23))


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **_options)  # type: ignore[untyped-decorator]
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


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f8[::1])", **_options)  # type: ignore[untyped-decorator]
def _raise_strongest(cosines: Any, peaks: Any, rates: Any, power: Any, strongest: Any) -> None:
    """Raise the largest single influence on each row by those of a tile of anchors."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        best = _f4(strongest[i])
        for j in range(row.shape[0]):
            distance = max(_f4(1.0) - row[j], _f4(0.0))
            reach = distance * distance if power == 2 else distance
            best = max(best, abs(peaks[j]) * _exp(rates[j] * reach))
        strongest[i] = best


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f4[:,::1], f8[::1])", **_options)  # type: ignore[untyped-decorator]
def _decay(cosines: Any, peaks: Any, rates: Any, power: Any, decays: Any, total: Any) -> None:
    """Store exp(-v^2 d^power) of a tile for the backward pass, and add the influence to the total of each row."""
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


@njit(  # type: ignore[untyped-decorator]
    "void(f4[:,::1], f4[:,::1], f4[::1], i8, f4[::1], f4[::1], f4[::1])", **_options
)
def _pull(cosines: Any, decays: Any, residuals: Any, power: Any, of_peak: Any, of_rate: Any, along: Any) -> None:
    """Sum the gradients of a tile over its rows, and turn the decays into the weights of the rows' pull.

    of_peak_j = sum_i r_i E_ij; of_rate_j = sum_i r_i E_ij d_ij^power; weights w_ij = power r_i E_ij d_ij^(power - 1);
    along_j = sum_i w_ij cos_ij.
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

    def _over_pairs(
        self, logits: FloatArray, field: Field, visit: Callable[..., None]
    ) -> NDArray[np.float64]:
        """Visit every tile of rows and anchors, rows in parallel."""
        result = np.zeros(len(logits))
        tiles = [
            (np.ascontiguousarray(unit_rows(field.anchors[cut]).T), field.peaks[cut], -np.square(field.widths[cut]))
            for cut in _cuts(len(field.peaks), _TILE_ANCHORS)
        ]
        width = tiles[0][1].shape[0]
        height = max(1, _TILE_VALUES // width)

        def work(cut: slice) -> None:
            units = unit_rows(logits[cut])
            buffer = _buffer(len(units) * width)
            for directions, peaks, rates in tiles:
                cosines = buffer[: len(units) * len(peaks)].reshape(len(units), len(peaks))
                np.matmul(units, directions, out=cosines)
                visit(cosines, peaks, rates, field.power, result[cut])

        _run(work, list(_cuts(len(logits), height)), pairs=len(logits) * len(field.peaks))
        return result

    def gradients(self, units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
        """Return the loss on a batch and its gradients; anchors in parallel."""
        rows, k = len(units), len(field.peaks)
        lengths = np.sqrt(np.einsum("ij,ij->i", field.anchors, field.anchors))
        lengths[lengths == 0] = 1.0
        directions = field.anchors / lengths[:, None]
        rates = -np.square(field.widths)
        of_peak, of_rate, along = (np.zeros(k, dtype=np.float32) for _ in range(3))
        pull = np.empty_like(field.anchors)
        pairs = rows * k
        cuts = list(_cuts(k, max(1, min(-(-k // _workers()), _TILE_VALUES // rows)) if pairs >= _PARALLEL_FROM else k))
        totals = np.zeros((len(cuts), rows))
        cosines = [np.empty((rows, cut.stop - cut.start), dtype=np.float32) for cut in cuts]
        decays = [np.empty_like(tile) for tile in cosines]

        def forward(part: int) -> None:
            cut = cuts[part]
            np.matmul(units, directions[cut].T, out=cosines[part])
            _decay(cosines[part], field.peaks[cut], rates[cut], field.power, decays[part], totals[part])

        def backward(part: int) -> None:
            cut = cuts[part]
            _pull(
                cosines[part], decays[part], residuals, field.power, of_peak[cut], of_rate[cut], along[cut]
            )  # fmt: skip
            np.matmul(decays[part].T, units, out=pull[cut])

        parts = range(len(cuts))
        _run(forward, parts, pairs=pairs)
        total = totals.sum(axis=0)
        # log(1 + exp(I)) - delta I, without overflow
        loss = float(np.mean(np.logaddexp(0.0, total) - correct * total))
        with np.errstate(over="ignore"):
            residuals = ((1.0 / (1.0 + np.exp(-total)) - correct) / rows).astype(np.float32)
        _run(backward, parts, pairs=pairs)
        pull -= along[:, None] * directions
        pull *= (field.peaks * np.square(field.widths) / lengths)[:, None]
        return Gradients(
            loss=loss, anchors=pull, peaks=of_peak, widths=-2.0 * field.widths * field.peaks * of_rate
        )


@lru_cache(maxsize=1)
def _workers() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_workers(), thread_name_prefix="leadline")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)

_blas_lock = threading.Lock()
_scratch = threading.local()


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep BLAS to the calling thread; the lock keeps two callers from restoring each other's setting."""
    with _blas_lock, _threadpools().limit(limits=1, user_api="blas"):
        yield


def _run(work: Callable[[Any], None], parts: Sequence[Any], *, pairs: int) -> None:
    """Do all parts, in threads where it pays."""
    if pairs < _PARALLEL_FROM or len(parts) == 1 or _workers() == 1:
        for part in parts:
            work(part)
        return
    with _one_blas_thread():
        list(_pool().map(work, parts))


def _buffer(size: int) -> Float32:
    """Return this thread's scratch memory, at least ``size`` long."""
    buffer: Float32 | None = getattr(_scratch, "buffer", None)
    if buffer is None or len(buffer) < size:
        buffer = _scratch.buffer = np.empty(size, dtype=np.float32)
    return buffer


def _cuts(size: int, step: int) -> Iterator[slice]:
    """Cut a range into slices of at most ``step``."""
    for start in range(0, size, step):
        yield slice(start, min(size, start + step))
