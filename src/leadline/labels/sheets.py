"""A plan as a table for people to label: written, edited by hand in any spreadsheet, and read again.

Every line carries the plan in short, so that lines may be sorted, lost or copied. What was drawn follows from the short
form, the model and the target; lines say only which row is which, and what its label is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from leadline.data.names import brief, one_line
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.labels.formats import Line, read_lines, write_table
from leadline.labels.plan import LabelPlan
from leadline.labels.strata import IntArray, arrange, turns
from leadline.labels.target import LabelTarget
from leadline.numeric import Array

LABEL, ORDER, PLAN = "label", "plan_order", "plan"
ROW = "row"  # the id of targets without one: the number of the row, from 0
_MARK = "leadline plan 1"
_ERRORS = "leadline errors"
_SPARE = 20  # rows of a stratum beyond those planned, by which rounding may have moved the draw


def write_sheet(
    path: str | Path,
    plan: LabelPlan,
    target: LabelTarget,
    *,
    id: str | None = None,
    keep: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write the rows of a plan as a table with an empty column ``label``.

    Parameters
    ----------
    path
        A .csv or .parquet file.
    plan
        Which rows, in which order.
    target
        What the plan was made for.
    id
        The column that tells rows apart; None for their numbers.
    keep
        Further columns to show.
    force
        Overwrite a file that exists.
    """
    counts = np.bincount(plan.strata, minlength=len(plan.sizes))
    parts = {
        "rows": plan.n_rows,
        "labels": "+".join(map(str, counts)),
        "sizes": "+".join(map(str, plan.sizes)),
        "cuts": "+".join(map(repr, plan.cuts.tolist())),
        "seed": plan.seed,
        "target": plan.checksum,
        "id": "" if id is None else quote(id, safe=""),
    }
    text = " ".join([_MARK, *(f"{name}={value}" for name, value in parts.items())])
    _write(path, plan.rows, target, id, keep, {ORDER: np.arange(1, len(plan) + 1), PLAN: [text] * len(plan)}, force)


