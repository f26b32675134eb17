"""Classifiers of two classes with a threshold of their own: what is judged is what they predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline as ll
from command_line import Run
from leadline.data.columns import Columns

Scores = tuple[np.ndarray, np.ndarray]


def calibrated(n: int, seed: int) -> Scores:
    """Return scores that are the probability of the second class, and labels."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.7, 0.9, n)
    return scores, (rng.random(n) < scores).astype(int)


def test_a_score_that_equals_the_threshold_reaches_it() -> None:
    for dtype in (np.float32, np.float64):
        votes = (np.arange(101) / 100).astype(dtype)  # a forest of a hundred trees
        for threshold in (0.05, 0.3, 0.5, 0.77):
            made = ll.Outputs.from_scores(votes, threshold=threshold)
            np.testing.assert_array_equal(made.predictions, votes >= np.asarray(threshold, dtype))


def test_accuracy_is_that_of_the_decisions() -> None:
    scores, labels = calibrated(2000, 0)
    expected = np.mean((scores >= 0.2) == labels)
    pairs = np.stack([1 - scores, scores], axis=1)
    assert ll.Outputs.from_scores(scores, labels, threshold=0.2).accuracy == expected
    assert ll.Outputs.from_probabilities(pairs, labels, threshold=0.2).accuracy == expected
    assert ll.Outputs(np.log(pairs), labels, threshold=0.2).accuracy == expected


@pytest.mark.parametrize("method", list(ll.METHODS))
def test_without_shift_every_method_is_right_about_the_decisions(method: str) -> None:
    (scores, labels), (new, truth) = calibrated(4000, 0), calibrated(4000, 1)
    expected = np.mean((new >= 0.15) == truth)
    assert np.mean((new >= 0.5) == truth) > expected + 0.08  # what the largest output says is another number
    model = ll.make(method).fit(ll.Outputs.from_scores(scores, labels, threshold=0.15))
    assert abs(model.source_accuracy_ - np.mean((scores >= 0.15) == labels)) < 1e-12
    estimate = model.estimate(ll.Outputs.from_scores(new))
    assert abs(estimate.accuracy - expected) < 0.025
    counts = [entry.count for entry in estimate.by_class]
    assert counts == [np.sum(new < 0.15), np.sum(new >= 0.15)]


@pytest.mark.parametrize("method", ["ac", "cot", "auto"])
def test_probabilities_that_are_those_of_other_class_shares(method: str) -> None:
    """A model that was trained with weighted classes, and whose threshold makes up for it."""
    rng = np.random.default_rng(0)
    odds = rng.normal(-3.0, 2.0, 12_000)
    labels = (rng.random(len(odds)) < 1 / (1 + np.exp(-odds))).astype(int)
    scores = 1 / (1 + np.exp(-odds - 3.0))
    half = slice(6000), slice(6000, None)
    model = ll.make(method).fit(ll.Outputs.from_scores(scores[half[0]], labels[half[0]], threshold=0.9))
    truth = np.mean((scores[half[1]] >= 0.9) == labels[half[1]])
    assert abs(model.estimate(ll.Outputs.from_scores(scores[half[1]])).accuracy - truth) < 0.02


@pytest.mark.parametrize("method", ["ac", "alsa-g", "cott", "auto"])
def test_every_way_in_knows_the_threshold(method: str, tmp_path: Path) -> None:
    (scores, labels), (new, truth) = calibrated(1000, 0), calibrated(600, 1)
    ll.make(method).fit(ll.Outputs.from_scores(scores, labels, threshold=0.2)).save(tmp_path / "model.leadline")
    model = ll.load(tmp_path / "model.leadline")
    target = ll.Outputs.from_scores(new, truth, threshold=0.2)
    expected = model.estimate(target)
    assert model.estimate(target.logits).accuracy == expected.accuracy
    assert model.estimate(ll.Outputs.from_scores(new)).accuracy == expected.accuracy
    blocks = model.estimate_blocks(lambda: iter([target.logits[:250], target.logits[250:]]))
    assert blocks.accuracy == pytest.approx(expected.accuracy, abs=1e-3)
    running = ll.Accumulator(model)
    running.update(target.logits)
    assert running.estimate().accuracy == pytest.approx(expected.accuracy, abs=1e-3)
    pq.write_table(pa.table({"p": new, "label": truth}), tmp_path / "new.parquet")
    streamed = ll.estimate_files(model, str(tmp_path / "new.parquet"), columns=Columns("score", "p")).overall
    assert streamed.estimate.accuracy == pytest.approx(expected.accuracy, abs=1e-3)
    assert streamed.truth == target.accuracy
    row = ll.compare(
        ll.Outputs.from_scores(scores, labels, threshold=0.2), {"new": (target.logits, truth)}, methods=[method]
    ).rows[0]
    assert (row.accuracy, row.truth) == (expected.accuracy, target.accuracy)


def test_a_target_that_is_decided_otherwise_is_refused(tmp_path: Path) -> None:
    scores, labels = calibrated(500, 0)
    model = ll.make("ac").fit(ll.Outputs.from_scores(scores, labels, threshold=0.2))
    with pytest.raises(ll.InputError, match=r"decided as in fit, by the threshold 0.2; the threshold 0.6 decides"):
        model.estimate(ll.Outputs.from_scores(scores, threshold=0.6))
    plain = ll.make("ac").fit(ll.Outputs.from_scores(scores, labels))
    with pytest.raises(ll.InputError, match=r"decided as in fit, by the largest output; the threshold 0.2 decides"):
        plain.estimate(ll.Outputs.from_scores(scores, threshold=0.2))
    pq.write_table(pa.table({"p": scores}), tmp_path / "new.parquet")
    with pytest.raises(ll.InputError, match=r"threshold of columns must be that of fit, 0.2; got 0.6"):
        ll.estimate_files(model, str(tmp_path / "new.parquet"), columns=Columns("score", "p", threshold=0.6))


