"""Records, 13 more tables: what is told apart, from what, and in which groups."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from records_table import Records, codes, of_r

_WORDS = 400


def words_of(texts: pd.Series) -> pd.DataFrame:
    """Return which of the most frequent words each text has, and its length."""
    found = [set(re.findall(r"[a-z#@']+", text.lower())) for text in texts]
    frequent = [word for word, _ in Counter(word for words in found for word in sorted(words)).most_common(_WORDS)]
    has = np.array([[word in words for word in frequent] for words in found], dtype=float)
    return pd.DataFrame(has, columns=[f"w{number}" for number in range(_WORDS)]).assign(
        length=texts.str.len().to_numpy()
    )


def insured(cache: Path) -> Records:
    """Whether a wife has an insurance of her own: trained in the north and elsewhere, not in the south and west."""
    d = of_r("Ecdat/HI", cache)
    labels, region = (d["whi"] == "yes").to_numpy(dtype=np.int64), d["region"]
    d = d[["whrswk", "education", "race", "hispanic", "experience", "kidslt6", "kids618", "husby"]]
    groups = {"south": region == "south", "west": region == "west", "black": d["race"] == "black"}
    groups |= {"hispanic": d["hispanic"] == "yes", "mothers": d["kidslt6"] > 0, "home": d["whrswk"] == 0}
    groups |= {"full_time": d["whrswk"] >= 40, "part_time": d["whrswk"].between(1, 29)}
    groups |= {"college": d["education"].isin(["16years", ">16years"]), "old": d["experience"] > 35}
    groups |= {"poor": d["husby"] < 8, "rich": d["husby"] > 40}
    return Records(d, labels, region.isin(["northcentral", "other"]), groups, (3000, 2500))


def health(cache: Path) -> Records:
    """Whether somebody has health insurance: trained in the north-east and midwest."""
    d = of_r("AER/HealthInsurance", cache)
    labels, region = (d.pop("insurance") == "yes").to_numpy(dtype=np.int64), d.pop("region")
    groups = {"south": region == "south", "west": region == "west", "old": d["age"] >= 55, "young": d["age"] < 25}
    groups |= {"self_employed": d["selfemp"] == "yes", "single": d["married"] == "no", "ill": d["health"] == "no"}
    groups |= {"black": d["ethnicity"] == "afam", "educated": d["education"].isin(["bachelor", "master", "phd"])}
    groups |= {"little_school": d["education"] == "none", "large": d["family"] >= 5, "men": d["gender"] == "male"}
    return Records(d, labels, region.isin(["northeast", "midwest"]), groups, (1500, 1200))


def pensions(cache: Path) -> Records:
    """Whether a family could have a pension plan by its employer."""
    d = of_r("wooldridge/k401ksubs", cache)
    labels = d["e401k"].to_numpy(dtype=np.int64)
    d = d[["inc", "marr", "male", "age", "fsize", "nettfa", "pira"]].astype(float)
    groups = {"rich": d["inc"] > 60, "poor": d["inc"] < 20, "single": d["marr"] == 0, "men": d["male"] == 1}
    groups |= {"old": d["age"] > 55, "young": d["age"] < 30, "large": d["fsize"] >= 5, "savers": d["pira"] == 1}
    groups |= {"debtors": d["nettfa"] < 0, "wealthy": d["nettfa"] > 50}
    return Records(d, labels, None, groups, (2500, 2000))


def deaths(cache: Path) -> Records:
    """Whether somebody dies within some years of a blood sample: trained with samples until 1996."""
    d = of_r("survival/flchain", cache)
    labels, year = d["death"].to_numpy(dtype=np.int64), d["sample.yr"]
    d = d[["age", "sex", "kappa", "lambda", "creatinine", "mgus"]]
    groups = {"y1997": year == 1997, "later": year >= 1998, "old": d["age"] > 75, "young": d["age"] < 55}
    groups |= {"sixties": d["age"].between(60, 69), "women": d["sex"] == "F", "light_chains": d["lambda"] > 2.5}
    groups |= {"few_chains": d["kappa"] < 0.9, "creatinine": d["creatinine"] > 1.3}
    groups |= {"unmeasured": d["creatinine"].isna()}
    return Records(d, labels, year <= 1996, groups, (2000, 1500))


def grants(cache: Path) -> Records:
    """Whether a grant is given, by the applicants."""
    d = of_r("modeldata/grants_other", cache)
    labels = (d.pop("class") == "successful").to_numpy(dtype=np.int64)
    d = d.select_dtypes("number")
    d = d.loc[:, (d != 0).sum() > 60].astype(float)
    day = d[d.columns[d.columns.str.contains("day|month")][0]]
    before = d.filter(like="success").sum(axis=1)
    groups = {"alone": d["num_ci"] == 1, "teams": d["num_ci"] >= 4, "students": d["num_sci"] > 0}
    groups |= {"externals": d["num_eci"] > 0, "early": day < day.quantile(0.25)}
    groups |= {"none_before": before == 0, "proven": before >= 5}
    return Records(d, labels, None, groups, (2500, 2000))


def leaves(cache: Path) -> Records:
    """The species of a tree, 32, by the shape of a leaf."""
    d = of_r("modeldata/leaf_id_flavia", cache)
    labels = codes(d.pop("species").astype(str))
    groups = {kind: d[f"{kind}_edge"] == "yes" for kind in ("smooth", "toothed", "lobed")}
    return Records(d, labels, None, groups, (700, 600))


def leagues(cache: Path) -> Records:
    """The league of a baseball player, by a season's figures: trained on 1966 to 1990."""
    d = of_r("plyr/baseball", cache)
    d = d[d["lg"].isin(["AL", "NL"]) & (d["year"] > 1955) & (d["ab"] > 0)]
    labels, year = (d["lg"] == "AL").to_numpy(dtype=np.int64), d["year"]
    counted = ["g", "ab", "r", "h", "X2b", "X3b", "hr", "rbi", "sb", "cs", "bb", "so", "ibb", "hbp", "sh", "sf", "gidp"]
    d = d[counted].astype(float)
    groups = {"y1955": year <= 1965, "y1991": year.between(1991, 1995), "y1996": year.between(1996, 2000)}
    groups |= {"y2001": year >= 2001, "regulars": d["ab"] > 400, "pitchers": d["ab"] < 60, "sluggers": d["hr"] > 25}
    groups |= {"runners": d["sb"] > 25, "bunters": d["sh"] > 10}
    return Records(d, labels, year.between(1966, 1990), groups, (2500, 2000))


