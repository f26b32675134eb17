"""Small files that unpack to much: refused by what their metadata say, before anything is unpacked."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file

from command_line import Run
from leadline import estimate_files, make
from leadline.data.files import read_outputs, write_outputs
from leadline.data.memory import MemoryLimit, in_words
from leadline.data.outputs import Outputs
from leadline.errors import InputError

LIMIT = "20MB"
ROWS = 12_500_000  # of which a column of doubles takes 100 MB
LONG = "x" * 1_000_000


def deflated(path: Path, **arrays: tuple[Any, tuple[int, ...]]) -> None:
    """Write an archive of arrays of zeros, by type and shape, that never were in memory."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, (dtype, shape) in arrays.items():
            with archive.open(f"{name}.npy", "w") as stream:
                header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                for start in range(0, size, 1 << 20):
                    stream.write(bytes(min(1 << 20, size - start)))


def table_of(column: Any, name: str = "text") -> Any:
    """Return two logits and a column."""
    n = len(column)
    return pa.table({"logit_0": np.arange(n) % 7.0, "logit_1": np.arange(n) % 5.0, name: column})


def repeated(n: int) -> Any:
    """Return a column in which all rows have the same long text, kept once."""
    return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int8), [LONG])


def arrow_file(path: Path, table: Any, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)


def arrow_stream(path: Path, table: Any) -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)


def sparse_npy(path: Path) -> None:
    """Write whole numbers of which the disk has none."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "|i1", "fortran_order": False, "shape": (ROWS, 8)})
        stream.truncate(stream.tell() + 8 * ROWS)


def zeros() -> Any:
    return pa.table({"logit_0": np.zeros(ROWS), "logit_1": np.zeros(ROWS)})


BOMBS: dict[str, Callable[[Path], Any]] = {
    "logits.npz": lambda path: deflated(path, logits=("<f4", (ROWS, 2))),
    "metadata.npz": lambda path: deflated(path, logits=("<f4", (100, 2)), text=("<U250000", (100,))),
    "whole.npy": sparse_npy,
    "rows.parquet": lambda path: parquet.write_table(zeros(), path),
    "rows.arrow": lambda path: arrow_file(path, zeros(), "zstd"),
    "stream.arrow": lambda path: arrow_stream(path, zeros()),
    "nothing.arrow": lambda path: arrow_file(path, pa.table({"logits": pa.nulls(10**9)})),
    "views.arrow": lambda path: arrow_file(path, table_of(pa.array([LONG] * 100, pa.string_view()))),
    "header.safetensors": lambda path: save_file({"logits": np.eye(3)}, path, {"leadline.metadata": "[" * 10**6}),
    "lines.csv": lambda path: path.write_text("logit_0,logit_1,a,b,c,d,e,f\n" + ",,,,,,,\n" * 500_000),
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    for name, build in BOMBS.items():
        build(folder / name)
    return folder


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unpacks_to_too_much_is_one_line(name: str, bombs: Path) -> None:
    refused = r"would take [\d.,]+ [kMG]B of memory, more than the limit of 20\.0 MB, which was given; "
    with pytest.raises(InputError, match=refused + r"memory_limit='\d+GB' would allow it\.") as caught:
        read_outputs(bombs / name, memory_limit=LIMIT)
    assert str(caught.value).startswith(str(bombs / name))


MEASURED = """
import resource, sys
import numpy, pyarrow.dataset, pyarrow.csv, safetensors
import leadline as ll
from leadline.data import archives, tables
model = ll.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
refused = 0
for path in sys.argv[2:]:
    try:
        ll.read_outputs(path, memory_limit="20MB")
    except ll.InputError:
        refused += 1
    if path.endswith(("rows.parquet", "rows.arrow", "stream.arrow")):
        try:
            ll.estimate_files(model, path, memory_limit="20MB")
        except ll.InputError:
            refused += 1
print(refused, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a count of the memory used")
def test_memory_stays_bounded(bombs: Path, tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    source = make_outputs(c=2)
    make("ac").fit(source.logits, source.labels).save(tmp_path / "model.leadline")
    words = [tmp_path / "model.leadline", *(bombs / name for name in BOMBS)]
    command = [sys.executable, "-c", MEASURED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    refused, megabytes = map(int, done.stdout.split())
    assert refused == len(BOMBS) + 3
    assert megabytes < 60  # each of these files unpacks to 100 and more


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_text_that_all_rows_share_is_kept_once(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    table = table_of(repeated(2_000))
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        arrow_file(path, table)
    outputs = read_outputs(path, memory_limit=LIMIT)  # 2 GB, if each row had its own
    assert outputs.metadata["text"].tolist() == [LONG] * 2_000
    source = Outputs(outputs.logits, np.arange(2_000) % 2)
    model = make("ac").fit(source)
    found = estimate_files(model, str(path), by=["text"], memory_limit=LIMIT)
    assert [(row.group["text"], row.estimate.n_samples) for row in found.rows] == [(LONG, 2_000)]


def test_a_row_group_is_checked_before_it_is_unpacked(tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    source = make_outputs(c=2)
    model = make("ac").fit(source.logits, source.labels)
    write_outputs(source, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: row group 0 would take [\d.]+ kB of memory"):
        estimate_files(model, str(tmp_path / "a.parquet"), memory_limit=1000)
    write_outputs(source, tmp_path / "b.arrow")
    with pytest.raises(InputError, match=r"b\.arrow: one of its batches would take [\d.]+ kB of memory"):
        estimate_files(model, str(tmp_path / "b.arrow"), memory_limit=1000)


def test_the_command_says_how_to_raise_the_limit(folder: Path, run: Run) -> None:
    tight = ("--memory-limit", "1KB")
    Path("rows.json").write_text("[]" + " " * 40)
    for words in (
        ("fit", "source.npz", "-o", "m.leadline"),
        ("estimate", "ac.leadline", "plain.npz"),
        ("estimate", "ac.leadline", "traffic.parquet", "--engine", "arrow"),
        ("compare", "source.npz", "plain.npz"),
        ("report", "source.npz", "plain.npz", "-o", "a.html"),
        ("plan", "ac.leadline", "plain.npz", "--budget", "9", "-o", "a.csv"),
        ("figure", "reliability", "source.npz", "-o", "a.svg"),
        ("figure", "time", "rows.json", "-o", "a.svg"),
    ):
        error = run(*words, *tight).error
        assert "more than the limit of 1.0 kB, which was given; --memory-limit 1GB would allow it." in error, words
    assert run("estimate", "ac.leadline", "plain.npz", "--memory-limit", "1GB").code == 0
    wrong = run("estimate", "ac.leadline", "plain.npz", "--memory-limit", "a").error
    assert "--memory-limit must be a size such as '8GB'" in wrong


def test_sizes() -> None:
    assert [MemoryLimit.of(text).size for text in ("8GB", "1.5 kb", "20", 7)] == [8 * 10**9, 1500, 20, 7]
    assert 10**8 < MemoryLimit.of(None).size < 10**15
    for wrong in ("", "GB", "-1", 0, "1e9", "nan", "8 G B", "9" * 20):
        with pytest.raises(InputError, match="memory_limit must be a size"):
            MemoryLimit.of(wrong)
    assert in_words(999) == "999 bytes"
