"""The labelled source: from what ``fit`` is given to what judging targets needs of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.data.decisions import to_decision
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.estimators.samples import random_order
from leadline.shift.source import SourceProfile, sample_size


def learn_profile(source: Outputs) -> SourceProfile:
    """Return what judging targets needs of labelled outputs.

    A bounded sample of the rows stays: in random order, but the same for any order of its rows and of its classes.
    """
    logits, labels = to_decision(source.logits, source.threshold), source.labels
    assert labels is not None
    kept = random_order(logits, labels)[: sample_size(source.n_classes)]
    return SourceProfile.learn(
        logits[kept].astype(np.float32),
        labels[kept],
        marginal=np.bincount(labels, minlength=source.n_classes) / len(labels),
        accuracy=float(np.mean(logits.argmax(axis=1) == labels)),
        n_rows=len(logits),
        decision_threshold=source.threshold,
        whole=(logits, labels),
    )


def labelled(logits: Any, labels: Any) -> Outputs:
    """Return logits and labels, or labelled outputs, as labelled outputs."""
    if isinstance(logits, Outputs):
        if labels is not None:
            raise InputError("labels must be those of the outputs; give outputs alone, or logits and labels.")
        if logits.labels is None:
            raise InputError("outputs must have labels to fit on; got logits only.")
        return logits
    if labels is None:
        raise InputError("labels must be given to fit on logits: the index of the true class of each row.")
    return Outputs(logits, labels)
