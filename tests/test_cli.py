"""The command: results, formats, exit codes, and one clear line for every kind of wrong input."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.main import get_command

import leadline
from leadline import Outputs, read_outputs, write_outputs
from leadline.cli import COMMANDS, build_app, main
from leadline.render import RENDERERS, Cell, Document, Table, bar, render

Maker = Callable[..., Outputs]
SEGMENTS = np.array(["web", "app", "mail"])


@dataclass(frozen=True)
class Result:
    """What a call of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON on standard output, and nothing else there."""
        return json.loads(self.out, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))

    @property
    def error(self) -> str:
        """The one line of a failed call."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("leadline: error: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("leadline: error: ").rstrip("\n")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, make_outputs: Maker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a source, two targets, a target with segments, and a model of `ac`."""
    monkeypatch.chdir(tmp_path)
    source = make_outputs(seed=0)
    assert source.labels is not None
    write_outputs(source, "source.npz")
    write_outputs(Outputs(make_outputs(seed=1).logits), "plain.npz")
    write_outputs(make_outputs(seed=2, signal=1.0), "labelled.npz")
    segments = SEGMENTS[np.arange(300) % 3]
    write_outputs(make_outputs(seed=3, metadata={"channel": segments}), "traffic.parquet")
    leadline.make("ac").fit(source.logits, source.labels).save("ac.leadline")
    return tmp_path


# ---------------------------------------------------------------------------------------------- documentation
def test_every_command_and_option_is_documented() -> None:
    root: Any = get_command(build_app())
    assert set(root.commands) == set(COMMANDS)
    for name, command in root.commands.items():
        assert command.help, f"{name} has no help"
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name} has no help"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_prints(name: str, run: Run) -> None:
    result = run(name, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"leadline {name}" in result.out


def test_no_command_prints_help(run: Run) -> None:
    result = run()
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)


def test_version(run: Run) -> None:
    assert run("--version") == Result(0, f"leadline {leadline.__version__}\n", "")


def test_a_group_of_commands_is_one_line(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    group = typer.Typer()

    @group.command("hello")
    def hello() -> None:
        """Say hello."""
        typer.echo("hello")

    @group.command("bye")
    def bye() -> None:
        """Say bye."""

    monkeypatch.setitem(COMMANDS, "more", group)
    assert run("more", "hello").out == "hello\n"


# -------------------------------------------------------------------------------------------------------- fit
def test_fit_writes_a_model_that_estimates_the_same(folder: Path, run: Run) -> None:
    result = run("fit", "source.npz", "--method", "doc", "-o", "doc.leadline", "--format", "json")
    assert (result.code, result.err) == (0, "")
    source, target = read_outputs("source.npz"), read_outputs("plain.npz")
    expected = leadline.make("doc").fit(source.logits, source.labels)
    assert (
        leadline.load("doc.leadline").estimate(target.logits).accuracy
        == expected.estimate(target.logits).accuracy
    )
    assert result.data["source_accuracy"] == source.accuracy
    assert (result.data["method"], result.data["n_samples"], result.data["n_classes"]) == ("doc", 300, 5)


def test_fit_passes_options_in_their_types(folder: Path, run: Run) -> None:
    words = ["n_anchors=7", "max_epochs=1", "learn=peaks,widths", "rectify=none", "alpha=0.5", "epsilon=1e-3"]
    options = [word for pair in words for word in ("--option", pair)]
    result = run(
        "fit",
        "source.npz",
        "--method",
        "alsa-e",
        "-o",
        "m.leadline",
        "--seed",
        3,
        *options,
        "--format",
        "json",
    )
    assert result.err == ""
    stored = leadline.load("m.leadline").get_params()
    expected = {"n_anchors": 7, "max_epochs": 1, "rectify": None, "alpha": 0.5, "epsilon": 1e-3, "seed": 3}
    assert {name: stored[name] for name in expected} == expected
    assert list(stored["learn"]) == ["peaks", "widths"]
    assert result.data["options"]["influence"] == "exponential"


def test_seed_is_ignored_by_methods_without_one(folder: Path, run: Run) -> None:
    assert run("fit", "source.npz", "--method", "ac", "-o", "again.leadline", "--seed", 1).code == 0
    assert leadline.load("again.leadline").get_params() == leadline.load("ac.leadline").get_params()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--option", "n_anchors=many"], "option n_anchors must be an integer or none; got 'many'."),
        (["--option", "n_anchors"], "--option must be key=value; got 'n_anchors'."),
        (["--option", "colour=red"], "method alsa-g has no option 'colour'; it has influence, n_anchors"),
        (["--option", "rectify=maybe"], "option rectify must be one of total, single or none; got 'maybe'."),
        (["--option", "alpha=nan"], "option alpha must be a number or none; got 'nan'."),
        (["--option", "alpha=2"], "alpha must be between 0 and 1; got 2.0."),
        (["--option", "learn=all"], "learn must be a collection of anchors, peaks, widths; got ['all']."),
        (["--option", "seed=1", "--seed", "1"], "the seed must be given once"),
        (["--option", "alpha=.5", "--option", "alpha=.6"], "--option alpha must be given once"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--method", "magic"], "method must be one of alsa-g, alsa-e"),
        (["--method", "ac", "--option", "temperature_scaling=2"], "must be true or false; got '2'."),
    ],
)
def test_wrong_fit_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("fit", "source.npz", "-o", "new.leadline", *words).error
    assert not Path("new.leadline").exists()


def test_fit_needs_labels(folder: Path, run: Run) -> None:
    assert (
        run("fit", "plain.npz", "-o", "new.leadline").error
        == "plain.npz must have labels to fit on; got logits only."
    )
    assert not Path("new.leadline").exists()


def test_fit_overwrites_only_by_force(folder: Path, run: Run) -> None:
    before = Path("ac.leadline").read_bytes()
    error = run("fit", "source.npz", "--method", "doc", "-o", "ac.leadline").error
    assert error == "file ac.leadline exists; use --force to overwrite it."
    assert Path("ac.leadline").read_bytes() == before
    assert run("fit", "source.npz", "--method", "doc", "-o", "ac.leadline", "--force").code == 0
    assert leadline.load("ac.leadline").method == "doc"


def test_fit_never_replaces_its_source(folder: Path, run: Run) -> None:
    before = Path("source.npz").read_bytes()
    assert (
        "must not replace its own source" in run("fit", "source.npz", "-o", "./source.npz", "--force").error
    )
    assert Path("source.npz").read_bytes() == before


def test_fit_into_a_missing_folder(folder: Path, run: Run) -> None:
    assert run("fit", "source.npz", "-o", "no/m.leadline").error == "folder no does not exist; make it first."


def test_class_names(folder: Path, run: Run) -> None:
    Path("named.csv").write_text("logit_0,logit_1,label\n2,1,dog\n0,3,cat\n1,2,dog\n5,1,dog\n")
    assert "classes" in run("fit", "named.csv", "--method", "ac", "-o", "named.leadline").error
    words = ["fit", "named.csv", "--method", "ac", "-o", "named.leadline", "--format", "json", "--classes"]
    assert run(*words, "dog,cat").data["source_accuracy"] == 0.75
    assert run(*words, "cat,dog", "--force").data["source_accuracy"] == 0.25
    assert "--classes must be names separated by commas" in run(*words, "dog,,cat", "--force").error


# --------------------------------------------------------------------------------------------------- estimate
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
        lines = run(*command, "md").out.splitlines()
        markdown = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")
        ]
        text = run(*command, "table").out
        assert len(data) == len(table) == len(markdown) - 1
        for row, flat, cells in zip(data, table, markdown[1:], strict=True):
            assert float(flat["accuracy"]) == row["accuracy"]
            assert [float(flat["interval_low"]), float(flat["interval_high"])] == row["interval"]
            assert (flat["target"], flat["group"]) == (row["target"], row["group"] or "")
            assert flat["truth"] == ("" if row["truth"] is None else repr(row["truth"]))
            assert f"{100 * row['accuracy']:.1f} %" in cells
            line = next(line for line in text.splitlines() if line.split()[:1] == [row["target"]])
            assert line
            assert f"{100 * row['accuracy']:.1f} %" in text


def test_segments_and_total(folder: Path, run: Run) -> None:
    rows = run("estimate", "ac.leadline", "traffic.parquet", "--by", "channel", "--format", "json").data
    assert [row["group"] for row in rows] == [None, "app", "mail", "web"]
    assert [row["n_samples"] for row in rows] == [300, 100, 100, 100]
    outputs, model = read_outputs("traffic.parquet"), leadline.load("ac.leadline")
    of_mail = outputs.metadata["channel"] == "mail"
    assert rows[2]["accuracy"] == model.estimate(outputs.logits[of_mail]).accuracy
    assert rows[2]["truth"] == np.mean(
        outputs.logits[of_mail].argmax(1) == np.asarray(outputs.labels)[of_mail]
    )
    # The mean confidence of the whole is the mean of equally large segments.
    np.testing.assert_allclose(
        np.mean([row["accuracy"] for row in rows[1:]]), rows[0]["accuracy"], atol=1e-12
    )


def test_rows_without_a_segment_are_not_taken_for_the_total(folder: Path, run: Run) -> None:
    Path("gaps.csv").write_text(
        "logit_0,logit_1,logit_2,logit_3,logit_4,day\n" + "1,2,3,4,5,1\n5,4,3,2,1,\n" * 3
    )
    rows = run("estimate", "ac.leadline", "gaps.csv", "--by", "day", "--format", "json").data
    assert [row["n_samples"] for row in rows] == [6, 3, 3]
    assert rows[0]["group"] is None
    assert rows[2]["group"] == "(missing)"


def test_unknown_segment_column(folder: Path, run: Run) -> None:
    error = run("estimate", "ac.leadline", "traffic.parquet", "--by", "country").error
    assert error == "target traffic: column 'country' is not in these outputs; metadata columns: channel."


@pytest.mark.parametrize(("offset", "code"), [(-1e-9, 0), (0.0, 0), (1e-9, 1)])
def test_gate_is_exact(offset: float, code: int, folder: Path, run: Run) -> None:
    accuracy = run("estimate", "ac.leadline", "plain.npz", "--format", "json").data[0]["accuracy"]
    result = run(
        "estimate", "ac.leadline", "plain.npz", "--min-accuracy", repr(accuracy + offset), "--format", "json"
    )
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
    assert "estimates below --min-accuracy" in failed.err
    assert "traffic, channel " in failed.err
    assert failed.data == rows


def test_quiet_silences_the_gate_but_not_errors(folder: Path, run: Run) -> None:
    result = run("estimate", "ac.leadline", "plain.npz", "--min-accuracy", 1, "--quiet")
    assert (result.code, result.err) == (1, "")
    assert "no.npz" in run("estimate", "ac.leadline", "no.npz", "--quiet").error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--min-accuracy", "85"], "--min-accuracy must be a fraction from 0 to 1; got 85."),
        (["--min-accuracy", "nan"], "--min-accuracy must be a fraction from 0 to 1; got nan."),
        (["--min-accuracy", "high"], "Invalid value for '--min-accuracy'"),
        (["--level", "1"], "--level must be a fraction between 0 and 1; got 1."),
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
    assert "The 90% interval covers sampling error of source and target only" in out
    assert "true" not in out.split("The 90%")[0]
    assert "true" in run("estimate", "ac.leadline", "labelled.npz").out


# ---------------------------------------------------------------------------------------------- hostile input
def test_hostile_files(folder: Path, run: Run) -> None:
    good = Path("plain.npz").read_bytes()
    evil = np.array([{"os": "system"}], dtype=object)
    np.savez("pickle.npz", logits=evil)
    np.savez("nan.npz", logits=np.full((3, 5), np.nan))
    np.savez("narrow.npz", logits=np.eye(4))
    np.savez("nameless.npz", numbers=np.eye(5))
    Path("empty.npz").write_bytes(b"")
    Path("cut.npz").write_bytes(good[: len(good) // 2])
    Path("text.npz").write_text("these are not the arrays\nyou are looking for\n")
    Path("text.parquet").write_bytes(b"PAR1\x00\x00\n\r\x1b[31mPAR1")
    Path("broken.csv").write_text('logit_0,logit_1\n1,"2\n')
    Path("outputs.exe").write_bytes(b"MZ")
    archives = ("pickle.npz", "nan.npz", "narrow.npz", "nameless.npz", "empty.npz", "cut.npz", "text.npz")
    for name in (*archives, "text.parquet", "broken.csv", "outputs.exe"):
        error = run("estimate", "ac.leadline", "plain.npz", name).error
        assert Path(name).stem in error, error
        assert "\x1b" not in error
        assert run("compare", "source.npz", name, "--methods", "ac").error


@pytest.mark.parametrize(
    "content", [b"", b"not a model", b"\xff" * 64, b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "]
)
def test_hostile_models(content: bytes, folder: Path, run: Run) -> None:
    Path("bad.leadline").write_bytes(content)
    assert "bad.leadline" in run("estimate", "bad.leadline", "plain.npz").error


def test_outputs_are_not_a_model(folder: Path, run: Run) -> None:
    assert "plain.npz" in run("estimate", "plain.npz", "labelled.npz").error


def test_control_characters_in_names_never_reach_the_terminal(folder: Path, run: Run) -> None:
    name = "a\x1b[31m|b\n.npz"
    Path("plain.npz").rename(name)
    for format in RENDERERS:
        result = run("estimate", "ac.leadline", name, "--format", format)
        assert result.code == 0
        assert "\x1b" not in result.out or format == "csv"
    assert run("estimate", "ac.leadline", name, "--format", "json").data[0]["target"] == name.removesuffix(
        ".npz"
    )
    assert "\x1b" not in run("estimate", "ac.leadline", name, "--by", "day").error


def test_a_name_that_is_not_unicode(folder: Path, run: Run) -> None:
    name = os.fsdecode(b"caf\xe9.npz")
    Path("plain.npz").rename(name)
    for format in RENDERERS:
        assert run("estimate", "ac.leadline", name, "--format", format).code == 0


def test_memory_and_system_errors_are_one_line(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: BaseException) -> Callable[..., None]:
        def read(*_: object, **__: object) -> None:
            raise error

        return read

    words = ("estimate", "ac.leadline", "plain.npz")
    monkeypatch.setattr("leadline.files.read_outputs", fail(MemoryError()))
    assert run(*words).error == "not enough memory for this input."
    monkeypatch.setattr(
        "leadline.files.read_outputs", fail(PermissionError(13, "Permission denied", "plain.npz"))
    )
    assert run(*words).error == "Permission denied: plain.npz"
    monkeypatch.setattr("leadline.files.read_outputs", fail(KeyboardInterrupt()))
    assert run(*words) == Result(130, "", "")
    monkeypatch.setattr("leadline.files.read_outputs", fail(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):  # a defect must not look like wrong input
        run(*words)


# ------------------------------------------------------------------------------------------- compare, methods
def test_compare_is_the_library_answer(folder: Path, run: Run) -> None:
    result = run(
        "compare", "source.npz", "labelled.npz", "plain.npz", "--methods", "ac,doc", "--format", "json"
    )
    assert (result.code, result.err) == (0, "")
    targets = {name: read_outputs(f"{name}.npz") for name in ("labelled", "plain")}
    expected = leadline.compare(read_outputs("source.npz"), targets, methods=["ac", "doc"])
    for row, wanted in zip(result.data["rows"], expected, strict=True):
        same = ("method", "target", "seed", "accuracy", "truth", "error", "n_samples")
        assert {key: row[key] for key in same} == {key: getattr(wanted, key) for key in same}
    assert result.data["mean_absolute_errors"] == expected.mean_absolute_errors()


def test_compare_formats_agree(folder: Path, run: Run) -> None:
    words = ("compare", "source.npz", "labelled.npz", "plain.npz", "--methods", "doc,ac", "--format")
    data = run(*words, "json").data
    flat = list(csv.DictReader(io.StringIO(run(*words, "csv").out)))
    assert [float(row["accuracy"]) for row in flat] == [row["accuracy"] for row in data["rows"]]
    for text in (run(*words, "md").out, run(*words, "table").out):
        for row in data["rows"]:
            assert f"{100 * row['accuracy']:.1f}" in text
        for error in data["mean_absolute_errors"].values():
            assert f"{100 * error:.1f}" in text


def test_compare_seeds(folder: Path, run: Run) -> None:
    words = ("compare", "source.npz", "plain.npz", "--methods", "alsa-g,ac", "--seeds", "0,1")
    rows = run(*words, "--format", "json").data["rows"]
    assert [(row["method"], row["seed"]) for row in rows] == [("alsa-g", 0), ("alsa-g", 1), ("ac", None)]
    out = run(*words).out
    assert "means over seeds" in out
    assert "Error in percentage points" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "ac,magic"], "method must be one of"),
        (["--methods", "ac,"], "--methods must be names separated by commas; got 'ac,'."),
        (["--seeds", "0,x"], "--seeds must be integers separated by commas; got '0,x'."),
        (["--seeds", "0,0"], "seeds must be distinct; got 0, 0."),
        (["--level", "0"], "--level must be a fraction between 0 and 1; got 0."),
        (["missing.npz"], "file missing.npz does not exist."),
    ],
)
def test_wrong_compare_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("compare", "source.npz", "plain.npz", *words).error


def test_compare_needs_a_labelled_source(folder: Path, run: Run) -> None:
    assert "labels" in run("compare", "plain.npz", "labelled.npz", "--methods", "ac").error


def test_methods_lists_all_with_their_options(run: Run) -> None:
    data = run("methods", "--format", "json").data
    assert [row["method"] for row in data] == list(leadline.METHODS)
    assert data[0]["options"]["seed"] == 0
    for format in ("table", "csv", "md"):
        out = run("methods", "--format", format, "--quiet").out
        assert all(name in out for name in leadline.METHODS)


# -------------------------------------------------------------------------------------------------- rendering
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_tables_fit_their_terminal(width: int) -> None:
    cells: list[Cell | str] = [Cell("97.5 %", bar=0.975), "97.0 to 98.0 %", "1,000"]
    table = Table(
        ["target", "estimated accuracy", "interval", "samples"], [["a" * 30, *cells], ["b", *cells]]
    )
    document = Document(data=[], records=[], tables=[table], commands=["leadline " + "x" * 300])
    console = Console(file=io.StringIO(), width=width)
    lines = render(document, "table", console).splitlines()
    assert all(len(line) <= width for line in lines[:-1])
    assert any("aaaaaa" in line for line in lines)
    assert ("█" in "".join(lines)) == (width >= 80)
    assert lines[-1] == "  leadline " + "x" * 300


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999, 1.0, 1.7, -1.0])
def test_bars_keep_their_width(share: float) -> None:
    for unicode in (True, False):
        drawn = bar(share, 10, unicode=unicode)
        assert len(drawn) == 10
        filled = sum(character != " " for character in drawn)
        assert abs(filled - 10 * min(max(share, 0.0), 1.0)) <= 1


def test_nan_never_reaches_json() -> None:
    document = Document(
        data={"a": float("nan"), "b": np.float32("inf"), "c": np.arange(2), "d": np.datetime64("2026-01-02")},
        records=[],
        tables=[],
    )
    text = render(document, "json", Console(file=io.StringIO()))
    assert json.loads(text) == {"a": None, "b": None, "c": [0, 1], "d": "2026-01-02"}


def test_unknown_format() -> None:
    with pytest.raises(leadline.InputError, match="format must be one of table, json, csv, md; got 'xml'"):
        render(Document(data=[], records=[], tables=[]), "xml", Console())


# --------------------------------------------------------------------------------------------- real processes
def start(*words: str, **more: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "leadline", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def test_process_streams_and_exit_codes(folder: Path) -> None:
    good = start("estimate", "ac.leadline", "plain.npz", "--min-accuracy", "1.0", "--format", "json")
    out, err = good.communicate(timeout=60)
    assert good.returncode == 1
    assert json.loads(out)[0]["target"] == "plain"
    assert err.startswith(b"leadline: 1 of 1 estimates below")
    bad = start("estimate", "ac.leadline", "no.npz")
    out, err = bad.communicate(timeout=60)
    assert (bad.returncode, out, err) == (2, b"", b"leadline: error: file no.npz does not exist.\n")


def test_closed_pipe_is_quiet_and_keeps_the_exit_code(folder: Path) -> None:
    for minimum, code in (("0", 0), ("1", 1)):
        process = start("estimate", "ac.leadline", "plain.npz", "--min-accuracy", minimum, "--quiet")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == code
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()


def test_output_that_cannot_hold_bars(folder: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = start("estimate", "ac.leadline", "plain.npz", env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"####" in out
    assert out.isascii()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_only_for_somebody_watching(quiet: bool, folder: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    words = [
        "compare",
        "source.npz",
        "plain.npz",
        "--methods",
        "ac",
        "--format",
        "json",
        *["--quiet"] * quiet,
    ]
    command = [sys.executable, "-m", "leadline", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux says "input/output error" at the end of a pseudo-terminal
        pass
    os.close(ours)
    assert len(json.loads(done.stdout)["rows"]) == 1
    assert (b"compare" in shown) == (not quiet)
    assert quiet == (shown == b"")
