"""The figures of stored rows: which are drawn, and of which rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.bench.figures import _figures, draw_figures
from leadline.bench.records import record
from leadline.bench.rows import Row, rows_stem, save_rows

pytest.importorskip("matplotlib")


def put(out: Path, experiment: str, suite: str, errors: dict[tuple[str, str, str], float]) -> None:
    """Store and record rows by model, target and variant."""
    rows = [
        Row(
            suite=suite, model=model, model_seed=None, target=target, experiment=experiment, variant=variant,
            method="alsa-g", seed=0, estimate=0.5 + error, truth=0.5, n_samples=9, fit_seconds=1.0, seconds=1.0,
            version="0",
        )
        for (model, target, variant), error in errors.items()
    ]  # fmt: skip
    save_rows(rows, rows_stem(out, experiment, suite))
    record(out, experiment, rows)


def lines(ax: Any) -> dict[str, float]:
    """Return the first value of each line."""
    return {line.get_label(): round(float(line.get_ydata()[0]), 6) for line in ax.lines}


def test_curves_of_graphs_are_drawn_by_network_and_target(tmp_path: Path) -> None:
    models = {"a-gcn": 0.01, "b-gcn": 0.03, "a-sage": 0.04, "a-gin": 0.08, "a-mlp": 0.4}
    errors = {(model, target, "10"): error for model, error in models.items() for target in ("x", "y")}
    put(tmp_path, "anchors", "citation-graphs", errors)
    drawn = dict(_figures(tmp_path))
    assert lines(drawn["anchors-citation-graphs-networks"]) == {"gcn": 2.0, "sage": 4.0}  # those of the paper
    assert lines(drawn["anchors-citation-graphs-targets"]) == {"x": 4.0, "y": 4.0}  # without the MLP
    assert lines(drawn["anchors"]) == {"alsa-g": 4.0}


def test_curves_of_cifar_are_those_of_the_targets_collected_anew(tmp_path: Path) -> None:
    targets = ["cifar-10.1", "cifar-10.2", *(f"fog_{i}" for i in range(1, 6))]
    put(tmp_path, "alpha", "cifar10", {("resnet18", target, "alsa-g 0.9"): 0.01 for target in targets})
    put(tmp_path, "ablation", "logits-cifar10c", {("resnet20", f"fog_{i}", "Lrn"): 0.01 for i in range(20)})
    drawn = dict(_figures(tmp_path))
    assert set(drawn) == {"alpha-alsa-g", "alpha-alsa-g-cifar10-targets", "ablation"}  # 20 targets would be a tangle
    assert set(lines(drawn["alpha-alsa-g-cifar10-targets"])) == {"cifar-10.1", "cifar-10.2"}


def test_the_papers_choices_have_a_panel_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, "main", "logits-mnist", {("cnn", "usps", "alsa-g"): 0.01, ("cnn", "usps", "alsa-g-paper"): 0.05})
    drawn = dict(_figures(tmp_path))
    assert [panel.get_title() for panel in drawn["scatter-logits-mnist"].axes] == ["alsa-g (1.0)", "alsa-g-paper (5.0)"]


def test_every_figure_becomes_a_file(tmp_path: Path) -> None:
    for experiment in ("ablation", "ablation-paper"):
        put(tmp_path, experiment, "citation-graphs", {("a-gcn", "x", "Lrn"): 0.01})
    paths = draw_figures(tmp_path, tmp_path / "figures", kind="svg")
    assert [path.stem for path in paths] == [
        "ablation", "ablation-citation-graphs-networks", "ablation-paper", "ablation-paper-citation-graphs-networks",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"<?xml") for path in paths)


def test_figures_of_experiments_need_no_rows(tmp_path: Path) -> None:
    targets = {("cnn", target, variant): 0.01 for target in ("usps", "mnist_m") for variant in ("sample", "random")}
    put(tmp_path, "init-paper", "logits-mnist", targets)
    put(tmp_path, "main", "logits-mnist", {("cnn", "usps", "alsa-g"): 0.01})
    for path in tmp_path.glob("rows/*/*"):
        path.unlink()
    assert set(dict(_figures(tmp_path))) == {"init-paper", "init-paper-logits-mnist-targets"}
