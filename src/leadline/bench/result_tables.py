"""Tables for people: the suites, and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.bench.claims import Claim, check_claims, errors_of
from leadline.bench.datasets import SUITES, get_suite
from leadline.bench.experiments import TRAINING_SIZES
from leadline.bench.graphs.paper_tables import error_text, graph_tables
from leadline.bench.records import reported_scores
from leadline.bench.rows import PAPER_SUFFIX
from leadline.errors import InputError
from leadline.estimators import METHODS
from leadline.results.render import Cell, Document, Table

_LEGEND = (
    "Errors are mean absolute errors in points; in brackets the sample standard deviation of the absolute errors over "
    "targets, models and seeds. Reported numbers are the paper's, of its own models and data; a suite marked ~ is a "
    "similar shift on other data or models."
)
_FEW_TARGETS = 8


def list_document(data: Path) -> Document:
    """Return the table of suites, and whether the data of each is there."""
    records: list[dict[str, Any]] = []
    for suite in SUITES.values():
        missing = suite.missing(data)
        records.append(
            {
                "name": suite.name, "shift": suite.shift, "source": suite.source, "targets": suite.targets,
                "models": list(suite.models_in(data)) or "as found", "classes": suite.n_classes, "size": suite.size,
                "licence": suite.licence, "present": not missing, "missing": missing,
                "left_out": [] if missing else suite.left_out(data),
            }
        )  # fmt: skip
    left = (0, 1, 2, 3, 4)
    overview = [
        [
            record["name"], _presence(record),
            record["shift"], _model_names(record["models"]), record["size"], str(record["classes"]),
        ]
        for record in records
    ]  # fmt: skip
    contents = [[record["name"], record["source"], record["targets"], record["licence"]] for record in records]
    tables = [
        Table(("suite", "data", "shift", "models", "size", "classes"), overview, "Suites", left=left),
        Table(("suite", "source", "targets", "licence"), contents, "What they are", left=left[:4]),
    ]
    flat = [
        record
        | {"models": _model_names(record["models"])}
        | {name: " ".join(record[name]) for name in ("missing", "left_out")}
        for record in records
    ]
    return Document(records, flat, tables, [f"Data folder: {data}"])


def _presence(record: Mapping[str, Any]) -> Cell:
    """Say whether the data of a suite is there: all of it, in part, or not."""
    if not record["present"]:
        return Cell("no", style="dim")
    return Cell("in part", style="yellow") if record["left_out"] else Cell("yes", style="green")


def _model_names(models: str | Sequence[str]) -> str:
    """Name the models, or their number where they are many."""
    if isinstance(models, str):
        return models
    return ", ".join(models) if len(models) <= 3 else f"{len(models)} models"


def result_document(
    measured: Mapping[str, Any], reported: Mapping[str, Any], suites: Sequence[str] | None = None
) -> Document:
    """Return measured beside reported numbers, and the paper's claims with a verdict each.

    Parameters
    ----------
    measured, reported
        The two records.
    suites
        Some of them; None for all that were measured, or for the paper's own where nothing was.
    """
    if suites is None and not measured["experiments"] and not measured["training_time"]:
        suites = [suite.name for suite in SUITES.values() if suite.same_setting]
    waiting: list[str] = []
    if suites is not None:
        waiting = [name for name in suites if name not in measured["experiments"].get("main", {})]
        if unknown := [name for name in waiting if not (get_suite(name).paper or get_suite(name).same_setting)]:
            raise InputError(f"no results of {', '.join(unknown)} yet; run `leadline bench run {unknown[0]}` first.")
        measured = _only(measured, suites)
    main = measured["experiments"].get("main", {})
    claims = [claim for claim in check_claims(measured) if suites is None or claim.verdict != "no data"]
    tables = [
        suite_table(main),
        *_side_by_side(main, reported, [row for name in waiting for row in get_suite(name).paper]),
        *graph_tables(main, reported, wanted=any(get_suite(name).graphs for name in waiting)),
        _agreement_table(main, "r2", "Measured: R2 against y = x"),
        _agreement_table(main, "rho", "Measured: Pearson correlation of estimates and truths"),
        *network_tables(main),
        *target_tables(main),
    ]
    tables += [experiment_table(name, entries) for name, entries in measured["experiments"].items() if name != "main"]
    tables += [time_table(measured["training_time"]), _claims_table(claims)]
    data = {"measured": measured, "reported": reported, "claims": [claim.to_dict() for claim in claims]}
    notes = [f"{name} was not measured; `leadline bench reproduce {name}` does it." for name in waiting]
    return Document(data, _records(main, reported), [table for table in tables if table.rows], [*notes, _LEGEND])


def _only(measured: Mapping[str, Any], suites: Sequence[str]) -> dict[str, Any]:
    """Return what was measured on some suites, without the training times, which belong to none."""
    experiments = {
        experiment: kept
        for experiment, entries in measured["experiments"].items()
        if (kept := {name: entry for name, entry in entries.items() if name in suites})
    }
    bands = {name: entry for name, entry in measured.get("bands", {}).items() if name in suites}
    return {"experiments": experiments, "training_time": [], "bands": bands}


def _records(main: Mapping[str, Any], reported: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one flat row per suite, group of targets and method."""
    paper = reported_scores(reported)
    records: list[dict[str, Any]] = []
    for suite, entry in main.items():
        groups = {"all": entry["all"]} | entry["paper_rows"]
        for group, scores in groups.items():
            for method, score in scores.items():
                theirs = paper.get(group, {}).get(method, {})
                records.append(
                    {"suite": suite, "targets": group, "method": method, "version": entry["version"]}
                    | {f"measured_{name}": score[name] for name in ("mae", "std", "seed_std", "r2", "rho", "rows")}
                    | {f"reported_{name}": theirs.get(name) for name in ("mae", "std")}
                )
    return records


