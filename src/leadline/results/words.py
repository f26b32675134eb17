"""What an estimate rests on, in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.results.shift import Shift, ShiftKind

if TYPE_CHECKING:
    from leadline.results.estimate import Estimate

_VERDICTS = {
    ShiftKind.NONE: "The target looks like the source: nothing differs beyond sampling noise.",
    ShiftKind.LABEL: (
        "The predictions look like the source's with other class frequencies (label shift). Confidence then stays "
        "meaningful; methods that assume the source's class frequencies (cot, cott) do not."
    ),
    ShiftKind.COLLAPSE: (
        "The predictions drift towards some classes in a way that other class frequencies do not explain (collapse). "
        "Confidence is then too high; methods that restore the source's class frequencies (cot, cott) are nearer."
    ),
    ShiftKind.UNDECIDED: (
        "Changed class frequencies and a drifting classifier explain the predictions about equally well, and they call "
        "for different methods: the estimate lies between."
    ),
}
_FEW_ROWS = 200
_POOR_RANKING = 0.6
_NOTABLE_SHARE = 0.05
_NOTABLE_SPREAD = 0.1


def sentences(estimate: Estimate) -> list[str]:
    """Return what to tell a person about an estimate, the answer first, what the interval covers last."""
    (low, high), found, n = estimate.interval, estimate.diagnostics, estimate.n_samples
    source = found.get("source_accuracy")
    before = f"; it was {source:.1%} on the labelled source." if source is not None else "."
    level = f"{estimate.confidence_level:.0%} interval {low:.1%} to {high:.1%}"
    told = [f"Estimated accuracy {estimate.accuracy:.1%} ({level}), by {estimate.method} on {n:,} samples{before}"]
    if estimate.shift is not None:
        told += _about_shift(estimate.shift, int(found["n_source"]))
    rectified = found.get("rectified_share", 0.0)
    if rectified > _NOTABLE_SHARE:
        told.append(f"{rectified:.0%} of the samples are out of the anchors' reach and count as guesses.")
    if n < _FEW_ROWS:
        told.append(f"Only {n:,} samples: sampling error alone is up to {0.8 / n**0.5:.0%} either way.")
    if found.get("interval_covers"):
        told.append(f"The interval covers {found['interval_covers']}.")
    return told


def _about_shift(shift: Shift, n_source: int) -> list[str]:
    """Return what the comparison with the source showed."""
    told = [_VERDICTS[shift.kind]]
    if shift.kind in (ShiftKind.LABEL, ShiftKind.UNDECIDED) and shift.label_marginal_change > _NOTABLE_SHARE:
        change = shift.label_marginal_change
        told.append(f"About {change:.0%} of the samples seem to have moved to other classes than in the source.")
    if shift.share_outside > _NOTABLE_SHARE:
        told.append(f"{shift.share_outside:.0%} of the samples lie where the source has no sample at all.")
    if shift.readings_spread > _NOTABLE_SPREAD:
        readings = shift.readings.values()
        told.append(f"Readings disagree: they range from {min(readings):.1%} to {max(readings):.1%}.")
    if shift.ranking < _POOR_RANKING:
        told.append("On the source, confidence hardly ranks right before wrong: every estimate from it is rough.")
    if shift.effective_source_rows < min(_FEW_ROWS, n_source / 2):
        told.append(
            f"Few source samples are like the target: they are worth {shift.effective_source_rows:.0f} of them."
        )
    return told
