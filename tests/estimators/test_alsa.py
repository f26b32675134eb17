"""ALSA: formulas of the paper, ablations, the stop rule, rectification, defaults, and the real suites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf, expit
from sklearn.base import clone

from leadline import ALSA, InputError, make
from leadline.data.outputs import Outputs
from leadline.estimators.alsa.constants import CONSTANTS, DEFAULTS
from leadline.estimators.alsa.reach import harmless_threshold, rectification_threshold
from leadline.estimators.alsa.training import PARTS, default_anchor_count

MakeOutputs = Callable[..., Outputs]

INFLUENCES = ("gaussian", "exponential")
#: One small fit by the paper's equations; what several fits and the lift add is in test_alsa_crossfit.py.
SMALL: dict[str, Any] = {"n_anchors": 40, "max_epochs": 5, "geometry": "cosine", "folds": 1}


@pytest.fixture(scope="module")
def source(make_outputs: MakeOutputs) -> Outputs:
    return make_outputs(n=400, c=4, signal=1.5)


@pytest.fixture(scope="module")
def target(make_outputs: MakeOutputs) -> NDArray[Any]:
    """Return half of a weaker signal, and half of directions that the source does not have."""
    return np.vstack([make_outputs(n=150, c=4, seed=1, signal=1.0).logits, -make_outputs(n=150, c=4, seed=2).logits])


def fitted(source: Outputs, **params: Any) -> ALSA:
    return ALSA(**(SMALL | params)).fit(source.logits, source.labels)


def plain_influences(model: ALSA, logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the influence of every anchor on every row by the paper's equations, in double precision, (n, k)."""
    z, a = logits.astype(np.float64), model.anchors_.astype(np.float64)
    cosine = (z @ a.T) / np.linalg.norm(z, axis=1)[:, None] / np.linalg.norm(a, axis=1)
    power = 2 if model.influence_kind == "gaussian" else 1
    return np.asarray(model.peaks_ * np.exp(-np.square(model.widths_.astype(np.float64)) * (1 - cosine) ** power))


# ------------------------------------------------------------------------------------------------------------ formulas
@pytest.mark.parametrize(
    ("influence", "alpha", "expected"),
    [
        ("gaussian", 0.9, 1.551), ("gaussian", 0.99, 0.2174), ("gaussian", 0.999, 0.02674),
        ("exponential", 0.9, 0.6), ("exponential", 0.99, 0.06), ("exponential", 0.999, 0.006),
    ],
)  # fmt: skip
def test_threshold_values(influence: Any, alpha: float, expected: float) -> None:
    assert rectification_threshold(alpha, influence) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.98])
def test_threshold_is_the_influence_at_the_edge_of_the_area(alpha: float) -> None:
    """At distance d, a share erf(v d) of the Gaussian's area lies nearer, and 1 - exp(-v^2 d) of the exponential's."""
    v, distances = 3.0, np.linspace(0, 5, 200_001)
    gaussian = distances[np.searchsorted(erf(v * distances), alpha)]
    assert rectification_threshold(alpha, "gaussian") == pytest.approx(6 * np.exp(-((v * gaussian) ** 2)), rel=1e-3)
    exponential = distances[np.searchsorted(1 - np.exp(-(v**2) * distances), alpha)]
    assert rectification_threshold(alpha, "exponential") == pytest.approx(6 * np.exp(-(v**2) * exponential), rel=1e-3)


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("backend", ["numba", "torch"])
def test_influence_is_the_sum_over_anchors(influence: str, backend: str, source: Outputs, target: NDArray[Any]) -> None:
    model = fitted(source, influence=influence, backend=backend)
    np.testing.assert_allclose(model.influence(target), plain_influences(model, target).sum(axis=1), atol=1e-4)


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("rectify", ["total", "single", None])
def test_correctness_by_the_equations(influence: str, rectify: Any, source: Outputs, target: NDArray[Any]) -> None:
    model = fitted(source, influence=influence, rectify=rectify, alpha=0.7, max_epochs=60)
    each = plain_influences(model, target)
    total = each.sum(axis=1)
    felt = {"total": np.abs(total), "single": np.abs(each).max(axis=1), None: np.full(len(target), np.inf)}[rectify]
    expected = np.where(felt < model.threshold_, 1 / 4, expit(total))
    clear = np.abs(felt - model.threshold_) > 1e-4
    assert clear.mean() > 0.98
    estimate = model.estimate(target)
    assert estimate.correctness is not None
    np.testing.assert_allclose(estimate.correctness[clear], expected[clear], atol=1e-4)
    assert estimate.diagnostics["rectified_share"] == pytest.approx(np.mean(felt < model.threshold_), abs=0.02)


