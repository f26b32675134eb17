"""Estimates with labels: what they rest on, beginnings, gaps, parts, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leadline as ll
from leadline import InputError, LabelPlan, Outputs, estimate_with_labels, estimate_with_labels_by, plan_labels
from leadline.labels.intervals import exact_interval
from leadline.labels.target import LabelTarget, opened

Maker = Callable[..., Outputs]
NAMES = ["ant", "bee", "cat", "dog", "elk"]


@pytest.fixture(scope="module")
def model(make_outputs: Maker) -> ll.Auto:
    return ll.Auto().fit(make_outputs(1000, seed=0, classes=NAMES))


@pytest.fixture(scope="module")
def labelled(make_outputs: Maker) -> Outputs:
    channel = np.array(["web", "app"])[np.arange(3000) % 2]
    return make_outputs(3000, seed=1, signal=1.5, classes=NAMES, metadata={"channel": channel})


@pytest.fixture(scope="module")
def target(labelled: Outputs) -> Outputs:
    return Outputs(labelled.logits, metadata=labelled.metadata, classes=NAMES)


@pytest.fixture(scope="module")
def rows(model: ll.Auto, target: Outputs) -> LabelTarget:
    """Return the target as it is opened once for several plans: what the model alone says of it is worked out once."""
    with opened(model, target) as found:
        return found


@pytest.fixture(scope="module")
def plan(model: ll.Auto, rows: LabelTarget) -> LabelPlan:
    return plan_labels(model, rows, budget=200, seed=0)


def labels_of(labelled: Outputs, plan: LabelPlan) -> Any:
    assert labelled.labels is not None
    return labelled.labels[plan.rows]


def test_estimate_and_what_it_says_beside(model: ll.Auto, target: Outputs, labelled: Outputs, plan: LabelPlan) -> None:
    found = estimate_with_labels(model, target, plan, labels_of(labelled, plan))
    low, high = found.interval
    assert labelled.accuracy is not None
    assert low <= labelled.accuracy <= high
    assert low <= found.accuracy <= high
    assert (found.method, found.n_samples, found.diagnostics["n_labels"]) == ("labels", 3000, 200)
    alone = model.estimate(target)
    assert found.diagnostics["without_labels"]["accuracy"] == alone.accuracy
    assert found.diagnostics["agrees"]
    needed = found.diagnostics["labels_for"]
    assert needed["0.02"] > needed["0.03"] > needed["0.05"] > 0
    simple = found.diagnostics["simple_sample_interval"]
    assert high - low < simple[1] - simple[0]
    assert [entry.label for entry in found.by_class] == NAMES


def test_mean_over_plans_is_the_truth_and_intervals_cover(model: ll.Auto, rows: LabelTarget, labelled: Outputs) -> None:
    found = []
    for seed in range(40):
        plan = plan_labels(model, rows, budget=80, seed=seed)
        found.append(estimate_with_labels(model, rows, plan, labels_of(labelled, plan)[:60]))
    truth = labelled.accuracy
    assert truth is not None
    values = np.array([one.accuracy for one in found])
    assert abs(values.mean() - truth) < 3 * values.std() / np.sqrt(40)
    assert np.mean([one.interval[0] <= truth <= one.interval[1] for one in found]) >= 0.775  # 90 % less 2.6 deviations


def test_confidently_wrong_is_noticed(model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan) -> None:
    wrong = (labels_of(labelled, plan) + 1) % 5
    found = estimate_with_labels(model, rows, plan, wrong[:100])
    assert not found.diagnostics["agrees"]
    assert found.interval[1] < rows.estimate().interval[0]
    assert "disagree" in found.explain()


def test_names_indices_and_gaps_are_the_same_labels(
    model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    indices = labels_of(labelled, plan)
    names = [NAMES[i] for i in indices]
    with_gap = indices.astype(float)
    with_gap[-1] = np.nan
    answers = [estimate_with_labels(model, rows, plan, given).accuracy for given in (indices, names, indices.tolist())]
    assert len(set(answers)) == 1
    assert estimate_with_labels(model, rows, plan, with_gap).diagnostics["n_labels"] == 199


def test_a_simple_random_sample_has_the_exact_interval(model: ll.Auto, rows: LabelTarget, labelled: Outputs) -> None:
    plan = plan_labels(model, rows, budget=50, stratified=False)
    labels = labels_of(labelled, plan)
    found = estimate_with_labels(model, rows, plan, labels)
    right = int(np.sum(labels == labelled.predictions[plan.rows]))
    assert found.interval == exact_interval(right, 50, 3000, 0.9)
    assert found.accuracy == pytest.approx(right / 50)


def test_rows_left_out_count_against_both_ends(
    model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    labels = labels_of(labelled, plan)[:100].astype(object)
    whole = estimate_with_labels(model, rows, plan, labels)
    gaps = labels.copy()
    gaps[[3, 40, 70]] = None
    found = estimate_with_labels(model, rows, plan, gaps)
    assert (found.diagnostics["n_labels"], found.diagnostics["n_skipped"]) == (97, 3)
    # Whatever the three rows are, the interval with them is inside.
    assert found.interval[0] <= whole.interval[0]
    assert whole.interval[1] <= found.interval[1]


def test_labels_after_too_many_gaps_are_set_aside(
    model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    labels = labels_of(labelled, plan).astype(object)
    labels[60:120] = None
    found = estimate_with_labels(model, rows, plan, labels)
    assert (found.diagnostics["n_labels"], found.diagnostics["n_set_aside"]) == (60, 80)
    assert found.accuracy == estimate_with_labels(model, rows, plan, labels[:60]).accuracy


def test_segments_and_classes_have_their_own(
    model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    labels = labels_of(labelled, plan)
    table = estimate_with_labels_by(model, rows, plan, labels, "channel")
    assert [row.group["channel"] for row in table] == ["app", "web"]
    assert table.overall.estimate.interval == estimate_with_labels(model, rows, plan, labels).interval
    assert sum(row.estimate.diagnostics["n_labels"] for row in table) == 200
    wider = estimate_with_labels_by(model, rows, plan, labels, ["channel"], together=True)
    for row, other in zip(table, wider, strict=True):
        truth = labelled.predictions[labelled.metadata["channel"] == row.group["channel"]]
        assert row.estimate.n_samples == len(truth)
        assert other.estimate.interval[0] < row.estimate.interval[0]
    few = estimate_with_labels(model, rows, plan, labels[:20])
    assert {entry.accuracy for entry in few.by_class if entry.accuracy is not None} == set()


def test_a_part_with_few_labels_is_left_out(model: ll.Auto, labelled: Outputs) -> None:
    rare = np.where(np.arange(3000) < 30, "rare", "common")
    target = Outputs(labelled.logits, metadata={"kind": rare}, classes=NAMES)
    plan = plan_labels(model, target, budget=100)
    table = estimate_with_labels_by(model, target, plan, labels_of(labelled, plan), "kind")
    assert [row.group["kind"] for row in table] == ["common"]


def test_another_target_is_refused(model: ll.Auto, target: Outputs, plan: LabelPlan, labelled: Outputs) -> None:
    labels = labels_of(labelled, plan)
    changed = target.logits.copy()
    changed[7, 0] += 1
    for other in (target.logits[:-1], target.logits[::-1], changed):
        with pytest.raises(InputError, match="outputs must be those of the plan"):
            estimate_with_labels(model, Outputs(other), plan, labels)


def test_another_model_is_refused(make_outputs: Maker, target: Outputs, plan: LabelPlan, labelled: Outputs) -> None:
    other = ll.make("ac").fit(make_outputs(400, seed=5, signal=0.5, classes=NAMES))
    with pytest.raises(InputError, match="model must be the one that the plan was made with"):
        estimate_with_labels(other, target, plan, labels_of(labelled, plan))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], "labels must be for the first rows of the plan, 1 to 200 of them"),
        (np.zeros(201, int), r"got shape \(201,\)"),
        ([0, 1, 9], "labels must be from 0 to 4"),
        (["ant", "eel"], "labels must be among the classes"),
        ([None, None], "labels must begin with the first row of the plan"),
        ([0.5, 1.0], "labels must be"),
    ],
)
def test_wrong_labels(model: ll.Auto, rows: LabelTarget, plan: LabelPlan, labels: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        estimate_with_labels(model, rows, plan, labels)
