"""What is wrong with files in a lake: by default the run stops and names it, with --skip-bad it is left out."""

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
from leadline import Outputs
from leadline.engines import arrow, reading
from leadline.engines.arrow import BadFileError, estimate_files

Maker = Callable[..., Outputs]
N_FILES, ROWS, CLASSES = 12, 60, 5
BAD = "part-06.parquet"


@pytest.fixture(scope="module")
def model(make_outputs: Maker) -> leadline.Estimator:
    source = make_outputs(300, CLASSES, seed=0)
    return leadline.make("ac").fit(source.logits, source.labels)


@pytest.fixture
def logs(tmp_path: Path, make_outputs: Maker, model: leadline.Estimator) -> Path:
    """Return a folder of good files."""
    root = tmp_path / "logs"
    root.mkdir()
    for i in range(N_FILES):
        write(root / f"part-{i:02}.parquet", make_outputs(ROWS, CLASSES, seed=i).logits)
    model.save(tmp_path / "ac.leadline")
    return root


def write(path: Path, logits: Any) -> None:
    """Write logits as a list column, in row groups of 20."""
    flat = pa.array(np.asarray(logits).reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, logits.shape[1])
    pq.write_table(pa.table({"logits": lists, "n": np.arange(len(logits))}), path, row_group_size=20)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def foreign(path: Path) -> None:
    path.write_text("Dear Sir or Madam")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def widen(path: Path) -> None:
    write(path, np.random.default_rng(0).normal(size=(ROWS, CLASSES + 2)))


def no_logits(path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), path)


def text_logits(path: Path) -> None:
    pq.write_table(pa.table({"logits": ["high", "low"], "n": [1, 2]}), path)


def damage_pages(path: Path) -> None:
    """Overwrite the data of the last row group: the file opens, and fails half-way."""
    start = pq.read_metadata(path).row_group(2).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 60] = b"\xff" * 60
    path.write_bytes(bytes(data))


