"""Late labels: in any order, repeatedly, before their rows; what they say of windows and segments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.errors import InputError
from leadline.estimators import Estimator
from leadline.labels.intervals import exact_interval
from leadline.monitor.history import adapted, track_record
from leadline.monitor.ledger import Entry, hash_ids, realise
from leadline.monitor.monitor import Monitor
from leadline.monitor.records import Point, Realised, Window
from streams import FIRST, draw, stream


def right(outputs: ll.Outputs) -> NDArray[np.bool_]:
    return np.asarray(outputs.predictions == outputs.metadata["truth"])


def realised(watch: Monitor, segment: object = None) -> list[float | None]:
    return [row.realised for row in watch.history("x", segment).rows]  # type: ignore[attr-defined]


def test_all_labels_of_a_window_tell_its_accuracy(watch: Monitor) -> None:
    batch = stream(1_200, 1)
    watch.add("x", batch)
    found = watch.add_labels("x", batch.metadata["id"], batch.metadata["truth"])
    assert (found.joined, found.changed, found.waiting) == (1_200, 0, 0)
    expected = right(batch).reshape(4, 300).mean(axis=1)
    np.testing.assert_allclose(realised(watch), expected)  # type: ignore[arg-type]
    row = watch.history("x").rows[0]
    assert (row.sample, row.realised_interval) == ("all", (row.realised, row.realised))  # type: ignore[attr-defined]
    app = batch.metadata["channel"] == "app"
    np.testing.assert_allclose(
        realised(watch, {"channel": "app"}),  # type: ignore[arg-type]
        [right(batch)[app & (batch.metadata["ts"] == day)].mean() for day in np.unique(batch.metadata["ts"])],
    )
    assert watch.verify() == []


def test_order_repetition_and_lateness_do_not_matter(watch: Monitor, tmp_path: Path, plain_model: Estimator) -> None:
    """Some labels come before their rows, some twice, some wrong at first."""
    batch = stream(600, 1)
    ids, truth = batch.metadata["id"], batch.metadata["truth"]
    watch.add("x", batch)
    watch.add_labels("x", ids, truth)
    other = Monitor(tmp_path / "other.db")
    other.register("x", plain_model, by=["channel"])
    assert other.add_labels("x", ids[:200], truth[:200]).waiting == 200
    other.add("x", batch)
    found = other.add_labels("x", ids[100:300], (truth[100:300] + 1) % 3)
    assert (found.joined, found.changed, found.waiting) == (200, 100, 0)
    for start in (500, 300, 100, 100):
        other.add_labels("x", ids[start : start + 200][::-1], truth[start : start + 200][::-1])
    assert realised(other) == realised(watch)
    assert realised(other, "*") == realised(watch, "*")
    assert other.verify() == []


def test_some_labels_say_so(watch: Monitor) -> None:
    batch = stream(1_200, 1)
    watch.add("x", batch)
    watch.add_labels("x", batch.metadata["id"][:100], batch.metadata["truth"][:100])
    row = watch.history("x").rows[0]
    assert (row.sample, row.n_labels) == ("unknown", 100)  # type: ignore[attr-defined]
    expected = exact_interval(int(right(batch)[:100].sum()), 100, 300, 0.9)
    assert row.realised_interval == pytest.approx(expected)  # type: ignore[attr-defined]


def test_planned_labels_give_the_interval_of_the_plan(tmp_path: Path, auto_model: Estimator) -> None:
    """One window: what the plan's own evaluation says, up to rows that it leaves out."""
    batch = stream(3_000, 1, days=1)
    monitor = Monitor(tmp_path / "m.db")
    monitor.register("x", auto_model)
    monitor.add("x", batch)
    plan = ll.plan_labels(auto_model, batch, budget=200, seed=3)
    truth = batch.metadata["truth"][plan.rows]
    monitor.add_labels("x", batch.metadata["id"][plan.rows], truth, plan=plan)
    (row,) = monitor.history("x")
    expected = ll.estimate_with_labels(auto_model, batch, plan, truth)
    assert row.sample == "planned"  # type: ignore[attr-defined]
    assert row.realised == pytest.approx(expected.accuracy, abs=0.002)  # type: ignore[attr-defined]
    assert row.realised_interval == pytest.approx(expected.interval, abs=0.002)  # type: ignore[attr-defined]


