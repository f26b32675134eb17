"""Whether learned state can be what a fit learned: types, shapes, ranges, and no value that is not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from leadline.data.ranges import is_usable
from leadline.shift.source import SourceProfile

#: The axes of learned arrays: c classes, m rows of the source, k anchors, b bins, d coordinates.
_AXES = {
    "logits": "mc", "labels": "m", "marginal": "c", "anchors_": "kd", "peaks_": "k", "widths_": "k", "offsets_": "c",
    "label_share_": "c", "source_counts_": "bc", "source_correct_": "bc",
}  # fmt: skip


def not_a_number(values: Mapping[str, Any]) -> str | None:
    """Return the name of the first value that is, or holds, NaN (or infinity, in an array); None where none does."""
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            return name
        if isinstance(value, float) and math.isnan(value):
            return name
    return None


def check_state(state: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` that says what is wrong with learned state, where anything is.

    Parameters
    ----------
    state
        Learned attributes by name.
    kinds
        Their declared types by name.
    """
    source, classes, c = state["source_"], state["classes_"], state["n_classes_"]
    _require(_is_int(c) and c >= 2, "n_classes_ is no number of classes")
    named = all(isinstance(name, str) for name in classes) or classes == tuple(range(c))
    _require(len(classes) == len(set(classes)) == c and named, f"classes_ are no names of {c} classes")
    _check_profile(source, c)
    _check_values(state, kinds, {"c": c})
    if "folds_" in kinds:
        _require(state["folds_"] >= 1, "folds_ is not positive")


def _check_profile(source: SourceProfile, c: int) -> None:
    """Check what was learned of the source."""
    values = vars(source)
    _check_values(values, {field.name: field.type for field in fields(SourceProfile)}, {"c": c})
    labels, marginal = source.labels, source.marginal
    _require(len(labels) > 0 and labels.min() >= 0 and labels.max() < c, f"labels are not from 0 to {c - 1}")
    _require(bool(is_usable(source.logits).all()), "logits are too large")
    _require(bool((marginal >= 0).all()) and abs(float(marginal.sum()) - 1.0) < 1e-6, "marginal is no distribution")
    _require(0.0 <= source.accuracy <= 1.0, "accuracy is no fraction")
    _require(0.0 <= source.ranking <= 1.0, "ranking is no fraction")
    _require(source.n_rows >= len(labels), "n_rows is less than the rows there are")
    _require(source.temperature > 0.0, "temperature is not positive")
    _require(source.gaps.shape == (len(source.gap_edges) + 1,), "gaps do not fit gap_edges")
    threshold = source.decision_threshold
    _require(threshold is None or (c == 2 and 0.0 < threshold < 1.0), "decision_threshold is no probability")


def _check_values(values: Mapping[str, Any], kinds: Mapping[str, Any], sizes: dict[str, int]) -> None:
    """Check values against their declared types, and the shapes of arrays against each other."""
    for name, declared in kinds.items():
        value, kind = values[name], str(declared)
        if "Array" in kind:
            numbers = "iu" if kind.startswith("Int") else "f"
            _require(isinstance(value, np.ndarray) and value.dtype.kind in numbers, f"{name} is no array of numbers")
            _require(bool(np.isfinite(value).all()), f"{name} is not finite")
            axes = _AXES.get(name, "?" * value.ndim)
            full = value.size > 0 or name == "gap_edges"  # a small source has one bin, without edges
            _require(value.ndim == len(axes) and full, f"{name} has the shape {value.shape}")
            for axis, size in zip(axes, value.shape, strict=True):
                _require(axis == "?" or sizes.setdefault(axis, size) == size, f"{name} has the shape {value.shape}")
        elif kind.startswith("float") and not (value is None and kind.endswith("None")):
            real = isinstance(value, int | float) and not isinstance(value, bool)
            # The threshold of a source without errors, or without hits, may lie beyond all scores.
            _require(real and (math.isfinite(value) or ("threshold" in name and not math.isnan(value))),
                     f"{name} is no number")  # fmt: skip
        elif kind == "int":
            _require(_is_int(value) and value >= 0, f"{name} is no whole number")
        elif kind == "str":
            _require(isinstance(value, str), f"{name} is no text")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(condition: bool, wrong: str) -> None:
    if not condition:
        raise ValueError(wrong)
