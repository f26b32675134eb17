"""How far a segment's own evidence should count against the verdict on the whole target.

    python docs/studies/pooling.py DATA OUT.json

Real targets are cut into segments of 100, 400 and 1,600 rows. "alike": all segments of a target are random parts of one
shifted target, so that borrowing is right. "mixed": a target is put together from segments of different shifts of the
same model, so that each should speak for itself. For each number of rows at which both count alike (0: every segment by
itself, inf: all borrow), the mean absolute error of ``auto`` on the segments is printed and stored.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import leadline as ll
from leadline.estimators import passes
from leadline.estimators.base import Estimator
from leadline.estimators.groups import ALL
from leadline.estimators.scans import InMemory

STRENGTHS = (0.0, 50.0, 150.0, 300.0, 600.0, 1500.0, float("inf"))
MODELS = (
    "cifar10c/resnet20", "mnist/cnn_imb_s0", "amazon_blitzer/star_books_lr", "tabular_time/gas12_hgb",
    "tabular_time/elec_a_lr", "tabular_time/flights_carrier_mlp", "citation_domains/acmv9_gcn", "banking77/minilm_lr",
)  # fmt: skip
SIZES = (100, 400, 1600)
SEGMENTS = 6


def segment_errors(model: Estimator, parts: list[ll.Outputs], strengths: tuple[float, ...]) -> dict[float, list[float]]:
    """Return the absolute errors on the segments of the target that the parts make together, for each strength."""
    logits = np.concatenate([part.logits for part in parts])
    rows = InMemory(logits, np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
    found = passes.drive(model, rows.scan, grouped=True)
    truths = [part.accuracy or 0.0 for part in parts]
    errors = {}
    for strength in strengths:
        for group, (own, _) in list(found.own.items()):
            share = (
                1.0
                if not strength
                else 0.0
                if np.isinf(strength)
                else len(parts[group]) / (len(parts[group]) + strength)
            )
            found.own[group] = own, share
        passes._second_pass(found, rows.scan, grouped=True)
        errors[strength] = [abs(found.estimate(i, 0.9).accuracy - truth) for i, truth in enumerate(truths)]
    assert found.estimate(ALL, 0.9).n_samples == len(logits)
    return errors


def draw(outputs: ll.Outputs, size: int, rng: np.random.Generator) -> ll.Outputs:
    """Return so many rows, drawn without replacement."""
    chosen = rng.permutation(len(outputs))[:size]
    assert outputs.labels is not None
    return ll.Outputs(outputs.logits[chosen], outputs.labels[chosen])


def main() -> None:
    data, out = Path(sys.argv[1]) / "logits", Path(sys.argv[2])
    rng = np.random.default_rng(0)
    table: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in MODELS:
        folder = data / name
        if not folder.is_dir():
            continue
        model = ll.Auto().fit(ll.read_outputs(folder / "source.npz"))
        targets = [ll.read_outputs(path) for path in sorted(folder.glob("target_*.npz"))]
        chosen = [targets[i] for i in rng.permutation(len(targets))[:SEGMENTS]]
        for size in SIZES:
            large = [target for target in chosen if len(target) >= size]
            cases = {"mixed": [[draw(target, size, rng) for target in large]] if len(large) > 1 else []}
            cases["alike"] = []
            for target in large[:2]:
                count = min(SEGMENTS, len(target) // size)
                if count > 1:
                    order = rng.permutation(len(target))[: count * size].reshape(count, size)
                    assert target.labels is not None
                    cases["alike"].append([ll.Outputs(target.logits[part], target.labels[part]) for part in order])
            for kind, sets in cases.items():
                for parts in sets:
                    for strength, errors in segment_errors(model, parts, STRENGTHS).items():
                        table[f"{kind} {size}"][str(strength)] += errors
        print(name, flush=True)
    means = {case: {k: 100 * float(np.mean(v)) for k, v in row.items()} for case, row in table.items()}
    for case, row in sorted(means.items()):
        print(f"{case:12}", "  ".join(f"{strength}: {error:.2f}" for strength, error in row.items()))
    out.write_text(json.dumps(means, indent=1) + "\n")


if __name__ == "__main__":
    main()
