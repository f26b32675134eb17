"""What each method says of binary models that decide by a threshold of their own.

    python docs/studies/threshold.py DATA OUT.json

Binary models of two suites, as if the second class were predicted from a probability of 0.3, 0.5 (the largest output)
or 0.7. "half": the source cut into two random halves, one to fit and one to estimate, without any shift. "targets": the
suite's own targets. For each method and threshold, the mean absolute error in points when the threshold is ignored, so
that the accuracy of the largest output stands for that of such a model, and when it is given.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import leadline as ll

MODELS = (
    "tabular_time/elec_a_hgb", "tabular_time/elec_a_lr", "tabular_time/elec_a_rf", "tabular_time/elec_b_hgb",
    "tabular_time/elec_b_lr", "tabular_time/elec_b_rf", "amazon_blitzer/bin_books_lr",
    "amazon_blitzer/bin_dvd_minilm_lr", "amazon_blitzer/bin_electronics_mlp",
)  # fmt: skip
THRESHOLDS = (0.3, 0.5, 0.7)


def decided(outputs: ll.Outputs, threshold: float | None) -> ll.Outputs:
    """Return the outputs of a model with a threshold."""
    return ll.Outputs(outputs.logits, outputs.labels, threshold=threshold)


def targets_of(folder: Path) -> tuple[ll.Outputs, dict[str, ll.Outputs]]:
    """Return the source of a model, and its targets without the one that is like the source."""
    files = sorted(folder.glob("target_*.npz"))
    kept = [file for file in files if file.stem not in ("target_clean", "target_same")]
    return ll.read_outputs(folder / "source.npz"), {file.stem: ll.read_outputs(file) for file in kept}


def halves(source: ll.Outputs) -> tuple[ll.Outputs, dict[str, ll.Outputs]]:
    """Return two random halves of a source."""
    assert source.labels is not None
    order = np.random.default_rng(0).permutation(len(source))
    first, second = np.array_split(order, 2)
    one, other = (ll.Outputs(source.logits[rows], source.labels[rows]) for rows in (first, second))
    return one, {"half": other}


def main(data: Path, out: Path) -> None:
    """Measure, print and store."""
    errors: dict[tuple[str, float, str], list[tuple[float, float]]] = defaultdict(list)
    for name in MODELS:
        source, targets = targets_of(data / "logits" / name)
        for kind, (known, new) in {"half": halves(source), "targets": (source, targets)}.items():
            ignored = ll.compare(known, new)
            for threshold in THRESHOLDS:
                mine = None if threshold == 0.5 else threshold
                given = ll.compare(decided(known, mine), {key: decided(one, mine) for key, one in new.items()})
                for blind, row in zip(ignored, given, strict=True):
                    assert row.truth is not None
                    errors[kind, threshold, row.method].append((blind.accuracy - row.truth, row.accuracy - row.truth))
        print(name, "done", file=sys.stderr)
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, threshold, method), pairs in errors.items():
        ignored_error, given_error = 100 * np.abs(pairs).mean(axis=0)
        found[kind][str(threshold)][method] = {
            "ignored": round(float(ignored_error), 2), "given": round(float(given_error), 2), "estimates": len(pairs),
        }  # fmt: skip
    for kind, by_threshold in found.items():
        for threshold_text, by_method in by_threshold.items():
            line = ", ".join(f"{key} {one['ignored']} to {one['given']}" for key, one in by_method.items())
            print(f"{kind}, threshold {threshold_text}: {line}")
    out.write_text(json.dumps({"models": MODELS, "version": ll.__version__, "errors": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
