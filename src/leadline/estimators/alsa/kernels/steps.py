"""Training on CPUs: the gradients of a batch, and a step of Adam; an estimate does not load it.

The compiled loops are cached by the date of this file, and take the exponential from ``cpu.py``: after a change to it,
touch this file too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from leadline.estimators.alsa.kernels.base import ADAM_FLOOR, MEAN_DECAY, SQUARE_DECAY, Gradients, decay_rates
from leadline.estimators.alsa.kernels.cpu import OPTIONS, PARALLEL_FROM, TILE_VALUES, Field, Float32, exp, f4
from leadline.threads import Team, scratch, slices, team

_STEP_PAIRS = 1 << 20  # pairs of row and anchor that training keeps at a time


@njit("void(f4[:,::1], f4[::1], f4[::1], i8, f4[:,::1], f8[::1])", **OPTIONS)
def _decay(cosines: Any, peaks: Any, rates: Any, power: Any, decays: Any, total: Any) -> None:
    """Store exp(-v^2 d^power) of a tile for the backward pass, and add its influence to each row's total."""
    for i in range(cosines.shape[0]):
        row = cosines[i]
        out = decays[i]
        amount = f4(0.0)
        if power == 2:
            for j in range(row.shape[0]):
                distance = f4(1.0) - row[j]
                out[j] = exp(rates[j] * distance * distance)
                amount += peaks[j] * out[j]
        else:
            for j in range(row.shape[0]):
                distance = max(f4(1.0) - row[j], f4(0.0))
                out[j] = exp(rates[j] * distance)
                amount += peaks[j] * out[j]
        total[i] += amount


@njit("void(f4[:,::1], f4[:,::1], f4[::1], i8, f4[::1], f4[::1], f4[::1])", **OPTIONS)
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
                distance = f4(1.0) - row[j]
                pulled = residual * weights[j]
                of_peak[j] += pulled
                pulled *= distance
                of_rate[j] += pulled * distance
                pulled *= f4(2.0)
                weights[j] = pulled
                along[j] += pulled * row[j]
        else:
            for j in range(row.shape[0]):
                distance = f4(1.0) - row[j]
                pulled = residual * weights[j]
                of_peak[j] += pulled
                of_rate[j] += pulled * distance
                weights[j] = pulled
                along[j] += pulled * row[j]


@njit("void(f4[:,::1], f4[:,::1], f4[::1])", **OPTIONS)
def _normalise(anchors: Any, directions: Any, lengths: Any) -> None:
    """Scale each anchor to length 1, and store how long it was; an anchor at zero stays."""
    for j in range(anchors.shape[0]):
        square = f4(0.0)
        for column in range(anchors.shape[1]):
            square += anchors[j, column] * anchors[j, column]
        length = np.sqrt(square) if square > 0 else f4(1.0)
        lengths[j] = length
        for column in range(anchors.shape[1]):
            directions[j, column] = anchors[j, column] / length


@njit("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1])", **OPTIONS)
def _turn(pull: Any, directions: Any, along: Any, scale: Any) -> None:
    """Take away the part of each pull along its anchor, which no cosine feels, and scale the rest."""
    for j in range(pull.shape[0]):
        for column in range(pull.shape[1]):
            pull[j, column] = (pull[j, column] - along[j] * directions[j, column]) * scale[j]


@njit("void(f4[::1], f4[::1], f4[::1], f4[::1], f4, f4)", **OPTIONS)
def _descend(value: Any, gradient: Any, mean: Any, square: Any, rate: Any, square_rate: Any) -> None:
    """Take one step of Adam in one pass over memory."""
    for i in range(value.shape[0]):
        slope = gradient[i]
        first = f4(MEAN_DECAY) * mean[i] + f4(1.0 - MEAN_DECAY) * slope
        second = f4(SQUARE_DECAY) * square[i] + f4(1.0 - SQUARE_DECAY) * slope * slope
        mean[i], square[i] = first, second
        value[i] -= rate * first / (np.sqrt(second * square_rate) + f4(ADAM_FLOOR))


def gradients(units: Float32, correct: Float32, field: Field) -> Gradients[Float32]:
    """Return the loss on a batch and its gradients; see :meth:`Kernel.gradients`."""
    rows, k = len(units), len(field.peaks)
    with team(worth_it=rows * k >= PARALLEL_FROM) as workers:
        step = _Step(field, workers)
        loss = sum(step.add(units[cut], correct[cut]) for cut in slices(rows, max(64, _STEP_PAIRS // k)))
        return step.gradients(loss, rows)


def descend(value: Float32, gradient: Float32, mean: Float32, square: Float32, rates: tuple[float, float]) -> None:
    """Take one step of Adam; see :meth:`Kernel.descend`."""
    values, slopes, means, squares = (array.reshape(-1) for array in (value, gradient, mean, square))
    rate, square_rate = f4(rates[0]), f4(rates[1])
    with team(worth_it=value.size >= PARALLEL_FROM) as workers:
        workers.run(
            lambda cut: _descend(values[cut], slopes[cut], means[cut], squares[cut], rate, square_rate),
            slices(value.size, workers.step(value.size, TILE_VALUES)),
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
        self.anchor_cuts = slices(k, workers.step(k, max(1, TILE_VALUES // c)) if k * c > TILE_VALUES else k)
        workers.run(
            lambda cut: _normalise(field.anchors[cut], self.directions[cut], self.lengths[cut]), self.anchor_cuts
        )

    def add(self, units: Float32, correct: Float32) -> float:
        """Add the gradients of a block of rows, and return the sum of its losses."""
        rows, k, power, workers = len(units), len(self.rates), self.field.power, self.workers
        cuts = slices(k, workers.step(k, max(1, TILE_VALUES // rows)))
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
