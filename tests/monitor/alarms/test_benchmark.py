"""The page on alarms shows what was measured."""

from __future__ import annotations

import json

import numpy as np

import alarms
from pages import filled


def test_the_page_has_the_tables_of_the_results() -> None:
    page = alarms.PAGE.read_text()
    assert filled(page, alarms.parts_of(json.loads(alarms.RESULTS.read_text()))) == page


def test_the_usual_rule_alarms_once_for_windows_in_a_row_and_not_in_its_own_reference() -> None:
    accuracy = np.tile([0.9, 0.91], 20)
    accuracy[[3, 20, 21, 30]] = 0.5
    found = alarms.three_sigma(np.delete(accuracy, 3), 10)
    assert found == [19, 20, 29]
    assert alarms.count(found) == 2
    assert alarms.three_sigma(accuracy, 10) == []


def test_a_simulated_mix_of_segments_changes_the_whole_and_no_segment() -> None:
    rows, accuracy = alarms.seasonal_mix(1_000)
    mixed = (rows * accuracy).sum(axis=1) / rows.sum(axis=1)
    assert (accuracy == accuracy[0]).all()
    assert 0.01 < np.ptp(mixed) < 0.04
    assert abs(mixed.mean() - alarms.REFERENCE) < 0.005
