"""Rain or none from the other measures of a day: two classes, fifty years in their order, label shift.

    python docs/studies/families/weather.py --out DIR

Data: 18,159 days at Offutt Air Force Base, Bellevue, Nebraska, from 1949 on, by the National Oceanic and Atmospheric
Administration (public domain) as Elwell and Polikar (2011) chose them, in the package scikit-multiflow 0.4.1 of PyPI
(BSD 3-Clause; downloaded, not installed). It rained on 31 % of the days. The file has no dates, only their order, with
some left out. Trained on 3,500 of the first 7,500 days, some twenty years; the source has 2,500 others of them,
the target ``clean`` those left.

Shifts: the days after these in six parts, in their order; hot, cold and hazy days among them; noise, missing values,
winds in metres per second instead of knots; fewer days of rain, also with noise, and more of them, also with gaps.
Needs scikit-learn and pandas; a minute on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import arguments
from multiflow import table
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, taken, write_models

COLUMNS = (
    "temperature",
    "dew_point",
    "pressure",
    "visibility",
    "wind",
    "strongest_wind",
    "highest_temperature",
    "lowest_temperature",
)
KNOWN_DAYS = 7500
HIGHEST_PRESSURE = 1100  # two days have 5,503 hectopascals
PERIODS = 6
ROWS = 1500
DRY, WET = 0.15, 0.6  # shares of days of rain
METRES_PER_SECOND = 0.5144  # one knot


def whole(cache: Path) -> Sample:
    frame = table("weather.csv", cache)
    labels = frame.pop("target").to_numpy(dtype=np.int64)
    frame.columns = list(COLUMNS)
    return frame.assign(pressure=frame["pressure"].where(frame["pressure"] < HIGHEST_PRESSURE)), labels


def targets(later: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    share = later[1].mean()

    def with_share(wanted: float) -> Sample:
        odds = np.array([(1 - wanted) / (1 - share), wanted / share])
        return label_shifted(later, odds, ROWS, rng)

    days = np.array_split(np.arange(len(later[1])), PERIODS)
    found = {f"period_{number}": taken(later, rows) for number, rows in enumerate(days, start=1)}
    frame = later[0]
    groups = {
        "hot": frame["temperature"] >= 70,
        "cold": frame["highest_temperature"] <= 40,
        "hazy": frame["visibility"] < 8,
    }
    for name, members in groups.items():
        found[name] = some(taken(later, members.to_numpy()), ROWS, rng)
    found["noise_1"] = noisy(some(later, ROWS, rng), 0.2, rng)
    found["noise_2"] = noisy(some(later, ROWS, rng), 0.6, rng)
    found["missing"] = holed(some(later, ROWS, rng), 0.2, rng)
    found["winds_scaled"] = scaled(some(later, ROWS, rng), ["wind", "strongest_wind"], METRES_PER_SECOND)
    found["dry"] = with_share(DRY)
    found["wet"] = with_share(WET)
    found["dry_noise"] = noisy(with_share(DRY), 0.4, rng)
    found["wet_missing"] = holed(with_share(WET), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample = whole(options.cache)
    is_known = np.arange(len(sample[1])) < KNOWN_DAYS
    known, later = taken(sample, is_known), taken(sample, ~is_known)
    train, source, clean = (taken(known, rows) for rows in parts((3500, 2500), len(known[1]), rng))
    samples = {f"target_{name}": target for name, target in targets(later, rng).items()}
    write_models(options.out, "weather", train, {"source": source, "target_clean": clean, **samples})


if __name__ == "__main__":
    main()