def drama(cache: Path) -> Records:
    """Whether a film is a drama, by its length, votes and other kinds: trained on 1950 to 1984."""
    d = of_r("ggplot2movies/movies", cache)
    labels, year = d["Drama"].to_numpy(dtype=np.int64), d["year"]
    told = ["length", "budget", "rating", "votes", "r1", "r4", "r7", "r9", "r10", "mpaa"]
    d = d[[*told, "Action", "Animation", "Comedy", "Documentary", "Romance", "Short"]]
    groups = {"y1940": year.between(1940, 1949), "y1985": year.between(1985, 1994), "y1995": year.between(1995, 1999)}
    groups |= {"y2000": year >= 2000, "short": d["length"] < 30, "long": d["length"] > 120}
    groups |= {"popular": d["votes"] > 1000, "unknown": d["votes"] < 10, "good": d["rating"] > 8}
    groups |= {"bad": d["rating"] < 4, "comedies": d["Comedy"] == 1, "action": d["Action"] == 1}
    groups |= {"rated": d["mpaa"].astype(str) != ""}
    return Records(d, labels, year.between(1950, 1984), groups, (4000, 3000))


def gender(cache: Path) -> Records:
    """Whether a pupil is a girl or a boy, by measures and habits."""
    d = of_r("openintro/yrbss", cache)
    d = d[d["gender"].notna() & d["height"].notna()]
    labels = codes(d.pop("gender").astype(str))
    groups = {"young": d["age"] < 15, "old": d["age"] >= 18, "hispanic": d["hispanic"] != "not"}
    groups |= {"black": d["race"] == "Black or African American", "asian": d["race"] == "Asian"}
    groups |= {"heavy": d["weight"] > 90, "light": d["weight"] < 52, "tall": d["height"] > 1.8}
    groups |= {"small": d["height"] < 1.6, "lazy": d["physically_active_7d"] == 0}
    groups |= {"sporty": d["strength_training_7d"] >= 5}
    return Records(d.drop(columns=["race", "hispanic", "grade"]), labels, None, groups, (2500, 2000))


