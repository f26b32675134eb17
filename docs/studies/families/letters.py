"""Capital letters from 16 measures of their shape: 26 classes, sensors that go wrong, label shift.

    python docs/studies/families/letters.py --out DIR

Data: UCI Letter Recognition (Slate, 1991; CC BY 4.0), 20,000 rows, as the R package mlbench has it (Debian
``r-cran-mlbench``, unpacked, not installed). Trained on 9,000 rows; the source has 3,000 others, the targets 2,000 each
of the 8,000 that are left.

Shifts: noise, a measure that is stuck at its mean, two that are scaled, values that are missing, letters weighted at
random, eight letters only, both of these with noise, and the upper and lower ends of one measure.
Needs scikit-learn, pandas and rdata; a few minutes on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import arguments
from rtables import table
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, stuck, taken, write_models

ROWS = 2000


def whole(cache: Path) -> Sample:
    frame = table("r-cran-mlbench", "LetterRecognition", cache)
    return frame.drop(columns="lettr"), frame["lettr"].cat.codes.to_numpy(dtype=np.int64)


def targets(pool: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    weights, few = rng.dirichlet(np.full(26, 0.7)), np.isin(np.arange(26), rng.permutation(26)[:8]).astype(float)
    measure = pool[0]["xybar"].to_numpy()
    found = {"clean": some(pool, ROWS, rng)}
    for strength, share in enumerate((0.15, 0.3, 0.5, 0.8), start=1):
        found[f"noise_{strength}"] = noisy(some(pool, ROWS, rng), share, rng)
    for column in ("x2ybr", "y.ege", "width"):
        found[f"stuck_{column.replace('.', '')}"] = stuck(some(pool, ROWS, rng), column)
    found["scaled_1"] = scaled(some(pool, ROWS, rng), ["x.bar", "yegvx"], 1.15)
    found["scaled_2"] = scaled(some(pool, ROWS, rng), ["y.bar", "x2bar"], 1.4)
    found["missing_1"] = holed(some(pool, ROWS, rng), 0.08, rng)
    found["missing_2"] = holed(some(pool, ROWS, rng), 0.2, rng)
    found["weighted"] = label_shifted(pool, weights, ROWS, rng)
    found["weighted_noise"] = noisy(label_shifted(pool, weights, ROWS, rng), 0.3, rng)
    found["few"] = label_shifted(pool, few, ROWS, rng)
    found["few_missing"] = holed(label_shifted(pool, few, ROWS, rng), 0.12, rng)
    found["xybar_low"] = some(taken(pool, measure <= np.quantile(measure, 0.25)), ROWS, rng)
    found["xybar_high"] = some(taken(pool, measure >= np.quantile(measure, 0.75)), ROWS, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample = whole(options.cache)
    train, source, pool = (taken(sample, rows) for rows in parts((9000, 3000), len(sample[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(pool, rng).items()}
    write_models(options.out, "letters", train, {"source": source, **samples})


if __name__ == "__main__":
    main()
