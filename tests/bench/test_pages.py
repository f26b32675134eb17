"""The tables on the pages are those of results/measured.json."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

import pages
from leadline.bench.records import load_measured


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return pages.parts(load_measured(pages.RESULTS))


@pytest.mark.parametrize("path", pages.PAGES, ids=lambda path: path.name)
def test_a_page_shows_what_was_measured(path: Path, found: dict[str, str]) -> None:
    text = path.read_text()
    assert "<!-- measured: " in text
    assert pages.filled(text, found) == text, "run `python benchmarks/pages.py`"


def test_every_part_is_shown_and_none_is_empty(found: dict[str, str]) -> None:
    text = "".join(path.read_text() for path in pages.PAGES)
    assert [name for name in found if f"<!-- measured: {name} -->" not in text] == []
    assert [name for name, part in found.items() if not part.strip()] == []


def test_other_numbers_give_another_page(found: dict[str, str]) -> None:
    measured = deepcopy(load_measured(pages.RESULTS))
    measured["experiments"]["main"]["mnist-raw"]["all"]["ac"]["mae"] = 0.987
    changed = pages.parts(measured)
    assert "98.7" in changed["suites"]
    page = "# Title\n\n<!-- measured: suites -->\nold\n<!-- end -->\n\nAfter.\n"
    assert pages.filled(page, changed) != pages.filled(page, found)
    assert pages.filled(page, changed).startswith("# Title\n\n<!-- measured: suites -->\n\n")
    assert pages.filled(page, changed).endswith("\n\n<!-- end -->\n\nAfter.\n")
