from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leadline as ll

Z999 = norm.ppf(0.9995)


def xavier_logits(m: int, c: int, n: int, rng: np.random.Generator, spread: float = 1.0) -> Any:
    """Logits of a fresh linear layer, on embeddings of ``spread`` times the allowed variance 2 / m."""
    weights = rng.normal(scale=np.sqrt(2.0 / (m + c)), size=(m, c))
    embeddings = rng.normal(scale=np.sqrt(spread * 2.0 / m), size=(n, m))
    return embeddings @ weights


def test_the_papers_example() -> None:
    assert ll.band_width_bound(128, 10, 0.999) == pytest.approx(1.121, abs=1e-3)
    assert ll.band_width_bound(128, 10, 0.999) == pytest.approx(4 * Z999 * np.sqrt(1 / 138))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.9999])
@pytest.mark.parametrize(("m", "c"), [(1, 2), (64, 2), (2048, 1000)])
def test_the_bound_follows_its_formula(m: int, c: int, confidence: float) -> None:
    expected = 4 * norm.ppf(0.5 + confidence / 2) * np.sqrt(1 / (m + c))
    assert ll.band_width_bound(m, c, confidence) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("m", "c"), [(128, 10), (64, 2), (512, 100)])
def test_fresh_layers_meet_the_bound_where_the_proposition_is_tight(m: int, c: int) -> None:
    # One layer's variance over embeddings scatters around the proposition's, which is the mean over layers:
    # relative deviation sqrt(2 / (30 m)) for 30 layers in the mean square, half of it in the width.
    rng = np.random.default_rng(0)
    widths = [ll.band_width(xavier_logits(m, c, 1000, rng)) for _ in range(30)]
    assert np.sqrt(np.mean(np.square(widths))) == pytest.approx(ll.band_width_bound(m, c), rel=0.05)


@pytest.mark.parametrize(("m", "c"), [(128, 10), (64, 2), (512, 100)])
def test_fresh_layers_stay_below_the_bound_under_its_condition(m: int, c: int) -> None:
    # embeddings of half the allowed variance leave a factor sqrt(2): 5 deviations even at m = 64
    rng = np.random.default_rng(1)
    for _ in range(30):
        assert ll.band_width(xavier_logits(m, c, 1000, rng, spread=0.5)) < ll.band_width_bound(m, c)


def test_width_holds_the_stated_share_of_projections(rng: np.random.Generator) -> None:
    logits = rng.normal(3.0, 2.0, size=(20_000, 7))
    projections = logits.sum(axis=1) / np.sqrt(7)
    inside = np.abs(projections - projections.mean()) < ll.band_width(logits, 0.9) / 2
    assert inside.mean() == pytest.approx(0.9, abs=0.01)


def test_only_the_all_ones_direction_counts(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(500, 6))
    centred = logits - logits.mean(axis=1, keepdims=True)
    assert ll.band_width(centred) == pytest.approx(0.0, abs=1e-12)
    heights = rng.normal(size=500)
    raised = centred + heights[:, None]
    assert ll.band_width(raised) == pytest.approx(2 * Z999 * heights.std() * np.sqrt(6))
    np.testing.assert_allclose(ll.band_width(raised + 100.0), ll.band_width(raised), rtol=1e-9)
    np.testing.assert_allclose(ll.band_width(-3.0 * raised), 3.0 * ll.band_width(raised), rtol=1e-9)


def test_width_of_many_rows_in_float32_keeps_its_digits(rng: np.random.Generator) -> None:
    logits = (rng.normal(size=(300_000, 8)) + 50.0).astype(np.float32)
    expected = 2 * Z999 * (logits.astype(np.float64).sum(axis=1) / np.sqrt(8)).std()
    assert ll.band_width(logits) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 99.9, float("nan"), "high", None, True])
def test_nonsense_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(ll.InputError, match="confidence must be between 0 and 1"):
        ll.band_width_bound(128, 10, confidence)
    with pytest.raises(ll.InputError, match="confidence must be between 0 and 1"):
        ll.band_width([[1.0, 2.0], [0.0, 4.0]], confidence)


@pytest.mark.parametrize(
    ("m", "c", "named"), [(0, 10, "m"), (-1, 10, "m"), (1.5, 10, "m"), (128, 1, "c"), (9, "2", "c")]
)
def test_nonsense_sizes_are_refused(m: Any, c: Any, named: str) -> None:
    with pytest.raises(ll.InputError, match=rf"^{named} must be a whole number"):
        ll.band_width_bound(m, c)


def test_bad_logits_are_refused() -> None:
    with pytest.raises(ll.InputError, match="logits must be finite"):
        ll.band_width([[1.0, np.nan], [0.0, 1.0]])
