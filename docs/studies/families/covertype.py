"""Trees that cover a patch of forest, from its height, slope and soil: seven classes, other areas, label shift.

    python docs/studies/families/covertype.py --out DIR

Data: UCI Covertype (Blackard and Dean, 1998, Colorado State University; CC BY 4.0), 581,012 patches of 30 x 30 metres
in four wilderness areas of Colorado, in the package scikit-multiflow 0.4.1 of PyPI (downloaded, not installed). Two
areas have all seven classes between them, Rawah and Cache la Poudre: trained on 12,000 of their patches; the source has
5,000 others. The models are not told the area.

Shifts: the other two areas, Neota and Comanche Peak; four bands of height and two groups of soils in Comanche Peak; in
the first two areas noise, missing values, classes drawn anew, three classes only, both of these with noise or gaps;
Comanche Peak with its classes weighted.
Needs scikit-learn and pandas; a few minutes on one core.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from common import arguments
from multiflow import table
from numpy.typing import NDArray
from tables import Sample, holed, label_shifted, noisy, parts, some, taken, write_models

ROWS = 2000
CLASSES = 7
AREAS = ("rawah", "neota", "comanche", "poudre")
KNOWN = ("rawah", "poudre")
BANDS = (0, 2700, 3000, 3300, 4000)  # metres
SOILS = {
    "glacial": (9, 22, 23),
    "alluvium": (14, 15, 16, 17, 19, 20, 21),
}  # by the geologic zone in the codes of the US Forest Service


def whole(cache: Path) -> tuple[Sample, NDArray[np.str_]]:
    """Return the patches, their soil as a word such as "s29", and the area of each."""
    frame = table("covtype.csv", cache)
    labels = frame.pop("Cover_Type").to_numpy(dtype=np.int64) - 1
    areas = np.array(AREAS)[frame.filter(like="Wilderness_Area").to_numpy().argmax(axis=1)]
    words = np.array([f"s{number}" for number in range(1, 41)], dtype=object)
    soils = words[frame.filter(like="Soil_Type").to_numpy().argmax(axis=1)]
    measures = frame.iloc[:, :10].astype(float)
    return (measures.assign(soil=soils), labels), areas


def drawn_anew(pool: Sample, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return weights of classes whose shares are then a draw from Dirichlet(1, ..., 1)."""
    return rng.dirichlet(np.ones(CLASSES)) / np.bincount(pool[1], minlength=CLASSES)


def of_comanche(comanche: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    frame = comanche[0]
    found = {"comanche": some(comanche, ROWS, rng)}
    for low, high in pairwise(BANDS):
        band = frame["Elevation"].between(low, high, inclusive="left").to_numpy()
        found[f"comanche_below_{high}"] = some(taken(comanche, band), ROWS, rng)
    for name, numbers in SOILS.items():
        members = frame["soil"].isin([f"s{number}" for number in numbers]).to_numpy()
        found[f"comanche_{name}"] = some(taken(comanche, members), ROWS, rng)
    found["comanche_weighted"] = label_shifted(comanche, rng.dirichlet(np.ones(CLASSES)), ROWS, rng)
    return found


def targets(pool: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    weights = drawn_anew(pool, rng)
    few = np.isin(np.arange(CLASSES), rng.permutation(CLASSES)[:3]).astype(float)
    return {
        "clean": some(pool, ROWS, rng),
        "noise_1": noisy(some(pool, ROWS, rng), 0.1, rng),
        "noise_2": noisy(some(pool, ROWS, rng), 0.3, rng),
        "missing_1": holed(some(pool, ROWS, rng), 0.05, rng),
        "missing_2": holed(some(pool, ROWS, rng), 0.2, rng),
        "weighted": label_shifted(pool, weights, ROWS, rng),
        "weighted_noise": noisy(label_shifted(pool, weights, ROWS, rng), 0.2, rng),
        "few": label_shifted(pool, few, ROWS, rng),
        "few_missing": holed(label_shifted(pool, few, ROWS, rng), 0.1, rng),
    }


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample, areas = whole(options.cache)
    known = taken(sample, np.isin(areas, KNOWN))
    train, source, pool = (taken(known, rows) for rows in parts((12000, 5000), len(known[1]), rng))
    found = targets(pool, rng)
    found["neota"] = some(taken(sample, areas == "neota"), ROWS, rng)
    found |= of_comanche(taken(sample, areas == "comanche"), rng)
    samples = {f"target_{name}": target for name, target in found.items()}
    write_models(options.out, "covertype", train, {"source": source, **samples})


if __name__ == "__main__":
    main()
