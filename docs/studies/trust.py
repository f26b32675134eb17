"""How well intervals cover, and how `auto` does, on the real suites and on label-shifted resamplings of them.

Fits every method on every model under LEADLINE_DATA and estimates all its targets, as they are and resampled to class
frequencies drawn from a Dirichlet distribution. Writes trust.json beside this file and prints tables.

    python docs/studies/trust.py [--methods auto,ac,...] [--data FOLDER --out FILE]

"unseen" is what to expect of data unlike these: each of nine families (six suites, the tables taken apart) is estimated
with what does best on the other eight: which single method, how much of the answer is ALSA's, and how wide intervals
must be for 90 %; "unseen suites" the same with the six suites. "by distance" is the error by how far the target is from
the source. "two models": of two models of one task on the same target, how often `auto` finds out which is the better.
trust_pairs.csv has the truth and two estimates of every target, which trust_figure.py draws.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.comparison import evaluate, fit_planned, plan_fits
from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.estimators import METHODS
from leadline.numeric import normal_quantile
from leadline.shift.judgement import SKEW
from leadline.version import __version__

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
EVERY = 4  # one target in so many is also resampled
SPARED = {"glyphs": 3}  # of some suites only one target in so many: with 1,000 classes, transport takes long
ANCHORS_SHARE = 0.25  # of `auto` with few classes
SHARES = (0.0, 0.1, 0.2, 0.25, 0.33, 0.5)
PARTS = ("sampling", "shift", "classes", "drift")  # of the uncertainty of an estimate
DISTANCES = (0.0, 0.01, 0.03, 0.08, 0.2, 0.4, 1.0)


def label_shifted(labels: NDArray[np.int64], c: int, seed: int) -> NDArray[np.int64]:
    """Return row numbers, drawn with replacement, whose classes are as frequent as a Dirichlet draw says."""
    rng = np.random.default_rng(seed)
    wanted = rng.dirichlet(np.ones(c))
    present = np.bincount(labels, minlength=c)
    weights = np.where(present > 0, wanted / np.maximum(present, 1), 0.0)[labels]
    return rng.choice(len(labels), size=len(labels), p=weights / weights.sum())


def measure(methods: list[str], data: Path = DATA) -> Iterator[dict[str, Any]]:
    """Yield one row per method, model, target and kind."""
    for model in sorted(path for path in data.glob("*/*") if path.is_dir()):
        source = read_outputs(model / "source.npz")
        fitted = fit_planned(source, plan_fits(methods), progress=lambda _: None)
        for number, path in list(enumerate(sorted(model.glob("target_*.npz"))))[:: SPARED.get(model.parent.name, 1)]:
            target = read_outputs(path)
            assert target.labels is not None, "the study needs labelled targets"
            kinds = {"as is": np.arange(len(target))}
            if number % EVERY == 0:
                kinds["label shift"] = label_shifted(target.labels, target.n_classes, number)
            for kind, chosen in kinds.items():
                part = Outputs(target.logits[chosen], target.labels[chosen])
                for row in evaluate(fitted, {path.stem: part}, progress=lambda _: None):
                    assert row.estimate is not None
                    assert row.estimate.shift is not None
                    yield {
                        "suite": model.parent.name, "model": model.name, "family": family(model), "target": path.stem,
                        "kind": kind, "classes": target.n_classes, "method": row.method, "estimate": row.accuracy,
                        "truth": row.truth, "low": row.interval[0], "high": row.interval[1],
                        "distance": row.estimate.shift.distance, **row.estimate.shift.uncertainty,
                    }  # fmt: skip
        print(model.parent.name, model.name, flush=True)


def family(model: Path) -> str:
    """Return the suite of a model, and of tables which of them it is."""
    if model.parent.name != "tabular_time":
        return model.parent.name
    return next(name for name in ("gas", "elec", "flights_delay", "flights_carrier") if model.name.startswith(name))


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return error, coverage and width per kind, method and suite, and over all pairs."""
    summary = []
    for kind in sorted({row["kind"] for row in rows}):
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["kind"] == kind and row["method"] == method]
            for suite in [*sorted({row["suite"] for row in mine}), "all"]:
                some = [row for row in mine if suite in ("all", row["suite"])]
                summary.append(
                    {
                        "kind": kind, "method": method, "suite": suite, "pairs": len(some),
                        "mae": float(np.mean([abs(row["estimate"] - row["truth"]) for row in some])),
                        "coverage": float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in some])),
                        "width": float(np.mean([row["high"] - row["low"] for row in some])),
                    }
                )  # fmt: skip
    return summary


