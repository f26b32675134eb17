"""What the paper claims, held against what was measured; nothing here is decided beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from leadline.bench.graphs.paper_tables import NETWORKS
from leadline.bench.graphs.run import METHOD
from leadline.bench.rows import PAPER_SUFFIX
from leadline.estimators.alsa.band import band_width_bound

#: The paper's rows of corrupted images.
CORRUPTION = r"-10+C$"
#: The paper's rows of images collected anew, of CIFAR-10.
NATURAL = r"/CIFAR-10\.[12]$"
#: The fall of the true accuracy from which the paper speaks of a large one.
LARGE_DROP = 0.30
_ALSA = ("alsa-g", "alsa-e")
_BASELINES = ("ac", "doc", "im", "atc-ne", "cot")
_LIMIT = 0.10
_SMALL = 0.01
_EMBEDDING = 128  # of the paper's worked example
_NO_BAND = 0.01  # what rounding logits to half precision leaves

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
        The numbers, in points but for R2, correlations and band widths.
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
Scores = Mapping[str, Mapping[str, Any]]
Suites = Mapping[str, Mapping[str, Any]]
#: What each suite, row, network or curve says: whether the claim holds on it, and its numbers. Names begin with the
#: suite's, up to a comma.
Answers = Mapping[str, tuple[bool, str]]


def check_claims(measured: Mapping[str, Any]) -> list[Claim]:
    """Hold every claim against ``measured.json``.

    Where the paper's own choices were run (``alsa-g-paper``, ``ablation-paper`` and so on), they are what is judged;
    elsewhere ours.

    Parameters
    ----------
    measured
        As read by :func:`leadline.bench.records.load_measured`.
    """
    experiments = measured["experiments"]
    main: Suites = experiments.get("main", {})

    def experiment(name: str, claim: str, where: str, answer: Callable[[Suites], Answers]) -> Claim:
        suites = {**experiments.get(name, {}), **experiments.get(f"{name}{PAPER_SUFFIX}", {})}
        return _judge(claim, where, answer(suites), suites)

    def on_main(claim: str, where: str, answers: Answers) -> Claim:
        return _judge(claim, where, answers, main)

    natural = _compare(_of_rows(main, NATURAL), _alsa_best)
    # The paper's Table 1 marks ATC as the best on ImageNetV2; its text speaks of the CIFAR targets only.
    imagenet = _compare(_of_rows(main, r"/ImageNetv2$"), lambda errors: errors["atc-ne"] < _best_alsa(errors))
    corruption = _compare(
        _of_rows(main, CORRUPTION), lambda errors: _best(errors, "cot", "atc-ne") < _best_alsa(errors)
    )
    bands: Suites = measured.get("bands", {})
    return [
        on_main("ALSA is best under subpopulation shift", "Results", _on_shift(main, "subpopulation")),
        on_main("natural shift: ALSA is best on CIFAR-10.1 and CIFAR-10.2", "Table 1", natural),
        on_main("natural shift: ATC is ahead of ALSA on ImageNetV2", "Table 1", imagenet),
        on_main("COT or ATC is ahead of ALSA under corruption", "Table 1", corruption),
        on_main(
            "ALSA stays below 10 points where the accuracy falls by more than 30 under corruption",
            "CIFAR-10C and CIFAR-100C results",
            _large_drops(main),
        ),
        on_main("ALSA is best on MNIST-M", "Table 1", _compare(_of_rows(main, "/MNIST-M$"), _alsa_best)),
        on_main("ALSA is best under domain shift", "Table 1", _on_shift(main, "domain")),
        on_main("ALSA is best under temporal shift, with every network", "Table 2", _on_shift(main, "temporal")),
        on_main("ALSA-G has the highest R2 with every graph network", "Table 3", _agreement(main, "r2", NETWORKS)),
        # With GIN, Table 3 has a higher correlation for DoC than for ALSA.
        on_main(
            "ALSA-G has the highest correlation with GCN, SAGE and GAT",
            "Table 3",
            _agreement(main, "rho", ("gcn", "sage", "gat")),
        ),
        on_main("ALSA stays below 10 points everywhere", "Results", _largest(main, _ALSA, below=True)),
        on_main("every baseline exceeds 10 points somewhere", "Results", _largest(main, _BASELINES, below=False)),
        experiment("ablation", "learning anchors, peaks and widths is best", "Ablation study", _ablation),
        experiment(
            "init",
            "sampled and random anchors end less than a point apart on every target",
            "Initialisation methods",
            _initialisation,
        ),
        experiment("alpha", "small and large alpha are worse than those between", "Confidence interval", _alpha),
        experiment("anchors", "more anchors help at first, then change little", "Number of anchors", _anchors),
        _judge("the logits' band is narrower than Proposition 1's bound", "Proposition 1", _bands(bands), bands),
    ]


def _judge(claim: str, where: str, answers: Answers, suites: Suites) -> Claim:
    """Sum up the answers of some suites."""
    asked = [entry for name, entry in suites.items() if any(answer.split(",")[0] == name for answer in answers)]
    own = bool(answers) and any(entry["same_setting"] for entry in asked or suites.values())
    held = [answer for answer, _ in answers.values()]
    verdict: Verdict = "no data"
    if held:
        verdict = "holds" if all(held) else "holds in part" if any(held) else "does not hold"
    marks = {True: "yes", False: "no"}
    evidence = "; ".join(f"{name}: {marks[answer]} ({numbers})" for name, (answer, numbers) in answers.items())
    return Claim(claim, where, verdict, evidence, own)


def errors_of(scores: Scores) -> dict[str, float]:
    """Return the mean absolute error of each variant."""
    return {variant: score["mae"] for variant, score in scores.items()}


def _in_points(errors: Errors) -> str:
    """Write errors in points, the smallest first."""
    ordered = sorted(errors.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {100 * error:.1f}" for name, error in ordered)


def _judged(names: Mapping[str, Any], method: str) -> str | None:
    """Return the variant that stands for a method: that with the paper's choices, if it was run."""
    return next((name for name in (f"{method}{PAPER_SUFFIX}", method) if name in names), None)


