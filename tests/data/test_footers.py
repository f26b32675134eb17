"""Footers of Parquet files, read beside Arrow, which ends the process where one contradicts itself."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline
from leadline import InputError
from leadline.data.footers import row_groups
from leadline.data.sizes import row_group_bytes

# The sizes of the column `label` as Arrow writes them: no repetitions, two numbers of definitions, 0 and 6.
SIZES = b"\x3c\x29\x06\x19\x26\x00\x0c"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a good file of six rows."""
    path = tmp_path / "outputs.parquet"
    logits = np.random.default_rng(0).normal(size=(6, 3))
    leadline.write_outputs(leadline.Outputs(logits, np.arange(6) % 3, classes=["a", "b", "c"]), path)
    return path


def change(path: Path, old: bytes, new: bytes) -> None:
    """Change a footer and make its length right."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length : -8]
    assert footer.count(old) == 1
    footer = footer.replace(old, new)
    path.write_bytes(body + footer + len(footer).to_bytes(4, "little") + data[-4:])


def test_a_footer_says_what_arrow_finds_in_it(tmp_path: Path) -> None:
    n = 90
    table = pa.table({
        "number": np.arange(n, dtype=np.int32), "with.dots": pa.array(["x", None] * 45).dictionary_encode(),
        "lists": [[1.0, 2.0]] * n, "parts": [{"one": i, "two": "text"} for i in range(n)], "known": [True, False] * 45,
        "price": pa.array([Decimal("1.25")] * n), "days": pa.array(np.arange(n).astype("datetime64[D]")),
    }).replace_schema_metadata({"note": "x" * 300})  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=30, store_decimal_as_integer=False,
                   column_encoding={"parts.two": "DELTA_BYTE_ARRAY"}, use_dictionary=["with.dots"])  # fmt: skip
    metadata = pq.read_metadata(tmp_path / "t.parquet")
    with (tmp_path / "t.parquet").open("rb") as file:
        found = row_groups(file, metadata)
    assert len(found) == metadata.num_row_groups == 3
    for number, group in enumerate(found):
        for i, chunk in enumerate(group):
            said = metadata.row_group(number).column(i)
            assert chunk.path == said.path_in_schema
            assert chunk.type == said.physical_type
            assert (chunk.n_values, chunk.n_bytes) == (said.num_values, said.total_uncompressed_size)
            assert chunk.has_dictionary == said.has_dictionary_page
            assert chunk.has_prefixes == ("DELTA_BYTE_ARRAY" in said.encodings)
    assert {chunk.path for chunk in found[0] if chunk.has_prefixes} == {"parts.two"}
    assert [chunk.width for chunk in found[0] if chunk.type == "FIXED_LEN_BYTE_ARRAY"] == [2]
    assert row_group_bytes(found, ["known", "with.dots"])[2] == sum(
        30 * (1 + 8) if chunk.path == "known" else chunk.n_bytes + 30 * 8
        for chunk in found[2]
        if chunk.path in ("known", "with.dots")
    )


def test_a_footer_that_contradicts_itself_is_refused_and_ends_no_process(path: Path) -> None:
    model = leadline.make("ac").fit(np.eye(3) * 5, [0, 1, 2])
    change(path, SIZES, SIZES[:-3] + b"\x36\x00\x00\x0c")  # three definitions
    with pytest.raises(InputError, match="its footer contradicts itself"):
        leadline.read_outputs(path)
    for where in (None, "label >= 0"):
        with pytest.raises(InputError, match="its footer contradicts itself"):
            leadline.estimate_files(model, str(path), where=where)


def test_a_footer_that_says_it_is_signed_ends_no_process(path: Path) -> None:
    """Arrow reads it, and ends the process where it is to write it."""
    before = leadline.read_outputs(path).logits
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -9] + b"\x1c\x1c\x00\x00\x00"  # one field more: the algorithm of its signature
    path.write_bytes(data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + data[-4:])
    model = leadline.make("ac").fit(np.eye(3) * 5, [0, 1, 2])
    np.testing.assert_array_equal(leadline.read_outputs(path).logits, before)
    assert leadline.estimate_files(model, str(path)).overall.estimate.n_samples == 6


def test_a_field_that_comes_twice_is_refused(path: Path) -> None:
    change(path, SIZES, SIZES + b"\x09\x06\x26\x00\x0c")  # the definitions once more, as field 3
    with pytest.raises(InputError, match="its footer contradicts itself"):
        leadline.read_outputs(path)


def test_fields_of_another_kind_are_refused(path: Path) -> None:
    """Arrow passes over a field whose kind is not the one it knows."""
    change(path, SIZES + b"\x00", b"\x36\x00")  # a number in place of the sizes
    with pytest.raises(InputError, match="its footer has fields of another kind than Parquet's"):
        leadline.read_outputs(path)


def test_bytes_of_texts_belong_to_texts(path: Path) -> None:
    change(path, SIZES, b"\x3c\x16\x0c\x19\x06" + SIZES[3:])
    with pytest.raises(InputError, match="its footer contradicts itself"):
        leadline.read_outputs(path)


def test_both_copies_of_the_class_names_are_not_taken_for_one(path: Path) -> None:
    model = leadline.make("ac").fit(np.eye(3) * 5, [0, 1, 2])
    change(path, b'["a", "b", "c"]', b'["a", "b\x12, "c"]')
    assert leadline.read_outputs(path).classes == ("a", "b", "c")  # that of Arrow's schema, in memory and streamed
    assert leadline.estimate_files(model, str(path)).overall.estimate.n_samples == 6
