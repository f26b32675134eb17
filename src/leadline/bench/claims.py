"""What the paper claims, held against what was measured; nothing here is decided beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

ALSA = ("alsa-g", "alsa-e")
BASELINES = ("ac", "doc", "im", "atc-mc", "atc-ne", "cot", "cott")
_PAPER_BASELINES = ("ac", "doc", "im", "atc-ne", "cot")
_LIMIT = 0.10
_SMALL = 0.01

Verdict = Literal["holds", "does not hold", "no data"]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what the measurements say.

    Attributes
    ----------
    claim
        In short words.
    where
        The part of the paper that makes it.
    verdict
        "no data" where nothing measured bears on it.
    evidence
        The numbers, in points.
    own_data
        Whether the paper's own datasets were used, or only similar shifts.
    """

    claim: str
    where: str
    verdict: Verdict
    evidence: str
    own_data: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


Errors = Mapping[str, float]
Suites = Mapping[str, Mapping[str, Any]]


def check_claims(measured: Mapping[str, Any]) -> list[Claim]:
    """Hold every claim against ``measured.json``.

    Parameters
    ----------
    measured
        As read by :func:`leadline.bench.records.load_measured`.
    """
    experiments = measured["experiments"]
    main: Suites = experiments.get("main", {})
    return [
        _per_suite(
            main,
            "subpopulation",
            "ALSA is best under subpopulation shift",
            "Results across modalities",
            _alsa_best,
        ),
        _per_suite(main, "natural", "ALSA is best or second under natural shift", "Table 1", _alsa_second),
        _per_suite(
            main,
            "synthetic",
            "COT or ATC is ahead of ALSA under corruption",
            "Table 1",
            _transport_or_threshold_best,
        ),
        _per_suite(main, "domain", "ALSA is best under domain shift", "Table 1", _alsa_best),
        _per_suite(main, "temporal", "ALSA is best under temporal shift", "Table 2", _alsa_best),
        _stays_below(main),
        _baselines_exceed(main),
        _ablation(experiments.get("ablation", {})),
        _initialisation(experiments.get("init", {})),
        _alpha(experiments.get("alpha", {})),
        _anchors(experiments.get("anchors", {})),
    ]