def test_rectification_modes_differ_where_signs_cancel(source: Outputs, target: NDArray[Any]) -> None:
    """Strong influences that cancel are out of reach by their total, and within it singly."""
    model = fitted(source, alpha=0.9)
    row = source.logits[:1]
    model.anchors_ = np.vstack([row, row]).astype(np.float32)
    model.peaks_, model.widths_ = np.array([5.0, -5.0], dtype=np.float32), np.ones(2, dtype=np.float32)
    values = {mode: model.set_params(rectify=mode).estimate(row).accuracy for mode in ("total", "single", None)}
    assert values == {"total": pytest.approx(0.25), "single": pytest.approx(0.5), None: pytest.approx(0.5)}
    model.peaks_ = np.array([0.5, 0.5], dtype=np.float32)  # 1.0 together: below the threshold of 1.55 in every mode
    values = {mode: model.set_params(rectify=mode).estimate(row).accuracy for mode in ("total", "single", None)}
    assert values == {"total": pytest.approx(0.25), "single": pytest.approx(0.25), None: pytest.approx(expit(1.0))}


# ------------------------------------------------------------------------------------------------------------ training
@pytest.mark.parametrize(
    "learn",
    [("anchors", "peaks", "widths"), ("peaks", "widths"), ("anchors", "widths"), ("anchors", "peaks"), ("peaks",)],
    ids="+".join,
)
@pytest.mark.parametrize("influence", INFLUENCES)
def test_only_what_is_learned_changes(learn: tuple[str, ...], influence: str, source: Outputs) -> None:
    start, model = (fitted(source, influence=influence, learn=parts) for parts in ((), learn))
    for part in PARTS:
        before, after = getattr(start, f"{part}_"), getattr(model, f"{part}_")
        if part in learn:
            assert np.abs(after - before).max() > 1e-3, part
        else:
            np.testing.assert_array_equal(after, before, err_msg=part)


def test_learning_nothing_is_said_to_be_that(source: Outputs) -> None:
    assert fitted(source, learn=()).stop_reason_ == "nothing_to_learn"


def test_sampled_anchors_are_source_rows_and_random_ones_are_not(source: Outputs) -> None:
    units = source.logits / np.linalg.norm(source.logits, axis=1, keepdims=True)
    nearest = {}
    for init in ("balanced", "sample", "random"):
        anchors = fitted(source, init=init, learn=("peaks",)).anchors_
        np.testing.assert_allclose(np.linalg.norm(anchors, axis=1), 1, atol=1e-5)
        nearest[init] = np.abs(anchors[:, None] - units[None]).max(axis=2).min(axis=1)
    assert nearest["balanced"].max() < 1e-6
    assert nearest["sample"].max() < 1e-6
    assert nearest["random"].min() > 1e-4


def test_balanced_anchors_come_from_rare_classes_too(make_outputs: Callable[..., Outputs]) -> None:
    everything = make_outputs(6000, 5, 0)
    predicted = everything.logits.argmax(axis=1)
    rows = np.concatenate([np.flatnonzero(predicted == label)[: 800 if label else 40] for label in range(5)])
    source = Outputs(everything.logits[rows], everything.labels[rows] if everything.labels is not None else None)
    counts = {}
    for init in ("balanced", "sample"):
        anchors = fitted(source, init=init, learn=("peaks",), n_anchors=150).anchors_
        counts[init] = np.bincount(anchors.argmax(axis=1), minlength=5)
    assert counts["balanced"].min() >= 20
    assert counts["sample"][0] <= 6