def _cell(score: Mapping[str, Any] | None, best: float | None, *, digits: int = 1) -> Cell:
    """Write an error and its deviation in points; the smallest stands out."""
    if score is None:
        return Cell("")
    return Cell(error_text(score, 100.0, digits=digits), style="bold green" if score["mae"] == best else "")


def _name(suite: str, entry: Mapping[str, Any]) -> str:
    """Mark suites that are not the paper's own."""
    return suite if entry["same_setting"] else f"{suite} ~"


def _methods(main: Mapping[str, Any]) -> list[str]:
    """Return what was run, in the order of the registry; variants that it does not know come last."""
    found = dict.fromkeys(method for entry in main.values() for method in entry["all"])
    return [method for method in METHODS if method in found] + [method for method in found if method not in METHODS]


def suite_table(main: Mapping[str, Any]) -> Table:
    """Return all methods on all suites."""
    groups = {_name(suite, entry): errors_of(entry["all"]) for suite, entry in main.items()}
    return _error_table("suite", groups, _methods(main), "Measured: all targets of each suite")


def network_tables(main: Mapping[str, Any]) -> list[Table]:
    """Return all methods with each network, for each suite of graphs; "all" holds those of the paper."""
    return [
        _error_table(
            "network",
            {"all": errors_of(entry["all"])} | {kind: errors_of(scores) for kind, scores in entry["by_kind"].items()},
            _methods({suite: entry}),
            f"Measured: each network, {_name(suite, entry)}",
        )
        for suite, entry in main.items()
        if "by_kind" in entry
    ]


def target_tables(main: Mapping[str, Any]) -> list[Table]:
    """Return all methods on each target, for each suite that has few of them."""
    return [
        _error_table(
            "target",
            entry["by_target"],
            _methods({suite: entry}),
            f"Measured: each target, {_name(suite, entry)}",
        )
        for suite, entry in main.items()
        if 1 < len(entry.get("by_target", ())) <= _FEW_TARGETS
    ]


def _error_table(what: str, groups: Mapping[str, Mapping[str, float]], variants: Sequence[str], title: str) -> Table:
    """Return the errors of variants on groups of estimates in points; the smallest of each group stands out."""
    rows: list[list[Cell | str]] = []
    for name, errors in groups.items():
        best = min(errors.values())
        cells = [
            Cell(f"{100 * errors[variant]:.1f}", style="bold green" if errors[variant] == best else "")
            if variant in errors
            else Cell("")
            for variant in variants
        ]
        rows.append([name, *cells])
    return Table((what, *variants), rows, title)


