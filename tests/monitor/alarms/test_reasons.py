"""Reasons in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from alarm_histories import judged, track, whole


def test_a_fall_is_told_with_its_dates_its_causes_and_what_to_do() -> None:
    accuracy = np.repeat([0.9, 0.84], [60, 20])
    by_class = np.stack([np.repeat([0.92, 0.80], [60, 20]), np.full(80, 0.88)], axis=1)
    segments = {("de",): track(600, np.repeat([0.9, 0.8], [60, 20])), ("fr",): track(400, np.full(80, 0.9))}
    (episode,) = judged(replace(whole(1_000, accuracy), class_accuracy=by_class), segments)
    assert episode.reason == (
        "Estimated accuracy is 84.0% in 20 windows since 2026-03-02, 6.0 points below the 90.0% of the source (2.0 are "
        "tolerated). Segments that fell: country=de (from 90.0% to 80.0%). Of the predicted classes, these pull it "
        "down most, in points: cat (-6.0). Of the segments, these pull it down most, in points: country=de (-6.0). "
        "This is read off the outputs alone: label some rows to be sure (leadline plan chooses which), and the alarm "
        "on labels will tell."
    )


def test_labels_need_no_advice_and_an_ended_fall_is_told_in_the_past() -> None:
    right = np.repeat([900, 820, 900], [60, 20, 60])
    (episode,) = judged(whole(1_000, np.full(140, 0.9), labelled=1_000, right=right))
    assert episode.reason == (
        "Accuracy by labels was 82.0% in 20 windows from 2026-03-02 to 2026-03-21, 8.0 points below the 90.0% of the "
        "source (2.0 are tolerated)."
    )


def test_a_series_that_was_never_right_is_compared_with_the_source_and_its_classes_with_all_rows() -> None:
    by_class = np.tile([0.9, 0.7], (5, 1))
    (episode,) = judged(replace(whole(1_000, np.full(5, 0.8)), class_accuracy=by_class))
    assert "Estimated accuracy is 80.0% in 5 windows since 2026-01-01, 10.0 points below the 90.0%" in episode.reason
    assert "dog (-5.0)." in episode.reason


def test_no_segment_stands_out_where_all_fell_a_little() -> None:
    rng = np.random.default_rng(0)
    accuracy = np.repeat([0.9, 0.86], [60, 10])
    segments = {(n,): track(40, rng.binomial(40, accuracy) / 40) for n in range(50)}
    (episode,) = judged(whole(2_000, accuracy), segments)
    assert episode.segments == ()
    assert "No segment stands out by itself." in episode.reason


def test_windows_are_called_by_hour_or_by_number() -> None:
    accuracy = np.repeat([0.9, 0.8], [60, 5])
    numbers = 500_000 + np.arange(65)
    (hourly,) = judged(whole(1_000, accuracy, numbers=numbers), every="1h")
    assert "since 2027-01-17 20:00 UTC" in hourly.reason
    (by_rows,) = judged(whole(1_000, accuracy, numbers=np.arange(65)), every="1000 rows")
    assert "since window 60," in by_rows.reason


def test_missing_data_says_what_is_missing_and_what_came_last() -> None:
    numbers = np.delete(np.arange(20_454, 20_484), [20, 21])
    (episode,) = judged(whole(500, np.full(28, 0.9), numbers=numbers))
    assert episode.reason == (
        "No rows came from 2026-01-21 to 2026-01-22, where rows were to be expected; the last before came for "
        "2026-01-20."
    )


def test_a_new_mix_of_segments_is_told_from_segments_that_got_worse() -> None:
    easy, hard = np.full(80, 0.95), np.full(80, 0.75)
    share = np.repeat([750, 300], [60, 20])
    accuracy = (share * easy + (1_000 - share) * hard) / 1_000
    (episode,) = judged(whole(1_000, accuracy), {("de",): track(share, easy), ("fr",): track(1_000 - share, hard)})
    assert "Another mix of the segments than before takes 9.0 points." in episode.reason
    assert "Of the segments, these pull" not in episode.reason
