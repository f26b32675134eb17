"""How a target differs from the source, as far as the outputs show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ShiftKind(Enum):
    """Which explanation of a target is believed; the value is what to call it."""

    NONE = "no detectable shift"
    LABEL = "label shift"
    COLLAPSE = "collapse"
    UNDECIDED = "undecided"


@dataclass(frozen=True, eq=False)
class Shift:
    """What the comparison of a target with the source showed.

    Attributes
    ----------
    kind
        The explanation that is believed.
    collapse_weight
        Belief in collapse (the classifier drifts towards some classes) against label shift (other class frequencies),
        from 0 to 1.
    label_shift_weight
        Belief that other class frequencies are all that happened. What is left of 1 after both is the belief that the
        classifier has also become surer or less sure, or has got another mix of rows.
    label_marginal
        Shape (c,): the estimated class frequencies of the target.
    label_marginal_change
        Share of the samples that would have to change class to get them from the source's.
    readings
        The accuracy by each reading of the outputs, by name.
    distance
        Hellinger distance of the target's predictions from the source's, with the expected sampling noise removed.
    label_shift_distance, collapse_distance
        How far the target is from either explanation.
    noise
        The distance that sampling noise alone would show.
    effective_source_rows
        How many rows the source, reweighted to the target's classes, is worth.
    share_outside
        Share of the target where the source has no sample at all.
    ranking
        How well confidence ranks right before wrong on the source: 2 AUC - 1.
    uncertainty
        Parts of the estimate's error, by name: standard errors of ``sampling`` and of the ``shift``; ``classes`` and
        ``drift``, with their signs: if other class frequencies were all that happened, or if a classifier drifts that
        may as well have got other rows, the accuracy would lie further on that side.
    evidence
        Share of the verdict that rests on the rows themselves; the rest is borrowed from the whole target that a
        segment belongs to.
    """

    kind: ShiftKind
    collapse_weight: float
    label_shift_weight: float
    label_marginal: NDArray[np.float64]
    label_marginal_change: float
    readings: Mapping[str, float]
    distance: float
    label_shift_distance: float
    collapse_distance: float
    noise: float
    effective_source_rows: float
    share_outside: float
    ranking: float
    uncertainty: Mapping[str, float]
    evidence: float = 1.0

    @property
    def readings_spread(self) -> float:
        """How far the readings lie apart."""
        return float(np.ptp(list(self.readings.values())))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return vars(self) | {
            "kind": self.kind.value,
            "label_marginal": self.label_marginal.tolist(),
            "readings": dict(self.readings),
            "readings_spread": self.readings_spread,
            "uncertainty": dict(self.uncertainty),
        }
