"""What the paper claims, held against what was measured; nothing here is decided beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

ALSA = ("alsa-g", "alsa-e")
_BASELINES = ("ac", "doc", "im", "atc-ne", "cot")
_LIMIT = 0.10
_SMALL = 0.01

Verdict = Literal["holds", "holds in part", "does not hold", "no data"]


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
        "holds in part" where some of the suites that bear on it agree, "no data" where there are none.
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
#: What each suite or curve says: whether the claim holds on it, and its numbers.
Answers = Mapping[str, tuple[bool, str]]


def check_claims(measured: Mapping[str, Any]) -> list[Claim]:
    """Hold every claim against ``measured.json``.

    Parameters
    ----------
    measured
        As read by :func:`leadline.bench.records.load_measured`.
    """
    experiments = measured["experiments"]
    main: Suites = experiments.get("main", {})

    def on_shift(shift: str, holds: Callable[[Errors], bool]) -> Answers:
        return _compare({name: errors_of(entry) for name, entry in main.items() if entry["shift"] == shift}, holds)

    def on_row(pattern: str, holds: Callable[[Errors], bool]) -> Answers:
        rows = {name: row for name, entry in main.items() for row in entry["paper_rows"] if re.search(pattern, row)}
        return _compare({name: _errors(main[name]["paper_rows"][row]) for name, row in rows.items()}, holds)

    def judge(claim: str, where: str, answers: Answers, suites: Suites = main) -> Claim:
        asked = [entry for name, entry in suites.items() if any(answer.split(",")[0] == name for answer in answers)]
        own = bool(answers) and any(entry["same_setting"] for entry in asked or suites.values())
        held = [answer for answer, _ in answers.values()]
        verdict: Verdict = "no data"
        if held:
            verdict = "holds" if all(held) else "holds in part" if any(held) else "does not hold"
        marks = {True: "yes", False: "no"}
        evidence = "; ".join(f"{name}: {marks[answer]} ({numbers})" for name, (answer, numbers) in answers.items())
        return Claim(claim, where, verdict, evidence, own)

    def judge_experiment(name: str, claim: str, where: str, answer: Callable[[Suites], Answers]) -> Claim:
        suites = experiments.get(name, {})
        return judge(claim, where, answer(suites), suites)

    return [
        judge("ALSA is best under subpopulation shift", "Results", on_shift("subpopulation", _alsa_best)),
        judge("ALSA is best or second under natural shift", "Table 1", on_shift("natural", _alsa_second)),
        judge(
            "COT or ATC is ahead of ALSA under corruption", "Table 1", on_row("-10+C$", _transport_or_threshold_best)
        ),
        judge("ALSA is best on MNIST-M", "Table 1", on_row("/MNIST-M$", _alsa_best)),
        judge("ALSA is best under domain shift", "Table 1", on_shift("domain", _alsa_best)),
        judge("ALSA is best under temporal shift", "Table 2", on_shift("temporal", _alsa_best)),
        judge("ALSA stays below 10 points everywhere", "Results", _largest(main, ALSA, below=True)),
        judge("every baseline exceeds 10 points somewhere", "Results", _largest(main, _BASELINES, below=False)),
        judge_experiment("ablation", "learning anchors, peaks and widths is best", "Ablation study", _ablation),
        judge_experiment(
            "init",
            "the initialisation makes less than a point of difference",
            "Initialisation methods",
            _initialisation,
        ),
        judge_experiment("alpha", "small and large alpha are worse than those between", "Confidence interval", _alpha),
        judge_experiment("anchors", "more anchors help at first, then change little", "Number of anchors", _anchors),
    ]


def errors_of(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean absolute error of each variant on a suite."""
    return _errors(entry["all"])


