"""Every method passes every check, and every check can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline import METHODS, Estimate, InputError, make
from leadline.checks import CHECKS, Check, CheckFailure, check_estimator
from leadline.data.outputs import FloatArray, IntArray, as_labels, as_logits
from leadline.estimators.base import Estimator, Reduced, State
from leadline.results.estimate import ClassEstimate

VARIANTS: dict[str, dict[str, Any]] = {
    "ac": {"temperature_scaling": False},
    "im": {"weights": "kliep"},
    "cot": {"solver": "exact"},
    "cott": {"solver": "exact"},
    "alsa-g": {"rectify": "single", "init": "random", "n_anchors": 50, "max_epochs": 30},
    "alsa-e": {"learn": ("peaks",), "alpha": 0.95, "backend": "torch", "n_anchors": 50, "max_epochs": 30},
}
#: Defaults but for the length of the training, on which no check depends.
SHORT = {"alsa-g": {"max_epochs": 60}, "alsa-e": {"max_epochs": 60}}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_passes_every_check(method: str, check: Check) -> None:
    check(make(method, **SHORT.get(method, {})))


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("method", SHORT)
def test_trained_in_full_they_pass_every_check(method: str, check: Check) -> None:
    check(make(method))


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("method", VARIANTS)
def test_other_options_pass_every_check(method: str, check: Check) -> None:
    check(make(method, **VARIANTS[method]))


# ------------------------------------------------------------------------------------------------- estimators to break
class Share(Estimator):
    """The source accuracy of each predicted class, smoothed: simple, and keeps the contract."""

    method = "share"
    share_: NDArray[np.float64]

    def __init__(self, *, prior: float = 1.0) -> None:
        self.prior = prior

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        predicted = logits.argmax(axis=1)
        counts = np.bincount(predicted, minlength=self.n_classes_)
        right = np.bincount(predicted, weights=predicted == labels, minlength=self.n_classes_)
        self.share_ = (right + self.prior) / (counts + 2 * self.prior)

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        return Reduced.from_values(logits, self.share_[logits.argmax(axis=1)])


class Plain:
    """The least that keeps the contract, without Leadline's base class."""

    def __init__(self, n_bins: int = 3) -> None:
        self.n_bins = n_bins

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"n_bins": self.n_bins}

    def fit(self, logits: Any, labels: Any) -> Self:
        logits = as_logits(logits)
        self.accuracy_ = float(np.mean(logits.argmax(axis=1) == as_labels(labels, logits)))
        self.n_classes_ = logits.shape[1]
        return self

    def estimate(self, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
        if not hasattr(self, "accuracy_"):
            raise InputError("call fit first.")
        if not 0 < confidence_level < 1:
            raise InputError(f"confidence_level must be between 0 and 1; got {confidence_level}.")
        logits = as_logits(logits, n_classes=self.n_classes_)
        counts = np.bincount(logits.argmax(axis=1), minlength=self.n_classes_)
        return Estimate(
            accuracy=self.accuracy_,
            interval=(0.0, 1.0),
            confidence_level=confidence_level,
            n_samples=len(logits),
            method="plain",
            by_class=tuple(ClassEstimate(i, int(n), self.accuracy_ if n else None) for i, n in enumerate(counts)),
        )


@pytest.mark.parametrize("estimator", [Share(), Share(prior=2), Plain()], ids=["Share", "Share2", "Plain"])
def test_estimators_of_others_pass(estimator: Any) -> None:
    check_estimator(estimator)


class AddsToOption(Share):
    def __init__(self, *, prior: float = 1.0) -> None:
        self.prior = prior + 1


class LearnsInConstructor(Share):
    def __init__(self, *, prior: float = 1.0) -> None:
        super().__init__(prior=prior)
        self.share_ = np.zeros(1)


class OptionWithoutEquals(Share):
    def __init__(self, *, prior: float = 1.0, tag: object = object()) -> None:
        super().__init__(prior=prior)
        self.tag = tag


class ForgetsSelf(Plain):
    def fit(self, logits: Any, labels: Any) -> Any:
        super().fit(logits, labels)


class ChangesOption(Share):
    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(logits, labels)
        self.prior = 7.0


class FittedDifferently(Share):
    """Fits on logits or labels that it changes first."""

    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        raise NotImplementedError

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(*self.change(logits, labels))


class FirstHalfOfSource(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        return logits[: len(logits) // 2 + 1], labels[: len(labels) // 2 + 1]


class WritesIntoLogits(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        logits *= 2
        return logits, labels


class CannotDoWithoutErrors(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        return logits, labels // int(np.any(logits.argmax(axis=1) != labels))


class Inverts(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        predicted = logits.argmax(axis=1)
        return logits, np.where(predicted == labels, (predicted + 1) % logits.shape[1], predicted)


class NeedsAllLabels(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        if len(labels) > 100 and len(np.unique(labels)) < self.n_classes_:
            raise IndexError("no sample of some class")
        return logits, labels


class CannotTie(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        spread = logits.max(axis=1) - logits.min(axis=1)
        if not spread.all():
            raise FloatingPointError("a row without spread")
        return logits, labels


class Overflows(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        if logits.max() > 1000:
            raise OverflowError("exp")
        return logits, labels


class AtMostHundredClasses(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        if self.n_classes_ > 100:
            raise MemoryError("n_classes squared")
        return logits, labels


class NeedsTenRows(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        if len(logits) < 10:
            raise IndexError("tenth row")
        return logits, labels


class SinglePrecisionOnly(FittedDifferently):
    def change(self, logits: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
        return (logits if logits.dtype == np.float32 else -logits), labels


class TellsSingleClassesApart(Share):
    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(logits, labels)
        self.share_[0] = 1.0


class SeededAndTellsApart(TellsSingleClassesApart):
    def __init__(self, *, prior: float = 1.0, seed: int = 0) -> None:
        super().__init__(prior=prior)
        self.seed = seed


class Unseeded(Share):
    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(logits, labels)
        self.share_ *= np.random.default_rng().uniform(0.999999, 1.0)


class RemembersEarlierFits(Share):
    fits = 0

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        super()._fit(logits, labels)
        self.share_ *= 0.9**self.fits
        self.fits += 1


class GlobalRandomness(Share):
    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        np.random.random()  # noqa: NPY002 - the fault to be found
        super()._fit(logits, labels)


class Skips(Share):
    """Keeps the contract in memory but not on disk."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        Share(prior=self.prior).fit(np.eye(4), np.arange(4)).save(path, force=force)


class Reduces(Share):
    """Turns the values of rows into others."""

    change: ClassVar[Callable[[Any, Any], Any]]

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        return Reduced.from_values(logits, type(self).change(self, super().reduce(logits, state).values))


def _reducing(name: str, change: Callable[[Any, Any], Any]) -> Estimator:
    cls: type[Reduces] = type(name, (Reduces,), {"change": change})
    return cls()


def _concluding(name: str, **replace: Callable[[Any], Any]) -> Estimator:
    """Return an estimator whose estimates have some fields replaced."""

    def estimate(self: Share, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
        sound = Share.estimate(self, logits, confidence_level=confidence_level)
        return dataclasses.replace(sound, **{field: value(sound) for field, value in replace.items()})

    cls: type[Share] = type(name, (Share,), {"estimate": estimate})
    return cls()


def _by_class(change: Callable[[ClassEstimate], ClassEstimate]) -> Callable[[Estimate], Any]:
    return lambda estimate: tuple(map(change, estimate.by_class))


def _accept_anything(self: Share, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
    return Share.estimate(self, np.nan_to_num(logits), confidence_level=confidence_level)


def _count_estimates(self: Share, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
    self.share_ = np.minimum(self.share_ * 1.001, 1.0)
    return Share.estimate(self, logits, confidence_level=confidence_level)


def _store_last(self: Any, logits: Any, *, confidence_level: float = 0.9) -> Estimate:
    estimate = Share.estimate(self, logits, confidence_level=confidence_level)
    self.last_ = estimate.accuracy
    return estimate


def _with_estimate(name: str, estimate: Callable[..., Estimate]) -> Estimator:
    cls: type[Share] = type(name, (Share,), {"estimate": estimate})
    return cls()


BROKEN: list[tuple[str, str, Any]] = [
    ("constructor_only_stores", "changed prior=", AddsToOption()),
    ("constructor_only_stores", "set share_", LearnsInConstructor()),
    ("constructor_only_stores", "scikit-learn's clone", OptionWithoutEquals()),
    ("fit_returns_self", "must return self", ForgetsSelf()),
    ("fit_returns_self", "changed an option", ChangesOption()),
    ("estimates_in_range", "accuracy is 1.5", _concluding("High", accuracy=lambda _: 1.5)),
    ("estimates_in_range", "ordered", _concluding("Flipped", interval=lambda e: e.interval[::-1])),
    ("estimates_in_range", "must contain the accuracy", _concluding("Outside", accuracy=lambda _: 0.0)),
    ("estimates_in_range", "as asked for", _concluding("Fixed", confidence_level=lambda _: 0.9)),
    ("estimates_in_range", "must contain that at 0.5", _concluding(
        "Backwards", interval=lambda e: (0.0, 1.0) if e.confidence_level < 0.9 else e.interval)),
    ("samples_are_counted", "n_samples is 151", _concluding("Counts", n_samples=lambda e: e.n_samples + 1)),
    ("samples_are_counted", "method is None", _concluding("Nameless", method=lambda _: None)),
    ("correctness_is_per_sample", "shape", _concluding("Short", correctness=lambda e: e.correctness[1:])),
    ("correctness_is_per_sample", r"in \[0, 1\]", _concluding("Large", correctness=lambda e: e.correctness + 1)),
    ("classes_are_counted", "one entry for each", _concluding("Less", by_class=lambda e: e.by_class[:-1])),
    ("classes_are_counted", "count the rows", _concluding(
        "Doubled", by_class=_by_class(lambda entry: dataclasses.replace(entry, count=2 * entry.count)))),
    ("classes_are_counted", "has accuracy None", _concluding(
        "Silent", by_class=_by_class(lambda entry: dataclasses.replace(entry, accuracy=None)))),
    ("classes_are_counted", "mean of the classes", _concluding(
        "Zero", by_class=_by_class(lambda entry: dataclasses.replace(entry, accuracy=0.0)))),
    ("result_is_json", "not JSON serializable", _concluding("Array", diagnostics=lambda _: {"x": np.ones(2)})),
    ("result_is_json", "Out of range", _concluding("NaN", diagnostics=lambda _: {"x": np.nan})),
    ("target_order_is_irrelevant", "changes the accuracy", _reducing(
        "First", lambda self, values: np.full(len(values), values[0]))),
    ("target_order_is_irrelevant", "correctness of the same rows", _concluding(
        "Sorted", correctness=lambda e: np.sort(e.correctness))),
    ("source_order_is_irrelevant", "source's rows", FirstHalfOfSource()),
    ("class_order_is_irrelevant", "more than 1e-06", TellsSingleClassesApart()),
    ("class_order_is_irrelevant", "more than 0.02", SeededAndTellsApart()),
    ("blocks_equal_whole", "rows in blocks", _reducing(
        "Relative", lambda self, values: (values - values.min()) / (np.ptp(values) or 1.0))),
    ("holders_are_irrelevant", "double precision", SinglePrecisionOnly()),
    ("inputs_stay_unchanged", "fit changed its logits", WritesIntoLogits()),
    ("fits_are_repeatable", "a second fit", Unseeded()),
    ("fits_are_repeatable", "an earlier fit", RemembersEarlierFits()),
    ("global_randomness_is_untouched", "default_rng", GlobalRandomness()),
    ("estimates_are_pure", "an earlier estimate", _with_estimate("Counting", _count_estimates)),
    ("estimates_are_pure", "learned state", _with_estimate("Storing", _store_last)),
    ("saved_estimators_load", "changes the accuracy", Skips()),
    ("tiny_inputs", "IndexError: tenth row", NeedsTenRows()),
    ("classes_never_predicted", "must be None exactly", _concluding(
        "Zeros", by_class=_by_class(lambda entry: dataclasses.replace(entry, accuracy=entry.accuracy or 0.0)))),
    ("classes_absent_from_source", "no sample of some class", NeedsAllLabels()),
    ("source_without_errors_or_hits", "divide by zero", CannotDoWithoutErrors()),
    ("source_without_errors_or_hits", "less than", Inverts()),
    ("ties", "without spread", CannotTie()),
    ("saturated_logits", "OverflowError", Overflows()),
    ("few_and_many_classes", "MemoryError", AtMostHundredClasses()),
    ("wrong_input_is_refused", "NaN: accepted", _with_estimate("Lenient", _accept_anything)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "finding", "estimator"), BROKEN, ids=[type(estimator).__name__ for _, _, estimator in BROKEN]
)
def test_broken_estimators_fail_the_right_check_first(check: str, finding: str, estimator: Any) -> None:
    with pytest.raises(CheckFailure, match=f"^{check}: .*{finding}") as caught:
        check_estimator(estimator)
    assert caught.value.check == check


def test_every_check_can_fail() -> None:
    assert {check for check, _, _ in BROKEN} == set(CHECKS)


def test_checks_leave_the_estimator_as_it_is() -> None:
    estimator = Share(prior=3.0)
    check_estimator(estimator)
    assert vars(estimator) == {"prior": 3.0}