def _side_by_side(main: Mapping[str, Any], reported: Mapping[str, Any], wanted: Sequence[str]) -> list[Table]:
    """Return a table for each row of the paper that something measured can be held against, or that is wanted."""
    paper = reported_scores(reported)
    tables = []
    for paper_row, theirs in paper.items():
        ours = {
            suite: entry["paper_rows"][paper_row] for suite, entry in main.items() if paper_row in entry["paper_rows"]
        }
        if not ours and paper_row not in wanted:
            continue
        lowest = min(score["mae"] for score in theirs.values())
        best = {
            suite: min((score["mae"] for method, score in scores.items() if method in theirs), default=None)
            for suite, scores in ours.items()
        }
        rows: list[list[Cell | str]] = []
        for method, score in theirs.items():
            if method.endswith(PAPER_SUFFIX) and not any(method in scores for scores in ours.values()):
                continue  # the paper's number stands beside our own choices already
            measured = [_cell(scores.get(method), best[suite], digits=2) for suite, scores in ours.items()]
            stated = Cell(error_text(score, 100.0, digits=2), style="bold" if score["mae"] == lowest else "")
            rows.append([method, stated, *measured])
        header = ("method", "reported", *(f"measured: {_name(suite, main[suite])}" for suite in ours))
        tables.append(Table(header, rows, f"The paper's row {paper_row}"))
    return tables


def _agreement_table(main: Mapping[str, Any], measure: str, title: str) -> Table:
    """Return R2 or the correlation of every method on every suite."""
    methods = _methods(main)
    rows: list[list[Cell | str]] = []
    for suite, entry in main.items():
        values = [entry["all"].get(method, {}).get(measure) for method in methods]
        rows.append([_name(suite, entry), *("" if value is None else f"{value:.2f}" for value in values)])
    return Table(("suite", *methods), rows, title)


def experiment_table(experiment: str, entries: Mapping[str, Any], paper_row: str | None = None) -> Table:
    """Return the variants of an experiment, one per line, on each suite: all its targets, or a row of the paper."""
    found = {
        suite: entry["all"] if paper_row is None else entry["paper_rows"][paper_row]
        for suite, entry in entries.items()
        if paper_row is None or paper_row in entry["paper_rows"]
    }
    variants = list(dict.fromkeys(variant for scores in found.values() for variant in scores))
    lowest = {suite: min(score["mae"] for score in scores.values()) for suite, scores in found.items()}
    rows: list[list[Cell | str]] = [
        [variant, *(_cell(scores.get(variant), lowest[suite]) for suite, scores in found.items())]
        for variant in variants
    ]
    header = ("variant", *(_name(suite, entries[suite]) for suite in found))
    about = "" if paper_row is None else f", {paper_row}"
    return Table(header, rows, f"Measured: experiment {experiment}{about}")


def time_table(times: Sequence[Mapping[str, Any]]) -> Table:
    """Return the paper's training times beside ours."""
    order = [size.dataset for size in TRAINING_SIZES]
    rows = [
        [
            entry["dataset"], f"{entry['n_samples']:,}", str(entry["n_classes"]), f"{entry['n_anchors']:,}",
            f"about {entry['reported_seconds']:g} s", f"{entry['seconds']:.1f} s",
            str(entry["epochs"]), f"{entry['seconds_per_epoch']:.2f} s",
        ]
        for entry in sorted(times, key=lambda entry: order.index(entry["dataset"]))
    ]  # fmt: skip
    header = (
        "dataset",
        "samples",
        "classes",
        "anchors",
        "reported",
        "measured",
        "epochs",
        "per epoch",
    )
    return Table(header, rows, "Training time of ALSA-G: reported on GPUs, measured on synthetic logits of that size")


def _claims_table(claims: Sequence[Claim]) -> Table:
    """Return the verdicts."""
    styles: Mapping[str, str] = {"holds": "green", "holds in part": "yellow", "does not hold": "red", "no data": "dim"}
    rows: list[list[Cell | str]] = [
        [
            claim.claim, Cell(claim.verdict, style=styles[claim.verdict]),
            "paper's data" if claim.own_data else "similar data" if claim.evidence else "", claim.evidence,
        ]
        for claim in claims
    ]  # fmt: skip
    return Table(("claim", "verdict", "on", "evidence"), rows, "Claims of the paper", left=(0, 1, 2, 3))
