"""Collapse, or another mix of the same rows: what is left of the belief in a classifier that drifts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.shift.explanations import unchanged
from leadline.shift.judgement import judge

Array = NDArray[np.float64]


def people(n: int, seed: int, *, choice: float = 0.0) -> ll.Outputs:
    """Return calibrated logits of two classes for people, of whom those who are surely of the second one are more
    likely to be in a group the larger ``choice`` is: what their outputs mean is the same in every group."""
    rng = np.random.default_rng(seed)
    odds = 1.6 * rng.normal(size=20 * n)
    chosen = odds[rng.random(len(odds)) < 1.0 / (1.0 + np.exp(-choice * 3.0 * (odds - 1.5)))][:n]
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-chosen))).astype(int)
    return ll.Outputs(np.stack([-chosen / 2, chosen / 2], axis=1), labels)


def test_a_group_of_easy_people_is_no_collapse() -> None:
    """Nearly all of a group are surely of one class, and are: a third more are right than on the source."""
    model, group = ll.Auto().fit(people(4_000, 0)), people(2_000, 1, choice=1.0)
    assert group.accuracy is not None
    assert model.source_.accuracy + 0.1 < group.accuracy
    found = model.estimate(group.logits)
    assert found.shift is not None
    assert found.shift.collapse_weight < 0.25
    assert found.shift.kind is ll.ShiftKind.UNDECIDED
    assert found.interval[0] < group.accuracy < found.interval[1]
    assert abs(found.accuracy - group.accuracy) < 0.08


def test_of_two_classes_half_of_the_belief_in_collapse_is_left() -> None:
    """Less sure, and all of one class: drift or a choice of hard rows, which one number does not tell."""
    model = ll.Auto().fit(people(4_000, 0))
    drifted = 0.5 * people(2_000, 1).logits + np.array([0.7, 0.0])
    explained = judge(model.source_, drifted.astype(np.float32), 2_000).explained
    assert explained.collapse_weight == pytest.approx(0.5, abs=0.05)


def test_rows_surer_than_any_choice_of_the_sources_are_drift() -> None:
    """Where most rows are beyond the source's surest, no choice of its rows explains them."""
    model = ll.Auto().fit(people(4_000, 0))
    beyond = people(2_000, 1).logits + np.array([0.0, 8.0])
    explained = judge(model.source_, beyond.astype(np.float32), 2_000).explained
    assert explained.collapse_weight > 0.8


def test_what_is_not_believed_of_collapse_is_in_the_interval() -> None:
    """A classifier that has come to say one class nearly always may have got easy rows, and may be broken."""
    model, group = ll.Auto().fit(people(4_000, 0)), people(2_000, 1, choice=1.0)
    judgement = judge(model.source_, group.logits.astype(np.float32), len(group))
    found = judgement.explained
    assert found.collapse_weight < 0.25
    assert found.doubted_weight > 0.5
    believed = replace(judgement, parts={**judgement.parts, "drift": 0.0}, explained=replace(found, doubted_weight=0.0))
    reached = judgement.weights[1:].sum() * found.doubted_weight
    for accuracy in (judgement.accuracy, 0.95):
        low, high = judgement.interval(accuracy, 0.9)
        assert low <= accuracy + reached * (judgement.readings["restored"] - accuracy)
        assert low < believed.interval(accuracy, 0.9)[0] - 0.05
        assert high == believed.interval(accuracy, 0.9)[1]


@pytest.mark.parametrize("size", [200, 5_000])
def test_rows_of_the_source_are_as_sure_and_no_more_extreme(size: int) -> None:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=20_000), rng.normal(size=size)
    found = unchanged(rows(source), rows(target), 2)
    assert found.doubt == pytest.approx(1.0, abs=0.05)
    assert found.extreme < 0.08


def test_a_choice_of_sure_rows_is_less_in_doubt_and_no_more_extreme() -> None:
    rng = np.random.default_rng(0)
    source = rng.normal(size=20_000)
    found = unchanged(rows(source), rows(rng.permutation(source[source > 0.5])), 2)
    assert found.doubt < 0.6
    assert found.extreme < 0.03


def test_scores_of_few_digits_and_hardly_any_sure_rows_say_nothing() -> None:
    """Ties at the surest value, a target without sure rows, one row: no share is divided by none."""
    tied = np.repeat([0.0, 1.0, 2.0], [100, 100, 800])
    assert unchanged(rows(tied), rows(tied), 2).extreme == 0.0
    assert unchanged(rows(tied), rows(np.zeros(50)), 2).extreme == 0.0
    assert 0.0 <= unchanged(rows(np.arange(100.0)), rows(np.array([99.0])), 2).extreme <= 1.0


def test_scores_that_differ_by_rounding_alone_are_equally_sure() -> None:
    tied = np.repeat([0.3, 1.1, 2.7], [700, 100, 200])
    assert unchanged(rows(tied), rows(np.nextafter(tied, np.inf)), 2).extreme == 0.0


def test_a_source_without_doubt_is_compared_without_dividing_by_none() -> None:
    found = unchanged(rows(np.full(100, 1_000.0)), rows(np.full(100, 1_000.0)), 2)
    assert found.doubt == 0.0
    assert found.extreme == 0.0


def rows(odds: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return rows of the first of two classes with these log-odds."""
    return np.zeros(len(odds), dtype=np.intp), np.ones(len(odds), dtype=np.intp), odds
