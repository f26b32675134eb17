"""Where hardly anything moves: `auto` beside single methods on random and on mildly reweighted halves of real sources.

Every third model under LEADLINE_DATA. One random half of its source is fitted on; the other is estimated as it is
("half"), with rows drawn again by confidence ("confidence", exp(+-0.3) and exp(+-0.7) from the least sure row to the
surest: what the outputs mean stays, so that calibrated confidence is right) and with classes drawn again by random
weights ("classes", log-normal, 0.2 and 0.5). A few of its targets as they are say what the same choice costs there.

    python docs/studies/calm.py

"half at" is the distance at which half of the answer rests on why the target differs from the source, and half on
calibrated confidence; at 0 all of it does. Each suite is also estimated with what does best on the others: the mean of
logarithms over the kinds, each the mean of its families' mean errors. Writes calm.json beside this file and prints it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from trust import DATA, family

import leadline as ll
from leadline.data.files import read_outputs
from leadline.estimators.auto import Auto, anchors_share
from leadline.numeric import top_two
from leadline.shift.judgement import combined, judge
from leadline.version import __version__

TARGETS = 4  # as they are, of each model
SINGLES = ("cbpe", "doc", "im", "alsa-g")
HALVES = (0.0, 0.03, 0.05, 0.1, 0.2)
SHIPPED = 0.1
UNSEEN = 0.3  # share of the noise that a shift may hide in


def calm_targets(rest: ll.Outputs, rng: np.random.Generator) -> Iterator[tuple[str, ll.Outputs]]:
    """Yield the half that was not fitted on, as it is and drawn again, with its kind."""
    logits, labels = rest.logits, rest.labels
    assert labels is not None, "the study needs labels"
    yield "half", rest
    odds = top_two(logits.astype(np.float64))[2]
    place = 2.0 * (np.argsort(np.argsort(odds)) + 0.5) / len(odds) - 1.0
    by_class = rng.normal(size=rest.n_classes)
    weights = [("confidence", strength * place) for strength in (-0.7, -0.3, 0.3, 0.7)]
    weights += [("classes", strength * by_class[labels]) for strength in (0.2, 0.5)]
    for kind, exponents in weights:
        chosen = rng.choice(len(rest), len(rest), p=np.exp(exponents) / np.exp(exponents).sum())
        yield kind, ll.Outputs(logits[chosen], labels[chosen])


def measure() -> Iterator[dict[str, Any]]:
    """Yield one row per model and target."""
    for model in sorted(path for path in DATA.glob("*/*") if path.is_dir())[::3]:
        source, rng = read_outputs(model / "source.npz"), np.random.default_rng(0)
        assert source.labels is not None, "the study needs labels"
        known, other = np.array_split(rng.permutation(len(source)), 2)
        half, rest = (ll.Outputs(source.logits[rows], source.labels[rows]) for rows in (known, other))
        paths = sorted(model.glob("target_*.npz"))
        targets = [("as is", read_outputs(path)) for path in paths[:: max(1, len(paths) // TARGETS)][:TARGETS]]
        for fitted_on, some in ((half, list(calm_targets(rest, rng))), (source, targets)):
            auto = Auto().fit(fitted_on)
            singles = {name: ll.make(name).fit(fitted_on) for name in SINGLES}
            for kind, target in some:
                row = {"suite": model.parent.name, "family": family(model), "model": model.name, "kind": kind}
                row |= {"truth": target.accuracy, **estimates(auto, target)}
                yield row | {name: fitted.estimate(target.logits).accuracy for name, fitted in singles.items()}
        print(model.parent.name, model.name, flush=True)


def estimates(auto: Auto, target: ll.Outputs) -> dict[str, Any]:
    """Return what `auto` says, its interval, and what it would say for each distance."""
    found = auto.estimate(target.logits)
    judged = judge(auto.source_, target.logits, len(target))
    share = anchors_share(auto.source_)
    anchors = (found.accuracy - (1.0 - share) * judged.accuracy) / share
    square = judged.explained.unchanged_distance**2 + (UNSEEN * judged.explained.noise) ** 2
    label_shift, collapse, by_half = judged.explained.label_shift_weight, judged.explained.collapse_weight, {}
    for half in HALVES:
        moved = square / (square + half**2)
        weights = moved * np.array([1.0 / moved - 1.0, label_shift, 1.0 - label_shift - collapse, collapse])
        accuracy = float(np.clip(combined(auto.source_, judged.readings, weights), 0.0, 1.0))
        by_half[f"half at {half}"] = (1.0 - share) * accuracy + share * anchors
    low, high = found.interval
    return {
        "auto": found.accuracy,
        "low": low,
        "high": high,
        "distance": judged.explained.unchanged_distance,
        **by_half,
    }


def errors(rows: list[dict[str, Any]], name: str, without: str = "") -> dict[str, float]:
    """Return the mean error of a method by kind, each the mean of its families; one suite may be left out."""
    found = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        by_family: dict[str, list[float]] = {}
        for row in rows:
            if row["kind"] == kind and row["suite"] != without:
                by_family.setdefault(row["family"], []).append(abs(row[name] - row["truth"]))
        if by_family:
            found[kind] = float(np.mean([np.mean(each) for each in by_family.values()]))
    return found


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors by kind, intervals by kind, and what each suite gets when the others choose the distance."""
    names = ["auto", *SINGLES, *(f"half at {half}" for half in HALVES)]
    intervals, left_out = {}, {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        held = [row["low"] <= row["truth"] <= row["high"] for row in mine]
        width = float(np.mean([row["high"] - row["low"] for row in mine]))
        intervals[kind] = {"targets": len(mine), "coverage": float(np.mean(held)), "width": width}
    for suite in dict.fromkeys(row["suite"] for row in rows):
        scores = {
            half: np.mean(np.log(list(errors(rows, f"half at {half}", without=suite).values()))) for half in HALVES
        }
        best = min(HALVES, key=lambda half: scores[half])
        mine = [row for row in rows if row["suite"] == suite]
        left_out[suite] = {"chosen": best} | {
            f"half at {half}": errors(mine, f"half at {half}") for half in {0.0, SHIPPED, best}
        }
    return {"errors": {name: errors(rows, name) for name in names}, "intervals": intervals, "left out": left_out}


def main() -> None:
    """Run the study and write its result."""
    found = {"version": __version__, **summarise(list(measure()))}
    text = json.dumps(found, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
