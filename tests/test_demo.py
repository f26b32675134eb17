"""The demo: deterministic, repeatable by hand; and the figure it draws."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

import leadline
from leadline import InputError, read_outputs
from leadline.cli import main
from leadline.demo.digits import TARGETS, digits_outputs
from leadline.demo.methods import COMPARISON, FIGURE, TRAFFIC, Demo, model_file, run, target_file
from leadline.report.scatter import predicted_vs_true
from leadline.results.comparison import ComparisonRow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run(tmp_path_factory.mktemp("demo") / "new folder")


def test_every_method_on_every_target_with_its_truth(demo: Demo) -> None:
    assert demo.comparison.methods == tuple(leadline.METHODS)
    assert demo.comparison.targets == TARGETS
    assert all(row.truth is not None for row in demo.comparison)
    assert list(demo.comparison.mean_absolute_errors()) == list(leadline.METHODS)


def test_shifts_are_real_shifts(demo: Demo) -> None:
    truths = {target: demo.comparison.truth(target) or 0.0 for target in TARGETS}
    assert demo.source_accuracy > 0.93
    assert abs(truths["clean"] - demo.source_accuracy) < 0.03
    assert min(truths.values()) < 0.75
    assert len({round(truth, 2) for truth in truths.values()}) > 6
    assert truths["rotate20"] < truths["rotate10"]
    assert truths["noise2"] < truths["noise1"]
    assert truths["missing2"] < truths["missing1"]


def test_label_shift_changes_the_classes_only(demo: Demo) -> None:
    labels = read_outputs(demo.folder / target_file("labelshift")).labels
    clean = read_outputs(demo.folder / target_file("clean")).labels
    assert labels is not None
    assert clean is not None
    assert np.isin(labels, (1, 8, 9)).mean() > 0.7
    assert np.isin(clean, (1, 8, 9)).mean() < 0.4


def test_files_repeat_the_numbers(demo: Demo) -> None:
    stored = json.loads((demo.folder / COMPARISON).read_text())
    assert stored == demo.comparison.to_dict()
    for method in leadline.METHODS:
        model = leadline.load(demo.folder / model_file(method))
        target = read_outputs(demo.folder / target_file("noise2"))
        assert model.estimate(target.logits).accuracy == demo.comparison.accuracy(method, "noise2")
        assert target.accuracy == demo.comparison.truth("noise2")
    traffic = read_outputs(demo.folder / TRAFFIC)
    assert traffic.labels is None
    assert set(traffic.groups("shift")) == set(TARGETS)


def test_outputs_are_deterministic(demo: Demo) -> None:
    source, targets = digits_outputs()
    np.testing.assert_array_equal(source.logits, read_outputs(demo.folder / "source.npz").logits)
    for name, target in targets.items():
        np.testing.assert_array_equal(target.logits, read_outputs(demo.folder / target_file(name)).logits)


def test_nothing_is_overwritten(demo: Demo) -> None:
    before = {path: path.stat().st_mtime_ns for path in demo.folder.iterdir()}
    with pytest.raises(InputError, match=r"source\.npz exists; use --force to overwrite it, or another folder"):
        run(demo.folder)
    assert {path: path.stat().st_mtime_ns for path in demo.folder.iterdir()} == before


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError, match="is not a folder; give another name"):
        run(tmp_path / "taken", force=True)
    assert (tmp_path / "taken").read_text() == "mine"


def test_command_without_matplotlib_and_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "leadline.demo.methods.find_spec", lambda name: None if name == "matplotlib" else find_spec(name)
    )
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "-o", "out"]) == 0
    out = capsys.readouterr().out
    assert 'pip install "leadline[report]"' in out
    assert not Path("out", FIGURE).exists()
    assert "█" in out
    commands = [shlex.split(line) for line in out.splitlines() if line.startswith("  leadline ")]
    assert [words[1] for words in commands] == ["fit", "estimate", "estimate", "compare"]
    # The gate of the third may fail by design; no shell expands the patterns here, so the command does.
    for words, codes in zip(commands, ({0}, {0}, {0, 1}, {0}), strict=True):
        assert main(words[1:]) in codes
        assert capsys.readouterr().out
    assert main(["demo", "-o", "out"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# ----------------------------------------------------------------------------------------------- the figure
def row(method: str, accuracy: float, truth: float | None) -> ComparisonRow:
    error = None if truth is None else accuracy - truth
    return ComparisonRow(method, "t", None, accuracy, truth, error, (0.0, 1.0), 10, 0.0, 0.0)


def marks(ax: Axes) -> list[Any]:
    return [line for line in ax.lines if line.get_linestyle() == "None"]


def test_figure_file_is_a_picture(demo: Demo) -> None:
    assert demo.figure == demo.folder / FIGURE
    height, width, _ = imread(demo.figure).shape
    assert height > 400
    assert width > 600


def test_figure_shows_every_labelled_row_in_percent() -> None:
    ax = predicted_vs_true([row("ac", 0.8, 0.7), row("ac", 0.6, 0.5), row("doc", 0.9, 0.7), row("doc", 0.1, None)])
    first, second = marks(ax)
    np.testing.assert_allclose(first.get_xydata(), [[70.0, 80.0], [50.0, 60.0]])
    np.testing.assert_allclose(second.get_xydata(), [[70.0, 90.0]])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["ac (10.0)", "doc (20.0)"]
    assert ax.get_xlim() == ax.get_ylim()


def test_figure_tells_twenty_methods_apart() -> None:
    ax = predicted_vs_true([row(f"m{i}", 0.5, 0.5) for i in range(20)])
    assert len({(line.get_color(), line.get_marker()) for line in marks(ax)}) == 20


def test_figure_draws_where_it_is_told() -> None:
    ax = Figure().add_subplot()
    assert predicted_vs_true([row("ac", 0.8, 0.7)], ax) is ax


def test_figure_needs_a_truth() -> None:
    with pytest.raises(InputError, match="rows must have at least one target with labels"):
        predicted_vs_true([row("ac", 0.8, None)])
