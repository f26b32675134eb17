"""What is lost when a model's probabilities are given in place of its logits.

    python docs/studies/probabilities.py DATA OUT.json

A few models of each suite, once with their logits and once with softmax of them through ``Outputs.from_probabilities``.
For each method: its mean absolute error in points either way, and how far the two estimates lie apart, on average and
at most. Networks and linear models only: tree ensembles have no logits to compare with.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import leadline as ll
from leadline.numeric import softmax

MODELS = {
    "2 classes": ("amazon_blitzer/bin_books_lr", "amazon_blitzer/bin_dvd_minilm_mlp", "tabular_time/elec_a_mlp"),
    "3 to 6 classes": ("amazon_blitzer/star_books_mlp", "citation_domains/acmv9_gcn", "tabular_time/gas12_mlp"),
    "10 classes": ("cifar10c/resnet20", "mnist/cnn_imb_s0"),
    "77 classes": ("banking77/minilm_lr",),
}
METHODS = ("auto", "alsa-g", "alsa-e", "ac", "atc-mc", "cott")
MOST_TARGETS = 6


def load(folder: Path) -> tuple[ll.Outputs, dict[str, ll.Outputs]]:
    """Return the source of a model, and targets spread evenly over those that it has."""
    files = sorted(folder.glob("target_*.npz"))
    chosen = files[:: max(1, len(files) // MOST_TARGETS)][:MOST_TARGETS]
    return ll.read_outputs(folder / "source.npz"), {file.stem: ll.read_outputs(file) for file in chosen}


def as_probabilities(outputs: ll.Outputs) -> ll.Outputs:
    """Return outputs as they are when a model gives probabilities, in double precision."""
    return ll.Outputs.from_probabilities(softmax(outputs.logits.astype(np.float64)), outputs.labels)


def main(data: Path, out: Path) -> None:
    """Measure, print and store."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for suite, models in MODELS.items():
        errors = defaultdict(list)
        for name in models:
            source, targets = load(data / "logits" / name)
            logits = ll.compare(source, targets, methods=METHODS)
            others = {key: as_probabilities(target) for key, target in targets.items()}
            probabilities = ll.compare(as_probabilities(source), others, methods=METHODS)
            for one, other in zip(logits, probabilities, strict=True):
                assert one.error is not None
                assert other.error is not None
                errors[one.method].append((one.error, other.error))
        found[suite] = {}
        for method, pairs in errors.items():
            by_logits, by_probabilities = np.abs(pairs).mean(axis=0)
            apart = np.abs(np.diff(pairs, axis=1))
            figures = {
                "logits": by_logits,
                "probabilities": by_probabilities,
                "apart": apart.mean(),
                "most": apart.max(),
            }
            found[suite][method] = {key: round(100 * float(value), 2) for key, value in figures.items()}
            print(suite, method, found[suite][method], len(pairs), flush=True)
    out.write_text(json.dumps({"models": MODELS, "version": ll.__version__, "errors": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
