"""Which files of a folder are a table, in which order, and which folders are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline
from leadline.engines.arrow import estimate_files
from leadline.engines.lake import find_files

CLASSES = 5


@pytest.fixture(scope="module")
def model(make_outputs: Callable[..., leadline.Outputs]) -> leadline.Estimator:
    source = make_outputs(300, CLASSES, seed=0)
    return leadline.make("ac").fit(source.logits, source.labels)


def write(path: Path) -> None:
    """Write a row of each class."""
    pq.write_table(pa.table({"logits": pa.array(np.eye(CLASSES).tolist())}), path)


def test_a_folder_that_may_not_be_read_is_not_left_out_in_silence(
    tmp_path: Path, model: leadline.Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, scan = tmp_path / "country=de", os.scandir
    locked.mkdir()
    write(tmp_path / "part-00.parquet")

    def refuse_one(path: Any) -> Any:
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse_one)
    for place in (tmp_path, locked):
        with pytest.raises(leadline.InputError, match=r"country=de cannot be read: permission denied\."):
            estimate_files(model, str(place))


def test_a_folder_that_is_no_table_is_known_by_its_first_file(
    tmp_path: Path, model: leadline.Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[Any] = []
    scan = os.scandir

    def note(path: Any) -> Any:
        scanned.append(path)
        return scan(path)

    for number in range(20):
        (tmp_path / f"part={number:02d}").mkdir()
        write(tmp_path / f"part={number:02d}" / "log.parquet")
    (tmp_path / "part=03" / "notes.txt").write_text("these are not the rows you are looking for")
    monkeypatch.setattr("os.scandir", note)
    with pytest.raises(leadline.InputError, match=r"is a folder; .* and it has .*notes\.txt\.$"):
        estimate_files(model, str(tmp_path))
    assert len(scanned) == 1 + 4  # not those after it: of the whole machine there would be a million


def test_a_table_has_one_order_however_it_is_named(tmp_path: Path) -> None:
    for name in ("a-b/1.parquet", "a/1.parquet", "a/.hidden/1.parquet", "a/_SUCCESS", "B.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / name)
    found = [str(tmp_path / name) for name in ("B.parquet", "a/1.parquet", "a-b/1.parquet")]
    for place in (f"{tmp_path}", f"{tmp_path}/**/*.parquet", f"file://{tmp_path}"):
        assert [file.path for file in find_files(place)] == found