def _errors(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the mean absolute errors of some scores."""
    return {variant: score["mae"] for variant, score in scores.items()}


def _in_points(errors: Errors, *, digits: int = 1) -> str:
    """Write errors in points, the smallest first."""
    ordered = sorted(errors.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {100 * error:.{digits}f}" for name, error in ordered)


def _known(errors: Errors, names: tuple[str, ...]) -> dict[str, float]:
    """Return the errors of some methods, as far as they were measured."""
    return {name: errors[name] for name in names if name in errors}


def _compare(suites: Mapping[str, Errors], holds: Callable[[Errors], bool]) -> Answers:
    """Ask on every suite with all the paper's methods."""
    answers = {}
    for name, errors in suites.items():
        if _known(errors, ALSA) and set(_BASELINES) <= set(errors):
            answers[name] = (holds(errors), _in_points(_known(errors, ALSA + _BASELINES)))
    return answers


def _alsa_best(errors: Errors) -> bool:
    return min(_known(errors, ALSA).values()) <= min(_known(errors, _BASELINES).values())


def _alsa_second(errors: Errors) -> bool:
    best = min(_known(errors, ALSA).values())
    return sum(error < best for error in _known(errors, _BASELINES).values()) <= 1


def _transport_or_threshold_best(errors: Errors) -> bool:
    ahead = min(_known(errors, ("cot", "atc-ne")).values())
    return ahead < min(_known(errors, ALSA).values())


def _largest(main: Suites, methods: tuple[str, ...], *, below: bool) -> Answers:
    """Ask of each method whether its largest error over all suites is below 10 points, or above."""
    answers = {}
    for method in methods:
        found = {name: errors_of(entry)[method] for name, entry in main.items() if method in errors_of(entry)}
        if found:
            worst = max(found, key=lambda suite: found[suite])
            answers[method] = ((found[worst] < _LIMIT) == below, f"{worst} {100 * found[worst]:.1f}")
    return answers


def _ablation(suites: Suites) -> Answers:
    """Ask whether learning everything gives the smallest error."""
    found = {name: errors_of(entry) for name, entry in suites.items() if "Lrn" in entry["all"]}
    return {name: (errors["Lrn"] <= min(errors.values()), _in_points(errors)) for name, errors in found.items()}


def _initialisation(suites: Suites) -> Answers:
    """Ask whether all ways to place the anchors end within a point of each other."""
    found = {name: errors_of(entry) for name, entry in suites.items() if len(entry["all"]) > 1}
    return {
        name: (max(errors.values()) - min(errors.values()) < _SMALL, _in_points(errors, digits=2))
        for name, errors in found.items()
    }


def _alpha(suites: Suites) -> Answers:
    """Ask whether the best alpha lies inside the range tried, both ends being worse."""
    answers = {}
    for name, entry in suites.items():
        for method in ALSA:
            points = sorted(_points(entry, method))
            if len(points) > 2:
                inside = min(points[1:-1], key=lambda point: point[1])
                shown = (points[0], inside, points[-1])
                numbers = ", ".join(f"{100 * error:.1f} at {alpha:g}" for alpha, error in shown)
                answers[f"{name}, {method}"] = (inside[1] < min(points[0][1], points[-1][1]), numbers)
    return answers


def _points(entry: Mapping[str, Any], method: str) -> Iterator[tuple[float, float]]:
    """Yield alpha and error of each variant of a method."""
    for variant, error in errors_of(entry).items():
        if variant.startswith(method):
            yield float(variant.split()[1]), error


def _anchors(suites: Suites) -> Answers:
    """Ask whether the error falls from the fewest anchors and is then flat, within a point of the best."""
    answers = {}
    for name, entry in suites.items():
        points = sorted((int(variant), error) for variant, error in errors_of(entry).items())
        if len(points) > 2:
            falls = points[0][1] > points[-1][1] and abs(points[-1][1] - points[-2][1]) < _SMALL
            answers[name] = (falls, ", ".join(f"{100 * error:.1f} at {count}" for count, error in points))
    return answers
