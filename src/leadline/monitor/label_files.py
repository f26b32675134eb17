"""Files of late labels: tables of ids and labels, and plans that people have labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.data.names import one_line
from leadline.errors import InputError
from leadline.labels.formats import read_lines
from leadline.labels.sheets import plan_cuts
from leadline.monitor.records import Array


@dataclass(frozen=True, eq=False)
class LabelFile:
    """What a file of labels holds.

    Attributes
    ----------
    ids, labels
        As texts; of as many rows as have a label.
    cuts
        Of the plan by which rows were chosen; None without one.
    """

    ids: list[str]
    labels: list[str]
    cuts: Array | None


def read_label_file(
    path: str | Path, *, id: str, label: str = "label", memory_limit: int | str | None = None
) -> LabelFile:
    """Read a table of labels: CSV, whatever a spreadsheet has made of it, or Parquet. Lines without one are skipped.

    Parameters
    ----------
    path
        The file.
    id, label
        The columns of row ids and of labels.
    memory_limit
        How much memory the file may take, as for ``read_outputs``.
    """
    try:
        lines = read_lines(Path(path), (id, label), memory_limit)
        cuts = plan_cuts(lines)
        found = [(line.cells.get(id, ""), line.cells.get(label, "")) for line in lines]
        nameless = next((line.number for line in lines if line.cells.get(label) and not line.cells.get(id)), None)
        if nameless is not None:
            raise InputError(f"line {nameless} has a label but no {id}.")
    except InputError as error:
        raise InputError(f"{path}: {one_line(error, most=600)}") from error
    known = [(one, text) for one, text in found if text]
    if not known:
        raise InputError(f"{path}: no line has a {label}.")
    return LabelFile([one for one, _ in known], [text for _, text in known], cuts)


def class_numbers(labels: Sequence[str]) -> list[int]:
    """Return texts such as 3 or, from a spreadsheet, 3.0 as numbers of classes."""
    numbers = [_whole_number(text) for text in labels]
    wrong = next((text for text, number in zip(labels, numbers, strict=True) if number is None), None)
    if wrong is not None:
        raise InputError(f"labels must be numbers of classes, as the model has no names for them; got {wrong!r}.")
    return [number for number in numbers if number is not None]


def _whole_number(text: str) -> int | None:
    """Return a text as a whole number; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None
