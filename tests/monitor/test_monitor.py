"""Batches go to their windows, once; estimates are those of all rows of a window; coarser windows are merges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.typing import NDArray

import leadline as ll
from leadline.errors import InputError
from leadline.estimators import Estimator
from leadline.monitor.monitor import Monitor
from streams import DAY, FIRST, NOW, draw, stream


def part(outputs: ll.Outputs, rows: NDArray[np.intp]) -> ll.Outputs:
    return ll.Outputs(outputs.logits[rows], metadata={name: values[rows] for name, values in outputs.metadata.items()})


def accuracies(monitor: Monitor, **options: object) -> list[float]:
    return [row.estimate.accuracy for row in monitor.history("x", **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["plain_model", "auto_model"])
def test_a_window_is_estimated_as_if_its_rows_were_the_target(
    method: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: Estimator = request.getfixturevalue(method)
    monitor, batch = Monitor(tmp_path / "m.db"), stream(1_200, 1)
    monitor.register("x", model, by=["channel"])
    monitor.add("x", batch)
    found = monitor.history("x")
    assert [row.group["window"].day for row in found] == [2, 3, 4, 5]
    for row, day in zip(found, np.unique(batch.metadata["ts"]), strict=True):
        expected = model.estimate(batch.logits[batch.metadata["ts"] == day])
        np.testing.assert_allclose(row.estimate.accuracy, expected.accuracy, atol=1e-6)
        np.testing.assert_allclose(row.estimate.interval, expected.interval, atol=1e-6)
        assert [one.count for one in row.estimate.by_class] == [one.count for one in expected.by_class]
        assert row.estimate.n_samples == 300
    web = monitor.history("x", {"channel": "web"})
    assert [row.estimate.n_samples for row in web] == [200] * 4
    for same in ("web", ("web",)):
        assert [row.estimate for row in monitor.history("x", same)] != []
        assert monitor.history("x", same).to_arrow().equals(web.to_arrow())
    assert web.rows[0].group == {"window": found.rows[0].group["window"], "channel": "web"}


@pytest.mark.parametrize("method", ["plain_model", "auto_model"])
def test_batches_in_any_order_and_size_give_the_same(
    method: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Rows that come late change the estimate of their own window, to what it would have been."""
    batch, found = stream(1_200, 1), []
    for pieces in (np.array_split(np.arange(1_200), 1), np.array_split(np.random.default_rng(0).permutation(1_200), 4)):
        monitor = Monitor(tmp_path / f"{len(pieces)}.db")
        monitor.register("x", request.getfixturevalue(method), by=["channel"])
        for piece in pieces:
            monitor.add("x", part(batch, piece))
        assert monitor.verify() == []
        found.append(accuracies(monitor) + accuracies(monitor, segment="*"))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)


def test_large_windows_are_estimated_from_all_rows_though_few_are_kept(tmp_path: Path, auto_model: Estimator) -> None:
    """Far more rows than the sample holds: the estimate is nearer to that of all rows than the sample's would be."""
    logits, _ = draw(60_000, 5, strength=2.0)
    monitor = Monitor(tmp_path / "m.db")
    monitor.register("x", auto_model)
    monitor.add("x", ll.Outputs(logits, metadata={"ts": np.full(len(logits), FIRST)}))
    (row,) = monitor.history("x")
    expected = auto_model.estimate(logits)
    assert row.estimate.n_samples == 60_000
    assert abs(row.estimate.accuracy - expected.accuracy) < 0.002
    assert monitor.store.size() < 1 << 20


def test_a_batch_is_added_once(watch: Monitor) -> None:
    batch = stream(400, 1)
    assert watch.add("x", batch, batch="monday").new
    before = accuracies(watch)
    assert not watch.add("x", batch, batch="monday").new
    assert accuracies(watch) == before
    with pytest.raises(InputError, match="'monday' was added before with other rows"):
        watch.add("x", stream(400, 2), batch="monday")
    assert watch.add("x", stream(300, 3)).new
    assert not watch.add("x", stream(300, 3)).new, "without a name, rows are known by their checksum"
    assert watch.history("x").overall.estimate.n_samples == 700


def test_coarser_windows_are_merges(watch: Monitor, plain_model: Estimator) -> None:
    batch = stream(1_400, 1, days=14)
    watch.add("x", batch)
    weeks = watch.history("x", every="1w")
    assert [row.estimate.n_samples for row in weeks] == [700, 700]
    expected = plain_model.estimate(batch.logits[:700])
    np.testing.assert_allclose(weeks.rows[0].estimate.accuracy, expected.accuracy, atol=1e-9)
    (month,) = watch.history("x", {"channel": "app"}, every="1mo")
    assert month.estimate.n_samples == np.count_nonzero(batch.metadata["channel"] == "app")
    with pytest.raises(InputError, match="windows of 1d cannot be merged to windows of 1h"):
        watch.history("x", every="1h")


