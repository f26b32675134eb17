"""A report from a model file: the model's own answer, what it keeps of its source, gates, and the same report again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from command_line import Run
from leadline import InputError, Outputs, read_outputs
from leadline.data.files import write_outputs
from leadline.report.building import build_report, kept_source
from leadline.report.page import html_page
from leadline.report.pictures import report_pictures
from leadline.results.gate import Gate

Make = Callable[..., Outputs]


@pytest.fixture
def served(folder: Path, run: Run) -> Path:
    """The current folder with a model of a table whose columns have names of their own."""
    source, target = read_outputs("source.npz"), read_outputs("traffic.parquet")
    names = ["ant", "bee", "cat", "dog", "eel"]
    for name, outputs in (("validation", source), ("week", target)):
        assert outputs.labels is not None
        columns: dict[str, Any] = {f"score_{names[k]}": outputs.logits[:, k] for k in range(5)}
        columns["species"] = np.array(names)[outputs.labels]
        columns["channel"] = np.array(["web", "app", "mail"])[np.arange(300) % 3]
        columns["day"] = np.datetime64("2026-01-05") + (np.arange(300) // 100) * np.timedelta64(7, "D")
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    words = ["fit", "validation.csv", "--logits", "score_*", "--label", "species", "--method", "ac"]
    assert run(*words, "-o", "served.leadline").code == 0
    return folder


def test_report_of_a_model_is_what_estimate_says(served: Path, run: Run) -> None:
    options = ["--by", "channel,day:week", "--format", "json"]
    data = run("report", "served.leadline", "week.csv", "--methods", "ac,doc", *options).data
    rows = run("estimate", "served.leadline", "week.csv", *options).data
    (target,) = data["targets"]
    # To the last digit but one: the same rows may lie in memory by rows or by columns, and are summed in that order.
    said, expected = ([found["accuracy"], *found["interval"]] for found in (target, rows[0]))
    np.testing.assert_allclose(said, expected, rtol=1e-14)
    assert {line["name"] for line in target["by_class"]} == {"ant", "bee", "cat", "dog", "eel"}
    segments = {line["name"]: line["accuracy"] for line in target["segments"]}
    assert segments == {", ".join(row["group"].values()): row["accuracy"] for row in rows[1:]}
    assert data["source"]["n_samples"] == data["source"]["n_at_hand"] == 300


def test_repeating_a_report_gives_the_same(served: Path, run: Run) -> None:
    words = ["served.leadline", "week.csv", "--methods", "ac,doc", "--by", "channel", "--level", "0.8"]
    first = run("report", *words, "--min-accuracy", "0.1", "--seed", "3", "--format", "json").data
    again = run(*shlex.split(first["settings"]["command"])[1:]).data
    assert {**again, "created": None} == {**first, "created": None}
    assert run("report", *words, "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "--output page.html" in page


@pytest.mark.parametrize(("least", "code"), [("0.99", 1), ("0.01", 0)])
def test_gate_decides_the_exit_code(least: str, code: int, served: Path, run: Run) -> None:
    words = ["served.leadline", "week.csv", "--min-accuracy", least]
    result = run("report", *words, "--methods", "ac", "-o", "page.html", "--force")
    assert result.code == code == run("estimate", *words).code
    assert ("is below the 0.99 asked for." in result.err) == bool(code)
    said = "Below the 99.0 % asked for." if code else "Meets the 1.0 % asked for with its whole interval."
    assert said in Path("page.html").read_text()


def test_gate_looks_at_every_segment(served: Path, run: Run) -> None:
    options = ["--by", "channel", "--format", "json"]
    (target,) = run("report", "served.leadline", "week.csv", "--methods", "ac", *options).data["targets"]
    lowest = min(line["accuracy"] for line in target["segments"])
    between = (lowest + target["accuracy"]) / 2
    result = run("report", "served.leadline", "week.csv", "--methods", "ac", *options, "--min-accuracy", between)
    assert result.code == 1
    assert json.loads(result.out)["targets"][0]["gate"].startswith("Meets")


def test_all_of_the_gate_judges_a_report_as_it_judges_estimates(served: Path, run: Run) -> None:
    words = ["served.leadline", "week.csv", "--by", "channel"]
    for options in (
        ["--max-drop", "0"],
        ["--max-drop", "1"],
        ["--min-accuracy", "0.5", "--gate-on", "lower-end", "--level", "0.9999"],
        ["--min-accuracy", "1", "--min-samples", "1000000"],
    ):
        told = run("report", *words, *options, "--methods", "ac", "--format", "json")
        asked = run("estimate", *words, *options)
        assert (told.code, told.err) == (asked.code, asked.err), options
    assert "3 of 4 estimates have fewer rows than --min-samples, and are not judged." in told.err
    assert told.data["targets"][0]["gate"] == "Below the 100.0 % asked for."


@pytest.mark.parametrize("limits", [{"min_accuracy": 1.5}, {"max_drop": -0.1}, {"max_drop": np.nan}])
def test_limits_that_are_no_fractions(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be a fraction from 0 to 1; got"):
        Gate(**limits)


def test_page_says_what_the_model_did_not_keep(make_outputs: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.estimators.sources.sample_size", lambda n_classes: 100)
    source, targets = make_outputs(n=400), {"t": make_outputs(seed=1)}
    model = ll.make("ac").fit(source)
    kept = kept_source(model)
    report = build_report(kept, targets, model=model, methods=["doc"])
    assert len(kept) == 100
    assert report.targets[0].estimate.accuracy == model.estimate(targets["t"]).accuracy
    page = html_page(report, report_pictures(report, kept, targets))
    assert "Of these, the model keeps 100." in page
    assert "400 labelled samples" in page
    whole = build_report(source, targets, model=model, methods=["doc"])
    assert "the model keeps" not in html_page(whole, [])
    assert whole.comparison.accuracy("doc", "t") == ll.make("doc").fit(source).estimate(targets["t"]).accuracy


def test_source_of_a_model_can_be_given(served: Path, run: Run) -> None:
    words = ["report", "served.leadline", "week.csv", "--methods", "doc", "--format", "json"]
    with_source = run(*words, "--source", "validation.csv").data
    assert with_source["source"]["name"] == "validation"
    expected = ll.make("doc").fit(read_outputs("source.npz")).estimate(read_outputs("traffic.parquet").logits)
    found = {row["method"]: row["accuracy"] for row in with_source["targets"][0]["methods"]}
    assert found["doc"] == pytest.approx(expected.accuracy, abs=1e-6)
    assert "source must be what the model was fitted on, 300 samples" in run(*words, "--source", "week.csv").error
    wrong = run("report", "source.npz", "plain.npz", "--source", "source.npz", "--format", "json")
    assert "--source is that of a MODEL" in wrong.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "doc"}, "method must be that of the model, ac; got 'doc'."),
        ({"model": ll.make("ac")}, "model must be fitted"),
    ],
)
def test_wrong_input(options: dict[str, Any], message: str, make_outputs: Make) -> None:
    source = make_outputs()
    given: dict[str, Any] = {"model": ll.make("ac").fit(source), "methods": ["ac"]} | options
    with pytest.raises(InputError, match=message):
        build_report(source, {"t": source}, **given)


def test_wrong_gate_is_called_by_its_flag(folder: Path, run: Run) -> None:
    write_outputs(Outputs(read_outputs("plain.npz").logits), "again.npz")
    result = run("report", "source.npz", "again.npz", "--format", "json", "--min-accuracy", "85")
    assert "--min-accuracy must be a fraction from 0 to 1; got 85." in result.error
