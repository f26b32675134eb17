"""Texts that people write or edit: conditions for rows, plans of labels, and tables of labels."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from fuzz.target import BrokenPromiseError, MakeTarget, Target, model, sample, unless_refused, write_afresh
from leadline import LabelPlan, plan_labels
from leadline.engines import where
from leadline.labels.sheets import read_sheet, write_sheet
from leadline.labels.target import opened
from leadline.monitor.label_files import class_numbers, read_label_file

TABLE = pa.table({
    "n": [1, 2, None], "x": [0.5, float("nan"), -1.0], "country": ["de", None, "fr"], "ok": [True, False, None],
    "t": pa.array([0, 1, 2], pa.timestamp("us", "UTC")), "day": pa.array([0, 1, 2], pa.date32()),
    "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
})  # fmt: skip
CONDITIONS = (
    "country = 'de' and x >= -1.5e0",
    "n in (1, 2, 3) or not (ok = true)",
    "`t` < '2026-01-01' and \"country\" is not null",
    "kind not in ('a', 'it''s') and day == '1970-01-02'",
)


def _where(folder: Path) -> Target:
    del folder
    return Target(_condition, [text.encode() for text in CONDITIONS])


def _plan(folder: Path) -> Target:
    fitted, outputs = model(), sample(60)
    path = folder / "plan.json"

    def attempt(data: bytes) -> bool:
        write_afresh(path, data)
        found = unless_refused(lambda: LabelPlan.load(path))
        if found is None:
            return False
        json.dumps(found.to_dict(), allow_nan=False)
        with opened(fitted, outputs) as target:
            unless_refused(lambda: found.check_target(target.draw(found.cuts, found.seed, found.budget)))
        if not np.all((found.probabilities > 0) & (found.probabilities <= 1)):
            raise BrokenPromiseError(f"rows were drawn with probabilities {found.probabilities}")
        return True

    return Target(attempt, [json.dumps(plan_labels(fitted, outputs, 20).to_dict()).encode()])


def _sheet(suffix: str, folder: Path) -> Target:
    fitted, outputs = model(), sample(60)
    path = folder / f"sheet{suffix}"
    with opened(fitted, outputs) as target:
        write_sheet(path, plan_labels(fitted, outputs, 20), target)

    def attempt(data: bytes) -> bool:
        write_afresh(path, data)
        labels = unless_refused(lambda: read_label_file(path, id="row"))
        if labels is not None:
            unless_refused(lambda: class_numbers(labels.labels))
        with opened(fitted, outputs) as target:
            return unless_refused(lambda: read_sheet(path, target)) is not None

    return Target(attempt, [_labelled(path)])


def _condition(data: bytes) -> bool:
    text = data.decode(errors="replace")
    condition = unless_refused(lambda: where.parse(text))
    if condition is None:
        return False
    where.to_sql(condition)
    where.columns(condition)
    expression = unless_refused(lambda: where.to_arrow(condition, TABLE.schema))
    if expression is None:
        return False
    TABLE.filter(expression)
    return True


def _labelled(sheet: Path) -> bytes:
    """Return a table with labels in it, as a person would have written them."""
    import pyarrow.csv
    import pyarrow.parquet

    if sheet.suffix == ".csv":
        lines = sheet.read_text().splitlines()
        place = lines[0].split(",").index("label")
        rows = [line.split(",") for line in lines[1:]]
        filled = [",".join([*row[:place], str(i % 3), *row[place + 1 :]]) for i, row in enumerate(rows)]
        return "\n".join([lines[0], *filled]).encode()
    table = pyarrow.parquet.read_table(sheet)
    labels = pa.array([str(i % 3) for i in range(len(table))])
    pyarrow.parquet.write_table(table.set_column(table.column_names.index("label"), "label", labels), sheet)
    return sheet.read_bytes()


TARGETS: dict[str, MakeTarget] = {
    "where": _where, "plan": _plan, "sheet-csv": partial(_sheet, ".csv"), "sheet-parquet": partial(_sheet, ".parquet"),
}  # fmt: skip
