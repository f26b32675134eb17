"""What a notebook shows: the numbers, the worst first, names as text and never as markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import leadline as ll
from leadline import Outputs
from leadline.results.estimates import LeftOut
from leadline.results.markup import html_bar
from leadline.results.render import interval, percent
from leadline.results.views import MOST_LINES

Make = Callable[..., Outputs]
NASTY = ["<b>ant</b>", "<script>alert(1)</script>", "a&b", '"x" onload="y"', "plain"]


class Tags(HTMLParser):
    """The tags of a view, their attributes, and the cells of its tables."""

    def __init__(self, view: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(view)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def source(make_outputs: Make) -> Outputs:
    return make_outputs(n=500, classes=NASTY)


@pytest.fixture(scope="module")
def model(source: Outputs) -> ll.Auto:
    return ll.Auto().fit(source)


@pytest.fixture(scope="module")
def views(model: ll.Auto, source: Outputs, make_outputs: Make) -> dict[str, Any]:
    """Return one of each result that a notebook shows, with names that would be markup."""
    segments = {"shop": np.array(NASTY)[np.arange(300) % 5]}
    target = make_outputs(seed=1, signal=1.0, classes=NASTY, metadata=segments)
    return {
        "estimate": model.estimate(target),
        "estimates": model.estimate_by(target, "shop"),
        "comparison": ll.compare(source, dict.fromkeys(NASTY, target), methods=["ac", "doc"]),
        "performance": model.performance(target),
    }


@pytest.mark.parametrize("name", ["estimate", "estimates", "comparison", "performance"])
def test_names_stay_text(name: str, views: dict[str, Any]) -> None:
    view = views[name]._repr_html_()
    found = Tags(view)
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    assert found.tags <= tables | {"div", "p", "span", "details", "summary", "strong"}
    assert found.attributes <= {"style", "data-label"}
    assert all(escape(nasty) in view for nasty in NASTY)
    assert "url(" not in view


def test_estimate_shows_number_interval_verdict_and_worst_class_first(views: dict[str, Any]) -> None:
    estimate = views["estimate"]
    view = estimate._repr_html_()
    assert percent(estimate.accuracy) in view
    assert f"90 % interval {interval(estimate.interval)}" in view
    assert escape(estimate.explain().split(". ")[1]) in view
    pulls = [float(row[-1]) for row in Tags(view).rows[1:]]
    assert pulls == sorted(pulls)
    assert sum(pulls) == pytest.approx(0.0, abs=0.05 + 0.005 * len(pulls))  # the parts of a mean


def test_segments_that_pull_the_accuracy_down_come_first(model: ll.Auto, make_outputs: Make) -> None:
    weak, strong = make_outputs(seed=1, n=200, signal=0.3), make_outputs(seed=2, n=400, signal=4.0)
    rows = Outputs(
        np.concatenate([strong.logits, weak.logits]), classes=NASTY,
        metadata={"shop": np.repeat(["good", "bad", "tiny"], [400, 190, 10])},
    )  # fmt: skip
    found = model.estimate_by(rows, "shop")
    shown = Tags(found._repr_html_()).rows[1:]
    assert [row[0] for row in shown] == ["bad", "tiny", "good"]
    whole, worst = found.overall.estimate, found.by_pull()[0]
    expected = (worst[0].estimate.accuracy - whole.accuracy) * worst[0].estimate.n_samples / whole.n_samples
    assert worst[1] == pytest.approx(expected)
    assert shown[0][-1] == f"{100 * expected:+.2f}"


def test_long_tables_are_cut_and_counted(make_outputs: Make) -> None:
    many = make_outputs(n=900, c=30)
    model = ll.Auto().fit(many)
    names = np.array([f"user {i}" for i in np.arange(900) % 25])
    estimates = model.estimate_by(Outputs(many.logits, metadata={"user": names}), "user")
    for view, count, what in (
        (model.estimate(many)._repr_html_(), 30, "predicted classes"),
        (estimates._repr_html_(), 25, "segments of user"),
        (model.performance(many)._repr_html_(), 30, "classes"),
    ):
        assert len(Tags(view).rows) == 1 + MOST_LINES
        assert f"{MOST_LINES} of {count} {what}" in view


def test_what_was_left_out_is_said(model: ll.Auto, make_outputs: Make) -> None:
    found = model.estimate_by(make_outputs(classes=NASTY), [])
    left = (LeftOut("a.parquet", None, "bad"), LeftOut("b.parquet", 7, "bad"))
    view = type(found)(found.by, found.overall, found.rows, left)._repr_html_()
    assert "Left out as bad: 1 files, 7 rows." in view


def test_comparison_without_labels_has_no_errors(source: Outputs, make_outputs: Make) -> None:
    target = Outputs(make_outputs(seed=1).logits)
    rows = Tags(ll.compare(source, {"t": target}, methods=["ac"])._repr_html_()).rows
    assert [row[0] for row in rows] == ["target", "t"]


def test_bars_stay_within_their_room() -> None:
    for bar in (html_bar(1.3, (-0.5, 2.0)), html_bar(-1.0), html_bar(0.5, (0.4, 0.6), scale=(0.45, 0.55), before=0.9)):
        places = [float(number) for number in re.findall(r"(?:left:|width:|calc\()([\d.]+)%", bar)]
        assert places
        assert all(0 <= place <= 100 for place in places)


def test_fitted_estimator_says_what_it_learned_from(source: Outputs) -> None:
    estimator = ll.make("ac")
    assert "not fitted yet" in estimator._repr_html_()
    assert f"{source.accuracy:.1%} were predicted right" in estimator.fit(source)._repr_html_()
