"""The monitor's page as text: the answer first, every number that was given, everything escaped, and light."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from leadline.monitor.page import render_page
from leadline.monitor.records import AlarmState, TrackRecord, Watched
from leadline.results.render import interval, percent
from watched_series import MADE_AT, make_watched

SHOPS = [f"shop {number:02d}" for number in range(100)]


class Parsed(HTMLParser):
    """The words of a page, what it refers to, what can be referred to, and whether its elements close."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words = ""
        self.header = ""
        self.links: list[str] = []
        self.ids: list[str] = []
        self.handlers: list[str] = []
        self.scripts = 0
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.scripts += tag == "script" and "type" not in values
        if tag not in ("meta", "link", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "link", "br"):
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.words += data + " "
            if "header" in self._open:
                self.header += data


def rendered(*watched: Watched) -> Parsed:
    return Parsed(render_page(watched, made_at=MADE_AT))


# -------------------------------------------------------------------------------------------------- the answer
def test_the_answer_says_what_fell_since_when_and_how_far() -> None:
    watched = make_watched(60, drop=50, labelled=30)
    latest, (alarm, _) = watched.points[-1], watched.alarms
    page = rendered(watched)
    assert (
        f"fraud: estimated accuracy fell since {alarm.first.start.day} November: {percent(latest.accuracy)} "
        f"({interval(latest.interval)}) in the latest window, 17 November; 91.5 % on the source; 1 alarm open."
        in page.header
    )
    assert "✗ not fine" in page.header
    assert alarm.reason.split(". ")[0] in page.header  # the rest is one click away
    assert alarm.reason in page.words


def test_a_model_without_alarms_is_fine() -> None:
    page = rendered(make_watched(5))
    assert "✓ fine" in page.header
    assert "no alarm open" in page.header


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("fall", "accuracy fell since"),
        ("floor", "accuracy is below the floor of 80.0 % since"),
        ("no-data", "no data since"),
        ("a-rule-of-tomorrow", "a-rule-of-tomorrow since"),
    ],
)
def test_every_rule_has_its_words(rule: str, words: str) -> None:
    watched = make_watched(30, drop=25, labelled=20)
    watched = replace(watched, alarms=(replace(watched.alarms[0], rule=rule),))
    assert words in rendered(watched).header


def test_other_alarms_are_named_too() -> None:
    watched = make_watched(30, drop=25)
    alarm = watched.alarms[0]
    both = replace(watched, alarms=(replace(alarm, number=8, rule="no-data"), alarm))
    header = rendered(both).header
    assert "estimated accuracy fell since" in header
    assert "; also no data since 14 November; 2 alarms open." in header


def test_an_alarm_by_labels_says_what_the_labels_say() -> None:
    watched = make_watched(30, drop=25, labelled=20)
    watched = replace(watched, alarms=(replace(watched.alarms[0], rule="fall"),))
    found = watched.points[19].realised
    assert found is not None
    assert f"say {percent(found.accuracy)} ({interval(found.interval)})" in rendered(watched).header


def test_information_is_no_harm_and_closed_alarms_are_over() -> None:
    watched = make_watched(30, drop=25)
    alarm = watched.alarms[0]
    changed = replace(watched, alarms=(replace(alarm, rule="changed", harmful=False),))
    assert "! take care" in rendered(changed).header
    closed = replace(watched, alarms=(replace(alarm, state=AlarmState.CLOSED),))
    assert "✓ fine" in rendered(closed).header
    acknowledged = rendered(replace(watched, alarms=(replace(alarm, state=AlarmState.ACKNOWLEDGED),)))
    assert "✗ not fine" in acknowledged.header
    assert "1 alarm acknowledged" in acknowledged.header


def test_those_that_are_not_fine_come_first() -> None:
    page = rendered(make_watched(20, name="first"), make_watched(30, name="second", drop=20))
    assert "2 models: 1 not fine (second), 1 fine." in page.header
    assert page.header.index("second:") < page.header.index("first:")


def test_the_record_is_in_the_header() -> None:
    watched = replace(make_watched(40, labelled=30), record=TrackRecord(30, 27, 0.9, 0.012))
    header = rendered(watched).header
    assert "in 27 of 30 labelled windows; nominal 90 %." in header
    assert "off by 1.2 points on average" in header
    assert "fewer than promised" not in header
    poor = replace(watched, record=TrackRecord(30, 20, 0.9, 0.05))
    assert "fewer than promised" in rendered(poor).header


def test_without_labels_the_page_says_so_and_what_to_do() -> None:
    header = rendered(make_watched(10)).header
    assert "No labels have come yet" in header
    assert "leadline plan" in header


def test_labels_that_are_too_few_are_not_called_none() -> None:
    watched = make_watched(10, labelled=5)
    header = rendered(replace(watched, record=TrackRecord(0, 0, 0.9, None))).header
    assert "labels that came are too few" in header


