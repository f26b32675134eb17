"""What every estimator keeps on ordinary data."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np

from leadline.checks.contract import (
    EXACT,
    ROUNDING,
    SOLVERS,
    Check,
    EstimatorLike,
    copy_of,
    fit_copy,
    into,
    is_random,
    learned_state,
    make_sample,
    mean_accuracy,
    require,
    require_by_class,
    require_correctness,
    require_equal,
    require_equal_mean,
    require_range,
    require_same,
    sound_estimate,
    source_sample,
    target_sample,
)
from leadline.estimators import load

CHECKS: dict[str, Check] = {}


# ---------------------------------------------------------------------------------------------------------- parameters
@into(CHECKS)
def constructor_only_stores(estimator: EstimatorLike) -> None:
    """The constructor stores its arguments as they are and learns nothing; copies have equal options."""
    params = estimator.get_params()
    copy = copy_of(estimator)
    for name, value in params.items():
        require(copy.get_params()[name] is value, f"the constructor changed {name}={value!r}")
    learned = ", ".join(learned_state(copy))
    require(not learned, f"the constructor set {learned}; learned state comes from fit")
    # What scikit-learn's clone does, which need not be installed.
    clone: EstimatorLike = type(estimator)(**deepcopy(estimator.get_params(deep=False)))
    require(clone.get_params() == params, "a copy as scikit-learn's clone makes it has other options")
    if hasattr(copy, "set_params"):
        require(copy.set_params(**params) is copy, "set_params must return self")
        require(copy.get_params() == params, "set_params(**get_params()) changes the options")


@into(CHECKS)
def fit_returns_self(estimator: EstimatorLike) -> None:
    """``fit`` returns the estimator, and changes no option."""
    copy = copy_of(estimator)
    params = copy.get_params()
    require(copy.fit(*source_sample()) is copy, "fit must return self")
    require(copy.get_params() == params, "fit changed an option")


# ------------------------------------------------------------------------------------------------------- the estimate
@into(CHECKS)
def estimates_in_range(estimator: EstimatorLike) -> None:
    """Accuracy and interval lie in [0, 1], the interval around the accuracy, wider for a higher confidence level."""
    fitted = fit_copy(estimator)
    for signal in (-3.0, 0.0, 6.0):
        target = make_sample(80, seed=2, signal=signal)[0]
        narrow, wide = (fitted.estimate(target, confidence_level=level) for level in (0.5, 0.99))
        require_range(narrow)
        require_range(wide)
        levels = (narrow.confidence_level, wide.confidence_level)
        require(levels == (0.5, 0.99), f"confidence_level must be as asked for, 0.5 and 0.99; got {levels}")
        require(
            wide.interval[0] <= narrow.interval[0] and narrow.interval[1] <= wide.interval[1],
            f"the interval at 0.99, {wide.interval}, must contain that at 0.5, {narrow.interval}",
        )


@into(CHECKS)
def samples_are_counted(estimator: EstimatorLike) -> None:
    """``n_samples`` is the number of rows, ``method`` a name."""
    target = target_sample()
    estimate = fit_copy(estimator).estimate(target)
    require(estimate.n_samples == len(target), f"n_samples is {estimate.n_samples} for {len(target)} rows")
    require(isinstance(estimate.method, str) and bool(estimate.method), f"method is {estimate.method!r}")


@into(CHECKS)
def correctness_is_per_sample(estimator: EstimatorLike) -> None:
    """``correctness`` has a probability for each row, or is None."""
    require_correctness(fit_copy(estimator).estimate(target_sample()), len(target_sample()))


@into(CHECKS)
def classes_are_counted(estimator: EstimatorLike) -> None:
    """``by_class`` has every class with its count, and its mean is the accuracy where there is ``correctness``."""
    require_by_class(fit_copy(estimator).estimate(target_sample()), target_sample())


@into(CHECKS)
def result_is_json(estimator: EstimatorLike) -> None:
    """``to_dict`` gives what JSON can hold, without NaN or infinity."""
    json.dumps(fit_copy(estimator).estimate(target_sample()).to_dict(), allow_nan=False)


# ------------------------------------------------------------------------------------------------------- side effects
@into(CHECKS)
def inputs_stay_unchanged(estimator: EstimatorLike) -> None:
    """``fit`` and ``estimate`` write nothing into the arrays given, and need not be able to."""
    (logits, labels), target = source_sample(), target_sample()
    fitted = fit_copy(estimator, (logits, labels))
    for what, array, before in zip(("logits", "labels"), (logits, labels), source_sample(), strict=True):
        require(np.array_equal(array, before), f"fit changed its {what}")
    fitted.estimate(target)
    require(np.array_equal(target, target_sample()), "estimate changed its logits")
    for array in (logits, labels, target):
        array.flags.writeable = False
    fit_copy(estimator, (logits, labels)).estimate(target)


@into(CHECKS)
def fits_are_repeatable(estimator: EstimatorLike) -> None:
    """Equal options and data give equal estimates, in a new estimator or the same one, whatever was fitted before."""
    target = target_sample()
    fitted = fit_copy(estimator)
    first = fitted.estimate(target)
    require_same(fit_copy(estimator).estimate(target), first, 0.0, "a second fit")
    fitted.fit(*make_sample(100, 3, seed=5))
    fitted.fit(*source_sample())
    require_same(fitted.estimate(target), first, 0.0, "an earlier fit on other data")


@into(CHECKS)
def global_randomness_is_untouched(estimator: EstimatorLike) -> None:
    """Nothing random comes from, or changes, NumPy's global state."""
    before = np.random.get_state()  # noqa: NPY002 - it is what is looked at
    fit_copy(estimator).estimate(target_sample())
    after = np.random.get_state()  # noqa: NPY002
    same = all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    require(same, "NumPy's global random state changed; use numpy.random.default_rng(seed)")


