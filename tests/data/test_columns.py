"""What people really have: probabilities, scores, names, their own columns; said once, kept in the model."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline as ll
from command_line import Run
from leadline.data.columns import Columns, named_labels
from leadline.numeric import softmax

Maker = Callable[..., ll.Outputs]
NAMES = ("cat", "dog", "owl")


def table(outputs: ll.Outputs) -> dict[str, Any]:
    """Return outputs as people have them: probabilities with names, the label as a name, a segment, a time."""
    assert outputs.labels is not None
    p = softmax(outputs.logits.astype(np.float64))
    columns: dict[str, Any] = {f"proba_{name}": p[:, k] for k, name in enumerate(NAMES)}
    columns["species"] = [NAMES[k] for k in outputs.labels]
    columns["country"] = ["de", "fr"] * (len(outputs) // 2)
    return columns


def write(path: Path, columns: dict[str, Any]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
        return
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


# ------------------------------------------------------------------------------------------- probabilities and scores
@pytest.mark.parametrize("method", ["ac", "doc", "im", "atc-mc", "atc-ne", "cbpe", "cot", "auto"])
def test_softmax_methods_do_with_probabilities_what_they_do_with_logits(method: str, make_outputs: Maker) -> None:
    source, target = make_outputs(500, 3), make_outputs(300, 3, seed=1)
    expected = ll.make(method).fit(source).estimate(target)
    made = [
        ll.Outputs.from_probabilities(softmax(part.logits.astype(np.float64)), part.labels) for part in (source, target)
    ]
    found = ll.make(method).fit(made[0]).estimate(made[1])
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=2e-3)


def test_scores_are_probabilities_of_the_second_class(rng: np.random.Generator) -> None:
    scores = rng.random(200)
    labels = rng.random(200) < scores
    one = ll.Outputs.from_scores(scores, labels, classes=["ham", "spam"])
    two = ll.Outputs.from_probabilities(np.stack([1 - scores, scores], 1), labels.astype(int))
    np.testing.assert_array_equal(one.logits, two.logits)
    assert one.accuracy == two.accuracy == np.mean((scores > 0.5) == labels)
    assert one.classes == ("ham", "spam")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[90.0, 10.0]], "must be from 0 to 1; got 90 at row 0. Divide percentages by 100"),
        ([[0.5, 0.5], [-1.0, 2.0]], "got -1 at row 1. Negative values are logits"),
        ([[0.5, 0.4]], "must have a sum of 1 in each row; row 0 has 0.9"),
        ([[np.nan, 1.0]], "got nan at row 0. Remove or repair"),
        ([0.2, 0.3], "One score for each sample of a binary model is Outputs.from_scores"),
        (np.empty((0, 3)), "at least one row"),
    ],
)
def test_wrong_probabilities(values: Any, message: str) -> None:
    with pytest.raises(ll.InputError) as caught:
        ll.Outputs.from_probabilities(values)
    assert message in str(caught.value)


def test_wrong_scores() -> None:
    with pytest.raises(ll.InputError, match=r"scores must be from 0 to 1; got 55 at row 1\. Divide percentages"):
        ll.Outputs.from_scores([0.5, 55.0])
    with pytest.raises(ll.InputError, match=r"One column for each class is Outputs\.from_probabilities"):
        ll.Outputs.from_scores([[0.5, 0.5]])


def test_saturated_rows_are_counted() -> None:
    outputs = ll.Outputs.from_probabilities([[0.0, 1.0], [0.4, 0.6], [1.0, 0.0]])
    assert outputs.n_saturated == 2
    assert np.isfinite(outputs.logits).all()
    assert outputs.logits.argmax(1).tolist() == [1, 1, 0]


# ------------------------------------------------------------------------------------------------------------ mapping
def test_columns_are_found_and_name_the_classes() -> None:
    mapping = Columns("probabilities", "p_*_now", label="y")
    names = ["id", "p_b_now", "y", "p_a_now", "p_now"]
    assert mapping.find(names) == ["p_b_now", "p_a_now"]
    assert mapping.classes(mapping.find(names)) == ("b", "a")
    assert mapping.label_in(names) == "y"
    numbered = Columns("logits", "l*")
    assert numbered.find(["l10", "l2", "l1"]) == ["l1", "l2", "l10"]
    assert Columns("logits", "l*").classes(["l0", "l1"]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("probabilities",), "values must name the columns of probabilities"),
        (("score", "p_*"), "values must be one column; got 'p_*'"),
        (("logits", "a*b*"), r"values must have one \* at most"),
        (("logits", "a*", None, "x"), "positive is the class of a score"),
        (("odds", "a*"), "kind must be"),
    ],
)
def test_wrong_mappings(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ll.InputError, match=message.replace("p_*", r"p_\*")):
        Columns(*arguments)


def test_a_missing_column_is_told_what_there_is() -> None:
    with pytest.raises(ll.InputError, match=r"column 'p' of score is not there\. The columns are: 'a', 'b'"):
        Columns("score", "p").find(["a", "b"])
    with pytest.raises(ll.InputError, match=r"must be two or more; got 1\. The columns are: 'q_a', 'x'"):
        Columns("probabilities", "q_*").find(["q_a", "x"])


def test_labels_that_are_names_of_columns_mean_these() -> None:
    assert named_labels(np.array([7, 3]), ("3", "7")).tolist() == ["7", "3"]
    assert named_labels(np.array([0, 1]), ("3", "7")).tolist() == [0, 1]
    assert named_labels(np.array([True, False]), ("True", "False")).tolist() == ["True", "False"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_model_keeps_the_mapping(suffix: str, tmp_path: Path, make_outputs: Maker) -> None:
    source, target = make_outputs(400, 3), make_outputs(200, 3, seed=1)
    for name, outputs in (("source", source), ("target", target)):
        write(tmp_path / f"{name}{suffix}", table(outputs))
    mapping = Columns("probabilities", "proba_*", label="species")
    model = ll.Auto().fit(ll.read_outputs(tmp_path / f"source{suffix}", columns=mapping))
    assert model.classes_ == NAMES
    model.save(tmp_path / "m.leadline")
    loaded = ll.load(tmp_path / "m.leadline")
    assert loaded.columns_ == mapping
    read = ll.read_outputs(tmp_path / f"target{suffix}", columns=loaded.columns_)
    assert read.accuracy == target.accuracy
    assert set(read.metadata) == {"country"}
    if suffix == ".parquet":
        streamed = ll.estimate_files(loaded, str(tmp_path / f"target{suffix}"), by=["country"])
        assert streamed.overall.truth == target.accuracy
        np.testing.assert_allclose(streamed.overall.estimate.accuracy, loaded.estimate(read).accuracy, atol=1e-9)


# -------------------------------------------------------------------------------------------------------- the command
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_command_with_names_and_probabilities(suffix: str, tmp_path: Path, run: Run, make_outputs: Maker) -> None:
    source, target = make_outputs(400, 3), make_outputs(200, 3, seed=1)
    for name, outputs in (("source", source), ("target", target)):
        write(tmp_path / f"{name}{suffix}", table(outputs))
    model = tmp_path / "m.leadline"
    words = ("--probabilities", "proba_*", "--label", "species")
    assert run("fit", tmp_path / f"source{suffix}", *words, "-o", model, "--method", "ac").code == 0
    result = run("estimate", model, tmp_path / f"target{suffix}", "--by", "country", "--format", "json")
    assert result.code == 0
    assert result.data[0]["truth"] == target.accuracy
    assert [entry["class"] for entry in result.data[0]["by_class"]] == list(NAMES)
    compared = run(
        "compare",
        tmp_path / f"source{suffix}",
        tmp_path / f"target{suffix}",
        *words,
        "--methods",
        "ac",
        "--format",
        "json",
    )
    assert compared.data["rows"][0]["accuracy"] == pytest.approx(result.data[0]["accuracy"])
    renamed = {("kind" if name == "species" else name): column for name, column in table(target).items()}
    write(tmp_path / f"renamed{suffix}", renamed)
    again = run("estimate", model, tmp_path / f"renamed{suffix}", "--label", "kind", "--format", "json")
    assert again.data[0]["truth"] == target.accuracy
    lacking = {name: column for name, column in table(target).items() if name != "proba_owl"}
    write(tmp_path / f"lacking{suffix}", lacking)
    error = run("estimate", model, tmp_path / f"lacking{suffix}").error
    assert "classes must be" in error


def test_command_with_a_score(tmp_path: Path, run: Run, rng: np.random.Generator) -> None:
    def log(n: int) -> tuple[dict[str, Any], float]:
        scores = rng.random(n)
        fraud = rng.random(n) < scores
        return {"p_fraud": scores, "y": np.where(fraud, "fraud", "fine").tolist()}, float(
            np.mean((scores > 0.5) == fraud)
        )

    source, _ = log(500)
    target, truth = log(300)
    write(tmp_path / "source.parquet", source)
    write(tmp_path / "target.parquet", target)
    model = tmp_path / "m.leadline"
    words = ("--score", "p_fraud", "--positive", "fraud", "--label", "y")
    assert run("fit", tmp_path / "source.parquet", *words, "-o", model).code == 0
    assert ll.load(model).classes_ == ("fine", "fraud")
    for engine in ([], ["--engine", "arrow"]):
        found = run("estimate", model, tmp_path / "target.parquet", *engine, "--format", "json").data[0]
        assert found["truth"] == truth
        assert found["interval"][0] < truth < found["interval"][1]
    wrong = run("fit", tmp_path / "source.parquet", "--score", "p_frau", "-o", tmp_path / "n.leadline").error
    assert "column 'p_frau' of score is not there. The columns are: 'p_fraud', 'y'" in wrong
    both = run("fit", tmp_path / "source.parquet", "--score", "p_fraud", "--logits", "l*", "-o", model, "--force").error
    assert both == "outputs must be of one kind; got --logits and --score."
    alone = run("fit", tmp_path / "source.parquet", "--positive", "fraud", "-o", model, "--force").error
    assert "give --score with it" in alone


def test_predictions_of_hugging_face_in_an_archive(tmp_path: Path, make_outputs: Maker) -> None:
    outputs = make_outputs(50, 3)
    assert outputs.labels is not None
    np.savez(tmp_path / "eval.npz", predictions=outputs.logits, label_ids=outputs.labels)
    with pytest.raises(ll.InputError, match="has no logits"):
        ll.read_outputs(tmp_path / "eval.npz")
    read = ll.read_outputs(tmp_path / "eval.npz", columns=Columns("logits", "predictions", label="label_ids"))
    assert read.accuracy == outputs.accuracy


def test_command_tells_of_saturated_rows(tmp_path: Path, run: Run) -> None:
    columns = {"p_a": [0.0, 1.0, 0.6, 0.4] * 20, "p_b": [1.0, 0.0, 0.4, 0.6] * 20, "label": ["b", "a", "a", "a"] * 20}
    write(tmp_path / "s.csv", columns)
    result = run("fit", tmp_path / "s.csv", "--probabilities", "p_*", "--method", "ac", "-o", tmp_path / "m.leadline")
    assert "40 of 80 rows have a probability of exactly 0 or 1" in result.err


def test_a_report_is_repeated_with_its_columns(tmp_path: Path, run: Run, make_outputs: Maker) -> None:
    files = [tmp_path / "source.csv", tmp_path / "target.csv"]
    for number, path in enumerate(files):
        write(path, table(make_outputs(200, 3, seed=number)))
    words = ("--probabilities", "proba_*", "--label", "species", "--methods", "auto,ac", "--format", "json")
    command = run("report", *files, *words).data["settings"]["command"]
    assert "--probabilities 'proba_*'" in command
    assert "--label species" in command
