"""Records, the first 13 tables: what is told apart, from what, and in which groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from records_table import Records, codes, of_r


def voters(cache: Path) -> Records:
    """Whether a voter chose Trump in 2016, by a survey: trained in eight western states."""
    d = of_r("stevedata/TV16", cache)
    d = d[d["votetrump"].notna()]
    labels, state = d.pop("votetrump").to_numpy(dtype=np.int64), d.pop("state")
    d = d.drop(columns=["uid", "lrelig", "lcograc", "lemprac"])
    west = ["California", "Oregon", "Washington", "Nevada", "Arizona", "Colorado", "Utah", "New Mexico"]
    south = ["Alabama", "Georgia", "Mississippi", "Tennessee", "Louisiana", "South Carolina"]
    groups = {name: state == name.replace("_", " ").title() for name in ("texas", "florida", "new_york", "ohio")}
    groups |= {"south": state.isin(south), "young": d["age"] < 30, "old": d["age"] >= 70}
    groups |= {"black": d["racef"] == "Black", "born_again": d["bornagain"] == 1, "college": d["collegeed"] == 1}
    groups |= {"poor": d["famincr"] <= 2, "rich": d["famincr"] >= 11, "moderate": d["ideo"] == 3}
    return Records(d, labels, state.isin(west), groups, (3000, 3000))


def abortion(cache: Path) -> Records:
    """An answer on abortion in the General Social Survey: trained before 1988."""
    d = of_r("stevedata/gss_abortion", cache)
    d = d[d["abany"].notna()]
    labels, year = d["abany"].to_numpy(dtype=np.int64), d["year"]
    d = d[["age", "race", "sex", "educ", "partyid", "relactiv", "hispanic", "pid"]]
    groups = {f"from_{first}": year.between(first, first + 5) for first in (1988, 1994, 2000, 2006, 2012)}
    groups |= {"young": d["age"] < 28, "old": d["age"] > 70, "black": d["race"] == "Black"}
    groups |= {"educated": d["educ"] >= 16, "little_school": d["educ"] < 10, "pious": d["relactiv"] >= 7}
    return Records(d, labels, year < 1988, groups, (4000, 3000))


def crashes(cache: Path) -> Records:
    """Whether somebody in a crashed car was badly hurt, by police reports: trained before 2000."""
    d = of_r("DAAG/nassCDS", cache)
    severity = pd.to_numeric(d["injSeverity"])
    d, severity = d[severity <= 4], severity[severity <= 4]
    year = pd.to_numeric(d["yearacc"])
    words = ["dvcat", "airbag", "seatbelt", "sex", "abcat", "occRole"]
    numbers = d[["ageOFocc", "yearVeh", "frontal", "deploy"]].apply(pd.to_numeric)
    d = pd.concat([d[words], numbers], axis=1)
    groups = {f"y{each}": year == each for each in (2000, 2001, 2002)}
    groups |= {"unbelted": d["seatbelt"] == "none", "old": d["ageOFocc"] >= 65, "young": d["ageOFocc"] < 20}
    groups |= {"fast": d["dvcat"].isin(["40-54", "55+"]), "slow": d["dvcat"].isin(["1-9km/h", "10-24"])}
    groups |= {"passengers": d["occRole"] == "pass", "new_cars": d["yearVeh"] >= 2000, "women": d["sex"] == "f"}
    return Records(d, (severity >= 3).to_numpy(dtype=np.int64), year < 2000, groups, (4000, 3000))


def stops(cache: Path) -> Records:
    """Why the police of Minneapolis stopped somebody, suspicion or traffic: trained in three precincts until June."""
    d = of_r("carData/MplsStops", cache)
    time, precinct = pd.to_datetime(d["date"]), d["policePrecinct"]
    month, known = time.dt.month, precinct.isin([1, 2, 3])
    labels = (d["problem"] == "suspicious").to_numpy(dtype=np.int64)
    d = d[["MDC", "personSearch", "vehicleSearch", "race", "gender", "preRace", "lat", "long"]]
    d = d.assign(hour=time.dt.hour, day=time.dt.dayofweek)
    groups = {"summer": month.between(7, 9) & known, "autumn": (month >= 10) & known}
    groups |= {"precinct4": precinct == 4, "precinct5": precinct == 5, "night": d["hour"] < 5}
    groups |= {"noon": d["hour"].between(10, 14), "women": d["gender"] == "Female", "black": d["race"] == "Black"}
    groups |= {"searched": d["personSearch"] == "YES", "weekend": d["day"] >= 5}
    return Records(d, labels, (month <= 6) & known, groups, (4000, 4000))


def storms(cache: Path) -> Records:
    """The kind of a storm by place, wind and pressure, five kinds: trained before 2000.

    What is called how has changed since, which no output shows.
    """
    d = of_r("dplyr/storms", cache)
    d = d[d.groupby("status")["status"].transform("size") > 400]
    labels, year = codes(d["status"].astype(str)), d["year"]
    d = d[["month", "hour", "lat", "long", "wind", "pressure"]].astype(float)
    groups = {f"y{first}": year.between(first, first + 5) for first in (2000, 2006, 2012)} | {"y2018": year >= 2018}
    groups |= {"north": d["lat"] > 35, "south": d["lat"] < 15, "gulf": d["long"] < -85}
    groups |= {"strong": d["wind"] >= 80, "weak": d["wind"] <= 30, "early": d["month"] <= 7, "late": d["month"] >= 11}
    return Records(d, labels, year < 2000, groups, (2000, 2000))


def churn(cache: Path) -> Records:
    """Whether a customer of a telephone company leaves."""
    d = of_r("modeldata/wa_churn", cache)
    labels = (d.pop("churn") == "Yes").to_numpy(dtype=np.int64)
    groups = {"monthly": d["contract"] == "Month-to-month", "two_years": d["contract"] == "Two year"}
    groups |= {"new": d["tenure"] < 6, "loyal": d["tenure"] > 60, "fiber": d["internet_service"] == "Fiber optic"}
    groups |= {"dsl": d["internet_service"] == "DSL", "none": d["internet_service"] == "No"}
    groups |= {"seniors": d["senior_citizen"] == 1, "families": d["dependents"] == 1}
    groups |= {"dear": d["monthly_charges"] > 95, "checks": d["payment_method"] == "Electronic check"}
    return Records(d, labels, None, groups, (2000, 1500))


def rodents(cache: Path) -> Records:
    """The species of a rodent, twelve, by its measures: trained before 1988."""
    d = of_r("ratdat/complete", cache)
    d = d[(d["taxa"] == "Rodent") & (d["hindfoot_length"].notna() | d["weight"].notna())]
    d = d[d["species_id"].isin(d["species_id"][d["year"] < 1988].value_counts().index[:12])]
    labels, year = codes(d["species_id"].astype(str)), d["year"]
    d = d[["month", "sex", "hindfoot_length", "weight", "plot_type"]]
    groups = {f"y{first}": year.between(first, first + 3) for first in (1988, 1992, 1996)} | {"y2000": year >= 2000}
    groups |= {"males": d["sex"] == "M", "light": d["weight"] < 15, "heavy": d["weight"] > 60}
    groups |= {"summer": d["month"].isin([6, 7, 8]), "winter": d["month"].isin([12, 1, 2])}
    groups |= {"exclosure": d["plot_type"] == "Rodent Exclosure"}
    groups |= {"unweighed": d["weight"].isna() | d["hindfoot_length"].isna()}
    return Records(d, labels, year < 1988, groups, (3000, 3000))


def union(cache: Path) -> Records:
    """Whether a woman's work is covered by a union, in a panel of young women: trained before 1980."""
    d = of_r("sampleSelection/nlswork", cache)
    d = d[d["union"].notna()]
    labels, year = d["union"].to_numpy(dtype=np.int64), d["year"]
    told = ["age", "race", "msp", "nev_mar", "grade", "collgrad", "not_smsa", "c_city", "south", "ind_code", "occ_code"]
    d = d[[*told, "ttl_exp", "tenure", "hours", "ln_wage"]]
    d = d.assign(ind_code=d["ind_code"].astype(str), occ_code=d["occ_code"].astype(str))
    groups = {f"y{each}": year == each for each in (80, 82, 83, 85, 87, 88)}
    groups |= {"south": d["south"] == 1, "black": d["race"] == 2, "college": d["collgrad"] == 1}
    groups |= {"low_pay": d["ln_wage"] < 1.3, "high_pay": d["ln_wage"] > 2.2, "part_time": d["hours"] < 30}
    return Records(d, labels, year < 80, groups, (2500, 2500))


