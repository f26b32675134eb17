"""Four methods that were considered, measured beside `auto`'s judgement, without its share of ALSA, on the real suites.

    python docs/studies/candidates.py DATA OUT.json

About eight targets of every third model, as they are and, every second one, resampled to other class frequencies.

"ranking": do MaNo (Xie et al., 2024) and the nuclear norm (Deng et al., 2023), which give no accuracy but a score, put
the targets of a model in the order of their accuracy? Spearman's correlation by suite, beside that of `auto` and of
mean confidence. "label shift": the confusion table from linear equations (O-LEAP, Volpi et al., 2025), with class
frequencies from `auto`'s judgement, and its trace. "correctness": a logistic regression of correctness on seven
signals of a row (Suitability Filter, Pouget et al., 2025), its mean, and its verdict, beside that of `auto`'s
interval, whether the accuracy is at most five points below the source's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import norm, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trust import label_shifted

import leadline as ll
from leadline.estimators.sources import learn_profile
from leadline.numeric import log_softmax, softmax
from leadline.shift.judgement import judge

EVERY = 3  # models
MOST_TARGETS = 8
MOST_ROWS = 2_000
MARGIN = 0.05
Array = NDArray[np.float64]


def mano(logits: Array) -> float:
    """Return the matrix norm of normalised logits (MaNo): the fourth moment of probabilities or of Taylor's instead."""
    far_from_uniform = -float(log_softmax(logits, 1.0).mean())
    values = softmax(logits)
    if far_from_uniform <= 5.0:
        values = 1.0 + logits + logits**2 / 2.0
        values /= values.sum(axis=1, keepdims=True)
    return float(np.mean(values**4) ** 0.25)


def nuclear_norm(logits: Array) -> float:
    """Return the nuclear norm of the probabilities, as a share of the largest possible."""
    values = softmax(logits)
    n, c = values.shape
    return float(np.linalg.norm(values, "nuc") / np.sqrt(min(n, c) * n))


def o_leap(confusion: Array, frequencies: Array, predicted: Array) -> float:
    """Return the accuracy of the confusion table that solves all linear equations of label shift best.

    Its cells sum to one; predictions given a class are as frequent as on the source; and both margins are known.

    Parameters
    ----------
    confusion
        Shape (c, c): shares of the source by true and predicted class.
    frequencies, predicted
        Shapes (c,): of the classes on the target, estimated, and of the predictions, observed.
    """
    c = len(predicted)
    rates = (confusion + 1e-3 / c**2) / (confusion.sum(axis=1, keepdims=True) + 1e-3 / c)
    of_class, of_prediction = np.kron(np.eye(c), np.ones(c)), np.kron(np.ones(c), np.eye(c))
    as_in_source = np.eye(c * c) - rates.ravel()[:, None] * np.repeat(of_class, c, axis=0)
    left = np.vstack([np.ones(c * c), as_in_source, of_prediction, of_class])
    right = np.concatenate([[1.0], np.zeros(c * c), predicted, frequencies])
    return float(np.trace(nnls(left, right)[0].reshape(c, c)))


def signals(logits: Array, temperature: float) -> Array:
    """Return seven signals of each row, shape (n, 7)."""
    scores = log_softmax(logits, temperature)
    ordered = np.sort(scores, axis=1)
    raw = np.sort(logits, axis=1)
    energy = raw[:, -1] + np.log(np.exp(logits - raw[:, -1:]).sum(axis=1))
    entropy = -(np.exp(scores) * scores).sum(axis=1)
    return np.stack(
        [
            np.exp(ordered[:, -1]), ordered[:, -1] - ordered[:, -2], np.exp(ordered[:, -2]), entropy,
            energy, raw[:, -1], logits.std(axis=1),
        ],
        axis=1,
    )  # fmt: skip


def suitability(on_source: Array, on_target: Array) -> str:
    """Return the verdict of two one-sided tests at 5 %: is the target at most a margin worse than the source?"""
    gap = on_target.mean() - on_source.mean() + MARGIN
    error = np.sqrt(on_source.var() / len(on_source) + on_target.var() / len(on_target)) + 1e-12
    return verdict(gap - norm.ppf(0.95) * error, gap + norm.ppf(0.95) * error)


def verdict(low: float, high: float) -> str:
    """Return what an interval says of a difference that should not be negative."""
    if low >= 0.0:
        return "suitable"
    return "unsuitable" if high < 0.0 else "inconclusive"


