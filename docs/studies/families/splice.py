"""Where genes are spliced: three classes of DNA by 60 letters, misread and lost letters, moved windows, label shift.

    python docs/studies/families/splice.py --out DIR

Data: UCI Molecular Biology, splice-junction gene sequences (Towell, Noordewier and Shavlik, 1990; CC BY 4.0), 3,186
windows of 60 letters, as the R package mlbench has them (Debian ``r-cran-mlbench``, unpacked, not installed). Trained
on 900 windows; the source has 800 others, the targets 1,000 each of the 1,486 that are left.

Shifts: misread letters, letters that read as nothing, a half of the window lost, windows cut one letter too late, those
with much and with little C and G, classes weighted, also with misread or lost letters.
Needs scikit-learn, pandas and rdata; half a minute on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from rtables import table
from tables import Sample, label_shifted, parts, some, taken, write_models

ROWS, WEIGHTED = 1000, 800
LETTERS = 60
CODES = ["100", "010", "001"]  # of A, C and G; none of T
NOTHING = "?"


def whole(cache: Path) -> Sample:
    """Return the windows, a column of letters for each place."""
    frame = table("r-cran-mlbench", "DNA", cache)
    bits = frame.drop(columns="Class").astype(str).to_numpy().reshape(len(frame), LETTERS, 3)
    codes = pd.DataFrame(bits[..., 0] + bits[..., 1] + bits[..., 2])
    letters = codes.replace(dict(zip([*CODES, "000"], "ACGT", strict=True)))
    return letters.set_axis([f"place_{place}" for place in range(LETTERS)], axis=1), frame["Class"].cat.codes.to_numpy(
        dtype=np.int64
    )


def misread(sample: Sample, chance: float, rng: np.random.Generator) -> Sample:
    """Replace each letter with this chance by a random one."""
    others = rng.choice(list("ACGT"), size=sample[0].shape)
    return sample[0].mask(rng.random(sample[0].shape) < chance, others), sample[1]


def lost(sample: Sample, chance: float, rng: np.random.Generator) -> Sample:
    """Lose each letter with this chance."""
    return sample[0].mask(rng.random(sample[0].shape) < chance, NOTHING), sample[1]


def late(sample: Sample) -> Sample:
    """Begin each window one letter late, so that the last place is empty."""
    return sample[0].shift(-1, axis=1).fillna(NOTHING), sample[1]


def half(sample: Sample) -> Sample:
    """Lose the second half of each window."""
    return sample[0].assign(**dict.fromkeys(sample[0].columns[LETTERS // 2 :], NOTHING)), sample[1]


def targets(pool: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    rich = pool[0].isin(["C", "G"]).mean(axis=1).to_numpy()
    found = {"clean": some(pool, ROWS, rng)}
    for strength, chance in enumerate((0.03, 0.1, 0.25), start=1):
        found[f"misread_{strength}"] = misread(some(pool, ROWS, rng), chance, rng)
        found[f"lost_{strength}"] = lost(some(pool, ROWS, rng), 2 * chance, rng)
    found["late"] = late(some(pool, ROWS, rng))
    found["half"] = half(some(pool, ROWS, rng))
    found["much_cg"] = some(taken(pool, rich >= np.quantile(rich, 0.6)), ROWS, rng)
    found["little_cg"] = some(taken(pool, rich <= np.quantile(rich, 0.4)), ROWS, rng)
    for number in (1, 2):
        weights = rng.dirichlet(np.ones(3))
        found[f"weighted_{number}"] = label_shifted(pool, weights, WEIGHTED, rng)
        found[f"weighted_{number}_misread"] = misread(label_shifted(pool, weights, WEIGHTED, rng), 0.1, rng)
        found[f"weighted_{number}_lost"] = lost(label_shifted(pool, weights, WEIGHTED, rng), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample = whole(options.cache)
    train, source, pool = (taken(sample, rows) for rows in parts((900, 800), len(sample[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(pool, rng).items()}
    write_models(options.out, "splice", train, {"source": source, **samples})


if __name__ == "__main__":
    main()
