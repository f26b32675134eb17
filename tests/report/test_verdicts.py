"""Verdicts on a shift: one judgement, said everywhere in the same sense."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pytest

import leadline as ll
from leadline import Outputs
from leadline.report.advice import gate_verdict, labels_needed
from leadline.report.assumptions import check_outside, check_shift
from leadline.report.building import build_report
from leadline.report.page import html_page, markdown
from leadline.results.gate import Gate
from leadline.results.shift import Shift, ShiftKind
from leadline.results.words import sentences

Make = Callable[..., Outputs]

#: Words of each verdict; none of them may stand where another was given.
WORDS = {
    ShiftKind.NONE: ("no detectable shift", "looks like the source", "chance alone explains", "chance explains"),
    ShiftKind.LABEL: ("label shift: the classes", "(label shift)"),
    ShiftKind.COLLAPSE: ("collapse: the classifier", "(collapse)"),
    ShiftKind.UNDECIDED: ("undecided", "about equally well"),
}


def shifted(outputs: Outputs, kind: str, strength: float) -> Outputs:
    """Return outputs whose classes are rarer, or whose classifier drifts, the more so the greater the strength."""
    assert outputs.labels is not None
    logits, labels = outputs.logits.copy(), outputs.labels
    if kind == "labels":
        chance = np.where(labels < 2, 1.0, 1.0 - strength)
        kept = np.random.default_rng(5).random(len(labels)) < chance
        return Outputs(logits[kept], labels[kept])
    if kind == "collapse":
        logits[:, 0] += 4 * strength
    return Outputs(logits, labels)


@pytest.fixture(scope="module")
def found(make_outputs: Make) -> dict[tuple[str, float], Any]:
    """Reports by kind and strength of the shift."""
    source = make_outputs(n=2000, c=5, signal=2.5)
    target = make_outputs(n=2000, c=5, seed=1, signal=2.5)
    cases = [("none", 0.0), *((kind, s) for kind in ("labels", "collapse") for s in (0.1, 0.3, 0.5, 0.7, 0.9))]
    return {case: build_report(source, {"t": shifted(target, *case)}, methods=["auto", "ac", "cot"]) for case in cases}


def test_every_place_gives_the_same_verdict(found: dict[tuple[str, float], Any]) -> None:
    kinds = set()
    for report in found.values():
        (target,) = report.targets
        kinds.add(target.estimate.shift.kind)
        told = [html_page(report, []), markdown(report, []), " ".join(sentences(target.estimate))]
        for text in (re.sub(r"\s+", " ", page).lower() for page in told):
            for kind, words in WORDS.items():
                assert any(word in text for word in words) == (kind is target.estimate.shift.kind), (kind, words)
    assert {ShiftKind.NONE, ShiftKind.LABEL, ShiftKind.COLLAPSE} <= kinds


def test_only_a_slight_shift_is_called_fine(found: dict[tuple[str, float], Any]) -> None:
    for (_, strength), report in found.items():
        (target,) = report.targets
        changed = next(check for check in target.checks if check.name == "what changed")
        if changed.verdict == "good":
            assert strength < 0.5
            assert target.estimate.shift.kind is ShiftKind.NONE or "which is little" in changed.text
        else:
            assert target.estimate.shift.kind is not ShiftKind.NONE
            assert target.reliance != "reasonable"


def test_the_headline_is_not_said_again(found: dict[tuple[str, float], Any]) -> None:
    for report in found.values():
        (target,) = report.targets
        said = [target.answer, target.verdict, target.next_step, *target.explanation]
        assert len(set(said)) == len(said)
        assert not any(sentence.startswith("Estimated accuracy") for sentence in target.explanation)
        assert html_page(report, []).count(escape(target.verdict)) == 1


def any_shift(make_outputs: Make, kind: ShiftKind, outside: float = 0.0) -> Shift:
    """Return a shift with this verdict."""
    outputs = make_outputs()
    judged = ll.Auto().fit(outputs).estimate(outputs).shift
    assert judged is not None
    return replace(judged, kind=kind, share_outside=outside)


def test_check_of_shift_states_what_chance_gives(make_outputs: Make, rng: np.random.Generator) -> None:
    share, names, shift = np.full(10, 0.1), list("abcdefghij"), any_shift(make_outputs, ShiftKind.LABEL)
    draws = [rng.multinomial(300, share) / 300 for _ in range(200)]
    sources = [rng.multinomial(2000, share) / 2000 for _ in range(200)]
    checks = [check_shift(shift, *pair, names, (2000, 300)) for pair in zip(sources, draws, strict=True)]
    # The expected distance that the text states is the mean over many draws.
    stated = float(re.search(r"about ([\d.]+) %", checks[0].text).group(1))  # type: ignore[union-attr]
    assert 100 * np.mean([check.value for check in checks]) == pytest.approx(stated, rel=0.1)
    assert np.mean([check.verdict == "good" for check in checks]) > 0.95
    moved = check_shift(shift, share, np.array([0.5, *[0.5 / 9] * 9]), names, (2000, 300))
    assert moved.verdict == "poor"
    assert moved.value == pytest.approx(0.4)
    assert "a from 10.0 % to 50.0 %" in moved.text


def test_check_of_samples_unlike_the_source(make_outputs: Make) -> None:
    verdicts = [check_outside(any_shift(make_outputs, ShiftKind.COLLAPSE, s)).verdict for s in (0.01, 0.1, 0.3)]
    assert verdicts == ["good", "caution", "poor"]
    assert check_outside(any_shift(make_outputs, ShiftKind.NONE, 0.1)).verdict == "good"


def test_labels_needed_tell_the_accuracy_to_within_five_points(make_outputs: Make, rng: np.random.Generator) -> None:
    outputs = make_outputs(n=5000)
    estimate = ll.make("ac").fit(outputs).estimate(outputs)
    number = labels_needed(estimate)
    right = outputs.logits.argmax(axis=1) == outputs.labels
    errors = [abs(rng.choice(right, number, replace=False).mean() - right.mean()) for _ in range(500)]
    assert np.mean(np.array(errors) <= 0.05) >= estimate.confidence_level - 0.03
    assert labels_needed(replace(estimate, n_samples=20)) <= 20


def test_gate_tells_apart_what_the_interval_rules_out(make_outputs: Make) -> None:
    outputs = make_outputs()
    estimate = replace(ll.make("ac").fit(outputs).estimate(outputs), accuracy=0.8, interval=(0.7, 0.9))
    assert gate_verdict(estimate, Gate(0.85), 0.9, 0, 0) == "Below the 85.0 % asked for."
    assert "does not rule out less" in gate_verdict(estimate, Gate(0.75), 0.9, 0, 0)
    assert gate_verdict(estimate, Gate(0.65), 0.9, 1, 4).endswith("with its whole interval. Of 4 segments, 1 is below.")
    assert gate_verdict(estimate, Gate(max_drop=0.05), 0.9, 0, 0) == "Below the 85.0 % asked for."
    lower = Gate(0.75, judged="lower-end")
    assert gate_verdict(estimate, lower, 0.9, 0, 0) == "Below the 75.0 % asked for with the lower end of its interval."
    assert gate_verdict(estimate, Gate(), 0.9, 0, 4) == ""
