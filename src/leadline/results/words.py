"""What an estimate rests on, in plain sentences: the one place where verdicts on a shift are put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.results.shift import Shift, ShiftKind

if TYPE_CHECKING:
    from leadline.results.estimate import Estimate

# Of each kind of shift: what was found, and what follows from it.
_VERDICTS = {
    ShiftKind.NONE: ("The target looks like the source: nothing differs beyond sampling noise.", ""),
    ShiftKind.LABEL: (
        "The predictions look like the source's with other class frequencies (label shift).",
        "Confidence then stays meaningful; methods that assume the source's class frequencies (cot, cott) do not.",
    ),
    ShiftKind.COLLAPSE: (
        "The predictions drift towards some classes in a way that other class frequencies do not explain (collapse).",
        "Confidence is then too high; methods that restore the source's class frequencies (cot, cott) are nearer.",
    ),
    ShiftKind.UNDECIDED: (
        "Changed class frequencies, or another mix of rows, and a drifting classifier explain the predictions about "
        "equally well, and they call for different methods: the estimate lies between.",
        "",
    ),
}
_FEW_ROWS = 200
_POOR_RANKING = 0.6
_NOTABLE_SHARE = 0.05
_NOTABLE_SPREAD = 0.1
_NOTABLE_CORRECTION = 0.03
_NOTABLE_MISTAKES = 0.01
_LEAST_TOLD = 0.0005  # nothing is left of less when it is rounded


def sentences(estimate: Estimate) -> list[str]:
    """Return what to tell a person about an estimate, the answer first, what the interval covers last."""
    (low, high), found, n = estimate.interval, estimate.diagnostics, estimate.n_samples
    source = found.get("source_accuracy")
    before = f"; it was {source:.1%} on the labelled source." if source is not None else "."
    level = f"{estimate.confidence_level:.0%} interval {low:.1%} to {high:.1%}"
    answer = f"Estimated accuracy {estimate.accuracy:.1%} ({level}), by {estimate.method} on {n:,} samples{before}"
    told = [answer, verdict(estimate.shift), *about_labels(estimate), *remarks(estimate), covered(estimate)]
    return [sentence for sentence in told if sentence]


def verdict(shift: Shift | None) -> str:
    """Return in one sentence how the target differs from the source; nothing where it was not judged."""
    return "" if shift is None else _VERDICTS[shift.kind][0]


def remarks(estimate: Estimate) -> list[str]:
    """Return what follows from the verdict, and what else weakens the estimate."""
    found, n = estimate.diagnostics, estimate.n_samples
    told = [] if estimate.shift is None else _about_shift(estimate.shift, int(found["n_source"]))
    guessed = found.get("rectified_share", 0.0)
    if guessed > _NOTABLE_SHARE:
        told.append(f"{guessed:.0%} of the samples are unlike those that {estimate.method} learned from: guesses.")
    unseen = abs(found.get("correction", 0.0))
    if unseen > _NOTABLE_CORRECTION:
        told.append(
            f"{estimate.method} was {100 * unseen:.0f} points off on source samples that it had not learned from: it "
            "knows this source badly, and its interval is wider by as much."
        )
    hidden = found.get("hidden_mistakes", 0.0)
    if hidden > _NOTABLE_MISTAKES:
        told.append(
            "Targets that moved as far make more mistakes than their outputs show, mostly: the estimate is "
            f"{100 * hidden:.1f} points lower for them."
        )
    carried = found.get("expected_gap", 0.0)
    if abs(carried) >= _LEAST_TOLD:
        told.append(f"Labels of targets that looked like this one moved it by {100 * carried:+.1f} points.")
    if n < _FEW_ROWS:
        told.append(f"Only {n:,} samples: sampling error alone is up to {0.8 / n**0.5:.0%} either way.")
    return told


def about_labels(estimate: Estimate) -> list[str]:
    """Return what an estimate from a few labels rests on, and whether the model alone says the same."""
    found = estimate.diagnostics
    if "n_labels" not in found:
        return []
    told = [f"It rests on {found['n_labels']:,} labels."]
    if found["n_skipped"]:
        told.append(
            f"{found['n_skipped']:,} rows that were left out count as wrong for the lower end, right for the upper."
        )
    if found["n_set_aside"]:
        told.append(
            f"{found['n_set_aside']:,} labels are set aside, as too many rows of the plan before them have none."
        )
    before = found.get("without_labels")
    if before is not None:
        (low, high), verdict_on_both = before["interval"], "they disagree, and the labels are right"
        told.append(
            f"Without labels, {before['method']} said {before['accuracy']:.1%} ({low:.1%} to {high:.1%}): "
            f"{'both agree' if found['agrees'] else verdict_on_both}."
        )
    more = {text: count - found["n_labels"] for text, count in found["labels_for"].items()}
    wanted = [f"{count:,} more for {100 * float(text):.0f}" for text, count in more.items() if count > 0]
    if wanted:
        told.append(f"Labels that would narrow it: {', '.join(wanted)} points either way.")
    return told


def covered(estimate: Estimate) -> str:
    """Return what the interval covers, in one sentence; nothing where the method does not say."""
    covers = estimate.diagnostics.get("interval_covers")
    return f"The interval covers {covers}." if covers else ""


def _about_shift(shift: Shift, n_source: int) -> list[str]:
    """Return what follows from the comparison with the source."""
    meaning = _VERDICTS[shift.kind][1]
    told = [meaning] if meaning else []
    if shift.kind in (ShiftKind.LABEL, ShiftKind.UNDECIDED) and shift.label_marginal_change > _NOTABLE_SHARE:
        change = shift.label_marginal_change
        told.append(f"About {change:.0%} of the samples seem to have moved to other classes than in the source.")
    if shift.kind is not ShiftKind.NONE and shift.share_outside > _NOTABLE_SHARE:
        told.append(f"{shift.share_outside:.0%} of the samples lie where the source has no sample at all.")
    if shift.readings_spread > _NOTABLE_SPREAD:
        readings = shift.readings.values()
        told.append(f"Ways to read the outputs disagree: they say {min(readings):.1%} to {max(readings):.1%}.")
    if shift.ranking < _POOR_RANKING:
        told.append("On the source, confidence hardly ranks right before wrong: every estimate from it is rough.")
    if shift.effective_source_rows < min(_FEW_ROWS, n_source / 2):
        told.append(
            f"Few source samples are like the target: they are worth {shift.effective_source_rows:.0f} of them."
        )
    return told
