"""How well intervals cover, and how `auto` does, on the real suites and on label-shifted resamplings of them.

Fits every method on every model under LEADLINE_DATA and estimates all its targets, as they are and resampled to class
frequencies drawn from a Dirichlet distribution. Writes trust.json beside this file and prints a table.

    python docs/studies/trust.py [--methods auto,ac,...]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.comparison import evaluate, fit_planned, plan_fits
from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.estimators import METHODS
from leadline.version import __version__

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
EVERY = 4  # one target in so many is also resampled


def label_shifted(labels: NDArray[np.int64], c: int, seed: int) -> NDArray[np.int64]:
    """Return row numbers, drawn with replacement, whose classes are as frequent as a Dirichlet draw says."""
    rng = np.random.default_rng(seed)
    wanted = rng.dirichlet(np.ones(c))
    present = np.bincount(labels, minlength=c)
    weights = np.where(present > 0, wanted / np.maximum(present, 1), 0.0)[labels]
    return rng.choice(len(labels), size=len(labels), p=weights / weights.sum())


def measure(methods: list[str]) -> list[dict[str, Any]]:
    """Return one row per method, model, target and kind."""
    rows = []
    for suite in sorted(path for path in DATA.iterdir() if path.is_dir()):
        for model in sorted(suite.iterdir()):
            source = read_outputs(model / "source.npz")
            fitted = fit_planned(source, plan_fits(methods), progress=lambda _: None)
            for number, path in enumerate(sorted(model.glob("target_*.npz"))):
                target = read_outputs(path)
                assert target.labels is not None, "the study needs labelled targets"
                kinds = {"as is": np.arange(len(target))}
                if number % EVERY == 0:
                    kinds["label shift"] = label_shifted(target.labels, target.n_classes, number)
                for kind, chosen in kinds.items():
                    part = Outputs(target.logits[chosen], target.labels[chosen])
                    rows += [
                        {
                            "suite": suite.name, "model": model.name, "target": path.stem, "kind": kind,
                            "method": row.method, "estimate": row.accuracy, "truth": row.truth,
                            "low": row.interval[0], "high": row.interval[1],
                        }
                        for row in evaluate(fitted, {path.stem: part}, progress=lambda _: None)
                    ]  # fmt: skip
        print(suite.name, flush=True)
    return rows


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


def main() -> None:
    """Run the study and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS), help="some methods; all by default")
    summary = summarise(measure(parser.parse_args().methods.split(",")))
    Path(__file__).with_suffix(".json").write_text(
        json.dumps({"version": __version__, "rows": summary}, indent=1) + "\n"
    )
    for row in summary:
        print(
            f"{row['kind']:12s} {row['method']:7s} {row['suite']:18s} {row['pairs']:4d} "
            f"error {100 * row['mae']:5.1f}  coverage {row['coverage']:.2f}  width {row['width']:.2f}"
        )


if __name__ == "__main__":
    main()
