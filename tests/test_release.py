"""What a release says of itself agrees: version, floors, citation, changelog, notes on data of others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import footprint
import release_check
from leadline.bench.datasets import SUITES
from leadline.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
THIRD_PARTY = (ROOT / "THIRD_PARTY.md").read_text()
FLOOR = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<version>[\d.]+)")
#: Extras whose lowest versions are installed and tested.
EXTRAS = ("demo", "report", "monitor", "postgres")


def version_parts(text: str) -> tuple[int, ...]:
    """Return a version without zeros at its end: 1.26.0 is 1.26."""
    return tuple(int(part) for part in re.sub(r"(\.0)+$", "", text).split("."))


def test_the_lowest_versions_are_the_floors() -> None:
    needed = [*PROJECT["dependencies"], *(need for name in EXTRAS for need in PROJECT["optional-dependencies"][name])]
    floors = {found["name"]: found["version"] for need in needed if (found := FLOOR.fullmatch(need))}
    assert len(floors) == len([need for need in needed if not need.startswith("leadline[")])
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: version_parts(version) for name, version in lowest.items()} == {
        name: version_parts(version) for name, version in floors.items()
    }


def test_the_lowest_python_is_the_first_of_the_classifiers() -> None:
    assert PROJECT["requires-python"] == f">={release_check.classified()[0]}"


def test_the_version_is_stated_once_and_cited() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"(?m)^version: (.+)$", citation) == [__version__]


def test_the_citation_names_the_paper() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert "ALSA: Anchors in Logit Space for Out-of-Distribution Accuracy Estimation" in citation
    assert re.findall(r"family-names: (\w+)", citation) == ["Liu", "Baktashmotlagh", "Tang", "Huang", "Qiu"]


def test_the_changelog_keeps_its_form() -> None:
    before, *versions = re.split(r"(?m)^## ", (ROOT / "CHANGELOG.md").read_text())
    assert "keepachangelog.com" in before
    titles = [part.partition("\n")[0] for part in versions]
    assert titles[0] == "[Unreleased]"
    for title in titles[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", title), title
    assert titles[1].startswith(f"[{__version__}]")
    for part in versions:
        preface, *sections = re.split(r"(?m)^### ", part)
        assert "\n- " not in preface, "every entry is in a section"
        names = [section.partition("\n")[0] for section in sections]
        assert len(names) == len(set(names))
        assert set(names) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_data_of_others_is_noted(suite: Any) -> None:
    rows = [line for line in THIRD_PARTY.splitlines() if f"`{suite.name}`" in line]
    assert rows, f"{suite.name} is not in THIRD_PARTY.md"
    said = " ".join(rows)
    assert [one.url for one in suite.downloads if one.url not in said] == []
    assert [part for part in suite.licence.split("; ") if part not in THIRD_PARTY] == []
    links = re.findall(r"https://[\w./?=-]+\w", suite.instructions)
    assert [link for link in links if link not in said] == []


def test_the_page_of_footprints_shows_what_was_measured() -> None:
    shown = footprint.page(footprint.load())
    assert footprint.PAGE.read_text() == shown, "run `python benchmarks/footprint.py --page`"
    made_up = {
        "version": "9.8.7", "packages": 3, "bytes": 987e6, "cpu_seconds": {"python": 0.02, "import": 0.25},
        "date": "2026-01-01", "machine": {"python": "3.11.7", "load_before": 0.1, "cores": 2},
    }  # fmt: skip
    other = footprint.page({"leadline": made_up})
    assert "| Leadline | 9.8.7 | 3 | 987 MB | 0.25 s |" in other
    assert "Not measured yet: NannyML, Evidently." in other