def _known(errors: Errors) -> dict[str, float]:
    """Return the errors of the methods that the paper compares, as far as they were measured."""
    names = [_judged(errors, method) for method in (*_ALSA, *_BASELINES, METHOD)]
    return {name: errors[name] for name in names if name is not None}


def _best(errors: Errors, *methods: str) -> float:
    """Return the smallest error of some methods, as far as they were measured."""
    return min(errors[name] for method in methods if (name := _judged(errors, method)) is not None)


def _best_alsa(errors: Errors) -> float:
    return _best(errors, *_ALSA)


def _alsa_best(errors: Errors) -> bool:
    return _best_alsa(errors) <= _best(errors, *_BASELINES, METHOD)


def _of_rows(main: Suites, pattern: str) -> dict[str, Errors]:
    """Return the errors on some of the paper's rows: those that match a pattern, of every suite."""
    return {
        f"{name}, {row}": errors_of(scores)
        for name, entry in main.items()
        for row, scores in entry["paper_rows"].items()
        if re.search(pattern, row)
    }


def _on_shift(main: Suites, shift: str) -> Answers:
    """Ask whether ALSA is best on each suite of a shift, with each network where they are graphs."""
    found = _with_each_network({name: entry for name, entry in main.items() if entry["shift"] == shift})
    return _compare(found, _alsa_best)


def _with_each_network(suites: Suites) -> dict[str, Errors]:
    """Return the errors on each suite, with each network of the paper where there are graphs."""
    found: dict[str, Errors] = {}
    for name, entry in suites.items():
        kinds = entry.get("by_kind", {})
        networks = {f"{name}, {kind}": errors_of(kinds[kind]) for kind in NETWORKS if kind in kinds}
        found |= networks or {name: errors_of(entry["all"])}
    return found


def _compare(found: Mapping[str, Errors], holds: Callable[[Errors], bool]) -> Answers:
    """Ask wherever all the paper's methods were run."""
    return {
        name: (holds(errors), _in_points(_known(errors)))
        for name, errors in found.items()
        if any(_judged(errors, method) for method in _ALSA) and set(_BASELINES) <= set(errors)
    }


def _large_drops(main: Suites) -> Answers:
    """Ask whether each ALSA stays below 10 points on corrupted images on which accuracy fell far."""
    answers = {}
    for name, entry in main.items():
        scores = entry.get("large_drops", {})
        for variant in filter(None, (_judged(scores, method) for method in _ALSA)):
            score = scores[variant]
            numbers = f"{100 * score['mae']:.1f} over {score['rows']} estimates"
            answers[f"{name}, {variant}"] = (score["mae"] < _LIMIT, numbers)
    return answers


def _agreement(main: Suites, measure: str, networks: Collection[str]) -> Answers:
    """Ask of each network whether no method has a higher R2, or correlation, than ALSA-G, which Table 3 calls ALSA."""
    answers = {}
    for name, entry in main.items():
        for kind in networks:
            scores = entry.get("by_kind", {}).get(kind, {})
            ours = _judged(scores, "alsa-g")
            names = [ours, *(method for method in (*_BASELINES, METHOD) if method in scores)]
            found = {method: scores[method][measure] for method in names if method is not None}
            found = {method: value for method, value in found.items() if value is not None}
            if ours in found and len(found) > 1:
                ordered = sorted(found.items(), key=lambda item: -item[1])
                numbers = ", ".join(f"{method} {value:.2f}" for method, value in ordered)
                answers[f"{name}, {kind}"] = (found[ours] >= ordered[0][1], numbers)
    return answers


