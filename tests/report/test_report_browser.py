"""The page in a real browser: no errors, the numbers of the JSON, the answer first on a phone, everything in print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.data.outputs import Outputs
from leadline.report.building import build_report
from leadline.report.page import html_page, json_text
from leadline.report.pictures import report_pictures
from leadline.results.gate import Gate
from leadline.results.render import interval, percent

METHODS = ("alsa-g", "ac", "doc", "atc-mc")


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
    parts = page.query_selector_all("main > details")
    titles = [part.query_selector("h2").text_content() for part in parts]
    for target in data["targets"]:
        part = parts[titles.index(target["target"])]
        cells = part.evaluate(
            "part => [...part.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
        )
        shown = {(row[0].removesuffix(" (main)"), len(row)): row[1:] for row in cells}
        rows = {name: row for (name, _), row in shown.items()}
        assert target["answer"] in part.text_content()
        for check in target["checks"]:
            assert rows[check["name"]][1] == check["text"]
        for row in target["methods"]:
            assert rows[row["method"]][0] == percent(row["accuracy"])
        labelled = target["truth"] is not None
        for line in target["segments"]:
            expected = [
                percent(line["accuracy"]),
                interval(line["interval"]),
                str(line["count"]),
                percent(line["share"]),
            ]
            assert shown[line["name"], 6 + labelled][:4] == expected
        for line in target["by_class"]:
            accuracy = percent(line["accuracy"]) or "never predicted"
            assert shown[line["name"], 7 + labelled][:3] == [accuracy, str(line["count"]), percent(line["share"])]
        # One interval, said once.
        methods = part.query_selector("details:has(td[data-label='is right when'])").text_content()
        assert methods.count(interval(target["interval"])) == 1
    page.close()


@pytest.fixture(scope="module", params=[2, 77])
def single(
    request: pytest.FixtureRequest, make_outputs: Callable[..., Outputs], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """A page on one drifted target with segments and a gate, and its JSON."""
    c: int = request.param
    source = make_outputs(n=600, c=c, signal=4.0)
    drifted = make_outputs(n=600, c=c, seed=1, signal=3.0)
    drifted.logits[:, 0] += 2
    targets = {
        "week_2026_32": Outputs(drifted.logits, metadata={"shop": np.array(["a", "b", "c"])[np.arange(600) % 3]})
    }
    report = build_report(source, targets, methods=["auto", "ac", "doc", "cot"], by="shop", gate=Gate(0.5))
    pictures = report_pictures(report, source, targets)
    path = tmp_path_factory.mktemp("single") / "report.html"
    path.write_text(html_page(report, pictures), encoding="utf-8")
    return path, json.loads(json_text(report, pictures))


def test_a_phone_shows_the_answer_first(browser: Any, single: tuple[Path, Any]) -> None:
    path, data = single
    (target,) = data["targets"]
    page = browser.new_page()
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(path.as_uri())
    first = page.query_selector("header")
    box = first.bounding_box()
    assert box["y"] + box["height"] <= 740
    said = first.inner_text()
    for text in (
        percent(target["accuracy"]),
        interval(target["interval"]),
        target["verdict"],
        target["gate"],
        target["next_step"],
        target["reliance"],
    ):
        assert text in said
    assert page.evaluate("document.documentElement.scrollHeight") <= 2500
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_on_either_background(scheme: str, browser: Any, single: tuple[Path, Any]) -> None:
    page = browser.new_page()
    page.emulate_media(color_scheme=scheme)
    page.goto(single[0].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    levels = page.evaluate("""() => {
      const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number)
        .map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const back = light(getComputedStyle(document.body).backgroundColor);
      return [...document.querySelectorAll('h1, h2, p, td, th, small, figcaption, footer')].map(part => {
        const text = light(getComputedStyle(part).color);
        return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05); });
    }""")
    assert min(levels) >= 4.5  # what WCAG asks for of small text
    page.close()


def test_page_prints_everything(browser: Any, written: tuple[Path, Any], tmp_path: Path) -> None:
    path, _ = written
    page = browser.new_page()
    page.goto(path.as_uri())
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 20_000
    visible = "part.checkVisibility()"
    folded = f"[...document.querySelectorAll('details *')].filter(part => !{visible})"
    page.emulate_media(media="screen")
    assert page.evaluate(f"{folded}.length") > 0
    page.emulate_media(media="print")
    assert page.evaluate(f"{folded}.length") == 0
    heights = page.evaluate(
        "[...document.querySelectorAll('.table, img')].map(part => part.getBoundingClientRect().height)"
    )
    assert min(heights) > 10
    page.close()
