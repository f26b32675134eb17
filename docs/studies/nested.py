"""`auto` with its constants chosen on other families: what its figures owe to hindsight.

Every model of every family under LEADLINE_DATA and the folders of --data is judged once: its targets as they are, every
fourth also with classes drawn again ("label shift"), and of every third model halves of its source ("half",
"confidence", "classes": see calm.py). What `auto` reads in each target is kept, so that what it would have said with
other constants can be computed; with its own that is what it said, which is checked. Then each family in turn is left
out, the constants are those that do best on the others, and the family is estimated with these, and with intervals as
wide as the others need for 90 %.

    python docs/studies/nested.py [--data FOLDER ...] [--only families,of,these]

Best is the least mean of the logarithms of errors: targets as they are count for one, label shift for a half and each
kind of halves for a sixth; the error of a kind is the mean of its families' mean errors. Writes nested.json beside this
file and prints it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from calm import calm_targets
from numpy.typing import NDArray
from trust import DATA, EVERY, PARTS, SPARED, family, interval, label_shifted

import leadline as ll
from leadline.data.files import read_outputs
from leadline.estimators.auto import Auto, anchors_share
from leadline.numeric import Array, top_two
from leadline.shift.explanations import unchanged
from leadline.shift.judgement import judge
from leadline.version import __version__

WEIGHTS = {"as is": 1.0, "label shift": 1 / 2, "half": 1 / 6, "confidence": 1 / 6, "classes": 1 / 6}
COVERAGE, SCALES = 0.9, np.arange(0.5, 2.0, 0.05)
THIRD = 3  # one model in so many also estimates halves of its source
LEAST = 1e-9  # of a belief that another one is divided by
NEAR, MOST = 1e-4, 0.05  # the parts may give something else on average and at most: each is held within 0 and 1


class Constants(NamedTuple):
    """What is chosen: see leadline.shift.judgement, leadline.shift.explanations and leadline.estimators.auto."""

    width: float
    half: float
    clusters: float
    anchors: float
    unshown: float
    of_two_classes: float
    doubt: float


SHIPPED = Constants(width=0.1, half=0.1, clusters=1 / 2, anchors=1 / 4, unshown=0.08, of_two_classes=1 / 2, doubt=2.0)
CHOICES = [
    Constants(*each)
    for each in product(
        (0.07, 0.1, 0.15),
        (0.07, 0.1, 0.14),
        (0.0, 1 / 3, 1 / 2, 2 / 3),
        (0.0, 0.15, 0.25, 0.35),
        (0.0, 0.08, 0.12),
        (1 / 4, 1 / 2, 1.0),
        (0.0, 1.0, 2.0),
    )
]


def models(folders: list[Path], only: set[str]) -> list[Path]:
    """Return the folders of the models of all families, or of some."""
    every = [model for folder in folders for model in sorted(folder.glob("*/*")) if model.is_dir()]
    return [model for model in every if not only or model.parent.name in only]


def measure(model: Path, *, halved: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per target of a model."""
    source = read_outputs(model / "source.npz")
    targets = []
    for number, path in list(enumerate(sorted(model.glob("target_*.npz"))))[:: SPARED.get(model.parent.name, 1)]:
        target = read_outputs(path)
        assert target.labels is not None, "the study needs labelled targets"
        targets.append(("as is", target))
        if number % EVERY == 0:
            chosen = label_shifted(target.labels, target.n_classes, number)
            targets.append(("label shift", ll.Outputs(target.logits[chosen], target.labels[chosen])))
    sides = [(source, targets)]
    if halved:
        assert source.labels is not None, "the study needs labels"
        rng = np.random.default_rng(0)
        parts = np.array_split(rng.permutation(len(source)), 2)
        half, rest = (ll.Outputs(source.logits[rows], source.labels[rows]) for rows in parts)
        sides.append((half, list(calm_targets(rest, rng))))
    for fitted_on, some in sides:
        auto = Auto().fit(fitted_on)
        for kind, target in some:
            yield {"family": family(model), "kind": kind, "truth": target.accuracy, **parts_of(auto, target)}


