"""The monitor's page in a real browser: any width, by mouse and by keyboard, in print, and without its script."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from leadline.monitor.page import render_page
from leadline.monitor.records import Watched
from leadline.results.render import percent
from watched_series import MADE_AT, make_watched

LONG = "a-segment-whose-name-is-long-and-has-no-break-" * 3
OWN = ("file:", "data:")
SHOPS = [f"shop {number}" for number in range(24)]

Shown = dict[str, list[Watched]]
Pages = dict[str, Path]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """What the pages show."""
    return {
        "one": [make_watched(1)],
        "alarm": [make_watched(60, labelled=45, drop=50, gaps={20, 21, 35}, segments=SHOPS[:6])],
        "many": [
            make_watched(200, labelled=180, drop=190, segments=[LONG, *SHOPS]),
            make_watched(20, name="b", every="1h"),
        ],
        "folded": [make_watched(9, name=f"model {number}", seed=number) for number in range(5)],
    }


@pytest.fixture(scope="module")
def written(shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """The pages on disk."""
    folder = tmp_path_factory.mktemp("monitor")
    for name, watched in shown.items():
        (folder / f"{name}.html").write_text(render_page(watched, made_at=MADE_AT), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in shown}


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A new page that must stay without messages and requests."""
    opened = browser.new_page()
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: problems.append(request.url) if request.url[:5] not in OWN else None)
    opened.set_viewport_size({"width": 1280, "height": 800})
    yield opened
    opened.close()
    assert problems == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["one", "alarm", "many", "folded"])
def test_page_fits_any_screen(name: str, width: int, page: Any, written: Pages) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    page.goto(written[name].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    outside = page.evaluate(
        "[...document.querySelectorAll('svg text, svg use, svg line')].map(part => part.getBoundingClientRect())"
        ".filter(box => box.width && (box.left < -1 || box.right > innerWidth + 1)).length"
    )
    assert outside == 0


def test_a_phone_shows_the_answer_first(page: Any, written: Pages) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(written["alarm"].as_uri())
    box = page.query_selector("header").bounding_box()
    assert box["y"] + box["height"] <= 740


def test_a_click_explains_a_window(page: Any, shown: Shown, written: Pages) -> None:
    page.goto(written["alarm"].as_uri())
    (watched,) = shown["alarm"]
    assert page.get_attribute(".panel", "data-shown") == f"s0w{watched.alarms[0].first.number}"
    point = watched.points[4]
    page.click(f"a.hit[href='#s0w{point.window.number}']")
    assert page.get_attribute(".panel", "data-shown") == f"s0w{point.window.number}"
    assert percent(point.accuracy) in page.inner_text(".panel h3")
    assert point.words in page.inner_text(".panel")
    assert "Labels: " in page.inner_text(".panel")
    under = page.evaluate(
        "number => { const [cursor, strip] = ['.cursor', `a[href='#s0w${number}'] rect`].map(name =>"
        " document.querySelector(name).getBoundingClientRect()); return Math.abs(cursor.left - strip.left); }",
        point.window.number,
    )
    assert under < 2


def test_keys_step_through_the_windows(page: Any, shown: Shown, written: Pages) -> None:
    page.goto(written["alarm"].as_uri())
    assert page.evaluate("document.querySelectorAll('.hit[tabindex=\"0\"]').length") == 1  # one stop for Tab
    page.focus(".hit[tabindex='0']")
    seen = []
    for key in ("Home", "ArrowLeft", "ArrowRight", "End"):
        page.keyboard.press(key)
        seen.append(page.get_attribute(".panel", "data-shown"))
    numbers = [point.window.number for point in shown["alarm"][0].points]
    assert seen == [f"s0w{number}" for number in (numbers[0], numbers[0], numbers[1], numbers[-1])]
    page.click("button[aria-label='earlier window']")
    assert page.get_attribute(".panel", "data-shown") == f"s0w{numbers[-2]}"


def test_a_cell_of_the_heat_map_is_read_out(page: Any, shown: Shown, written: Pages) -> None:
    page.goto(written["many"].as_uri())
    names = page.evaluate("[...document.querySelectorAll('.heat li')].map(item => item.textContent)")
    page.focus(".cells svg")
    page.keyboard.press("ArrowUp")  # into the corner above the latest window
    (last, before) = reversed(shown["many"][0].segments[names[0],][-2:])
    rows = last.n_rows + before.n_rows  # 200 windows are drawn two by two
    mean = (last.accuracy * last.n_rows + before.accuracy * before.n_rows) / rows
    assert page.inner_text(".readout").startswith(f"{names[0]}, 16 November to 17 November: {percent(mean)} (")
    assert page.inner_text(".readout").endswith(f" on {rows:,} rows")
    box = page.query_selector(".cells svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)
    assert page.inner_text(".readout").startswith(f"{names[-1]}, ")


def test_links_unfold_what_they_lead_to(page: Any, written: Pages) -> None:
    page.goto(written["folded"].as_uri())
    assert not page.is_visible("#s3")
    page.click("header a[href='#s3']")
    assert page.is_visible("#s3")


def test_the_page_is_whole_without_its_script(page: Any, shown: Shown, written: Pages) -> None:
    whole = written["alarm"].read_text(encoding="utf-8")
    path = written["alarm"].with_name("bare.html")
    path.write_text(whole[: whole.index("<script>")] + "</body></html>", encoding="utf-8")
    page.goto(path.as_uri())
    point = shown["alarm"][0].points[7]
    assert "Alarm 7 was raised here" in page.inner_text(".panel")
    assert not page.is_visible(f"#s0w{point.window.number}")
    page.click(f"a.hit[href='#s0w{point.window.number}']")
    assert page.is_visible(f"#s0w{point.window.number}")
    assert point.words in page.inner_text(f"#s0w{point.window.number}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_on_either_background(scheme: str, page: Any, written: Pages) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(written["alarm"].as_uri())
    levels = page.evaluate("""() => {
      const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number)
        .map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const back = light(getComputedStyle(document.body).backgroundColor);
      const words = [...document.querySelectorAll('h2, p, td, th, li, summary, .reliance')]
        .map(part => getComputedStyle(part).color);
      const drawn = [...document.querySelectorAll('svg text')].map(part => getComputedStyle(part).fill);
      return [...words, ...drawn].map(light)
        .map(text => (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05));
    }""")
    assert min(levels) >= 4.5  # what WCAG asks for of small text


def test_shades_differ_in_grey(page: Any, written: Pages) -> None:
    page.goto(written["many"].as_uri())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        greys = page.evaluate("""() => [0, 1, 2, 3, 4].map(level => {
          const [r, g, b] = getComputedStyle(document.querySelector(`.legend .shade${level}`)).fill
            .match(/[\\d.]+/g).map(Number); return 0.299 * r + 0.587 * g + 0.114 * b; })""")
        steps = [after - before for before, after in pairwise(greys)]
        assert min(steps if scheme == "dark" else [-step for step in steps]) > 20


def test_print_shows_the_pictures_and_leaves_long_lists_out(page: Any, written: Pages, tmp_path: Path) -> None:
    page.goto(written["many"].as_uri())
    page.pdf(path=tmp_path / "monitor.pdf")
    assert (tmp_path / "monitor.pdf").stat().st_size > 20_000
    page.emulate_media(media="print")
    assert not page.is_visible(".long")
    assert page.is_visible(".printed")
    heights = page.evaluate(
        "[...document.querySelectorAll('.chart, .cells svg, .panel, .alarms')].map(part =>"
        " part.getBoundingClientRect().height)"
    )
    assert min(heights) > 10
