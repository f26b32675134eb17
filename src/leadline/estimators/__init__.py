"""All estimators, and the table that names them."""

from __future__ import annotations

from leadline.estimators.alsa.model import ALSA
from leadline.estimators.auto import Auto
from leadline.estimators.base import Estimator, Reduced
from leadline.estimators.calibrated import CalibratedConfidence
from leadline.estimators.confidence import (
    AverageConfidence,
    AverageThresholdedConfidence,
    DifferenceOfConfidence,
)
from leadline.estimators.importance import ImportanceReweighting
from leadline.estimators.persistence import load
from leadline.estimators.registry import METHODS, Method, make
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
    "Reduced",
    "ThresholdedTransport",
    "load",
    "make",
]
