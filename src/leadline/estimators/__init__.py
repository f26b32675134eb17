"""All estimators, and the table that names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.errors import InputError
from leadline.estimators.alsa.model import ALSA
from leadline.estimators.auto import Auto
from leadline.estimators.base import Estimator
from leadline.estimators.calibrated import CalibratedConfidence
from leadline.estimators.confidence import (
    AverageConfidence,
    AverageThresholdedConfidence,
    DifferenceOfConfidence,
)
from leadline.estimators.importance import ImportanceReweighting
from leadline.estimators.persistence import load
from leadline.estimators.transport import ConfidenceTransport, ThresholdedTransport

__all__ = [
    "ALSA",
    "METHODS",
    "Auto",
    "AverageConfidence",
    "AverageThresholdedConfidence",
    "CalibratedConfidence",
    "ConfidenceTransport",
    "DifferenceOfConfidence",
    "Estimator",
    "ImportanceReweighting",
    "Method",
    "ThresholdedTransport",
    "load",
    "make",
]


@dataclass(frozen=True)
class Method:
    """A line of the table of methods: how to make the estimator, and what to tell people about it.

    Attributes
    ----------
    cls
        The estimator class.
    options
        Options that make it this method and no other.
    summary
        What it computes, in a few words.
    assumption
        When it is right.
    reference
        Who published it.
    """

    cls: type[Estimator]
    summary: str
    assumption: str
    reference: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **params: Any) -> Estimator:
        """Make an estimator of this method."""
        known = self.cls._parameter_names()
        for name in params:
            if name not in known:
                raise InputError(f"{self.cls.__name__} has no option {name!r}; it has {', '.join(known)}.")
        return self.cls(**{**self.options, **params})


METHODS: dict[str, Method] = {
    "auto": Method(
        Auto, "the readings whose assumptions hold on the target, combined",
        "the target is a reweighted, flattened or drifted source", "Leadline",
    ),
    "alsa-g": Method(
        ALSA, "learned anchors in logit space, Gaussian influence",
        "predictions near each other in logit direction are right equally often", "Liu et al. 2025",
    ),
    "alsa-e": Method(
        ALSA, "learned anchors in logit space, exponential influence",
        "predictions near each other in logit direction are right equally often", "Liu et al. 2025",
        {"influence": "exponential"},
    ),
    "ac": Method(
        AverageConfidence, "mean confidence",
        "confidence is calibrated on the target", "Hendrycks & Gimpel 2017",
    ),
    "cbpe": Method(
        CalibratedConfidence,
        "mean confidence, calibrated for each predicted class",
        "calibration, class by class, is the source's",
        "after NannyML",
    ),
    "doc": Method(
        DifferenceOfConfidence, "source accuracy plus the change of mean confidence",
        "the target is miscalibrated by as much as the source", "Guillory et al. 2021",
    ),
    "im": Method(
        ImportanceReweighting, "source accuracy reweighted to the target's confidences",
        "equal confidence means equal accuracy on source and target", "Chen et al. 2021",
    ),
    "atc-mc": Method(
        AverageThresholdedConfidence, "share above the source's confidence threshold",
        "errors are what falls below one fixed confidence", "Garg et al. 2022",
    ),
    "atc-ne": Method(
        AverageThresholdedConfidence, "share below the source's entropy threshold",
        "errors are what rises above one fixed entropy", "Garg et al. 2022", {"score": "entropy"},
    ),
    "cot": Method(
        ConfidenceTransport, "cost of moving the confidences onto the source's labels",
        "the target's classes are as frequent as the source's", "Lu et al. 2023",
    ),
    "cott": Method(
        ThresholdedTransport, "share of rows moved at less than the source's threshold cost",
        "the target's classes are as frequent as the source's", "Lu et al. 2023",
    ),
}  # fmt: skip


def make(name: str, **params: Any) -> Estimator:
    """Make an estimator by the name of its method.

    Examples
    --------
    >>> make("ac").method
    'ac'
    """
    if name == "gnn-evaluator":
        raise InputError(
            "gnn-evaluator needs graphs and the trained network, not logits alone; "
            "use leadline.bench.graphs.evaluator.GNNEvaluator or `leadline bench run citation-graphs`."
        )
    if name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {name!r}.")
    return METHODS[name](**params)
