"""The paper's figures from measured rows; drawn by :mod:`leadline.report`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from leadline.bench.datasets import SUITES
from leadline.bench.graphs.tables import NETWORKS
from leadline.bench.metrics import scores_by
from leadline.bench.rows import Row, load_rows
from leadline.compare import ComparisonRow
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
    from leadline.report.curves import save_bars, save_curves, save_time_against_error
    from leadline.report.scatter import save_predicted_vs_true

    if kind not in ("svg", "png", "pdf"):
        raise InputError(f"kind must be svg, png or pdf; got {kind!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = []

    def draw(name: str, save: Callable[[Path], None]) -> None:
        path = folder / f"{name}.{kind}"
        save(path)
        drawn.append(path)

    for suite, rows in _by_suite(load_rows(out)).items():
        draw(f"scatter-{suite}", partial(save_predicted_vs_true, [_as_comparison(row) for row in rows]))
        if SUITES[suite].graphs:  # one figure for each network, as in the paper
            for kind_of_model in NETWORKS:
                if chosen := [_as_comparison(row) for row in rows if row.model.endswith(kind_of_model)]:
                    draw(f"graphs-{suite}-{kind_of_model}", partial(save_predicted_vs_true, chosen))
        times = {
            method: (score.seconds, score.mae) for method, score in scores_by(rows, lambda row: row.method).items()
        }
        draw(f"time-{suite}", partial(save_time_against_error, times))
    for experiment in ("ablation", "init", "rectify"):
        if groups := _errors(out, experiment):
            draw(experiment, partial(save_bars, groups))
    if errors := _errors(out, "anchors"):
        anchors = {suite: [(float(k), mae) for k, mae in found.items()] for suite, found in errors.items()}
        draw("anchors", lambda path: save_curves(anchors, path, label="anchors", logarithmic=True))
    if errors := _errors(out, "alpha"):
        alphas: dict[str, list[tuple[float, float]]] = {}
        for suite, found in errors.items():
            for variant, mae in found.items():
                method, alpha = variant.split()
                alphas.setdefault(f"{suite}, {method}", []).append((float(alpha), mae))
        draw("alpha", lambda path: save_curves(alphas, path, label="alpha"))
    if not drawn:
        raise InputError(f"no rows in {out}; run `leadline bench run SUITE` first.")
    return drawn


def _by_suite(rows: list[Row]) -> dict[str, list[Row]]:
    """Group rows by suite."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.suite, []).append(row)
    return groups


def _errors(out: Path, experiment: str) -> dict[str, dict[str, float]]:
    """Return suite -> variant -> mean absolute error."""
    return {
        suite: {variant: score.mae for variant, score in scores_by(rows, lambda row: row.variant).items()}
        for suite, rows in _by_suite(load_rows(out, experiment)).items()
    }


def _as_comparison(row: Row) -> ComparisonRow:
    """Return a row in the form that the scatter plot takes."""
    return ComparisonRow(
        method=row.method,
        target=row.target,
        seed=row.seed,
        accuracy=row.estimate,
        truth=row.truth,
        error=row.estimate - row.truth,
        interval=(row.estimate, row.estimate),
        n_samples=row.n_samples,
        seconds=row.seconds,
        fit_seconds=row.fit_seconds,
    )