def test_labels_that_come_with_the_rows(watch: Monitor) -> None:
    batch = stream(300, 1, days=1)
    labels = batch.metadata["truth"]
    watch.add("x", ll.Outputs(batch.logits, labels, metadata=batch.metadata))
    assert realised(watch) == [pytest.approx(right(batch).mean())]


def test_wrong_labels(watch: Monitor) -> None:
    watch.add("x", stream(30, 1))
    with pytest.raises(InputError, match="labels must be from 0 to 2"):
        watch.add_labels("x", ["a"], [3])
    with pytest.raises(InputError, match="ids must have one label each; rows 0 and 2"):
        watch.add_labels("x", ["a", "b", "a"], [0, 1, 2])
    with pytest.raises(InputError, match="ids must have a value for each row; row 1 has none"):
        watch.add_labels("x", ["a", None], [0, 1])
    assert watch.add_labels("x", ["a", "a"], [0, 0]).waiting == 1


def test_ids_are_known_in_every_form_and_nowhere_else() -> None:
    salt = b"0123456789abcdef"
    forms = [np.array([17, 18]), np.array([17.0, 18.0]), np.array(["17", "18"]), [17, " 18 "]]
    assert len({tuple(hash_ids(form, salt).tolist()) for form in forms}) == 1
    assert hash_ids([17], salt) != hash_ids([17], b"another salt 123")


def test_ids_are_not_in_the_store(watch: Monitor, tmp_path: Path) -> None:
    logits, _ = draw(20, 1)
    ids = [f"alice{row}@example.com" for row in range(20)]
    watch.add("x", ll.Outputs(logits, metadata={"ts": [FIRST] * 20, "channel": ["web"] * 20, "id": ids}))
    assert b"alice" not in (tmp_path / "monitor.db").read_bytes()


# ------------------------------------------------------------------------------------------------------- track record
def point(number: int, accuracy: float, half: float, truth: float | None, n_labels: int = 1_000) -> Point:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    found = None if truth is None else Realised(truth, (truth, truth), n_labels, n_labels, "all")
    ends = accuracy - half, accuracy + half
    return Point(Window(number, when, when), {}, 1_000, accuracy, ends, (), None, 0.0, realised=found)


def test_the_record_counts_windows_with_enough_labels() -> None:
    points = [
        point(0, 0.9, 0.02, 0.91),
        point(1, 0.9, 0.02, 0.95),
        point(2, 0.9, 0.02, None),
        point(3, 0.9, 0.02, 0.5, n_labels=10),
    ]
    record = track_record(points, 0.9)
    assert (record.windows, record.inside) == (2, 1)
    assert record.mean_error == pytest.approx(0.03)


def test_few_labels_are_no_miss() -> None:
    one = point(0, 0.9, 0.02, 0.8, n_labels=40)
    assert one.realised is not None
    sure = replace(one, realised=replace(one.realised, interval=(0.7, 0.89)))
    assert track_record([sure], 0.9).inside == 1
    assert track_record([one], 0.9).inside == 0


@pytest.mark.parametrize("error", [0.002, 0.02, 0.06])
def test_adaptive_intervals_hold_as_often_as_they_say(error: float) -> None:
    """Intervals made far too wide or too narrow for the errors learn from labels."""
    rng = np.random.default_rng(1)
    points = [point(t, 0.8, 0.02, 0.8 + error * rng.normal()) for t in range(2_000)]
    held = track_record(adapted(points, 0.9)[1_000:], 0.9)
    assert held.windows == 1_000
    assert abs(held.inside / held.windows - 0.9) < 0.02
    assert adapted(points, 0.9)[0].interval == points[0].interval, "there was nothing to learn from yet"


def test_labels_of_a_plan_that_the_store_has_lost_are_damage() -> None:
    n = 20
    entry = Entry(
        ids=np.arange(n, dtype=np.uint64), windows=np.zeros(n, dtype=np.int64), segments=np.zeros(n, dtype=np.int64),
        predicted=np.zeros(n, dtype=np.int64), correctness=np.full(n, 0.9), labels=np.arange(n, dtype=np.int32) % 2 - 1,
        plans=np.full(n, 7),
    )  # fmt: skip
    with pytest.raises(InputError, match="the store is damaged: arrays in it are not those of labels of a plan"):
        realise(entry, {}, 0.9)
