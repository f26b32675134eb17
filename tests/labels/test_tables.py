"""Plans for tables in files are those of the same rows in memory, and labels say the same over the files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline as ll
from command_line import Run
from leadline import InputError, LabelPlan, Outputs, Table
from leadline.labels.evaluation import estimate_with_labels_by
from leadline.labels.sheets import read_sheet, write_sheet
from leadline.labels.target import opened

Maker = Callable[..., Outputs]
FILES, ROWS = 3, 500


@pytest.fixture(scope="module")
def model(make_outputs: Maker) -> ll.Auto:
    return ll.Auto().fit(make_outputs(400, seed=0))


@pytest.fixture(scope="module")
def whole(make_outputs: Maker) -> Outputs:
    """Return all rows, with ids, channels and days."""
    n = FILES * ROWS
    metadata = {
        "id": np.array([f"T-{i * 7919 % 100003:06d}" for i in range(n)]),
        "channel": np.array(["web", "app"])[np.arange(n) % 2],
        "time": np.datetime64("2026-01-05", "us") + np.arange(n).astype("timedelta64[h]"),
    }
    return make_outputs(n, seed=1, signal=1.2, metadata=metadata)


@pytest.fixture(scope="module")
def lake(whole: Outputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same rows in three files, in row groups of 70."""
    root = tmp_path_factory.mktemp("lake") / "a b"
    for i in range(FILES):
        rows = slice(i * ROWS, (i + 1) * ROWS)
        columns = {name: pa.array(values[rows].tolist()) for name, values in whole.metadata.items()}
        logits = pa.array(list(whole.logits[rows]), pa.list_(pa.float32()))
        (root / f"part={i}").mkdir(parents=True)
        pq.write_table(pa.table({"logits": logits, **columns}), root / f"part={i}" / "x.parquet", row_group_size=70)
    return root


@pytest.fixture(scope="module")
def plan(model: ll.Auto, lake: Path) -> LabelPlan:
    return ll.plan_labels(model, str(lake), budget=120, seed=7)


def labels_of(whole: Outputs, plan: LabelPlan) -> Any:
    assert whole.labels is not None
    return whole.labels[plan.rows]


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


