"""Six kinds of ground from a satellite's four bands: worse light, a weak band, gaps, label shift.

    python docs/studies/families/landsat.py --out DIR

Data: UCI Statlog (Landsat Satellite) by Srinivasan (CC BY 4.0), 6,435 squares of nine pixels in four bands, as the R
package mlbench has them (Debian ``r-cran-mlbench``, unpacked, not installed). Trained on 2,200 squares; the source has
1,800 others, the targets 1,500 each of the 2,435 that are left.

Shifts: noise, a darker picture, one band that is weaker, one that is stuck, missing values, the middle pixel only, the
bright and the dark half of the squares, kinds weighted at random, three kinds only, and both of these with noise or
gaps.
Needs scikit-learn, pandas and rdata; half a minute on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import arguments
from rtables import table
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, stuck, taken, write_models

ROWS, FEWER = 1500, 1200
BANDS, PIXELS, MIDDLE = 4, 9, 4
COLUMNS = [f"x.{number}" for number in range(1, BANDS * PIXELS + 1)]
CLASSES = 6


def whole(cache: Path) -> Sample:
    frame = table("r-cran-mlbench", "Satellite", cache)
    return frame[COLUMNS].astype(float), frame["classes"].cat.codes.to_numpy(dtype=np.int64)


def band(number: int) -> list[str]:
    """Return the columns of a band: bands of a pixel stand beside one another."""
    return COLUMNS[number::BANDS]


def middle_only(sample: Sample) -> Sample:
    """Give all nine pixels the values of the one in the middle."""
    frame = sample[0]
    middle = {column: frame[COLUMNS[MIDDLE * BANDS + place % BANDS]] for place, column in enumerate(COLUMNS)}
    return frame.assign(**middle), sample[1]


def targets(pool: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    weights, few = rng.dirichlet(np.ones(CLASSES)), np.isin(np.arange(CLASSES), rng.permutation(CLASSES)[:3])
    light = pool[0].mean(axis=1).to_numpy()
    found = {"clean": some(pool, ROWS, rng)}
    for strength, share in enumerate((0.2, 0.5, 1.0), start=1):
        found[f"noise_{strength}"] = noisy(some(pool, ROWS, rng), share, rng)
    found["darker_1"] = scaled(some(pool, ROWS, rng), COLUMNS, 0.95)
    found["darker_2"] = scaled(some(pool, ROWS, rng), COLUMNS, 0.85)
    found["weak_band"] = scaled(some(pool, ROWS, rng), band(2), 0.9)
    dead = some(pool, ROWS, rng)
    for column in band(1):
        dead = stuck(dead, column)
    found["dead_band"] = dead
    found["missing_1"] = holed(some(pool, ROWS, rng), 0.1, rng)
    found["missing_2"] = holed(some(pool, ROWS, rng), 0.4, rng)
    found["middle_pixel"] = middle_only(some(pool, ROWS, rng))
    found["bright"] = some(taken(pool, light >= np.median(light)), FEWER, rng)
    found["dark"] = some(taken(pool, light < np.median(light)), FEWER, rng)
    found["weighted"] = label_shifted(pool, weights, FEWER, rng)
    found["weighted_noise"] = noisy(label_shifted(pool, weights, FEWER, rng), 0.5, rng)
    members = taken(pool, few[pool[1]])
    found["few"] = some(members, FEWER, rng)
    found["few_missing"] = holed(some(members, FEWER, rng), 0.3, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample = whole(options.cache)
    train, source, pool = (taken(sample, rows) for rows in parts((2200, 1800), len(sample[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(pool, rng).items()}
    write_models(options.out, "landsat", train, {"source": source, **samples})


if __name__ == "__main__":
    main()
