"""Influences and gradients keep to their formulas at any width, also where cosines are all but 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from anchor_fields import ESTIMATING, POWERS, Array, autograd, placed
from leadline import ALSA
from leadline.data.outputs import Outputs
from leadline.estimators.alsa.kernels import BACKENDS, AnchorField, Kernel, get_kernel
from leadline.estimators.alsa.kernels.base import MAX_WIDTH, unit_rows

CLASSES = pytest.mark.parametrize("c", [2, 3, 10, 100, 1000])
WIDTHS = pytest.mark.parametrize("width", [1.0, 8.0, 11.0, 30.0, 128.0, 1100.0, 1e4, float(MAX_WIDTH)])


@pytest.fixture(params=BACKENDS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return get_kernel(request.param)


@pytest.fixture(params=ESTIMATING)
def estimating(request: pytest.FixtureRequest) -> Kernel:
    return ESTIMATING[request.param]()


def crowded(c: int, power: int, width: float) -> tuple[Array, AnchorField[Array]]:
    """Rows and anchors within reach of each other at this width, with peaks that add up to about 5.

    Two classes have antisymmetric logits, as a single score gives them: all cosines are 1 or -1.
    """
    rng = np.random.default_rng(0)
    n, k = 200, 60
    if c == 2:
        scores = rng.normal(scale=4.0, size=(n + k, 1))
        vectors = np.hstack([scores, -scores])
    else:
        centres, aside = (
            unit_rows(rng.normal(size=(size, c)), np.float64)[rng.integers(size, size=n + k)] for size in (4, n + k)
        )
        angle = min(1.0, np.sqrt(2.0) / width if power == 1 else np.sqrt(2.0 / width))
        vectors = centres + angle * rng.uniform(size=(n + k, 1)) * aside
        vectors *= rng.uniform(1.0, 30.0, size=(n + k, 1))
    vectors = vectors.astype(np.float32)
    widths = rng.uniform(0.5, 1.0, size=k).astype(np.float32) * np.float32(width)
    widths[0] = width
    return vectors[:n], AnchorField(vectors[n:], rng.normal(scale=0.1, size=k).astype(np.float32), widths, power)


def exact_influences(logits: Array, field: AnchorField[Array]) -> NDArray[np.float64]:
    """Every anchor's influence on every row, shape (n, k), with all digits of distances near zero.

    Between unit vectors, 1 - cos is half of the squared length of their difference.
    """
    units, directions = (unit_rows(vectors.astype(np.float64), np.float64) for vectors in (logits, field.anchors))
    distances = np.column_stack([np.square(units - direction).sum(axis=1) / 2 for direction in directions])
    rates = np.square(field.widths.astype(np.float64))
    return np.asarray(field.peaks * np.exp(-rates * distances**field.power))


@POWERS
@CLASSES
@WIDTHS
def test_influence_keeps_to_its_formula_at_any_width(estimating: Kernel, width: float, c: int, power: int) -> None:
    """1 - cos must not drown in the rounding of the cosine: the widths multiply what is left of it."""
    logits, field = crowded(c, power, width)
    singles = exact_influences(logits, field)
    assert np.mean(np.abs(singles) > 0.1 * np.abs(field.peaks)) > 0.1  # the rows do feel the anchors
    total = estimating.influence(logits, placed(estimating, field))
    np.testing.assert_allclose(total, singles.sum(axis=1), rtol=0, atol=5e-5)
    np.testing.assert_allclose(expit(total).mean(), expit(singles.sum(axis=1)).mean(), rtol=0, atol=1e-5)
    strongest = estimating.strongest(logits, placed(estimating, field))
    np.testing.assert_allclose(strongest, np.abs(singles).max(axis=1), rtol=0, atol=2e-5)


@POWERS
@CLASSES
@WIDTHS
def test_gradients_keep_to_their_formula_at_any_width(kernel: Kernel, width: float, c: int, power: int) -> None:
    logits, field = crowded(c, power, width)
    units = unit_rows(logits)  # what training has
    correct = (np.random.default_rng(5).random(len(logits)) < 0.7).astype(np.float64)
    found = kernel.gradients(kernel.asarray(units), kernel.asarray(correct), placed(kernel, field))
    loss, expected = autograd(units, correct, field)
    assert found.loss == pytest.approx(loss, abs=1e-6)
    for name, values in expected.items():
        tolerance = 3e-5 * np.abs(values).max() + 1e-5
        np.testing.assert_allclose(
            kernel.to_numpy(getattr(found, name)), values, rtol=0, atol=tolerance, err_msg=name
        )  # fmt: skip


def two_sided(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return logits of two classes that are a score and its negative, as a single output gives them, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    scores = (rng.normal(size=n) + 1.2 * (2 * labels - 1)).astype(np.float32)
    return np.column_stack([-scores, scores]), labels


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("influence", ["gaussian", "exponential"])
def test_antisymmetric_logits_of_two_classes(influence: Any, backend: Any) -> None:
    """Every cosine is 1 or -1: the search for widths cannot end, the model says so, and keeps to its formula."""
    (logits, labels), (fresh, truth) = two_sided(1000, 0), two_sided(4000, 1)
    plain: Any = {"geometry": "cosine", "folds": 1}
    model = ALSA(influence=influence, backend=backend, rectify=None, **plain).fit(logits, labels)
    estimate = model.estimate(fresh)
    assert estimate.diagnostics["width_search"] == "at_limit"
    assert estimate.diagnostics["widths_at_limit"] == 0.0
    assert np.abs(model.widths_).max() > 1000
    power = 2 if influence == "gaussian" else 1
    total = exact_influences(fresh, AnchorField(model.anchors_, model.peaks_, model.widths_, power)).sum(axis=1)
    np.testing.assert_allclose(model.influence(fresh), total, rtol=0, atol=1e-5)
    assert estimate.accuracy == pytest.approx(expit(total).mean(), abs=1e-6)
    assert estimate.accuracy == pytest.approx(np.mean(fresh.argmax(axis=1) == truth), abs=0.05)
    # on either side all rows are one point of the sphere, and no anchor has anywhere to go
    np.testing.assert_allclose(np.abs(model.anchors_), np.sqrt(0.5), atol=1e-3)


@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_widths_that_run_away_are_counted(backend: Any, make_outputs: Callable[..., Outputs]) -> None:
    source = make_outputs(n=400, c=4, signal=1.5)
    model = ALSA(n_anchors=40, max_epochs=5, learn=("widths",), backend=backend, folds=1)
    tame = model.fit(source.logits, source.labels).estimate(source.logits).diagnostics
    assert (tame["width_search"], tame["widths_at_limit"]) == ("solved", 0.0)
    model.set_params(learning_rate=1e6).fit(source.logits, source.labels)
    wild = model.estimate(source.logits).diagnostics
    assert wild["width_search"] == "solved"
    assert wild["widths_at_limit"] == np.mean(np.abs(model.widths_) >= 1e5) > 0.5
