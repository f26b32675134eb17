"""What several fits and lifted logits do for ALSA: with shift, without any, with few rows and with unequal classes.

Every fifth model under LEADLINE_DATA (every ninth of the reviews) and half a dozen of its targets. Without shift, one
random half of the source is estimated from the other: the whole of it, 250 rows, and classes thinned to 1 : 20. Writes
alsa_crossfit.json beside this file and prints a table: mean absolute error in points by family, and the largest error.

    python docs/studies/alsa_crossfit.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.estimators import make
from leadline.version import __version__

DATA = Path(os.environ.get("LEADLINE_DATA", "../shared/data")) / "logits"
VARIANTS: dict[str, dict[str, Any]] = {
    f"{method} {geometry} {folds}": {"name": method, "geometry": geometry, "folds": folds}
    for method in ("alsa-g", "alsa-e")
    for geometry, folds in (("cosine", 1), ("cosine", 3), ("lifted", 3))
} | {name: {"name": name} for name in ("ac", "doc", "cbpe")}
TARGETS = 6
MOST_ROWS = 2_000
FEW_ROWS = 250


def family(suite: str, model: str) -> str:
    """Return what a model belongs to: its suite, and in a suite of several tables its table."""
    return model.rsplit("_", 1)[0].rstrip("123") if suite == "tabular_time" else suite


def part(outputs: Outputs, rows: Any) -> Outputs:
    """Return some rows of labelled outputs."""
    assert outputs.labels is not None, "the study needs labels"
    return Outputs(outputs.logits[rows], outputs.labels[rows])


def thinned(source: Outputs, rng: np.random.Generator) -> Outputs:
    """Return rows whose classes are as unequal as 1 to 20."""
    assert source.labels is not None, "the study needs labels"
    kept = np.geomspace(1, 0.05, source.n_classes)[rng.permutation(source.n_classes)]
    return part(source, rng.random(len(source)) < kept[source.labels])


def cases(folder: Path) -> Iterator[tuple[str, Outputs, list[Outputs]]]:
    """Yield kind, source and targets."""
    rng = np.random.default_rng(0)
    source = read_outputs(folder / "source.npz")
    files = sorted(folder.glob("target_*.npz"))
    targets = [read_outputs(path) for path in files[:: max(1, len(files) // TARGETS)]]
    yield "shift", source, [part(target, rng.permutation(len(target))[:MOST_ROWS]) for target in targets]
    for kind, known, other in halves(source, rng):
        yield kind, known, [other]


def halves(source: Outputs, rng: np.random.Generator) -> Iterator[tuple[str, Outputs, Outputs]]:
    """Yield pairs of halves of a source, one to fit on and one to estimate, with their kind."""
    for kind, whole, most in (
        ("half", source, len(source)),
        (f"{FEW_ROWS} rows", source, FEW_ROWS),
        ("unequal classes", thinned(source, rng), len(source)),
    ):
        order = rng.permutation(len(whole))
        yield kind, part(whole, order[: len(whole) // 2][:most]), part(whole, order[len(whole) // 2 :])


def measure() -> list[dict[str, Any]]:
    """Return the error of every variant in every case."""
    rows = []
    for suite in sorted(path for path in DATA.iterdir() if path.is_dir()):
        for folder in sorted(suite.iterdir())[:: 9 if suite.name == "amazon_blitzer" else 5]:
            for kind, source, targets in cases(folder):
                for name, options in VARIANTS.items():
                    model = make(**options).fit(source)
                    rows += [
                        {
                            "family": family(suite.name, folder.name), "model": folder.name, "kind": kind,
                            "variant": name, "error": model.estimate(target).accuracy - (target.accuracy or 0.0),
                        }
                        for target in targets
                    ]  # fmt: skip
            print(suite.name, folder.name, flush=True)
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean error by variant, kind and family, their mean, and the largest."""
    summary = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for variant in VARIANTS:
            some = [row for row in rows if row["kind"] == kind and row["variant"] == variant]
            by_family = {
                name: 100 * float(np.mean([abs(row["error"]) for row in some if row["family"] == name]))
                for name in dict.fromkeys(row["family"] for row in some)
            }
            summary.append(
                {
                    "kind": kind, "variant": variant, "mean": float(np.mean(list(by_family.values()))),
                    "largest": 100 * max(abs(row["error"]) for row in some), "families": by_family,
                }
            )  # fmt: skip
    return summary


def main() -> None:
    """Run the study and write its result."""
    summary = summarise(measure())
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"version": __version__, "rows": summary}, indent=1) + "\n")
    for row in summary:
        families = " ".join(f"{value:5.1f}" for value in row["families"].values())
        print(f"{row['kind']:16s} {row['variant']:18s} {row['mean']:5.2f} largest {row['largest']:5.1f} | {families}")
    print(*summary[0]["families"])


if __name__ == "__main__":
    main()
