"""``leadline estimate``: the library's answer, formats that agree, segments, the gate."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import leadline
from command_line import Run
from leadline import Outputs, read_outputs

Maker = Callable[..., Outputs]


def test_estimate_json_is_the_library_answer(folder: Path, run: Run) -> None:
    result = run("estimate", "ac.leadline", "plain.npz", "labelled.npz", "--format", "json")
    assert (result.code, result.err) == (0, "")
    model = leadline.load("ac.leadline")
    assert [row["target"] for row in result.data] == ["plain", "labelled"]
    for row in result.data:
        outputs = read_outputs(f"{row['target']}.npz")
        expected = model.estimate(outputs.logits)
        assert row["group"] is None
        assert (row["accuracy"], tuple(row["interval"])) == (expected.accuracy, expected.interval)
        assert (row["n_samples"], row["method"]) == (300, "ac")
        assert row["truth"] == outputs.accuracy
        assert row["error"] == (None if outputs.accuracy is None else expected.accuracy - outputs.accuracy)
        assert row["diagnostics"]["interval_covers"]


def test_formats_agree(folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "traffic.parquet", "plain.npz", "--format")
    words_by = (*words[:3], "--by", "channel", "--format")
    for command in (words, words_by):
        data = run(*command, "json").data
        table = list(csv.DictReader(io.StringIO(run(*command, "csv").out)))
        lines = [line for line in run(*command, "md").out.splitlines() if line.startswith("| ")]
        header, *markdown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        _, text = run(*command, "table").out.split("─\n")  # the rule below the titles
        body, _ = text.split("\n\n", maxsplit=1)
        for row, flat, cells, line in zip(data, table, markdown, body.splitlines(), strict=True):
            assert float(flat["accuracy"]) == row["accuracy"]
            assert [float(flat["interval_low"]), float(flat["interval_high"])] == row["interval"]
            assert (flat["target"], flat.get("channel", "")) == (row["target"], (row["group"] or {}).get("channel", ""))
            assert flat["truth"] == ("" if row["truth"] is None else repr(row["truth"]))
            shown = dict(zip(header, cells, strict=True))
            assert (shown["target"], shown.get("channel", "(all)")) == (
                row["target"],
                (row["group"] or {}).get("channel", "(all)"),
            )
            assert shown["estimated accuracy"] == f"{100 * row['accuracy']:.1f} %"
            assert shown["90% interval"] == "{:.1f} to {:.1f} %".format(*(100 * end for end in row["interval"]))
            assert shown["samples"] == str(row["n_samples"])
            assert shown["true"] == ("" if row["truth"] is None else f"{100 * row['truth']:.1f} %")
            assert shown["error"] == ("" if row["error"] is None else f"{100 * row['error']:+.1f}")
            # The line of the terminal has the same words and a bar of blocks besides.
            assert re.sub("[\N{FULL BLOCK}-\N{LEFT ONE EIGHTH BLOCK}]", "", line).split() == " ".join(cells).split()


def test_segments_and_total(folder: Path, run: Run) -> None:
    rows = run("estimate", "ac.leadline", "traffic.parquet", "--by", "channel", "--format", "json").data
    assert [row["group"] for row in rows] == [None, *({"channel": name} for name in ("app", "mail", "web"))]
    assert [row["n_samples"] for row in rows] == [300, 100, 100, 100]
    outputs, model = read_outputs("traffic.parquet"), leadline.load("ac.leadline")
    of_mail = outputs.metadata["channel"] == "mail"
    assert rows[2]["accuracy"] == model.estimate(outputs.logits[of_mail]).accuracy
    assert rows[2]["truth"] == np.mean(outputs.logits[of_mail].argmax(1) == np.asarray(outputs.labels)[of_mail])
    # The mean confidence of the whole is the mean of equally large segments.
    np.testing.assert_allclose(np.mean([row["accuracy"] for row in rows[1:]]), rows[0]["accuracy"], atol=1e-12)


@pytest.mark.parametrize("engine", [[], ["--engine", "arrow"]])
def test_intervals_that_hold_together_are_wider(engine: list[str], folder: Path, run: Run) -> None:
    words = ["estimate", "ac.leadline", "traffic.parquet", "--by", "channel", *engine]
    alone = run(*words, "--format", "json").data
    together = run(*words, "--together", "--format", "json").data
    assert together[0]["interval"] == alone[0]["interval"]  # of all rows there is one
    for one, other in zip(alone[1:], together[1:], strict=True):
        assert other["accuracy"] == one["accuracy"]
        assert other["confidence_level"] == pytest.approx(0.9 ** (1 / 3))
        assert other["interval"][0] < one["interval"][0] < one["interval"][1] < other["interval"][1]
    assert "hold together at 90%, each alone at 96.55%" in run(*words, "--together").out


def test_rows_without_a_segment_are_not_taken_for_the_total(folder: Path, run: Run) -> None:
    Path("gaps.csv").write_text("logit_0,logit_1,logit_2,logit_3,logit_4,day\n" + "1,2,3,4,5,1\n5,4,3,2,1,\n" * 3)
    rows = run("estimate", "ac.leadline", "gaps.csv", "--by", "day", "--format", "json").data
    assert [row["n_samples"] for row in rows] == [6, 3, 3]
    assert rows[0]["group"] is None
    assert rows[2]["group"] == {"day": None}


def test_unknown_segment_column(folder: Path, run: Run) -> None:
    error = run("estimate", "ac.leadline", "traffic.parquet", "--by", "country").error
    assert error == "target traffic: column 'country' is not in these outputs; metadata columns: channel."


@pytest.mark.parametrize(("offset", "code"), [(-1e-9, 0), (0.0, 0), (1e-9, 1)])
def test_gate_is_exact(offset: float, code: int, folder: Path, run: Run) -> None:
    accuracy = run("estimate", "ac.leadline", "plain.npz", "--format", "json").data[0]["accuracy"]
    result = run("estimate", "ac.leadline", "plain.npz", "--min-accuracy", repr(accuracy + offset), "--format", "json")
    assert result.code == code
    assert len(result.data) == 1
    assert bool(result.err) == bool(code)


def test_gate_checks_every_printed_row(folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "traffic.parquet", "--format", "json")
    rows = run(*words, "--by", "channel").data
    whole, lowest = rows[0]["accuracy"], min(row["accuracy"] for row in rows)
    between = repr((whole + lowest) / 2)
    assert run(*words, "--min-accuracy", between).code == 0
    failed = run(*words, "--by", "channel", "--min-accuracy", between)
    assert failed.code == 1
    assert "estimates not good enough:\n" in failed.err
    assert f"below the {float(between):g} asked for.\n" in failed.err
    assert failed.err.count("traffic, channel ") == sum(row["accuracy"] < float(between) for row in rows)
    assert [row["accuracy"] for row in failed.data] == [row["accuracy"] for row in rows]


def test_gate_on_the_lower_end(folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "plain.npz", "--format", "json")
    row = run(*words).data[0]
    between = repr((row["accuracy"] + row["interval"][0]) / 2)
    assert run(*words, "--min-accuracy", between).code == 0
    failed = run(*words, "--min-accuracy", between, "--gate-on", "lower-end")
    assert failed.code == 1
    assert f"plain: 90% interval's lower end {row['interval'][0]:.4f} is below the" in failed.err


@pytest.mark.parametrize(("offset", "code"), [(1e-9, 0), (-1e-9, 1)])
def test_gate_on_the_drop_from_the_source(offset: float, code: int, folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "labelled.npz", "--format", "json")
    row = run(*words).data[0]
    drop = row["diagnostics"]["source_accuracy"] - row["accuracy"]
    assert drop > 0.02
    result = run(*words, "--max-drop", repr(drop + offset), "--min-accuracy", "0.01")
    assert result.code == code
    assert (f"is {drop:.4f} below the source's" in result.err) == bool(code)


def test_gate_spares_segments_of_few_rows(folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "traffic.parquet", "--by", "channel", "--format", "json", "--min-accuracy", "1")
    result = run(*words, "--min-samples", "101")
    assert result.code == 1  # all rows together are always judged
    assert "3 of 4 estimates have fewer rows than --min-samples" in result.err
    assert "1 of 4 estimates not good enough:\nleadline: traffic: estimated accuracy" in result.err
    assert "4 of 4 estimates not good enough" in run(*words, "--min-samples", "100").err


def test_quiet_silences_the_gate_but_not_errors(folder: Path, run: Run) -> None:
    result = run("estimate", "ac.leadline", "plain.npz", "--min-accuracy", 1, "--quiet")
    assert (result.code, result.err) == (1, "")
    assert "no.npz" in run("estimate", "ac.leadline", "no.npz", "--quiet").error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--min-accuracy", "85"], "--min-accuracy must be a fraction from 0 to 1; got 85."),
        (["--min-accuracy", "nan"], "--min-accuracy must be a fraction from 0 to 1; got nan."),
        (["--max-drop", "5"], "--max-drop must be a fraction from 0 to 1; got 5."),
        (["--min-accuracy", "0.5", "--gate-on", "upper"], "--gate-on must be one of estimate, lower-end; got 'upper'."),
        (["--gate-on", "lower-end"], "--gate-on and --min-samples are about --min-accuracy and --max-drop"),
        (["--min-accuracy", "high"], "Invalid value for '--min-accuracy'"),
        (["--level", "1"], "--level must be a fraction between 0 and 1; got 1."),
        (["--together"], "--together is about the segments of --by; give --by with it."),
        (["--format", "xml"], "must be one of table, json, csv, md; got 'xml'."),
        (["--colour"], "No such option: --colour"),
        (["no.npz"], "file no.npz does not exist."),
        (["no_*.npz"], "no file matches 'no_*.npz'."),
        (["."], ". is a folder; give the files in it"),
    ],
)
def test_wrong_estimate_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("estimate", "ac.leadline", "plain.npz", *words).error


def test_usage_errors_are_one_line(run: Run) -> None:
    assert "Missing" in run("estimate").error
    assert "No such command" in run("divine").error


def test_level_reaches_the_interval(folder: Path, run: Run) -> None:
    wide, narrow = (
        run("estimate", "ac.leadline", "plain.npz", "--level", level, "--format", "json").data[0]
        for level in (0.99, 0.5)
    )
    assert wide["interval"][0] < narrow["interval"][0] < narrow["interval"][1] < wide["interval"][1]
    assert run("estimate", "ac.leadline", "plain.npz", "--level", "0.9999999999999999").code == 0
    assert "99% interval" in run("estimate", "ac.leadline", "plain.npz", "--level", 0.99).out


def test_patterns_are_expanded_and_files_count_once(folder: Path, run: Run) -> None:
    rows = run("estimate", "ac.leadline", "*l*.npz", "plain.npz", "--format", "json").data
    assert [row["target"] for row in rows] == ["labelled", "plain"]


def test_a_file_whose_name_looks_like_a_pattern(folder: Path, run: Run) -> None:
    Path("plain.npz").rename("week[1].npz")
    rows = run("estimate", "ac.leadline", "week[1].npz", "--format", "json").data
    assert [row["target"] for row in rows] == ["week[1]"]
    assert "week[1]" in run("estimate", "ac.leadline", "week[1].npz").out


def test_target_names_are_unique(folder: Path, run: Run, make_outputs: Maker) -> None:
    np.save("plain.npy", make_outputs(seed=9).logits)
    rows = run("estimate", "ac.leadline", "plain.npz", "plain.npy", "labelled.npz", "--format", "json").data
    assert [row["target"] for row in rows] == ["plain.npz", "plain.npy", "labelled"]


def test_table_says_what_the_interval_covers(folder: Path, run: Run) -> None:
    out = " ".join(run("estimate", "ac.leadline", "plain.npz").out.split())
    assert "The 90% interval covers sampling error, and the error of the model under shift" in out
    assert "true" not in out.split("The 90%")[0]
    assert "true" in run("estimate", "ac.leadline", "labelled.npz").out


# ------------------------------------------------------------------------------------------------------ --output
def test_results_in_files(folder: Path, run: Run) -> None:
    words = ("estimate", "ac.leadline", "traffic.parquet", "plain.npz")
    expected = run(*words, "--format", "json").data
    for suffix in ("csv", "json", "md", "txt", "parquet"):
        result = run(*words, "-o", f"found.{suffix}")
        assert (result.code, result.out, result.err) == (0, "", "")
    numbers = [row["accuracy"] for row in expected]
    assert [row["accuracy"] for row in json.loads(Path("found.json").read_text())] == numbers
    with Path("found.csv").open() as stream:
        assert [float(row["accuracy"]) for row in csv.DictReader(stream)] == numbers
    table = pq.read_table("found.parquet")
    assert table["accuracy"].to_pylist() == numbers
    assert table.schema.field("error").type == "double"
    for name in ("found.md", "found.txt"):
        assert f"{100 * numbers[0]:.1f} %" in Path(name).read_text()
    ids = {row["model_id"] for row in expected}
    assert ids == {leadline.load("ac.leadline").model_id} == set(table["model_id"].to_pylist())


def test_a_file_of_results_is_not_overwritten_unasked(folder: Path, run: Run) -> None:
    words = ("compare", "source.npz", "plain.npz", "--methods", "ac", "-o")
    Path("kept.csv").write_text("mine")
    assert "file kept.csv exists; use --force to overwrite it" in run(*words, "kept.csv").error
    assert Path("kept.csv").read_text() == "mine"
    assert run(*words, "kept.csv", "--force").code == 0
    assert Path("kept.csv").read_text().startswith("method,target,")
    assert "a result is kept in .csv, .json, .md, .txt, .parquet files" in run(*words, "found.xlsx").error
    assert run(*words, "found.log", "--format", "json").code == 0
    assert json.loads(Path("found.log").read_text())["rows"][0]["method"] == "ac"
    assert "must not replace one of its inputs" in run(*words, "plain.npz", "--format", "json", "--force").error


def test_the_gate_holds_for_files_too(folder: Path, run: Run) -> None:
    result = run("estimate", "ac.leadline", "plain.npz", "--min-accuracy", "0.999", "-o", "found.csv")
    assert result.code == 1
    assert Path("found.csv").exists()
