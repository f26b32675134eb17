"""Where hardly anything moves: `auto` beside single methods on random and on mildly reweighted halves of real sources.

Every third model under LEADLINE_DATA. One random half of its source is fitted on; the other is estimated as it is
("half"), with rows drawn again by confidence ("confidence", exp(+-0.3) and exp(+-0.7) from the least sure row to the
surest: what the outputs mean stays, so that calibrated confidence is right) and with classes drawn again by random
weights ("classes", log-normal, 0.2 and 0.5). A few of its targets as they are say what the same choice costs there.

    python docs/studies/calm.py

Writes calm.json beside this file and prints it.
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
from leadline.estimators.auto import Auto
from leadline.numeric import top_two
from leadline.version import __version__

TARGETS = 4  # as they are, of each model
SINGLES = ("cbpe", "doc", "im", "alsa-g")


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
    """Return what `auto` says, and its interval."""
    found = auto.estimate(target.logits)
    low, high = found.interval
    return {"auto": found.accuracy, "low": low, "high": high}


def errors(rows: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Return the mean error of a method by kind, each the mean of its families."""
    found = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        by_family: dict[str, list[float]] = {}
        for row in rows:
            if row["kind"] == kind:
                by_family.setdefault(row["family"], []).append(abs(row[name] - row["truth"]))
        found[kind] = float(np.mean([np.mean(each) for each in by_family.values()]))
    return found


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors by kind, and intervals by kind."""
    intervals = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        held = [row["low"] <= row["truth"] <= row["high"] for row in mine]
        width = float(np.mean([row["high"] - row["low"] for row in mine]))
        intervals[kind] = {"targets": len(mine), "coverage": float(np.mean(held)), "width": width}
    return {"errors": {name: errors(rows, name) for name in ("auto", *SINGLES)}, "intervals": intervals}


def main() -> None:
    """Run the study and write its result."""
    found = {"version": __version__, **summarise(list(measure()))}
    text = json.dumps(found, indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
