"""Intervals from a few labels: coverage by simulation, the exact one against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, hypergeom

from leadline.labels.intervals import exact_interval, labels_needed, stratified_accuracy, stratified_interval

SIZES = np.array([800, 900, 1100, 1200])
LABELLED = np.array([25, 25, 25, 25])


def covers(shares: list[float], labelled: np.ndarray, sizes: np.ndarray, plans: int = 2000) -> tuple[float, float]:
    """Return the coverage at 90 % and the mean width over simulated plans for strata of these accuracies."""
    rng = np.random.default_rng(0)
    good = np.round(np.array(shares) * sizes).astype(int)
    right = np.stack([rng.hypergeometric(g, n - g, k, plans) for g, n, k in zip(good, sizes, labelled, strict=True)], 1)
    low, high = stratified_interval(right, labelled, sizes, 0.9)
    truth = good.sum() / sizes.sum()
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12))), float(np.mean(high - low))


def clopper_pearson_width(accuracy: float, n: int) -> float:
    right = np.random.default_rng(1).binomial(n, accuracy, 2000)
    low, high = beta.ppf(0.05, right, n - right + 1), beta.ppf(0.95, right + 1, n - right)
    return float(np.mean(np.nan_to_num(high, nan=1.0) - np.nan_to_num(low, nan=0.0)))


def test_exact_interval_is_the_inversion_of_two_tests() -> None:
    n_rows, n, right = 60, 12, 9
    kept = [
        k
        for k in range(n_rows + 1)
        if hypergeom.sf(right - 1, n_rows, k, n) > 0.05 and hypergeom.cdf(right, n_rows, k, n) > 0.05
    ]
    np.testing.assert_allclose(exact_interval(right, n, n_rows, 0.9), (kept[0] / n_rows, kept[-1] / n_rows))


@pytest.mark.parametrize("accuracy", [0.0, 0.02, 0.5, 0.93, 1.0])
def test_exact_interval_covers_for_every_accuracy(accuracy: float) -> None:
    n_rows, n = 500, 40
    good = round(accuracy * n_rows)
    chance = hypergeom.pmf(np.arange(n + 1), n_rows, good, n)
    ends = [exact_interval(right, n, n_rows, 0.9) for right in range(n + 1)]
    covered = sum(
        p for p, (low, high) in zip(chance, ends, strict=True) if low <= accuracy + 1e-12 and accuracy <= high + 1e-12
    )
    assert covered >= 0.9


def test_one_stratum_of_many_rows_is_clopper_pearson() -> None:
    low, high = stratified_interval([[90], [100], [0]], [100], [10**9], 0.9)
    np.testing.assert_allclose(low, [beta.ppf(0.05, 90, 11), beta.ppf(0.05, 100, 1), 0.0], atol=1e-6)
    np.testing.assert_allclose(high, [beta.ppf(0.95, 91, 10), 1.0, beta.ppf(0.95, 1, 100)], atol=1e-6)


@pytest.mark.parametrize(
    "shares",
    [
        [0.4, 0.7, 0.9, 0.99],  # the estimate ranks well
        [0.7, 0.7, 0.7, 0.7],  # it ranks nothing
        [0.99, 0.9, 0.7, 0.4],  # confidently wrong
        [0.95, 0.999, 1.0, 1.0],  # nearly all right
        [1.0, 1.0, 1.0, 0.98],  # the few errors where none was expected
        [0.02, 0.0, 0.0, 0.0],  # nearly all wrong
        [0.0, 0.0, 1.0, 1.0],  # classes that are never right
        [1.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
    ],
)
@pytest.mark.parametrize("n", [52, 100, 200, 500])
def test_stratified_interval_covers_whatever_the_strata_hold(shares: list[float], n: int) -> None:
    # 2,000 plans: the standard deviation of the measured coverage is 0.7 points.
    assert covers(shares, np.full(4, n // 4), SIZES)[0] >= 0.89


def test_strata_that_rank_well_make_it_narrower() -> None:
    shares = np.array([0.4, 0.7, 0.9, 0.99])
    width = covers(shares.tolist(), LABELLED, SIZES)[1]
    assert width < 0.85 * clopper_pearson_width(float(shares @ SIZES / SIZES.sum()), 100)


def test_right_and_wrong_mirror_each_other() -> None:
    right = np.array([10, 20, 24, 25])
    low, high = stratified_interval(right, LABELLED, SIZES, 0.9)
    np.testing.assert_allclose(
        stratified_interval(LABELLED - right, LABELLED, SIZES, 0.9), (1 - high, 1 - low), atol=1e-9
    )


def test_estimate_weighs_strata_by_their_rows() -> None:
    assert stratified_accuracy([5, 10], [10, 10], [300, 100]) == pytest.approx(0.5 * 0.75 + 1.0 * 0.25)


def test_a_stratum_labelled_whole_is_known_and_one_without_labels_may_be_anything() -> None:
    known = stratified_interval([6, 3], [10, 4], [10, 4], 0.9)
    np.testing.assert_allclose(known, (9 / 14, 9 / 14))
    low, high = stratified_interval([50, 0], [50, 0], [1000, 1000], 0.9)
    assert low < 0.5
    assert high == 1.0


def test_interval_never_contradicts_the_labels_themselves() -> None:
    low, high = stratified_interval([8, 8], [9, 9], [10, 10], 0.5)
    assert low >= 16 / 20
    assert high <= 18 / 20


def test_labels_needed_is_what_the_width_then_takes() -> None:
    right = np.array([10, 20, 24, 25])
    needed = labels_needed(right, LABELLED, SIZES, 0.03, 0.9)
    shares = (right + 0.5) / (LABELLED + 1)
    for n, fits in ((needed, True), (needed - 4, False)):
        counts = n * LABELLED / LABELLED.sum()
        low, high = stratified_interval(shares * counts, counts, SIZES, 0.9)
        assert (high - low <= 0.06) == fits
    assert labels_needed(right, LABELLED, SIZES, 1e-9, 0.9) == SIZES.sum()
