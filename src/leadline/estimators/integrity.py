"""Whether learned state can be what a fit learned: types, shapes, ranges, and no value that is not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from leadline.data.ranges import LARGEST, is_usable
from leadline.estimators.recalibration import NO_BATCHES
from leadline.shift.calibration import TEMPERATURE_RANGE
from leadline.shift.source import SourceProfile

#: What a profile of the source is learned from.
GIVEN = ("logits", "labels", "marginal", "accuracy", "n_rows", "decision_threshold")
#: The axes of learned arrays: c classes, m rows of the source, k anchors, b bins, e edges of g gaps,
#: t labelled targets of which w numbers are kept.
_AXES = {
    "logits": "mc", "labels": "m", "marginal": "c", "anchors_": "kc", "peaks_": "k", "widths_": "k", "offsets_": "c",
    "label_share_": "c", "source_counts_": "bc", "source_correct_": "bc", "gap_edges": "e", "gaps": "g",
    "labelled_batches_": "tw",
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
    require(_is_int(c) and c >= 2, "n_classes_ is no number of classes")
    named = all(isinstance(name, str) for name in classes) or classes == tuple(range(c))
    require(len(classes) == len(set(classes)) == c and named, f"classes_ are no names of {c} classes")
    _check_profile(source, c)
    _check_values(state, kinds, {"c": c})
    if "folds_" in kinds:
        require(1 <= state["folds_"] <= len(state["peaks_"]), "folds_ are no number of fits")
    if "temperature_" in kinds:
        require_temperature(state["temperature_"])
    if "label_share_" in kinds:
        _require_distribution(state["label_share_"], "label_share_")
    if "labelled_batches_" in state:
        _check_batches(state["labelled_batches_"])


def require_temperature(value: float) -> None:
    """Refuse a temperature that no search gives."""
    low, high = TEMPERATURE_RANGE
    require(0.99 * low <= value <= 1.01 * high, "temperature is out of range")


def _require_distribution(shares: Any, name: str) -> None:
    """Refuse what is no distribution over the last axis."""
    fractions = bool((shares >= 0.0).all() and (np.abs(shares.sum(axis=-1) - 1.0) < 1e-6).all())
    require(fractions, f"{name} is no distribution")


def _check_batches(batches: Any) -> None:
    """Check what labels of targets showed."""
    _check_values({"labelled_batches_": batches}, {"labelled_batches_": "Array"}, {"w": NO_BATCHES.shape[1]})
    gaps, variances, shares = batches[:, 0], batches[:, 1], batches[:, 2:]
    _require_distribution(shares, "labelled_batches_")
    require(bool((np.abs(gaps) <= 1.0).all() and (variances > 0.0).all()), "labelled_batches_ are out of range")


def check_rows(given: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` where what a profile of the source is learned from cannot be that, by name."""
    kinds = {field.name: field.type for field in fields(SourceProfile) if field.name in given}
    sizes: dict[str, int] = {}
    _check_values(given, kinds, sizes)
    labels, c, threshold = given["labels"], sizes["c"], given.get("decision_threshold")
    require(c >= 2, "logits have one class")
    require(len(labels) > 0 and labels.min() >= 0 and labels.max() < c, f"labels are not from 0 to {c - 1}")
    require(bool(is_usable(given["logits"]).all()), "logits are too large")
    _require_distribution(given["marginal"], "marginal")
    require(0.0 <= given["accuracy"] <= 1.0, "accuracy is no fraction")
    require(given["n_rows"] >= len(labels), "n_rows is less than the rows there are")
    require(threshold is None or (c == 2 and 0.0 < threshold < 1.0), "decision_threshold is no probability")


def _check_profile(source: SourceProfile, c: int) -> None:
    """Check what was learned of the source."""
    values = vars(source)
    _check_values(values, {field.name: field.type for field in fields(SourceProfile)}, {"c": c})
    check_rows({name: values[name] for name in GIVEN})
    require(0.0 <= source.ranking <= 1.0, "ranking is no fraction")
    require_temperature(source.temperature)
    edges, gaps = source.gap_edges, source.gaps
    require(len(gaps) == len(edges) + 1 and bool((np.abs(gaps) <= 1.0).all()), "gaps do not fit gap_edges")
    require(bool((np.diff(edges) >= 0.0).all()), "gap_edges do not rise")
    require(abs(source.restored_gap) <= 1.0, "restored_gap is no difference of fractions")
    decided = source.decision_threshold is not None
    require(abs(source.bias) <= LARGEST and (decided or not source.bias), "bias is no log-odds")


def _check_values(values: Mapping[str, Any], kinds: Mapping[str, Any], sizes: dict[str, int]) -> None:
    """Check values against their declared types, and the shapes of arrays against each other."""
    for name, declared in kinds.items():
        value, kind = values[name], str(declared)
        if "Array" in kind:
            numbers = "iu" if kind.startswith("Int") else "f"
            require(isinstance(value, np.ndarray) and value.dtype.kind in numbers, f"{name} is no array of numbers")
            require(bool(np.isfinite(value).all()), f"{name} is not finite")
            axes = _AXES.get(name, "?" * value.ndim)
            full = value.size > 0 or name == "gap_edges"  # a small source has one bin, without edges
            require(value.ndim == len(axes) and full, f"{name} has the shape {value.shape}")
            require(value.dtype.itemsize >= 4 and bool(is_usable(value).all()), f"{name} is too large or too coarse")
            for axis, size in zip(axes, value.shape, strict=True):
                require(axis == "?" or sizes.setdefault(axis, size) == size, f"{name} has the shape {value.shape}")
        elif kind.startswith("float") and not (value is None and kind.endswith("None")):
            real = isinstance(value, int | float) and not isinstance(value, bool)
            # The threshold of a source without errors, or without hits, may lie beyond all scores.
            beyond = real and "threshold" in name and not math.isnan(value) and math.isinf(value)
            require(real and (abs(value) <= LARGEST or beyond), f"{name} is no number")
        elif kind == "int":
            require(_is_int(value) and value >= 0, f"{name} is no whole number")
        elif kind == "str":
            require(isinstance(value, str), f"{name} is no text")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def require(condition: bool, wrong: str) -> None:
    """Raise a ``ValueError`` that says what is wrong, unless a condition holds."""
    if not condition:
        raise ValueError(wrong)
