"""What an estimate rests on, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_VERDICTS = {
    "no detectable shift": "The target looks like the source: nothing differs beyond sampling noise.",
    "label shift": (
        "The predictions look like the source's with other class frequencies (label shift). Confidence then stays "
        "meaningful; methods that assume the source's class frequencies (cot, cott) do not."
    ),
    "collapse": (
        "The predictions drift towards some classes in a way that other class frequencies do not explain (collapse). "
        "Confidence is then too high; methods that restore the source's class frequencies (cot, cott) are nearer."
    ),
    "undecided": (
        "Changed class frequencies and a drifting classifier explain the predictions about equally well, and they call "
        "for different methods: the estimate lies between."
    ),
}
_FEW_ROWS = 200
_POOR_RANKING = 0.6
_NOTABLE_SHARE = 0.05
_NOTABLE_SPREAD = 0.1


def sentences(
    accuracy: float, interval: tuple[float, float], level: float, n: int, method: str, diagnostics: Mapping[str, Any]
) -> list[str]:
    """Return what to tell a person about an estimate, the answer first."""
    low, high = interval
    source = diagnostics.get("source_accuracy")
    answer = f"Estimated accuracy {accuracy:.1%} ({level:.0%} interval {low:.1%} to {high:.1%})"
    before = f"; it was {source:.1%} on the labelled source." if source is not None else "."
    told = [f"{answer}, by {method} on {n:,} samples{before}"]
    trust = diagnostics.get("trust")
    if trust is not None:
        told += _about_trust(trust, int(diagnostics["n_source"]))
    rectified = diagnostics.get("rectified_share", 0.0)
    if rectified > _NOTABLE_SHARE:
        told.append(f"{rectified:.0%} of the samples are out of the anchors' reach and count as guesses.")
    if n < _FEW_ROWS:
        told.append(f"Only {n:,} samples: sampling error alone is up to {0.8 / n**0.5:.0%} either way.")
    if diagnostics.get("interval_covers"):
        told.append(f"The interval covers {diagnostics['interval_covers']}.")
    return told


def _about_trust(trust: Mapping[str, Any], n_source: int) -> list[str]:
    """Return what the comparison with the source showed."""
    told = [_VERDICTS[trust["hypothesis"]]]
    change = trust["label_marginal_change"]
    if trust["hypothesis"] in ("label shift", "undecided") and change > _NOTABLE_SHARE:
        told.append(f"About {change:.0%} of the samples seem to have moved to other classes than in the source.")
    if trust["share_outside"] > _NOTABLE_SHARE:
        told.append(f"{trust['share_outside']:.0%} of the samples lie where the source has no sample at all.")
    if trust["readings_spread"] > _NOTABLE_SPREAD:
        readings = trust["readings"].values()
        told.append(f"Readings disagree: they range from {min(readings):.1%} to {max(readings):.1%}.")
    if trust["ranking"] < _POOR_RANKING:
        told.append("On the source, confidence hardly ranks right before wrong: every estimate from it is rough.")
    if trust["effective_source_rows"] < min(_FEW_ROWS, n_source / 2):
        told.append(
            f"Few source samples are like the target: they are worth {trust['effective_source_rows']:.0f} of them."
        )
    return told
