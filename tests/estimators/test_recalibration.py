"""Labels of one target move the estimates of the next ones as far as these look like it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from command_line import Run
from leadline import InputError, Outputs
from leadline.estimators.recalibration import batch_of, expected_gap

Maker = Callable[..., Outputs]


def confidently_wrong(make_outputs: Maker, seed: int, **more: Any) -> Outputs:
    """Return outputs of which three in ten are as sure as others and wrong."""
    outputs = make_outputs(600, seed=seed, signal=3.0)
    assert outputs.labels is not None
    wrong = np.random.default_rng(seed).random(600) < 0.3
    return Outputs(outputs.logits, np.where(wrong, (outputs.labels + 1) % 5, outputs.labels), **more)


@pytest.fixture(scope="module", params=["auto", "ac", "atc-mc", "cot"])
def model(request: pytest.FixtureRequest, make_outputs: Maker) -> ll.Estimator:
    return ll.make(request.param).fit(make_outputs(600, seed=0))


def error(model: ll.Estimator, target: Outputs) -> float:
    assert target.accuracy is not None
    return abs(model.estimate(Outputs(target.logits)).accuracy - target.accuracy)


def test_a_hundred_labels_mend_the_next_target_of_the_same_shift(model: ll.Estimator, make_outputs: Maker) -> None:
    this, following = (confidently_wrong(make_outputs, seed) for seed in (1, 2))
    assert this.labels is not None
    labels = [label if i < 100 else None for i, label in enumerate(this.labels.tolist())]
    told = model.recalibrate(Outputs(this.logits), labels)
    assert error(model, following) > 0.15
    assert error(told, following) < 0.5 * error(model, following)
    estimate = told.estimate(following)
    assert estimate.interval[0] <= estimate.accuracy <= estimate.interval[1]
    if estimate.correctness is not None:
        assert estimate.correctness.mean() == pytest.approx(estimate.accuracy, abs=1e-6)
    assert "Labels of targets that looked like this one moved it by -" in estimate.explain()


def test_targets_that_look_otherwise_are_left_alone(model: ll.Estimator, make_outputs: Maker) -> None:
    told = model.recalibrate(confidently_wrong(make_outputs, 1))
    other = make_outputs(600, seed=3, signal=0.5)
    assert told.estimate(other).accuracy == pytest.approx(model.estimate(other).accuracy, abs=0.005)


def test_it_is_a_copy_that_a_file_keeps(model: ll.Estimator, make_outputs: Maker, tmp_path: Path) -> None:
    this, following = (confidently_wrong(make_outputs, seed) for seed in (1, 2))
    before = model.estimate(following).accuracy
    told = model.recalibrate(this)
    assert model.estimate(following).accuracy == before
    assert model.model_id != told.model_id
    told.save(tmp_path / "told.leadline")
    again = ll.load(tmp_path / "told.leadline")
    assert again.estimate(following).to_dict() == told.estimate(following).to_dict()
    assert len(again.recalibrate(following).labelled_batches_) == 2
    assert len(again.fit(make_outputs(600, seed=0)).labelled_batches_) == 0


def test_more_labels_count_for_more(make_outputs: Maker) -> None:
    model, this = ll.make("ac").fit(make_outputs(600, seed=0)), confidently_wrong(make_outputs, 1)
    assert this.labels is not None
    moves = []
    for n in (5, 50, 600):
        labels = np.where(np.arange(600) < n, this.labels.astype(float), np.nan)
        batch = model.recalibrate(this.logits, labels).labelled_batches_[0]
        moves.append(model._with_batch(batch).estimate(this).diagnostics["expected_gap"] / batch[0])
    assert 0 < moves[0] < moves[1] < moves[2] < 1


def test_a_gap_that_noise_could_have_made_is_taken_for_noise() -> None:
    shares, deviation = np.array([0.1, 0.3, 0.6]), 0.03
    kept = [
        expected_gap(batch_of(times * deviation, deviation**2, shares)[None], shares) / (times * deviation)
        for times in (0.5, 1.0, 3.0, 6.0)
    ]
    assert kept == sorted(kept)
    assert kept[1] < 0.5  # a third of all gaps are as large by noise alone
    assert kept[3] > 0.9


def test_many_targets_tell_how_large_gaps_are() -> None:
    near, far, farther = np.array([[0.1, 0.3, 0.6], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    this = batch_of(0.06, 0.03**2, near)
    calm, wild = (
        np.stack([this, batch_of(gap, 0.005**2, far), batch_of(-gap, 0.005**2, farther)]) for gap in (0.005, 0.2)
    )
    assert 0 < expected_gap(calm, near) < expected_gap(this[None], near) < expected_gap(wild, near) < 0.06


def test_a_target_of_which_every_row_is_labelled_twice_over(make_outputs: Maker) -> None:
    model, this = ll.make("ac").fit(make_outputs(600, seed=0)), confidently_wrong(make_outputs, 1)
    plan = ll.plan_labels(model, this.logits, budget=600)
    assert this.labels is not None
    for _ in range(2):
        model = ll.recalibrate_with_labels(model, this.logits, plan, this.labels[plan.rows])
    assert error(model, this) < 0.01


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (None, "labels must be one for each of the 600 rows"),
        ([0] * 599, "got 599, of which 599 are known"),
        ([None] * 600, "got 600, of which 0 are known"),
        ([7] * 600, "labels must be from 0 to 4"),
    ],
)
def test_wrong_labels(make_outputs: Maker, labels: Any, reason: str) -> None:
    model = ll.make("ac").fit(make_outputs(600, seed=0))
    with pytest.raises(InputError, match=reason):
        model.recalibrate(make_outputs(600, seed=1).logits, labels)


def test_the_command_tells_a_model_of_a_plan(
    make_outputs: Maker, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    this, following = (confidently_wrong(make_outputs, seed) for seed in (1, 2))
    model = ll.make("ac").fit(make_outputs(600, seed=0))
    model.save("m.leadline")
    ll.write_outputs(Outputs(this.logits), "this.npz")
    assert run("plan", "m.leadline", "this.npz", "--budget", 100, "-o", "p.csv").code == 0
    with Path("p.csv").open(newline="") as text:
        lines = list(csv.DictReader(text))
    assert this.labels is not None
    with Path("p.csv").open("w", newline="") as text:
        writer = csv.DictWriter(text, list(lines[0]))
        writer.writeheader()
        writer.writerows(line | {"label": this.labels[int(line["row"])]} for line in lines)
    words = ("recalibrate", "m.leadline", "this.npz", "--labelled", "p.csv", "-o", "told.leadline")
    assert run(*words, "--format", "json").data["labelled_targets"] == 1
    assert "told.leadline exists; use --force" in run(*words).error
    assert error(ll.load("told.leadline"), following) < 0.5 * error(model, following)
