"""ALSA with several fits and lifted logits: what they compute, what they ignore, and that they do not memorise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from leadline.data.outputs import Outputs
from leadline.estimators import ALSA
from leadline.estimators.alsa.folds import assign_folds, fold_slices
from leadline.estimators.alsa.training import PARTS

MakeOutputs = Callable[..., Outputs]

INFLUENCES = ("gaussian", "exponential")
SMALL: dict[str, Any] = {"n_anchors": 50, "max_epochs": 5}


def fitted(source: Outputs, **params: Any) -> ALSA:
    return ALSA(**(SMALL | params)).fit(source.logits, source.labels)


def influences(model: ALSA, logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the influence of every anchor on every row by the equations, in double precision, shape (n, k)."""
    z = logits.astype(np.float64)
    z = np.column_stack([z - z.mean(axis=1, keepdims=True), np.full(len(z), model.lift_)])
    a = np.column_stack([model.anchors_.astype(np.float64), np.full(len(model.anchors_), model.lift_)])
    cosine = (z @ a.T) / np.linalg.norm(z, axis=1)[:, None] / np.linalg.norm(a, axis=1)
    power = 2 if model.influence_kind == "gaussian" else 1
    return np.asarray(model.peaks_ * np.exp(-np.square(model.widths_.astype(np.float64)) * (1 - cosine) ** power))


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("rectify", ["total", "single", None])
@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("c", [2, 4])
def test_the_estimate_by_the_equations(
    influence: str, rectify: Any, backend: str, c: int, make_outputs: MakeOutputs
) -> None:
    """The mean over the fits of each one's rectified probabilities, plus the error on rows that each has not seen."""
    source, target = make_outputs(n=400, c=c, signal=1.5), make_outputs(n=300, c=c, seed=1, signal=1.0).logits
    model = fitted(source, influence=influence, rectify=rectify, backend=backend, alpha=0.7)
    assert (model.folds_, model.anchors_.shape, model.peaks_.shape) == (3, (50, c), (50,))
    probabilities, clear, totals = [], np.ones(len(target), dtype=bool), []
    for cut in fold_slices(50, 3):
        each = influences(model, target)[:, cut]
        totals.append(each.sum(axis=1))
        felt = {"total": np.abs(totals[-1]), "single": np.abs(each).max(axis=1), None: np.full(len(each), np.inf)}[
            rectify
        ]
        probabilities.append(np.where(felt < model.threshold_, 1 / c, expit(totals[-1])))
        clear &= np.abs(felt - model.threshold_) > 1e-3
    assert clear.mean() > 0.9
    np.testing.assert_allclose(model.influence(target), np.mean(totals, axis=0), atol=1e-3)
    estimate = model.estimate(target[clear])
    expected = np.mean(probabilities, axis=0)[clear]
    assert estimate.accuracy == pytest.approx(expected.mean() + model.correction_, abs=1e-4)
    assert estimate.correctness is not None
    assert estimate.correctness.mean() == pytest.approx(estimate.accuracy, abs=1e-9)
    assert np.corrcoef(estimate.correctness, expected)[0, 1] > 1 - 1e-6  # moved in proportion
    assert estimate.diagnostics["correction"] == model.correction_


def test_the_correction_is_the_error_on_rows_that_no_fit_has_seen(make_outputs: MakeOutputs) -> None:
    source = make_outputs(n=300, c=3, signal=1.5)
    model = fitted(source, rectify=None)
    correct = source.logits.argmax(axis=1) == source.labels
    held = assign_folds(source.logits.argmax(axis=1), correct, 3, np.random.default_rng(model.seed))
    assert sorted(np.concatenate(held)) == list(range(300))
    unseen = np.empty(300)
    for cut, rows in zip(fold_slices(50, 3), held, strict=True):
        unseen[rows] = expit(influences(model, source.logits[rows])[:, cut].sum(axis=1))
    assert model.correction_ == pytest.approx(correct.mean() - unseen.mean(), abs=1e-5)


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("c", [2, 3, 12])
def test_constants_added_to_logit_vectors_change_nothing(influence: str, c: int, make_outputs: MakeOutputs) -> None:
    """What softmax does not see, lifted logits do not see; and a common unit of all logits is no information."""
    source, target = make_outputs(n=300, c=c), make_outputs(n=200, c=c, seed=1, signal=1.0).logits
    rng = np.random.default_rng(0)
    moved = Outputs(source.logits + rng.normal(0, 5, (300, 1)), source.labels)
    plain = fitted(source, influence=influence)
    expected = plain.estimate(target).accuracy
    assert plain.estimate(target + rng.normal(0, 5, (200, 1))).accuracy == pytest.approx(expected, abs=2e-3)
    assert fitted(moved, influence=influence).estimate(target).accuracy == pytest.approx(expected, abs=1e-2)
    doubled = fitted(Outputs(2 * source.logits, source.labels), influence=influence)
    assert doubled.estimate(2 * target).accuracy == pytest.approx(expected, abs=2e-3)


