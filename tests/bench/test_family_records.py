"""The script that makes families of tables of records: who is in which sample, and what is told of them."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from study_tables import RECORDS

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
FAMILIES = Path(__file__).parents[2] / "docs/studies/families"


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FAMILIES))
    return importlib.import_module("records")


def test_every_family_is_on_the_page_and_in_one_module(records: ModuleType) -> None:
    listed = [name for names in RECORDS.values() for name in names.split()]
    assert sorted(listed) == sorted(records.FAMILIES)
    for module, names in RECORDS.items():
        assert set(names.split()) == set(importlib.import_module(f"records_{module}").FAMILIES)


@pytest.mark.parametrize("years", [True, False])
def test_samples_have_no_row_in_common_with_training(records: ModuleType, years: bool) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"row": np.arange(6_000.0), "year": rng.integers(1990, 2000, 6_000)})
    labels = rng.integers(0, 2, 6_000)
    known = frame["year"] < 1995 if years else None
    groups = {"late": frame["year"] == 1999, "few": frame["row"] < 100}
    made = records.Records(frame, labels, known, groups, (500, 400))
    (train, _), samples = records.samples_of(made)
    used = set(train["row"]) | set(samples["source"][0]["row"])
    assert (len(train), len(samples["source"][1])) == (500, 400)
    assert len(used) == 900
    whole = {name: rows for name, (rows, _) in samples.items() if not name.endswith(("noise", "gaps"))}
    assert set(whole) == {"source", "target_clean", "target_late", "target_weighted1", "target_weighted2"}
    for name, rows in whole.items():
        assert name == "source" or not used & set(rows["row"])
        np.testing.assert_array_equal(samples[name][1], labels[rows["row"].astype(int)])
    assert (whole["target_late"]["year"] == 1999).all()
    if years:
        assert (train["year"] < 1995).all()
        assert (whole["target_clean"]["year"] < 1995).all()


def test_words_that_are_missing_are_words(records: ModuleType) -> None:
    told = records.as_words(pd.DataFrame({"word": ["a", None, "b"], "number": [1, 2, 3], "gap": [1.0, None, 2.0]}))
    assert list(told["word"]) == ["a", "missing", "b"]
    assert told["number"].dtype == told["gap"].dtype == np.float64
    assert told["gap"].isna().sum() == 1
