"""Plans: rows at random by stratum, beginnings that are samples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from leadline import InputError, LabelPlan, Outputs, plan_labels
from leadline.estimators.draws import row_keys, strata_of
from leadline.labels.strata import allocate, arrange, cut_points

Maker = Callable[..., Outputs]


@pytest.fixture(scope="module")
def model(make_outputs: Maker) -> ll.Auto:
    return ll.Auto().fit(make_outputs(1000, seed=0))


@pytest.fixture(scope="module")
def target(make_outputs: Maker) -> Outputs:
    return Outputs(make_outputs(2000, seed=1, signal=1.5).logits)


def test_plan_has_distinct_rows_and_is_the_same_for_a_seed(model: ll.Auto, target: Outputs) -> None:
    plan = plan_labels(model, target, budget=100, seed=3)
    assert (len(plan), plan.budget, plan.n_rows, plan.seed) == (100, 100, 2000, 3)
    assert len(set(plan.rows.tolist())) == 100
    again, other = plan_labels(model, target.logits, 100, seed=3), plan_labels(model, target, 100, seed=4)
    np.testing.assert_array_equal(plan.rows, again.rows)
    assert (plan.rows != other.rows).any()


def test_every_beginning_has_its_share_of_every_stratum(model: ll.Auto, target: Outputs) -> None:
    plan = plan_labels(model, target, budget=200)
    whole = np.bincount(plan.strata)
    assert len(whole) == 4
    for k in (12, 50, 101, 200):
        counts = np.bincount(plan.strata[:k], minlength=4)
        assert (np.abs(counts - whole * k / 200) <= 1).all()


def draw(strata: Any, counts: list[int], seed: int) -> Any:
    """Return rows as a plan has them: of each stratum so many with the smallest keys, and the strata in turns."""
    rows = [np.flatnonzero(strata == h) for h in range(len(counts))]
    smallest = [part[np.argsort(row_keys(part, seed))] for part in rows]
    return arrange([part[:count] for part, count in zip(smallest, counts, strict=True)], seed)


def test_every_row_of_a_stratum_is_as_likely_at_every_place() -> None:
    strata = np.repeat([0, 1], [6, 4])
    plans = np.stack([draw(strata, [3, 2], seed) for seed in range(6000)])
    first = np.bincount(plans[:, :2].ravel(), minlength=10)
    for rows in (slice(0, 6), slice(6, 10)):
        part = first[rows]
        # Chi-square with 5 and 3 degrees of freedom; 20 is exceeded once in a thousand.
        assert np.sum((part - part.mean()) ** 2 / part.mean()) < 20


def test_pairs_of_rows_are_drawn_together_as_often_as_others() -> None:
    plans = np.stack([draw(np.zeros(8), [2], seed) for seed in range(8000)])
    together = np.bincount(plans.min(axis=1) * 8 + plans.max(axis=1), minlength=64)
    together = together[together > 0]
    assert len(together) == 28
    # Chi-square with 27 degrees of freedom; 56 is exceeded once in a thousand.
    assert np.sum((together - together.mean()) ** 2 / together.mean()) < 56


def test_probabilities_are_those_of_the_draw(model: ll.Auto, target: Outputs) -> None:
    plan = plan_labels(model, target, budget=100)
    # Horvitz-Thompson: the planned rows stand for all rows.
    assert np.sum(1 / plan.probabilities) == pytest.approx(2000)


def test_unsure_rows_are_drawn_more_often_but_sure_ones_are_not_forgotten(model: ll.Auto, target: Outputs) -> None:
    plan = plan_labels(model, target, budget=200)
    shares = np.array([plan.probabilities[plan.strata == h][0] for h in range(4)])
    assert shares.argmax() < 3
    assert shares.min() > 0.6 * 0.1  # two thirds go by rows


def test_allocation_keeps_the_budget_and_the_bounds() -> None:
    correctness = np.concatenate([np.full(3, 0.5), np.full(997, 0.99)])
    strata = np.repeat([0, 1], [3, 997])
    for budget in (2, 10, 999, 1000):
        counts = allocate(correctness, strata, np.array([3, 997]), budget)
        assert counts.sum() == budget
        assert (counts >= 1).all()
        assert (counts <= [3, 997]).all()


def test_equal_values_make_one_stratum_and_few_labels_few() -> None:
    assert len(cut_points(np.full(50, 0.7), 40)) == 0
    varied = np.linspace(0, 1, 1000)
    assert [len(cut_points(varied, budget)) for budget in (5, 25, 40, 500)] == [0, 1, 3, 3]
    assert set(strata_of(varied, cut_points(varied, 100))) == {0, 1, 2, 3}


def test_a_thresholded_method_gets_strata_of_confidence(make_outputs: Maker, target: Outputs) -> None:
    plan = plan_labels(ll.make("atc-mc").fit(make_outputs(1000, seed=0)), target, budget=100)
    assert len(plan.sizes) == 4


def test_round_trip(model: ll.Auto, target: Outputs, tmp_path: Path) -> None:
    plan = plan_labels(model, target, budget=30)
    plan.save(tmp_path / "plan.json")
    again = LabelPlan.load(tmp_path / "plan.json")
    assert again.to_dict() == plan.to_dict()
    with pytest.raises(InputError, match=r"exists; use force=True"):
        plan.save(tmp_path / "plan.json")


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"format": 2}', '{"format": 1, "rows": [0, 0], "strata": [0, 0]}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError, match="plan"):
        LabelPlan.load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rows": [5, 5]}, "distinct"),
        ({"rows": [5, 10]}, "from 0 to 9"),
        ({"strata": [0, 2]}, "strata of a plan must be from 0 to 1"),
        ({"sizes": [10]}, "cuts between them"),
        ({"strata": [1, 1], "sizes": [9, 1]}, "more rows of a stratum"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(change: dict[str, object], reason: str) -> None:
    good = {"format": 1, "rows": [5, 7], "strata": [0, 1], "sizes": [6, 4], "cuts": [0.5], "seed": 0, "checksum": "a"}
    assert LabelPlan.from_dict(good).n_rows == 10
    with pytest.raises(InputError, match=reason):
        LabelPlan.from_dict(good | change)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": 0}, r"budget must be a whole number, 1 or more; got 0\."),
        ({"budget": 2.5}, "budget must be a whole number"),
        ({"budget": 2001}, r"budget must be at most 2,000, the rows there are; got 2,001\."),
        ({"seed": -1}, "seed must be a whole number, 0 or more"),
    ],
)
def test_wrong_options(model: ll.Auto, target: Outputs, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        plan_labels(model, target, **options)


def test_the_checksum_of_another_plan_is_said_in_one_readable_line(model: ll.Auto, target: Outputs) -> None:
    """Whatever is in the place of the checksum of a plan that somebody changed by hand."""
    plan = replace(plan_labels(model, target, budget=20), checksum="a4d5\x7f\n335")
    with pytest.raises(InputError, match="checksum a4d5 335") as refused:
        ll.estimate_with_labels(model, target, plan, np.zeros(20, dtype=np.int64))
    assert str(refused.value).isprintable()


def test_likely_errors_are_errors_more_often(model: ll.Auto, make_outputs: Maker) -> None:
    labelled = make_outputs(2000, seed=1, signal=1.5)
    assert labelled.labels is not None
    rows, correctness = ll.likely_errors(model, Outputs(labelled.logits), count=100)
    wrong = labelled.predictions != labelled.labels
    assert (np.diff(correctness) >= 0).all()
    assert wrong[rows].mean() > 1.3 * wrong.mean()
