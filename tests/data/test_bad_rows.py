"""Single bad rows and missing labels: left out or told of, in files of every kind, in memory and streamed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import leadline as ll
from command_line import Run
from leadline.data.columns import Columns
from leadline.data.files import read_outputs, write_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError

SUFFIXES = ["npz", "safetensors", "csv", "parquet", "arrow"]


def write(path: Path, logits: Any, **columns: Any) -> None:
    """Write arrays without looking at what they hold."""
    kind = path.suffix
    if kind == ".npz":
        np.savez(path, logits=logits, **columns)
    elif kind == ".safetensors":
        from safetensors.numpy import save_file

        save_file({"logits": logits, **columns}, path)
    else:
        named = {f"logit_{i}": column for i, column in enumerate(np.asarray(logits, dtype=np.float64).T)}
        table = pa.table(named | columns)
        if kind == ".csv":
            csv.write_csv(table, path)
        elif kind == ".parquet":
            parquet.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bad_rows_are_left_out_of_every_kind_of_file(suffix: str, folder: Path, run: Run) -> None:
    logits = read_outputs("plain.npz").logits.copy()
    good = np.ones(300, dtype=bool)
    good[[3, 50, 299]] = False
    expected = run("estimate", "ac.leadline", "plain.npz", "--format", "json").data[0]["n_samples"] - 3
    logits[3, 1], logits[50, 0], logits[299, 4] = np.nan, np.inf, 1e35
    write(Path(f"bad.{suffix}"), logits, day=np.arange(300) % 2)
    assert "row 3" in run("estimate", "ac.leadline", f"bad.{suffix}").error
    result = run("estimate", "ac.leadline", f"bad.{suffix}", "--skip-bad", "--by", "day", "--format", "json")
    assert result.code == 0
    assert result.data[0]["n_samples"] == expected
    assert result.data[0]["diagnostics"]["left_out"] == {"files": 0, "rows": 3}
    assert f"leadline: left out bad.{suffix}: 3 of 300 rows." in result.err
    outputs = read_outputs(f"bad.{suffix}", skip_bad=True)
    np.testing.assert_array_equal(outputs.metadata["day"], (np.arange(300) % 2)[good])
    assert outputs.n_left_out == 3


def test_lines_with_another_number_of_cells_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("logit_0,logit_1,day\n1,2,mon\n3,4\n5,,tue\n7,8,wed,9\n0,1,thu\n")
    with pytest.raises(InputError, match=r"a\.csv: "):
        read_outputs(tmp_path / "a.csv")
    outputs = read_outputs(tmp_path / "a.csv", skip_bad=True)
    assert (outputs.metadata["day"].tolist(), outputs.n_left_out) == (["mon", "thu"], 3)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_are_no_probabilities_are_left_out(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    table = pa.table({"p_a": [0.5, 0.9, 2.0, 0.1, 0.3], "p_b": [0.5, 0.9, -1.0, 0.9, 0.7], "label": list("abbbb")})
    parquet.write_table(table, path) if suffix == "parquet" else csv.write_csv(table, path)
    columns = Columns("probabilities", "p_*")
    outputs = read_outputs(path, columns=columns, skip_bad=True)
    assert (len(outputs), outputs.n_left_out) == (3, 2)
    if suffix == "parquet":
        found = ll.estimate_files(ll.make("ac").fit(outputs), str(path), skip_bad=True)
        assert (found.overall.estimate.n_samples, found.left_out[0].rows) == (3, 2)


def test_a_file_without_a_good_row(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=np.full((3, 2), np.nan))
    with pytest.raises(InputError, match=r"a\.npz: has no good row: the logits of all 3 are missing"):
        read_outputs(tmp_path / "a.npz", skip_bad=True)


# ------------------------------------------------------------------------------------------------- missing labels
@pytest.mark.parametrize(
    ("suffix", "missing"), [("npz", -100), ("npz", np.nan), ("safetensors", -100), ("csv", np.nan), ("arrow", np.nan)]
)
def test_missing_labels_stop_no_command_that_needs_none(suffix: str, missing: float, folder: Path, run: Run) -> None:
    logits = read_outputs("plain.npz").logits
    labels = (np.arange(300) % 5).astype(np.float64 if np.isnan(missing) else np.int64)
    labels[[7, 9]] = missing
    name = f"late.{suffix}"
    write(Path(name), logits, label=labels)
    assert run("estimate", "ac.leadline", name).code == 0
    assert run("plan", "ac.leadline", name, "--budget", "5", "-o", "plan.csv").code == 0
    compared = run("compare", "source.npz", name, "labelled.npz", "--methods", "ac")
    assert compared.code == 0
    assert "late: 2 of 300 labels are missing: its true accuracy is not shown." in compared.err
    error = run("fit", name, "-o", "m.leadline").error
    assert "late" in error
    assert "label" in error


def test_labels_beyond_all_integers_are_one_line(folder: Path, run: Run) -> None:
    for label in ("9" * 30, "inf"):
        Path("a.csv").write_text(f"logit_0,logit_1,label\n1,2,{label}\n3,1,0\n")
        assert "labels must be integers from 0 to 1" in run("compare", "a.csv", "a.csv", "--methods", "ac").error


def test_a_report_says_which_labels_are_missing(folder: Path, run: Run) -> None:
    write(Path("late.npz"), read_outputs("plain.npz").logits, labels=np.where(np.arange(300) % 6, 1, -100))
    page = run("report", "ac.leadline", "late.npz", "--methods", "ac", "--format", "md")
    assert page.code == 0
    assert "late: 50 of 300 labels are missing" in page.err


def test_the_monitor_takes_rows_whose_labels_come_later(folder: Path, run: Run) -> None:
    labels = np.arange(300) % 5
    labels[4] = -100
    write(Path("late.npz"), read_outputs("plain.npz").logits, labels=labels)
    assert run("monitor", "register", "a.db", "fraud", "ac.leadline").code == 0
    assert run("monitor", "add", "a.db", "fraud", "late.npz", "--at", "2026-01-05").code == 0


# ----------------------------------------------------------------------------------------- numbers of other types
@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal128(6, 3), pa.decimal256(40, 3)])
def test_half_floats_and_decimals_are_numbers(kind: Any, tmp_path: Path) -> None:
    values = [[0.5, 1.25], [2.5, -0.125], [1.0, 0.25]]
    numbers = [[Decimal(repr(x)) if pa.types.is_decimal(kind) else np.float16(x) for x in row] for row in values]
    columns = {f"logit_{i}": pa.array([row[i] for row in numbers], kind) for i in range(2)}
    parquet.write_table(pa.table(columns | {"label": pa.array([1, 0, 0], pa.decimal128(3, 0))}), tmp_path / "a.parquet")
    outputs = read_outputs(tmp_path / "a.parquet")
    np.testing.assert_array_equal(outputs.logits, values)
    assert outputs.accuracy == 1.0
    found = ll.estimate_files(ll.make("ac").fit(outputs), str(tmp_path / "a.parquet"))
    assert (found.overall.estimate.n_samples, found.overall.truth) == (3, 1.0)


def test_decimals_to_group_by_keep_their_digits(tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    outputs = make_outputs(n=4, c=2)
    ids = [Decimal(10**20), Decimal(10**20 + 1)] * 2
    table = pa.table({
        "logit_0": outputs.logits[:, 0], "logit_1": outputs.logits[:, 1],
        "account": pa.array(ids, pa.decimal128(21, 0)), "price": pa.array([Decimal("0.10")] * 4, pa.decimal128(5, 2)),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "a.parquet")
    model = ll.make("ac").fit(make_outputs(c=2))
    streamed = ll.estimate_files(model, str(tmp_path / "a.parquet"), by=["account", "price"])
    whole = model.estimate_by(read_outputs(tmp_path / "a.parquet"), ["account", "price"])
    for found in (streamed, whole):
        assert [row.group for row in found.rows] == [{"account": one, "price": 0.1} for one in ids[:2]]


def test_structs_are_refused_by_name(tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    logits = pa.array([{"a": 1.0, "b": 2.0}] * 3)
    parquet.write_table(pa.table({"logits": logits}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"must be lists of numbers; column 'logits' holds struct<a: double"):
        read_outputs(tmp_path / "a.parquet")
    write_outputs(make_outputs(n=3, c=2), tmp_path / "b.parquet")
    table = parquet.read_table(tmp_path / "b.parquet").append_column("who", logits)
    parquet.write_table(table, tmp_path / "b.parquet")
    model = ll.make("ac").fit(make_outputs(c=2))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: ll.estimate_files(model, str(tmp_path / "b.parquet"), by=["who"]),
        lambda: model.estimate_by(read_outputs(tmp_path / "b.parquet"), ["who"]),
    )
    for estimate in calls:
        with pytest.raises(InputError, match="column 'who' must hold plain values of one type to group by it"):
            estimate()
