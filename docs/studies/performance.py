"""How well precision, recall, F1 and the area under the ROC curve are estimated on the real suites.

Every third model under LEADLINE_DATA, half a dozen of its targets each. Classes count with at least 20 samples.
Writes performance.json beside this file and prints a table: mean absolute errors in points, and how many of the
intervals hold the truth.

    python docs/studies/performance.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.estimators.auto import Auto
from leadline.results.performance import Measure, Performance, expected_auc
from leadline.version import __version__

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
TARGETS = 6
FEWEST = 20
MEASURES: tuple[Measure, ...] = ("accuracy", "macro_f1", "precision", "recall", "f1")


def truth_of(target: Outputs) -> Performance:
    """Return the true confusion matrix."""
    assert target.labels is not None, "the study needs labels"
    confusion = np.zeros((target.n_classes, target.n_classes))
    np.add.at(confusion, (target.labels, target.logits.argmax(axis=1)), 1.0)
    auc = None
    if target.n_classes == 2:
        auc = expected_auc(target.logits[:, 1] - target.logits[:, 0], target.labels.astype(float))
    return Performance(confusion, roc_auc=auc)


def counted(truth: Performance, measure: Measure) -> NDArray[np.bool_]:
    """Return which classes have samples enough, shape (c,); of a measure of all classes, that it is one."""
    if measure in ("accuracy", "macro_f1"):
        return np.array(True)
    true, predicted = truth.confusion.sum(axis=1) >= FEWEST, truth.confusion.sum(axis=0) >= FEWEST
    return np.asarray({"precision": predicted, "recall": true}.get(measure, true & predicted))


def measure_all() -> list[dict[str, Any]]:
    """Return one row per measure and target."""
    rows = []
    for suite in sorted(path for path in DATA.iterdir() if path.is_dir()):
        for folder in sorted(suite.iterdir())[::3]:
            model = Auto().fit(read_outputs(folder / "source.npz"))
            files = sorted(folder.glob("target_*.npz"))
            for path in files[:: max(1, len(files) // TARGETS)]:
                target = read_outputs(path)
                found, truth = model.performance(target), truth_of(target)
                for measure in MEASURES:
                    chosen = counted(truth, measure)
                    true = np.asarray(getattr(truth, measure))
                    (low, high), value = found.interval(measure), np.asarray(getattr(found, measure))
                    wrong, inside = np.abs(value - true)[chosen], ((low <= true) & (true <= high))[chosen]
                    if len(wrong) and not np.all(np.isnan(wrong)):
                        rows.append({"suite": suite.name, "measure": measure, "error": float(np.nanmean(wrong)),
                                     "inside": float(np.mean(inside))})  # fmt: skip
                if truth.roc_auc is not None and found.roc_auc is not None:
                    error = abs(found.roc_auc - truth.roc_auc)
                    rows.append({"suite": suite.name, "measure": "roc_auc", "error": error, "inside": float("nan")})
        print(suite.name, flush=True)
    return rows


def main() -> None:
    """Run the study and write its result."""
    rows = measure_all()
    summary = []
    for measure in (*MEASURES, "roc_auc"):
        for suite in [*dict.fromkeys(row["suite"] for row in rows), "all"]:
            some = [row for row in rows if row["measure"] == measure and suite in ("all", row["suite"])]
            if some:
                inside = float(np.mean([row["inside"] for row in some]))
                summary.append({"measure": measure, "suite": suite, "targets": len(some),
                                "error": float(np.mean([row["error"] for row in some])),
                                "coverage": None if np.isnan(inside) else inside})  # fmt: skip
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"version": __version__, "rows": summary}, indent=1) + "\n")
    for row in summary:
        covered = "" if row["coverage"] is None else f"coverage {row['coverage']:.2f}"
        print(f"{row['measure']:10s} {row['suite']:18s} {row['targets']:4d} error {100 * row['error']:5.1f} {covered}")


if __name__ == "__main__":
    main()