def grades(cache: Path) -> Records:
    """The grade in chemistry, six of them, by earlier grades: trained in sixty of the places."""
    d = of_r("mlmRev/Chem97", cache)
    labels, place = codes(d["score"]), pd.to_numeric(d["lea"])
    d = d[["gender", "gcsescore"]].assign(age=pd.to_numeric(d["age"]))
    groups = {"places2": place.between(61, 80), "places3": place.between(81, 100), "places4": place > 100}
    groups |= {"girls": d["gender"] == "F", "good": d["gcsescore"] > 7, "weak": d["gcsescore"] < 5.5}
    groups |= {"young": d["age"] <= -4, "old": d["age"] >= 4}
    return Records(d, labels, place <= 60, groups, (3000, 3000))


def mothers(cache: Path) -> Records:
    """Whether a mother works: trained on those who are not Hispanic and have no college degree."""
    d = of_r("wooldridge/labsup", cache)
    labels = d["worked"].to_numpy(dtype=np.int64)
    told = ["kids", "boy1st", "samesex", "multi2nd", "age", "agefstm", "black", "hispan", "educ", "nonmomi"]
    d = d[told].astype(float)
    groups = {"black": d["black"] == 1, "hispanic": d["hispan"] == 1, "many": d["kids"] >= 4, "young": d["age"] < 26}
    groups |= {"early": d["agefstm"] < 18, "late": d["agefstm"] > 25, "educated": d["educ"] >= 16}
    groups |= {"little_school": d["educ"] < 9, "poor": d["nonmomi"] < 5, "rich": d["nonmomi"] > 60}
    return Records(d, labels, (d["hispan"] == 0) & (d["educ"] < 16), groups, (4000, 3000))


def tweets(cache: Path) -> Records:
    """From which of three devices Trump tweeted, by words and hour: trained on 2015 until February 2016."""
    d = of_r("dslabs/trump_tweets", cache)
    d = d[d["source"].isin([f"Twitter {name}" for name in ("for Android", "for iPhone", "Web Client")])]
    d = d[pd.to_datetime(d["created_at"]) >= "2015-01-01"].reset_index(drop=True)
    time, text = pd.to_datetime(d["created_at"]), d["text"].astype(str)
    frame = words_of(text).assign(hour=time.dt.hour)
    groups = {"early2016": time.between("2016-01-01", "2016-06-01", inclusive="left")}
    groups |= {"late2016": time.between("2016-06-01", "2017-01-01", inclusive="left")}
    groups |= {"quotes": text.str.startswith('"'), "links": text.str.contains("http")}
    groups |= {"tags": text.str.contains("#"), "short": text.str.len() < 80}
    return Records(frame, codes(d["source"].astype(str)), time < "2016-03-01", groups, (900, 800))


def reviews(cache: Path) -> Records:
    """Whether a review of food gives the best score, by its words."""
    d = pd.concat([of_r(f"modeldata/{part}_data", cache) for part in ("training", "testing")], ignore_index=True)
    text = d["review"].astype(str)
    groups = {"short": text.str.len() < 200, "long": text.str.len() > 700}
    told = {"coffee": "coffee", "tea": " tea ", "pets": "dog|cat ", "but": " but ", "exclaimed": "!!"}
    groups |= {name: text.str.contains(pattern) for name, pattern in told.items()}
    return Records(words_of(text), (d["score"] == "great").to_numpy(dtype=np.int64), None, groups, (1500, 1200))


FAMILIES = {
    each.__name__: each
    for each in (insured, health, pensions, deaths, grants, leaves, leagues, drama, gender, grades, mothers, tweets)
} | {"reviews": reviews}
