"""Documents as text: they fit the terminal and hold nothing that breaks a reader."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.cells import cell_len
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


def shown(document: Document, width: int) -> str:
    return render(document, "table", Console(file=io.StringIO(), width=width))


LONG = ["production_traffic_week_2026-03-02", "mobile-app-checkout-funnel"]
PLACES = ["United Kingdom", "Bosnia and Herzegovina", "de"]


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_names_and_numbers_are_whole_at_any_width(words: int, width: int) -> None:
    header = ["target", "country", "device family"][:words]
    header.extend(["estimated accuracy", "90% interval", "samples", "shift"])
    rows: list[list[Cell | str]] = [
        [
            *[name, place, "iPhone 15 Pro Max"][:words],
            Cell("74.7 %", bar=0.747),
            "66.0 to 83.4 %",
            "1,234,567",
            "unclear",
        ]
        for name in LONG
        for place in PLACES
    ]
    text = shown(Document(None, [], [Table(header, rows, left=range(words))]), width)
    for row in rows:
        for cell in row:
            value = cell.text if isinstance(cell, Cell) else cell
            assert text.count(value) >= sum(cell in other for other in rows), (value, text)
    longest = max(cell_len(line) for line in text.splitlines())
    assert longest <= max(width, 2 + len("device family: iPhone 15 Pro Max"))


def test_sentences_are_broken_between_words() -> None:
    reason = "Accuracy by labels is 66.0% in 3 windows since 2026-03-02, 13.6 points below the 79.7% of the source."
    table = Table(["alarm", "series", "reason"], [["2", "checkout-fraud-classifier-eu", reason]], left=(1, 2))
    for width in (40, 80):
        text = shown(Document(None, [], [table]), width)
        assert "checkout-fraud-classifier-eu" in text
        assert all(word in text for word in reason.split())
        assert max(map(cell_len, text.splitlines())) <= max(width, 44)
