"""The paper's Tables 2 and 3, one row per graph network, with ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leadline.bench.graphs.run import METHOD
from leadline.bench.rows import PAPER_SUFFIX
from leadline.results.render import Cell, Table

#: The paper's networks, by ours.
NETWORKS = {"gcn": "GCN", "sage": "SAGE", "gat": "GAT", "gin": "GIN"}
#: The paper's names of methods, by ours; its R2 and correlation of ALSA are those of ALSA-G.
_METHODS = {
    "ac": "AC", "doc": "DoC", "im": "IM", METHOD: "GNNEval", "atc-ne": "ATC", "cot": "COT",
    "alsa-e": "ALSA-E", "alsa-g": "ALSA-G", "alsa-e-paper": "ALSA-E", "alsa-g-paper": "ALSA-G",
}  # fmt: skip

#: The paper's rows of means over its networks, which it names differently in its two tables.
_MEANS = ("AVG.", "average")

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
    measured = {method for kinds in suites.values() for scores in kinds.values() for method in scores}
    methods = [
        method
        for method, theirs in _METHODS.items()
        if any(theirs in row for row in paper.values()) and (method in measured or not method.endswith(PAPER_SUFFIX))
    ]
    rows: list[list[Cell | str]] = []
    means = next(name for name in _MEANS if name in paper)
    for kind, network in {**NETWORKS, "mean": means}.items():
        theirs = (write(paper[network].get(_METHODS[method]), 1.0) for method in methods)
        rows.append(["AVG." if kind == "mean" else network, "reported", *theirs])
        for name, kinds in suites.items():
            found = kinds.get(kind, {}) if kind != "mean" else {method: _mean(kinds, method) for method in methods}
            if any(found.values()):
                rows.append(["", f"measured: {name}", *(write(found.get(method), 100.0) for method in methods)])
    return Table(("network", "", *methods), rows, title, left=(0, 1))


def _mean(kinds: Mapping[str, Scores], method: str) -> Scores | None:
    """Return the means of a method's scores over the paper's networks, deviations included, as the paper's are.

    None unless the method was run with every network: a mean over fewer cannot stand below the paper's.
    """
    scores = [kinds[kind][method] for kind in NETWORKS if method in kinds.get(kind, {})]
    if len(scores) < len(NETWORKS):
        return None
    names = ("mae", "std", "r2", "rho")
    columns = {name: [score[name] for score in scores] for name in names}
    return {name: None if None in column else sum(column) / len(column) for name, column in columns.items()}


def error_text(score: Scores, scale: float, *, digits: int) -> str:
    """Write a mean absolute error and its deviation, which a single estimate does not have."""
    deviation = "–" if score["std"] is None else f"{scale * score['std']:.{digits}f}"
    return f"{scale * score['mae']:.{digits}f} ({deviation})"


def _error(score: Scores | None, scale: float) -> Cell:
    """Write a mean absolute error and its deviation, with the paper's two decimals."""
    return Cell("") if score is None else Cell(error_text(score, scale, digits=2))


def _agreement(score: Scores | None, scale: float) -> Cell:
    """Write R2 and the correlation, which have no unit."""
    del scale
    if score is None or score["r2"] is None:
        return Cell("")
    return Cell(f"{score['r2']:.2f} / " + ("–" if score["rho"] is None else f"{score['rho']:.2f}"))
