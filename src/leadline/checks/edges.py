"""What every estimator keeps on data that nobody would call ordinary."""

from __future__ import annotations

import numpy as np

from leadline.checks.contract import (
    Check,
    EstimatorLike,
    copy_of,
    fit_copy,
    into,
    make_sample,
    require,
    require_refused,
    sound_estimate,
    source_sample,
    target_sample,
)

CHECKS: dict[str, Check] = {}


@into(CHECKS)
def classes_never_predicted(estimator: EstimatorLike) -> None:
    """A class that is never predicted, on the source or the target, leaves no gap in the result."""
    logits, labels = source_sample()
    without = logits.copy()
    without[:, 1] = logits.min() - 1
    target = target_sample()
    target[:, 2] = target.min() - 1
    sound_estimate(estimator, target)
    sound_estimate(estimator, target_sample(), (without, labels))


@into(CHECKS)
def classes_absent_from_source(estimator: EstimatorLike) -> None:
    """A class without a source sample may be predicted on the target."""
    logits, labels = source_sample()
    present = labels != 3
    sound_estimate(estimator, target_sample(), (logits[present], labels[present]))


@into(CHECKS)
def source_without_errors_or_hits(estimator: EstimatorLike) -> None:
    """A source that is all right or all wrong is answered, and the one that is right by no less."""
    logits, _ = source_sample()
    right = logits.argmax(axis=1)
    on_right = sound_estimate(estimator, logits, (logits, right))
    on_wrong = sound_estimate(estimator, logits, (logits, (right + 1) % 4))
    require(
        on_right.accuracy >= on_wrong.accuracy,
        f"a source without errors gives {on_right.accuracy}, less than {on_wrong.accuracy} without a hit",
    )


@into(CHECKS)
def tiny_inputs(estimator: EstimatorLike) -> None:
    """A few source rows and a single target row are enough for an answer."""
    for n in (2, 3, 5):
        sound_estimate(estimator, make_sample(1, 3, seed=7)[0], make_sample(n, 3, seed=8))


@into(CHECKS)
def ties(estimator: EstimatorLike) -> None:
    """Rows whose logits are all equal, and rows that are equal to each other, are rows like others."""
    (logits, labels), target = source_sample(), target_sample()
    logits[:40] = logits[:40, :1]
    target[:20] = target[:20, :1]
    target[20:60] = target[20]
    sound_estimate(estimator, target, (logits, labels))
    sound_estimate(estimator, np.repeat(target[60:61], 30, axis=0), (np.repeat(logits[40:46], 9, axis=0), labels[:54]))


@into(CHECKS)
def saturated_logits(estimator: EstimatorLike) -> None:
    """Logits as large as half precision can hold, whose softmax is 0 and 1 to the last bit, are logits like others."""
    logits, labels = source_sample()
    large = np.finfo(np.float16).max
    saturated = (np.clip(logits / np.abs(logits).max(), -1, 1) * large).astype(np.float16)
    sound_estimate(estimator, saturated, (saturated, labels))
    sound_estimate(estimator, np.sign(saturated) * large, (np.sign(saturated) * large, labels))


@into(CHECKS)
def few_and_many_classes(estimator: EstimatorLike) -> None:
    """From 2 to 1,000 classes, with as little as one source row for twenty of them."""
    for c in (2, 3, 10, 100, 1000):
        sound_estimate(estimator, make_sample(40, c, seed=9)[0], make_sample(50, c, seed=10, signal=4.0))


@into(CHECKS)
def wrong_input_is_refused(estimator: EstimatorLike) -> None:
    """Wrong input is an ``InputError``; a refused ``fit`` leaves nothing that could pass for a fitted estimator."""
    logits, labels = make_sample(60)
    nan, infinite = logits.copy(), logits.copy()
    nan[5, 2], infinite[7, 1] = np.nan, np.inf
    bad_logits = {
        "NaN": nan, "infinity": infinite, "no row": logits[:0], "one dimension": logits[0], "one class": logits[:, :1],
        "equal values everywhere": np.ones_like(logits), "text": logits.astype(str),
    }  # fmt: skip
    bad_labels = {
        "labels out of range": labels + 1, "negative labels": labels - 1, "labels of type float": labels / 1.0,
        "labels of type str": labels.astype(str), "too few labels": labels[1:], "labels in two columns": logits[:, :2],
    }  # fmt: skip
    copy = copy_of(estimator)
    require_refused("estimate before fit", copy.estimate, logits)
    for what, value in bad_logits.items():
        require_refused(f"fit on logits with {what}", copy.fit, value, labels[: len(value)])
    for what, value in bad_labels.items():
        require_refused(f"fit on {what}", copy.fit, logits, value)
    require_refused("estimate after a refused fit", copy.estimate, logits)
    fitted = fit_copy(estimator, (logits, labels))
    for what, value in (bad_logits | {"another number of classes": logits[:, :3]}).items():
        require_refused(f"estimate on logits with {what}", fitted.estimate, value)
    for level in (0.0, 1.0, 90.0, np.nan):
        require_refused(f"confidence_level {level}", fitted.estimate, logits, confidence_level=level)