def parts_of(auto: Auto, target: ll.Outputs) -> dict[str, Any]:
    """Return what the estimate of a target is made of."""
    found, judged, profile = auto.estimate(target.logits), judge(auto.source_, target.logits, len(target)), auto.source_
    as_is = unchanged(profile.top_two, top_two(profile.log_probabilities(target.logits)), target.n_classes)
    share, confidence = anchors_share(profile), judged.readings["confidence"]
    anchors = (
        (found.accuracy - (1.0 - share) * judged.accuracy) / share / (1.0 - judged.hidden) if share else confidence
    )
    return {
        "auto": found.accuracy, "low": found.interval[0], "high": found.interval[1], "anchors": anchors,
        "anchors_most": share / SHIPPED.anchors, "clusters_most": profile.clusters_share / SHIPPED.clusters,
        "few": profile.few_classes, "distance": judged.explained.unchanged_distance, "noise": judged.explained.noise,
        "label_shift": judged.explained.label_shift_weight, "collapse": judged.explained.collapse_weight,
        "two_classes": target.n_classes == 2, "doubt": min(as_is.doubt, 1.0), "extreme": as_is.extreme,
        "thresholded": confidence, **dict.fromkeys(("clusters", "clusters_reshared", "clusters_followed"), confidence),
        **judged.readings, **judged.parts,
    }  # fmt: skip


