"""The softmax methods against plain references, their invariances, the traps, and what real data says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax

from leadline import ImportanceReweighting, InputError, make
from leadline.data.outputs import Outputs

MakeOutputs = Callable[..., Outputs]
Data = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]

SOFTMAX = ("ac", "doc", "im", "atc-mc", "atc-ne", "cot", "cott")


def draw(seed: int = 0, n: int = 400, m: int = 300, c: int = 5) -> Data:
    """Return source logits and labels, and logits of a target with a weaker signal, in double precision."""
    rng = np.random.default_rng(seed)
    labels, of_target = rng.integers(c, size=n), rng.integers(c, size=m)
    return 2 * np.eye(c)[labels] + rng.normal(size=(n, c)), labels, np.eye(c)[of_target] + rng.normal(size=(m, c))


@pytest.fixture(scope="module")
def data() -> Data:
    return draw()


def fitted(method: str, data: Data, **params: Any) -> Any:
    return make(method, **params).fit(data[0], data[1])


# ---------------------------------------------------------------------------------------------------- plain references
@pytest.mark.parametrize("scaling", [True, False])
def test_average_confidence(data: Data, scaling: bool) -> None:
    model = fitted("ac", data, temperature_scaling=scaling)
    confidence = softmax(data[2] / model.temperature_, axis=1).max(axis=1)
    estimate = model.estimate(data[2])
    assert estimate.accuracy == pytest.approx(confidence.mean(), abs=1e-12)
    np.testing.assert_allclose(estimate.correctness, confidence, atol=1e-12)


@pytest.mark.parametrize("scaling", [True, False])
def test_difference_of_confidence(data: Data, scaling: bool) -> None:
    model = fitted("doc", data, temperature_scaling=scaling)
    source_logits, labels, target = data
    source = softmax(source_logits / model.temperature_, axis=1)
    drop = source.max(axis=1).mean() - softmax(target / model.temperature_, axis=1).max(axis=1).mean()
    expected = np.mean(source_logits.argmax(axis=1) == labels) - drop
    assert model.estimate(target).accuracy == pytest.approx(expected, abs=1e-12)
    assert model.estimate(source_logits).accuracy == pytest.approx(model.source_accuracy_, abs=1e-12)


@pytest.mark.parametrize("method", ["atc-mc", "atc-ne"])
@pytest.mark.parametrize("scaling", [True, False])
def test_average_thresholded_confidence(data: Data, method: str, scaling: bool) -> None:
    model = fitted(method, data, temperature_scaling=scaling)
    source_logits, labels, target = data

    def scores(logits: NDArray[np.float64]) -> list[float]:
        rows = softmax(logits / model.temperature_, axis=1)
        return [max(p) if method == "atc-mc" else sum(p * np.log(p)) for p in rows]

    errors = sum(np.argmax(z) != y for z, y in zip(source_logits, labels, strict=True))
    of_source = scores(source_logits)
    threshold = next(t for t in of_source if sum(score < t for score in of_source) == errors)
    expected = np.mean([score >= threshold for score in scores(target)])
    assert model.estimate(target).accuracy == pytest.approx(expected, abs=1e-12)
    assert model.estimate(source_logits).accuracy == pytest.approx(model.source_accuracy_, abs=1e-12)


def test_importance_reweighting(data: Data) -> None:
    """Weight of a source row: target share over source share of its bin; estimate: weighted source accuracy."""
    model = fitted("im", data, temperature_scaling=False)
    source_logits, labels, target = data
    edges = np.linspace(0, 1, 11)
    of_source, of_target = (softmax(z, axis=1).max(axis=1) for z in (source_logits, target))
    source_share = np.histogram(of_source, edges)[0] / len(of_source)
    target_share = np.histogram(of_target, edges)[0] / len(of_target)
    assert np.all((source_share > 0) | (target_share == 0)), "the reference knows nothing of empty bins"
    bins = np.digitize(of_source, edges) - 1
    weights = target_share[bins] / source_share[bins]
    expected = np.mean(weights * (source_logits.argmax(axis=1) == labels))
    assert model.estimate(target).accuracy == pytest.approx(expected, abs=1e-12)
    assert model.estimate(source_logits).accuracy == pytest.approx(model.source_accuracy_, abs=1e-12)
    published = fitted("im", data, temperature_scaling=False, weights="renormalised")
    assert published.estimate(target).accuracy == pytest.approx(expected, abs=1e-12)


def test_kliep_weights_match_the_moments_of_the_target(data: Data) -> None:
    """At the maximum, the weighted source has the target's share of every bin and of every predicted class."""
    model = ImportanceReweighting(weights="kliep").fit(data[0], data[1])
    total = model.reduce(data[2], {})
    mass = model._kliep_weights(total) * model.source_counts_
    mass /= mass.sum()
    np.testing.assert_allclose(mass.sum(axis=1), total.sums["bins"] / len(data[2]), atol=2e-3)
    np.testing.assert_allclose(mass.sum(axis=0), total.sums["count"] / len(data[2]), atol=2e-3)
    accuracy = np.divide(model.source_correct_, model.source_counts_, where=model.source_counts_ > 0, out=mass * 0)
    assert model.estimate(data[2]).accuracy == pytest.approx((mass * accuracy).sum(), abs=1e-9)
    assert model.estimate(data[0]).accuracy == pytest.approx(model.source_accuracy_, abs=2e-3)


