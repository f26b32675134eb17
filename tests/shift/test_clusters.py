"""Clusters of logits: what they believe, what changes nothing, and how they follow a target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_t

import leadline as ll
from leadline.estimators.passes import judge_rows
from leadline.estimators.sources import learn_profile
from leadline.numeric import of_class
from leadline.rowwise import WORTH_IT_FROM
from leadline.shift.clusters import Adapted, ClusteredSource, Clusters
from leadline.shift.readings import Adaptation

Array = NDArray[np.float64]


def classifier(
    n: int, c: int, seed: int, *, shares: Array | None = None, signal: float = 2.0
) -> tuple[Array, NDArray[np.int64]]:
    """Return logits of Gaussian classes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(c, n, p=shares)
    return rng.normal(size=(n, c)) * np.linspace(0.5, 1.5, c) + signal * np.eye(c)[labels], labels


def learned(logits: Array, labels: NDArray[np.int64]) -> ClusteredSource:
    return ClusteredSource.learn(logits, labels, logits.argmax(axis=1))


def told(source: ClusteredSource, clusters: Clusters, logits: Array) -> Array:
    """Return what clusters say of the predicted class of each row."""
    return of_class(clusters.beliefs(source.points(logits)), logits.argmax(axis=1))


def some_clusters(c: int) -> Clusters:
    rng = np.random.default_rng(c)
    return Clusters(rng.normal(scale=2.0, size=(c, c)), rng.uniform(0.5, 2.0, c), rng.dirichlet(np.full(c, 5.0)))


