"""The scripts that build families of logits: the layout they write, the logits of their models, their shifts."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import leadline as ll

pd = pytest.importorskip("pandas")
ensemble = pytest.importorskip("sklearn.ensemble")
FAMILIES = Path(__file__).parents[2] / "docs/studies/families"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FAMILIES))
    return importlib.import_module("tables")


def people(size: int, classes: int) -> Any:
    """Return rows with two numbers and a word, and classes that depend on both kinds."""
    rng = np.random.default_rng(0)
    word = rng.integers(2, size=size)
    frame = pd.DataFrame({"age": rng.normal(40, 10, size), "weeks": rng.normal(size=size), "sex": word})
    score = (frame["age"] - 40) / 10 + word + rng.normal(size=size) / 2
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return frame.assign(sex=np.where(word == 1, "f", "m")), labels.astype(np.int64)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_the_softmax_of_the_logits_is_what_the_model_says(tables: ModuleType, classes: int) -> None:
    frame, labels = people(400, classes)
    rows = tables.encoder().fit_transform(frame)
    for model in tables.models().values():
        model.fit(rows, labels)
        logits = tables.logits_of(model, rows)
        assert logits.shape == (400, classes)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        least = 0.001 if isinstance(model, ensemble.RandomForestClassifier) else 0.0
        expected = model.predict_proba(rows).clip(min=least)
        np.testing.assert_allclose(
            odds / odds.sum(axis=1, keepdims=True), expected / expected.sum(axis=1, keepdims=True), atol=1e-6
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_gets_a_folder_that_leadline_reads(tables: ModuleType, tmp_path: Path) -> None:
    frame, labels = people(300, 3)
    gaps = tables.holed((frame, labels), 0.3, np.random.default_rng(1))
    tables.write_models(tmp_path, "people", (frame, labels), {"source": (frame, labels), "target_gaps": gaps})
    assert {path.name for path in (tmp_path / "people").iterdir()} == set(tables.models())
    for model in tables.models():
        source, target = (ll.read_outputs(tmp_path / "people" / model / f"{n}.npz") for n in ("source", "target_gaps"))
        assert source.logits.dtype == np.float32
        np.testing.assert_array_equal(source.labels, labels)
        assert (source.logits.argmax(axis=1) == labels).mean() > 0.6
        assert (target.logits.argmax(axis=1) == labels).mean() < (source.logits.argmax(axis=1) == labels).mean()


def test_weights_of_classes_change_their_shares_and_nothing_else(tables: ModuleType) -> None:
    sample = people(20_000, 2)
    frame, labels = tables.label_shifted(sample, np.array([0.2, 0.8]), 2000, np.random.default_rng(1))
    assert len(set(frame.index)) == 2000
    np.testing.assert_array_equal(labels, sample[1][frame.index])
    # 0.8 at the first row, and a little less as rows of the class are used up; deviation 0.009
    assert labels.mean() == pytest.approx(0.785, abs=0.035)


def test_noise_moves_numbers_by_a_share_of_their_deviation(tables: ModuleType) -> None:
    sample = people(4000, 2)
    moved, _ = tables.noisy(sample, 0.5, np.random.default_rng(1))
    change = moved[["age", "weeks"]] - sample[0][["age", "weeks"]]
    np.testing.assert_allclose(change.std(), 0.5 * sample[0][["age", "weeks"]].std(), rtol=0.05)
    assert (moved["sex"] == sample[0]["sex"]).all()


def test_each_value_is_lost_with_the_chance_given(tables: ModuleType) -> None:
    lost, _ = tables.holed(people(4000, 2), 0.2, np.random.default_rng(1))
    np.testing.assert_allclose(lost.isna().mean(), 0.2, atol=0.03)


def test_parts_have_no_row_in_common(tables: ModuleType) -> None:
    found = tables.parts((50, 30), 100, np.random.default_rng(0))
    assert [len(part) for part in found] == [50, 30, 20]
    assert sorted(np.concatenate(found)) == list(range(100))