class Columns:
    """The rows as one array for each name."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def __getattr__(self, name: str) -> NDArray[Any]:
        return self._rows[name]


def credible(at: Columns, constants: Constants) -> Array:
    """Return how much of the belief in collapse is left because a target is unlike another mix of rows."""
    kept = np.where(at.two_classes, constants.of_two_classes, 1.0) * at.doubt**constants.doubt
    return np.asarray(at.extreme + (1.0 - at.extreme) * kept)


def estimates(at: Columns, constants: Constants) -> Array:
    """Return what `auto` would say of each row with these constants."""
    in_collapse = at.collapse / np.maximum(credible(at, SHIPPED), LEAST)
    in_more = np.maximum(1.0 - at.label_shift - in_collapse, 0.0)
    beliefs = np.stack([at.label_shift, in_more, in_collapse]) ** (SHIPPED.width / constants.width)
    label_shift, in_more, in_collapse = beliefs / beliefs.sum(axis=0)
    collapse = in_collapse * credible(at, constants)
    more = 1.0 - label_shift - collapse
    square = at.distance**2 + (0.3 * at.noise) ** 2
    moved = square / (square + constants.half**2)
    and_more = at.few * at.confidence + (1.0 - at.few) * at.thresholded
    reweighted = at.few * at.reweighted + (1.0 - at.few) * and_more

    def read(as_is: Array, under_label_shift: Array, under_more: Array, under_collapse: Array) -> Array:
        explained = label_shift * under_label_shift + more * under_more + collapse * under_collapse
        return (1.0 - moved) * as_is + moved * explained

    softmax = read(at.confidence, reweighted, and_more, at.restored)
    clusters = read(at.clusters, at.clusters_reshared, at.clusters, at.clusters_followed)
    share = constants.clusters * at.clusters_most
    judged = np.clip((1.0 - share) * softmax + share * clusters, 0.0, 1.0)
    shown = (1.0 - constants.anchors * at.anchors_most) * judged + constants.anchors * at.anchors_most * at.anchors
    return np.clip(shown * (1.0 - constants.unshown * moved**2 * (1.0 - judged)), 0.0, 1.0)


def ends(at: Columns, estimate: Array, scale: float) -> tuple[Array, Array]:
    """Return the intervals around estimates of the rows, with so many times what the shift may do."""
    return interval(estimate, (getattr(at, part) for part in PARTS), scale)


def by_family(at: Columns, values: NDArray[Any], kind: str) -> dict[str, float]:
    """Return the means of values, one for each row, over the targets of a kind."""
    mine = at.kind == kind
    names, numbers, counts = np.unique(at.family[mine], return_inverse=True, return_counts=True)
    return dict(zip(names.tolist(), (np.bincount(numbers, weights=values[mine]) / counts).tolist(), strict=True))


def mean_without(values: dict[str, float], left_out: str = "") -> float:
    """Return the mean over families but one."""
    return float(np.mean([value for name, value in values.items() if name != left_out]))


class Losses:
    """What each choice of constants costs, with any one family left out."""

    def __init__(self, at: Columns) -> None:
        tables: dict[str, list[list[float]]] = {kind: [] for kind in WEIGHTS}
        self.names = {kind: [*by_family(at, at.truth, kind)] for kind in WEIGHTS}
        for choice in CHOICES:
            error = np.abs(estimates(at, choice) - at.truth)
            for kind, table in tables.items():
                table.append([*by_family(at, error, kind).values()])
        self.errors = {kind: np.array(table) for kind, table in tables.items()}

    def without(self, left_out: str = "") -> Array:
        """Return the loss of each choice over all families but one."""
        kept = {kind: [name != left_out for name in names] for kind, names in self.names.items()}
        parts = (weight * np.log(self.errors[kind][:, kept[kind]].mean(axis=1)) for kind, weight in WEIGHTS.items())
        return np.asarray(sum(parts))

    def of(self, choice: Constants, kind: str) -> dict[str, float]:
        """Return the mean errors of a choice by family."""
        return dict(zip(self.names[kind], self.errors[kind][CHOICES.index(choice)].tolist(), strict=True))


def study(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each family gets from constants chosen on the others, and what shipped constants give."""
    at = Columns(rows)
    off = np.abs(estimates(at, SHIPPED) - at.auto)
    assert off.mean() < NEAR, f"what is kept must give what was said: off by {off.mean():.5f}"
    assert off.max() < MOST, f"what is kept must give what was said: off by {off.max():.3f}"
    losses = Losses(at)
    families, chosen = [], {}
    for name in losses.names["as is"]:
        chosen[name] = CHOICES[int(losses.without(name).argmin())]
        estimate = estimates(at, chosen[name])

        def held(scale: float, estimate: Array = estimate) -> NDArray[np.bool_]:
            low, high = ends(at, estimate, scale)
            return np.asarray((low <= at.truth) & (at.truth <= high))

        reached = (scale for scale in SCALES if mean_without(by_family(at, held(scale), "as is"), name) >= COVERAGE)
        scale = next(reached, float(SCALES[-1]))
        low, high = ends(at, estimate, scale)
        families.append({
            "family": name, "chosen": chosen[name]._asdict(), "scale": float(scale),
            **{kind: losses.of(chosen[name], kind).get(name) for kind in WEIGHTS},
            "coverage": by_family(at, held(scale), "as is")[name], "width": by_family(at, high - low, "as is")[name],
        })  # fmt: skip
    shipped_held = (at.low <= at.truth) & (at.truth <= at.high)
    shipped, whole = {kind: losses.of(SHIPPED, kind) for kind in WEIGHTS}, losses.without()
    return {
        "version": __version__,
        "families": families,
        "nested": {kind: float(np.mean([row[kind] for row in families if row[kind] is not None])) for kind in WEIGHTS},
        "coverage": float(np.mean([row["coverage"] for row in families])),
        "width": float(np.mean([row["width"] for row in families])),
        "times chosen": [{**each._asdict(), "times": times} for each, times in Counter(chosen.values()).most_common()],
        "shipped": {kind: mean_without(shipped[kind]) for kind in WEIGHTS},
        "shipped by family": shipped,
        "shipped coverage": by_family(at, shipped_held, "as is"),
        "loss": {"shipped": float(whole[CHOICES.index(SHIPPED)]), "least": float(whole.min())},
        "least loss by constant": {
            name: {
                f"{value:.2f}": float(whole[[getattr(each, name) == value for each in CHOICES]].min())
                for value in sorted({getattr(each, name) for each in CHOICES})
            }
            for name in Constants._fields
        },
    }


def main() -> None:
    """Run the study and write its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="more folders of families")
    parser.add_argument("--only", default="", help="some families, by the names of their folders")
    given = parser.parse_args()
    rows = []
    for number, model in enumerate(models([DATA, *given.data], set(filter(None, given.only.split(","))))):
        rows += list(measure(model, halved=number % THIRD == 0))
        print(model.parent.name, model.name, flush=True)
    text = json.dumps(study(rows), indent=1)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