def errors_of(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean absolute error of each variant on a suite."""
    return {variant: score["mae"] for variant, score in entry["all"].items()}


def _in_points(errors: Errors, *, digits: int = 1) -> str:
    """Write errors in points, the smallest first."""
    ordered = sorted(errors.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {100 * error:.{digits}f}" for name, error in ordered)


def _known(errors: Errors, names: tuple[str, ...]) -> dict[str, float]:
    """Return the errors of some methods, as far as they were measured."""
    return {name: errors[name] for name in names if name in errors}


def _alsa_best(errors: Errors) -> bool:
    return min(_known(errors, ALSA).values()) <= min(_known(errors, _PAPER_BASELINES).values())


def _alsa_second(errors: Errors) -> bool:
    best = min(_known(errors, ALSA).values())
    return sum(error < best for error in _known(errors, _PAPER_BASELINES).values()) <= 1


def _transport_or_threshold_best(errors: Errors) -> bool:
    ahead = min(_known(errors, ("cot", "atc-ne")).values())
    return ahead < min(_known(errors, ALSA).values())


def _per_suite(main: Suites, shift: str, claim: str, where: str, holds: Callable[[Errors], bool]) -> Claim:
    """Check a claim on every suite of a kind of shift; it holds if it holds on all of them."""
    usable = {}
    for name, entry in main.items():
        errors = errors_of(entry)
        if entry["shift"] == shift and _known(errors, ALSA) and set(_PAPER_BASELINES) <= set(errors):
            usable[name] = errors
    if not usable:
        return Claim(claim, where, "no data", "", own_data=False)
    answers = {name: holds(errors) for name, errors in usable.items()}
    evidence = "; ".join(
        f"{name}: {'yes' if answers[name] else 'no'} ({_in_points(_known(errors, ALSA + _PAPER_BASELINES))})"
        for name, errors in usable.items()
    )
    own = any(main[name]["same_setting"] for name in usable)
    return Claim(claim, where, "holds" if all(answers.values()) else "does not hold", evidence, own)


def _stays_below(main: Suites) -> Claim:
    """Check that ALSA's error is below 10 points on every suite."""
    claim, where = "ALSA stays below 10 points everywhere", "Results across modalities"
    worst = {}
    for method in ALSA:
        found = {name: errors_of(entry)[method] for name, entry in main.items() if method in errors_of(entry)}
        if found:
            name = max(found, key=lambda suite: found[suite])
            worst[f"{method} at most on {name}:"] = found[name]
    if not worst:
        return Claim(claim, where, "no data", "", own_data=False)
    verdict: Verdict = "holds" if max(worst.values()) < _LIMIT else "does not hold"
    return Claim(claim, where, verdict, _in_points(worst), _own(main))


def _baselines_exceed(main: Suites) -> Claim:
    """Check that every baseline has an error above 10 points somewhere."""
    claim, where = "every baseline exceeds 10 points somewhere", "Results across modalities"
    worst: dict[str, float] = {}
    for entry in main.values():
        for method, error in _known(errors_of(entry), _PAPER_BASELINES).items():
            worst[method] = max(worst.get(method, 0.0), error)
    if not worst:
        return Claim(claim, where, "no data", "", own_data=False)
    verdict: Verdict = "holds" if min(worst.values()) > _LIMIT else "does not hold"
    return Claim(claim, where, verdict, "largest: " + _in_points(worst), _own(main))


def _ablation(suites: Suites) -> Claim:
    """Check that learning everything gives the smallest error."""
    claim, where = "learning anchors, peaks and widths is best", "Ablation study"
    answers = {name: errors_of(entry) for name, entry in suites.items() if "Lrn" in entry["all"]}
    if not answers:
        return Claim(claim, where, "no data", "", own_data=False)
    holds = all(errors["Lrn"] <= min(errors.values()) for errors in answers.values())
    evidence = "; ".join(f"{name}: {_in_points(errors)}" for name, errors in answers.items())
    return Claim(claim, where, "holds" if holds else "does not hold", evidence, _own(suites))


def _initialisation(suites: Suites) -> Claim:
    """Check that sampled and random anchors end within a point of each other."""
    claim, where = (
        "the initialisation makes less than a point of difference",
        "Comparison of initialisation methods",
    )
    pairs = {name: errors_of(entry) for name, entry in suites.items() if {"sample", "random"} <= set(entry["all"])}
    if not pairs:
        return Claim(claim, where, "no data", "", own_data=False)
    holds = all(abs(errors["sample"] - errors["random"]) < _SMALL for errors in pairs.values())
    evidence = "; ".join(f"{name}: {_in_points(errors, digits=2)}" for name, errors in pairs.items())
    return Claim(claim, where, "holds" if holds else "does not hold", evidence, _own(suites))


def _alpha(suites: Suites) -> Claim:
    """Check that the best alpha lies inside the range tried, both ends being worse."""
    claim, where = "small and large alpha are worse than those between", "Confidence interval"
    curves = {}
    for name, entry in suites.items():
        for method in ALSA:
            points = sorted(
                (float(variant.split()[1]), score["mae"])
                for variant, score in entry["all"].items()
                if variant.startswith(method)
            )
            if len(points) > 2:
                curves[f"{name}, {method}"] = points
    if not curves:
        return Claim(claim, where, "no data", "", own_data=False)
    inside = {name: min(points[1:-1], key=lambda point: point[1]) for name, points in curves.items()}
    holds = all(inside[name][1] < min(points[0][1], points[-1][1]) for name, points in curves.items())
    evidence = "; ".join(
        f"{name}: "
        + ", ".join(f"{100 * error:.1f} at {alpha:g}" for alpha, error in (points[0], inside[name], points[-1]))
        for name, points in curves.items()
    )
    return Claim(claim, where, "holds" if holds else "does not hold", evidence, _own(suites))


def _anchors(suites: Suites) -> Claim:
    """Check that the error falls from the fewest anchors and is then flat, within a point of the best."""
    claim, where = "more anchors help at first, then change little", "Number of anchors"
    curves = {
        name: sorted((int(variant), score["mae"]) for variant, score in entry["all"].items())
        for name, entry in suites.items()
        if len(entry["all"]) > 2
    }
    if not curves:
        return Claim(claim, where, "no data", "", own_data=False)
    holds = all(
        points[0][1] > points[-1][1] and abs(points[-1][1] - points[-2][1]) < _SMALL for points in curves.values()
    )
    evidence = "; ".join(
        f"{name}: " + ", ".join(f"{100 * error:.1f} at {count}" for count, error in points)
        for name, points in curves.items()
    )
    return Claim(claim, where, "holds" if holds else "does not hold", evidence, _own(suites))


def _own(suites: Suites) -> bool:
    """Say whether any of the suites is one of the paper's own."""
    return any(entry["same_setting"] for entry in suites.values())
