"""Documents as text: they fit the terminal and hold nothing that breaks a reader."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

import leadline
from leadline.results.render import Cell, Document, Table, bar, render


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_tables_fit_their_terminal(width: int) -> None:
    cells: list[Cell | str] = [Cell("97.5 %", bar=0.975), "97.0 to 98.0 %", "1,000"]
    table = Table(["target", "estimated accuracy", "interval", "samples"], [["a" * 30, *cells], ["b", *cells]])
    document = Document(data=[], records=[], tables=[table], commands=["leadline " + "x" * 300])
    console = Console(file=io.StringIO(), width=width)
    lines = render(document, "table", console).splitlines()
    assert all(len(line) <= width for line in lines[:-1])
    assert any("aaaaaa" in line for line in lines)
    assert ("█" in "".join(lines)) == (width >= 80)
    assert lines[-1] == "  leadline " + "x" * 300


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999, 1.0, 1.7, -1.0])
def test_bars_keep_their_width(share: float) -> None:
    for unicode in (True, False):
        drawn = bar(share, 10, unicode=unicode)
        assert len(drawn) == 10
        filled = sum(character != " " for character in drawn)
        assert abs(filled - 10 * min(max(share, 0.0), 1.0)) <= 1


def test_nan_never_reaches_json() -> None:
    document = Document(
        data={"a": float("nan"), "b": np.float32("inf"), "c": np.arange(2), "d": np.datetime64("2026-01-02")},
        records=[],
        tables=[],
    )
    text = render(document, "json", Console(file=io.StringIO()))
    assert json.loads(text) == {"a": None, "b": None, "c": [0, 1], "d": "2026-01-02"}


def test_unknown_format() -> None:
    with pytest.raises(leadline.InputError, match="format must be one of table, json, csv, md; got 'xml'"):
        render(Document(data=[], records=[], tables=[]), "xml", Console())


def test_numbers_that_do_not_fit_beside_each_other_go_into_further_tables() -> None:
    names = [f"method-{i}" for i in range(12)]
    table = Table(("network", "", *names), [["GCN", "reported", *(f"{i}.25 (0.5)" for i in range(12))]], left=(0, 1))
    text = render(Document(None, [], [table]), "table", Console(width=60))
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("network") == text.count("GCN      reported") == 4
    for i, name in enumerate(names):
        assert name in text
        assert f"{i}.25 (0.5)" in text
    wide = render(Document(None, [], [table]), "table", Console(width=300))
    assert wide.count("network") == 1