def test_lengths_are_seen_where_classes_are_few(make_outputs: MakeOutputs) -> None:
    """Flattened logits look less sure with two classes; to the paper's cosine they look the same."""
    source = make_outputs(n=1000, c=2, signal=1.5)
    flat = 0.3 * make_outputs(n=1000, c=2, seed=1, signal=1.5).logits
    full = make_outputs(n=1000, c=2, seed=1, signal=1.5).logits
    lifted, cosine = ALSA().fit(source.logits, source.labels), ALSA(geometry="cosine").fit(source.logits, source.labels)
    assert lifted.estimate(flat).accuracy < lifted.estimate(full).accuracy - 0.03
    assert cosine.estimate(flat).accuracy == pytest.approx(cosine.estimate(full).accuracy, abs=1e-4)


@pytest.mark.parametrize("influence", INFLUENCES)
def test_two_antisymmetric_logits_rank_as_well_as_confidence(influence: Any) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 3000)
    score = rng.normal(size=3000) + 1.2 * (2 * labels - 1)
    logits = np.column_stack([-score, score]).astype(np.float32)
    model = ALSA(influence=influence).fit(logits[:1500], labels[:1500])
    assert model.width_search_ == "solved"
    estimate = model.estimate(logits[1500:])
    right = logits[1500:].argmax(axis=1) == labels[1500:]
    assert estimate.accuracy == pytest.approx(right.mean(), abs=0.025)
    assert estimate.correctness is not None
    sure, unsure = (np.quantile(np.abs(score[1500:]), share) for share in (0.75, 0.25))
    assert right[np.abs(score[1500:]) > sure].mean() == pytest.approx(
        estimate.correctness[np.abs(score[1500:]) > sure].mean(), abs=0.04
    )
    assert right[np.abs(score[1500:]) < unsure].mean() == pytest.approx(
        estimate.correctness[np.abs(score[1500:]) < unsure].mean(), abs=0.08
    )


@pytest.mark.parametrize(("n", "k", "folds"), [(2, 1, 1), (3, 1, 1), (5, 2, 2), (7, 30, 3), (400, 2, 2), (400, 1, 1)])
def test_small_sources_have_as_many_fits_as_they_bear(n: int, k: int, folds: int, make_outputs: MakeOutputs) -> None:
    source = make_outputs(n=n, c=2)
    model = fitted(source, n_anchors=k)
    assert (model.folds_, len(model.peaks_)) == (folds, k)
    assert 0 <= model.estimate(source.logits).accuracy <= 1


def test_the_anchors_of_all_fits_start_at_source_rows(make_outputs: MakeOutputs) -> None:
    source = make_outputs(n=300, c=4)
    model = fitted(source, learn=("peaks", "widths"))
    centred = source.logits - source.logits.mean(axis=1, keepdims=True)
    assert np.abs(model.anchors_[:, None] - centred).max(axis=2).min(axis=1).max() < 1e-4
    moved = fitted(source)
    for part in PARTS:
        assert np.abs(getattr(moved, f"{part}_") - getattr(model, f"{part}_")).max() > 1e-3


def test_the_interval_is_wider_by_what_was_wrong_on_unseen_rows(make_outputs: MakeOutputs) -> None:
    source, target = make_outputs(n=300, c=3), make_outputs(n=300, c=3, seed=1).logits
    model = fitted(source)
    model.correction_ = 0.0
    low, high = model.estimate(target).interval
    model.correction_ = 0.05
    estimate = model.estimate(target)
    assert estimate.interval[0] <= low - 0.05 + 0.051
    assert estimate.interval[1] - estimate.interval[0] >= high - low + 0.049


def thinned(source: Outputs, rng: np.random.Generator) -> Outputs:
    """Return rows whose classes are as unequal as 1 to 20."""
    assert source.labels is not None
    kept = np.geomspace(1, 0.05, source.n_classes)[rng.permutation(source.n_classes)]
    rows = rng.random(len(source)) < kept[source.labels]
    return Outputs(source.logits[rows], source.labels[rows])


@pytest.mark.parametrize("models", [slice(1), pytest.param(slice(None, None, 8), marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("influence", INFLUENCES)
def test_a_random_half_of_every_source_tells_of_the_other(influence: Any, models: slice, data_root: Path) -> None:
    """No shift at all: whole sources, few rows of them, unequal classes; errors beyond what sampling explains."""
    from leadline.data.files import read_outputs

    excess = []
    for suite in sorted(path for path in (data_root / "logits").iterdir() if path.is_dir()):
        for model in sorted(suite.iterdir())[models]:
            rng = np.random.default_rng(0)
            whole = read_outputs(model / "source.npz")
            for source, most in ((whole, 10_000), (whole, 250), (thinned(whole, rng), 10_000)):
                order = rng.permutation(len(source))
                one, other = order[: len(source) // 2][:most], order[len(source) // 2 :]
                assert source.labels is not None
                fit = ALSA(influence=influence).fit(source.logits[one], source.labels[one])
                truth = np.mean(source.logits[other].argmax(axis=1) == source.labels[other])
                sampling = np.sqrt(truth * (1 - truth) * (1 / len(one) + 1 / len(other)))
                wrong = abs(fit.estimate(source.logits[other]).accuracy - truth)
                assert wrong < max(3.5 * sampling, 0.02), (suite.name, model.name, len(one))
                excess.append(wrong - sampling)
    assert np.mean(excess) < 0.01