def test_kliep_follows_predicted_classes_where_bins_cannot() -> None:
    """Classes of equal confidence and unequal accuracy: only weights that see the class follow a label shift."""
    rng = np.random.default_rng(0)
    predicted = rng.integers(2, size=4000)
    logits = np.where(np.arange(2) == predicted[:, None], 1.0, 0.0) + 1e-3 * rng.normal(size=(4000, 2))
    labels = np.where(rng.random(4000) < np.where(predicted == 0, 0.9, 0.5), predicted, 1 - predicted)
    target = logits[predicted == 1]
    truth = np.mean(labels[predicted == 1] == 1)
    options: dict[str, Any] = {"temperature_scaling": False}
    assert make("im", weights="kliep", **options).fit(logits, labels).estimate(target).accuracy == pytest.approx(
        truth, abs=5e-3
    )
    assert make("im", **options).fit(logits, labels).estimate(target).accuracy > truth + 0.15


# --------------------------------------------------------------------------------------------------------- invariances
@pytest.mark.parametrize("method", SOFTMAX)
def test_softmax_methods_ignore_a_constant_per_row(method: str, data: Data) -> None:
    model = fitted(method, data)
    before = model.estimate(data[2]).accuracy

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 10_000), size=st.floats(0.01, 100))
    def unchanged(seed: int, size: float) -> None:
        constants = size * np.random.default_rng(seed).normal(size=(len(data[2]), 1))
        assert model.estimate(data[2] + constants).accuracy == pytest.approx(before, abs=1e-9)

    unchanged()


@pytest.mark.parametrize("method", ["alsa-g", "alsa-e"])
def test_the_papers_cosine_ignores_the_length_of_a_row(method: str, data: Data) -> None:
    model = fitted(method, data, n_anchors=100, max_epochs=20, geometry="cosine")
    before = model.estimate(data[2])

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 10_000), spread=st.floats(0.01, 5))
    def unchanged(seed: int, spread: float) -> None:
        factors = np.exp(spread * np.random.default_rng(seed).normal(size=(len(data[2]), 1)))
        scaled = model.estimate(data[2] * factors)
        # A row at the very threshold may fall on either side; all others agree to single precision.
        assert np.sum(np.abs(scaled.correctness - before.correctness) > 1e-4) <= 1
        assert scaled.accuracy == pytest.approx(before.accuracy, abs=1e-4 + 1 / len(data[2]))

    unchanged()


