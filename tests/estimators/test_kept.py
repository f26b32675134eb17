"""Rows of which sums and a sample were kept: exact where all were, near where few were, for all rows and groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.data.outputs import Outputs
from leadline.estimators import Estimator
from leadline.estimators.kept import Kept, estimate_kept, keep

Maker = Callable[..., Outputs]


@pytest.fixture(scope="module")
def models(make_outputs: Maker) -> dict[str, Estimator]:
    source = make_outputs(1_500, 4, seed=0)
    return {name: ll.make(name).fit(source) for name in ("ac", "atc-mc", "im", "auto", "cot")}


def kept_of(model: Estimator, target: Outputs, groups: NDArray[np.intp], size: int) -> Kept:
    numbers = [7, 3, 11]
    sums, sample = keep(model, model.rows_of(target.logits), groups, numbers, size)
    return Kept.of_sample(sums, sample, size)


@pytest.mark.parametrize("name", ["ac", "atc-mc", "im", "auto", "cot"])
def test_where_every_row_was_kept_it_is_the_estimate_on_every_row(
    name: str, models: dict[str, Estimator], make_outputs: Maker
) -> None:
    model, target = models[name], make_outputs(900, 4, seed=1, signal=1.2)
    groups = np.arange(900) % 3
    found = estimate_kept(model, kept_of(model, target, groups, 5_000), confidence_level=0.9)
    expected = model.estimate(target)
    np.testing.assert_allclose(found.whole.accuracy, expected.accuracy, atol=1e-6)
    np.testing.assert_allclose(found.whole.interval, expected.interval, atol=1e-6)
    assert found.whole.n_samples == 900
    # The mean over the groups is that of all rows, for methods whose estimate is a mean over rows.
    if model.passes != "many":
        shares = [found.groups[number].accuracy for number in (7, 3, 11)]
        np.testing.assert_allclose(np.mean(shares), expected.accuracy, atol=1e-6)


def test_few_kept_rows_do_better_than_those_rows_alone(models: dict[str, Estimator], make_outputs: Maker) -> None:
    """What ``auto`` says beyond confidence varies less than what it says: confidence is known of all rows."""
    model = models["auto"]
    errors, alone = [], []
    for seed in range(4):
        target = make_outputs(8_000, 4, seed=10 + seed, signal=1.4)
        kept = kept_of(model, target, np.zeros(8_000, dtype=np.intp), 400)
        assert len(kept.rows) == 400
        expected = model.estimate(target).accuracy
        errors.append(abs(estimate_kept(model, kept, confidence_level=0.9).whole.accuracy - expected))
        alone.append(abs(model.estimate(kept.rows).accuracy - expected))
    assert np.mean(errors) < 0.5 * np.mean(alone)
    assert np.mean(errors) < 0.01


def test_a_group_that_differs_is_told_apart_by_its_sums(models: dict[str, Estimator], make_outputs: Maker) -> None:
    """A group with hardly any row in the sample has its own confidence, and what all rows say beyond it."""
    model = models["auto"]
    good, bad = make_outputs(6_000, 4, seed=20, signal=2.0), make_outputs(300, 4, seed=21, signal=0.5)
    groups = np.repeat([0, 1], [6_000, 300])
    target = Outputs(np.concatenate([good.logits, bad.logits]), metadata={"group": groups})
    found = estimate_kept(model, kept_of(model, target, groups, 500), confidence_level=0.9)
    everything = [row.estimate.accuracy for row in model.estimate_by(target, "group")]
    assert everything[0] - everything[1] > 0.15
    assert abs(found.groups[7].accuracy - everything[0]) < 0.01
    assert abs(found.groups[3].accuracy - everything[1]) < 0.05
    assert found.groups[3].n_samples == 300


def test_sums_and_samples_of_parts_add_up(models: dict[str, Estimator], make_outputs: Maker) -> None:
    model, target = models["auto"], make_outputs(3_000, 4, seed=1)
    rows, groups = model.rows_of(target.logits), np.arange(3_000) % 3
    whole_sums, whole = keep(model, rows, groups, [1, 2, 3], 500)
    parts = [
        keep(model, rows[places], groups[places], [1, 2, 3], 500) for places in np.array_split(np.arange(3_000), 4)
    ]
    joined = sum((part[1] for part in parts[1:]), parts[0][1])
    np.testing.assert_array_equal(joined.keys, whole.keys)
    np.testing.assert_array_equal(joined.logits, whole.logits)
    for number, sums in whole_sums.items():
        total = sum((part[0][number] for part in parts[1:]), parts[0][0][number])
        for name, amount in sums.sums.items():
            np.testing.assert_allclose(total.sums[name], amount, rtol=1e-12)