FAULTS: dict[Callable[[Path], None], str] = {
    truncate: "cannot be read", foreign: "cannot be read", emptied: "cannot be read", damage_pages: "cannot be read",
    widen: "logits must have 5 classes, as in fit; got 7.", no_logits: "has no logits", text_logits: "lists of numbers",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_bad_file_stops_or_is_left_out(fault: Callable[[Path], None], logs: Path, run: Run) -> None:
    fault(logs / BAD)
    words = ("estimate", logs.parent / "ac.leadline", logs, "--format", "json")
    error = run(*words).error
    assert error.startswith(f"{logs / BAD}: ")
    assert FAULTS[fault] in error
    assert error.endswith("Nothing was estimated; --skip-bad leaves such out.")
    skipped = run(*words, "--skip-bad")
    assert skipped.code == 0
    assert skipped.data[0]["n_samples"] == (N_FILES - 1) * ROWS
    assert skipped.data[0]["diagnostics"]["left_out"] == {"files": 1, "rows": 0}
    assert str(logs / BAD) in skipped.err
    (logs / BAD).unlink()
    assert run(*words).data[0]["accuracy"] == skipped.data[0]["accuracy"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_rows_stop_or_are_left_out(value: float, logs: Path, model: leadline.Estimator, run: Run) -> None:
    logits = np.random.default_rng(0).normal(size=(ROWS, CLASSES))
    logits[[41, 57], 2] = value
    write(logs / BAD, logits)
    words = ("estimate", logs.parent / "ac.leadline", logs, "--format", "json")
    error = run(*words).error
    assert error.startswith(f"{logs / BAD}: logits must be known and finite")
    assert "row 41 breaks this" in error
    # The number is that in the file, whatever part of it is read.
    assert "row 57 breaks this" in run(*words, "--where", "n >= 45").error
    skipped = run(*words, "--skip-bad")
    assert skipped.data[0]["n_samples"] == N_FILES * ROWS - 2
    assert skipped.data[0]["diagnostics"]["left_out"] == {"files": 0, "rows": 2}
    assert "2 of 60 rows" in skipped.err
    table = run("estimate", logs.parent / "ac.leadline", logs, "--skip-bad").out
    assert "left out 0 bad files, 2 bad rows" in " ".join(table.split())


def test_missing_logits_are_bad_rows(logs: Path, model: leadline.Estimator) -> None:
    rows: list[Any] = [[1.0, 2.0, 3.0, 4.0, 5.0]] * 3 + [None, [1.0, None, 3.0, 4.0, 5.0]]
    pq.write_table(pa.table({"logits": pa.array(rows, pa.list_(pa.float32()))}), logs / BAD)
    with pytest.raises(BadFileError, match="row 3 breaks this"):
        estimate_files(model, str(logs))
    found = estimate_files(model, str(logs), skip_bad=True)
    assert found.overall.estimate.n_samples == (N_FILES - 1) * ROWS + 3
    assert [item.rows for item in found.left_out] == [2]


def test_empty_files_are_fine(logs: Path, model: leadline.Estimator) -> None:
    write(logs / BAD, np.empty((0, CLASSES), dtype=np.float32))
    assert estimate_files(model, str(logs)).overall.estimate.n_samples == (N_FILES - 1) * ROWS


def test_nothing_to_estimate(tmp_path: Path, logs: Path, run: Run) -> None:
    (tmp_path / "none").mkdir()
    words = ("estimate", tmp_path / "ac.leadline")
    assert "has no files" in run(*words, tmp_path / "none").error
    assert "no rows are left" in run(*words, logs, "--where", "n < 0").error
    for path in logs.iterdir():
        foreign(path)
    assert "no rows are left" in run(*words, logs, "--skip-bad").error


@pytest.mark.parametrize("method", ["ac", "cot"])
def test_a_file_deleted_during_the_run(
    method: str, logs: Path, make_outputs: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_outputs(300, CLASSES, seed=0)
    model = leadline.make(method).fit(source.logits, source.labels)
    gone = logs / BAD

    def deleting(after: int) -> Callable[..., None]:
        """Return a progress report that deletes the file after some blocks."""
        seen = []

        def progress(*_: Any) -> None:
            seen.append(1)
            if len(seen) == after:
                gone.unlink()

        return progress

    content = gone.read_bytes()
    # In the first pass, and, where there are more, between passes.
    for after in (1, 2 * N_FILES) if method == "cot" else (1,):
        gone.write_bytes(content)
        with pytest.raises(BadFileError, match=f"{BAD}: does not exist any more"):
            estimate_files(model, str(logs), progress=deleting(after))
        gone.write_bytes(content)
        found = estimate_files(model, str(logs), skip_bad=True, progress=deleting(after))
        assert [item.file for item in found.left_out] == [str(gone)]
        rest = estimate_files(model, str(logs))
        assert found.overall.estimate.accuracy == rest.overall.estimate.accuracy
        assert found.overall.estimate.n_samples == rest.overall.estimate.n_samples == (N_FILES - 1) * ROWS


def test_a_foreign_file_in_a_folder(logs: Path, run: Run) -> None:
    (logs / "notes.txt").write_text("hello")
    error = run("estimate", logs.parent / "ac.leadline", logs).error
    assert "is a folder; give the files in it" in error
    assert "notes.txt" in error
    (logs / "notes.txt").rename(logs / "_notes.txt")
    assert run("estimate", logs.parent / "ac.leadline", logs).code == 0


def test_constant_logits(tmp_path: Path, model: leadline.Estimator) -> None:
    write(tmp_path / "log.parquet", np.ones((50, CLASSES)))
    with pytest.raises(leadline.InputError, match=r"must tell the classes apart; all values are 1\.0"):
        estimate_files(model, str(tmp_path))


def test_columns_of_another_type_in_one_file(tmp_path: Path, model: leadline.Estimator, make_outputs: Maker) -> None:
    for name, kind in (("a", ["x"] * 10), ("b", [1] * 10), ("c", ["x"] * 10)):
        logits = make_outputs(10, CLASSES).logits
        lists = pa.FixedSizeListArray.from_arrays(pa.array(logits.reshape(-1)), CLASSES)
        pq.write_table(pa.table({"logits": lists, "kind": kind}), tmp_path / f"{name}.parquet")
    found = estimate_files(model, str(tmp_path), by=["kind"], skip_bad=True)
    # Numbers can be read as texts.
    assert [row.group for row in found] == [{"kind": "1"}, {"kind": "x"}]
    assert arrow.estimate_files(model, str(tmp_path / "b.parquet"), by=["kind"]).rows[0].group == {"kind": 1}


def damaged_arrow(path: Path, old: bytes, new: bytes) -> None:
    """Write an Arrow file of lists and texts with a few bytes of it replaced."""
    stored = pa.table({"logits": [[1.0, 2.0, 3.0, 4.0, 5.0]] * 2, "city": ["Bern", "Genf"]})
    with pa.ipc.new_file(path, stored.schema) as writer:
        writer.write_table(stored)
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (np.array([0, 5, 10], "<i4").tobytes(), np.array([0, 5, 10**8], "<i4").tobytes()),  # behind the end of the file
        (np.array([0, 4, 8], "<i4").tobytes(), np.array([0, 4, 10**9], "<i4").tobytes()),
        (b"BernGenf", b"Bern\xffenf"),
    ],
)
def test_damaged_arrow_files_are_refused_in_a_stream_too(
    old: bytes, new: bytes, tmp_path: Path, model: leadline.Estimator
) -> None:
    damaged_arrow(tmp_path / "bad.arrow", old, new)
    with pytest.raises(BadFileError, match=r"bad\.arrow: cannot be read"):
        estimate_files(model, str(tmp_path), by=["city"])


def test_arrow_files_and_streams_give_what_parquet_gives(
    tmp_path: Path, model: leadline.Estimator, make_outputs: Maker
) -> None:
    outputs = make_outputs(50, CLASSES, seed=4)
    table = pa.table({"logits": outputs.logits.tolist(), "n": np.arange(50) % 3})
    found = []
    for kind in ("parquet", "arrow", "feather"):
        path = tmp_path / kind / "day=7" / f"log.{kind}"
        path.parent.mkdir(parents=True)
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=20)
        estimates = estimate_files(model, str(tmp_path / kind), by=["day", "n"], where="n < 2 and day = 7")
        found.append([(row.group, row.estimate.accuracy, row.estimate.n_samples) for row in estimates])
    assert found[0] == found[1] == found[2]
    assert [group for group, _, _ in found[0]] == [{"day": 7, "n": 0}, {"day": 7, "n": 1}]