def measure(data: Path) -> list[dict[str, Any]]:
    """Return one row per model, target and kind."""
    found = []
    for folder in sorted(path for path in (data / "logits").glob("*/*") if path.is_dir())[::EVERY]:
        source = ll.read_outputs(folder / "source.npz")
        assert source.labels is not None
        profile, c = learn_profile(source), source.n_classes
        temperature = profile.temperature
        right = source.logits.argmax(axis=1) == source.labels
        table = np.zeros((c, c))
        np.add.at(table, (source.labels, source.logits.argmax(axis=1)), 1 / len(source))
        halves = np.arange(len(source)) % 2 == 0  # the filter is tested on rows that it was not fitted on
        of_source = signals(source.logits.astype(np.float64), temperature)
        learned = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        fits = len(np.unique(right[halves])) == 2
        if fits:
            learned.fit(of_source[halves], right[halves])
        files = sorted(folder.glob("target_*.npz"))
        for number, file in enumerate(files[:: max(1, len(files) // MOST_TARGETS)]):
            target = ll.read_outputs(file)
            assert target.labels is not None
            rows = np.arange(len(target))[:: max(1, len(target) // MOST_ROWS)]
            kinds = {"as is": rows}
            if number % 2 == 0:
                kinds["label shift"] = rows[label_shifted(target.labels[rows], c, number)]
            for kind, chosen in kinds.items():
                logits, labels = target.logits[chosen].astype(np.float64), target.labels[chosen]
                judged = judge(profile, target.logits[chosen], len(chosen))
                low, high = judged.interval(judged.accuracy, 0.9)
                predicted = np.bincount(logits.argmax(axis=1), minlength=c) / len(logits)
                margin = source.accuracy - MARGIN
                row = {
                    "suite": folder.parent.name, "model": folder.name, "target": file.stem, "kind": kind,
                    "truth": float(np.mean(logits.argmax(axis=1) == labels)), "source": source.accuracy,
                    "auto": judged.accuracy, "ac": judged.readings["confidence"],
                    "reweighted": judged.readings["reweighted"], "mano": mano(logits),
                    "nuclear": nuclear_norm(logits),
                    "o-leap": o_leap(table, judged.explained.label_marginal, predicted) if c <= 20 else None,
                    "auto_verdict": verdict(low - margin, high - margin),
                }  # fmt: skip
                if fits:
                    on_target = learned.predict_proba(signals(logits, temperature))[:, 1]
                    row["learned"] = float(on_target.mean())
                    row["learned_verdict"] = suitability(learned.predict_proba(of_source[~halves])[:, 1], on_target)
                found.append(row)
        print(folder.parent.name, folder.name, flush=True)
    return found


def error(rows: list[dict[str, Any]], name: str) -> float:
    """Return the mean absolute error in points."""
    return 100 * float(np.mean([abs(row[name] - row["truth"]) for row in rows]))


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return figures by suite, then over suites, each counting once."""
    suites = sorted({row["suite"] for row in rows})
    by_suite: dict[str, Any] = {}
    for suite in suites:
        mine = [row for row in rows if row["suite"] == suite]
        plain = [row for row in mine if row["kind"] == "as is"]
        shifted = [row for row in mine if row["kind"] == "label shift"]
        ranking = {}
        for name in ("auto", "ac", "mano", "nuclear"):
            values = []
            for model in sorted({row["model"] for row in plain}):
                some = [row for row in plain if row["model"] == model]
                if len(some) >= 4 and np.ptp([row["truth"] for row in some]) > 0:
                    values.append(spearmanr([row[name] for row in some], [row["truth"] for row in some])[0])
            ranking[name] = float(np.nanmean(values)) if values else None
        with_table = [row for row in shifted if row["o-leap"] is not None]
        learned = [row for row in plain if "learned" in row]
        verdicts = {}
        for name in ("auto_verdict", "learned_verdict"):
            good = [row["truth"] >= row["source"] - MARGIN for row in learned]
            said = [row[name] for row in learned]
            verdicts[name] = {
                "suitable": said.count("suitable") / len(said),
                "wrongly suitable": sum(s == "suitable" and not g for s, g in zip(said, good, strict=True)) / len(said),
                "unsuitable": said.count("unsuitable") / len(said),
                "wrongly unsuitable": sum(s == "unsuitable" and g for s, g in zip(said, good, strict=True)) / len(said),
            }
        by_suite[suite] = {
            "pairs": len(plain),
            "ranking": ranking,
            "label shift": {name: error(with_table, name) for name in ("auto", "ac", "reweighted", "o-leap")}
            if with_table
            else None,
            "as is": {name: error(learned, name) for name in ("auto", "ac", "learned")},
            "verdicts": verdicts,
        }
    return by_suite


def main(data: Path, out: Path) -> None:
    """Measure, print and store."""
    summary = summarise(measure(data))
    out.write_text(json.dumps(summary, indent=1) + "\n")
    for suite, figures in summary.items():
        print(suite, json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
