"""The paper's Tables 2 and 3, one row per graph network, with ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leadline.bench.graphs.run import METHOD
from leadline.results.render import Cell, Table

#: The paper's networks, by ours.
NETWORKS = {"gcn": "GCN", "sage": "SAGE", "gat": "GAT", "gin": "GIN"}
#: The paper's names of methods, by ours; its R2 and correlation of ALSA are those of ALSA-G.
_METHODS = {
    "ac": "AC", "doc": "DoC", "im": "IM", METHOD: "GNNEval", "atc-ne": "ATC", "cot": "COT",
    "alsa-e": "ALSA-E", "alsa-g": "ALSA-G",
}  # fmt: skip

Scores = Mapping[str, Any]


def graph_tables(main: Mapping[str, Any], reported: Mapping[str, Any], *, wanted: bool) -> list[Table]:
    """Return both tables for the suites of graphs that were measured.

    Parameters
    ----------
    main
        The suites of the experiment "main" in ``measured.json``.
    reported
        The paper's numbers.
    wanted
        Whether to return the paper's numbers alone where nothing was measured.
    """
    suites = {name: entry["by_kind"] for name, entry in main.items() if "by_kind" in entry}
    if not suites and not wanted:
        return []
    tables = reported["tables"]
    errors = tables["tab:mae_gnn_std"]["rows"]
    agreement = {
        network: {("ALSA-G" if method == "ALSA" else method): score for method, score in row.items()}
        for network, row in tables["tab:gnn_performance_metrics"]["rows"].items()
    }
    return [
        _table(suites, errors, "The paper's Table 2 beside ours: mean absolute error (deviation) in points", _error),
        _table(suites, agreement, "The paper's Table 3 beside ours: R2 against y = x / correlation", _agreement),
    ]


def _table(
    suites: Mapping[str, Mapping[str, Scores]],
    paper: Mapping[str, Scores],
    title: str,
    write: Callable[[Scores | None, float], Cell],
) -> Table:
    """Return a table with the paper's row of each network above ours."""
    methods = [method for method, theirs in _METHODS.items() if any(theirs in row for row in paper.values())]
    rows: list[list[Cell | str]] = []
    for kind, network in NETWORKS.items():
        rows.append([network, "reported", *(write(paper[network].get(_METHODS[method]), 1.0) for method in methods)])
        for name, kinds in suites.items():
            if kind in kinds:
                ours = (write(kinds[kind].get(method), 100.0) for method in methods)
                rows.append(["", f"measured: {name}", *ours])
    return Table(("network", "", *methods), rows, title, left=(0, 1))


def _error(score: Scores | None, scale: float) -> Cell:
    """Write a mean absolute error and its deviation."""
    return Cell("") if score is None else Cell(f"{scale * score['mae']:.1f} ({scale * score['std']:.1f})")


def _agreement(score: Scores | None, scale: float) -> Cell:
    """Write R2 and the correlation, which have no unit."""
    del scale
    if score is None or score["r2"] is None:
        return Cell("")
    return Cell(f"{score['r2']:.2f} / " + ("–" if score["rho"] is None else f"{score['rho']:.2f}"))
