"""Training on CPUs: the gradients of a batch, and a step of Adam; an estimate does not load it."""

from __future__ import annotations

import numpy as np

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
_STEP_PAIRS = 1 << 20  # pairs of row and anchor that training keeps at a time


def gradients(units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
    """Return the loss on a batch and its gradients; see :meth:`Kernel.gradients`."""
    rows, k = len(units), len(field.peaks)
    with team(worth_it=rows * k >= PARALLEL_FROM) as workers:
        step = _Step(field, workers)
        for cut in slices(rows, max(64, _STEP_PAIRS // k)):
            step.add(units[cut], correct[cut])
        return step.gradients(rows)


def descend(value: Float32, gradient: Float32, mean: Float32, square: Float32, rates: tuple[float, float]) -> None:
    """Take one step of Adam; see :meth:`Kernel.descend`."""
    values, slopes, means, squares = (array.reshape(-1) for array in (value, gradient, mean, square))
    constants = (*map(np.float32, rates), MEAN_DECAY, SQUARE_DECAY, np.float32(ADAM_FLOOR))
    with team(worth_it=value.size >= PARALLEL_FROM) as workers:
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
        self.of_peak, self.of_rate = (np.zeros(k, dtype=np.float32) for _ in range(2))
        self.directions, self.lengths = np.empty((k, c), dtype=self.precision), np.empty_like(field.peaks)
        self.along = np.zeros(k, dtype=self.precision)
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
            cut, (cosines, decays) = cuts[part], tiles[part]
            np.matmul(units, self.directions[cut].T, out=cosines)
            loops.store_decays(cosines, self.field.peaks[cut], self.rates[cut], power, decays, totals[part])

        def backward(part: int) -> None:
            cut, (cosines, decays) = cuts[part], tiles[part]
            loops.pull(
                cosines, decays, residuals, power, self.of_peak[cut], self.of_rate[cut], self.along[cut]
            )  # fmt: skip
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
        self.workers.run(
            lambda cut: loops.turn(self.pull[cut], self.directions[cut], self.along[cut], scale[cut]), self.anchor_cuts
        )
        return Gradients(
            loss=self.loss / rows,
            accuracy=self.right / rows,
            anchors=self.pull.astype(np.float32, copy=False),
            peaks=self.of_peak / np.float32(rows),
            widths=self.of_rate * peaks * widths * np.float32(-2.0 / rows),
        )
