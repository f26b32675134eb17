"""Leadline tells you how accurate a classifier is on data that nobody has labelled.

>>> import leadline as ll
>>> sorted(ll.METHODS)[:3]
['ac', 'alsa-e', 'alsa-g']
"""

from __future__ import annotations

from importlib import import_module

from leadline.version import __version__

TYPE_CHECKING = False  # as type checkers know it; to import `typing` takes longer than all the rest of this
if TYPE_CHECKING:
    from typing import Any

    from leadline.comparison import compare
    from leadline.data.columns import Columns
    from leadline.data.files import read_outputs, write_outputs
    from leadline.data.outputs import Outputs
    from leadline.engines.accumulator import Accumulator
    from leadline.engines.arrow import estimate_files
    from leadline.engines.table import Table
    from leadline.errors import InputError, PluginWarning
    from leadline.estimators import (
        ALSA,
        METHODS,
        Auto,
        AverageConfidence,
        AverageThresholdedConfidence,
        CalibratedConfidence,
        ConfidenceTransport,
        DifferenceOfConfidence,
        Estimator,
        ImportanceReweighting,
        Method,
        Reduced,
        ThresholdedTransport,
        load,
        make,
    )
    from leadline.estimators.alsa.band import band_width, band_width_bound
    from leadline.integrations.onnx import from_onnx
    from leadline.integrations.payloads import read_payloads
    from leadline.integrations.sklearn import from_sklearn
    from leadline.integrations.torch import from_torch
    from leadline.integrations.transformers import from_transformers
    from leadline.labels.evaluation import estimate_with_labels, estimate_with_labels_by
    from leadline.labels.next_target import recalibrate_with_labels
    from leadline.labels.plan import LabelPlan, likely_errors, plan_labels
    from leadline.monitor.adding import Added
    from leadline.monitor.history import History, WindowEstimate
    from leadline.monitor.labelling import LabelsAdded
    from leadline.monitor.monitor import Monitor
    from leadline.monitor.notifications.channels import Channel
    from leadline.monitor.notifications.outbox import Delivered, Delivery
    from leadline.monitor.records import Alarm, AlarmState, Point, Realised, Series, TrackRecord, Watched, Window
    from leadline.monitor.upkeep import Pruned
    from leadline.results.comparison import Comparison, ComparisonRow
    from leadline.results.estimate import ClassEstimate, Estimate
    from leadline.results.estimates import Estimates, LeftOut, Segment
    from leadline.results.performance import Performance
    from leadline.results.shift import Shift, ShiftKind
    from leadline.shift.bounds import LowerBound, lower_bound

_ESTIMATORS = "leadline.estimators"
_HOME = {
    "ALSA": _ESTIMATORS,
    "Accumulator": "leadline.engines.accumulator",
    "Added": "leadline.monitor.adding",
    "Alarm": "leadline.monitor.records",
    "AlarmState": "leadline.monitor.records",
    "Auto": _ESTIMATORS,
    "AverageConfidence": _ESTIMATORS,
    "AverageThresholdedConfidence": _ESTIMATORS,
    "CalibratedConfidence": _ESTIMATORS,
    "Channel": "leadline.monitor.notifications.channels",
    "ClassEstimate": "leadline.results.estimate",
    "Columns": "leadline.data.columns",
    "Comparison": "leadline.results.comparison",
    "ComparisonRow": "leadline.results.comparison",
    "ConfidenceTransport": _ESTIMATORS,
    "Delivered": "leadline.monitor.notifications.outbox",
    "Delivery": "leadline.monitor.notifications.outbox",
    "DifferenceOfConfidence": _ESTIMATORS,
    "Estimate": "leadline.results.estimate",
    "Estimates": "leadline.results.estimates",
    "Estimator": _ESTIMATORS,
    "History": "leadline.monitor.history",
    "ImportanceReweighting": _ESTIMATORS,
    "InputError": "leadline.errors",
    "LabelPlan": "leadline.labels.plan",
    "LabelsAdded": "leadline.monitor.labelling",
    "LeftOut": "leadline.results.estimates",
    "LowerBound": "leadline.shift.bounds",
    "METHODS": _ESTIMATORS,
    "Method": _ESTIMATORS,
    "Monitor": "leadline.monitor.monitor",
    "Outputs": "leadline.data.outputs",
    "Performance": "leadline.results.performance",
    "PluginWarning": "leadline.errors",
    "Point": "leadline.monitor.records",
    "Pruned": "leadline.monitor.upkeep",
    "Realised": "leadline.monitor.records",
    "Reduced": _ESTIMATORS,
    "Segment": "leadline.results.estimates",
    "Series": "leadline.monitor.records",
    "Shift": "leadline.results.shift",
    "ShiftKind": "leadline.results.shift",
    "Table": "leadline.engines.table",
    "ThresholdedTransport": _ESTIMATORS,
    "TrackRecord": "leadline.monitor.records",
    "Watched": "leadline.monitor.records",
    "Window": "leadline.monitor.records",
    "WindowEstimate": "leadline.monitor.history",
    "band_width": "leadline.estimators.alsa.band",
    "band_width_bound": "leadline.estimators.alsa.band",
    "compare": "leadline.comparison",
    "estimate_files": "leadline.engines.arrow",
    "estimate_with_labels": "leadline.labels.evaluation",
    "estimate_with_labels_by": "leadline.labels.evaluation",
    "from_onnx": "leadline.integrations.onnx",
    "from_sklearn": "leadline.integrations.sklearn",
    "from_torch": "leadline.integrations.torch",
    "from_transformers": "leadline.integrations.transformers",
    "likely_errors": "leadline.labels.plan",
    "load": _ESTIMATORS,
    "lower_bound": "leadline.shift.bounds",
    "make": _ESTIMATORS,
    "plan_labels": "leadline.labels.plan",
    "read_outputs": "leadline.data.files",
    "read_payloads": "leadline.integrations.payloads",
    "recalibrate_with_labels": "leadline.labels.next_target",
    "write_outputs": "leadline.data.files",
}

__all__ = [
    "ALSA",
    "METHODS",
    "Accumulator",
    "Added",
    "Alarm",
    "AlarmState",
    "Auto",
    "AverageConfidence",
    "AverageThresholdedConfidence",
    "CalibratedConfidence",
    "Channel",
    "ClassEstimate",
    "Columns",
    "Comparison",
    "ComparisonRow",
    "ConfidenceTransport",
    "Delivered",
    "Delivery",
    "DifferenceOfConfidence",
    "Estimate",
    "Estimates",
    "Estimator",
    "History",
    "ImportanceReweighting",
    "InputError",
    "LabelPlan",
    "LabelsAdded",
    "LeftOut",
    "LowerBound",
    "Method",
    "Monitor",
    "Outputs",
    "Performance",
    "PluginWarning",
    "Point",
    "Pruned",
    "Realised",
    "Reduced",
    "Segment",
    "Series",
    "Shift",
    "ShiftKind",
    "Table",
    "ThresholdedTransport",
    "TrackRecord",
    "Watched",
    "Window",
    "WindowEstimate",
    "__version__",
    "band_width",
    "band_width_bound",
    "compare",
    "estimate_files",
    "estimate_with_labels",
    "estimate_with_labels_by",
    "from_onnx",
    "from_sklearn",
    "from_torch",
    "from_transformers",
    "likely_errors",
    "load",
    "lower_bound",
    "make",
    "plan_labels",
    "read_outputs",
    "read_payloads",
    "recalibrate_with_labels",
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
