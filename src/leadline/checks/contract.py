"""What checks are made of: the table of them, samples to run on, and requirements that name what they find."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError
from leadline.results.estimate import Estimate

EXACT = 1e-9  # the same rows in another order or in blocks: float64 sums
ROUNDING = 1e-6  # the same numbers through single precision
SOLVERS = 1e-4  # the same problem solved in two ways, as ``diagnostics["solver"]`` says
RANDOM = 0.02  # other random draws, if they vary no more than that
N_SEEDS = 8  # whose mean is compared; from three, the variance of the draws is too uncertain to judge by


class EstimatorLike(Protocol):
    """What an estimator must have to be checked."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments, by name."""

    def fit(self, logits: Any, labels: Any) -> Any:
        """Learn from labelled logits, shapes (n, c) and (n,), and return self."""

    def estimate(self, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy on unlabelled logits, shape (n, c)."""


Check = Callable[[EstimatorLike], None]


class CheckFailure(AssertionError):  # noqa: N818 - a failed assertion, not an error of the program
    """An estimator does not keep the contract.

    Attributes
    ----------
    check
        The name of the check, a key of ``CHECKS``.
    finding
        What the estimator did.
    """

    def __init__(self, check: str, finding: str) -> None:
        super().__init__(f"{check}: {finding}")
        self.check = check
        self.finding = finding


def into(table: dict[str, Check]) -> Callable[[Check], Check]:
    """Put a function into a table of checks, and give what it finds the name of the check."""

    def put(function: Check) -> Check:
        name = function.__name__

        @wraps(function)
        def run(estimator: EstimatorLike) -> None:
            try:
                function(estimator)
            except AssertionError as finding:
                raise CheckFailure(name, str(finding)) from finding
            except Exception as error:  # other people's code may fail in any way
                raise CheckFailure(name, f"raised {type(error).__name__}: {error}") from error

        table[name] = run
        return run

    return put


def require(holds: bool, finding: str) -> None:
    """Require a condition, and say what was found where it does not hold."""
    if not holds:
        raise AssertionError(finding)


def require_equal(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Require numbers to agree; None agrees with None only."""
    if found is None or expected is None:
        require(found is None and expected is None, f"{what}: {found} and {expected}")
        return
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    require(found.shape == expected.shape, f"{what}: shapes {found.shape} and {expected.shape}")
    apart = float(np.abs(found - expected).max())
    require(apart <= tolerance, f"{what}: {apart:.3g} apart, more than {tolerance:g}")


def require_same(found: Estimate, expected: Estimate, tolerance: float, what: str) -> None:
    """Require two estimates to agree in all that they say about the rows together."""
    require_equal(found.accuracy, expected.accuracy, tolerance, f"{what} changes the accuracy")
    require_equal(found.interval, expected.interval, tolerance, f"{what} changes the interval")
    require(found.n_samples == expected.n_samples, f"{what} changes n_samples")
    counts = [[entry.count for entry in estimate.by_class] for estimate in (found, expected)]
    require(counts[0] == counts[1], f"{what} changes the counts by class")
    for one, other in zip(found.by_class, expected.by_class, strict=True):
        require_equal(one.accuracy, other.accuracy, tolerance, f"{what} changes the accuracy of class {one.label}")


def make_sample(n: int, c: int = 4, *, seed: int = 0, signal: float = 1.5) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return logits (n, c) of a fair classifier and labels (n,)."""
    rng = np.random.default_rng([seed, n, c])
    labels = rng.integers(c, size=n)
    logits = rng.normal(size=(n, c)).astype(np.float32)
    logits[np.arange(n), labels] += np.float32(signal)
    return logits, labels


def source_sample() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return logits (240, 4) and labels (240,) to fit on."""
    return make_sample(240)


def target_sample() -> NDArray[Any]:
    """Return logits (150, 4) to estimate on, of a less accurate classifier than the source's."""
    return make_sample(150, seed=1, signal=1.0)[0]


def copy_of(estimator: EstimatorLike) -> Any:
    """Return an unfitted copy."""
    return type(estimator)(**estimator.get_params())


def fit_copy(estimator: EstimatorLike, source: tuple[Any, Any] | None = None) -> Any:
    """Return a fitted copy."""
    copy = copy_of(estimator)
    copy.fit(*(source or source_sample()))
    return copy


def is_random(estimator: EstimatorLike) -> bool:
    """Say whether an estimator draws at random."""
    return "seed" in estimator.get_params()


def learned_state(estimator: Any) -> dict[str, Any]:
    """Return the learned state by name."""
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("_")}


