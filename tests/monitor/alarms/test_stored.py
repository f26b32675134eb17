"""Alarms of a series in the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import leadline as ll
from leadline.estimators import Estimator
from leadline.monitor.monitor import Monitor
from streams import DAY, FIRST, NOW, stream


def test_planned_labels_are_weighted_before_they_are_an_alarm(tmp_path: Path, auto_model: Estimator) -> None:
    """Plans prefer rows that may be wrong: of those labelled fewer are right than of all, and nothing fell."""
    monitor = Monitor(tmp_path / "m.db", clock=lambda: NOW)
    monitor.register("x", auto_model, tolerance=0.005, false_alarm_every=10)
    shares = []
    for day in range(5):
        batch = stream(2_000, 1 + day, days=1, first=FIRST + day * DAY)
        monitor.add("x", batch)
        plan = ll.plan_labels(auto_model, batch, budget=400, seed=day)
        truth = batch.metadata["truth"][plan.rows]
        monitor.add_labels("x", batch.metadata["id"][plan.rows], truth, plan=plan)
        shares.append(np.mean(batch.predictions[plan.rows] == truth))
    assert np.mean(shares) < auto_model.source_accuracy_ - 0.025
    assert [alarm.rule for alarm in monitor.alarms("x")] == []
