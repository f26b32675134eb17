"""Leadline tells you how accurate a classifier is on data that nobody has labelled.

>>> import leadline as ll
>>> sorted(ll.METHODS)[:3]
['ac', 'alsa-e', 'alsa-g']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported now, as a function of the same name as its module must be bound after the module has been imported.
from leadline.compare import compare
from leadline.version import __version__

if TYPE_CHECKING:
    from leadline.band import band_width, band_width_bound
    from leadline.bounds import lower_bound
    from leadline.compare import Comparison
    from leadline.engines.accumulator import Accumulator
    from leadline.errors import InputError
    from leadline.estimate import Estimate
    from leadline.estimators import (
        ALSA,
        METHODS,
        Auto,
        AverageConfidence,
        AverageThresholdedConfidence,
        ConfidenceTransport,
        DifferenceOfConfidence,
        Estimator,
        ImportanceReweighting,
        ThresholdedTransport,
        load,
        make,
    )
    from leadline.files import read_outputs, write_outputs
    from leadline.outputs import Outputs
    from leadline.performance import Performance

_ESTIMATORS = "leadline.estimators"
_HOME = {
    "ALSA": _ESTIMATORS,
    "METHODS": _ESTIMATORS,
    "Accumulator": "leadline.engines.accumulator",
    "Auto": _ESTIMATORS,
    "AverageConfidence": _ESTIMATORS,
    "AverageThresholdedConfidence": _ESTIMATORS,
    "Comparison": "leadline.compare",
    "ConfidenceTransport": _ESTIMATORS,
    "DifferenceOfConfidence": _ESTIMATORS,
    "Estimate": "leadline.estimate",
    "Estimator": _ESTIMATORS,
    "ImportanceReweighting": _ESTIMATORS,
    "InputError": "leadline.errors",
    "Outputs": "leadline.outputs",
    "Performance": "leadline.performance",
    "ThresholdedTransport": _ESTIMATORS,
    "band_width": "leadline.band",
    "band_width_bound": "leadline.band",
    "load": _ESTIMATORS,
    "lower_bound": "leadline.bounds",
    "make": _ESTIMATORS,
    "read_outputs": "leadline.files",
    "write_outputs": "leadline.files",
}

__all__ = [
    "ALSA",
    "METHODS",
    "Accumulator",
    "Auto",
    "AverageConfidence",
    "AverageThresholdedConfidence",
    "Comparison",
    "ConfidenceTransport",
    "DifferenceOfConfidence",
    "Estimate",
    "Estimator",
    "ImportanceReweighting",
    "InputError",
    "Outputs",
    "Performance",
    "ThresholdedTransport",
    "__version__",
    "band_width",
    "band_width_bound",
    "compare",
    "load",
    "lower_bound",
    "make",
    "read_outputs",
    "write_outputs",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
