"""The labelled source after moves: what its rows become when logits are flattened, sharpened and mixed with noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from leadline.data.outputs import FloatArray, IntArray
from leadline.numeric import Array, top_two
from leadline.shift.cells import TopTwo
from leadline.shift.labelled_cells import LabelledCells
from leadline.shift.priors import Exponentials

# Logits flatter or sharper than the source's. Steps of four thirds or less: where one was larger, beliefs jumped.
SCALES = (0.25, 0.32, 0.42, 0.55, 0.75, 1.0, 1.3)
UNMOVED = SCALES.index(1.0)
NOISES = (0.0, 0.4)  # share of another row's logits mixed in

_MOST_KEPT = 80_000  # values of the source's rows that are kept as each move leaves them: 17 MB in all


@dataclass(frozen=True, eq=False)
class MovedRows:
    """Labelled rows of the source, and what they become when logits are flattened, sharpened and mixed with noise.

    Attributes
    ----------
    scores
        Shape (n, c): calibrated log-probabilities.
    labels
        Shape (n,): their classes.
    others
        Shape (n, c): for each of them another row's centred scores, to serve as noise.
    """

    scores: FloatArray
    labels: IntArray
    others: FloatArray

    @cached_property
    def marginal(self) -> Array:
        """Shape (c,): the class shares."""
        return np.asarray(np.bincount(self.labels, minlength=self.scores.shape[1]) / len(self.labels))

    @cached_property
    def odds(self) -> FloatArray:
        """Shape (n,): log-odds of the rows as they are, in rising order, in which quantiles are found soonest."""
        return np.sort(self.as_they_are[2])

    def at(self, noise: float, scale: float) -> Exponentials:
        """Return the rows with noise, flatter or sharper; they are kept where that takes little memory."""
        if self.scores.size > _MOST_KEPT:
            return self._moved(noise, scale)
        return self._kept[noise, scale]

    @cached_property
    def _kept(self) -> dict[tuple[float, float], Exponentials]:
        """The rows after each move."""
        return {move: self._moved(*move) for move in product(NOISES, SCALES)}

    def _moved(self, noise: float, scale: float) -> Exponentials:
        scores = scale * (self.scores + noise * self.others) if noise else scale * self.scores
        return Exponentials.of(scores, np.zeros(scores.shape[1]))

    @cached_property
    def _tops(self) -> tuple[TopTwo, ...]:
        """Top class, runner-up and log-odds of the rows without noise, at each scale."""
        return tuple(top_two(self.at(NOISES[0], scale).logits) for scale in SCALES)

    @cached_property
    def cells(self) -> LabelledCells:
        """The rows without noise, at each scale, to be counted."""
        return LabelledCells(self._tops, self.labels, self.scores.shape[1])

    @property
    def as_they_are(self) -> TopTwo:
        """Top class, runner-up and log-odds of the rows, shapes (n,), without any move."""
        return self._tops[UNMOVED]
