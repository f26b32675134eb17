"""The command: its help, ``fit``, ``compare`` and ``methods``."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.main import get_command

import leadline
from command_line import Result, Run
from leadline import read_outputs
from leadline.cli.application import COMMANDS, build_app


# ---------------------------------------------------------------------------------------------- documentation
def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Go through a command, and all that are in it if it is a group, with the words that call each."""
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


ALL = dict(commands(get_command(build_app())))


def test_no_command_is_overlooked() -> None:
    assert {words[0] for words in ALL if words} == set(COMMANDS)
    steps = "list prepare train logits run reproduce times table figures"
    assert [words[1] for words in ALL if words[:1] == ("bench",) and len(words) > 1] == steps.split()


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "leadline")
def test_every_command_and_option_is_documented(words: tuple[str, ...], run: Run) -> None:
    command = ALL[words]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"
    result = run(*words, "--help")
    assert (result.code, result.err) == (0, "")
    assert " ".join(["leadline", *words]) in result.out
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert options <= set(re.findall(r"--[\w.-]+", result.out))
    assert "--quiet" in options or hasattr(command, "commands"), "every command takes --quiet"


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "leadline")
def test_help_keeps_its_asterisks_and_shows_flags_as_flags(
    words: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 400)
    shown = run(*words, "--help").out
    texts = [ALL[words].help, *(parameter.help for parameter in ALL[words].params)]
    starred = {word.strip("`',.;") for text in texts for word in text.split() if "*" in word}
    assert all(word in shown for word in starred), starred
    assert "<bool>" not in shown


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

    monkeypatch.setitem(sys.modules, "more_commands", SimpleNamespace(group=group))
    monkeypatch.setitem(COMMANDS, "more", "more_commands:group")
    assert run("more", "hello").out == "hello\n"


# -------------------------------------------------------------------------------------------------------- fit
def test_fit_writes_a_model_that_estimates_the_same(folder: Path, run: Run) -> None:
    result = run("fit", "source.npz", "--method", "doc", "-o", "doc.leadline", "--format", "json")
    assert (result.code, result.err) == (0, "")
    source, target = read_outputs("source.npz"), read_outputs("plain.npz")
    expected = leadline.make("doc").fit(source.logits, source.labels)
    assert leadline.load("doc.leadline").estimate(target.logits).accuracy == expected.estimate(target.logits).accuracy
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
        (
            ["--method", "alsa-g", "--option", "n_anchors=many"],
            "option n_anchors must be an integer or none; got 'many'.",
        ),
        (["--option", "n_anchors"], "--option must be key=value; got 'n_anchors'."),
        (
            ["--method", "alsa-g", "--option", "colour=red"],
            "method alsa-g has no option 'colour'; it has influence, n_anchors",
        ),
        (
            ["--method", "alsa-g", "--option", "rectify=maybe"],
            "option rectify must be one of total, single or none; got 'maybe'.",
        ),
        (["--method", "alsa-g", "--option", "alpha=nan"], "option alpha must be a number or none; got 'nan'."),
        (["--method", "alsa-g", "--option", "alpha=2"], "alpha must be between 0 and 1; got 2.0."),
        (
            ["--method", "alsa-g", "--option", "learn=all"],
            "learn must be a collection of anchors, peaks, widths; got ['all'].",
        ),
        (["--method", "alsa-g", "--option", "seed=1", "--seed", "1"], "the seed must be given once"),
        (["--method", "alsa-g", "--option", "alpha=.5", "--option", "alpha=.6"], "--option alpha must be given once"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--method", "magic"], "method must be one of auto, alsa-g"),
        (["--method", "ac", "--option", "temperature_scaling=2"], "must be true or false; got '2'."),
    ],
)
def test_wrong_fit_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("fit", "source.npz", "-o", "new.leadline", *words).error
    assert not Path("new.leadline").exists()


def test_fit_needs_labels(folder: Path, run: Run) -> None:
    assert (
        run("fit", "plain.npz", "-o", "new.leadline").error
        == "plain.npz must have labels to fit on; it has no column 'label', but none beside the logits."
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
        "the model must not replace one of its inputs"
        in run("fit", "source.npz", "-o", "./source.npz", "--force").error
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


# ------------------------------------------------------------------------------------------- compare, methods
def test_compare_is_the_library_answer(folder: Path, run: Run) -> None:
    result = run("compare", "source.npz", "labelled.npz", "plain.npz", "--methods", "ac,doc", "--format", "json")
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
    assert next(row for row in data if row["method"] == "alsa-g")["options"]["seed"] == 0
    for format in ("table", "csv", "md"):
        out = run("methods", "--format", format, "--quiet").out
        assert all(name in out for name in leadline.METHODS)


@pytest.mark.parametrize("group", ["bench", "monitor"])
def test_a_group_without_a_command_shows_its_help_and_no_empty_error(group: str, run: Run) -> None:
    result = run(group)
    assert result.code == 2
    assert f"leadline {group} [OPTIONS] COMMAND" in result.out
    assert result.err == ""
