"""The table that people fill in: edited in all the ways that people edit, or refused in one clear line."""

from __future__ import annotations

import csv
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline as ll
from command_line import Run
from leadline import InputError, LabelPlan, Outputs, estimate_with_labels, plan_labels
from leadline.labels.formats import read_lines
from leadline.labels.sheets import read_sheet, write_errors, write_sheet
from leadline.labels.target import LabelTarget, opened

Maker = Callable[..., Outputs]
Rows = list[dict[str, str]]
NAMES = ["ant", "bee", "Cat", "dog", "Über"]


@pytest.fixture(scope="module")
def model(make_outputs: Maker) -> ll.Auto:
    return ll.Auto().fit(make_outputs(1000, seed=0, classes=NAMES))


@pytest.fixture(scope="module")
def labelled(make_outputs: Maker) -> Outputs:
    ids = np.array([f"T-{i * 7919 % 100003:06d}" for i in range(1500)])
    notes = np.array([f'said "{i}", then left' for i in range(1500)])
    return make_outputs(1500, seed=1, signal=1.5, classes=NAMES, metadata={"ticket": ids, "note": notes})


@pytest.fixture(scope="module")
def target(labelled: Outputs) -> Outputs:
    return Outputs(labelled.logits, metadata=labelled.metadata, classes=NAMES)


def target_of(model: ll.Auto, outputs: Outputs) -> LabelTarget:
    with opened(model, outputs) as found:
        return found


@pytest.fixture(scope="module")
def rows(model: ll.Auto, target: Outputs) -> LabelTarget:
    return target_of(model, target)


@pytest.fixture(scope="module")
def plan(model: ll.Auto, rows: LabelTarget) -> LabelPlan:
    return plan_labels(model, rows, budget=60, seed=5)


@pytest.fixture
def sheet(tmp_path: Path, plan: LabelPlan, rows: LabelTarget) -> Path:
    path = tmp_path / "to_label.csv"
    write_sheet(path, plan, rows, id="ticket", keep=["note"])
    return path


