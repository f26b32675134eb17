"""COT and COTT against linear programs solved by others, and the dual against the exact solver."""

from __future__ import annotations

import itertools
import subprocess
import sys
from functools import reduce as fold
from pathlib import Path
from typing import Any

import numpy as np
import ot
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from leadline import InputError
from leadline.estimators import ConfidenceTransport, ThresholdedTransport, load
from leadline.estimators.base import Reduced
from leadline.estimators.samples import Sample
from leadline.estimators.transport import _matching_cost, _pieces
from leadline.estimators.transport_base import TransportEstimator
from leadline.numeric import log_softmax

Array = NDArray[np.float64]
KINDS: list[type[TransportEstimator]] = [ConfidenceTransport, ThresholdedTransport]


def classifier(n: int, c: int, seed: int, *, tilt: float = 0.0, sharpness: float = 1.5) -> tuple[Array, Any]:
    """Return logits and labels of an imperfect classifier; with ``tilt``, one that prefers some classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, n)
    logits = rng.normal(size=(n, c))
    logits[np.arange(n), labels] += 2.5
    return sharpness * (logits + tilt * rng.normal(size=c)), labels


def linear_program(logits: Array, label_share: Array, temperature: float) -> Array:
    """Return the cost of each row in the n x c problem, by SciPy."""
    kept = label_share > 0
    cost = 1 - np.exp(log_softmax(logits, temperature))[:, kept]
    n, k = cost.shape
    rows = np.kron(np.eye(n), np.ones(k))
    columns = np.kron(np.ones(n), np.eye(k))
    found = linprog(
        cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([np.full(n, 1 / n), label_share[kept]]),
        method="highs",
    )  # fmt: skip
    return np.asarray((found.x.reshape(n, k) * cost).sum(axis=1) * n)


def simplex_accuracy(model: TransportEstimator, source: tuple[Array, Any], target: Array) -> float:
    """Return the estimate from the plans that POT's network simplex gives for all rows as they are."""

    def costs(logits: Array) -> Array:
        kept = model.label_share_ > 0
        cost = 1 - np.exp(log_softmax(logits, model.temperature_))[:, kept]
        plan = ot.emd(np.full(len(cost), 1 / len(cost)), model.label_share_[kept], cost, numItermax=10**7)
        return np.asarray((plan * cost).sum(axis=1) * len(cost))

    of_target = costs(target)
    if isinstance(model, ConfidenceTransport):
        return float(1 - of_target.mean())
    right = np.count_nonzero(source[0].argmax(axis=1) == source[1])
    return float(np.mean(of_target <= np.sort(costs(source[0]))[right - 1] + 1e-12))


@pytest.mark.parametrize("solver", ["exact", "auto"])
@pytest.mark.parametrize(("n", "c"), [(3, 2), (40, 3), (60, 10), (7, 20)])
def test_costs_are_those_of_the_linear_program(n: int, c: int, solver: Any) -> None:
    source, labels = classifier(80, c, 1)
    target, _ = classifier(n, c, 2, tilt=0.8)
    cot = ConfidenceTransport(solver=solver).fit(source, labels)
    cott = ThresholdedTransport(solver=solver).fit(source, labels)
    costs = linear_program(target, cot.label_share_, cot.temperature_)
    of_source = np.sort(linear_program(source, cot.label_share_, cot.temperature_))
    threshold = of_source[np.count_nonzero(source.argmax(axis=1) == labels) - 1]
    estimate = cot.estimate(target)
    assert estimate.correctness is not None
    np.testing.assert_allclose(estimate.correctness, 1 - costs, atol=1e-5)
    np.testing.assert_allclose(estimate.accuracy, 1 - costs.mean(), atol=1e-7)
    np.testing.assert_allclose(cott.threshold_, threshold, atol=1e-7)
    np.testing.assert_allclose(cott.estimate(target).accuracy, np.mean(costs <= threshold + 1e-7), atol=1e-7)