def test_the_threshold_is_found_from_predictions() -> None:
    scores, labels = calibrated(1000, 0)
    found = ll.Outputs.from_scores(scores, labels, predictions=scores >= 0.3)
    assert found.threshold == pytest.approx(0.3, abs=0.01)
    np.testing.assert_array_equal(found.predictions, scores >= 0.3)
    assert ll.Outputs.from_scores(scores, predictions=scores > 0.5).threshold is None
    named = np.where(scores >= 0.3, "spam", "ham")
    assert ll.Outputs.from_scores(scores, classes=["ham", "spam"], predictions=named).threshold == found.threshold
    few = np.array([0.2, 0.4])
    assert ll.Outputs.from_scores(few, predictions=[0, 0]).threshold is None
    assert (ll.Outputs.from_scores(few, predictions=[1, 1]).threshold or 1.0) < 0.2
    assert (ll.Outputs.from_scores(1 - few, predictions=[0, 0]).threshold or 0.0) > 0.8
    logits = np.random.default_rng(0).normal(size=(200, 3))
    assert ll.Outputs(logits, predictions=logits.argmax(axis=1)).threshold is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 30}, "threshold must be a probability between 0 and 1; got 30. Divide percentages by 100."),
        ({"threshold": 0.0}, "threshold must be a probability between 0 and 1; got 0."),
        ({"threshold": "half"}, "threshold must be a number between 0 and 1; got 'half'."),
        ({"predictions": [0, 1, 0, 1]}, "or follow one threshold, in all but one row of a hundred; 1 of 4 do not"),
        ({"predictions": [0, 1, 1, 1], "threshold": 0.7}, "must follow the threshold 0.7 in all but one"),
        (
            {"predictions": [0, 1, 1, 2]},
            "predictions must be from 0 to 1, as the logits have 2 classes; got 2 at row 3",
        ),
        (
            {"predictions": ["a", "b", "b", "c"], "classes": ["a", "b"]},
            "predictions must be among the classes 'a', 'b'",
        ),
        ({"predictions": [0, 1]}, "predictions must have shape (4,)"),
    ],
)
def test_wrong_thresholds_and_predictions(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ll.InputError) as caught:
        ll.Outputs.from_scores([0.1, 0.3, 0.4, 0.9], **options)
    assert message in str(caught.value)


def test_a_threshold_is_for_two_classes() -> None:
    with pytest.raises(ll.InputError, match="threshold is for two classes; the outputs have 3"):
        ll.Outputs([[0.1, 0.2, 0.3]], threshold=0.3)
    with pytest.raises(ll.InputError, match="must be the classes of the largest outputs in all but one row"):
        ll.Outputs([[0.1, 0.2, 0.3]], predictions=[0])


# --------------------------------------------------------------------------------------------------------- the command
@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Write labelled and unlabelled scores with a column of predictions; return the true accuracy of the latter."""
    monkeypatch.chdir(tmp_path)
    truths = []
    for seed, name in enumerate(("validation.csv", "new.csv")):
        scores, labels = calibrated(3000, seed)
        chosen = np.where(scores >= 0.2, "fraud", "fine")
        lines = [
            f"{p!r},{'fraud' if y else 'fine'},{c}" for p, y, c in zip(scores.tolist(), labels, chosen, strict=True)
        ]
        Path(name).write_text("\n".join(["p_fraud,truth,decision", *lines]) + "\n")
        truths.append(np.mean((scores >= 0.2) == labels))
    return float(truths[1])


@pytest.mark.parametrize("option", [("--threshold", "0.2"), ("--prediction", "decision")])
def test_the_command_keeps_the_threshold(option: tuple[str, str], tables: float, run: Run) -> None:
    form = ("--score", "p_fraud", "--positive", "fraud", "--label", "truth")
    assert run("fit", "validation.csv", *form, *option, "-o", "model.leadline").code == 0
    (row,) = run("estimate", "model.leadline", "new.csv", "--format", "json").data
    assert row["truth"] == pytest.approx(tables, abs=1e-3)  # a threshold that was found lies between two scores
    assert abs(row["error"]) < 0.025
    compared = run("compare", "validation.csv", "new.csv", *form, *option, "--methods", "ac", "--format", "json").data
    assert compared["rows"][0]["truth"] == row["truth"]


def test_wrong_options_are_one_line(tables: float, run: Run) -> None:
    form = (
        "fit",
        "validation.csv",
        "--score",
        "p_fraud",
        "--positive",
        "fraud",
        "--label",
        "truth",
        "-o",
        "m.leadline",
    )
    assert "threshold must be a probability between 0 and 1; got 30" in run(*form, "--threshold", "30").error
    assert "column 'verdict' of predictions is not there" in run(*form, "--prediction", "verdict").error
    assert "give one of them" in run(*form, "--prediction", "decision", "--threshold", "0.2").error
    text = Path("validation.csv").read_text()
    Path("validation.csv").write_text(text.replace("fine\n", "unsure\n", 1))
    assert (
        "predictions must be among the classes 'fine', 'fraud'; got 'unsure'"
        in run(*form, "--prediction", "decision").error
    )
