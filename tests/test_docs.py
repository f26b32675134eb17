"""Examples on pages: those with prompts are doctests (see pyproject.toml), the others are run here, page by page.

So are the lines of shell that begin with ``leadline``, on the pages that are to be followed to the letter.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import leadline
from leadline import Estimator, Outputs, write_outputs
from leadline.checks import check_estimator
from leadline.cli import main
from served_models import for_the_page

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    # Pages of the gallery are made by running their scripts; tests/test_gallery.py has those.
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "gallery"),
]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?^ *```(?P<language>python|sh)\n(?P<code>.*?)^ *```$", re.M | re.S
)
PROMPT = ">>> "
#: Pages whose commands are run too: those of others name files and clusters that are not here.
FOLLOWED = re.compile(r"docs/(start|index|guides/.*)\.md")
#: What is not run, by page: each with its reason.
NOT_RUN = {"docs/scale.md": ["needs a Spark session"]}


@dataclass(frozen=True)
class Example:
    """A fenced block of Python without prompts, or of commands."""

    page: str
    line: int
    language: str
    code: str
    reason: str | None

    def run(self, names: dict[str, Any]) -> None:
        """Run it where others of its page may have been run, with errors that point at the page."""
        if self.language == "sh":
            for line in self.code.splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["leadline"]:
                    assert main(words[1:]) == 0, f"{self.page}: {line}"
            return
        exec(compile("\n" * self.line + self.code, self.page, "exec"), names)


def examples(path: Path) -> list[Example]:
    """Return the examples of a page that are no doctests."""
    text, page = path.read_text(), path.relative_to(ROOT).as_posix()
    return [
        Example(
            page, text.count("\n", 0, found.start("code")), found["language"], dedent(found["code"]), found["reason"]
        )
        for found in BLOCK.finditer(text)
        if PROMPT not in found["code"] and (found["language"] == "python" or FOLLOWED.fullmatch(page))
    ]


BY_PAGE = {path.relative_to(ROOT).as_posix(): found for path in PAGES if (found := examples(path))}


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_outputs: Callable[..., Outputs]) -> dict[str, Any]:
    """Return the names that pages take for granted, in a folder with the files that they name."""
    monkeypatch.chdir(tmp_path)
    source, target = make_outputs(), make_outputs(seed=1, signal=1.0)
    write_outputs(source, "validation.npz")
    write_outputs(target, "monday.npz")
    leadline.make("ac").fit(source.logits, source.labels).save("model.leadline")
    days = np.datetime64("2026-01-01", "us") + np.arange(300) * np.timedelta64(1, "h")
    countries = np.array(["de", "fr"])[np.arange(300) % 2]
    Path("logs").mkdir()
    write_outputs(Outputs(target.logits, metadata={"time": days, "country": countries}), "logs/week.parquet")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the databases need packages that mlflow-skinny lacks
    return {"__name__": "example", "logits": target.logits} | for_the_page(tmp_path)


def test_every_fence_is_found() -> None:
    for path in PAGES:
        fences = re.findall(r"```(?:python|sh)$", path.read_text(), re.M)
        assert len(BLOCK.findall(path.read_text())) == len(fences), path
    assert {"CONTRIBUTING.md", "docs/figures.md", "docs/scale.md"} <= set(BY_PAGE)


def test_what_is_not_run_is_listed() -> None:
    marked = {page: [example.reason for example in found if example.reason] for page, found in BY_PAGE.items()}
    assert {page: reasons for page, reasons in marked.items() if reasons} == NOT_RUN


@pytest.mark.parametrize(("page", "reason"), [(page, reason) for page, all_of in NOT_RUN.items() for reason in all_of])
def test_example_that_is_not_run(page: str, reason: str) -> None:
    (example,) = [example for example in BY_PAGE[page] if example.reason == reason]
    compile(example.code, page, "exec")
    pytest.skip(f"{page}: {reason}")


@pytest.mark.parametrize("page", BY_PAGE)
def test_examples_run(page: str, names: dict[str, Any]) -> None:
    for example in BY_PAGE[page]:
        if example.reason is None:
            example.run(names)
    written = [
        thing
        for thing in names.values()
        if isinstance(thing, type) and issubclass(thing, Estimator) and thing.__module__ == "example"
    ]
    assert [cls.__name__ for cls in written] == (["SurerThanACoin"] if page == "CONTRIBUTING.md" else [])
    for cls in written:
        check_estimator(cls())


@pytest.fixture(autouse=True)
def _close_figures() -> Any:
    yield
    from matplotlib import pyplot

    pyplot.close("all")
