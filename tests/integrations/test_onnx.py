"""Outputs of real ONNX Runtime sessions, with models built by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import leadline as ll
from served_models import linear_onnx

WEIGHTS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(25, 4))
LOGITS = ROWS.astype(np.float32) @ WEIGHTS
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def session(*kinds: str, **options: Any) -> Any:
    """Return a session of the linear model with these weights."""
    return onnxruntime.InferenceSession(linear_onnx(WEIGHTS, *kinds, **options), providers=["CPUExecutionProvider"])


def test_logits_in_batches() -> None:
    labels = np.arange(25) % 3
    outputs = ll.from_onnx(session("label", "logits"), ROWS, labels, ["a", "b", "c"], batch_size=7)
    np.testing.assert_allclose(outputs.logits, LOGITS, rtol=1e-5, atol=1e-6)
    assert outputs.accuracy == pytest.approx(np.mean(LOGITS.argmax(axis=1) == labels))
    assert outputs.classes == ("a", "b", "c")


def test_probabilities_are_said() -> None:
    outputs = ll.from_onnx(session("probabilities"), {"x": ROWS}, kind="probabilities", metadata={"day": np.arange(25)})
    np.testing.assert_allclose(np.exp(outputs.logits), PROBABILITIES, rtol=1e-4)
    assert list(outputs.metadata) == ["day"]


def test_maps_bring_probabilities_and_names() -> None:
    names = ["lion", "seal", "wolf"]
    labels = np.array(names)[np.arange(25) % 3]
    made = session("label", "maps", classlabels_strings=names)
    outputs = ll.from_onnx(made, ROWS, labels, batch_size=10)
    assert outputs.classes == tuple(names)
    np.testing.assert_allclose(np.exp(outputs.logits), PROBABILITIES, rtol=1e-4)
    np.testing.assert_array_equal(outputs.labels, np.arange(25) % 3)
    turned = ll.from_onnx(made, ROWS, labels, ["wolf", "lion", "seal"])
    np.testing.assert_allclose(turned.logits, outputs.logits[:, [2, 0, 1]])
    assert turned.accuracy == outputs.accuracy


def test_keys_that_are_numbers_are_no_places() -> None:
    outputs = ll.from_onnx(session("maps", classlabels_int64s=[1, 2, 3]), ROWS, np.arange(25) % 3 + 1)
    assert outputs.classes == ("1", "2", "3")
    np.testing.assert_array_equal(outputs.labels, np.arange(25) % 3)


def test_a_fixed_number_of_rows() -> None:
    outputs = ll.from_onnx(session("logits", rows=5), ROWS)
    np.testing.assert_allclose(outputs.logits, LOGITS, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("made", "inputs", "options", "match"),
    [
        (object(), ROWS, {}, "session must be an onnxruntime.InferenceSession; got object"),
        (session("logits", "probabilities"), ROWS, {}, "output must be named .* 'logits', 'probabilities'"),
        (session("label"), ROWS, {}, "output must be named"),
        (session("logits"), ROWS, {"output": "label"}, "got 'label', which is not there"),
        (session("logits"), ROWS[:, :2], {}, "inputs must be what the session takes; got shapes"),
        (session("logits"), {"y": ROWS}, {}, "inputs must have the names 'x'; got 'y'"),
        (session("logits"), ROWS[:0], {}, "the same number of rows, at least one"),
        (session("logits"), ROWS, {"kind": "odds"}, "kind must be one of .* got 'odds'"),
        (session("logits"), ROWS, {"kind": "probabilities"}, "probabilities must be from 0 to 1"),
        (session("logits"), ROWS, {"batch_size": 0}, "batch_size must be at least 1; got 0"),
        (session("maps", classlabels_int64s=[1, 2, 3]), ROWS, {"labels": [0] * 25}, "got 0 at row 0"),
        (session("maps", classlabels_int64s=[1, 2, 3]), ROWS, {"classes": ["0", "1", "2"]}, "classes must be those of"),
    ],
)
def test_wrong_input(made: Any, inputs: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ll.InputError, match=match) as caught:
        ll.from_onnx(made, inputs, **options)
    assert "\n" not in str(caught.value)