def test_values_beyond_single_precision_are_bad_rows(tmp_path: Path, model: leadline.Estimator) -> None:
    logits = np.eye(CLASSES)
    logits[1, 0] = 1e39
    write(tmp_path / "log.parquet", logits)
    with pytest.raises(BadFileError, match=r"at most 1e\+30 in size; row 1 breaks this"):
        estimate_files(model, str(tmp_path))
    assert estimate_files(model, str(tmp_path), skip_bad=True).overall.estimate.n_samples == CLASSES - 1


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (f"n in ({', '.join(str(n) for n in range(10, 10_010))})", ROWS - 10),
        (f"not n in ({', '.join(str(n + 0.5) for n in range(5_000))}, 1, 2)", ROWS - 3),
        (" or ".join(f"n = {n}" for n in range(10, 2_010)), ROWS - 10),
        (" and ".join(f"n != {n}" for n in range(10, 2_010)), 9),
    ],
    ids=["values", "not among values", "or", "and"],
)
def test_conditions_of_thousands_of_terms(
    condition: str, rows: int, tmp_path: Path, model: leadline.Estimator, make_outputs: Maker
) -> None:
    logits = make_outputs(ROWS, CLASSES, seed=1).logits
    numbers = [None, *range(1, ROWS)]  # a missing number is neither among values nor not
    pq.write_table(pa.table({"logits": logits.tolist(), "n": numbers}), tmp_path / "log.parquet")
    assert estimate_files(model, str(tmp_path), where=condition).overall.estimate.n_samples == rows


@pytest.mark.parametrize(
    ("condition", "message"),
    [("n = " + "9" * 5_000, "is a number of 5000 digits"), ("n = " + "9" * 30, "holds int64, with 9999")],
)
def test_numbers_that_no_column_holds(condition: str, message: str, logs: Path, model: leadline.Estimator) -> None:
    with pytest.raises(leadline.InputError, match=message):
        estimate_files(model, str(logs), where=condition)