def test_neither_has_the_invariance_of_the_other(data: Data) -> None:
    for method in SOFTMAX:
        model = fitted(method, data)
        assert abs(model.estimate(data[2] / 3).accuracy - model.estimate(data[2]).accuracy) > 0.01, method
    alsa = fitted("alsa-g", data, n_anchors=100, max_epochs=20, geometry="cosine")
    assert abs(alsa.estimate(data[2] + 3).accuracy - alsa.estimate(data[2]).accuracy) > 0.01


# --------------------------------------------------------------------------------------------------------------- traps
@pytest.mark.parametrize("method", ["atc-mc", "atc-ne", "cott"])
def test_a_source_without_errors_or_without_hits(method: str, data: Data) -> None:
    """Thresholds lie below the lowest score or above the highest: the source itself is all right, or all wrong."""
    logits = data[0]
    right = logits.argmax(axis=1)
    for labels, truth in ((right, 1.0), ((right + 1) % 5, 0.0)):
        model = make(method, temperature_scaling=False).fit(logits, labels)
        assert model.estimate(logits).accuracy == pytest.approx(truth, abs=1e-12 if method != "cott" else 0.02)


@pytest.mark.parametrize("method", ["atc-mc", "atc-ne"])
def test_saturated_confidences_are_told_apart(method: str) -> None:
    """Softmax is 1 to the last bit in every row, but the two rows with the smallest margins are the errors."""
    margins = np.arange(40.0, 240.0, 20.0)
    logits = np.column_stack([margins, np.zeros(10)])
    assert np.all(softmax(logits, axis=1).max(axis=1) == 1.0)
    labels = (margins < 80).astype(np.int64)
    model = make(method, temperature_scaling=False).fit(logits, labels)
    estimate = model.estimate(logits)
    assert estimate.accuracy == pytest.approx(0.8)
    np.testing.assert_array_equal(estimate.correctness, 1.0 - labels)


def test_thresholds_among_ties() -> None:
    """With ties no threshold splits off exactly the errors; rows at the threshold count as right."""
    confidence = np.array([0.6, 0.6, 0.6, 0.9])
    logits = np.log(np.column_stack([confidence, 1 - confidence]))
    for labels, threshold, accuracy in (([1, 0, 0, 0], 0.6, 1.0), ([1, 1, 1, 0], 0.9, 0.25), ([1, 1, 1, 1], 0.9, 0.0)):
        model: Any = make("atc-mc", temperature_scaling=False).fit(logits, labels)
        assert np.exp(model.threshold_) == pytest.approx(threshold)
        assert model.estimate(logits).accuracy == accuracy


def test_target_mass_in_bins_without_source_is_reported_and_counted() -> None:
    """Source confidences near 0.95 (all right) and 0.55 (half right); a quarter of the target is near 0.75 or 0.65."""

    def logits(confidences: Iterable[float]) -> NDArray[np.float64]:
        p = np.array(list(confidences))
        return np.asarray(np.log(np.column_stack([p, 1 - p])))

    source = logits([0.95] * 10 + [0.55] * 10)
    labels = np.array([0] * 15 + [1] * 5)
    model = make("im", temperature_scaling=False).fit(source, labels)
    assert model.estimate(source).diagnostics["uncovered_share"] == 0.0
    estimate = model.estimate(logits([0.95] * 6 + [0.65, 0.85]))
    assert estimate.diagnostics["uncovered_share"] == 0.25
    assert estimate.accuracy == pytest.approx((6 + 0.5 + 1) / 8)
    published = make("im", weights="renormalised", temperature_scaling=False).fit(source, labels)
    estimate = published.estimate(logits([0.95] * 4 + [0.55] * 2 + [0.65, 0.85]))
    assert estimate.diagnostics["uncovered_share"] == 0.25
    assert estimate.accuracy == pytest.approx((4 + 2 * 0.5) / 6), "rows in bins without source count for nothing"
    assert estimate.by_class[0].accuracy == pytest.approx(estimate.accuracy), "all are predicted as the first class"
    nowhere = published.estimate(logits([0.65, 0.85]))
    assert nowhere.accuracy == pytest.approx(published.source_accuracy_), "no weights reach it"


