"""The paper's figures from what was measured; drawn by :mod:`leadline.report`.

Those of experiments show the means in ``measured.json``, those of single estimates the rows that `run` stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.bench.claims import NATURAL, errors_of
from leadline.bench.datasets import SUITES
from leadline.bench.datasets.suite import Suite
from leadline.bench.experiments import EXPERIMENTS
from leadline.bench.graphs.paper_tables import NETWORKS
from leadline.bench.records import load_measured
from leadline.bench.rows import PAPER_SUFFIX, Row, load_rows
from leadline.errors import InputError

_DRAWN_NETWORKS = ("gcn", "sage")  # those of the paper's curves
_MOST_TARGETS = 8  # lines that a figure can tell apart


def draw_figures(out: Path, folder: Path, *, kind: str = "svg") -> list[Path]:
    """Draw every figure of what was measured.

    Parameters
    ----------
    out
        The folder that `run` filled. Where it has no rows but ``measured.json``, the figures of experiments are drawn.
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
        raise InputError(f"nothing to draw in {out}; run `leadline bench run SUITE` first.")
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
        yield f"time-{suite}", curves.time_vs_error([asdict(row) for row in rows])
    measured = load_measured(out)["experiments"]
    for suffix in ("", PAPER_SUFFIX):
        for experiment in ("ablation", "init", "rectify"):
            yield from _of_experiment(f"{experiment}{suffix}", measured, curves.ablation)
        yield from _of_experiment(f"anchors{suffix}", measured, curves.error_vs_anchors)
        for method in ("alsa-g", "alsa-e"):
            yield from _of_experiment(f"alpha{suffix}", measured, curves.error_vs_alpha, method)


def _of_experiment(
    experiment: str, measured: Mapping[str, Any], draw: Callable[..., Any], method: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield a figure over all suites, and for each suite one by network and one by target, as the paper has them.

    With ``method``, of its variants only, and named after it.
    """
    suites = measured.get(experiment, {})
    name = experiment if method is None else f"{experiment}-{method}"
    variants = {variant.name: variant.method for variant in EXPERIMENTS[experiment] if method in (None, variant.method)}

    def errors(field: str, groups: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
        """Return errors as the curves take them, told apart by a field."""
        return [
            {field: group, "method": variants[variant], "variant": variant, "error": error}
            for group, found in groups.items()
            for variant, error in found.items()
            if variant in variants
        ]

    if overall := errors("suite", {suite: errors_of(entry["all"]) for suite, entry in suites.items()}):
        yield name, draw(overall)
    for suite, entry in suites.items():
        kinds = {kind: errors_of(scores) for kind, scores in entry.get("by_kind", {}).items()}
        if networks := errors("model", {kind: kinds[kind] for kind in _DRAWN_NETWORKS if kind in kinds}):
            yield f"{name}-{suite}-networks", draw(networks, by="network")
        by_target = entry.get("by_target", {})  # which old records have not
        shown = {target: by_target[target] for target in _drawn_targets(SUITES[suite], by_target)}
        if 1 < len(shown) <= _MOST_TARGETS and (targets := errors("target", shown)):
            yield f"{name}-{suite}-targets", draw(targets, by="target")


def _drawn_targets(suite: Suite, targets: Collection[str]) -> list[str]:
    """Return the targets that the paper draws curves of, CIFAR-10.1 and CIFAR-10.2, or all where they are not."""
    rows = [row for row in suite.paper if re.search(NATURAL, row)]
    return [target for row in rows for target in suite.targets_of(row, targets)] or [*targets]


def _points(rows: list[Row]) -> list[tuple[str, float, float]]:
    """Return variant, truth and estimate of each row."""
    return [(row.variant, row.truth, row.estimate) for row in rows]
