"""An example from beginning to end without a download: digits, real shifts, every method."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from leadline.comparison import Progress, counting, evaluate, fit_planned, plan_fits
from leadline.data.outputs import Outputs
from leadline.demo.digits import TARGETS, digits_outputs, refuse_to_overwrite
from leadline.results.comparison import Comparison

FIGURE = "estimated_vs_true.png"
TRAFFIC = "traffic.parquet"
COMPARISON = "comparison.json"


@dataclass(frozen=True)
class Demo:
    """What the demo made.

    Attributes
    ----------
    folder
        Where the files are.
    source_accuracy
        True accuracy of the network on the labelled source.
    comparison
        Every method on every target.
    figure
        Estimated against true accuracy; None where matplotlib is not installed.
    """

    folder: Path
    source_accuracy: float
    comparison: Comparison
    figure: Path | None


def run(folder: str | Path, *, force: bool = False, progress: Progress | None = None) -> Demo:
    """Train, shift, estimate, and write everything used to a folder.

    Parameters
    ----------
    folder
        Made if it does not exist.
    force
        Overwrite the demo's files if they exist.
    progress
        Called after each step with steps done, steps in all, and what was done.
    """
    from leadline.data.files import write_bytes, write_outputs

    folder, plan = Path(folder), plan_fits()
    draws = find_spec("matplotlib") is not None
    models = [model_file(method) for method, _, _ in plan]
    files = ["source.npz", *map(target_file, TARGETS), TRAFFIC, *models, COMPARISON, FIGURE]
    refuse_to_overwrite(folder, files, force=force)
    report = counting(progress, 2 + len(plan) * (1 + len(TARGETS)))
    source, targets = digits_outputs()
    report("train a network on digits")
    folder.mkdir(parents=True, exist_ok=True)
    write_outputs(source, folder / "source.npz", force=force)
    for name, target in targets.items():
        write_outputs(target, folder / target_file(name), force=force)
    write_outputs(_traffic(targets), folder / TRAFFIC, force=force)
    fitted = fit_planned(source, plan, progress=report)
    for fit in fitted:
        fit.estimator.save(folder / model_file(fit.method), force=force)
    comparison = evaluate(fitted, targets, progress=report)
    write_bytes(folder / COMPARISON, json.dumps(comparison.to_dict(), indent=2).encode() + b"\n", force=force)
    if draws:
        from leadline.report.scatter import save_predicted_vs_true

        save_predicted_vs_true(comparison, folder / FIGURE)
    report("draw the figure")
    return Demo(folder, float(source.accuracy or 0.0), comparison, folder / FIGURE if draws else None)


def target_file(name: str) -> str:
    """Return the file name of a target."""
    return f"target_{name}.npz"


def model_file(method: str) -> str:
    """Return the file name of a fitted method."""
    return f"{method}.leadline"


def _traffic(targets: dict[str, Outputs]) -> Outputs:
    """Return all targets as one unlabelled set with the shift as a column, like mixed traffic."""
    origin = np.concatenate([np.full(len(target), name) for name, target in targets.items()])
    return Outputs(np.concatenate([target.logits for target in targets.values()]), metadata={"shift": origin})
