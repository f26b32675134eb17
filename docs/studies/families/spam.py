"""Unwanted mail from the frequencies of words: two classes, short and long mail, other senders, label shift.

    python docs/studies/families/spam.py --out DIR

Data: UCI Spambase (Hopkins, Reeber, Forman and Suermondt, Hewlett-Packard, 1999; CC BY 4.0), 4,601 messages, 39 % of
them unwanted, as the R package kernlab has it (Debian ``r-cran-kernlab``, unpacked, not installed). Trained on 1,500
messages without the words that name the receiver; the source has 1,200 others, the targets are of the 1,901 left.

Shifts: short and long messages, those that name the receiver or his company and those that do not, those that shout;
noise, missing values, words counted half; a sixth and five sixths unwanted, also with noise or gaps.
Needs scikit-learn, pandas and rdata; half a minute on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from rtables import table
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, taken, write_models

ROWS, WEIGHTED = 1200, 700
RECEIVER = ["hp", "hpl", "george", "num650", "lab", "labs", "num857", "num415", "num85"]
LENGTH, SHOUTS = "capitalTotal", "capitalAve"


def whole(cache: Path) -> tuple[Sample, pd.Series]:
    """Return the messages, and how often each names the receiver or his company."""
    frame = table("r-cran-kernlab", "spam", cache)
    labels = (frame.pop("type") == "spam").to_numpy(dtype=np.int64)
    return (frame.drop(columns=RECEIVER), labels), frame[RECEIVER].sum(axis=1)


def targets(pool: Sample, named: np.ndarray, rng: np.random.Generator) -> dict[str, Sample]:
    frame, share = pool[0], pool[1].mean()
    words = [column for column in frame if not column.startswith(("char", "capital"))]

    def with_share(wanted: float) -> Sample:
        return label_shifted(pool, np.array([(1 - wanted) / (1 - share), wanted / share]), WEIGHTED, rng)

    length, shouts = frame[LENGTH].to_numpy(), frame[SHOUTS].to_numpy()
    groups = {
        "short": length <= np.quantile(length, 0.3),
        "long": length >= np.quantile(length, 0.7),
        "shouting": shouts >= np.quantile(shouts, 0.7),
        "receiver_named": named > 0,
        "receiver_not_named": named == 0,
    }
    found = {"clean": some(pool, ROWS, rng)}
    found |= {name: some(taken(pool, members), ROWS, rng) for name, members in groups.items()}
    found["noise_1"] = noisy(some(pool, ROWS, rng), 0.1, rng)
    found["noise_2"] = noisy(some(pool, ROWS, rng), 0.4, rng)
    found["missing_1"] = holed(some(pool, ROWS, rng), 0.1, rng)
    found["missing_2"] = holed(some(pool, ROWS, rng), 0.4, rng)
    found["half_counted"] = scaled(some(pool, ROWS, rng), words, 0.5)
    found["little_spam"] = with_share(1 / 6)
    found["much_spam"] = with_share(5 / 6)
    found["little_spam_missing"] = holed(with_share(1 / 6), 0.2, rng)
    found["much_spam_noise"] = noisy(with_share(5 / 6), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample, named = whole(options.cache)
    train, source, rest = parts((1500, 1200), len(sample[1]), rng)
    found = targets(taken(sample, rest), named.to_numpy()[rest], rng)
    samples = {f"target_{name}": target for name, target in found.items()}
    write_models(options.out, "spam", taken(sample, train), {"source": taken(sample, source), **samples})


if __name__ == "__main__":
    main()
