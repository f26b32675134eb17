"""Nothing moved at all: every method on a random half of each real source, fitted on the other half.

Every model under LEADLINE_DATA: its whole source, 250 rows to fit on, and classes thinned to 1 : 20. Writes halves.json
beside this file and prints a table: mean errors of the families of data, their mean and the largest of them; what
sampling alone would give, with both accuracies counted; and how often intervals of nominal 90 % held.

    python docs/studies/halves.py [--methods auto,ac,...]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from alsa_crossfit import halves
from trust import DATA, family

from leadline.comparison import evaluate, fit_planned, plan_fits
from leadline.data.files import read_outputs
from leadline.estimators import METHODS
from leadline.version import __version__


def measure(methods: list[str]) -> Iterator[dict[str, Any]]:
    """Yield one row per method, model and kind."""
    for model in sorted(path for path in DATA.glob("*/*") if path.is_dir()):
        for kind, known, other in halves(read_outputs(model / "source.npz"), np.random.default_rng(0)):
            fitted = fit_planned(known, plan_fits(methods), progress=lambda _: None)
            for row in evaluate(fitted, {kind: other}, progress=lambda _: None):
                yield {
                    "suite": model.parent.name, "model": model.name, "family": family(model), "kind": kind,
                    "method": row.method, "estimate": row.accuracy, "truth": row.truth, "low": row.interval[0],
                    "high": row.interval[1], "sampling": sampling_error(other.accuracy, len(known), len(other)),
                }  # fmt: skip
        print(model.parent.name, model.name, flush=True)


def sampling_error(accuracy: float | None, n: int, m: int) -> float:
    """Return the mean absolute difference of the accuracies of n and of m rows of one distribution."""
    assert accuracy is not None, "the study needs labels"
    return float(np.sqrt(2.0 / np.pi * accuracy * (1.0 - accuracy) * (1.0 / n + 1.0 / m)))


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return errors by family, coverage and width per kind and method."""
    found = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["kind"] == kind and row["method"] == method]
            families = {row["family"]: [each for each in mine if each["family"] == row["family"]] for row in mine}
            errors = {
                name: float(np.mean([abs(row["estimate"] - row["truth"]) for row in some]))
                for name, some in families.items()
            }
            sampling = [np.mean([row["sampling"] for row in some]) for some in families.values()]
            found.append(
                {
                    "kind": kind, "method": method, "models": len(mine), "mae": float(np.mean(list(errors.values()))),
                    "families": errors, "sampling": float(np.mean(sampling)),
                    "coverage": float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in mine])),
                    "width": float(np.mean([row["high"] - row["low"] for row in mine])),
                }
            )  # fmt: skip
    return found


def main() -> None:
    """Run the study and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS), help="some of them; all by default")
    summary = summarise(list(measure(parser.parse_args().methods.split(","))))
    found = {"version": __version__, "rows": summary}
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    for row in summary:
        print(
            f"{row['kind']:16s} {row['method']:7s} {row['models']:3d} error {100 * row['mae']:5.2f} worst family "
            f"{100 * max(row['families'].values()):5.2f} by sampling {100 * row['sampling']:5.2f} "
            f"coverage {row['coverage']:.2f} width {row['width']:.2f}"
        )


if __name__ == "__main__":
    main()