def test_windows_of_rows_need_no_times(tmp_path: Path, plain_model: Estimator) -> None:
    monitor = Monitor(tmp_path / "m.db")
    monitor.register("x", plain_model, every="500 rows")
    for seed in range(3):
        monitor.add("x", ll.Outputs(draw(400, seed)[0]))
    assert [row.estimate.n_samples for row in monitor.history("x")] == [500, 500, 200]
    assert monitor.verify() == []


@pytest.mark.parametrize("make", [pd.DataFrame, polars.DataFrame])
def test_tables_are_read_as_the_model_learned(make: type, tmp_path: Path) -> None:
    logits, labels = draw(600, 1)
    source = ll.Outputs(logits, labels, classes=["a", "b", "c"])
    monitor = Monitor(tmp_path / "m.db")
    monitor.register("x", ll.make("ac").fit(source))
    columns = {f"logit_{i}": logits[:, i] for i in range(3)} | {"ts": np.full(600, "2026-03-02T10:00:00")}
    monitor.add("x", make(columns))
    (row,) = monitor.history("x")
    assert row.estimate.n_samples == 600
    assert row.estimate.by_class[0].label == "a"


def test_an_accumulator_of_a_serving_process(tmp_path: Path, auto_model: Estimator) -> None:
    logits, _ = draw(3_000, 1)
    running = ll.Accumulator(auto_model)
    running.update(logits)
    monitor = Monitor(tmp_path / "m.db", clock=lambda: NOW)
    monitor.register("x", auto_model)
    assert monitor.add("x", running, time=FIRST, batch="host-1").new
    assert not monitor.add("x", running, time=FIRST, batch="host-1").new
    (row,) = monitor.history("x")
    np.testing.assert_allclose(row.estimate.accuracy, auto_model.estimate(logits).accuracy, atol=1e-6)
    monitor.register("y", auto_model, by=["channel"])
    with pytest.raises(InputError, match="an accumulator has no segments"):
        monitor.add("y", running)


