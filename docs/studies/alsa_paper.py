"""What the paper leaves open of ALSA: one setting of peak, widths, rate and epochs for all data.

Fits ``ALSA.paper`` with each setting on some models of five suites under LEADLINE_DATA, with 1,000 anchors at most, and
estimates every fourth target. Writes alsa_paper.json beside this file and prints the mean absolute errors in points.

    python docs/studies/alsa_paper.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import leadline as ll

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
MODELS = {
    "amazon_blitzer": ("star_books_lr", "bin_dvd_minilm_lr", "star_electronics_minilm_mlp"),
    "banking77": ("minilm_lr",),
    "cifar10c": ("resnet20",),
    "citation_domains": ("acmv9_gcn", "citationv1_sage"),
    "mnist": ("cnn_imb_s0", "cnn_bal_s0"),
}
#: Peak, mean and deviation of the widths, rate, epochs.
SETTINGS = (
    (0.05, (10.0, 2.0), 0.02, 100),
    (0.05, (10.0, 2.0), 0.02, 20),
    (0.05, (3.0, 0.6), 0.02, 100),
    (0.05, (3.0, 0.6), 0.02, 20),
    (0.01, (3.0, 0.6), 0.02, 20),
    (0.05, (10.0, 2.0), 0.003, 100),
    (0.2, (10.0, 2.0), 0.01, 20),
)


def suite_error(folder: Path, models: tuple[str, ...], influence: Any, options: dict[str, Any]) -> float:
    """Return the mean absolute error on a suite in points."""
    found = []
    for model in models:
        source = ll.read_outputs(folder / model / "source.npz")
        fitted = ll.ALSA.paper(influence, n_anchors=min(1000, len(source)), **options).fit(source)
        for path in sorted((folder / model).glob("target_*.npz"))[::4]:
            target = ll.read_outputs(path)
            estimate = float(fitted.reduce(target.logits, {}).sums["value"].sum()) / len(target)
            found.append(abs(estimate - (target.accuracy or 0.0)))
    return round(100 * float(np.mean(found)), 2)


def main() -> None:
    """Run the study and write its result."""
    rows = []
    for influence in ("gaussian", "exponential"):
        for peak, width, rate, epochs in SETTINGS:
            options = {"peak": peak, "width": width, "learning_rate": rate, "max_epochs": epochs}
            errors = {suite: suite_error(DATA / suite, models, influence, options) for suite, models in MODELS.items()}
            mean = round(float(np.mean(list(errors.values()))), 2)
            rows.append({"influence": influence} | options | {"errors": errors, "mean": mean})
            print(rows[-1], flush=True)
    Path(__file__).with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
