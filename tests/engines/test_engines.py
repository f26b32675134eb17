"""Streamed estimates: those of memory, by group, filtered, from any filesystem, in an order of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline
from command_line import Run
from leadline import Estimates, InputError, Outputs
from leadline.data.segments import Groups, Key, ordered, resolve, segment_rows
from leadline.engines import where
from leadline.engines.arrow import estimate_files
from leadline.engines.lake import find_files
from leadline.estimators.samples import Sample

Maker = Callable[..., Outputs]
CLASSES = 5
COUNTRIES = np.array(["de", "fr", "it"])


def write_log(path: Path, outputs: Outputs, *, rows_per_group: int = 97, **columns: Any) -> None:
    """Write outputs as a log: a list column `logits`, labels, and columns, in several row groups."""
    flat = pa.array(np.asarray(outputs.logits).reshape(-1))
    data = {"logits": pa.FixedSizeListArray.from_arrays(flat, outputs.n_classes), "label": outputs.labels, **columns}
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(data), path, row_group_size=rows_per_group)


@pytest.fixture(scope="module")
def models(make_outputs: Maker) -> dict[str, leadline.Estimator]:
    """Return a fitted estimator of every method."""
    source = make_outputs(400, CLASSES, seed=1)
    return {name: leadline.make(name).fit(source.logits, source.labels) for name in leadline.METHODS}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, make_outputs: Maker) -> tuple[Path, Outputs]:
    """Return a folder of five files, one of them without rows, and all their rows in memory."""
    root = tmp_path_factory.mktemp("lake")
    parts = []
    for i, n in enumerate((300, 1, 0, 450, 249)):
        rng = np.random.default_rng(i)
        country = COUNTRIES[rng.integers(3, size=n)]
        times = np.datetime64("2026-01-01T00:00", "us") + rng.integers(0, 40 * 86400, n).astype("timedelta64[s]")
        if n:
            outputs = make_outputs(n, CLASSES, seed=10 + i, signal=1.0 + i / 2)
            parts.append((outputs, country, times))
            write_log(root / f"part={i}" / "log.parquet", outputs, country=country, time=times)
        else:
            schema = pq.read_schema(root / "part=0" / "log.parquet")
            (root / f"part={i}").mkdir()
            pq.write_table(schema.empty_table(), root / f"part={i}" / "log.parquet")
    (root / "_SUCCESS").touch()
    logits = np.concatenate([outputs.logits for outputs, _, _ in parts])
    labels = np.concatenate([np.asarray(outputs.labels) for outputs, _, _ in parts])
    metadata = {
        "country": np.concatenate([country for _, country, _ in parts]),
        "time": np.concatenate([times for _, _, times in parts]),
    }
    return root, Outputs(logits, labels, metadata)


def by_group(found: Estimates) -> dict[Any, tuple[float, int]]:
    """Return accuracy and number of rows by group, () for all rows."""
    rows = (found.overall, *found.rows)
    return {tuple(row.group.values()): (row.estimate.accuracy, row.estimate.n_samples) for row in rows}


@pytest.mark.parametrize("method", list(leadline.METHODS))
def test_streaming_is_the_estimate_in_memory(method: str, models: Any, lake: tuple[Path, Outputs]) -> None:
    root, outputs = lake
    model = models[method]
    found = estimate_files(model, str(root), by=["country"])
    expected = model.estimate_by(outputs, ["country"])
    assert [row.group for row in found] == [{"country": "de"}, {"country": "fr"}, {"country": "it"}]
    assert found.overall.group == {}
    # The exact solver of COT in memory and the dual of the stream agree to well below this.
    tolerance = 1e-6 if method == "cot" else 1e-12
    for one, other in zip((found.overall, *found), (expected.overall, *expected), strict=True):
        streamed, whole = one.estimate, other.estimate
        assert (one.group, one.truth) == (other.group, other.truth)
        if method == "cott":  # a row at the threshold may fall to either side
            assert abs(streamed.accuracy - whole.accuracy) <= 2 / whole.n_samples
            continue
        np.testing.assert_allclose(streamed.accuracy, whole.accuracy, atol=tolerance)
        np.testing.assert_allclose(streamed.interval, whole.interval, atol=1e-5)
        assert [entry.count for entry in streamed.by_class] == [entry.count for entry in whole.by_class]
        of_segment = np.ones(1000, dtype=bool)
        if one.group:
            of_segment = outputs.metadata["country"] == one.group["country"]
        if method != "auto":  # which borrows the verdict on the whole
            alone = model.estimate(outputs.logits[of_segment]).accuracy
            np.testing.assert_allclose(streamed.accuracy, alone, atol=tolerance)
    assert (found.overall.estimate.n_samples, found.left_out) == (1000, ())
    assert found.overall.truth == outputs.accuracy


def test_the_same_answer_to_the_last_bit(models: Any, lake: tuple[Path, Outputs]) -> None:
    first, second = (estimate_files(models["ac"], str(lake[0]), by=["country"]) for _ in range(2))
    assert by_group(first) == by_group(second)


def test_ten_thousand_groups_at_once(models: Any, tmp_path: Path, make_outputs: Maker) -> None:
    n = 40_000
    outputs = make_outputs(n, CLASSES, seed=3)
    segment, half = np.arange(n) % 5_000, np.arange(n) // 5_000 % 2
    write_log(tmp_path / "log.parquet", outputs, rows_per_group=n, segment=segment, half=half)
    model = models["alsa-g"]
    found = by_group(estimate_files(model, str(tmp_path), by=["segment", "half"]))
    assert len(found) == 10_001
    values = model.probabilities(outputs.logits)[0]
    for group in [(0, 0), (17, 1), (4_999, 1)]:
        chosen = (segment == group[0]) & (half == group[1])
        expected = np.clip(values[chosen].mean() + model.correction_, 0, 1)
        np.testing.assert_allclose(found[group][0], expected, atol=1e-12)
        assert found[group][1] == 4


@pytest.mark.parametrize("bucket", ["hour", "day", "week", "month"])
def test_times_are_cut(bucket: str, models: Any, lake: tuple[Path, Outputs]) -> None:
    root, outputs = lake
    units = {"hour": "h", "day": "D", "month": "M", "week": "W"}
    times = outputs.metadata["time"]
    # NumPy's weeks begin on Thursdays, the day of the week of 1970-01-01.
    shift = np.timedelta64(3, "D") if bucket == "week" else np.timedelta64(0, "D")
    cut = (times + shift).astype(f"datetime64[{units[bucket]}]").astype("datetime64[s]") - shift
    found = by_group(estimate_files(models["ac"], str(root), by=[f"time:{bucket}"]))
    expected = {value.item(): int(np.sum(cut == value)) for value in np.unique(cut)}
    counts = {np.datetime64(group[0], "s").item(): n for group, (_, n) in found.items() if group}
    assert counts == expected
    assert by_group(estimate_files(models["ac"], str(root), by=[bucket])).keys() == found.keys()


def test_folders_state_columns(models: Any, lake: tuple[Path, Outputs]) -> None:
    found = by_group(estimate_files(models["ac"], str(lake[0]), by=["part"]))
    assert {group: n for group, (_, n) in found.items()} == {(): 1000, (0,): 300, (1,): 1, (3,): 450, (4,): 249}
    chosen = estimate_files(models["ac"], str(lake[0]), where="part >= 3 and country in ('de', 'fr')", by=["part"])
    country, part = lake[1].metadata["country"], np.repeat([0, 1, 3, 4], [300, 1, 450, 249])
    expected = {d: int(np.sum((part == d) & (country != "it"))) for d in (3, 4)}
    assert {row.group["part"]: row.estimate.n_samples for row in chosen} == expected


@pytest.mark.parametrize(
    ("condition", "mask"),
    [
        ("country = 'de'", lambda country, time: country == "de"),
        ("not country = 'de'", lambda country, time: country != "de"),
        ("time >= '2026-01-20'", lambda country, time: time >= np.datetime64("2026-01-20")),
        ("country <> 'de' and (time < '2026-01-10' or country == 'it')",
         lambda country, time: (country != "de") & ((time < np.datetime64("2026-01-10")) | (country == "it"))),
        ("country is not null", lambda country, time: country != ""),
    ],
)  # fmt: skip
def test_where(condition: str, mask: Any, models: Any, lake: tuple[Path, Outputs]) -> None:
    root, outputs = lake
    chosen = mask(outputs.metadata["country"], outputs.metadata["time"])
    found = estimate_files(models["ac"], str(root), where=condition).overall.estimate
    expected = models["ac"].estimate(outputs.logits[chosen])
    assert found.n_samples == expected.n_samples
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", "country", "country =", "= 'de'", "country = de", "__import__('os').system('id')", "a = 1; b = 2", "(a = 1",
     "a = 1 b", "a in ()", "a between 1 and 2", "a = 'x", "not " * 400 + "a = 1"],
)  # fmt: skip
def test_wrong_conditions(text: str) -> None:
    with pytest.raises(InputError, match="--where"):
        where.parse(text)


@pytest.mark.parametrize(
    ("condition", "message"),
    [("land = 'de'", "column 'land' of --where is not in this file"), ("country > 3", "holds string, with 3"),
     ("part = 'x'", "holds int64, with 'x'")],
)  # fmt: skip
def test_conditions_that_do_not_fit(condition: str, message: str, models: Any, lake: tuple[Path, Outputs]) -> None:
    with pytest.raises(InputError, match=message):
        estimate_files(models["ac"], str(lake[0]), where=condition)


def test_conditions_as_sql_cannot_break_out() -> None:
    condition = where.parse("\"a` or 1=1 --\" = 'it''s \\'")
    assert where.to_sql(condition) == "`a`` or 1=1 --` == 'it\\'s \\\\'"


def test_other_filesystems(models: Any, lake: tuple[Path, Outputs]) -> None:
    fsspec = pytest.importorskip("fsspec")
    root, memory = lake[0], fsspec.filesystem("memory")
    for path in root.rglob("*.parquet"):
        memory.pipe(f"/lake/{path.relative_to(root)}", path.read_bytes())
    expected = by_group(estimate_files(models["ac"], str(root), by=["part", "country"]))
    for place in ("memory://lake", "memory://lake/**/*.parquet", root.as_uri(), root.as_uri() + "/part=*/log.parquet"):
        assert by_group(estimate_files(models["ac"], place, by=["part", "country"])) == expected
    with pytest.raises(InputError, match="no file matches"):
        find_files("memory://lake/*.parquet")
    with pytest.raises(InputError, match="does not exist"):
        find_files("memory://pond")


def test_groups_are_numbered_over_blocks() -> None:
    groups = Groups(2)
    first = groups.numbers([pa.array(["a", None, "a"]), pa.array([1, 2, 1])], 3)
    second = groups.numbers([pa.array(["b", "a", None]), pa.array([1, 2, 2])], 3)
    assert (first.tolist(), second.tolist()) == ([0, 1, 0], [2, 3, 1])
    assert groups.labels() == [("a", 1), (None, 2), ("b", 1), ("a", 2)]


def test_names_of_keys() -> None:
    types = {"time": pa.timestamp("us"), "seen": pa.date32(), "n": pa.int64()}
    assert resolve(["time:week"], types)[0].bucket == "week"
    with pytest.raises(InputError, match="'week' could be that of time or seen"):
        resolve(["week"], types)
    with pytest.raises(InputError, match="hour, day, week, month; got 'time:year'"):
        resolve(["time:year"], types)
    with pytest.raises(InputError, match="must be distinct"):
        resolve(["n", "n"], types)


def test_segments_in_memory_are_those_of_one_column(make_outputs: Maker) -> None:
    day = np.array([2.0, 1.0, np.nan] * 100)
    outputs = make_outputs(300, metadata={"day": day})
    numbers, labels = segment_rows(outputs.metadata, len(outputs), ["day"])
    expected = outputs.groups("day")
    assert [labels[i][0] for i in ordered(labels)] == list(expected)
    for i, (value,) in enumerate(labels):
        np.testing.assert_array_equal(np.flatnonzero(numbers == i), expected[value])


def test_sample_does_not_depend_on_blocks(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(5_000, 3)).astype(np.float32)
    logits[::2] = logits[0]
    whole = Sample.of(logits, 200)
    order = rng.permutation(len(logits))
    parts = [Sample.of(logits[part], 200) for part in np.array_split(order, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged + part
    for name in ("keys", "logits", "counts"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    everything = Sample.of(logits, 5_000)
    assert everything.counts.sum() == 5_000
    assert everything.counts.max() == 2_500
    assert everything.draw(100).shape == (100, 3)


# ------------------------------------------------------------------------------------------------------ the command
def test_command_on_a_table(lake: tuple[Path, Outputs], models: Any, run: Run, tmp_path: Path) -> None:
    model = tmp_path / "ac.leadline"
    models["ac"].save(model)
    pattern = f"{lake[0]}/**/*.parquet"
    result = run("estimate", model, pattern, "--by", "week,country", "--format", "json")
    assert (result.code, result.err) == (0, "")
    whole, first = result.data[:2]
    assert whole["target"] == pattern
    assert whole["group"] is None
    assert whole["n_samples"] == 1000 == sum(row["n_samples"] for row in result.data[1:])
    assert first["group"] == {"week": "2025-12-29", "country": "de"}
    assert whole["truth"] == lake[1].accuracy
    assert run("estimate", model, lake[0], "--engine", "arrow", "--format", "json").data[0]["n_samples"] == 1000
    for words in ((pattern, "--by", "week,country"), (lake[0], "--by", "part")):
        table, text = run("estimate", model, *words).out, run("estimate", model, *words, "--format", "csv").out
        assert "(all)" in table
        assert len(text.splitlines()) > 3
    gate = run("estimate", model, pattern, "--by", "week,country", "--min-accuracy", 0.99)
    assert gate.code == 1
    assert "week 20" in gate.err


def test_command_names_the_unknown_column(lake: tuple[Path, Outputs], models: Any, run: Run, tmp_path: Path) -> None:
    models["ac"].save(tmp_path / "ac.leadline")
    error = run("estimate", tmp_path / "ac.leadline", lake[0], "--by", "week,city").error
    assert "column 'city' is not in this file; metadata columns: country, part, time." in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plain.npz", "--engine", "flink"], "--engine must be one of arrow, spark; got 'flink'."),
        (["plain.npz", "--engine", "arrow"], "plain.npz"),
        (["plain.npz", "--where", "a = 1"], "--where works on .parquet, .arrow, .feather files; got plain.npz."),
        (["traffic.parquet", "--master", "local"], "--master is that of a Spark cluster"),
        (["no/**/*.parquet"], "no file matches 'no/**/*.parquet'."),
        (["ftp7://host/logs"], "ftp7://host/logs"),
    ],
)
def test_wrong_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("estimate", "ac.leadline", *words).error


def test_arrow_files_and_columns_of_logits(models: Any, tmp_path: Path, make_outputs: Maker) -> None:
    outputs = make_outputs(500, CLASSES, seed=5)
    columns = {f"logit_{i}": outputs.logits[:, i] for i in range(CLASSES)}
    table = pa.table(columns | {"kind": ["a", None] * 250})
    with pa.OSFile(str(tmp_path / "log.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=64)
    found = estimate_files(models["doc"], str(tmp_path / "log.arrow"), by=["kind"])
    assert [row.group for row in found] == [{"kind": "a"}, {"kind": None}]
    expected = models["doc"].estimate(outputs.logits[1::2])
    np.testing.assert_allclose(found.rows[1].estimate.accuracy, expected.accuracy, atol=1e-12)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_integers_that_count_from_1970_are_cut_as_times(unit: str) -> None:
    times = pa.array(np.array(["2026-03-04T05:06:07", "2026-03-09T00:00:00"], f"M8[{unit}]"))
    cut = Key("t:week", "t", "week").values(times.cast(pa.int64()))
    assert [str(day) for day in cut.to_pylist()] == ["2026-03-02", "2026-03-09"]


@pytest.mark.parametrize(
    "values", [[1, 2, 3], [20_260_304, 20_260_305], [1_772_600_000, 1_772_600_000_000], [-5, 10**18]]
)
def test_integers_that_are_no_times_are_refused(values: list[int]) -> None:
    with pytest.raises(InputError, match=f"'t' must hold times .* got {min(values)} to {max(values)}"):
        Key("t:week", "t", "week").values(pa.array(values))
