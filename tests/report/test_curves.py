"""Figures of stored rows, and the drawing that needs none: what is on the axes, not how it looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leadline import InputError
from leadline.report import curves
from leadline.report.workflow import workflow


def test_curves_average_absolute_errors_by_series() -> None:
    rows: list[dict[str, Any]] = [
        {"suite": "s", "method": "alsa-g", "variant": "alsa-g 0.9", "estimate": 0.5, "truth": 0.6},
        {"suite": "s", "method": "alsa-g", "variant": "alsa-g 0.9", "estimate": 0.8, "truth": 0.6},
        {"suite": "s", "method": "alsa-g", "variant": "alsa-g 0.5", "error": -0.02},
        {"suite": "s", "method": "alsa-e", "alpha": 0.7, "error": 0.04},
    ]
    ax: Any = curves.error_vs_alpha(rows)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.5, 2], [0.9, 15]])
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[0.7, 4]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["alsa-g", "alsa-e"]


def test_number_of_anchors_is_on_a_logarithmic_axis() -> None:
    ax: Any = curves.error_vs_anchors([{"variant": "100", "error": 0.1}, {"n_anchors": 10, "error": 0.2}])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[10, 20], [100, 10]])
    assert ax.get_xscale() == "log"


def test_ablation_bars_have_the_errors() -> None:
    rows = [
        {"suite": suite, "variant": variant, "error": error}
        for suite, variant, error in [("a", "Lrn", 0.02), ("a", "Fix a", 0.04), ("b", "Lrn", 0.01), ("a", "Lrn", 0.04)]
    ]
    ax: Any = curves.ablation(rows)
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in ax.containers}
    assert heights == {"Lrn": [pytest.approx(3), pytest.approx(1)], "Fix a": [pytest.approx(4)]}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]


def test_rows_are_told_apart_by_network_or_target() -> None:
    rows = [
        {"model": model, "target": target, "method": "alsa-g", "variant": "10", "error": error}
        for model, target, error in [("a-gcn", "x", 0.02), ("b_gcn", "y", 0.04), ("a-sage", "x", 0.1)]
    ]
    ax: Any = curves.error_vs_anchors(rows, by="network")
    assert {line.get_label(): line.get_ydata()[0] for line in ax.lines} == {"gcn": pytest.approx(3), "sage": 10}
    ax = curves.error_vs_alpha([{**row, "variant": "alsa-g 0.9"} for row in rows], by="target")
    assert {line.get_label(): line.get_ydata()[0] for line in ax.lines} == {"x": pytest.approx(6), "y": 4}
    ax = curves.ablation(rows, by="network")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["gcn", "sage"]
    with pytest.raises(InputError, match="by must be one of suite, network, target; got 'model'"):
        curves.ablation(rows, by="model")  # type: ignore[arg-type]


def test_workflow_names_every_step() -> None:
    texts = " ".join(text.get_text() for text in workflow().texts).replace("\n", " ")
    steps = (
        "with labels", "anchors: place, peak, reach", "cross-entropy", "without labels", "influence", "t$ ?", "σ(I)",
        "1/c", "estimated accuracy",
    )  # fmt: skip
    assert [step for step in steps if step not in texts] == []


def test_time_against_error_averages_by_method() -> None:
    rows = [{"method": "ac", "seconds": s, "error": e} for s, e in [(0.1, 0.1), (0.3, -0.2)]]
    ax: Any = curves.time_vs_error(rows)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[200, 15]])


def test_variants_of_a_method_are_not_averaged_over_time() -> None:
    rows = [
        {"method": "alsa-g", "variant": variant, "seconds": 0.1, "error": error}
        for variant, error in [("alsa-g", 0.02), ("alsa-g-paper", 0.3), ("alsa-g", 0.04)]
    ]
    ax: Any = curves.time_vs_error(rows)
    found = {line.get_label(): line.get_ydata()[0] for line in ax.lines}
    assert found == {"alsa-g": pytest.approx(3), "alsa-g-paper": pytest.approx(30)}


@pytest.mark.parametrize(
    ("draw", "rows", "message"),
    [
        (curves.error_vs_alpha, [], "at least one entry"),
        (curves.error_vs_alpha, [{"variant": "x", "error": 0.1}], "alpha must be a number; got 'x'"),
        (curves.ablation, [{"error": 0.1}], "each row must have 'variant'; got a row with error"),
        (curves.time_vs_error, [{"method": "ac", "seconds": 1, "estimate": 0.5}], "each row must have 'truth'"),
    ],
)
def test_wrong_rows(draw: Any, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw(rows)
