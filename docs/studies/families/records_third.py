"""Records, 12 tables that no choice has seen: what is told apart, from what, and in which groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from records_table import Records, codes, of_keel, of_r

_PIECES = 300
#: Tables of KEEL, and how many rows to train with and in the source; groups are low and high values of some columns.
_SLICED = {
    "magic": (3000, 2500),
    "texture": (1500, 1200),
    "phoneme": (1500, 1200),
    "segment": (700, 600),
    "banana": (1500, 1200),
    "ring": (2000, 1500),
    "chess": (900, 800),
}


def sliced(name: str) -> Callable[[Path], Records]:
    """Return what makes records of a table of KEEL: fifths of the rows by one column, or those with a rarer word."""

    def records(cache: Path) -> Records:
        d, labels = of_keel(name, cache)
        numbers = [column for column in d if pd.api.types.is_numeric_dtype(d[column])]
        groups = {}
        for column in np.random.default_rng(1).permutation(numbers)[:5] if numbers else []:
            low, high = d[column].quantile([0.2, 0.8])
            groups |= {f"low_{column}": d[column] <= low, f"high_{column}": d[column] >= high}
        for column in [column for column in d if column not in numbers][:6]:
            counts = d[column].value_counts()
            groups[f"top_{column}"] = d[column] == counts.index[-1 if counts.iloc[-1] > 150 else 0]
        return Records(d, labels, None, groups, _SLICED[name])

    return records


def pets(cache: Path) -> Records:
    """Whether a name is a dog's or a cat's, by pieces of it."""
    d = of_r("openintro/seattlepets", cache)
    d = d[d["animal_name"].notna() & d["species"].isin(["Dog", "Cat"])].sample(12_000, random_state=0)
    name, place = d["animal_name"].str.lower(), d["zip_code"].astype(str)
    counts = Counter(each[i : i + size] for each in name for size in (1, 2, 3) for i in range(len(each) - size + 1))
    pieces = [piece for piece, _ in counts.most_common(_PIECES)]
    has = {f"g{i}": name.str.contains(piece, regex=False).astype(float) for i, piece in enumerate(pieces)}
    groups = {"short": name.str.len() <= 4, "long": name.str.len() >= 8, "spaces": name.str.contains(" ")}
    groups |= {"ends_y": name.str.endswith("y"), "ends_a": name.str.endswith("a")}
    groups |= {"zip": place.str.startswith("9811"), "breed": d["primary_breed"].str.contains("Mix")}
    labels = (d["species"] == "Cat").to_numpy(dtype=np.int64)
    return Records(pd.DataFrame(has).assign(len=name.str.len()), labels, None, groups, (3000, 2500))


def ratings(cache: Path) -> Records:
    """How a student rates a lecture, one to five: trained outside two departments."""
    d = of_r("lme4/InstEval", cache).sample(30_000, random_state=0)
    labels, department = codes(d["y"]), d["dept"].astype(str)
    d = d[["studage", "lectage", "service"]].assign(d=pd.to_numeric(d["d"]), dept=department)
    d = d.assign(count=d.groupby("d")["d"].transform("size"))
    groups = {f"dept{number}": department == number for number in ("1", "5", "10", "15")}
    groups |= {"old": d["studage"].astype(str) == "8", "young_lecturers": d["lectage"].astype(str) == "1"}
    groups |= {"service": d["service"].astype(str) == "1", "rare": d["count"] < 8, "often": d["count"] > 60}
    return Records(d, labels, ~department.isin(["1", "5"]), groups, (4000, 3000))


def married(cache: Path) -> Records:
    """Whether a young woman is married and lives with her husband: trained before 1978."""
    d = of_r("sampleSelection/nlswork", cache)
    d = d[d["msp"].notna()]
    labels, year = d["msp"].to_numpy(dtype=np.int64), d["year"]
    told = ["age", "race", "grade", "not_smsa", "c_city", "south", "union", "ttl_exp", "tenure", "hours", "ln_wage"]
    d = d[told]
    groups = {f"y{each}": year == each for each in (78, 80, 83, 87)}
    groups |= {"black": d["race"] == 2, "city": d["c_city"] == 1, "teens": d["age"] < 21, "over40": d["age"] >= 40}
    groups |= {"rich": d["ln_wage"] > 2.2, "part_time": d["hours"] < 25}
    return Records(d, labels, year < 78, groups, (3000, 2500))


def drivers(cache: Path) -> Records:
    """What police wrote of somebody they stopped, black or white: trained in four precincts until June."""
    d = of_r("carData/MplsStops", cache)
    d = d[d["race"].isin(["White", "Black"])]
    labels, time = (d["race"] == "Black").to_numpy(dtype=np.int64), pd.to_datetime(d["date"])
    month, precinct = time.dt.month, d["policePrecinct"]
    known = precinct.isin([1, 2, 3, 5])
    d = d[["problem", "MDC", "personSearch", "vehicleSearch", "gender", "lat", "long"]]
    d = d.assign(hour=time.dt.hour, day=time.dt.dayofweek)
    groups = {"summer": month.between(7, 9) & known, "autumn": (month >= 10) & known, "precinct4": precinct == 4}
    groups |= {"night": d["hour"] < 4, "noon": d["hour"].between(11, 14), "women": d["gender"] == "Female"}
    groups |= {"searched": d["personSearch"] == "YES", "suspicious": d["problem"] == "suspicious"}
    return Records(d, labels, (month <= 6) & known, groups, (4000, 3000))


def wins(cache: Path) -> Records:
    """How a football match ends, won, drawn or lost at home: trained before 1985."""
    d = of_r("vcd/Bundesliga", cache)
    labels, year = codes(np.sign(d["HomeGoals"] - d["AwayGoals"])), d["Year"]
    frame = d[["HomeTeam", "AwayTeam", "Round"]].assign(year=year)
    groups = {f"y{first}": year.between(first, first + 4) for first in (1985, 1990, 1995)} | {"y2000": year >= 2000}
    groups |= {"munich": d["HomeTeam"].astype(str).str.contains("Bayern")}
    groups |= {"last_rounds": d["Round"] > 28, "first_rounds": d["Round"] < 6}
    return Records(frame, labels, year < 1985, groups, (3000, 2000))


FAMILIES = {name: sliced(name) for name in _SLICED} | {
    each.__name__: each for each in (pets, ratings, married, drivers, wins)
}
