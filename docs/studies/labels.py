"""How well intervals from a few labels cover, and how wide they are.

    python docs/studies/labels.py DATA OUT.json

Thousands of plans are simulated on real targets whose labels are known: within a stratum, the number of right labels
is hypergeometric, so that drawing it is drawing the plan. Widths are divided by that of Clopper and Pearson's
interval from a simple random sample of as many labels on the same target. All intervals are at 90 %.

"shipped" is what ``plan_labels`` and ``estimate_with_labels`` do with ``auto``; "prefix" the first n rows of plans
for 500. The other lines change one thing: the correctness (calibrated confidence, ALSA's, the mean of all three), the
number of strata, how the labels are spread over them, or the interval (Korn and Graubard's; pseudo-labels).
"constructed" has populations made to break it: accuracies from 0.1 to 99.9 %, and an estimate that ranks rows well,
not at all, or upside down. "stopping" looks at the interval after every twenty labels and stops at the first of 5
points either way or less.
"errors" is the share of errors among the 100 rows that seem least likely right.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import beta, t

import leadline as ll
from leadline.estimators.draws import strata_of
from leadline.labels import intervals, strata
from leadline.labels.intervals import stratified_accuracy, stratified_interval
from leadline.labels.target import opened
from leadline.numeric import of_class

LEVEL = 0.9
SIZES = (50, 100, 200, 500)
PLANS = 1000
TARGETS = 8
LEAST_ROWS = 1000
MODELS = {
    "amazon_blitzer": ("bin_books_lr", "bin_dvd_minilm_mlp", "star_books_minilm_lr", "star_electronics_mlp"),
    "banking77": ("minilm_lr", "tfidf_mlp"),
    "cifar10c": ("resnet20", "resnet56"),
    "citation_domains": ("acmv9_gcn", "citationv1_gin", "acmv9_mlp"),
    "mnist": ("cnn_bal_s0", "cnn_imb_s0", "mlp_imb_s0"),
    "tabular_time": ("elec_a_hgb", "elec_b_lr", "flights_carrier_mlp", "flights_delay_rf", "gas123_hgb", "gas12_mlp"),
}
ALWAYS = ("target_invert",)  # confidently wrong

Interval = Callable[[Any, Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Pair:
    """A target: where it is from, which rows are right, and what each method holds likely."""

    suite: str
    name: str
    right: Any
    correctness: dict[str, Any]


def pairs(data: Path) -> Iterator[Pair]:
    rng = np.random.default_rng(0)
    for suite, models in MODELS.items():
        for model in models:
            source = ll.read_outputs(data / suite / model / "source.npz")
            auto, alsa = ll.Auto().fit(source), ll.make("alsa-g").fit(source)
            paths = sorted((data / suite / model).glob("target_*.npz"))
            some = [paths[i] for i in rng.permutation(len(paths))[:TARGETS]]
            some += [path for path in paths if path.stem in ALWAYS and path not in some]
            for path in some:
                target = ll.read_outputs(path)
                if len(target) < LEAST_ROWS:
                    continue
                rows = auto.rows_of(target.logits)
                scores = auto.source_.log_probabilities(rows)
                found = {
                    "auto": correctness_of(auto, target, rows),
                    "alsa": correctness_of(alsa, target, rows),
                    "confidence": np.exp(of_class(scores, target.predictions)),
                }
                found["mean"] = np.mean(list(found.values()), axis=0)
                table = model.split("_")[0].rstrip("123") if suite == "tabular_time" else suite
                yield Pair(table, f"{model}/{path.stem}", target.predictions == target.labels, found)
            print(suite, model, file=sys.stderr, flush=True)


def correctness_of(model: ll.Estimator, target: ll.Outputs, rows: Any) -> Any:
    with opened(model, target) as one:
        return one.correctness(rows)


def shipped(right: Any, labelled: Any, sizes: Any) -> tuple[Any, Any]:
    return stratified_interval(right, labelled, sizes, LEVEL)


def clopper_pearson(right: Any, n: Any) -> tuple[Any, Any]:
    tail = (1 - LEVEL) / 2
    low = np.where(right > 0, beta.ppf(tail, np.maximum(right, 1e-9), n - right + 1), 0.0)
    return low, np.where(right < n, beta.ppf(1 - tail, right + 1, np.maximum(n - right, 1e-9)), 1.0)


def korn_graubard(right: Any, labelled: Any, sizes: Any) -> tuple[Any, Any]:
    n, shares, weights = labelled.sum(), right / labelled, sizes / sizes.sum()
    estimate = shares @ weights
    factors = weights**2 * (1 - labelled / sizes) / np.maximum(labelled - 1, 1)
    variance = (shares * (1 - shares)) @ factors
    worth = np.where(variance > 0, estimate * (1 - estimate) / np.maximum(variance, 1e-12), n)
    worth = worth * (t.ppf(0.5 + LEVEL / 2, n - 1) / t.ppf(0.5 + LEVEL / 2, n - len(sizes))) ** 2
    return clopper_pearson(estimate * worth, worth)


def simulate(
    right: Any,
    correctness: Any,
    n: int,
    rng: np.random.Generator,
    *,
    budget: int | None = None,
    interval: Interval = shipped,
) -> dict[str, float]:
    """Return coverage, width against Clopper and Pearson, and bias over simulated plans."""
    truth, n_rows = right.mean(), len(right)
    cut = strata_of(correctness, strata.cut_points(correctness, budget or n))
    sizes, good = np.bincount(cut), np.bincount(cut, weights=right).astype(int)
    counts = strata.allocate(correctness, cut, sizes, budget or n)
    if budget:
        counts = np.bincount(strata.turns(counts, int(rng.integers(2**32)))[:n], minlength=len(sizes))
    seen = np.stack(
        [rng.hypergeometric(g, m - g, k, PLANS) for g, m, k in zip(good, sizes, counts, strict=True)], axis=1
    )
    low, high = interval(seen, counts, sizes)
    simple_low, simple_high = clopper_pearson(rng.hypergeometric(right.sum(), n_rows - right.sum(), n, PLANS), n)
    return {
        "coverage": float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))),
        "width": float(np.mean(high - low) / np.mean(simple_high - simple_low)),
        "half": float(np.mean(high - low) / 2),
        "simple half": float(np.mean(simple_high - simple_low) / 2),
        "bias": float(np.mean(stratified_accuracy(seen, counts, sizes)) - truth),
    }


def constructed(rng: np.random.Generator) -> Iterator[Pair]:
    confidence = rng.beta(8, 1, 5000)
    odds, noise = np.log(confidence / (1 - confidence + 1e-9)), rng.logistic(size=5000)
    orders = {"ranked well": odds + noise, "not ranked": noise, "upside down": noise - odds}
    orders["errors among the surest"] = noise - 5 * (confidence > np.quantile(confidence, 0.6))
    for accuracy in (0.001, 0.01, 0.05, 0.5, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999):
        for name, order in orders.items():
            right = np.zeros(5000, dtype=bool)
            right[np.argsort(-order)[: round(5000 * accuracy)]] = True
            yield Pair("constructed", f"{name}, {accuracy:.1%}", right, {"auto": confidence})


VARIANTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "shipped": ("auto", nullcontext, {}),
    "prefix of 500": ("auto", nullcontext, {"budget": 500}),
    "confidence": ("confidence", nullcontext, {}),
    "ALSA": ("alsa", nullcontext, {}),
    "mean of auto, ALSA and confidence": ("mean", nullcontext, {}),
    "2 strata": ("auto", lambda: patch.object(strata, "_MOST_STRATA", 2), {}),
    "8 strata": ("auto", lambda: patch.object(strata, "_MOST_STRATA", 8), {}),
    "proportional": ("auto", lambda: patch.object(strata, "_PROPORTIONAL", 1.0), {}),
    "a third proportional": ("auto", lambda: patch.object(strata, "_PROPORTIONAL", 1 / 3), {}),
    "Korn-Graubard": ("auto", nullcontext, {"interval": korn_graubard}),
    "no pseudo-labels": ("auto", lambda: patch.object(intervals, "_PSEUDO_LABELS", 1e-6), {}),
    "two pseudo-labels": ("auto", lambda: patch.object(intervals, "_PSEUDO_LABELS", 1.0), {}),
}


def stopping(pair: Pair, rng: np.random.Generator, plans: int = 200, most: int = 400) -> tuple[float, float, float]:
    """Return coverage and labels used where labelling stops at the first interval that is narrow enough."""
    correctness, right, covered, used = pair.correctness["auto"], pair.right, [], []
    cut = strata_of(correctness, strata.cut_points(correctness, most))
    sizes = np.bincount(cut)
    counts = strata.allocate(correctness, cut, sizes, most)
    looks = np.arange(20, most + 1, 20)
    for _ in range(plans):
        drawn = [rng.permutation(np.flatnonzero(cut == h))[:count] for h, count in enumerate(counts)]
        rows = strata.arrange(drawn, int(rng.integers(2**32)))
        seen = np.cumsum(np.eye(len(sizes), dtype=int)[cut[rows]] * right[rows][:, None], axis=0)[looks - 1]
        drawn = np.cumsum(np.eye(len(sizes), dtype=int)[cut[rows]], axis=0)[looks - 1]
        for k, labelled, good in zip(looks, drawn, seen, strict=True):
            low, high = shipped(good, labelled, sizes)
            if high - low <= 0.1 or k == looks[-1]:
                covered.append(low <= right.mean() <= high)
                used.append(k)
                break
    return float(np.mean(covered)), float(np.mean(used)), float(right.mean())


def main() -> None:
    data, out = Path(sys.argv[1]) / "logits", Path(sys.argv[2])
    rng = np.random.default_rng(0)
    table: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
    errors: dict[str, list[list[float]]] = defaultdict(list)
    worst: list[tuple[float, str]] = []
    stops: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for pair in [*pairs(data), *constructed(rng)]:
        if pair.suite != "constructed":
            wrong = ~pair.right
            first = [
                wrong[np.argsort(pair.correctness[name], kind="stable")[:100]].mean() for name in ("auto", "confidence")
            ]
            errors[pair.suite].append([float(wrong.mean()), float(first[1]), float(first[0])])
            if not stops[pair.suite]:
                stops[pair.suite].append(stopping(pair, rng))
        for n in SIZES:
            for name, (kind, context, options) in VARIANTS.items():
                if kind not in pair.correctness:
                    continue
                with context():
                    found = simulate(pair.right, pair.correctness[kind], n, rng, **options)
                table[f"{name}, n = {n}"][pair.suite].append(found)
                if name == "shipped":
                    worst.append((found["coverage"], f"{pair.suite}/{pair.name}, n = {n}"))
    lines = {}
    for name, suites in table.items():
        means = {
            suite: {
                "width": float(np.mean([one["width"] for one in found])),
                "half-width": float(np.mean([one["half"] for one in found])),
                "half-width of a simple sample": float(np.mean([one["simple half"] for one in found])),
                "coverage": float(np.mean([one["coverage"] for one in found])),
                "least coverage of a target": min(one["coverage"] for one in found),
                "targets": len(found),
            }
            for suite, found in suites.items()
        }
        real = [value for suite, value in means.items() if suite != "constructed"]
        summary = {
            "mean width": float(np.mean([value["width"] for value in real])),
            "largest width of a suite": max(value["width"] for value in real),
            "least coverage of a suite": min(value["coverage"] for value in real),
        }
        lines[name] = summary | {"suites": means}
        print(f"{name:45}", "  ".join(f"{key} {value:.3f}" for key, value in summary.items()))
    result = {
        "plans of each target": PLANS,
        "intervals": lines,
        "least covered": [f"{coverage:.3f} {name}" for coverage, name in sorted(worst)[:10]],
        "stopping": {
            suite: [dict(zip(("coverage", "labels", "accuracy"), one, strict=True)) for one in found]
            for suite, found in stops.items()
        },
        "errors in 100": {
            suite: dict(zip(("random", "least confidence", "auto"), np.mean(found, axis=0).tolist(), strict=True))
            for suite, found in errors.items()
        },
    }
    print(json.dumps({key: result[key] for key in ("least covered", "stopping", "errors in 100")}, indent=1))
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
