"""The paper's figures from measured rows; drawn by :mod:`leadline.report`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.bench.claims import NATURAL
from leadline.bench.datasets import SUITES
from leadline.bench.graphs.paper_tables import NETWORKS
from leadline.bench.records import counted_rows, network_of
from leadline.bench.rows import PAPER_SUFFIX, Row, load_rows
from leadline.errors import InputError

_DRAWN_NETWORKS = ("gcn", "sage")  # those of the paper's curves
_MOST_TARGETS = 8  # lines that a figure can tell apart


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
    for suffix in ("", PAPER_SUFFIX):
        for experiment in ("ablation", "init", "rectify"):
            name = f"{experiment}{suffix}"
            yield from _by_group(name, load_rows(out, name), curves.ablation)
        yield from _by_group(f"anchors{suffix}", load_rows(out, f"anchors{suffix}"), curves.error_vs_anchors)
        swept = load_rows(out, f"alpha{suffix}")
        for method in dict.fromkeys(row.method for row in swept):
            rows = [row for row in swept if row.method == method]
            yield from _by_group(f"alpha{suffix}-{method}", rows, curves.error_vs_alpha)


def _by_group(name: str, rows: list[Row], draw: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield a figure over all suites, and for each suite one by network and one by target, as the paper has them."""
    suites = dict.fromkeys(row.suite for row in rows)
    counted = {suite: counted_rows([row for row in rows if row.suite == suite]) for suite in suites}
    if rows:
        yield name, draw(_records([row for own in counted.values() for row in own]))
    for suite, own in counted.items():
        if networks := [row for row in own if network_of(row.model) in _DRAWN_NETWORKS]:
            yield f"{name}-{suite}-networks", draw(_records(networks), by="network")
        targets = _drawn_targets(suite, {row.target for row in own})
        if 1 < len(targets) <= _MOST_TARGETS:
            yield f"{name}-{suite}-targets", draw(_records([row for row in own if row.target in targets]), by="target")


def _drawn_targets(suite: str, targets: set[str]) -> set[str]:
    """Return the targets that the paper draws curves of, CIFAR-10.1 and CIFAR-10.2, or all where they are not."""
    patterns = [pattern for row, pattern in SUITES[suite].paper.items() if re.search(NATURAL, row)]
    return {target for target in targets if any(re.match(pattern, target) for pattern in patterns)} or targets


def _records(rows: list[Row]) -> list[dict[str, Any]]:
    """Return rows as the curves take them."""
    return [asdict(row) for row in rows]


def _points(rows: list[Row]) -> list[tuple[str, float, float]]:
    """Return variant, truth and estimate of each row."""
    return [(row.variant, row.truth, row.estimate) for row in rows]