def test_sampled_anchors_start_with_the_sign_of_their_row(source: Outputs) -> None:
    model = fitted(source, learn=("widths",), n_anchors=400)
    units = source.logits / np.linalg.norm(source.logits, axis=1, keepdims=True)
    row = (model.anchors_ @ units.T).argmax(axis=1)
    correct = (source.logits.argmax(axis=1) == source.labels)[row]
    np.testing.assert_array_equal(model.peaks_ > 0, correct)
    assert len(np.unique(np.abs(model.peaks_))) == 1


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("init", ["balanced", "sample", "random"])
def test_training_lowers_the_loss_and_separates(influence: str, init: str, source: Outputs) -> None:
    model = fitted(source, influence=influence, init=init, max_epochs=60, rectify=None)
    losses = [entry["loss"] for entry in model.history_]
    assert losses[-1] < 0.9 * losses[0]
    correct = source.logits.argmax(axis=1) == source.labels
    values = model.estimate(source.logits).correctness
    assert values is not None
    assert values[correct].mean() > values[~correct].mean() + 0.1


def test_history_has_every_epoch(source: Outputs) -> None:
    model = fitted(source, max_epochs=7, epsilon=1e-12)
    assert [entry["epoch"] for entry in model.history_] == [1, 2, 3, 4, 5, 6, 7]
    assert all(set(entry) == {"epoch", "loss", "accuracy"} for entry in model.history_)
    assert model.stop_reason_ == "max_epochs"
    diagnostics = model.estimate(source.logits).diagnostics
    assert (diagnostics["epochs"], diagnostics["stop_reason"]) == (7, "max_epochs")


def test_history_is_of_the_batches_before_their_steps(source: Outputs) -> None:
    start = fitted(source, learn=(), max_epochs=2)
    expected = expit(start.influence(source.logits)).mean()
    assert start.history_[0]["accuracy"] == pytest.approx(expected, abs=1e-5)
    whole = fitted(source, batch_size=len(source), max_epochs=2, epsilon=1e-12)
    assert whole.history_[0] == pytest.approx(start.history_[0], abs=1e-5)
    assert abs(whole.history_[1]["accuracy"] - expected) > 1e-5


