"""``auto``: which explanation it believes, what it answers, and the words for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.estimators.passes import judge_rows
from leadline.estimators.samples import random_order
from leadline.estimators.sources import learn_profile
from leadline.numeric import softmax, top_two
from leadline.results.performance import Measure, expected_auc
from leadline.shift.explanations import unchanged
from leadline.shift.judgement import judge
from leadline.shift.priors import Exponentials, restoring_bias

Array = NDArray[np.float64]


def classifier(
    n: int, c: int, seed: int, *, shares: Array | None = None, signal: float = 2.0
) -> tuple[Array, NDArray[np.int64]]:
    """Return the log-posteriors of Gaussian classes, perfectly calibrated for equal shares, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(c, n, p=shares)
    features = rng.normal(size=(n, c)) + signal * np.eye(c)[labels]
    return signal * features, labels


def accuracy(logits: Array, labels: NDArray[np.int64]) -> float:
    return float(np.mean(logits.argmax(axis=1) == labels))


def test_restoring_bias_restores() -> None:
    logits, _ = classifier(3000, 5, 0)
    wanted = np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    bias = restoring_bias(logits, wanted)
    np.testing.assert_allclose(softmax(logits + bias).mean(axis=0), wanted, atol=1e-5)


@pytest.mark.parametrize("spread", [1.0, 300.0])
@pytest.mark.parametrize("c", [2, 6, 40])
def test_exponentials_taken_at_one_bias_serve_at_another(c: int, spread: float) -> None:
    rng = np.random.default_rng(c)
    logits, bias, wanted = rng.normal(scale=spread, size=(300, c)), rng.normal(size=c), rng.dirichlet(np.full(c, 9.0))
    rows = Exponentials.of(logits, np.zeros(c))
    for found, expected in zip(rows.top_two(bias), top_two(logits + bias), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(restoring_bias(rows, wanted), restoring_bias(logits, wanted), atol=1e-6)


def test_restoring_bias_with_many_classes_agrees_with_few() -> None:
    """The fixed point for many classes solves what Newton's method solves for few."""
    logits, _ = classifier(2000, 160, 0, signal=3.0)
    wanted = np.random.default_rng(1).dirichlet(np.full(160, 20.0))
    bias = restoring_bias(logits, wanted, iterations=400)
    np.testing.assert_allclose(softmax(logits + bias).mean(axis=0), wanted, atol=1e-4)


def test_top_two_log_odds_are_exact_and_do_not_saturate() -> None:
    top, second, odds = top_two(np.array([[3.0, 1.0, 0.0], [0.0, 900.0, 100.0]]))
    assert top.tolist() == [0, 1]
    assert second.tolist() == [1, 2]
    np.testing.assert_allclose(odds, [3.0 - np.log(np.exp(1.0) + 1.0), 800.0])


@pytest.mark.parametrize("c", [2, 3, 10])
def test_without_shift_it_finds_none_and_is_right(c: int) -> None:
    logits, labels = classifier(6000, c, 0)
    estimate = ll.Auto().fit(logits[:3000], labels[:3000]).estimate(logits[3000:])
    assert estimate.shift is not None
    assert estimate.shift.kind is ll.ShiftKind.NONE
    assert abs(estimate.accuracy - accuracy(logits[3000:], labels[3000:])) < 0.03


def test_label_shift_is_recognised_and_its_frequencies_are_found() -> None:
    shares = np.array([0.55, 0.25, 0.1, 0.06, 0.04])
    source, labels = classifier(4000, 5, 0)
    target, truth = classifier(4000, 5, 1, shares=shares)
    model = ll.Auto().fit(source, labels)
    estimate = model.estimate(target)
    assert estimate.shift is not None
    assert estimate.shift.kind is ll.ShiftKind.LABEL
    np.testing.assert_allclose(estimate.shift.label_marginal, shares, atol=0.05)
    assert abs(estimate.accuracy - accuracy(target, truth)) < 0.03
    assert estimate.interval[0] < accuracy(target, truth) < estimate.interval[1]
    assert abs(ll.make("cot").fit(source, labels).estimate(target).accuracy - accuracy(target, truth)) > 0.1


def test_collapse_is_recognised() -> None:
    """A classifier that drifts towards one class while the labels stay as they were."""
    source, labels = classifier(4000, 5, 0)
    target, truth = classifier(4000, 5, 1)
    drifted = 0.5 * target + np.array([2.5, 0.0, 0.0, 0.0, 0.0])
    estimate = ll.Auto().fit(source, labels).estimate(drifted)
    assert estimate.shift is not None
    assert estimate.shift.kind is ll.ShiftKind.COLLAPSE
    # A quarter of the estimate is of anchors, which stay where the classifier was: they are 31 points off.
    assert abs(estimate.accuracy - accuracy(drifted, truth)) < 0.07
    assert estimate.interval[0] < accuracy(drifted, truth) < estimate.interval[1]
    assert abs(estimate.shift.readings["clusters_followed"] - accuracy(drifted, truth)) < 0.03


def test_noise_alone_is_no_distance() -> None:
    """Two samples of one distribution are at distance zero, as the expected noise is taken away."""
    scores = np.log(softmax(classifier(4000, 20, 0)[0]))
    distances = [
        unchanged(top_two(scores[:1000]), top_two(scores[start : start + 500]), 20).distance
        for start in (2000, 2500, 3000, 3500)
    ]
    assert np.mean(distances) < 0.05


def test_per_sample_values_average_to_the_estimate() -> None:
    logits, labels = classifier(3000, 4, 0)
    estimate = ll.Auto().fit(logits[:2000], labels[:2000]).estimate(logits[2000:])
    assert estimate.correctness is not None
    assert 0.0 <= estimate.correctness.min() <= estimate.correctness.max() <= 1.0
    np.testing.assert_allclose(estimate.correctness.mean(), estimate.accuracy, atol=1e-12)


def test_every_method_has_an_interval_that_reaches_as_far_as_the_judgements() -> None:
    source, labels = classifier(2000, 4, 0)
    target, _ = classifier(2000, 4, 1, shares=np.array([0.7, 0.1, 0.1, 0.1]))
    judged = judge_rows(ll.Auto().fit(source, labels).source_, target.astype(np.float32))
    likely = judged.interval(judged.accuracy, 0.9)
    for method in ("ac", "cot", "alsa-g"):
        estimate = ll.make(method).fit(source, labels).estimate(target)
        assert estimate.interval[0] <= likely[0] + 1e-9
        assert estimate.interval[1] >= likely[1] - 1e-9
        # At least the method's own sampling error on both sides: an interval never ends at its estimate.
        assert estimate.interval[0] + 0.01 < estimate.accuracy < estimate.interval[1] - 0.01


def test_a_higher_level_gives_a_wider_interval() -> None:
    logits, labels = classifier(2000, 4, 0)
    model = ll.Auto().fit(logits[:1000], labels[:1000])
    narrow, wide = (model.estimate(logits[1000:], confidence_level=level).interval for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_fewer_rows_give_a_wider_interval() -> None:
    logits, labels = classifier(8000, 4, 0)
    model = ll.Auto().fit(logits[:4000], labels[:4000])
    wide, narrow = (model.estimate(logits[4000 : 4000 + n]).interval for n in (60, 4000))
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


def test_explanation_says_what_was_found() -> None:
    source, labels = classifier(3000, 5, 0)
    target, _ = classifier(120, 5, 1, shares=np.array([0.9, 0.025, 0.025, 0.025, 0.025]))
    estimate = ll.Auto().fit(source, labels).estimate(target)
    told = estimate.explain()
    assert told.startswith(f"Estimated accuracy {estimate.accuracy:.1%} (90% interval ")
    assert "label shift" in told
    assert "Only 120 samples" in told
    assert "other classes than in the source" in told
    assert "The interval covers sampling error, and the error of the model under shift" in told
    json.dumps(estimate.to_dict(), allow_nan=False)


def test_performance_estimates_the_confusion_matrix() -> None:
    source, labels = classifier(5000, 4, 0)
    target, truth = classifier(5000, 4, 1, shares=np.array([0.55, 0.25, 0.15, 0.05]))
    found = ll.Auto().fit(source, labels).performance(target)
    true = np.zeros((4, 4))
    np.add.at(true, (truth, target.argmax(axis=1)), 1.0)
    np.testing.assert_allclose(found.confusion.sum(), 5000)
    np.testing.assert_allclose(found.recall, ll.Performance(true).recall, atol=0.08)
    np.testing.assert_allclose(found.precision, ll.Performance(true).precision, atol=0.08)
    np.testing.assert_allclose(found.f1, ll.Performance(true).f1, atol=0.08)


def test_performance_agrees_with_the_estimate() -> None:
    source, labels = classifier(3000, 3, 0)
    target, _ = classifier(2000, 3, 1, shares=np.array([0.7, 0.2, 0.1]))
    model = ll.Auto().fit(source, labels)
    found, estimate = model.performance(target), model.estimate(target)
    assert found.accuracy == pytest.approx(estimate.accuracy, abs=1e-9)
    counts = [entry.count for entry in estimate.by_class]
    np.testing.assert_allclose(found.confusion.sum(axis=0), counts, atol=1e-6)
    assert found.interval("accuracy")[1] - found.interval("accuracy")[0] == pytest.approx(np.ptp(estimate.interval))
    measures: tuple[Measure, ...] = ("precision", "recall", "f1")
    for measure in measures:
        low, high = found.interval(measure)
        assert np.all((low < getattr(found, measure)) & (getattr(found, measure) < high))
    assert found.roc_auc is None


def test_the_area_under_the_curve_of_two_classes() -> None:
    """With labels it is the plain area, ties and all; without, near it."""
    from sklearn.metrics import roc_auc_score

    source, labels = classifier(3000, 2, 0)
    target, truth = classifier(3000, 2, 1)
    score = target[:, 1] - target[:, 0]
    for some in (score, score.round(0)):
        assert expected_auc(some, truth.astype(float)) == pytest.approx(roc_auc_score(truth, some))
    assert ll.Auto().fit(source, labels).performance(target).roc_auc == pytest.approx(
        roc_auc_score(truth, score), abs=0.03
    )
    assert expected_auc(score, np.ones(3000)) is None


def test_performance_of_a_class_that_is_never_predicted_is_unknown() -> None:
    performance = ll.Performance(np.array([[5.0, 0.0], [3.0, 0.0]]))
    assert performance.to_dict()["precision"] == [5 / 8, None]
    assert performance.to_dict()["recall"] == [1.0, 0.0]


def test_lower_bound_holds_and_comes_on_request_only() -> None:
    source, labels = classifier(3000, 3, 0)
    target, truth = classifier(3000, 3, 1, shares=np.array([0.6, 0.3, 0.1]))
    model = ll.Auto().fit(source, labels)
    assert model.estimate(target).lower_bound is None
    bound = model.estimate(target, lower_bound=True).lower_bound
    assert bound is not None
    assert 0.3 < bound < accuracy(target, truth)


def test_lower_bound_falls_where_the_target_is_unlike_the_source() -> None:
    source, labels = classifier(3000, 3, 0)
    near = ll.lower_bound((source, labels), classifier(3000, 3, 1)[0])
    far = ll.lower_bound((source, labels), classifier(3000, 3, 1)[0][:, [1, 2, 0]] * [3.0, -1.0, 0.2])
    assert far.discrepancy > near.discrepancy + 0.1
    assert far.accuracy < near.accuracy
    assert near.accuracy == pytest.approx(near.source_accuracy - near.discrepancy - near.sampling)


def test_lower_bound_needs_rows_to_train_and_to_judge_on() -> None:
    with pytest.raises(ll.InputError, match="at least 2 rows"):
        ll.lower_bound((np.array([[1.0, 0.0]]), [0]), np.array([[1.0, 0.0]]))


def test_on_real_suites_it_beats_confidence_and_transport_where_each_fails(data_root: Path) -> None:
    """One corrupted and one label-shifted target of real models; bounds from docs/which-method.md."""
    for model, target, worse, limit in (
        ("cifar10c/resnet20", "target_fog_5", "ac", 0.03),
        ("mnist/cnn_imb_s0", "target_zoom_blur_5", "cot", 0.04),
    ):
        source = ll.read_outputs(data_root / "logits" / model / "source.npz")
        outputs = ll.read_outputs(data_root / "logits" / model / f"{target}.npz")
        assert outputs.accuracy is not None
        found = ll.Auto().fit(source.logits, source.labels).estimate(outputs.logits)
        other = ll.make(worse).fit(source.logits, source.labels).estimate(outputs.logits)
        assert abs(found.accuracy - outputs.accuracy) < limit < abs(other.accuracy - outputs.accuracy)
        assert found.interval[0] < outputs.accuracy < found.interval[1]


@pytest.mark.parametrize("n", [500, 5000, 50_000])
def test_where_nothing_moved_the_interval_is_what_sampling_allows(n: int) -> None:
    """Source and target of one distribution: right within sampling error, and hardly wider than it."""
    source, labels = classifier(n, 2, 0)
    model = ll.Auto().fit(source, labels)
    errors, widths = [], []
    for seed in range(1, 6):
        target, truth = classifier(5000, 2, seed)
        estimate = model.estimate(target)
        errors.append(abs(estimate.accuracy - accuracy(target, truth)))
        widths.append(estimate.interval[1] - estimate.interval[0])
    sampling = np.sqrt(0.25 / n + 0.25 / 5000)
    assert np.mean(errors) < 2 * sampling
    assert np.mean(widths) < 2 * (1.645 * sampling + 0.025)


def test_few_rows_of_many_classes_tell_little_of_how_frequent_they_are() -> None:
    """Three rows of each class: class frequencies that explain a target best are far off, though nothing moved."""
    errors = []
    for seed in range(4):
        source, labels = classifier(250, 77, seed, signal=3.0)
        target, truth = classifier(3000, 77, 100 + seed, signal=3.0)
        estimate = ll.Auto().fit(source, labels).estimate(target)
        assert estimate.shift is not None
        errors.append(estimate.accuracy - accuracy(target, truth))
    assert np.mean(np.abs(errors)) < 0.05


def test_calibration_is_that_of_all_rows_and_not_of_the_sample_that_is_kept() -> None:
    for c in (2, 20):
        source, labels = classifier(60_000, c, 0, signal=1.0)
        profile = learn_profile(ll.Outputs(source, labels))
        assert len(profile.logits) < len(source)
        found = judge(profile, source, len(source))
        assert found.readings["confidence"] == pytest.approx(accuracy(source, labels), abs=1e-4)
    assert found.readings["thresholded"] == pytest.approx(accuracy(source, labels), abs=1e-4)


def test_the_nearer_the_target_is_the_more_counts_confidence_as_it_is() -> None:
    source, labels = classifier(20_000, 3, 0)
    profile = learn_profile(ll.Outputs(source, labels))
    target, _ = classifier(20_000, 3, 1)
    found = [judge(profile, scale * target, len(target)).weights for scale in (1.0, 0.9, 0.7, 0.4)]
    np.testing.assert_allclose(np.sum(found, axis=1), 1.0)
    shares = [float(weights[0]) for weights in found]
    assert shares[0] > 0.95
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.1


def test_the_interval_grows_smoothly_with_the_evidence_of_shift() -> None:
    source, labels = classifier(5000, 3, 0)
    model = ll.Auto().fit(source, labels)
    target, _ = classifier(5000, 3, 1)
    estimates = [model.estimate(scale * target + bias * np.array([1.0, 0, 0])) for scale, bias in zip(
        np.linspace(1, 0.3, 30), np.linspace(0, 2, 30), strict=True)]  # fmt: skip
    widths = np.array([high - low for low, high in (estimate.interval for estimate in estimates)])
    assert widths[-1] > 3 * widths[0]
    assert np.all(np.diff(widths) < 0.06)


def test_a_source_without_errors_is_no_reason_to_be_wrong_on_its_own_kind() -> None:
    """The temperature of a source without a single error is arbitrary; the readings are moved by what they miss."""
    source, labels = classifier(150, 3, 0)
    right = source.argmax(axis=1) == labels
    target, truth = classifier(4000, 3, 1)
    fresh = target.argmax(axis=1) == truth
    estimate = ll.Auto().fit(source[right], labels[right]).estimate(target[fresh])
    assert estimate.accuracy > 0.95


def two_digits(n: int, seed: int) -> ll.Outputs:
    """Return scores of two classes with two digits, as tools write them: a hundred different rows, however many."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 0.4, n).round(2)
    labels = rng.random(n) < 0.03 + 0.94 * scores
    return ll.Outputs.from_scores(scores, labels.astype(int), threshold=0.6)


def test_scores_of_two_digits_are_as_good_as_others() -> None:
    """More rows than are kept: those that are kept must be a sample of the rows, not of the different ones."""
    model = ll.Auto().fit(two_digits(40_000, 0))
    for seed in (1, 2):
        target = two_digits(5000, seed)
        estimate = model.estimate(target)
        assert estimate.shift is not None
        assert estimate.shift.distance < 0.03
        assert target.accuracy is not None
        assert abs(estimate.accuracy - target.accuracy) < 0.02
        assert estimate.interval[1] - estimate.interval[0] < 0.08


def test_the_sample_of_equal_rows_does_not_depend_on_the_order_of_rows_and_classes() -> None:
    source = two_digits(3000, 0)
    assert source.labels is not None
    kept = random_order(source.logits, source.labels)[:500]
    other = np.random.default_rng(1).permutation(3000)
    logits, labels = source.logits[other], source.labels[other]
    again = random_order(logits, labels)[:500]
    np.testing.assert_array_equal(logits[again], source.logits[kept])
    np.testing.assert_array_equal(labels[again], source.labels[kept])
    again = random_order(logits[:, ::-1], 1 - labels)[:500]
    np.testing.assert_array_equal(logits[again], source.logits[kept])
    np.testing.assert_array_equal(labels[again], source.labels[kept])


def test_anchors_of_very_many_classes_are_neither_learned_nor_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They would count for less than a hundredth, and take nearly all of the time."""

    def refuse(*_: object) -> None:
        raise AssertionError("anchors are used")

    monkeypatch.setattr(ll.ALSA, "_fit", refuse)
    monkeypatch.setattr(ll.ALSA, "probabilities", refuse)
    logits, labels = classifier(900, 300, 0)
    model = ll.Auto().fit(logits[:600], labels[:600])
    model.save(tmp_path / "model.leadline")
    found = ll.load(tmp_path / "model.leadline").estimate(logits[600:])
    assert found.accuracy == model.estimate(logits[600:]).accuracy
    few, of_few = classifier(900, 20, 0)
    with pytest.raises(AssertionError, match="anchors are used"):
        ll.Auto().fit(few[:600], of_few[:600])