def rows_of(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def fill(rows: Rows, labelled: Outputs, count: int = 60) -> Rows:
    """Return the rows with labels in the first so many."""
    assert labelled.labels is not None
    by_id = dict(zip(labelled.metadata["ticket"].tolist(), labelled.labels.tolist(), strict=True))
    return [row | {"label": NAMES[by_id[row["ticket"]]] if i < count else ""} for i, row in enumerate(rows)]


def write(path: Path, rows: Rows, *, encoding: str = "utf-8", **options: Any) -> None:
    with path.open("w", newline="", encoding=encoding) as text:
        writer = csv.DictWriter(text, list(rows[0]), extrasaction="ignore", **options)
        writer.writeheader()
        writer.writerows(rows)


def spaces(rows: Rows) -> Rows:
    return [{f" {key} ": f"  {value} " for key, value in row.items()} for row in rows]


def shuffled(rows: Rows) -> Rows:
    return random.Random(0).sample(rows, len(rows))


EDITS: dict[str, tuple[Callable[[Rows], Rows], dict[str, Any]]] = {
    "as it is": (lambda rows: rows, {}),
    "reordered": (shuffled, {}),
    "spaces": (spaces, {}),
    "byte-order mark": (shuffled, {"encoding": "utf-8-sig"}),
    "UTF-16": (lambda rows: rows, {"encoding": "utf-16", "delimiter": "\t"}),
    "semicolons": (shuffled, {"delimiter": ";"}),
    "all quoted, Windows lines": (lambda rows: rows, {"quoting": csv.QUOTE_ALL, "lineterminator": "\r\n"}),
    "upper case": (lambda rows: [row | {"label": row["label"].upper()} for row in rows], {}),
    "numbers": (lambda rows: [row | {"label": str(NAMES.index(row["label"]))} for row in rows], {}),
    "a line twice": (lambda rows: [*rows, rows[7]], {}),
    "a line twice, once empty": (lambda rows: [rows[7] | {"label": ""}, *rows], {}),
    "columns added and moved": (lambda rows: [{"who": "me", **dict(reversed(row.items()))} for row in rows], {}),
    "a kept column dropped": (lambda rows: [{k: v for k, v in row.items() if k != "note"} for row in rows], {}),
    "empty lines": (lambda rows: [dict.fromkeys(rows[0], ""), *rows, dict.fromkeys(rows[0], " ")], {}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_by_hand_change_nothing(
    edit: str, sheet: Path, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    change, options = EDITS[edit]
    write(sheet, change(fill(rows_of(sheet), labelled)), **options)
    found, labels = read_sheet(sheet, rows)
    assert labelled.labels is not None
    assert found.to_dict() == plan.to_dict()
    assert labels == labelled.labels[plan.rows].tolist()


def test_lines_that_are_lost_are_rows_without_a_label(
    sheet: Path, model: ll.Auto, rows: LabelTarget, labelled: Outputs, plan: LabelPlan
) -> None:
    lines = fill(rows_of(sheet), labelled)
    write(sheet, [row for i, row in enumerate(lines) if i not in (10, 30)])
    found, labels = read_sheet(sheet, rows)
    assert found.to_dict() == plan.to_dict()
    assert [i for i, label in enumerate(labels) if label is None] == [10, 30]
    estimate = estimate_with_labels(model, rows, found, labels)
    assert (estimate.diagnostics["n_labels"], estimate.diagnostics["n_skipped"]) == (58, 2)


def test_a_beginning_is_labelled(sheet: Path, rows: LabelTarget, labelled: Outputs) -> None:
    write(sheet, fill(rows_of(sheet), labelled, 25))
    assert len(read_sheet(sheet, rows)[1]) == 25


def test_the_sheet_shows_what_was_asked_for(sheet: Path, target: Outputs, plan: LabelPlan) -> None:
    rows = rows_of(sheet)
    assert list(rows[0])[:3] == ["ticket", "note", "label"]
    assert {row["label"] for row in rows} == {""}
    assert [row["ticket"] for row in rows] == target.metadata["ticket"][plan.rows].tolist()
    assert [row["note"] for row in rows] == target.metadata["note"][plan.rows].tolist()


def test_parquet_and_row_numbers(tmp_path: Path, rows: LabelTarget, labelled: Outputs, plan: LabelPlan) -> None:
    path = tmp_path / "to_label.parquet"
    write_sheet(path, plan, rows)
    table = pq.read_table(path)
    assert table.column_names == ["row", "label", "plan_order", "plan"]
    assert labelled.labels is not None
    filled = [NAMES[labelled.labels[int(row)]] for row in table["row"].to_pylist()]
    pq.write_table(table.set_column(1, "label", [filled]), path)
    found, labels = read_sheet(path, rows)
    assert found.to_dict() == plan.to_dict()
    assert labels == labelled.labels[plan.rows].tolist()


def change_first(**cells: str) -> Callable[[Rows], Rows]:
    return lambda rows: [rows[0] | cells, *rows[1:]]


def forge_plan(labels: str, sizes: str) -> Callable[[Rows], Rows]:
    text = f"leadline plan 1 rows=1500 labels={labels} sizes={sizes} cuts= seed=5 target=0 id=ticket"
    return lambda rows: [row | {"plan": text} for row in rows]


WRONG: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "unknown id": (change_first(ticket="T-9"), r"ticket 'T-9' in line 2 is not in the target"),
    "unknown label": (change_first(label="eel"), r"in line 2 must have a label that is one of 'ant', .*; got 'eel'\."),
    "number too large": (change_first(label="5"), "got '5'"),
    "contradiction": (
        lambda rows: [*rows, rows[3] | {"label": next(name for name in NAMES if name != rows[3]["label"])}],
        "in line 62 is there twice with different labels; keep one",
    ),
    "row outside the plan": (
        lambda rows: [*rows, rows[3] | {"ticket": "T-000000", "plan_order": "", "label": "ant"}],
        "in line 62 has no plan_order, so it is no part of the plan",
    ),
    "order of another row": (
        lambda rows: [rows[0] | {"ticket": rows[1]["ticket"]}, *rows[1:]],
        "in line 2 has the plan_order of another row",
    ),
    "order out of range": (change_first(plan_order="61"), "must have a plan_order from 1 to 60; got '61'"),
    "two plans": (
        lambda rows: change_first(plan=rows[0]["plan"].replace("seed=5", "seed=6"))(rows),
        "parts of 2 plans",
    ),
    "broken plan": (lambda rows: [row | {"plan": "leadline plan 1 rows=3"} for row in rows], "as the plan wrote it"),
    "a plan of more rows than can be counted": (forge_plan(f"{10**30}", f"{10**30}"), "as the plan wrote it"),
    "a plan of more rows than memory can hold": (
        forge_plan(f"{10**17}", f"{10**17}"),
        "has 100,000,000,000,000,000 rows",
    ),
    "another target": (
        lambda rows: [row | {"plan": row["plan"].replace("target=", "target=f")} for row in rows],
        "outputs must be those of the plan",
    ),
    "no plan": (lambda rows: [{k: v for k, v in row.items() if k != "plan"} for row in rows], "one column 'plan'"),
    "no label column": (
        lambda rows: [{k: v for k, v in row.items() if k != "label"} for row in rows],
        "column 'label'",
    ),
    "no label": (lambda rows: [row | {"label": " "} for row in rows], "has no label yet"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_meant_is_refused(case: str, sheet: Path, rows: LabelTarget, labelled: Outputs) -> None:
    change, reason = WRONG[case]
    write(sheet, change(fill(rows_of(sheet), labelled)))
    with pytest.raises(InputError, match=reason) as caught:
        read_sheet(sheet, rows)
    assert str(caught.value).startswith(str(sheet))


def test_ids_that_a_spreadsheet_took_for_numbers(tmp_path: Path, model: ll.Auto, labelled: Outputs) -> None:
    rows = target_of(model, Outputs(labelled.logits, metadata={"id": np.arange(1500.0) * 3}, classes=NAMES))
    plan = plan_labels(model, rows, budget=20)
    write_sheet(tmp_path / "a.csv", plan, rows, id="id")
    lines = rows_of(tmp_path / "a.csv")
    assert [int(row["id"]) for row in lines] == (plan.rows * 3).tolist()
    write(tmp_path / "a.csv", [row | {"id": row["id"] + ".0", "label": "ant"} for row in lines])
    assert read_sheet(tmp_path / "a.csv", rows)[1] == [0] * 20


@pytest.mark.parametrize(
    ("metadata", "options", "reason"),
    [
        ({"id": np.zeros(1500, int)}, {"id": "id"}, "column 'id' must tell all rows apart; got '0' more than once"),
        ({"id": np.arange(1500) % 1499}, {"id": "id"}, "column 'id' must tell all rows apart; other rows have ids"),
        ({"id": np.arange(1500) + 0.5}, {"id": "id"}, "gaps or fractions"),
        ({}, {"id": "id"}, "column 'id' is not in the target"),
        ({"label": np.arange(1500)}, {"keep": ["label"]}, "has a name that means something else in a plan"),
    ],
)
def test_targets_that_no_sheet_can_be_made_of(
    tmp_path: Path, model: ll.Auto, labelled: Outputs, plan: LabelPlan, metadata: Any, options: Any, reason: str
) -> None:
    rows = target_of(model, Outputs(labelled.logits, metadata=metadata, classes=NAMES))
    first = replace(plan, rows=np.sort(np.append(plan.rows[plan.rows > 0][:59], 0)))
    with pytest.raises(InputError, match=reason):
        write_sheet(tmp_path / "a.csv", first, rows, **options)
    with pytest.raises(InputError, match=r"kept in \.csv, \.parquet files"):
        write_sheet(tmp_path / "a.xlsx", plan, rows)


def test_likely_errors_measure_nothing(tmp_path: Path, model: ll.Auto, rows: LabelTarget) -> None:
    worst, correctness = ll.likely_errors(model, rows, 20)
    write_errors(tmp_path / "errors.csv", worst, correctness, rows, id="ticket")
    filled = [row | {"label": "ant"} for row in rows_of(tmp_path / "errors.csv")]
    write(tmp_path / "errors.csv", filled)
    with pytest.raises(InputError, match="no accuracy can be told from them"):
        read_sheet(tmp_path / "errors.csv", rows)


def test_the_command_from_plan_to_estimate(folder: Path, run: Run, make_outputs: Maker) -> None:
    del folder
    truth = make_outputs(seed=3).labels
    assert truth is not None
    words = ("plan", "ac.leadline", "traffic.parquet", "--budget", 80, "--keep", "channel", "-o", "to_label.csv")
    planned = run(*words, "--format", "json")
    assert planned.code == 0
    assert (planned.data["rows"], planned.data["of"]) == (80, 300)
    assert "to_label.csv exists; use --force" in run(*words).error
    rows = rows_of(Path("to_label.csv"))
    write(Path("to_label.csv"), [row | {"label": str(truth[int(row["row"])])} for row in rows[:70]])
    command = ("estimate", "ac.leadline", "traffic.parquet", "--labelled", "to_label.csv")
    whole, *parts = run(*command, "--by", "channel", "--format", "json").data
    assert whole["method"] == "labels"
    assert whole["diagnostics"]["n_labels"] == 70
    assert whole["interval"][0] <= whole["truth"] <= whole["interval"][1]
    assert {part["group"]["channel"] for part in parts} <= {"app", "mail", "web"}
    assert "It rests on 70 labels." in run(*command).out
    report = ("report", "ac.leadline", "traffic.parquet", "--methods", "ac", "--format", "json", "--labelled")
    assert run(*report, "to_label.csv").data["targets"][0]["with_labels"]["interval"] == whole["interval"]
    assert run(*command, "--min-accuracy", 1).code == 1


def test_the_command_refuses_in_one_line(folder: Path, run: Run) -> None:
    del folder
    run("plan", "ac.leadline", "traffic.parquet", "--find-errors", "-o", "errors.csv")
    run("plan", "ac.leadline", "plain.npz", "--budget", 20, "-o", "other.csv")
    write(Path("other.csv"), [row | {"label": "1"} for row in rows_of(Path("other.csv"))])
    command = ("estimate", "ac.leadline", "traffic.parquet", "--labelled")
    assert "errors.csv: holds rows that were picked as likely errors" in run(*command, "errors.csv").error
    assert "other.csv: outputs must be those of the plan" in run(*command, "other.csv").error
    assert "nothing.csv: does not exist" in run(*command, "nothing.csv").error
    assert "leave out --skip-bad" in run(*command, "other.csv", "--skip-bad").error
    assert "--labelled is about one TARGET; got 2" in run(*command, "other.csv", "plain.npz").error
    assert "--simple" in run("plan", "ac.leadline", "plain.npz", "--simple", "--find-errors", "-o", "x.csv").error
    assert "budget must be at most 300" in run("plan", "ac.leadline", "plain.npz", "--budget", 301, "-o", "x.csv").error
    assert not Path("x.csv").exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_sheet_has_a_memory_limit(suffix: str, tmp_path: Path, rows: LabelTarget, plan: LabelPlan) -> None:
    path = tmp_path / f"to_label{suffix}"
    write_sheet(path, plan, rows)
    with pytest.raises(InputError, match="has no label yet"):
        read_sheet(path, rows, "1MB")
    with pytest.raises(InputError, match=r"to_label.*: it would take .* more than the limit of 5\.0 kB"):
        read_sheet(path, rows, 5000)


@pytest.mark.parametrize(
    "line", ["\n", "a\n", "17,2\n", f"t1,,{'some text ' * 20}\n", "a;" * 40 + "\n", "é\t" * 40 + "\n"]
)
def test_what_a_sheet_takes_is_not_underestimated(line: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("id,label,text\n" + line * 5000, encoding="utf-8")
    tracemalloc.start()
    read_lines(path, ())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with pytest.raises(InputError, match="it would take"):
        read_lines(path, (), peak)


def test_times_beyond_the_calendar_in_a_sheet(tmp_path: Path, rows: LabelTarget) -> None:
    times = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"label": ["ant"], "plan": ["x"], "when": times}), tmp_path / "late.parquet")
    with pytest.raises(InputError, match=r"late\.parquet: cannot be read as \.parquet"):
        read_sheet(tmp_path / "late.parquet", rows)