def test_nothing_to_show_is_said() -> None:
    assert "No series is watched yet." in rendered().header
    empty = replace(make_watched(3), points=(), segments={})
    assert "no data yet" in rendered(empty).header


# ------------------------------------------------------------------------------------------------- the windows
@pytest.mark.parametrize("every", ["1h", "1d", "1w", "1mo", "5000 rows"])
@pytest.mark.parametrize("windows", [1, 2, 3, 30])
def test_every_number_is_in_the_table(every: str, windows: int) -> None:
    watched = make_watched(windows, every=every, labelled=windows // 2)
    page = rendered(watched)
    for point in watched.points:
        assert percent(point.accuracy) in page.words
        assert interval(point.interval) in page.words
        if point.realised is not None:
            assert interval(point.realised.interval) in page.words


@pytest.mark.parametrize(
    ("every", "name"),
    [
        ("1h", "18 November, 01:00"),
        ("1d", "17 November"),
        ("1w", "week of 9 November"),
        ("1mo", "October"),
        ("5000 rows", "window 19 (10 November)"),
    ],
)
def test_windows_are_called_by_their_time(every: str, name: str) -> None:
    page = rendered(make_watched(20, every=every))
    assert f"in the latest window, {name};" in page.header


def test_times_of_other_years_are_named_with_them() -> None:
    assert "18 November 2025: " in rendered(make_watched(365)).words


def test_every_link_leads_somewhere_on_the_page() -> None:
    page = rendered(make_watched(60, drop=50, labelled=20, segments=SHOPS[:20]), make_watched(3, name="b"))
    inner = [link for link in page.links if not link.startswith("data:")]
    assert len(set(page.ids)) == len(page.ids)
    assert all(link.startswith("#") and link[1:] in page.ids for link in inner)
    windows = re.compile(r"#s\dw-?\d+")
    assert len({link for link in inner if windows.fullmatch(link)}) == 63  # every window has its explanation


def test_an_explanation_names_what_pulls_the_accuracy_down() -> None:
    watched = make_watched(60, drop=50, segments=SHOPS[:6])
    page = render_page([watched], made_at=MADE_AT)
    at = watched.alarms[0].first.number
    start = page.index(f'<div id="s0w{at}">')
    told = page[start : page.index("</details>", start)]
    point = next(point for point in watched.points if point.window.number == at)
    fraud, first = point.by_class[0], next(one for one in watched.segments["shop 00",] if one.window.number == at)
    assert fraud.accuracy is not None
    for name, accuracy, rows in (("fraud", fraud.accuracy, fraud.count), ("shop 00", first.accuracy, first.n_rows)):
        pull = 100 * (accuracy - point.accuracy) * rows / point.n_rows
        share = percent(rows / point.n_rows)
        assert f"<b>{name}</b> {percent(accuracy)} on {share} of the rows: {pull:+.1f} points" in told
    assert "Alarm 7 was raised here" in told
    assert "honest" not in told  # pulls it up


def test_labels_that_contradict_an_estimate_are_told() -> None:
    watched = make_watched(3, labelled=3)
    first = watched.points[0]
    assert first.realised is not None
    wrong = replace(first, realised=replace(first.realised, accuracy=0.5, interval=(0.45, 0.55), sample="unknown"))
    words = rendered(replace(watched, points=(wrong, *watched.points[1:]))).words
    assert words.count("which contradicts the estimate") == 1
    assert "not known to be a random sample" in words
    assert "labels that may be no random sample" in words  # in the legend


def test_gaps_are_drawn_and_named() -> None:
    whole, broken = (render_page([make_watched(30, gaps=gaps)], made_at=MADE_AT) for gaps in ((), (10, 11, 20)))
    assert 'class="gap"' not in whole
    chart = broken[broken.index('class="chart') : broken.index("</div>", broken.index('class="chart'))]
    assert chart.count('class="gap"') == 2
    line = re.search(r'class="line" d="([^"]*)"', chart)
    assert line is not None
    assert line[1].count("M") == 3


def test_a_window_without_data_at_the_end_is_a_gap() -> None:
    watched = make_watched(30, drop=25)
    late = watched.alarms[0].last
    silent = replace(
        watched, points=watched.points[:-5], alarms=(replace(watched.alarms[0], rule="no-data", last=late),)
    )
    assert 'class="gap"' in render_page([silent], made_at=MADE_AT)


# ------------------------------------------------------------------------------------------- segments and alarms
def test_few_segments_have_a_chart_each_and_many_a_heat_map() -> None:
    few = render_page([make_watched(30, segments=SHOPS[:12])], made_at=MADE_AT)
    assert few.count('class="small"') == 12
    assert "heat-data" not in few.split("<script>")[0]
    many = render_page([make_watched(30, segments=SHOPS[:13])], made_at=MADE_AT)
    assert 'class="small"' not in many
    assert "heat-data" in many.split("<script>")[0]


def test_cells_of_the_heat_map_are_the_segments_windows() -> None:
    watched = make_watched(20, segments=SHOPS[:15], drop=15)
    page = render_page([watched], made_at=MADE_AT)
    stored = re.search(r'class="heat-data">(.*?)</script>', page)
    names = re.findall(r'<li title="([^"]*)">', page)
    assert stored is not None
    data = json.loads(stored[1])
    assert names[0] == "shop 00"  # pulls the accuracy down most
    assert sorted(names) == SHOPS[:15]
    start = watched.points[0].window.number
    for name, cells in zip(names, data["cells"], strict=True):
        expected: list[object] = [0] * 20
        for point in watched.segments[name,]:
            numbers = [round(1000 * value) for value in (point.accuracy, *point.interval)]
            expected[point.window.number - start] = [*numbers, point.n_rows]
        assert cells == expected


def test_segments_beyond_a_hundred_are_counted() -> None:
    page = rendered(make_watched(3, segments=[f"s{number}" for number in range(130)]))
    assert "130 segments" in page.words
    assert "30 more are not shown" in page.words


def test_alarms_are_listed_with_reason_state_and_note() -> None:
    watched = make_watched(60, drop=50, segments=SHOPS[:3])
    page = rendered(watched)
    first, second = watched.alarms
    for text in (first.reason, "▲ open", "Segments: shop 00.", second.reason, "□ closed", f"Note: {second.note}"):
        assert text in page.words


# -------------------------------------------------------------------------------------------------- the page
def test_page_needs_nothing_else() -> None:
    text = render_page([make_watched(30, drop=20, segments=SHOPS[:20], labelled=10)], made_at=MADE_AT)
    page = Parsed(text)
    assert all(link.startswith(("data:", "#")) for link in page.links)
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert "script-src 'sha256-" in text
    assert page.scripts == 1


def test_what_comes_from_data_is_escaped() -> None:
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    watched = make_watched(20, name=evil, segments=[evil, "b\x1b[31m", "c"], drop=12)
    alarm = replace(watched.alarms[0], reason=evil, note=evil, rule=evil)
    point = replace(watched.points[-1], words=evil)
    series = replace(watched.series, method=evil, by=(evil,), model_id=evil)
    watched = replace(watched, series=series, alarms=(alarm,), points=(*watched.points[:-1], point))
    many = make_watched(5, name=evil, segments=[f"{evil}{number}" for number in range(20)])
    page = rendered(watched, many)
    assert page.scripts == 1
    assert page.handlers == []
    assert not any(link == "x" for link in page.links)
    assert evil in page.words
    assert "\x1b" not in page.words


def test_four_hundred_windows_of_a_hundred_segments_stay_light() -> None:
    watched = make_watched(400, segments=SHOPS, labelled=380, drop=390)
    page = render_page([watched], made_at=MADE_AT)
    assert len(page.encode()) < 1_500_000
    assert "the mean of up to 4 days" in Parsed(page).words  # said of the heat map
    assert page.count('class="hit"') == 400  # the chart has every window


def test_thousands_of_windows_are_drawn_together_and_the_page_says_so() -> None:
    watched = make_watched(1000, every="1h")
    page = Parsed(render_page([watched], made_at=MADE_AT))
    assert "Each place is the mean of up to 3 hours." in page.words
    assert len([link for link in page.links if link.startswith("#s0w")]) == 2 * 334
    lowest = min(watched.points, key=lambda point: point.accuracy)
    assert f"with {percent(lowest.accuracy)} ({interval(lowest.interval)}):" in page.words


@pytest.mark.parametrize(
    ("every", "windows", "expected"),
    [
        ("1d", 3, ["15 Nov", "16 Nov", "17 Nov"]),
        ("1d", 400, ["2026", "Apr", "Jul", "Oct"]),
        ("1h", 48, ["12:00", "17 Nov", "12:00", "18 Nov"]),
        ("1w", 20, ["Jul", "Aug", "Sep", "Oct", "Nov"]),
        ("1mo", 18, ["Jul", "Oct", "2026", "Apr", "Jul", "Oct"]),
        ("5000 rows", 25, ["0", "4", "8", "12", "16", "20", "24"]),
    ],
)
def test_ticks_stand_where_the_calendar_turns(every: str, windows: int, expected: list[str]) -> None:
    page = render_page([make_watched(windows, every=every)], made_at=MADE_AT)
    chart = page[page.index('class="chart') : page.index('class="legend"')]
    assert re.findall(r'text-anchor="(?:middle|end)">([^<%]+)</text>', chart) == expected