def test_training_stops_at_the_first_epoch_within_epsilon(source: Outputs) -> None:
    whole = fitted(source, max_epochs=40, epsilon=1e-12, batch_size=100)
    apart = [abs(entry["accuracy"] - whole.source_accuracy_) for entry in whole.history_]
    epsilon = sorted(apart)[len(apart) // 2]
    first = next(i for i, distance in enumerate(apart) if distance < epsilon)
    stopped = fitted(source, max_epochs=40, epsilon=epsilon, batch_size=100)
    assert stopped.stop_reason_ == "converged"
    assert stopped.history_ == whole.history_[: first + 1]
    assert len(fitted(source, epsilon=1.0).history_) == 1


@pytest.mark.parametrize("influence", INFLUENCES)
def test_seeds_decide(influence: str, source: Outputs, target: NDArray[Any]) -> None:
    one, same, other = (fitted(source, influence=influence, seed=seed) for seed in (3, 3, 4))
    for part in PARTS:
        np.testing.assert_array_equal(getattr(one, f"{part}_"), getattr(same, f"{part}_"))
    assert one.history_ == same.history_
    assert not np.array_equal(one.anchors_, other.anchors_)
    assert one.estimate(target).accuracy != other.estimate(target).accuracy


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("init", ["balanced", "sample", "random"])
def test_backends_agree(influence: str, init: str, source: Outputs, target: NDArray[Any]) -> None:
    options: dict[str, Any] = {"influence": influence, "init": init, "alpha": 0.95}
    estimates = [fitted(source, backend=backend, **options).estimate(target) for backend in ("numba", "torch")]
    assert estimates[0].accuracy == pytest.approx(estimates[1].accuracy, abs=1e-4)
    correctness = [estimate.correctness for estimate in estimates]
    assert correctness[0] is not None
    assert correctness[1] is not None
    np.testing.assert_allclose(correctness[0], correctness[1], atol=1e-3)


# ------------------------------------------------------------------------------------------------------------ defaults
@pytest.mark.parametrize("influence", INFLUENCES)
def test_alpha_has_a_default_for_each_influence(influence: Any, source: Outputs, target: NDArray[Any]) -> None:
    model = fitted(source, influence=influence)
    assert model.alpha is None
    assert model.threshold_ == pytest.approx(rectification_threshold(model.alpha_, influence))
    diagnostics = model.estimate(target).diagnostics
    assert (diagnostics["alpha"], diagnostics["threshold"]) == (model.alpha_, model.threshold_)
    assert 0.85 < model.alpha_ < 1


@pytest.mark.parametrize("influence", INFLUENCES)
def test_what_points_the_other_way_is_out_of_reach(influence: str, source: Outputs) -> None:
    """With logits all around (3, 3, 3, 3), their negatives are nearly as far away as cosine distance can tell."""
    near = source.logits + 3
    model = ALSA(influence=influence, geometry="cosine", folds=1).fit(near, source.labels)  # type: ignore[arg-type]
    assert model.estimate(near).diagnostics["rectified_share"] < 0.3
    away = model.estimate(-near)
    assert away.diagnostics["rectified_share"] == 1.0
    assert away.accuracy == pytest.approx(1 / 4)


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize("rectify", ["total", "single"])
@pytest.mark.parametrize("signal", [0.3, 1.0, 3.0])
def test_alpha_of_its_own_leaves_the_source_be(
    influence: Any, rectify: Any, signal: float, make_outputs: MakeOutputs
) -> None:
    """Rectification changes the mean over source rows that are no anchors (here, all) by the tolerance at most."""
    source = make_outputs(n=600, c=4, signal=signal)
    model = fitted(source, influence=influence, rectify=rectify, init="random", n_anchors=200, max_epochs=60)
    default = DEFAULTS[model._power]
    rectified = model.estimate(source.logits).accuracy
    plain = model.set_params(rectify=None).estimate(source.logits).accuracy
    assert abs(rectified - plain) <= default.tolerance + 1e-9
    assert default.alpha - 1e-9 <= model.alpha_ < 1


def test_the_highest_threshold_that_changes_little_enough() -> None:
    """Five rows, two classes: rectifying the two least felt rows changes the mean by 0.2 / 5, three by 0.6 / 5."""
    total = np.log(np.array([0.6, 0.6, 0.9, 0.5, 0.9]) / np.array([0.4, 0.4, 0.1, 0.5, 0.1]))
    felt = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    for tolerance, expected in ((0.01, 0.05), (0.03, 0.15), (0.05, 0.25), (0.13, 0.45), (0.3, 1.0)):
        assert harmless_threshold(total, felt, 2, 1.0, tolerance) == pytest.approx(expected)
    assert harmless_threshold(total, felt, 2, 0.25, 0.13) == 0.25


@pytest.mark.parametrize("backend", ["numba", "torch"])
@pytest.mark.parametrize("influence", INFLUENCES)
def test_rows_that_feel_nothing(influence: Any, backend: str, make_outputs: MakeOutputs) -> None:
    """Anchors too narrow for most rows: no threshold is low enough, and all rows count as within reach."""
    source = make_outputs(n=200, c=4, signal=3.0)
    model = fitted(source, learn=(), influence=influence, backend=backend)
    model.widths_ = np.full_like(model.widths_, 1e4)
    assert np.mean(np.abs(model.influence(source.logits)) < 1e-15) > 0.5
    total = model.influence(source.logits)
    alpha = model._harmless_alpha(total, np.abs(total))
    assert rectification_threshold(alpha, influence) == pytest.approx(0, abs=1e-12)


def test_a_given_alpha_is_used(source: Outputs) -> None:
    model = fitted(source, alpha=0.5)
    assert (model.alpha_, model.threshold_) == (0.5, rectification_threshold(0.5, "gaussian"))


def test_constants_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        CONSTANTS.unified_peak = 5.0  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        DEFAULTS[2] = DEFAULTS[1]  # type: ignore[index]


def test_default_sizes(make_outputs: MakeOutputs) -> None:
    for n, c in ((1, 2), (2, 2), (300, 2), (3000, 77), (50_000, 1000)):
        assert 1 <= default_anchor_count(n, c) <= n
    assert default_anchor_count(3000, 77) > default_anchor_count(3000, 10)
    epochs = [len(fitted(make_outputs(n=n), max_epochs=None, epsilon=1e-12).history_) for n in (100, 5000)]
    assert epochs[0] >= epochs[1] >= 3


@pytest.mark.parametrize("influence", INFLUENCES)
@pytest.mark.parametrize(("n", "c", "signal"), [(300, 2, 1.5), (3000, 77, 4.0)])
def test_defaults_do_not_start_saturated_or_blind(
    influence: Any, n: int, c: int, signal: float, make_outputs: MakeOutputs
) -> None:
    """Before training: a loss below that of a coin, few probabilities of 0 or 1, no anchor that reaches all."""
    source = make_outputs(n=n, c=c, signal=signal)
    plain: dict[str, Any] = {"geometry": "cosine", "folds": 1}
    model = ALSA(influence=influence, n_anchors=default_anchor_count(n, c), learn=(), **plain)
    model.fit(source.logits, source.labels)
    values = expit(model.influence(source.logits))
    assert 0.3 < source.accuracy < 0.95  # type: ignore[operator]
    assert model.history_[0]["loss"] < np.log(2)
    assert np.mean((values < 1e-4) | (values > 1 - 1e-4)) < 0.08
    assert values.mean() == pytest.approx(source.accuracy, abs=0.1)
    assert values.std() > 0.01
    each = plain_influences(model, source.logits) / model.peaks_
    assert each.mean() < 2 / c


def test_few_samples_are_not_overfitted(make_outputs: MakeOutputs) -> None:
    """400 reviews: the estimate on 4,000 others of the same kind stays within 5 points."""
    source, fresh = make_outputs(n=400, c=2, signal=1.2), make_outputs(n=4000, c=2, seed=9, signal=1.2)
    influence: Any
    for influence in INFLUENCES:
        model = ALSA(influence=influence).fit(source.logits, source.labels)
        assert model.estimate(fresh.logits).accuracy == pytest.approx(fresh.accuracy, abs=0.05), influence


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"influence": "linear"}, r"influence must be one of gaussian, exponential; got 'linear'\."),
        ({"rectify": "all"}, r"rectify must be one of total, single or none; got 'all'\."),
        ({"init": "zeros"}, r"init must be one of balanced, sample, random; got 'zeros'\."),
        ({"learn": ("bias",)}, r"learn must be a collection of anchors, peaks, widths; got \('bias',\)\."),
        ({"learn": "peaks"}, r"learn must be a collection of names; got 'peaks'\."),
        ({"alpha": 1.0}, r"alpha must be between 0 and 1; got 1\.0\."),
        ({"n_anchors": 0}, r"n_anchors must be positive and finite; got 0\."),
        ({"epsilon": -1}, r"epsilon must be positive and finite; got -1\."),
        ({"learning_rate": float("nan")}, r"learning_rate must be positive and finite; got nan\."),
        ({"backend": "jax"}, r"backend must be one of numba, torch; got 'jax'\."),
        ({"device": "cuda"}, r"backend 'numba' runs on the CPU; got device 'cuda'\."),
    ],
)
def test_wrong_options(params: dict[str, Any], message: str, source: Outputs) -> None:
    with pytest.raises(InputError, match=message):
        ALSA(**params).fit(source.logits, source.labels)