def loans(cache: Path) -> Records:
    """How a debtor lives, rented, mortgaged or owned: trained outside four states."""
    d = of_r("openintro/loans_full_schema", cache)
    labels, state = codes(d.pop("homeownership").astype(str)), d["state"]
    d = d.drop(columns=["emp_title", "state"])
    places = {"california": "CA", "texas": "TX", "new_york": "NY", "florida": "FL"}
    groups = {name: state == short for name, short in places.items()}
    groups |= {"rich": d["annual_income"] > 120_000, "poor": d["annual_income"] < 40_000}
    groups |= {"house_loans": d["loan_purpose"] == "home_improvement", "cards": d["loan_purpose"] == "credit_card"}
    groups |= {"unverified": d["verified_income"] == "Not Verified", "joint": d["application_type"] == "joint"}
    groups |= {"long": d["term"] == 60, "bad_grades": d["grade"].isin(["D", "E", "F", "G"])}
    return Records(d, labels, ~state.isin([*places.values()]), groups, (2000, 1500))


def jobs(cache: Path) -> Records:
    """How long a job on a computing cluster runs, four classes."""
    d = of_r("modeldata/hpc_data", cache)
    labels = codes(d.pop("class").astype(str))
    groups = {"weekend": d["day"].isin(["Sat", "Sun"]), "monday": d["day"] == "Mon", "night": d["hour"] < 8}
    groups |= {"evening": d["hour"] > 18, "large": d["compounds"] > 400, "small": d["compounds"] < 100}
    groups |= {"wide": d["input_fields"] > 2000, "pending": d["num_pending"] > 0, "iterated": d["iterations"] > 20}
    groups |= {f"protocol_{name.lower()}": d["protocol"] == name for name in "JO"}
    return Records(d, labels, None, groups, (1200, 1000))


