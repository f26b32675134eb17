"""Whether 100 labels of this batch make the estimate of the next one better.

    python docs/studies/next_batch.py DATA OUT.json

On tables that drift with time, each target's 100 planned labels (three plans) serve the estimate of the target that
follows. Mean absolute error of ``auto`` on the latter, in points, as it is ("auto") and with what the labels showed:
their own accuracy ("last labels"), the gap between it and the estimate added, whole, by half, shrunk by its sampling
error, or on the scale of log-odds, and ``auto`` fitted again with the labelled rows in the source, once or ten times,
or on these alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import leadline as ll

PLANS, LABELS, LEAST_ROWS = 3, 100, 300
NORMAL_WIDTH = 3.29  # of a 90 % interval, in standard deviations


def odds(accuracy: float) -> float:
    inside = np.clip(accuracy, 0.005, 0.995)
    return float(np.log(inside / (1 - inside)))


def refitted(source: ll.Outputs, target: ll.Outputs, rows: Any, times: int) -> ll.Auto:
    """Return ``auto`` fitted on the source and so many copies of labelled rows of a target."""
    assert source.labels is not None
    assert target.labels is not None
    logits = np.concatenate([source.logits, *[target.logits[rows]] * times])
    return ll.Auto().fit(logits, np.concatenate([source.labels, *[target.labels[rows]] * times]))


def in_time(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.stem)]


def main() -> None:
    data, out = Path(sys.argv[1]) / "logits" / "tabular_time", Path(sys.argv[2])
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for folder in sorted(data.iterdir()):
        source = ll.read_outputs(folder / "source.npz")
        auto = ll.Auto().fit(source)
        read = (ll.read_outputs(path) for path in sorted(folder.glob("target_*.npz"), key=in_time))
        targets = [target for target in read if len(target) >= LEAST_ROWS]
        found = errors[folder.name.split("_")[0].rstrip("123")]
        for this, following in pairwise(targets):
            before, said, truth = auto.estimate(this).accuracy, auto.estimate(following).accuracy, following.accuracy
            assert this.labels is not None
            assert truth is not None
            for seed in range(PLANS):
                plan = ll.plan_labels(auto, this, min(LABELS, len(this) // 2), seed)
                labelled = ll.estimate_with_labels(auto, this, plan, this.labels[plan.rows])
                gap, on_odds = labelled.accuracy - before, odds(labelled.accuracy) - odds(before)
                noise = (labelled.interval[1] - labelled.interval[0]) / NORMAL_WIDTH
                shrunk = gap**2 / (gap**2 + noise**2)
                answers = {
                    "auto": said,
                    "last labels": labelled.accuracy,
                    "gap": said + gap,
                    "gap, shrunk": said + shrunk * gap,
                    "half the gap": said + gap / 2,
                    "gap of log-odds": 1 / (1 + np.exp(-odds(said) - on_odds)),
                    "gap of log-odds, shrunk": 1 / (1 + np.exp(-odds(said) - shrunk * on_odds)),
                }
                if seed == 0:
                    for times in (1, 10):
                        again = refitted(source, this, plan.rows, times)
                        answers[f"fitted again, {times} of each"] = again.estimate(following).accuracy
                    alone = ll.Auto().fit(this.logits[plan.rows], this.labels[plan.rows])
                    answers["fitted on the labels alone"] = alone.estimate(following).accuracy
                for name, answer in answers.items():
                    found[name].append(100 * abs(float(np.clip(answer, 0, 1)) - truth))
    means = {table: {name: float(np.mean(values)) for name, values in found.items()} for table, found in errors.items()}
    means["mean"] = {name: float(np.mean([means[table][name] for table in errors])) for name in means["elec"]}
    print(json.dumps(means, indent=1))
    out.write_text(json.dumps(means, indent=1) + "\n")


if __name__ == "__main__":
    main()
