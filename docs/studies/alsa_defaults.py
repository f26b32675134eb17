"""Choose what the ALSA paper leaves open: reach, learning rate, number of steps, alpha.

Fits ALSA with every combination on the real suites under LEADLINE_DATA, scores the estimates, and chooses for each
suite the combination that does best on the *other* suites: the error of a suite is always that of defaults chosen
without it. Writes alsa_defaults.json beside this file and prints the tables of docs/alsa-defaults.md.

    python docs/studies/alsa_defaults.py [--models 4]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.estimators import make
from leadline.estimators.alsa.kernels import get_kernel
from leadline.estimators.alsa.reach import harmless_threshold, rectification_threshold
from leadline.estimators.alsa.training import Training, default_anchor_count, place, train
from leadline.version import __version__

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
BATCH = 256
REACH = {"gaussian": (0.16, 0.22, 0.3), "exponential": (0.05, 0.08, 0.13)}
RATES = (3e-3, 1e-2)
STEPS = (100, 200, 400)
ALPHA = {"gaussian": (0.95, 0.98, 0.99), "exponential": (0.8, 0.9, 0.95)}
TOLERANCE = (0.01, 0.015, 0.02, 0.03, float("inf"))
KERNEL = get_kernel("numba")

Model = tuple[Outputs, list[Outputs]]
Errors = dict[tuple[Any, ...], dict[str, list[float]]]


def load_suites(n_models: int) -> dict[str, list[Model]]:
    """Return some models of each suite, evenly chosen, with all their targets."""
    suites = {}
    for folder in sorted(path for path in DATA.iterdir() if path.is_dir()):
        models = sorted(folder.iterdir())
        chosen = models[:: max(1, len(models) // n_models)][:n_models]
        suites[folder.name] = [
            (read_outputs(model / "source.npz"), [read_outputs(path) for path in sorted(model.glob("target_*.npz"))])
            for model in chosen
        ]
    return suites


def score(field: Any, influence: Any, model: Model, others: Any) -> dict[tuple[float, float], list[float]]:
    """Return the absolute errors over the targets for each start value of alpha and tolerance."""
    source, targets = model
    on_source = KERNEL.influence(source.logits[others], field)
    on_targets = [KERNEL.influence(target.logits, field) for target in targets]
    errors = {}
    for alpha, tolerance in itertools.product(ALPHA[influence], TOLERANCE):
        highest = rectification_threshold(alpha, influence)
        threshold = harmless_threshold(on_source, np.abs(on_source), source.n_classes, highest, tolerance)
        errors[alpha, tolerance] = [
            absolute_error(np.where(np.abs(total) < threshold, 1 / source.n_classes, expit(total)).mean(), target)
            for total, target in zip(on_targets, targets, strict=True)
        ]
    return errors


def study(influence: Any, suites: dict[str, list[Model]]) -> Errors:
    """Return the absolute errors of every combination on every suite."""
    errors: Errors = {}
    for reach, rate in itertools.product(REACH[influence], RATES):
        for name, models in suites.items():
            for model in models:
                source = model[0]
                n, c = source.logits.shape
                correct = source.logits.argmax(axis=1) == source.labels
                rng = np.random.default_rng(0)
                placed = place(
                    KERNEL, source.logits, source.logits.argmax(axis=1), correct,
                    n_classes=c, n_anchors=default_anchor_count(n, c), init="sample", rng=rng,
                    power=2 if influence == "gaussian" else 1, reach=reach,
                )  # fmt: skip
                per_epoch = -(-n // BATCH)
                stops = {max(1, round(steps / per_epoch)): steps for steps in STEPS}

                def note(
                    epoch: int, field: Any, stops: Any = stops, model: Any = model, name: str = name,
                    reach: float = reach, rate: float = rate, others: Any = placed.others,
                ) -> None:  # fmt: skip
                    if epoch in stops:
                        for (alpha, tolerance), found in score(field, influence, model, others).items():
                            key = (reach, rate, stops[epoch], alpha, tolerance)
                            errors.setdefault(key, {}).setdefault(name, []).extend(found)

                learn = frozenset({"anchors", "peaks", "widths"})
                options = Training(learn, epsilon=0.0, max_epochs=max(stops), learning_rate=rate, batch_size=BATCH)
                train(KERNEL, source.logits, correct, placed.field, options, rng, on_epoch=note)
            print(influence, reach, rate, name, flush=True)
    return errors


def choose(mae: dict[tuple[Any, ...], dict[str, float]], reference: dict[str, float], without: str | None) -> Any:
    """Return the combination with the least mean error relative to average confidence, over the other suites."""
    return min(mae, key=lambda key: np.mean([mae[key][s] / reference[s] for s in reference if s != without]))


def _plain(key: tuple[float, ...]) -> list[float | None]:
    """Return a combination as JSON can hold it; no tolerance is None."""
    return [None if np.isinf(value) else value for value in key]


def absolute_error(estimate: float, target: Outputs) -> float:
    """Return how far an estimate is from the truth."""
    assert target.accuracy is not None, "the study needs labelled targets"
    return abs(estimate - target.accuracy)


def main() -> None:
    """Run the study and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=4, help="models per suite")
    suites = load_suites(parser.parse_args().models)
    reference = {}
    for name, models in suites.items():
        found = []
        for source, targets in models:
            ac = make("ac").fit(source.logits, source.labels)
            found += [absolute_error(ac.estimate(target.logits).accuracy, target) for target in targets]
        reference[name] = float(np.mean(found))
    result: dict[str, Any] = {"version": __version__, "average_confidence": reference}
    for influence in ("gaussian", "exponential"):
        errors = study(influence, suites)
        mae = {key: {s: float(np.mean(e)) for s, e in by.items()} for key, by in errors.items()}
        names = ("reach", "learning_rate", "steps", "alpha", "tolerance")
        result[influence] = {
            "combinations": [
                {**dict(zip(names, key, strict=True)), "tolerance": None if np.isinf(key[-1]) else key[-1], "mae": by}
                for key, by in mae.items()
            ],
            "left_out": {
                s: {"chosen": _plain(key), "mae": mae[key][s]}
                for s, key in ((s, choose(mae, reference, s)) for s in reference)
            },
            "best_on_all": _plain(choose(mae, reference, None)),
        }
        print(json.dumps({k: v for k, v in result[influence].items() if k != "combinations"}, indent=1))
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