def happiness(cache: Path) -> Records:
    """How happy somebody is, three classes, in the General Social Survey: trained before 2000."""
    d = of_r("wooldridge/happiness", cache)
    d = d[d["happy"].notna()]
    labels, year = codes(d["happy"].astype(str)), d["year"]
    told = ["workstat", "prestige", "divorce", "widowed", "educ", "babies", "preteen", "teens", "income", "region"]
    d = d[[*told, "attend", "tvhours", "black", "female", "unem10"]]
    groups = {f"y{each}": year == each for each in (2000, 2002, 2004, 2006)}
    groups |= {"divorced": d["divorce"] == "yes", "widowed": d["widowed"] == "yes", "women": d["female"] == 1}
    groups |= {"black": d["black"] == 1, "educated": d["educ"] >= 16, "viewers": d["tvhours"] >= 5}
    groups |= {"retired": d["workstat"] == "retired", "idle": d["workstat"].astype(str).str.contains("unempl")}
    return Records(d, labels, year < 2000, groups, (2000, 2000))


def credit(cache: Path) -> Records:
    """Whether somebody pays a credit back."""
    d = of_r("modeldata/credit_data", cache)
    labels = (d.pop("Status") == "bad").to_numpy(dtype=np.int64)
    groups = {"renters": d["Home"] == "rent", "owners": d["Home"] == "owner", "young": d["Age"] < 27}
    groups |= {"old": d["Age"] > 48, "freelance": d["Job"] == "freelance", "part_time": d["Job"] == "partime"}
    groups |= {"single": d["Marital"] == "single", "records": d["Records"] == "yes", "large": d["Amount"] > 1500}
    groups |= {"long": d["Time"] >= 60, "junior": d["Seniority"] < 2}
    return Records(d, labels, None, groups, (1200, 1000))


def developers(cache: Path) -> Records:
    """In which of five countries a developer lives, by a survey."""
    d = of_r("modeldata/stackoverflow", cache)
    labels = codes(d.pop("Country").astype(str))
    groups = {"remote": d["Remote"] == "Remote", "hobby": d["Hobby"] == 0, "open": d["OpenSource"] == 1}
    groups |= {"junior": d["YearsCodedJob"] < 3, "senior": d["YearsCodedJob"] > 15}
    groups |= {"large": d["CompanySizeNumber"] >= 5000, "small": d["CompanySizeNumber"] <= 10}
    groups |= {"web": d["Web_developer"] == 1, "desktop": d["Desktop_applications_developer"] == 1}
    groups |= {"data": d["Data_scientist"] == 1, "happy": d["CareerSatisfaction"] >= 9, "low_pay": d["Salary"] < 25_000}
    return Records(d, labels, None, groups, (1500, 1200))


FAMILIES = {
    each.__name__: each
    for each in (voters, abortion, crashes, stops, storms, churn, rodents, union, loans, jobs, happiness, credit)
} | {"developers": developers}