def write(path: Path, lines: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as text:
        writer = csv.DictWriter(text, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


@pytest.mark.parametrize("method", ["auto", "ac", "atc-mc", "cot"])
def test_a_plan_is_that_of_the_rows_in_memory(
    method: str, make_outputs: Maker, lake: Path, whole: Outputs, model: ll.Auto
) -> None:
    fitted = model if method == "auto" else ll.make(method).fit(make_outputs(400, seed=0))
    streamed, inside = (
        ll.plan_labels(fitted, target, budget=120, seed=7).to_dict() for target in (f"{lake}/**/*.parquet", whole)
    )
    assert streamed == inside


def test_labels_say_the_same_over_files(model: ll.Auto, lake: Path, whole: Outputs, plan: LabelPlan) -> None:
    labels = labels_of(whole, plan)[:90]
    unlabelled = Outputs(whole.logits, metadata=whole.metadata)
    for by in ((), ("channel", "time:week")):
        streamed, inside = (
            estimate_with_labels_by(model, target, plan, labels, by) for target in (str(lake), unlabelled)
        )
        assert [row.group for row in streamed] == [row.group for row in inside]
        for one, other in zip((streamed.overall, *streamed), (inside.overall, *inside), strict=True):
            mine, theirs = one.estimate.to_dict(), other.estimate.to_dict()
            assert mine.pop("diagnostics").keys() == theirs.pop("diagnostics").keys()
            assert mine == theirs
    assert streamed.overall.estimate.diagnostics["n_labels"] == 90


def test_blocks_and_their_number_do_not_matter(
    model: ll.Auto, lake: Path, plan: LabelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.engines.arrow._BLOCK_VALUES", 5 * 37)
    assert ll.plan_labels(model, str(lake), budget=120, seed=7).to_dict() == plan.to_dict()


def test_likely_errors_are_those_in_memory(model: ll.Auto, lake: Path, whole: Outputs) -> None:
    for streamed, inside in zip(
        ll.likely_errors(model, str(lake), 30), ll.likely_errors(model, whole, 30), strict=True
    ):
        np.testing.assert_array_equal(streamed, inside)


def test_a_condition_chooses_rows_by_their_numbers(model: ll.Auto, lake: Path, whole: Outputs) -> None:
    table = Table(str(lake), where="channel = 'web' and part > 0")
    plan = ll.plan_labels(model, table, budget=60)
    assert plan.n_rows == ROWS
    assert set(whole.metadata["channel"][plan.rows]) == {"web"}
    assert plan.rows.min() >= ROWS
    found = ll.estimate_with_labels(model, table, plan, labels_of(whole, plan))
    assert found.n_samples == ROWS
    with pytest.raises(InputError, match=r"outputs must be those of the plan, which has 500 rows; got 1,500\."):
        ll.estimate_with_labels(model, str(lake), plan, labels_of(whole, plan))


def test_a_sheet_goes_there_and_back(
    model: ll.Auto, lake: Path, whole: Outputs, plan: LabelPlan, tmp_path: Path
) -> None:
    path = tmp_path / "to_label.csv"
    with opened(model, Table(str(lake))) as rows:
        write_sheet(path, plan, rows, id="id", keep=["part", "channel"])
        lines = lines_of(path)
        assert [line["id"] for line in lines] == whole.metadata["id"][plan.rows].tolist()
        assert [int(line["part"]) for line in lines] == (plan.rows // ROWS).tolist()
        filled = zip(lines, labels_of(whole, plan), strict=True)
        write(path, [line | {"label": str(label)} for line, label in filled][::-1])
        found, labels = read_sheet(path, rows)
        assert found.to_dict() == plan.to_dict()
        assert labels == labels_of(whole, plan).tolist()
        with pytest.raises(InputError, match="column 'channel' must tell all rows apart"):
            write_sheet(path, plan, rows, id="channel")
        with pytest.raises(InputError, match="column 'nothing' is not in the target"):
            write_sheet(path, plan, rows, id="nothing")


def test_other_files_are_refused(model: ll.Auto, lake: Path, whole: Outputs, plan: LabelPlan, tmp_path: Path) -> None:
    labels = labels_of(whole, plan)
    with pytest.raises(InputError, match=r"which has 1,500 rows; got 1,000\."):
        ll.estimate_with_labels(model, f"{lake}/part=[01]/**/*.parquet", plan, labels)
    for i, j in enumerate((1, 0, 2)):  # the same rows in another order
        (tmp_path / f"{i}.parquet").write_bytes((lake / f"part={j}" / "x.parquet").read_bytes())
    with pytest.raises(InputError, match=r"outputs must be those of the plan \(checksum"):
        ll.estimate_with_labels(model, str(tmp_path), plan, labels)


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(InputError, match="engine must be one of arrow, spark; got 'dask'"):
        Table("x.parquet", engine="dask")


def test_the_command_over_a_folder(
    model: ll.Auto, lake: Path, whole: Outputs, plan: LabelPlan, run: Run, tmp_path: Path
) -> None:
    saved, sheet, place = tmp_path / "m.leadline", tmp_path / "to_label.csv", f"{lake}/**/*.parquet"
    model.save(saved)
    planned = run("plan", saved, place, "--budget", 120, "--seed", 7, "--id", "id", "-o", sheet, "--format", "json")
    assert (planned.code, planned.data["rows"], planned.data["of"]) == (0, 120, 1500)
    assert whole.labels is not None
    by_id = dict(zip(whole.metadata["id"].tolist(), whole.labels.tolist(), strict=True))
    lines = lines_of(sheet)
    write(sheet, [line | {"label": str(by_id[line["id"]])} for line in lines])
    overall, *parts = run("estimate", saved, place, "--labelled", sheet, "--by", "channel", "--format", "json").data
    expected = estimate_with_labels_by(model, whole, plan, labels_of(whole, plan), "channel")
    assert overall["interval"] == list(expected.overall.estimate.interval)
    assert [part["group"] for part in parts] == [{"channel": "app"}, {"channel": "web"}]
    for word in ("--skip-bad", "--engine=dask"):
        assert run("estimate", saved, place, "--labelled", sheet, word).code == 2