@pytest.mark.parametrize("c", [2, 3, 12])
def test_beliefs_are_those_of_t_distributions(c: int) -> None:
    """Of SciPy's density, on points of the subspace in which centred rows lie."""
    rng, axes = np.random.default_rng(0), c - 1
    clusters = some_clusters(c)._replace(centres=np.pad(rng.normal(size=(c, axes)), ((0, 0), (0, 1))))
    points = np.pad(rng.normal(scale=3.0, size=(50, axes)), ((0, 0), (0, 1)))
    densities = np.stack(
        [
            share * multivariate_t(centre[:axes], spread * np.eye(axes), df=5).pdf(points[:, :axes])
            for centre, spread, share in zip(*clusters, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(clusters.beliefs(points), densities / densities.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("c", [2, 3, 10, 101])
def test_compiled_loops_say_what_numpy_says(c: int) -> None:
    clusters, rng = some_clusters(c), np.random.default_rng(1)
    source = replace(learned(*classifier(10 * c, c, 0)), clusters=clusters)
    adapted = Adapted(
        clusters._replace(shares=rng.dirichlet(np.ones(c))), clusters._replace(spreads=rng.random(c) + 0.1)
    )
    scales = rng.choice([0.1, 3.0, 1e4], size=(WORTH_IT_FROM // c + 7, 1))
    rows, classes = scales * rng.normal(size=(len(scales), c)), rng.integers(c, size=len(scales))
    for each, compiled in zip((clusters, *adapted), source.probabilities(rows, adapted, classes), strict=True):
        plain = each.beliefs(source.points(rows))[np.arange(len(rows)), classes]
        np.testing.assert_allclose(compiled, plain, rtol=1e-8, atol=1e-90)
    few = slice(0, WORTH_IT_FROM // c // 2)
    np.testing.assert_allclose(
        source.probabilities(rows[few], adapted, classes[few]),
        [part[few] for part in source.probabilities(rows, adapted, classes)],
        rtol=1e-8, atol=1e-90,
    )  # fmt: skip


def test_beliefs_are_finite_however_far_and_however_rare() -> None:
    clusters = some_clusters(30)._replace(spreads=np.geomspace(1e-6, 1e6, 30), shares=np.eye(30)[3])
    points = np.vstack([np.zeros((1, 30)), np.full((1, 30), 1e150), clusters.centres])
    beliefs = clusters.beliefs(points)
    assert np.isfinite(beliefs).all()
    np.testing.assert_allclose(beliefs.sum(axis=1), 1.0)
    assert np.isfinite(clusters.reshared(points).shares).all()


@pytest.mark.parametrize("c", [2, 5])
def test_a_constant_added_to_rows_and_a_scale_change_nothing(c: int) -> None:
    logits, labels = classifier(600, c, 0)
    new, _ = classifier(400, c, 1)
    shift = np.random.default_rng(0).normal(scale=5.0, size=(1000, 1))
    one, other = learned(logits, labels), learned(7.0 * logits + shift[:600], labels)
    np.testing.assert_allclose(one.gap, other.gap, atol=1e-9)
    for mine, theirs in zip(
        one.adapted(one.points(new)), other.adapted(other.points(7.0 * new + shift[600:])), strict=True
    ):
        np.testing.assert_allclose(told(one, mine, new), told(other, theirs, 7.0 * new + shift[600:]), atol=1e-8)


def test_another_order_of_the_classes_changes_nothing() -> None:
    logits, labels = classifier(800, 6, 0)
    new, _ = classifier(500, 6, 1)
    order = np.random.default_rng(0).permutation(6)
    one, other = learned(logits, labels), learned(logits[:, order], np.argsort(order)[labels])
    np.testing.assert_allclose(one.gap, other.gap, atol=1e-9)
    for mine, theirs in zip(one.adapted(one.points(new)), other.adapted(other.points(new[:, order])), strict=True):
        np.testing.assert_allclose(told(one, mine, new), told(other, theirs, new[:, order]), atol=1e-8)


def test_the_source_itself_moves_no_cluster() -> None:
    """However badly t distributions fit: scores of a forest, of which many are the same, and one class in five rare."""
    logits, labels = classifier(900, 3, 0, shares=np.array([0.6, 0.37, 0.03]))
    coarse = np.round(2.0 * logits) ** 3
    source = learned(coarse, labels)
    for adapted in source.adapted(source.points(coarse)):
        for found, known in zip(adapted, source.clusters, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12)


def test_new_frequencies_are_found_and_clusters_stay() -> None:
    shares = np.array([0.6, 0.2, 0.1, 0.06, 0.04])
    source = learned(*classifier(4000, 5, 0))
    reshared, _ = source.adapted(source.points(classifier(4000, 5, 1, shares=shares)[0]))
    np.testing.assert_allclose(reshared.shares, shares, atol=0.04)
    np.testing.assert_array_equal(reshared.centres, source.clusters.centres)


@pytest.mark.parametrize(("scale", "bias"), [(0.5, 2.5), (1.0, 2.0), (0.5, 0.0), (2.0, 2.0)])
def test_clusters_are_followed_where_confidence_is_misled(scale: float, bias: float) -> None:
    """Logits flattened or sharpened, and drifted towards one class: the classes are as frequent as they were."""
    source = learned(*classifier(4000, 4, 0))
    logits, labels = classifier(4000, 4, 1)
    drifted = scale * logits + bias * np.eye(4)[0]
    truth = float((drifted.argmax(axis=1) == labels).mean())
    _, followed = source.adapted(source.points(drifted))
    there, as_it_was = (told(source, each, drifted).mean() + source.gap - truth for each in (followed, source.clusters))
    assert abs(there) < 0.06
    assert abs(there) < 0.6 * abs(as_it_was)
    points = source.points(drifted)[::4]
    np.testing.assert_allclose(followed.beliefs(points).mean(axis=0), source.believed, atol=1e-5)


@pytest.mark.parametrize("c", [2, 30])
def test_what_is_memorised_is_not_counted(c: int) -> None:
    """Ten rows of each class: what clusters say of fresh rows is right, with the gap that left-out rows show."""
    errors = []
    for seed in range(8):
        source = learned(*classifier(10 * c, c, seed, signal=3.0))
        logits, labels = classifier(4000, c, 100 + seed, signal=3.0)
        truth = float((logits.argmax(axis=1) == labels).mean())
        errors.append(told(source, source.clusters, logits).mean() + source.gap - truth)
    assert abs(np.mean(errors)) < 0.05


def test_outliers_of_a_class_do_not_widen_it() -> None:
    logits, labels = classifier(2000, 3, 0)
    spoilt = logits.copy()
    spoilt[::50] += 100.0 * np.random.default_rng(0).normal(size=(40, 3))
    new, _ = classifier(1000, 3, 1)
    clean, dirty = (learned(rows, labels) for rows in (logits, spoilt))
    apart = told(clean, clean.clusters, new) - told(dirty, dirty.clusters, new)
    assert np.abs(apart).mean() < 0.1


def test_classes_without_rows_and_classes_of_one_point() -> None:
    logits, labels = classifier(300, 4, 0)
    labels[labels == 2] = 1
    logits[labels == 3] = [0.0, 0.0, 0.0, 9.0]
    source = learned(logits, labels)
    for clusters in (source.clusters, *source.adapted(source.points(logits[:50]))):
        values = told(source, clusters, logits)
        assert np.isfinite(values).all()
        assert 0.0 <= values.min() <= values.max() <= 1.0
    alike = np.eye(3)[[0, 1, 2] * 5]
    assert np.isfinite(learned(alike, np.arange(15) % 3).gap)


@pytest.mark.parametrize(("n", "c"), [(9, 2), (2000, 251)])
def test_too_few_rows_and_too_many_classes_have_no_clusters(n: int, c: int) -> None:
    logits, labels = classifier(n, c, 0)
    profile = learn_profile(ll.Outputs(logits, labels))
    assert profile.clusters is None
    assert judge_rows(profile, logits.astype(np.float32)).adaptation.clusters is None


def test_clusters_count_for_more_the_more_rows_there_are() -> None:
    profiles = [learn_profile(ll.Outputs(*classifier(n, 5, 0))) for n in (20, 200, 2000)]
    shares = [profile.clusters_share for profile in profiles]
    assert 0.0 < shares[0] < shares[1] < shares[2] < 1 / 2


def test_what_a_target_is_read_with_survives_the_way_to_another_process() -> None:
    logits, labels = classifier(500, 3, 0)
    profile = learn_profile(ll.Outputs(logits, labels))
    adaptation = judge_rows(profile, classifier(400, 3, 1)[0].astype(np.float32)).adaptation
    again = Adaptation.from_state(adaptation.to_state())
    assert isinstance(again.clusters, Adapted)
    for name, values in adaptation.to_state().items():
        np.testing.assert_array_equal(again.to_state()[name], values)
    without = Adaptation(adaptation.restoring, adaptation.reweighting, None)
    assert Adaptation.from_state(without.to_state()).clusters is None