def test_kliep_stands_a_target_that_no_weights_can_reach() -> None:
    """The source predicts class 0 only, the target class 1 only: what is left is the accuracy of the source."""
    rng = np.random.default_rng(0)
    source = np.column_stack([np.full(50, 1.0), 0.1 * rng.normal(size=50)])
    labels = (np.arange(50) < 20).astype(np.int64)
    estimate = make("im", weights="kliep").fit(source, labels).estimate(source[:, ::-1])
    assert estimate.accuracy == pytest.approx(0.6, abs=0.02)
    assert [entry.count for entry in estimate.by_class] == [0, 50]


# ------------------------------------------------------------------------------------------------------------- blocks
def test_blocks_may_be_empty_or_constant_by_themselves(data: Data) -> None:
    target = np.vstack([data[2], np.ones((1, 5))])
    blocks = [target[:0], target[:100], target[100:300], target[:0], target[300:]]
    for method in ("ac", "cot"):
        model = fitted(method, data)
        found = model.estimate_blocks(lambda: iter(blocks))
        assert found.accuracy == pytest.approx(model.estimate(target).accuracy, abs=1e-6), method


def test_blocks_without_rows_or_with_other_rows_are_refused(data: Data) -> None:
    model = fitted("cot", data)
    once = iter([data[2]])
    with pytest.raises(InputError, match=r"blocks must give the same rows every time it is called; got 300, then 0"):
        model.estimate_blocks(lambda: once)
    for nothing in ([], [data[2][:0]]):
        with pytest.raises(InputError, match="blocks must give at least one row; got none"):
            model.estimate_blocks(lambda nothing=nothing: nothing)


# ----------------------------------------------------------------------------------------------------------- real data
def mean_absolute_error(method: str, models: Iterable[Path], every: int) -> float:
    """Return the error in points over every so many targets of some models."""
    errors = []
    for model in models:
        with np.load(model / "source.npz") as source:
            estimator = make(method).fit(source["logits"], source["labels"])
        for path in sorted(model.glob("target_*.npz"))[::every]:
            with np.load(path) as target:
                truth = np.mean(target["logits"].argmax(axis=1) == target["labels"])
                errors.append(estimator.estimate(target["logits"]).accuracy - truth)
    return 100 * float(np.abs(errors).mean())


@pytest.mark.parametrize(
    ("suite", "model", "every", "better", "worse", "bound"),
    [
        ("cifar10c", "resnet20", 7, "cott", "ac", 3.5),
        ("cifar10c", "resnet20", 7, "atc-ne", "doc", 8.0),
        ("citation_domains", "*_gcn", 1, "ac", "cott", 5.0),
        ("citation_domains", "*_gcn", 1, "im", "atc-mc", 5.0),
    ],
)
def test_real_shifts_favour_the_method_whose_assumption_holds(
    suite: str, model: str, every: int, better: str, worse: str, bound: float, data_root: Path
) -> None:
    """Transport wins under corruption, confidence under domain shift of graphs; at most two thirds of the error."""
    models = sorted((data_root / "logits" / suite).glob(model))
    least = mean_absolute_error(better, models, every)
    assert least < bound
    assert least < 0.67 * mean_absolute_error(worse, models, every)


def test_an_estimate_that_is_no_number_never_leaves_an_estimator(make_outputs: Callable[..., Outputs]) -> None:
    class Lost(type(make("ac"))):  # type: ignore[misc]
        def _accuracy(self, state: Any, total: Any) -> float:
            return float("nan")

    outputs = make_outputs()
    with pytest.raises(InputError, match="ac finds no number for the accuracy"):
        Lost().fit(outputs).estimate(outputs)