def require_range(estimate: Estimate) -> None:
    """Require accuracy and interval to be in [0, 1], one within the other."""
    low, high = estimate.interval
    require(0 <= estimate.accuracy <= 1, f"the accuracy is {estimate.accuracy}; it must be in [0, 1]")
    require(0 <= low <= high <= 1, f"the interval is ({low}, {high}); it must be ordered and in [0, 1]")
    require(
        low <= estimate.accuracy <= high, f"the interval ({low}, {high}) must contain the accuracy {estimate.accuracy}"
    )


def require_correctness(estimate: Estimate, n: int) -> None:
    """Require a probability for each of n rows, or None."""
    values = estimate.correctness
    if values is None:
        return
    require(np.shape(values) == (n,), f"correctness must have shape ({n},) or be None; got {np.shape(values)}")
    require(bool(np.all((values >= 0) & (values <= 1))), "correctness must be in [0, 1]")


def require_by_class(estimate: Estimate, logits: NDArray[Any]) -> None:
    """Require every class to be there, counted right, with an accuracy where it was predicted."""
    entries, c = estimate.by_class, logits.shape[1]
    require(
        [entry.label for entry in entries] == list(range(c)), f"by_class must have one entry for each of {c} classes"
    )
    counts = np.array([entry.count for entry in entries])
    expected = np.bincount(logits.argmax(axis=1), minlength=c)
    require(bool(np.all(counts == expected)), "by_class must count the rows by predicted class")
    for entry in entries:
        require(
            (entry.accuracy is None) == (entry.count == 0),
            f"class {entry.label} was predicted {entry.count} times and has accuracy {entry.accuracy}; "
            "it must be None exactly where the class was never predicted",
        )
        require(entry.accuracy is None or 0 <= entry.accuracy <= 1, f"class {entry.label} has {entry.accuracy}")
    if estimate.correctness is not None:
        mean = sum(entry.count * (entry.accuracy or 0.0) for entry in entries) / counts.sum()
        require_equal(mean, estimate.accuracy, ROUNDING, "mean of the classes' accuracies and the accuracy")


def require_sound(estimate: Estimate, logits: NDArray[Any]) -> None:
    """Require all that a single estimate must keep."""
    require_range(estimate)
    require(estimate.n_samples == len(logits), f"n_samples is {estimate.n_samples} for {len(logits)} rows")
    require_correctness(estimate, len(logits))
    require_by_class(estimate, logits)
    json.dumps(estimate.to_dict(), allow_nan=False)


def sound_estimate(estimator: EstimatorLike, logits: NDArray[Any], source: tuple[Any, Any] | None = None) -> Estimate:
    """Fit a copy, estimate, and require the estimate to be sound."""
    estimate: Estimate = fit_copy(estimator, source).estimate(logits)
    require_sound(estimate, logits)
    return estimate


def require_refused(what: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Require a call to raise an ``InputError`` with something to read."""
    try:
        call(*args, **kwargs)
    except InputError as error:
        require(bool(str(error)), f"{what}: InputError without a message")
    except Exception as error:
        raise AssertionError(f"{what}: raised {type(error).__name__}, not InputError: {error}") from error
    else:
        raise AssertionError(f"{what}: accepted; it must be an InputError")


def mean_accuracy(estimator: EstimatorLike, logits: NDArray[Any], source: tuple[Any, Any]) -> tuple[float, float]:
    """Return the estimated accuracy and the variance of it that is due to the draws, both from a few seeds."""
    if not is_random(estimator):
        return sound_estimate(estimator, logits, source).accuracy, 0.0
    seeded = [type(estimator)(**(estimator.get_params() | {"seed": seed})) for seed in range(N_SEEDS)]
    found = [sound_estimate(one, logits, source).accuracy for one in seeded]
    return float(np.mean(found)), float(np.var(found, ddof=1)) / N_SEEDS


def require_equal_mean(found: tuple[float, float], expected: tuple[float, float], random: bool, what: str) -> None:
    """Require two results of ``mean_accuracy`` to agree but for the draws: three standard errors at the most."""
    tolerance = max(RANDOM, 3 * float(np.sqrt(found[1] + expected[1]))) if random else ROUNDING
    require_equal(found[0], expected[0], tolerance, what)
