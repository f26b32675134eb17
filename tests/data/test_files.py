"""Files of outputs: every format gives back what it was given, and nothing is lost in writing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from leadline.data.files import FORMATS, read_outputs, write_bytes, write_outputs
from leadline.data.outputs import Outputs, are_probabilities
from leadline.errors import InputError

BINARY = sorted(set(FORMATS) - {".csv"})
RICH = sorted(set(FORMATS) - {".npy"})
TABLES = [".csv", ".parquet", ".arrow", ".feather"]
MakeOutputs = Callable[..., Outputs]
EYE = np.eye(3)


def full_metadata(n: int) -> dict[str, Any]:
    """Return a column of every kind that all formats hold."""
    return {
        "segment": np.array(["Zürich", "", "NA", "a,b", 'say "x"\nand more'])[np.arange(n) % 5],
        "time": np.datetime64("2024-05-01T12:00:00", "us") + np.arange(n) * np.timedelta64(61_000_001, "us"),
        "day": np.datetime64("2024-05-01", "D") + np.arange(n),
        "count": np.arange(n) - 3,
        "weight": np.arange(n) / 7,
        "night": np.arange(n) % 2 == 0,
    }


def assert_same(read: Outputs, written: Outputs) -> None:
    np.testing.assert_array_equal(read.logits, written.logits)
    if written.labels is None:
        assert read.labels is None
    else:
        np.testing.assert_array_equal(read.labels, written.labels)
    assert read.metadata.keys() == written.metadata.keys()
    for name, column in written.metadata.items():
        assert read.metadata[name].tolist() == column.tolist(), name


# ----------------------------------------------------------------------------------------- round trips
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("suffix", RICH)
def test_round_trip_with_everything(suffix: str, dtype: Any, tmp_path: Path, make_outputs: MakeOutputs) -> None:
    classes = ["dog", "cat", "mouse", "Kätzchen"]
    written = make_outputs(30, 4, dtype=dtype, metadata=full_metadata(30), classes=classes)
    path = tmp_path / f"outputs{suffix}"
    write_outputs(written, path)
    read = read_outputs(path, classes=classes)
    metadata = dict(read.metadata)
    metadata["time"] = metadata["time"].astype("M8[us]")  # CSV has no unit, and is read in nanoseconds
    assert_same(Outputs(read.logits, read.labels, metadata, read.classes), written)
    assert read.classes == tuple(classes)
    assert read.logits.dtype == (np.float64 if suffix == ".csv" else dtype)


@pytest.mark.parametrize("suffix", BINARY)
def test_logits_alone_keep_dtype_and_values(suffix: str, tmp_path: Path, make_outputs: MakeOutputs) -> None:
    written = Outputs(make_outputs(50, 3).logits)
    write_outputs(written, tmp_path / f"a{suffix}")
    read = read_outputs(tmp_path / f"a{suffix}")
    assert_same(read, written)
    assert read.logits.dtype == np.float32
    assert read.classes is None


@pytest.mark.parametrize("suffix", sorted(set(RICH) - {".npz"}))
def test_missing_metadata_stays_missing(suffix: str, tmp_path: Path) -> None:
    metadata = {
        "text": np.array(["a", None, ""], object),
        "integer": np.array([2**62 + 1, None, 3], object),
        "time": np.array(["2024-01-01", "NaT", "2024-01-03"], "M8[D]"),
    }
    written = Outputs(np.eye(3), metadata=metadata)
    write_outputs(written, tmp_path / f"a{suffix}")
    assert_same(read_outputs(tmp_path / f"a{suffix}"), written)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_every_unit_keep_their_values(suffix: str, unit: str, tmp_path: Path) -> None:
    times = np.arange(3).astype(f"M8[{unit}]")
    write_outputs(Outputs(np.eye(3), metadata={"time": times}), tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(read_outputs(tmp_path / f"a{suffix}").metadata["time"], times)


@st.composite
def outputs(draw: st.DrawFn) -> Outputs:
    """Draw outputs of any size, with or without labels and metadata."""
    n, c = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    numbers = st.floats(-(2.0**98), 2.0**98, width=32)  # the largest may be doubled below
    logits = draw(hnp.arrays(dtype, (n, c), elements=numbers))
    if logits.min() == logits.max():
        logits[0, 0] += 2.0 + abs(logits[0, 0])
    assume(not are_probabilities(logits))  # which are refused where logits are expected
    # CSV has no types: a text that looks like a number or a date would come back as one.
    texts = st.text(st.characters(exclude_categories=["C"]), max_size=5).map("text {}".format)
    metadata = {
        name: draw(values)
        for name, values in {
            "text": hnp.arrays(object, n, elements=texts),
            "whole": hnp.arrays(np.int64, n),
            "real": hnp.arrays(np.float64, n, elements=st.floats(-1e300, 1e300)),
        }.items()
        if draw(st.booleans())
    }
    labels = draw(st.none() | hnp.arrays(np.int64, n, elements=st.integers(0, c - 1)))
    return Outputs(logits, labels, metadata)


@pytest.mark.parametrize("suffix", RICH)
@settings(max_examples=25, deadline=None)
@given(written=outputs())
def test_round_trip_of_anything(suffix: str, written: Outputs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        write_outputs(written, path)
        read = read_outputs(path)
        assert_same(read, written)
        if suffix != ".csv":
            assert read.logits.dtype == written.logits.dtype


def test_suffixes_in_capitals_and_paths_as_text(tmp_path: Path, make_outputs: MakeOutputs) -> None:
    written = make_outputs(5, 2)
    write_outputs(written, str(tmp_path / "A.NPZ"))
    assert_same(read_outputs(str(tmp_path / "A.NPZ")), written)


@pytest.mark.parametrize("suffix", [".npy", ".arrow"])
def test_large_logits_stay_on_disk(suffix: str, tmp_path: Path, make_outputs: MakeOutputs) -> None:
    write_outputs(Outputs(make_outputs(10, 3).logits), tmp_path / f"a{suffix}")
    logits = read_outputs(tmp_path / f"a{suffix}").logits
    assert not logits.flags.owndata
    assert not logits.flags.writeable


# ------------------------------------------------------------------------------- files of other people
def test_npz_of_numpy(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "a.npz",
        logits=np.eye(3),
        label=[0, 1, 2],
        epoch=3,
        features=np.ones((3, 9)),
        city=list("abc"),
    )
    read = read_outputs(tmp_path / "a.npz")
    assert read.accuracy == 1.0
    assert {name: column.tolist() for name, column in read.metadata.items()} == {"city": ["a", "b", "c"]}


def test_names_as_labels_follow_the_stored_classes(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=np.eye(3), labels=["c", "a", "b"], classes=["c", "a", "b"])
    np.testing.assert_array_equal(read_outputs(tmp_path / "a.npz").labels, [0, 1, 2])


def test_safetensors_of_torch_in_bfloat16(tmp_path: Path) -> None:
    logits = torch.tensor([[0.5, -1.25], [3.0, 2.0]])
    save_file({"logits": logits.to(torch.bfloat16), "labels": torch.tensor([1, 0])}, tmp_path / "a.safetensors")
    read = read_outputs(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(read.logits, logits.numpy())
    assert read.logits.dtype == np.float32
    assert read.accuracy == 0.5


def test_parquet_of_pandas_with_logit_columns_in_any_order(tmp_path: Path, make_outputs: MakeOutputs) -> None:
    made = make_outputs(20, 12)
    frame = pd.DataFrame({f"logit_{i}": made.logits[:, i] for i in sorted(range(12), key=str)})
    frame["label"], frame["city"] = made.labels, pd.Series(["Bern", None] * 10).astype("category")
    frame.to_parquet(tmp_path / "a.parquet")
    read = read_outputs(tmp_path / "a.parquet")
    assert_same(Outputs(read.logits, read.labels), made)
    assert read.logits.dtype == np.float32
    assert read.metadata["city"].tolist() == ["Bern", None] * 10


def test_parquet_of_polars_with_lists_in_several_row_groups(tmp_path: Path, make_outputs: MakeOutputs) -> None:
    made = make_outputs(20, 3)
    frame = pl.DataFrame({"logits": made.logits.tolist(), "label": made.labels})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=7)
    assert_same(read_outputs(tmp_path / "a.parquet"), made)


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path, make_outputs: MakeOutputs) -> None:
    (tmp_path / "year=2024").mkdir()
    write_outputs(make_outputs(5, 2), tmp_path / "year=2024" / "a.parquet")
    assert not read_outputs(tmp_path / "year=2024" / "a.parquet").metadata


def test_arrow_stream_and_zoned_times(tmp_path: Path) -> None:
    time = pa.array([0, 3600], pa.timestamp("s", tz="Europe/Zurich"))
    table = pa.table({"logits": [[1.0, 2.0], [2.0, 1.0]], "time": time})
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    read = read_outputs(tmp_path / "a.arrow")
    np.testing.assert_array_equal(read.metadata["time"], np.array([0, 3600], "M8[s]"))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_feather(compression: Any, tmp_path: Path, make_outputs: MakeOutputs) -> None:
    made = make_outputs(50, 3)
    frame = pl.DataFrame({"logits": made.logits, "label": made.labels})
    frame.write_ipc(tmp_path / "a.feather", compression=compression)
    assert_same(read_outputs(tmp_path / "a.feather"), made)


@pytest.mark.parametrize("row", ['"[0.5, -1e-3, 2]"', "[0.5 -1e-3 2]", '" [ 0.5,-1e-3 ,2 ] "'])
def test_csv_with_lists_as_text(row: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"label,logits\n1,{row}\n0,{row}\n")
    read = read_outputs(tmp_path / "a.csv")
    np.testing.assert_array_equal(read.logits, [[0.5, -1e-3, 2.0]] * 2)
    np.testing.assert_array_equal(read.labels, [1, 0])


def test_csv_types_come_from_all_rows(tmp_path: Path) -> None:
    rows = [f"{i % 7},{-i},{i}" for i in range(200_000)]  # more than a megabyte of whole numbers
    (tmp_path / "a.csv").write_text("\n".join(["logit_0,logit_1,id", *rows, "0.25,1.5,x"]))
    read = read_outputs(tmp_path / "a.csv")
    np.testing.assert_array_equal(read.logits[-1], [0.25, 1.5])
    assert read.metadata["id"][[0, -1]].tolist() == ["0", "x"]


def test_csv_with_byte_order_mark_and_class_named_na(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbflogit_0,logit_1,label\r\n1,2,NA\r\n3,1,null\r\n")
    read = read_outputs(tmp_path / "a.csv", classes=["NA", "null"])
    np.testing.assert_array_equal(read.labels, [0, 1])


def test_real_logits(data_root: Path, tmp_path: Path) -> None:
    source = read_outputs(data_root / "logits" / "cifar10c" / "resnet20" / "source.npz")
    assert (len(source), source.n_classes) == (5000, 10)
    assert source.logits.dtype == np.float32
    assert source.accuracy is not None
    assert source.accuracy == pytest.approx(0.917, abs=0.01)
    write_outputs(source, tmp_path / "source.parquet")
    assert_same(read_outputs(tmp_path / "source.parquet"), source)


# --------------------------------------------------------------------------------------------- classes
def test_classes_must_agree_with_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", logits=EYE, classes=["a", "b", "c"])
    assert read_outputs(tmp_path / "a.npz", classes=["a", "b", "c"]).classes == ("a", "b", "c")
    with pytest.raises(InputError, match="must be as stored in the file, 'a', 'b', 'c'; got 'b', 'a', 'c'"):
        read_outputs(tmp_path / "a.npz", classes=["b", "a", "c"])


def test_integers_that_could_be_names_or_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("logit_0,logit_1,label\n2,1,1\n3,4,0\n")
    assert read_outputs(tmp_path / "a.csv").accuracy == 0.0
    assert read_outputs(tmp_path / "a.csv", classes=["0", "1"]).accuracy == 0.0
    with pytest.raises(InputError, match="the classes '1', '0' are other integers"):
        read_outputs(tmp_path / "a.csv", classes=["1", "0"])


# --------------------------------------------------------------------------------------------- writing
@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_is_overwritten_without_force(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("precious")
    with pytest.raises(InputError, match=r"exists; use force=True to overwrite it\.$") as caught:
        write_outputs(Outputs(EYE), path)
    assert str(caught.value).startswith(f"{path}: ")
    assert path.read_text() == "precious"
    write_outputs(Outputs(EYE), path, force=True)
    assert_same(read_outputs(path), Outputs(EYE))
    assert os.listdir(tmp_path) == [path.name]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_text("precious")
    with pytest.raises(InputError, match=r"cannot be written as \.safetensors"):
        write_outputs(Outputs(EYE, metadata={"x": np.array([{1}, {2}, {3}])}), path, force=True)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"labels": [0, 1, 2]}, "labels would"),
        ({"metadata": {"city": list("abc")}, "classes": list("abc")}, "metadata and classes would"),
    ],
)
def test_npy_says_what_would_be_lost(more: dict[str, Any], lost: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"a\.npy: holds logits alone; {lost} be lost\. Write \.npz"):
        write_outputs(Outputs(EYE, **more), tmp_path / "a.npy")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("column", [["a", None, "b"], [1, None, 2], ["a\0", "b", "c"]])
def test_npz_refuses_what_needs_pickle_or_would_change(column: list[Any], tmp_path: Path) -> None:
    outputs = Outputs(EYE, metadata={"city": np.array(column, object)})
    with pytest.raises(InputError, match="'city' must be numbers, times or text without missing"):
        write_outputs(outputs, tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["logits", "label", "labels", "logit_7", "classes"])
def test_metadata_cannot_pose_as_something_else(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"metadata column '{name}' has a name that means something else"):
        write_outputs(Outputs(EYE, metadata={name: [1, 2, 3]}), tmp_path / "a.parquet")


@pytest.mark.parametrize("suffix", TABLES)
def test_tables_refuse_columns_of_mixed_type(suffix: str, tmp_path: Path) -> None:
    outputs = Outputs(EYE, metadata={"x": np.array([1, "a", None], object)})
    with pytest.raises(InputError, match="metadata column 'x' must hold values of one type to be stored"):
        write_outputs(outputs, tmp_path / f"a{suffix}")


def test_write_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.leadline"
    write_bytes(path, b"one")
    with pytest.raises(InputError, match=r"model\.leadline: exists; use force=True"):
        write_bytes(path, b"two")
    write_bytes(path, b"two", force=True)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("force", [False, True])
def test_places_that_cannot_be_written(force: bool, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .*/none does not exist"):
        write_bytes(tmp_path / "none" / "a.npz", b"", force=force)
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        write_bytes(tmp_path, b"", force=force)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        write_bytes(tmp_path / "pipe", b"", force=force)
    with pytest.raises(InputError, match=r"has the suffix '\.xlsx'"):
        write_outputs(Outputs(EYE), tmp_path / "a.xlsx", force=force)


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"one")
    (tmp_path / "link").symlink_to("real")
    write_bytes(tmp_path / "link", b"two", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"