@into(CHECKS)
def estimates_are_pure(estimator: EstimatorLike) -> None:
    """``estimate`` gives the same answer every time and changes nothing that was learned."""
    fitted = fit_copy(estimator)
    arrays = {name: value.copy() for name, value in learned_state(fitted).items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in learned_state(fitted).items() if name not in arrays}
    first = fitted.estimate(target_sample())
    fitted.estimate(make_sample(40, seed=6)[0])
    require_same(fitted.estimate(target_sample()), first, 0.0, "an earlier estimate")
    after = learned_state(fitted)
    require(set(after) == set(arrays) | set(others), "estimate added or removed learned state")
    changed = [name for name, value in arrays.items() if not np.array_equal(value, after[name])]
    changed += [name for name, value in others.items() if value is not after[name]]
    require(not changed, f"estimate changed {', '.join(changed)}")


@into(CHECKS)
def saved_estimators_load(estimator: EstimatorLike) -> None:
    """A saved estimator loads with equal options and gives the same estimate, bit by bit."""
    fitted = fit_copy(estimator)
    if not hasattr(fitted, "save"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.leadline"
        fitted.save(path)
        own_load = getattr(type(fitted), "load", None)
        loaded = own_load(path) if own_load else load(path, methods={fitted.method: type(fitted)})
    require(loaded.get_params() == fitted.get_params(), "saving and loading changes the options")
    require_same(loaded.estimate(target_sample()), fitted.estimate(target_sample()), 0.0, "saving and loading")


# -------------------------------------------------------------------------------------------------------- invariances
@into(CHECKS)
def target_order_is_irrelevant(estimator: EstimatorLike) -> None:
    """The order of the target's rows changes nothing but the order of ``correctness``."""
    fitted, target = fit_copy(estimator), target_sample()
    order = np.random.default_rng(3).permutation(len(target))
    plain, permuted = fitted.estimate(target), fitted.estimate(target[order])
    require_same(permuted, plain, ROUNDING, "another order of the rows")
    if plain.correctness is not None:
        require_equal(permuted.correctness, plain.correctness[order], ROUNDING, "correctness of the same rows")


@into(CHECKS)
def source_order_is_irrelevant(estimator: EstimatorLike) -> None:
    """The order of the source's rows changes nothing but what is drawn at random."""
    (logits, labels), target = source_sample(), target_sample()
    order = np.random.default_rng(4).permutation(len(logits))
    plain = mean_accuracy(estimator, target, (logits, labels))
    permuted = mean_accuracy(estimator, target, (logits[order], labels[order]))
    require_equal_mean(permuted, plain, is_random(estimator), "another order of the source's rows")


@into(CHECKS)
def class_order_is_irrelevant(estimator: EstimatorLike) -> None:
    """Permuting columns and labels together changes nothing but the order of ``by_class`` and what is drawn."""
    (logits, labels), target = source_sample(), target_sample()
    order = np.array([2, 0, 3, 1])
    source = logits[:, order], order.argsort()[labels]
    plain = mean_accuracy(estimator, target, (logits, labels))
    permuted = mean_accuracy(estimator, target[:, order], source)
    require_equal_mean(permuted, plain, is_random(estimator), "another order of the classes")
    if not is_random(estimator):
        before, after = sound_estimate(estimator, target), sound_estimate(estimator, target[:, order], source)
        for entry, label in zip(after.by_class, order, strict=True):
            require_equal(entry.accuracy, before.by_class[label].accuracy, ROUNDING, f"accuracy of class {label}")


@into(CHECKS)
def blocks_equal_whole(estimator: EstimatorLike) -> None:
    """Rows in blocks of any size and order give what the rows together give."""
    fitted, target = fit_copy(estimator), target_sample()
    if not hasattr(fitted, "estimate_blocks"):
        return
    whole = fitted.estimate(target)
    parts = np.split(target, [1, 8, 60])
    for blocks in ([target], parts, parts[::-1]):
        found = fitted.estimate_blocks(lambda blocks=blocks: iter(blocks))
        same_solver = found.diagnostics.get("solver") == whole.diagnostics.get("solver")
        tolerance = ROUNDING if same_solver else SOLVERS
        require_equal(found.accuracy, whole.accuracy, EXACT if same_solver else SOLVERS, "rows in blocks")
        require_same(found, whole, tolerance, f"cutting the rows into {len(blocks)} blocks")


@into(CHECKS)
def holders_are_irrelevant(estimator: EstimatorLike) -> None:
    """The same numbers in double precision, in another memory layout or in lists give the same estimate."""
    (logits, labels), target = source_sample(), target_sample()
    plain = sound_estimate(estimator, target)
    tolerance = SOLVERS + 1 / len(target)  # rounding may move a row across a threshold
    double = sound_estimate(estimator, target.astype(np.float64), (logits.astype(np.float64), labels.astype(np.int32)))
    require_equal(double.accuracy, plain.accuracy, tolerance, "double precision")
    columns = sound_estimate(estimator, np.asfortranarray(target), (np.asfortranarray(logits), labels))
    require_equal(columns.accuracy, plain.accuracy, tolerance, "column-major arrays")
    listed = fit_copy(estimator, (logits.tolist(), labels.tolist())).estimate(target.tolist())
    require_equal(listed.accuracy, plain.accuracy, tolerance, "lists")
