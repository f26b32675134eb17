"""A thousand classes, simulated: what each method says of corrupted targets when the source has three rows a class.

    python docs/studies/many_classes.py OUT.json

No suite at hand has more than 77 classes, so that the logits are made up. Classes lie in groups of ten in a space of
128 features; a row is its class's mean and noise. The classifier is linear, the best one for features as they are, and
surer than it should be, as networks are. Corruptions act on the features, which is where those of images end up:
noise, drift of all rows in one direction, and a blend with another row, each in two strengths and with some
shrinking, as networks are less sure of what they have not seen. "clean" is more of the source; "label shift" has class
frequencies from a Dirichlet draw.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leadline as ll
from leadline.comparison import evaluate, fit_planned, plan_fits
from leadline.estimators.base import learn_profile
from leadline.shift.judgement import judge

CLASSES, GROUP, FEATURES = 1_000, 10, 128
SOURCE_ROWS, TARGET_ROWS = 3_000, 2_000
SINGLES = ("atc-ne", "atc-mc", "cott", "ac")
STRENGTHS = (0.4, 0.8)
KINDS = ("noise", "drift", "blend")
SHRINKING = 0.15
Array = NDArray[np.float64]


class World:
    """Classes, and a linear classifier of them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        groups = np.repeat(self.rng.normal(size=(CLASSES // GROUP, FEATURES)), GROUP, axis=0)
        self.means = 0.4 * groups + 0.25 * self.rng.normal(size=(CLASSES, FEATURES))
        self.common = self.rng.normal(size=FEATURES)

    def rows(self, n: int, shares: Array | None = None) -> tuple[Array, NDArray[np.int64]]:
        """Return features, shape (n, d), and classes, shape (n,)."""
        labels = (
            self.rng.permutation(np.arange(n) % CLASSES) if shares is None else self.rng.choice(CLASSES, n, p=shares)
        )
        # Some rows are harder than others: noise that is the same for all makes accuracy and confidence one thing.
        spread = np.exp(self.rng.normal(0.0, 0.25, size=(n, 1)))
        return self.means[labels] + spread * self.rng.normal(size=(n, FEATURES)), labels

    def logits(self, features: Array) -> NDArray[np.float32]:
        """Return what the classifier says of features, shape (n, c)."""
        scores = features @ self.means.T - 0.5 * (self.means**2).sum(axis=1)
        return np.asarray(1.3 * scores, dtype=np.float32)

    def corrupted(self, features: Array, kind: str, strength: float) -> Array:
        """Return corrupted features, shape (n, d)."""
        worse = {
            "noise": features + 1.2 * strength * self.rng.normal(size=features.shape),
            "drift": features + 1.2 * strength * self.common,
            "blend": features + 0.9 * strength * self.rng.permutation(features),
        }[kind]
        return (1.0 - SHRINKING * strength) * worse


def measure() -> list[dict[str, Any]]:
    """Return one row per target."""
    world = World(0)
    features, labels = world.rows(SOURCE_ROWS)
    source = ll.Outputs(world.logits(features), labels)
    targets = {}
    for kind, strength in [("clean", 0.0), ("label shift", 0.0), *product(KINDS, STRENGTHS)]:
        shares = world.rng.dirichlet(np.ones(CLASSES)) if kind == "label shift" else None
        features, labels = world.rows(TARGET_ROWS, shares)
        if kind in KINDS:
            features = world.corrupted(features, kind, strength)
        targets[f"{kind} {strength}"] = ll.Outputs(world.logits(features), labels)
    rows = []
    profile = learn_profile(source)
    fitted = fit_planned(source, plan_fits(SINGLES), progress=lambda _: None)
    for name, target in targets.items():
        # With so many classes `auto` is its judgement: ALSA has a four-hundredth of it.
        judged = judge(profile, target.logits, len(target))
        said = {row.method: row.accuracy for row in evaluate(fitted, {name: target}, progress=lambda _: None)}
        rows.append({"target": name, "truth": target.accuracy, "auto": judged.accuracy, **said})
        rows[-1]["interval"] = judged.interval(judged.accuracy, 0.9)
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main(out: Path) -> None:
    """Measure, print and store."""
    rows = measure()
    out.write_text(json.dumps(rows, indent=1) + "\n")
    corrupted = [row for row in rows if row["target"].split()[0] in KINDS]
    for method in ("auto", *SINGLES):
        errors = [100 * abs(row[method] - row["truth"]) for row in corrupted]
        print(f"{method:8s} {np.mean(errors):.1f} points off under corruption")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