def test_a_wrong_condition_is_told_in_a_line_of_readable_length(logs: Path, model: leadline.Estimator) -> None:
    with pytest.raises(leadline.InputError, match="comes after the end of the condition") as caught:
        estimate_files(model, str(logs), where="n=1" * 2000)
    assert len(str(caught.value)) < 400


def test_a_place_without_a_name(folder: Path, run: Run) -> None:
    for word in ("", " "):
        assert "must be named" in run("compare", "source.npz", word, "--methods", "ac").error
        assert f"got {word!r}" in run("estimate", "ac.leadline", word).error
        assert f"got {word!r}" in run("estimate", "ac.leadline", word, "--engine", "arrow").error


@pytest.mark.parametrize("engine", [(), ("--engine", "arrow")])
@pytest.mark.parametrize(
    ("labels", "known"), [([0.0, 1.0, 2.0], True), ([0, None, 2], False), ([0, 1, -100], False), ([None] * 3, False)]
)
def test_labels_that_are_missing_stop_no_estimate(
    labels: list[Any], known: bool, engine: tuple[str, ...], folder: Path, run: Run
) -> None:
    logits = np.eye(5)[:3].tolist()
    pq.write_table(pa.table({"logits": logits, "label": labels}), "late.parquet")
    row = run("estimate", "ac.leadline", "late.parquet", *engine, "--format", "json").data[0]
    assert row["n_samples"] == 3
    assert row["truth"] == (1.0 if known else None)


def test_rows_of_another_width_are_left_out_alone(tmp_path: Path, model: leadline.Estimator) -> None:
    rows = [*np.eye(CLASSES).tolist(), [1.0, 2.0], None, [1.0, None, 2.0, 3.0, 4.0]]
    pq.write_table(pa.table({"logits": rows}), tmp_path / "log.parquet")
    with pytest.raises(BadFileError, match=f"one for each class, .* row {CLASSES} breaks this"):
        estimate_files(model, str(tmp_path))
    found = estimate_files(model, str(tmp_path), skip_bad=True)
    assert found.overall.estimate.n_samples == CLASSES
    assert [item.rows for item in found.left_out] == [3]


def test_a_struct_in_place_of_logits(tmp_path: Path, model: leadline.Estimator) -> None:
    pq.write_table(pa.table({"logits": [{"a": 1.0, "b": 2.0}]}), tmp_path / "log.parquet")
    with pytest.raises(BadFileError, match="must be lists of numbers; column 'logits' holds struct"):
        estimate_files(model, str(tmp_path))


def test_probabilities_in_place_of_logits(tmp_path: Path, model: leadline.Estimator) -> None:
    write(tmp_path / "log.parquet", np.full((30, CLASSES), 0.1) + 0.5 * np.eye(CLASSES)[np.arange(30) % CLASSES])
    with pytest.raises(leadline.InputError, match="logits must be outputs before softmax"):
        estimate_files(model, str(tmp_path))


def test_what_may_not_be_read_is_neither_empty_nor_damaged(
    logs: Path, model: leadline.Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("leadline.engines.lake.LakeFile.open", refuse)
    with pytest.raises(BadFileError, match=r"part-00\.parquet: .* permission denied"):
        estimate_files(model, str(logs))


def test_memory_does_not_grow_with_a_file(
    tmp_path: Path, model: leadline.Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, held = tmp_path / "large.parquet", []
    logits = np.random.default_rng(0).normal(size=(200_000, CLASSES))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(logits.reshape(-1)), CLASSES)
    pq.write_table(pa.table({"logits": lists}), path, row_group_size=2_000)
    monkeypatch.setattr(reading, "_PART_BYTES", 1 << 20)
    before = pa.total_allocated_bytes()
    found = estimate_files(model, str(path), progress=lambda *_: held.append(pa.total_allocated_bytes() - before))
    assert found.overall.estimate.accuracy == pytest.approx(model.estimate(logits).accuracy, abs=1e-9)
    assert len(held) > 5
    assert max(held) < path.stat().st_size // 2