def test_files_folders_and_patterns_are_batches_by_their_paths(watch: Monitor, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for day in range(3):
        ll.write_outputs(stream(200, day, days=1, first=FIRST + day * DAY), folder / f"{day}.parquet")
    assert [one.new for one in watch.add_files("x", folder)] == [True] * 3
    ll.write_outputs(stream(200, 9, days=1, first=FIRST + 3 * DAY), folder / "3.parquet")
    assert [one.new for one in watch.add_files("x", str(folder / "*.parquet"))] == [False, False, False, True]
    assert [row.estimate.n_samples for row in watch.history("x")] == [200] * 4
    (folder / "0.parquet").touch()
    assert not watch.add("x", folder / "0.parquet", batch=str(folder / "0.parquet")).new, "another time, the same rows"
    ll.write_outputs(stream(200, 10, days=1), folder / "0.parquet", force=True)
    with pytest.raises(InputError, match="was added before with other rows"):
        watch.add_files("x", folder)


def test_a_known_file_is_not_read_again(watch: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ll.write_outputs(stream(200, 1), tmp_path / "a.npz")
    watch.add_files("x", tmp_path / "a.npz")
    monkeypatch.setattr("leadline.monitor.adding.to_outputs", None)
    assert [one.new for one in watch.add_files("x", tmp_path / "a.npz")] == [False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.add("y", stream(10, 1)), "series 'y' is not registered; registered: x"),
        (lambda m: m.add("x", stream(10, 1), time="when"), "column 'when' of times is not in these outputs"),
        (lambda m: m.add("x", stream(10, 1), id="key"), "column 'key' is not in these outputs"),
        (lambda m: m.add("x", draw(10, 1)[0]), "outputs must be leadline.Outputs, a table, an accumulator or a file"),
        (lambda m: m.add("x", ll.Outputs(draw(10, 1)[0])), "column 'ts' of times is not in these outputs"),
        (
            lambda m: m.add("x", ll.Outputs(draw(10, 1)[0], metadata={"ts": np.arange(10), "channel": ["a"] * 10})),
            "column 'ts' must hold times; it holds numbers, of an unknown unit",
        ),
        (
            lambda m: m.add(
                "x", ll.Outputs(draw(2, 1)[0], metadata={"ts": [FIRST, np.datetime64("NaT")], "channel": ["a"] * 2})
            ),
            "column 'ts' must hold a time for each row; 1 have none, row 1",
        ),
        (
            lambda m: m.add("x", ll.Outputs(draw(3, 1)[0], metadata={"ts": [FIRST] * 3})),
            "column 'channel' is not in these outputs",
        ),
        (
            lambda m: m.add(
                "x",
                ll.Outputs(draw(2, 1)[0], metadata={"ts": [FIRST] * 2, "channel": ["a"] * 2, "id": ["7", "7"]}),
            ),
            "ids must be distinct within a batch; rows 0 and 1 have the same",
        ),
        (lambda m: m.history("x", {"country": "de"}), "segment must give a value for each of channel"),
        (lambda m: m.history("x", {"channel": "fax"}), "has no rows of segment"),
        (lambda m: m.register("", ll.make("ac")), "is not fitted yet"),
        (lambda m: m.acknowledge("x", 7), "series 'x' has no alarm 7"),
        (lambda m: m.close_alarm("x", 10**20), "series 'x' has no alarm 1"),
    ],
)  # fmt: skip
def test_wrong_input(watch: Monitor, change: object, message: str) -> None:
    watch.add("x", stream(40, 50))
    with pytest.raises(InputError, match=message):
        change(watch)  # type: ignore[operator]
    assert watch.verify() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": "1y"}, "every must be 1h, 1d, 1w, 1mo, or a number of rows"),
        ({"every": 0}, "every must be"),
        ({"floor": 1.5}, "floor must be between 0 and 1; got 1.5"),
        ({"tolerance": -0.1}, "tolerance must be at least 0"),
        ({"false_alarm_every": 1}, "false_alarm_every must be a number of windows above 1"),
        ({"by": ["a", "a"]}, "by must be distinct columns"),
        ({"name": " "}, "name must be a printable text"),
    ],
)
def test_wrong_settings(watch: Monitor, plain_model: Estimator, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        watch.register(**{"name": "z", "model": plain_model, **options})  # type: ignore[arg-type]


def test_settings_may_change_but_not_what_windows_are_made_of(watch: Monitor, plain_model: Estimator) -> None:
    watch.add("x", stream(40, 1))
    watch.register("x", plain_model, by=["channel"], floor=0.5)
    assert watch.get("x").floor == 0.5
    with pytest.raises(InputError, match="every of series 'x' is '1d' and cannot become '1w'"):
        watch.register("x", plain_model, every="1w", by=["channel"])
    with pytest.raises(InputError, match="register another model under a name of its own"):
        watch.register("x", ll.make("doc").fit(*draw(500, 3)), by=["channel"])


def test_a_pruned_store_is_smaller_and_still_knows(watch: Monitor) -> None:
    batch = stream(4_000, 1)
    watch.add("x", batch)
    before, size = accuracies(watch, segment="*"), watch.store.size()
    found = watch.prune("x", FIRST + 2 * DAY)
    assert (found.windows, found.rows) == (2, 0), "the batch reaches into windows that stay"
    found = watch.prune("x", FIRST + 4 * DAY)
    assert (found.windows, found.rows) == (2, 4_000)
    assert accuracies(watch, segment="*") == before
    assert watch.store.size() < size
    assert watch.verify() == []
    with pytest.raises(InputError, match="was pruned and takes no more rows"):
        watch.add("x", stream(40, 2))


def test_windows_in_files(watch: Monitor, tmp_path: Path) -> None:
    """Every window, of all rows and of segments, labelled or not, with the same columns in every format."""
    batch = stream(1_200, 1)
    watch.add("x", batch)
    watch.add_labels("x", batch.metadata["id"][:300], batch.metadata["truth"][:300])
    for name in ("w.parquet", "w.csv", "w.json"):
        watch.export("x", tmp_path / name)
    table, text = pd.read_parquet(tmp_path / "w.parquet"), pd.read_csv(tmp_path / "w.csv")
    assert list(table.columns) == list(text.columns)
    assert list(table.columns)[:6] == ["window", "window_end", "channel", "accuracy", "interval_low", "interval_high"]
    assert len(table) == 12
    assert table["channel"].fillna("all").value_counts().to_dict() == {"all": 4, "app": 4, "web": 4}
    assert table["realised"].notna().sum() == 3
    np.testing.assert_allclose(table["accuracy"], text["accuracy"])
    data = json.loads((tmp_path / "w.json").read_text())
    assert [row["group"] for row in data[:5]] == [None] * 4 + [{"channel": "app"}]
    assert data[0]["window"] == "2026-03-02T00:00:00+00:00"
    with pytest.raises(InputError, match="exists"):
        watch.export("x", tmp_path / "w.csv")
