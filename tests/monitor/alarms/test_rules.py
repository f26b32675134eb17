"""What each rule raises, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from alarm_histories import FIRST_DAY, SERIES, estimates, judged, of_rule, track, whole
from leadline import InputError
from leadline.monitor.alarms import RULES
from leadline.monitor.alarms.levels import LEARNED_WINDOWS, level
from leadline.monitor.windows import Every


def test_every_rule_has_a_promise_of_one_sentence() -> None:
    assert set(RULES) == {"changed", "estimated-fall", "fall", "floor", "no-data"}
    for rule in RULES.values():
        assert rule.promise.endswith(".")
        assert ". " not in rule.promise
    assert [rule.name for rule in RULES.values() if not rule.harmful] == ["changed"]
    assert "not the truth" in RULES["estimated-fall"].promise


@pytest.mark.parametrize("windows", [0, 1, 2])
def test_short_histories_raise_nothing(windows: int) -> None:
    accuracy = np.full(windows, 0.9)
    assert judged(whole(1_000, accuracy), {("de",): track(500, accuracy)}, floor=0.8) == []


@pytest.mark.parametrize("n_rows", [100, 1_000, 100_000])
def test_an_unchanged_year_raises_nothing(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    right = rng.binomial(n_rows, 0.9, size=365)
    segments = {(name,): track(n_rows // 4, estimates(rng, n_rows // 4, np.full(365, 0.9))) for name in "abcd"}
    distance = np.abs(rng.normal(scale=0.03, size=365))
    history = whole(n_rows, right / n_rows, labelled=n_rows, right=right, distance=distance)
    assert judged(history, segments, floor=0.87) == []


def test_a_fall_is_told_of_the_estimate_and_of_the_truth_where_labels_are() -> None:
    accuracy = np.repeat([0.9, 0.82], [60, 30])
    found = judged(whole(1_000, accuracy))
    assert of_rule(found, "estimated-fall") == [(60, 89, True)]
    assert of_rule(found, "fall") == []
    unseen = judged(whole(1_000, np.full(90, 0.9), labelled=1_000, right=1_000 * accuracy))
    assert of_rule(unseen, "estimated-fall") == []
    assert of_rule(unseen, "fall") == [(60, 89, True)]
    assert all(one.harmful for one in [*found, *unseen])


def test_labels_of_some_windows_are_enough() -> None:
    labelled = np.where(np.arange(90) % 5 == 0, 300, 0)
    right = np.where(np.arange(90) < 60, 0.9 * labelled, 0.8 * labelled)
    (first, _, is_open) = of_rule(judged(whole(1_000, np.full(90, 0.9), labelled=labelled, right=right)), "fall")[0]
    assert 60 <= first <= 70
    assert is_open


def test_a_small_source_is_not_taken_for_certain() -> None:
    """A source of 400 rows may have had 90 % by luck: 86 % later is no fall, with 50,000 rows it is."""
    history = whole(2_000, np.full(100, 0.9), labelled=2_000, right=1_730)
    assert of_rule(judged(history, n_source=400), "fall") == []
    assert of_rule(judged(history), "fall")
    low = judged(whole(2_000, np.full(100, 0.8)), n_source=400)[0].reason
    assert "(3.5 are tolerated, as the source has only 400 rows)" in low
    assert level(0.9, 400, 0.02, 0.99) < level(0.9, 50_000, 0.02, 0.99) == pytest.approx(0.88)


def test_a_segment_that_was_always_harder_is_no_fall() -> None:
    easy, hard = track(900, np.full(120, 0.92)), track(100, np.full(120, 0.72))
    assert judged(whole(1_000, np.full(120, 0.9)), {("de",): easy, ("fr",): hard}) == []


def test_a_fall_of_one_segment_in_a_hundred_is_found_and_listed() -> None:
    rng = np.random.default_rng(0)
    accuracy = np.full((100, 100), 0.9)
    accuracy[60:, 17] = 0.7
    shown = estimates(rng, 100, accuracy)
    segments = {(number,): track(100, shown[:, number]) for number in range(100)}
    (episode,) = judged(whole(10_000, shown.mean(axis=1)), segments)
    assert episode.rule == "estimated-fall"
    assert episode.segments == ((17,),)
    assert 60 <= episode.first - FIRST_DAY < 68
    assert "country=17 (from " in episode.reason


def test_segments_may_come_and_go() -> None:
    accuracy = np.full(100, 0.9)
    late = track(200, np.repeat([0.85, 0.6], [20, 20]), numbers=FIRST_DAY + 60 + np.arange(40))
    gone = track(200, np.full(10, 0.9), numbers=FIRST_DAY + np.arange(10))
    (episode,) = judged(whole(5_000, accuracy), {("new",): late, ("old",): gone})
    assert episode.segments == (("new",),)
    assert 80 <= episode.first - FIRST_DAY <= 83
    assert LEARNED_WINDOWS <= 20


def test_an_alarm_closed_by_a_person_comes_back_only_with_new_evidence() -> None:
    accuracy = np.repeat([0.9, 0.82, 0.9], [60, 20, 20])
    history = whole(1_000, accuracy)
    closed = {"estimated-fall": [FIRST_DAY + 65]}
    assert of_rule(judged(history, resets=closed), "estimated-fall")[0] == (60, 65, False)
    assert of_rule(judged(history, resets=closed), "estimated-fall")[1][0] == 66
    later = {"estimated-fall": [FIRST_DAY + 79]}
    assert of_rule(judged(history, resets=later), "estimated-fall") == [(60, 79, False)]


def test_an_alarm_closed_in_the_last_window_is_closed() -> None:
    history = whole(1_000, np.repeat([0.9, 0.82], [60, 5]))
    assert of_rule(judged(history, resets={"estimated-fall": [FIRST_DAY + 64]}), "estimated-fall") == [(60, 64, False)]


def test_late_rows_take_an_alarm_back() -> None:
    seen, rest = np.full(61, 0.9), np.full(61, 0.9)
    seen[60] = 0.7
    assert of_rule(judged(whole(200, seen)), "estimated-fall")
    assert judged(whole(np.where(np.arange(61) == 60, 5_000, 200), rest)) == []


def test_windows_without_estimate_are_passed_over() -> None:
    accuracy = np.repeat([0.9, np.nan, 0.82], [50, 10, 10])
    assert of_rule(judged(whole(1_000, accuracy, distance=np.nan)), "estimated-fall") == [(60, 69, True)]


def test_the_floor_does_not_cry_wolf_on_noise() -> None:
    rng = np.random.default_rng(0)
    assert of_rule(judged(whole(100, estimates(rng, 100, np.full(730, 0.88))), floor=0.86), "floor") == []
    fallen = np.repeat([0.88, 0.8, 0.88], [100, 20, 100])
    ((first, last, is_open),) = of_rule(judged(whole(1_000, fallen), floor=0.86), "floor")
    assert 100 <= first <= 101
    assert 120 <= last <= 130
    assert not is_open


def test_labels_overrule_the_estimate_at_the_floor() -> None:
    low = np.repeat([0.9, 0.8], [50, 20])
    said = judged(whole(1_000, low, labelled=1_000, right=900), floor=0.85)
    assert of_rule(said, "floor") == []
    few = judged(whole(1_000, low, labelled=3, right=3), floor=0.85)
    assert of_rule(few, "floor") == [(50, 69, True)]
    (told,) = (
        one
        for one in judged(whole(1_000, 0.9 + 0 * low, labelled=1_000, right=1_000 * low), floor=0.85)
        if one.rule == "floor"
    )
    assert told.reason.startswith("Accuracy by labels is 80.0% in 20 windows since 2026-02-20; the floor is 85.0%.")
    assert judged(whole(1_000, low, labelled=1_000, right=900), floor=None, false_alarm_every=1e300) == []


def test_outputs_that_moved_are_information() -> None:
    distance = np.repeat([0.02, 0.3, 0.02], [60, 30, 60])
    (episode,) = judged(whole(1_000, np.full(150, 0.9), distance=distance))
    assert (episode.rule, episode.harmful, episode.open) == ("changed", False, False)
    assert 60 <= episode.first - FIRST_DAY <= 65
    assert 90 <= episode.last - FIRST_DAY <= 100
    assert "from 2026-03-02 to 2026-03-31" in episode.reason


def test_small_windows_may_be_farther_from_the_source() -> None:
    """What is far for many rows is noise for few."""
    assert judged(whole(100, np.full(365, 0.9), distance=0.12, noise=0.15)) == []
    assert of_rule(judged(whole(100_000, np.full(365, 0.9), distance=0.12, noise=0.01)), "changed")


def test_quiet_week_ends_are_not_missing_data() -> None:
    days = FIRST_DAY + np.arange(60)
    weekdays = days[(days + 3) % 7 < 5]  # 1970 began on a Thursday
    history = whole(500, np.full(len(weekdays), 0.9), numbers=weekdays)
    assert judged(history) == []
    without = weekdays[(weekdays < FIRST_DAY + 40) | (weekdays > FIRST_DAY + 42)]
    (episode,) = judged(whole(500, np.full(len(without), 0.9), numbers=without))
    assert (episode.rule, episode.open, episode.harmful) == ("no-data", False, True)
    assert episode.first in range(FIRST_DAY + 40, FIRST_DAY + 43)


@pytest.mark.parametrize(("hours", "expected"), [(12, []), (47, []), (49, [(30, 30, True)]), (100, [(30, 32, True)])])
def test_data_is_missing_a_day_after_the_window_ended(hours: int, expected: list[tuple[int, int, bool]]) -> None:
    history = whole(500, np.full(30, 0.9))
    now = Every("1d").window(FIRST_DAY + 29).end + timedelta(hours=hours)
    assert of_rule(judged(history, now=now), "no-data") == expected


def test_a_long_outage_is_one_alarm_that_stays_open_and_can_be_closed() -> None:
    history = whole(500, np.full(30, 0.9))
    now = Every("1d").window(FIRST_DAY + 90).end
    assert of_rule(judged(history, now=now), "no-data") == [(30, 89, True)]
    closed = judged(history, now=now, resets={"no-data": [FIRST_DAY + 50]})
    assert of_rule(closed, "no-data") == [(30, 89, False)]


def test_in_the_first_week_a_week_without_rows_is_missing() -> None:
    history = whole(500, [0.9])
    now = Every("1d").window(FIRST_DAY + 9).end
    assert of_rule(judged(history, now=now), "no-data") == [(7, 8, True)]


@pytest.mark.parametrize(("every", "gap"), [("1h", (200, 203)), ("1w", (5, 6)), ("1mo", (5, 6))])
def test_missing_hours_weeks_and_months(every: str, gap: tuple[int, int]) -> None:
    numbers = np.delete(600 + np.arange(gap[1] + 20), np.arange(*gap))
    found = judged(whole(500, np.full(len(numbers), 0.9), numbers=numbers), every=every)
    assert [(one.rule, one.first - 600, one.last - 600) for one in found] == [("no-data", gap[0], gap[1] - 1)]


def test_windows_of_rows_are_never_missing() -> None:
    numbers = FIRST_DAY + np.arange(30) * 5
    now = SERIES.registered_at + timedelta(days=3_000)
    assert judged(whole(500, np.full(30, 0.9), numbers=numbers), every="500 rows", now=now) == []


def test_windows_that_do_not_fit_are_refused() -> None:
    history, other = whole(500, np.full(5, 0.9)), track(500, np.full(5, 0.9), numbers=FIRST_DAY + 3 + np.arange(5))
    with pytest.raises(InputError, match=r"segments must have windows of whole only; \('de',\) has others"):
        judged(history, {("de",): other})
    with pytest.raises(InputError, match="windows must be those of whole, each once, in the order of time"):
        judged(whole(500, np.full(3, 0.9), numbers=[3, 2, 4]))
