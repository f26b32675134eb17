"""Cut of diamonds from their measures and prices: five classes, larger stones than the model knows, label shift.

    python docs/studies/families/diamonds.py --out DIR

Data: the 53,940 diamonds of ggplot2 (MIT), as the package plotnine 0.13.6 of PyPI has them (downloaded, not installed).
Trained on 12,000 stones below one carat; the source has 5,000 others, the target ``clean`` 2,000 of those left.

Shifts: stones of one carat and more, by size; stones of high and of low clarity, and of the palest and the most yellow
colours; noise, missing values, prices in another currency; cuts weighted at random, also with noise.
Needs scikit-learn and pandas; a few minutes on one core.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from downloads import file_in, from_pypi
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, taken, write_models

ROWS = 2000
CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
BANDS = (1.0, 1.02, 1.2, 1.5, 2.0, 6.0)


def whole(cache: Path) -> Sample:
    frame = pd.read_csv(file_in(from_pypi("plotnine", "0.13.6", cache), "diamonds.csv"))
    labels = pd.Categorical(frame["cut"], categories=CUTS).codes.astype(np.int64)
    return frame.drop(columns="cut").reset_index(drop=True), labels


def targets(pool: Sample, large: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    weights = rng.dirichlet(np.ones(len(CUTS)))
    found = {"clean": some(pool, ROWS, rng)}
    for low, high in pairwise(BANDS):
        band = large[0]["carat"].between(low, high, inclusive="left").to_numpy()
        found[f"carat_{low:.2f}"] = some(taken(large, band), ROWS, rng)
    groups = {
        "clear": pool[0]["clarity"].isin(["IF", "VVS1", "VVS2"]),
        "included": pool[0]["clarity"].isin(["SI2", "I1"]),
        "pale": pool[0]["color"] == "D",
        "yellow": pool[0]["color"].isin(["I", "J"]),
    }
    for name, members in groups.items():
        found[name] = some(taken(pool, members.to_numpy()), ROWS, rng)
    found["noise_1"] = noisy(some(pool, ROWS, rng), 0.1, rng)
    found["noise_2"] = noisy(some(pool, ROWS, rng), 0.3, rng)
    found["missing_1"] = holed(some(pool, ROWS, rng), 0.05, rng)
    found["missing_2"] = holed(some(pool, ROWS, rng), 0.2, rng)
    found["price_scaled"] = scaled(some(pool, ROWS, rng), ["price"], 1.3)
    found["weighted"] = label_shifted(pool, weights, ROWS, rng)
    found["weighted_noise"] = noisy(label_shifted(pool, weights, ROWS, rng), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample = whole(options.cache)
    small = sample[0]["carat"].to_numpy() < BANDS[0]
    known, large = taken(sample, small), taken(sample, ~small)
    train, source, pool = (taken(known, rows) for rows in parts((12000, 5000), len(known[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(pool, large, rng).items()}
    write_models(options.out, "diamonds", train, {"source": source, **samples})


if __name__ == "__main__":
    main()
