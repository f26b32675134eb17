"""Whether 100 labels of this batch make the estimate of the next one better.

    python docs/studies/next_batch.py DATA OUT.json

Mean absolute error of ``auto`` in points, as it is ("auto") and with what 100 random labels of another target showed:
their own accuracy ("labels"), the gap between it and the estimate added whole or by half or shrunk by its sampling
error, and what ``recalibrate`` does ("carried"): the gap as far as the target looks like the labelled one. "same shift"
estimates one half of a target with labels of the other; "next in time" the batch that follows, on tables that drift.

"left out" chooses the two numbers of the latter, how large gaps are and how far they reach, on the other families.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import leadline as ll
from leadline.estimators import recalibration
from leadline.estimators.groups import ALL
from leadline.estimators.recalibration import batch_of_rows, expected_gap
from leadline.estimators.scans import InMemory

DRAWS, LABELS, LEAST_ROWS, TARGETS = 3, 100, 300, 6
MODELS = {
    "amazon_blitzer": ("bin_books_lr", "star_books_minilm_lr"),
    "banking77": ("minilm_lr",),
    "cifar10c": ("resnet20",),
    "citation_domains": ("acmv9_gcn",),
    "mnist": ("cnn_bal_s0", "mlp_imb_s0"),
    "tabular_time": (),  # all, in time
}
GRID = tuple(product((0.03, 0.05, 0.07, 0.1), (0.05, 0.07, 0.1, 0.15)))
SHIPPED = (recalibration._GAP, recalibration._REACH)


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows of a target: which are right, how likely each was, and their confidences."""

    right: Any
    correctness: Any
    confidences: Any

    @classmethod
    def of(cls, auto: ll.Auto, target: ll.Outputs, rows: Any) -> Seen:
        logits = auto.rows_of(target.logits[rows])
        in_memory = InMemory(logits)
        driven = auto._drive(in_memory)
        assert driven.whole is not None
        assert in_memory.values is not None
        assert target.labels is not None
        correctness = auto._corrected(in_memory.values, *driven.done[ALL])
        return cls(logits.argmax(axis=1) == target.labels[rows], correctness, driven.whole.confidences)


@dataclass(frozen=True, eq=False)
class Pair:
    """A labelled target and the one to estimate, with what a draw of labels showed."""

    family: str
    kind: str
    batch: Any
    labels: float
    following: Seen

    def answers(self) -> dict[str, float]:
        said, gap, variance = float(self.following.correctness.mean()), self.batch[0], self.batch[1]
        return {
            "auto": said,
            "labels": self.labels,
            "gap": said + gap,
            "half the gap": said + gap / 2,
            "gap, shrunk": said + gap * gap**2 / (gap**2 + variance),
            "carried": self.carried(),
        }

    def carried(self) -> float:
        return float(self.following.correctness.mean()) + expected_gap(self.batch[None], self.following.confidences)

    def error(self, answer: float) -> float:
        return 100 * abs(float(np.clip(answer, 0, 1)) - float(self.following.right.mean()))


def in_time(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.stem)]


def pairs(data: Path) -> Iterator[Pair]:
    rng = np.random.default_rng(0)

    def labelled(family: str, kind: str, this: Seen, following: Seen) -> Iterator[Pair]:
        for _ in range(DRAWS):
            some = rng.permutation(len(this.right))[:LABELS]
            batch = batch_of_rows(this.right[some], this.correctness[some], this.confidences)
            yield Pair(family, kind, batch, float(this.right[some].mean()), following)

    for suite, models in MODELS.items():
        for folder in sorted((data / suite).iterdir()):
            if models and folder.name not in models:
                continue
            auto = ll.Auto().fit(ll.read_outputs(folder / "source.npz"))
            paths = sorted(folder.glob("target_*.npz"), key=in_time)
            if models:
                paths = [paths[i] for i in sorted(rng.permutation(len(paths))[:TARGETS])]
            family, before = folder.name.split("_")[0].rstrip("123") if not models else suite, None
            for target in map(ll.read_outputs, paths):
                if len(target) < LEAST_ROWS:
                    continue
                halves = np.array_split(rng.permutation(len(target)), 2)
                yield from labelled(family, "same shift", *(Seen.of(auto, target, half) for half in halves))
                if not models:
                    whole = Seen.of(auto, target, np.arange(len(target)))
                    if before is not None:
                        yield from labelled(family, "next in time", before, whole)
                    before = whole
            print(suite, folder.name, file=sys.stderr, flush=True)


def carried_errors(found: list[Pair], numbers: tuple[float, float]) -> dict[tuple[str, str], float]:
    """Return the mean error by kind and family, given how large gaps are and how far they reach."""
    errors = defaultdict(list)
    with patch.object(recalibration, "_GAP", numbers[0]), patch.object(recalibration, "_REACH", numbers[1]):
        for pair in found:
            errors[pair.kind, pair.family].append(pair.error(pair.carried()))
    return {key: float(np.mean(values)) for key, values in errors.items()}


def mean_of(errors: dict[tuple[str, str], float], without: str) -> float:
    """Return the mean over kinds of the mean over families but one."""
    kinds = {kind for kind, _ in errors}
    of_kind = [[e for (k, family), e in errors.items() if k == kind and family != without] for kind in kinds]
    return float(np.mean([np.mean(values) for values in of_kind]))


def main() -> None:
    data, out = Path(sys.argv[1]) / "logits", Path(sys.argv[2])
    found = list(pairs(data))
    errors: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for pair in found:
        for name, answer in pair.answers().items():
            errors[pair.kind][pair.family][name].append(pair.error(answer))
    result: dict[str, Any] = {}
    for kind, families in errors.items():
        means = {f: {name: float(np.mean(v)) for name, v in values.items()} for f, values in families.items()}
        result[kind] = means | {
            "mean": {name: float(np.mean([one[name] for one in means.values()])) for name in next(iter(means.values()))}
        }
    tried = {numbers: carried_errors(found, numbers) for numbers in GRID}
    result["left out"] = {}
    for family in sorted({pair.family for pair in found}):
        best = min(GRID, key=lambda numbers: mean_of(tried[numbers], family))
        own = {kind: error for (kind, name), error in tried[best].items() if name == family}
        result["left out"][family] = {"gaps": best[0], "reach": best[1], **own}
    result["shipped"] = {"gaps": SHIPPED[0], "reach": SHIPPED[1]}
    text = json.dumps(result, indent=1)
    print(text)
    out.write_text(text + "\n")


if __name__ == "__main__":
    main()
