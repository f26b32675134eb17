"""Outputs of a Hugging Face Trainer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import leadline as ll

LOGITS = np.array([[2.0, -1.0, 0.0], [0.5, 0.7, 0.1], [0.0, 0.1, 3.0]], dtype=np.float32)


def predicted(labels: Any = (0, 1, 1), logits: Any = LOGITS) -> Any:
    return SimpleNamespace(predictions=logits, label_ids=None if labels is None else np.array(labels), metrics={})


def test_the_object_of_a_real_library() -> None:
    from transformers.trainer_utils import PredictionOutput

    outputs = ll.from_transformers(
        PredictionOutput(predictions=LOGITS, label_ids=np.array([0, 1, 1]), metrics={}),
        id2label={0: "no", 1: "maybe", 2: "yes"},
        metadata={"week": [1, 1, 2]},
    )
    np.testing.assert_array_equal(outputs.logits, LOGITS)
    assert outputs.classes == ("no", "maybe", "yes")
    assert outputs.accuracy == pytest.approx(2 / 3)
    assert list(outputs.metadata["week"]) == [1, 1, 2]


def test_hidden_states_after_the_logits_are_left_out() -> None:
    outputs = ll.from_transformers(predicted(logits=(LOGITS, np.zeros((3, 4, 8)))))
    np.testing.assert_array_equal(outputs.logits, LOGITS)


@pytest.mark.parametrize("labels", [None, (0, -100, 1), (-100, -100, -100)])
def test_a_missing_label_means_no_labels(labels: Any) -> None:
    assert ll.from_transformers(predicted(labels)).labels is None


def test_numbers_of_classes_may_be_text_and_in_any_order() -> None:
    assert ll.from_transformers(predicted(), {"2": "c", "0": "a", "1": "b"}).classes == ("a", "b", "c")


@pytest.mark.parametrize(
    ("given", "names", "match"),
    [
        (LOGITS, None, "must be what Trainer.predict returns, .* got ndarray"),
        (predicted(), {0: "a", 1: "b"}, "id2label must name the classes 0 to 2; got the keys '0', '1'"),
        (predicted(logits=LOGITS[:, :, None]), None, "predictions must have shape"),
        (predicted(logits=LOGITS[:, :1]), None, "predictions must have at least 2 classes"),
        (SimpleNamespace(predictions=LOGITS, label_ids=(1, 2)), None, "label_ids must be one array .* tuple of 2"),
        (predicted(labels=(0, 1, 3)), None, "labels must be from 0 to 2"),
    ],
)
def test_wrong_input(given: Any, names: Any, match: str) -> None:
    with pytest.raises(ll.InputError, match=match):
        ll.from_transformers(given, names)