def test_influence_is_an_option_and_a_method(source: Outputs) -> None:
    model = fitted(source, influence="exponential")
    with pytest.raises(AttributeError, match=r"influence is a method.* use set_params\(influence='gaussian'\)"):
        model.influence = "gaussian"  # type: ignore[assignment, method-assign]
    assert model.influence(source.logits).shape == (400,)
    copy = clone(model)
    assert copy.get_params() == model.get_params() == ALSA(**model.get_params()).get_params()
    assert copy.get_params()["influence"] == "exponential"
    assert copy.set_params(influence="gaussian").get_params()["influence"] == "gaussian"
    assert (copy.method, model.method) == ("alsa-g", "alsa-e")


# ----------------------------------------------------------------------------------------------------------- real data
@pytest.mark.parametrize(
    ("suite", "models", "every", "bound"),
    [
        ("amazon_blitzer", slice(None, None, 3), 1, 6.0),
        ("citation_domains", slice(None, None, 3), 1, 4.0),
        ("cifar10c", slice(1), 1, 7.0),
        ("mnist", slice(None), 5, 9.0),
        ("banking77", slice(None, None, 2), 2, 9.0),
    ],
)
def test_error_on_real_suites(suite: str, models: slice, every: int, bound: float, data_root: Path) -> None:
    """The mean absolute error of the defaults, in points, on some models and targets of each suite."""
    errors = []
    for folder in sorted((data_root / "logits" / suite).iterdir())[models]:
        with np.load(folder / "source.npz") as file:
            model = make("alsa-g").fit(file["logits"], file["labels"])
        for path in sorted(folder.glob("target_*.npz"))[::every]:
            with np.load(path) as file:
                truth = np.mean(file["logits"].argmax(axis=1) == file["labels"])
                errors.append(model.estimate(file["logits"]).accuracy - truth)
    assert 100 * np.abs(errors).mean() <= bound