def test_label_atoms_give_the_same_as_one_atom_for_each_label() -> None:
    source, labels = classifier(6, 3, 3)
    target, _ = classifier(6, 3, 4, tilt=1.0)
    model = ConfidenceTransport().fit(source, labels)
    cost = 1 - np.exp(log_softmax(target, model.temperature_))
    best = min(cost[np.arange(6), list(order)].mean() for order in itertools.permutations(labels))
    np.testing.assert_allclose(model.estimate(target).accuracy, 1 - best, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "c", "tilt"), [(2000, 2, 0.5), (3000, 10, 1.0), (1500, 77, 0.5), (2000, 10, 0.0), (800, 200, 0.7)]
)
def test_dual_agrees_with_exact(kind: type[TransportEstimator], n: int, c: int, tilt: float) -> None:
    source = classifier(1000, c, 5)
    target, _ = classifier(n, c, 6, tilt=tilt)
    exact, found = (kind(solver=solver).fit(*source) for solver in ("exact", "auto"))
    expected = simplex_accuracy(exact, source, target)
    np.testing.assert_allclose(exact.estimate(target).accuracy, expected, atol=1e-5)
    estimate = found.estimate(target)
    np.testing.assert_allclose(estimate.accuracy, expected, atol=1e-5)
    assert estimate.diagnostics["solver"] == "dual"
    assert estimate.diagnostics["duality_gap"] < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_dual_agrees_with_exact_for_a_thousand_classes(kind: type[TransportEstimator]) -> None:
    source = classifier(400, 1000, 7)
    target, _ = classifier(300, 1000, 8, tilt=0.3)
    exact = kind(solver="exact").fit(*source).estimate(target)
    np.testing.assert_allclose(kind(solver="auto").fit(*source).estimate(target).accuracy, exact.accuracy, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature_scaling", [True, False])
def test_dual_agrees_with_exact_on_ties(kind: type[TransportEstimator], temperature_scaling: bool) -> None:
    logits, labels = classifier(1500, 10, 9, tilt=0.8, sharpness=25.0)
    rounded = np.round(logits / 30).astype(np.float16) * 30  # a few hundred distinct rows, most of them saturated
    target = rounded[:900] + np.array([40.0] + [0.0] * 9)
    models = [kind(solver=s, temperature_scaling=temperature_scaling).fit(rounded, labels) for s in ("exact", "auto")]
    exact, found = (model.estimate(target).accuracy for model in models)
    np.testing.assert_allclose(found, exact, atol=1e-4)


@pytest.mark.parametrize("solver", ["exact", "auto"])
def test_equal_rows_are_counted_as_an_n_by_n_plan_would(solver: Any) -> None:
    source = np.log([[0.9, 0.1]] * 3 + [[0.2, 0.8]] * 5 + [[0.6, 0.4]] * 2)
    labels = [0] * 3 + [1] * 5 + [0, 1]
    model = ThresholdedTransport(solver=solver, temperature_scaling=False).fit(source, labels)
    np.testing.assert_allclose(model.threshold_, 0.4, atol=1e-8)
    estimate = model.estimate(np.log([[0.7, 0.3]] * 10))  # 4 of the 10 go to the first label, at a cost of 0.3
    assert estimate.correctness is not None
    np.testing.assert_allclose(estimate.accuracy, 0.4, atol=1e-7)
    np.testing.assert_allclose(estimate.correctness, 0.4, atol=1e-7)


@pytest.mark.parametrize("solver", ["exact", "auto"])
@pytest.mark.parametrize("c", [2, 10, 60])
def test_cott_on_the_source_is_the_source_accuracy(solver: Any, c: int) -> None:
    source, labels = classifier(700, c, 10, tilt=0.4)
    model = ThresholdedTransport(solver=solver).fit(source, labels)
    np.testing.assert_allclose(model.estimate(source).accuracy, model.source_accuracy_, atol=1e-9)
    fortran = model.estimate(np.asfortranarray(source))
    np.testing.assert_allclose(fortran.accuracy, model.source_accuracy_, atol=1e-9)


def test_exact_source_and_dual_target_fit_together() -> None:
    source, labels = classifier(700, 8, 10, tilt=0.4)
    model = ThresholdedTransport(solver="exact").fit(source, labels)
    estimate = model.set_params(solver="auto").estimate(source)
    assert estimate.diagnostics["solver"] == "dual"
    np.testing.assert_allclose(estimate.accuracy, model.source_accuracy_, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_any_size_and_order_give_the_same(kind: type[TransportEstimator]) -> None:
    model = kind(solver="auto").fit(*classifier(500, 12, 11))
    target, _ = classifier(2500, 12, 12, tilt=0.7)
    whole = model.estimate(target)
    rng = np.random.default_rng(0)
    blocks = np.array_split(target[rng.permutation(len(target))], [1, 3, 700, 701, 2000])
    found = model.estimate_blocks(lambda: blocks)
    assert found.correctness is None
    np.testing.assert_allclose(found.accuracy, whole.accuracy, rtol=0, atol=1e-9)
    assert [part.count for part in found.by_class] == [part.count for part in whole.by_class]
    by_class = [np.array([part.accuracy for part in e.by_class if part.count], dtype=float) for e in (found, whole)]
    np.testing.assert_allclose(by_class[0], by_class[1], atol=1e-7)


def test_blocks_change_neither_counts_nor_the_rows_that_are_kept() -> None:
    model = ConfidenceTransport(solver="auto").fit(*classifier(500, 5, 13))
    target, _ = classifier(90_000, 5, 14, tilt=0.7)
    near = model.begin(Sample.of(target, 10_000), len(target), 1)
    small = [target[start : start + 7000] for start in range(0, len(target), 7000)]
    for state in (near, dict(near) | {"most": np.asarray(1000.0)}):
        whole = model.reduce(target, state)
        parts = fold(Reduced.__add__, (model.reduce(block, state) for block in small))
        assert whole.kept is not None
        assert parts.kept is not None
        np.testing.assert_array_equal(parts.kept.keys, whole.kept.keys)
        np.testing.assert_array_equal(parts.kept.logits, whole.kept.logits)
        for name, amount in whole.sums.items():
            np.testing.assert_array_equal(amount, parts.sums[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "c", "room"), [(20_000, 3, 2000), (20_000, 10, 2000), (6000, 60, 1000), (8000, 10, 300)])
def test_a_sample_and_the_near_rows_give_what_all_rows_do(
    kind: type[TransportEstimator], n: int, c: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kind(solver="auto").fit(*classifier(1000, c, 5))
    target, _ = classifier(n, c, 6, tilt=0.6)
    target[: n // 4] = np.round(target[: n // 4])  # some ties
    whole = model.estimate(target)
    monkeypatch.setattr("leadline.estimators.transport_base._SOLVED_ROWS", room)
    found = model.estimate(target)
    np.testing.assert_allclose(found.accuracy, whole.accuracy, atol=1e-7)
    assert found.diagnostics["duality_gap"] < 1e-6
    assert found.diagnostics["passes"] <= 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["exact", "auto"])
def test_rows_and_classes_in_any_order(kind: type[TransportEstimator], solver: Any) -> None:
    source, labels = classifier(400, 6, 15)
    target, _ = classifier(300, 6, 16, tilt=0.9)
    target[100:200] = np.round(target[100:200])
    target[200:] = target[250]
    model = kind(solver=solver).fit(source, labels)
    estimate = model.estimate(target)
    assert estimate.correctness is not None
    rng = np.random.default_rng(1)
    order, classes = rng.permutation(len(target)), rng.permutation(6)
    shuffled = model.estimate(target[order])
    np.testing.assert_allclose(shuffled.accuracy, estimate.accuracy, atol=1e-9)
    assert shuffled.correctness is not None
    np.testing.assert_allclose(shuffled.correctness, estimate.correctness[order], atol=1e-5)
    renamed = kind(solver=solver).fit(source[:, classes], np.argsort(classes)[labels]).estimate(target[:, classes])
    np.testing.assert_allclose(renamed.accuracy, estimate.accuracy, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["exact", "auto"])
def test_odd_sources(kind: type[TransportEstimator], solver: Any) -> None:
    logits, labels = classifier(60, 4, 17)
    target, _ = classifier(50, 4, 18)
    wrong = (logits.argmax(axis=1) + 1) % 4
    lacking = np.where(labels == 3, 0, labels)  # a class that the source never has
    silent = logits - 100 * np.eye(4)[2]  # a class that is never predicted
    for source, truth in ((logits, logits.argmax(axis=1)), (logits, wrong), (logits, lacking), (silent, labels),
                          (logits, np.zeros(60, dtype=int))):  # fmt: skip
        model = kind(solver=solver).fit(source, truth)
        for rows in (target, target[:1], source):
            estimate = model.estimate(rows)
            assert estimate.correctness is not None
            assert 0 <= estimate.accuracy <= 1
            assert ((estimate.correctness >= -1e-12) & (estimate.correctness <= 1 + 1e-12)).all()
            assert estimate.diagnostics.get("duality_gap", 0.0) < 1e-6


@pytest.mark.parametrize("solver", ["exact", "auto"])
def test_thresholds_without_errors_and_without_anything_else(solver: Any) -> None:
    logits, _ = classifier(60, 4, 17)
    right = ThresholdedTransport(solver=solver).fit(logits, logits.argmax(axis=1))
    assert right.estimate(logits).accuracy == pytest.approx(1.0, abs=1e-9)
    wrong = ThresholdedTransport(solver=solver).fit(logits, (logits.argmax(axis=1) + 1) % 4)
    assert wrong.estimate(logits).accuracy == pytest.approx(0.0, abs=1e-9)


def test_one_label_takes_everything() -> None:
    logits, _ = classifier(30, 3, 19)
    model = ConfidenceTransport(solver="auto", temperature_scaling=False).fit(logits, np.ones(30, dtype=int))
    correctness = model.estimate(logits).correctness
    assert correctness is not None
    np.testing.assert_allclose(correctness, np.exp(log_softmax(logits))[:, 1], atol=1e-12)


def test_pieces_of_a_split_row_and_of_tied_rows() -> None:
    log_p = np.log([[0.7, 0.2, 0.1]] * 2)
    shares = np.array([[0.5, 0.5, 0.0], [0.45, 0.45, 0.1]])
    costs, masses = _pieces(log_p, shares, np.array([1.0, 10.0]))
    np.testing.assert_allclose(costs[:, :3], 1 - np.exp(log_p), atol=1e-12)
    np.testing.assert_allclose(masses, [[0.0, 0.0, 0.0, 1.0], [0.4, 0.4, 0.1, 0.1]], atol=1e-9)
    np.testing.assert_allclose(costs[:, 3], [0.55, 0.55], atol=1e-5)


def test_matching_cost_weighs_masses() -> None:
    costs, masses = np.array([0.5, 0.1, 0.3, 0.2]), np.array([1.0, 0.5, 1.0, 0.5])
    assert _matching_cost(costs, masses, 1) == pytest.approx(0.3)
    assert _matching_cost(costs, masses, 2) == pytest.approx(0.2)
    assert _matching_cost(costs, masses, 0) == pytest.approx(0.5)
    assert _matching_cost(costs, masses, 3) < 0.1
    assert _matching_cost(np.zeros(2), np.ones(2), 2) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(kind: type[TransportEstimator], tmp_path: Path) -> None:
    model = kind(solver="auto").fit(*classifier(100, 3, 20))
    target, _ = classifier(80, 3, 21, tilt=1.0)
    model.save(tmp_path / "model.leadline")
    again = load(tmp_path / "model.leadline")
    assert again.get_params() == model.get_params()
    assert again.estimate(target).accuracy == model.estimate(target).accuracy


def test_unknown_solver() -> None:
    with pytest.raises(InputError, match=r"solver must be one of auto, exact; got 'simplex'"):
        ConfidenceTransport(solver="simplex").fit(*classifier(20, 2, 0))  # type: ignore[arg-type]


def test_pot_is_imported_by_the_exact_solver_alone_and_as_it_is() -> None:
    """The dual does without; the exact solver changes no environment, and POT serves the caller's tensors as well."""
    code = """
import os, sys, numpy as np
from leadline.estimators import ConfidenceTransport
logits = np.random.default_rng(0).normal(size=(20, 3))
before = dict(os.environ)
model = ConfidenceTransport().fit(logits, logits.argmax(axis=1))
assert model.estimate(logits).diagnostics["solver"] == "dual"
assert "ot" not in sys.modules
assert model.set_params(solver="exact").estimate(logits).diagnostics["solver"] == "exact"
assert dict(os.environ) == before
loaded = sys.modules["ot"]
import ot, torch
assert ot is loaded
half = torch.full((2,), 0.5)
assert isinstance(ot.emd(half, half, torch.eye(2)), torch.Tensor)
"""
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("cifar10c/resnet20", "gaussian_noise_5"),  # hundreds of tied rows: logits in half precision
        ("banking77/minilm_lr", "chatter"),
        ("mnist/cnn_imb_s0", "brightness_5"),
        ("amazon_blitzer/star_books_mlp", "dvd"),
        ("citation_domains/acmv9_gat", "dblpv7"),
    ],
)
def test_dual_agrees_with_exact_on_real_logits(
    kind: type[TransportEstimator], model: str, target: str, data_root: Path
) -> None:
    with np.load(data_root / "logits" / model / "source.npz") as file:
        source = (file["logits"], file["labels"])
    with np.load(data_root / "logits" / model / f"target_{target}.npz") as file:
        logits = file["logits"]
    exact, found = (kind(solver=solver).fit(*source) for solver in ("exact", "auto"))
    expected = simplex_accuracy(exact, source, logits)
    np.testing.assert_allclose(exact.estimate(logits).accuracy, expected, atol=1e-4)
    estimate = found.estimate(logits)
    np.testing.assert_allclose(estimate.accuracy, expected, atol=1e-4)
    assert estimate.diagnostics["duality_gap"] < 1e-6
