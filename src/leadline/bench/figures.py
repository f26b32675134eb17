"""The paper's figures from measured rows; drawn by :mod:`leadline.report`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.bench.datasets import SUITES
from leadline.bench.graphs.paper_tables import NETWORKS
from leadline.bench.rows import Row, load_rows
from leadline.errors import InputError


def draw_figures(out: Path, folder: Path, *, kind: str = "svg") -> list[Path]:
    """Draw every figure for which rows were stored.

    Parameters
    ----------
    out
        The folder that `run` filled.
    folder
        Receives the figures.
    kind
        "svg", "png" or "pdf".

    Returns
    -------
    list of Path
        The files.
    """
    from leadline.report.style import KINDS, save

    if kind not in KINDS:
        raise InputError(f"kind must be svg, png or pdf; got {kind!r}.")
    drawn: list[Path] = []
    for name, figure in _figures(out):
        folder.mkdir(parents=True, exist_ok=True)
        drawn.append(folder / f"{name}.{kind}")
        save(figure, drawn[-1])
    if not drawn:
        raise InputError(f"no rows in {out}; run `leadline bench run SUITE` first.")
    return drawn


def _figures(out: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name of each figure and what is drawn on it."""
    from leadline.report import curves
    from leadline.report.scatter import predicted_vs_true_panels

    main = load_rows(out)
    for suite in dict.fromkeys(row.suite for row in main):
        rows = [row for row in main if row.suite == suite]
        yield f"scatter-{suite}", predicted_vs_true_panels(_points(rows))
        for network in NETWORKS if SUITES[suite].graphs else ():  # one figure for each network, as in the paper
            if chosen := [row for row in rows if row.model.endswith(network)]:
                yield f"graphs-{suite}-{network}", predicted_vs_true_panels(_points(chosen))
        yield f"time-{suite}", curves.time_vs_error(_records(rows))
    for experiment in ("ablation", "init", "rectify"):
        if rows := load_rows(out, experiment):
            yield experiment, curves.ablation(_records(rows))
    if rows := load_rows(out, "anchors"):
        yield "anchors", curves.error_vs_anchors(_records(rows))
    swept = load_rows(out, "alpha")
    for method in dict.fromkeys(row.method for row in swept):
        yield f"alpha-{method}", curves.error_vs_alpha(_records([row for row in swept if row.method == method]))


def _records(rows: list[Row]) -> list[dict[str, Any]]:
    """Return rows as the curves take them."""
    return [asdict(row) for row in rows]


def _points(rows: list[Row]) -> list[tuple[str, float, float]]:
    """Return method, truth and estimate of each row."""
    return [(row.method, row.truth, row.estimate) for row in rows]