def by_distance(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return errors, also the one that one in ten exceeds, and intervals of targets as they are, by distance."""
    found = []
    for low, high in pairwise(DISTANCES):
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["method"] == method and row["kind"] == "as is"]
            mine = [row for row in mine if low <= row["distance"] < high]
            if mine:
                errors = [abs(row["estimate"] - row["truth"]) for row in mine]
                found.append(
                    {
                        "from": low, "to": high, "method": method, "pairs": len(mine), "mae": float(np.mean(errors)),
                        "ninth_tenth": float(np.quantile(errors, 0.9)),
                        "coverage": float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in mine])),
                        "width": float(np.mean([row["high"] - row["low"] for row in mine])),
                    }
                )  # fmt: skip
    return found


def interval(
    estimate: NDArray[np.float64], parts: Iterable[NDArray[np.float64]], scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return intervals of 90 % around estimates, by their PARTS, with so many times what the shift may do."""
    sampling, shift, *leans = (normal_quantile(0.95) * part for part in parts)
    lower, upper = (
        np.sqrt(
            sampling**2
            + ((1.0 - sign * SKEW) * scale * shift) ** 2
            + sum(np.maximum(sign * lean, 0.0) ** 2 for lean in leans)
        )
        for sign in (-1, 1)
    )
    return np.maximum(estimate - lower, 0.0), np.minimum(estimate + upper, 1.0)


def unseen(rows: list[dict[str, Any]], group: str) -> list[dict[str, Any]]:
    """Return of each family, or suite, what `auto` and the best single method do, all choices made on the others."""
    plain = [row for row in rows if row["kind"] == "as is"]
    keys = ("suite", "model", "target")
    table = {(row["method"], *(row[key] for key in keys)): row for row in plain}
    pairs = [row for row in plain if row["method"] == "auto"]
    families = np.array([row[group] for row in pairs])
    truth = np.array([row["truth"] for row in pairs])

    def column(method: str, name: str = "estimate") -> NDArray[np.float64]:
        return np.array([table[(method, *(row[key] for key in keys))][name] for row in pairs])

    singles = {method: column(method) for method in dict.fromkeys(row["method"] for row in plain) if method != "auto"}
    few = np.minimum(1.0, 10.0 / column("auto", "classes"))
    judged = (column("auto") - ANCHORS_SHARE * few * singles["alsa-g"]) / (1.0 - ANCHORS_SHARE * few)
    autos = {share: judged + share * few * (singles["alsa-g"] - judged) for share in SHARES}

    parts = [column("auto", part) for part in PARTS]

    def mean(values: NDArray[Any], names: list[str]) -> float:
        return float(np.mean([values[families == name].mean() for name in names]))

    def ends(estimate: NDArray[np.float64], scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return interval(estimate, parts, scale)

    def covered(estimate: NDArray[np.float64], scale: float) -> NDArray[np.bool_]:
        low, high = ends(estimate, scale)
        return np.asarray((low <= truth) & (truth <= high))

    found = []
    for name in dict.fromkeys(families.tolist()):
        others = [other for other in dict.fromkeys(families.tolist()) if other != name]
        errors = {key: np.abs(values - truth) for key, values in (singles | autos).items()}
        single = min(singles, key=lambda key: mean(errors[key], others))
        share = min(autos, key=lambda key: mean(errors[key], others))
        scale = next(
            (each for each in np.arange(0.3, 3.0, 0.02) if mean(covered(autos[share], each), others) >= 0.9), 3.0
        )
        low, high = ends(autos[share], scale)
        best = min(singles, key=lambda key: mean(errors[key], [name]))
        found.append(
            {
                group: name, "pairs": int(np.sum(families == name)), "anchors_share": share, "scale": float(scale),
                "auto": mean(errors[share], [name]), "coverage": mean(covered(autos[share], scale), [name]),
                "width": mean(high - low, [name]), "single": single, "single_mae": mean(errors[single], [name]),
                "best": best, "best_mae": mean(errors[best], [name]),
            }
        )  # fmt: skip
    return found


def task(model: str, suite: str) -> str:
    """Return what a model was trained for, as its name and suite say."""
    words = {"amazon_blitzer": 2, "citation_domains": 1, "tabular_time": -1}
    return "_".join(model.split("_")[: words[suite]]) if suite in words else ""


def two_models(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return of each suite, and of all, what `auto` says of pairs of models on the same target."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["method"] == "auto" and row["kind"] == "as is":
            suite = row["suite"]
            groups.setdefault((suite, task(row["model"], suite), row["target"]), []).append(row)
    pairs = [(key[0], one, other) for key, group in groups.items() for one, other in combinations(group, 2)]
    found = []
    for suite in [*dict.fromkeys(key for key, _, _ in pairs), "all"]:
        mine = [(one, other) for key, one, other in pairs if suite in ("all", key)]
        errors = np.array([[row["estimate"] - row["truth"] for row in pair] for pair in mine])
        apart, truly = (np.array([one[name] - other[name] for one, other in mine]) for name in ("estimate", "truth"))
        right = np.sign(apart) == np.sign(truly)
        far = np.abs(apart) > 0.05
        disjoint = np.array([one["low"] > other["high"] or other["low"] > one["high"] for one, other in mine])
        found.append(
            {
                "suite": suite, "pairs": len(mine), "errors of one sign": float(np.mean(errors.prod(axis=1) > 0)),
                "mae": float(np.mean(np.abs(errors))), "mae of the difference": float(np.mean(np.abs(apart - truly))),
                "right": float(right.mean()), "more than 5 points apart": int(far.sum()),
                "right of these": float(right[far].mean()) if far.any() else None,
                "intervals apart": int(disjoint.sum()),
                "right of those": float(right[disjoint].mean()) if disjoint.any() else None,
            }
        )  # fmt: skip
    return found


def write_pairs(rows: list[dict[str, Any]], path: Path) -> None:
    """Write family, truth, and the estimates of `ac` and of `auto`, of each target as it is."""
    plain = {(row["method"], row["suite"], row["model"], row["target"]): row for row in rows if row["kind"] == "as is"}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("family", "truth", "ac", "auto"))
        for (method, *key), row in plain.items():
            if method == "auto":
                values = row["truth"], plain["ac", *key]["estimate"], row["estimate"]
                writer.writerow((row["family"], *(f"{value:.4f}" for value in values)))


def main() -> None:
    """Run the study and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS), help="some, with auto, ac and alsa-g; all by default")
    parser.add_argument("--data", type=Path, default=DATA, help="a folder of suites of models")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    given = parser.parse_args()
    write(list(measure(given.methods.split(","), given.data)), given.out)


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """Write and print what the rows say."""
    summary = summarise(rows)
    found = {"version": __version__, "rows": summary, "by distance": by_distance(rows)}
    found |= {"unseen": unseen(rows, "family"), "unseen suites": unseen(rows, "suite")}
    found["two models"] = two_models(rows)
    write_pairs(rows, path.with_name(f"{path.stem}_pairs.csv"))
    path.write_text(json.dumps(found, indent=1) + "\n")
    for row in [*found["unseen"], *found["unseen suites"], *found["two models"]]:
        print(json.dumps(row))
    for row in summary:
        print(
            f"{row['kind']:12s} {row['method']:7s} {row['suite']:18s} {row['pairs']:4d} "
            f"error {100 * row['mae']:5.1f}  coverage {row['coverage']:.2f}  width {row['width']:.2f}"
        )


if __name__ == "__main__":
    main()