def _largest(main: Suites, methods: tuple[str, ...], *, below: bool) -> Answers:
    """Ask of each method whether its largest error, over suites and the paper's rows, is below 10 points or above."""
    answers = {}
    for method in methods:
        found: dict[str, float] = {}
        for name, entry in main.items():
            groups = {name: entry["all"]} | {f"{name}, {row}": scores for row, scores in entry["paper_rows"].items()}
            for group, scores in groups.items():
                if (variant := _judged(scores, method)) is not None:
                    found[group if variant == method else f"{group}, {variant}"] = scores[variant]["mae"]
        if found:
            worst = max(found, key=lambda group: found[group])
            answers[method] = ((found[worst] < _LIMIT) == below, f"{worst} {100 * found[worst]:.1f}")
    return answers


def _ablation(suites: Suites) -> Answers:
    """Ask whether learning everything gives the smallest error, with each network where there are graphs."""
    found = {name: errors for name, errors in _with_each_network(suites).items() if "Lrn" in errors}
    return {name: (errors["Lrn"] <= min(errors.values()), _in_points(errors)) for name, errors in found.items()}


def _initialisation(suites: Suites) -> Answers:
    """Ask whether the two ways of the paper to place anchors end within a point of each other on every target."""
    answers = {}
    for name, entry in suites.items():
        apart = {
            target: abs(errors["sample"] - errors["random"])
            for target, errors in entry.get("by_target", {}).items()
            if {"sample", "random"} <= set(errors)
        }
        if apart:
            near = sum(difference < _SMALL for difference in apart.values())
            worst = max(apart, key=lambda target: apart[target])
            numbers = f"{near} of {len(apart)} targets; {100 * apart[worst]:.2f} apart on {worst}"
            answers[name] = (near == len(apart), numbers)
    return answers


def _alpha(suites: Suites) -> Answers:
    """Ask whether the best alpha lies inside the range tried, both ends being worse."""
    answers = {}
    for name, entry in suites.items():
        found: dict[str, list[tuple[float, float]]] = {}
        for variant, error in errors_of(entry["all"]).items():
            method, alpha = variant.split()
            found.setdefault(method, []).append((float(alpha), error))
        for method in _ALSA:
            points = sorted(found.get(method, ()))
            if len(points) > 2:
                inside = min(points[1:-1], key=lambda point: point[1])
                shown = (points[0], inside, points[-1])
                numbers = ", ".join(f"{100 * error:.1f} at {alpha:g}" for alpha, error in shown)
                answers[f"{name}, {method}"] = (inside[1] < min(points[0][1], points[-1][1]), numbers)
    return answers


def _anchors(suites: Suites) -> Answers:
    """Ask whether the error falls from the fewest anchors and is then flat, within a point of the best."""
    answers = {}
    for name, entry in suites.items():
        points = sorted((int(variant), error) for variant, error in errors_of(entry["all"]).items())
        if len(points) > 2:
            falls = points[0][1] > points[-1][1] and abs(points[-1][1] - points[-2][1]) < _SMALL
            answers[name] = (falls, ", ".join(f"{100 * error:.1f} at {count}" for count, error in points))
    return answers


def _bands(bands: Suites) -> Answers:
    """Ask whether the bands of trained networks stay below the bound, which the proof gives for fresh ones.

    Logits do not tell how wide an embedding they come from. The question is asked for the 128 of the paper's
    example; a band above the bound for an embedding of one entry is above it for any. Models whose logits sum to
    zero by construction, as linear ones do, have no band and are left out.
    """
    answers = {}
    for name, entry in bands.items():
        found = {model: band for model, band in entry["models"].items() if band["width"] > _NO_BAND}
        if not found:
            continue
        below, possible = (
            [band["width"] < band_width_bound(m, band["n_classes"], entry["confidence"]) for band in found.values()]
            for m in (_EMBEDDING, 1)
        )
        widths = sorted(band["width"] for band in found.values())
        numbers = f"{widths[0]:.2f} to {widths[-1]:.2f} wide, {sum(below)} of {len(found)} below the bound"
        if not all(possible):
            numbers += f", {len(found) - sum(possible)} above that of any embedding"
        answers[name] = (all(below), numbers)
    return answers
