"""Write the tables of results/measured.json and of docs/studies into the pages that show them.

A page marks the place of a table, and what is between the marks is replaced::

    <!-- measured: suites -->
    <!-- end -->

    python benchmarks/pages.py [MEASURED_FOLDER]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from leadline.bench.claims import check_claims
from leadline.bench.graphs.paper_tables import graph_tables
from leadline.bench.records import load_measured, load_reported
from leadline.bench.result_tables import (
    experiment_table,
    network_tables,
    result_document,
    suite_table,
    target_tables,
)
from leadline.results.render import Document, Table, render
from study_tables import study_tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
_DOCS = (
    "benchmark.md",
    "benchmark-tables.md",
    "graphs.md",
    "which-method.md",
    "guides/release.md",
    "research/families.md",
)
PAGES = (ROOT / "README.md", *(ROOT / "docs" / name for name in _DOCS))
_PART = re.compile(r"(<!-- measured: (?P<name>.+?) -->\n).*?(<!-- end -->)", re.S)


def parts(measured: Mapping[str, Any]) -> dict[str, str]:
    """Return every part that a page may show, by name, in Markdown."""
    experiments, reported = measured["experiments"], load_reported()
    main = experiments["main"]
    graphs = {name: entry for name, entry in main.items() if "by_kind" in entry}
    digits = [
        experiment_table(name, entries, "MNIST/MNIST-M")
        for name, entries in experiments.items()
        if name.startswith(("init", "ablation", "alpha"))
    ]
    claims = [
        [claim.claim, claim.verdict, "" if not claim.evidence else "paper's" if claim.own_data else "similar"]
        for claim in check_claims(measured)
    ]
    tables = {
        "suites": [suite_table(main)],
        "claims": [Table(("claim", "verdict", "data"), claims, left=(0, 1, 2))],
        "MNIST-M": [table for table in digits if table.rows],
        "networks": [*network_tables(graphs), *target_tables(graphs)],
        "graphs beside the paper's": graph_tables(graphs, reported, wanted=False),
        "everything": result_document(measured, reported).tables,
        **study_tables(),
    }
    return {name: render(Document([], [], found), "md", Console()) for name, found in tables.items()}


def filled(page: str, found: Mapping[str, str]) -> str:
    """Return the text of a page with its marked parts replaced."""
    return _PART.sub(lambda part: f"{part[1]}\n{found[part['name']]}\n{part[3]}", page)


def main(folder: Path = RESULTS) -> None:
    """Fill all pages."""
    found = parts(load_measured(folder))
    for path in PAGES:
        path.write_text(filled(path.read_text(), found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
