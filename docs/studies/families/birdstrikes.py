"""Size of the animal that struck an aircraft, from the report of the strike: three classes, years that pass.

    python docs/studies/families/birdstrikes.py --out DIR

Data: 10,000 reports to the Federal Aviation Administration of 1990 to 2002 (public domain), as the package
vega-datasets 3.2.1 of npm has them (downloaded, not installed). Trained on 2,000 reports up to 1995; the source has
1,000 others of these years, the target ``clean`` those left.

Shifts: each later year, military aircraft, nights and the state of Texas in these years, missing values, and sizes
weighted at random.
Needs scikit-learn and pandas; a minute on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from downloads import file_in, from_npm
from tables import Sample, holed, label_shifted, noisy, parts, some, taken, write_models

SIZES = ("Small", "Medium", "Large")
LAST_KNOWN = 1995
ROWS = 1500


def whole(cache: Path) -> tuple[Sample, pd.Series]:
    """Return the reports and their years."""
    file = file_in(from_npm("vega-datasets", "3.2.1", cache), "birdstrikes.csv")
    frame = pd.read_csv(file, parse_dates=["Flight Date"], keep_default_na=False, na_values=[""])
    date = frame["Flight Date"]
    labels = pd.Categorical(frame["Wildlife Size"], categories=SIZES).codes.astype(np.int64)
    known = frame.drop(columns=["Flight Date", "Wildlife Size", "Wildlife Species"])
    return (known.assign(month=date.dt.month), labels), date.dt.year


def targets(later: Sample, years: pd.Series, rng: np.random.Generator) -> dict[str, Sample]:
    frame = later[0]
    found = {str(year): taken(later, (years == year).to_numpy()) for year in sorted(years.unique())}
    groups = {
        "military": frame["Aircraft Airline Operator"] == "MILITARY",
        "night": frame["Time of day"] == "Night",
        "texas": frame["Origin State"] == "Texas",
    }
    for name, members in groups.items():
        found[name] = taken(later, members.to_numpy())
    found["noise"] = noisy(some(later, ROWS, rng), 0.5, rng)
    found["missing"] = holed(some(later, ROWS, rng), 0.3, rng)
    weights = rng.dirichlet(np.ones(len(SIZES)))
    found["weighted"] = label_shifted(later, weights, ROWS, rng)
    found["weighted_missing"] = holed(label_shifted(later, weights, ROWS, rng), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample, years = whole(options.cache)
    is_known = (years <= LAST_KNOWN).to_numpy()
    known, later = taken(sample, is_known), taken(sample, ~is_known)
    train, source, clean = (taken(known, rows) for rows in parts((2000, 1000), len(known[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(later, years[~is_known], rng).items()}
    write_models(options.out, "birdstrikes", train, {"source": source, "target_clean": clean, **samples})


if __name__ == "__main__":
    main()
