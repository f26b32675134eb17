"""The page in a real browser: no errors, the numbers of the JSON, and no sideways scrolling on a phone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.data.outputs import Outputs
from leadline.report.content import build_report
from leadline.report.page import html_page, json_text
from leadline.report.pictures import report_pictures
from leadline.results.render import interval, percent

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
METHODS = ("alsa-g", "ac", "doc", "atc-mc")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Debian's Chromium with an empty profile, or skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed; run `sh tests/install_chromium.sh`")
    with playwright.sync_playwright() as running:
        profile = tmp_path_factory.mktemp("chromium")
        context = running.chromium.launch_persistent_context(
            profile, executable_path=program, args=FLAGS, headless=True
        )
        yield context
        context.close()


@pytest.fixture(scope="module", params=[2, 10, 100])
def written(
    request: pytest.FixtureRequest, make_outputs: Callable[..., Outputs], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """A page on disk and its JSON, for a number of classes."""
    c: int = request.param
    source = make_outputs(n=500, c=c, signal=2.5)
    segments = np.array(["web", "a-very-long-segment-name-without-any-break-" * 3])[np.arange(300) % 2]
    targets = {
        "monday": make_outputs(c=c, seed=1, signal=2.0, metadata={"channel": segments}),
        "a_target_whose_name_is_long_and_has_no_break_" * 3: Outputs(
            make_outputs(c=c, seed=2, signal=1.5).logits, metadata={"channel": segments}
        ),
    }
    report = build_report(source, targets, method="alsa-g", methods=METHODS, by="channel")
    pictures = report_pictures(report, source, targets)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_page(report, pictures), encoding="utf-8")
    return path, json.loads(json_text(report, pictures))


@pytest.mark.parametrize("width", [390, 1280])
def test_page_renders_and_holds(width: int, browser: Any, written: tuple[Path, Any]) -> None:
    path, data = written
    page = browser.new_page()
    problems: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    assert problems == []
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sizes = page.evaluate(
        "[...document.images].map(image => [image.naturalWidth, image.getBoundingClientRect().right])"
    )
    assert len(sizes) == len(data["figures"])
    assert all(natural > 0 and right <= width for natural, right in sizes)
    hidden = page.evaluate(
        "[...document.querySelectorAll('.table')].filter(part => part.scrollWidth > part.clientWidth + 1).length"
    )
    assert hidden == 0
    page.close()


def test_numbers_on_the_page_are_those_of_the_json(browser: Any, written: tuple[Path, Any]) -> None:
    path, data = written
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.inner_text(".answer") == data["headline"]
    sections = page.query_selector_all("section")
    titles = [section.query_selector("h2").inner_text() for section in sections]
    for target in data["targets"]:
        section = sections[titles.index(target["target"])]
        cells = section.evaluate(
            "part => [...part.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
        )
        shown = {row[0].removesuffix(" (main)"): row[1:] for row in cells}
        assert target["answer"] in section.text_content()
        for check in target["checks"]:
            assert shown[check["name"]][1] == check["text"]
        for row in target["methods"]:
            assert shown[row["method"]][:2] == [percent(row["accuracy"]), interval(row["interval"])]
        for line in target["segments"]:
            assert shown[line["name"]][:3] == [
                percent(line["accuracy"]),
                interval(line["interval"]),
                str(line["count"]),
            ]
        for line in target["by_class"]:
            expected = percent(line["accuracy"]) or "never predicted"
            assert shown[line["name"]][:3] == [expected, str(line["count"]), percent(line["share"])]
    page.close()


def test_page_prints_everything(browser: Any, written: tuple[Path, Any], tmp_path: Path) -> None:
    path, _ = written
    page = browser.new_page()
    page.goto(path.as_uri())
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    page.emulate_media(media="print")
    folded = page.query_selector("details .table")
    if folded is not None:
        assert folded.bounding_box()["height"] > 100
    page.close()