def write_errors(
    path: str | Path,
    rows: IntArray,
    correctness: Array,
    target: LabelTarget,
    *,
    id: str | None = None,
    keep: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write rows that are likely wrong as a table, marked as one from which no accuracy can be told.

    Parameters
    ----------
    path, target, id, keep, force
        As for :func:`write_sheet`.
    rows, correctness
        Of :func:`leadline.likely_errors`.
    """
    more: dict[str, Iterable[Any]] = {"correctness": np.round(correctness, 4), PLAN: [_ERRORS] * len(rows)}
    _write(path, rows, target, id, keep, more, force)


def read_sheet(
    path: str | Path, target: LabelTarget, memory_limit: int | str | None = None
) -> tuple[LabelPlan, list[int | None]]:
    """Read a labelled table: the plan, and the label of each of its rows up to the last one that has any.

    Parameters
    ----------
    path
        A file that :func:`write_sheet` wrote and people filled in. Lines may be in any order or missing; spaces, a
        byte-order mark, semicolons or tabs in place of commas do not matter. Columns may be added.
    target
        What the plan was made for, with the model that it was made with.
    memory_limit
        How much memory the table may take, as for ``read_outputs``.

    Returns
    -------
    tuple
        The plan and labels as :func:`leadline.estimate_with_labels` takes them.
    """
    try:
        lines = read_lines(Path(path), (LABEL, PLAN), memory_limit)
        return _join(lines, _Short.read(lines), target)
    except InputError as error:
        raise InputError(f"{path}: {one_line(error, most=600)}") from error


@dataclass(frozen=True, eq=False)
class _Short:
    """A plan in short, as every line has it."""

    counts: IntArray
    sizes: IntArray
    cuts: Any
    seed: int
    checksum: str
    id: str | None

    @classmethod
    def read(cls, lines: Sequence[Line]) -> _Short:
        """Read the one short form that all lines share."""
        found = {line.cells[PLAN]: line.number for line in lines if line.cells.get(PLAN)}
        if _ERRORS in found:
            raise InputError(
                "holds rows that were picked as likely errors; no accuracy can be told from them. "
                "Make a plan to measure."
            )
        if len(found) != 1:
            what = "has no plan" if not found else f"has parts of {len(found)} plans"
            raise InputError(f"{what} in its column {PLAN!r}; keep the columns that came with the plan as they were.")
        text = next(iter(found))
        parts = dict(part.partition("=")[::2] for part in text.removeprefix(_MARK).split())
        try:
            if not text.startswith(_MARK):
                raise ValueError(text)
            counts, sizes = (np.array(parts[name].split("+"), dtype=np.int64) for name in ("labels", "sizes"))
            cuts = np.array([float(cut) for cut in parts["cuts"].split("+") if cut])
            if len(counts) != len(sizes) or len(cuts) != len(sizes) - 1 or (counts > sizes).any() or counts.min() < 1:
                raise ValueError(text)
            return cls(counts, sizes, cuts, int(parts["seed"]), parts["target"], unquote(parts["id"]) or None)
        except (KeyError, ValueError, OverflowError) as error:
            raise InputError(
                f"column {PLAN!r} must be as the plan wrote it; got {text!r} in line {found[text]}."
            ) from error

    def drawn(self, target: LabelTarget) -> _Redrawn:
        """Draw the plan again."""
        none = np.empty(0, dtype=np.int64)  # what a forged plan asks for may be more than memory can hold
        plan = LabelPlan(none, none, self.sizes, self.cuts, self.seed, self.checksum)
        found = target.draw(self.cuts, self.seed, min(int(self.counts.max()), target.n_rows) + _SPARE)
        plan.check_target(found)
        if (found.sizes < self.counts).any():
            raise InputError(
                "the model must be the one that the plan was made with; this one ranks the rows otherwise."
            )
        same_strata = np.array_equal(found.sizes, self.sizes)
        # Where rounding on another machine has moved a row to another stratum, others have moved up in the draw.
        near = [
            found.rows(h)[: count if same_strata else count + _SPARE] for h, count in enumerate(self.counts.tolist())
        ]
        rows = arrange([drawn[:count] for drawn, count in zip(near, self.counts, strict=True)], self.seed)
        candidates = np.concatenate(near)
        if self.id is None:
            known = {str(row): row for row in candidates.tolist()}
        else:
            taken = target.take(candidates, [self.id])
            known = dict(zip(_texts(taken.metadata[self.id], self.id), candidates.tolist(), strict=True))
        return _Redrawn(replace(plan, rows=rows, strata=turns(self.counts, self.seed)), same_strata, known)


@dataclass(frozen=True, eq=False)
class _Redrawn:
    """A plan drawn again: whether the strata are the same to the last row, and rows by their ids."""

    plan: LabelPlan
    same_strata: bool
    known: Mapping[str, int]


def _join(lines: Sequence[Line], short: _Short, target: LabelTarget) -> tuple[LabelPlan, list[int | None]]:
    """Return the plan with the rows that the lines name, and the labels in its order."""
    redrawn = short.drawn(target)
    plan, model = redrawn.plan, target.model
    column = ROW if short.id is None else short.id
    named: dict[int, int] = {}
    labels: list[int | None] = [None] * len(plan)
    for line in lines:
        text, label = line.cells.get(column, ""), line.cells.get(LABEL, "")
        if not text and not label:
            continue
        where = f"{column} {text!r} in line {line.number}"
        place = _place(line, where, len(plan))
        row = redrawn.known.get(text, redrawn.known.get(text.removesuffix(".0")))
        if row is None:
            raise InputError(
                f"{where} is not in the target, or not planned. If a spreadsheet has changed it, have it keep this "
                "column as text."
            )
        # Where the strata are not quite the same, the line knows better.
        if named.setdefault(place, row) != row or (redrawn.same_strata and plan.rows[place] != row):
            raise InputError(f"{where} has the {ORDER} of another row; lines of other rows are no part of the plan.")
        if label:
            index = _index(label, model, where)
            if labels[place] not in (None, index):
                raise InputError(f"{where} is there twice with different labels; keep one.")
            labels[place] = index
    last = max((place for place, index in enumerate(labels) if index is not None), default=-1)
    if last < 0:
        raise InputError(f"has no label yet in its column {LABEL!r}.")
    return replace(plan, rows=_fill(plan, named)), labels[: last + 1]


def _fill(plan: LabelPlan, named: Mapping[int, int]) -> IntArray:
    """Return the rows of a plan: those named by place, and where lines are lost those of the draw that are left."""
    rows = np.full(len(plan), -1, dtype=np.int64)
    rows[list(named)] = list(named.values())
    if len(np.unique(list(named.values()))) < len(named):
        raise InputError(
            f"has a row twice with another {ORDER}; keep the columns that came with the plan as they were."
        )
    for h in range(len(plan.sizes)):
        lost = np.flatnonzero((rows < 0) & (plan.strata == h))
        left = plan.rows[(plan.strata == h) & ~np.isin(plan.rows, rows)]
        rows[lost] = left[: len(lost)]
    return rows


def _place(line: Line, where: str, budget: int) -> int:
    """Return the place in the plan that a line has."""
    text = line.cells.get(ORDER, "")
    if not text:
        raise InputError(f"{where} has no {ORDER}, so it is no part of the plan; remove the line.")
    number = text.removesuffix(".0")
    if not number.isdecimal() or not 1 <= int(number) <= budget:
        raise InputError(f"{where} must have a {ORDER} from 1 to {budget}; got {text!r}.")
    return int(number) - 1


def _index(label: str, model: Estimator, where: str) -> int:
    """Return the class that people named: by its name, in any case where that is clear, or by its number."""
    names = model.class_names or ()
    if label in names:
        return names.index(label)
    alike = [i for i, name in enumerate(names) if name.casefold() == label.casefold()]
    if len(alike) == 1:
        return alike[0]
    number = label.removesuffix(".0")
    if not any(name.isdecimal() for name in names) and number.isdecimal() and int(number) < model.n_classes_:
        return int(number)
    expected = f"one of {brief(names)}" if names else f"a number from 0 to {model.n_classes_ - 1}"
    raise InputError(f"{where} must have a label that is {expected}; got {label!r}.")


def _write(
    path: str | Path,
    rows: IntArray,
    target: LabelTarget,
    id: str | None,
    keep: Sequence[str],
    more: Mapping[str, Iterable[Any]],
    force: bool,
) -> None:
    """Write the id of rows, further columns, an empty column for labels, and what belongs to the plan."""
    taken = target.take(rows, [*keep] if id is None else [id, *keep])
    columns = {ROW: [str(row) for row in rows.tolist()]}
    if id is not None:
        columns = {id: _texts(taken.metadata[id], id)}
        target.require_distinct(id, taken.metadata[id])
    for column in keep:
        columns[column] = ["" if value is None else str(value) for value in taken.metadata[column]]
    own = {LABEL: [""] * len(rows)} | {key: [str(value) for value in values] for key, values in more.items()}
    for column in columns:
        if column in own:
            raise InputError(f"column {column!r} has a name that means something else in a plan; rename it.")
    write_table(path, columns | own, force=force)


def _texts(values: NDArray[Any], column: str) -> list[str]:
    """Return ids, shape (n,), as texts."""
    whole = values.dtype.kind == "f" and bool(np.all(values == np.floor(values)))
    texts = [str(value).strip() for value in (values.astype(np.int64) if whole else values).tolist()]
    if any(value is None for value in values.tolist()) or "" in texts or (values.dtype.kind == "f" and not whole):
        raise InputError(
            f"column {column!r} must have an id for each row, a text or a whole number; it has gaps or fractions."
        )
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        raise InputError(f"column {column!r} must tell all rows apart; got {twice!r} more than once.")
    return texts


def plan_cuts(lines: Sequence[Line]) -> Array | None:
    """Return the values of the correctness between the strata of the plan that lines belong to; None for no plan."""
    return _Short.read(lines).cuts if any(line.cells.get(PLAN) for line in lines) else None
