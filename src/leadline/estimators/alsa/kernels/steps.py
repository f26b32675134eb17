"""Training on CPUs: the gradients of a batch, and a step of Adam; an estimate does not load it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.compiled import load_loops
from leadline.estimators.alsa.kernels.base import (
    ADAM_FLOOR,
    MEAN_DECAY,
    SQUARE_DECAY,
    Float32,
    Gradients,
    decay_rates,
    precision_for,
    unit_rows,
)
from leadline.estimators.alsa.kernels.cpu import LOOPS, PARALLEL_FROM, TILE_VALUES, Field, scratch_of
from leadline.numeric import sigmoid
from leadline.threads import Team, slices, team

loops = load_loops(LOOPS)
_FEW_CLASSES = 20  # coordinates; with more, BLAS is faster at the products than all that it takes besides
_PARALLEL_ROWS_FROM = 1 << 17  # pairs of row and anchor; fewer are done before another thread has woken up
_STEP_PAIRS = 1 << 20  # pairs of row and anchor that training keeps at a time


def gradients(units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
    """Return the loss on a batch and its gradients; see :meth:`Kernel.gradients`."""
    rows, k = len(units), len(field.peaks)
    if units.shape[1] <= _FEW_CLASSES:
        return _of_few_classes(units, correct, field)
    with team(worth_it=rows * k >= PARALLEL_FROM) as workers:
        step = _Step(field, workers)
        for cut in slices(rows, max(64, _STEP_PAIRS // k)):
            step.add(units[cut], correct[cut])
        return step.gradients(rows)


def _of_few_classes(units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
    """Return the gradients of a batch: a compiled loop takes rows from the cosines to the pull, rows in parallel."""
    (rows, c), k, power = units.shape, len(field.peaks), field.power
    rates = decay_rates(field.widths)
    precision = precision_for(float(rates.min()), power)
    vectors = units if precision is np.float32 else unit_rows(units, precision)
    columns, lengths = np.empty((-(-c // 4) * 4, k), dtype=precision), np.empty(k, dtype=precision)
    loops.normalise_columns(field.anchors, columns, lengths)

    def work(part: int) -> None:
        cut, passing, sums = cuts[part], memory[part, :8].reshape(2, 4, k), memory[part, 8:]
        sums[:] = 0.0
        loops.add_gradients(vectors[cut], correct[cut], columns, field.peaks, rates, power, sums, passing, told[part])

    with team(worth_it=rows * k >= _PARALLEL_ROWS_FROM, calls_blas=False) as workers:
        cuts = slices(rows, -(-rows // workers.size))
        # Sums by part, not by thread: which thread took which rows must not change the digits.
        memory = scratch_of(precision, len(cuts) * (11 + c) * k).reshape(len(cuts), 11 + c, k)
        told = np.zeros((len(cuts), 2))
        workers.run(work, range(len(cuts)))
        sums = memory[0, 8:]
        for more in memory[1:, 8:]:
            sums += more
        scale = -rates * field.peaks / (lengths.astype(np.float32, copy=False) * np.float32(rows))
        gradient = np.empty_like(field.anchors)
        loops.turn_columns(sums, columns, scale, power, gradient)
        of_peak, of_rate = sums[:2].astype(np.float32)
    loss, right = (told.sum(axis=0) / rows).tolist()
    return Gradients(
        loss=loss,
        accuracy=right,
        anchors=gradient,
        peaks=of_peak / np.float32(rows),
        widths=of_rate * field.peaks * field.widths * np.float32(-2.0 / rows),
    )


def descend(value: Float32, gradient: Float32, mean: Float32, square: Float32, rates: tuple[float, float]) -> None:
    """Take one step of Adam; see :meth:`Kernel.descend`."""
    values, slopes, means, squares = (array.reshape(-1) for array in (value, gradient, mean, square))
    constants = (*map(np.float32, rates), MEAN_DECAY, SQUARE_DECAY, np.float32(ADAM_FLOOR))
    if value.size < PARALLEL_FROM:  # most are: not even a team of one is worth its time
        loops.descend(values, slopes, means, squares, *constants)
        return
    with team(worth_it=True) as workers:
        workers.run(
            lambda cut: loops.descend(values[cut], slopes[cut], means[cut], squares[cut], *constants),
            slices(value.size, workers.step(value.size, TILE_VALUES)),
        )


class _Step:
    """The gradients of one batch, added up over blocks of its rows."""

    def __init__(self, field: Field, workers: Team) -> None:
        k, c = field.anchors.shape
        self.field, self.workers = field, workers
        self.rates = decay_rates(field.widths)
        self.precision = precision_for(float(self.rates.min()), field.power)
        self.sums: NDArray[Any] = np.zeros((3, k), dtype=self.precision)
        self.directions, self.lengths = np.empty((k, c), dtype=self.precision), np.empty_like(field.peaks)
        self.loss = self.right = 0.0
        self.pull, self.pulled = np.empty((k, c), dtype=self.precision), False
        # waking a thread takes longer than to go over a tile
        self.anchor_cuts = slices(k, workers.step(k, max(1, TILE_VALUES // c)) if k * c > TILE_VALUES else k)
        workers.run(
            lambda cut: loops.normalise(field.anchors[cut], self.directions[cut], self.lengths[cut]), self.anchor_cuts
        )

    def add(self, units: Float32, correct: Float32) -> None:
        """Add the gradients of a block of rows."""
        rows, k, power, workers = len(units), len(self.rates), self.field.power, self.workers
        if self.precision is np.float64:  # rows of length 1 in float32 are not quite that in float64
            units = unit_rows(units, self.precision)
        cuts = slices(k, workers.step(k, max(1, TILE_VALUES // rows)))
        memory = scratch_of(self.precision, 2 * rows * k).reshape(2, rows * k)
        tiles = [memory[:, rows * cut.start : rows * cut.stop].reshape(2, rows, -1) for cut in cuts]
        totals = np.zeros((len(cuts), rows))

        def forward(part: int) -> None:
            cut, (distances, decays) = cuts[part], tiles[part]
            np.matmul(units, self.directions[cut].T, out=distances)
            loops.store_decays(distances, self.field.peaks[cut], self.rates[cut], power, decays, totals[part])

        def backward(part: int) -> None:
            cut, (distances, decays) = cuts[part], tiles[part]
            loops.weigh(distances, decays, residuals, power, *(of_anchors[cut] for of_anchors in self.sums))
            if self.pulled:
                self.pull[cut] += np.matmul(decays.T, units)
            else:
                np.matmul(decays.T, units, out=self.pull[cut])

        workers.run(forward, range(len(cuts)))
        total = totals.sum(axis=0)
        probabilities = sigmoid(total)
        residuals = (probabilities - correct).astype(np.float32)
        workers.run(backward, range(len(cuts)))
        self.pulled = True
        self.loss += float(np.sum(np.logaddexp(0.0, total) - correct * total))  # log(1 + exp(I)) - delta I
        self.right += float(probabilities.sum())

    def gradients(self, rows: int) -> Gradients[Float32]:
        """Turn the sums over all rows into the gradients of the mean."""
        peaks, widths = self.field.peaks, self.field.widths
        scale = -self.rates * peaks / (self.lengths * np.float32(rows))
        of_peak, of_rate = self.sums[:2].astype(np.float32, copy=False)
        along = self.sums[2] - self.field.power * self.sums[1]
        self.workers.run(
            lambda cut: loops.turn(self.pull[cut], self.directions[cut], along[cut], scale[cut]), self.anchor_cuts
        )
        return Gradients(
            loss=self.loss / rows,
            accuracy=self.right / rows,
            anchors=self.pull.astype(np.float32, copy=False),
            peaks=of_peak / np.float32(rows),
            widths=of_rate * peaks * widths * np.float32(-2.0 / rows),
        )
