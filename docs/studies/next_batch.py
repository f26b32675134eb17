"""Whether 100 labels of this batch make the estimate of the next one better.

    python docs/studies/next_batch.py DATA OUT.json

Mean absolute error of ``auto`` in points, as it is ("auto") and with what 100 random labels of another target showed:
their own accuracy ("labels"), the gap between it and the estimate added whole or by half or shrunk by its sampling
error, and what ``recalibrate`` does ("carried"): the gap as far as it is more than noise and the target looks like the
labelled one. "same shift" estimates one half of a target with labels of the other; "next in time" the batch that
follows, on tables that drift.

"coverage" is that of the 90 % intervals before ("auto") and after ``recalibrate`` ("carried"). "sizes" has the mean
errors with other sizes that gaps may have, and other reaches; "left out" chooses both on the other families.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import leadline as ll
from leadline.estimators import recalibration
from leadline.estimators.groups import ALL
from leadline.estimators.recalibration import batch_of_rows, expected_gap, moved
from leadline.estimators.scans import InMemory

LEVEL, DRAWS, LABELS, LEAST_ROWS, TARGETS = 0.9, 20, 100, 300, 8
MODELS = {
    "amazon_blitzer": ("bin_books_lr", "bin_dvd_minilm_mlp", "star_books_minilm_lr", "star_electronics_mlp"),
    "banking77": ("minilm_lr", "tfidf_mlp"),
    "cifar10c": ("resnet20", "resnet56"),
    "citation_domains": ("acmv9_gcn", "citationv1_gin", "acmv9_mlp"),
    "mnist": ("cnn_bal_s0", "cnn_imb_s0", "mlp_imb_s0"),
    "tabular_time": (),  # all, in time
}
SIZES = ((0.05,), (0.1,), (0.03, 0.1), (0.03, 0.06, 0.12, 0.24), (0.02, 0.05, 0.1, 0.2), (0.01, 0.03, 0.1, 0.3))
GRID = tuple(product(SIZES, (0.05, 0.07, 0.1, 0.15)))
SHIPPED = (recalibration._SIZES, recalibration._REACH)


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows of a target: which are right, what was estimated, and their confidences."""

    right: Any
    estimate: ll.Estimate
    confidences: Any

    @classmethod
    def of(cls, auto: ll.Auto, target: ll.Outputs, rows: Any) -> Seen:
        logits = auto.rows_of(target.logits[rows])
        in_memory = InMemory(logits)
        driven = auto._drive(in_memory)
        assert driven.whole is not None
        assert target.labels is not None
        estimate = driven.estimate(ALL, LEVEL, in_memory.values)
        return cls(logits.argmax(axis=1) == target.labels[rows], estimate, driven.whole.confidences)


@dataclass(frozen=True, eq=False)
class Pair:
    """A labelled target and the one to estimate, with what a draw of labels showed."""

    family: str
    kind: str
    batch: Any
    labels: float
    following: Seen

    def answers(self) -> dict[str, float]:
        said, gap, variance = self.following.estimate.accuracy, self.batch[0], self.batch[1]
        return {
            "auto": said,
            "labels": self.labels,
            "gap": said + gap,
            "half the gap": said + gap / 2,
            "gap, shrunk": said + gap * gap**2 / (gap**2 + variance),
            "carried": said + self.carried(),
        }

    def carried(self) -> float:
        return expected_gap(self.batch[None], self.following.confidences)

    def covered(self) -> dict[str, bool]:
        before = replace(self.following.estimate, correctness=None, by_class=())
        found = {"auto": before.interval, "carried": moved(before, self.carried()).interval}
        return {name: bool(low <= self.following.right.mean() <= high) for name, (low, high) in found.items()}

    def error(self, answer: float) -> float:
        return 100 * abs(float(np.clip(answer, 0, 1)) - float(self.following.right.mean()))


def in_time(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.stem)]


def pairs(data: Path) -> Iterator[Pair]:
    rng = np.random.default_rng(0)

    def labelled(family: str, kind: str, this: Seen, following: Seen) -> Iterator[Pair]:
        for _ in range(DRAWS):
            some = rng.permutation(len(this.right))[:LABELS]
            assert this.estimate.correctness is not None
            batch = batch_of_rows(this.right[some], this.estimate.correctness[some], this.confidences)
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


def carried_errors(found: list[Pair], numbers: tuple[tuple[float, ...], float]) -> dict[tuple[str, str], float]:
    """Return the mean error by kind and family, given how large gaps may be and how far they reach."""
    errors = defaultdict(list)
    with patch.object(recalibration, "_SIZES", numbers[0]), patch.object(recalibration, "_REACH", numbers[1]):
        for pair in found:
            errors[pair.kind, pair.family].append(pair.error(pair.following.estimate.accuracy + pair.carried()))
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
    covered: dict[str, dict[str, dict[str, list[bool]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for pair in found:
        for name, answer in pair.answers().items():
            errors[pair.kind][pair.family][name].append(pair.error(answer))
        for name, inside in pair.covered().items():
            covered[pair.kind][pair.family][name].append(inside)
    result: dict[str, Any] = {}
    for kind, families in errors.items():
        means = {f: {name: float(np.mean(v)) for name, v in values.items()} for f, values in families.items()}
        result[kind] = means | {
            "mean": {name: float(np.mean([one[name] for one in means.values()])) for name in next(iter(means.values()))}
        }
    result["coverage"] = {
        kind: {family: {name: float(np.mean(v)) for name, v in values.items()} for family, values in families.items()}
        for kind, families in covered.items()
    }
    tried = {numbers: carried_errors(found, numbers) for numbers in GRID}
    result["sizes"] = {
        f"{', '.join(map(str, sizes))}; reach {reach}": {
            kind: float(np.mean([error for (k, _), error in of_family.items() if k == kind])) for kind in covered
        }
        for (sizes, reach), of_family in tried.items()
    }
    result["left out"] = {}
    for family in sorted({pair.family for pair in found}):
        best = min(GRID, key=lambda numbers: mean_of(tried[numbers], family))
        own = {kind: error for (kind, name), error in tried[best].items() if name == family}
        result["left out"][family] = {"sizes": best[0], "reach": best[1], **own}
    result["shipped"] = {"sizes": SHIPPED[0], "reach": SHIPPED[1]}
    text = json.dumps(result, indent=1)
    print(text)
    out.write_text(text + "\n")


if __name__ == "__main__":
    main()
