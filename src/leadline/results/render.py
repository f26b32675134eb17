"""Results as text: tables for people, JSON, CSV and Markdown for programs and pages.

A command builds one :class:`Document`; the table :data:`RENDERERS` turns it into any format. A new format is
one function and one line there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from leadline.data.texts import csv_text
from leadline.errors import InputError
from leadline.results.printing import printable

BAR_WIDTH = 20
_LONGEST_NAME = 40  # characters; longer texts in a column of words are sentences
_LEAST_WIDTH = 20  # of a terminal; narrower ones break lines themselves
_MOST_PARTS = 2  # into which a table with long names is divided
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Cell:
    """A cell of a table for people.

    Attributes
    ----------
    text
        What it says.
    bar
        Length of a bar beside the text, from 0 to 1; None for no bar.
    style
        A Rich style, used on terminals only.
    interval
        On pages, the ends of a band: the bar becomes a point on it.
    scale
        On pages, what the ends of the bar's room stand for.
    """

    text: str
    bar: float | None = None
    style: str = ""
    interval: tuple[float, float] | None = None
    scale: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Table:
    """A table for people.

    Attributes
    ----------
    header
        The titles of the columns.
    rows
        As many cells each as the header has titles; a plain string is a cell without bar or style.
    title
        What the table shows.
    left
        Positions of the columns of words, set flush left; numbers stand flush right.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    title: str = ""
    left: Sequence[int] = (0,)


@dataclass(frozen=True)
class Document:
    """A result in every form: the same facts for people and for programs.

    Attributes
    ----------
    data
        What JSON holds.
    records
        Flat rows for CSV: plain values, or pairs such as an interval.
    tables
        Tables for people.
    notes
        Sentences below them.
    commands
        Commands to try next, to be copied.
    """

    data: Any
    records: Sequence[Mapping[str, Any]]
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()


def percent(value: float | None) -> str:
    """Return a fraction as a percentage, and nothing for None.

    Examples
    --------
    >>> percent(0.8312), percent(None)
    ('83.1 %', '')
    """
    return "" if value is None else f"{100 * value:.1f} %"


def points(value: float | None) -> str:
    """Return a difference of fractions in percentage points with its sign, and nothing for None."""
    return "" if value is None else f"{100 * value:+.1f}"


def interval(ends: Sequence[float]) -> str:
    """Return an interval of fractions as percentages.

    Examples
    --------
    >>> interval((0.81, 0.855))
    '81.0 to 85.5 %'
    """
    low, high = ends
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def stated(text: str) -> str:
    """Return a description, or that there is none: a method of another package may come without.

    Examples
    --------
    >>> stated("mean confidence"), stated("")
    ('mean confidence', 'not stated')
    """
    return text or "not stated"


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: NumPy becomes plain, NaN and infinity become null, the rest text.

    Examples
    --------
    >>> plain({"a": np.float32(0.5), "b": float("nan"), "c": (1, None)})
    {'a': 0.5, 'b': None, 'c': [1, None]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def render(document: Document, name: str, console: Console) -> str:
    """Return a document as text.

    Parameters
    ----------
    document
        What to show.
    name
        One of ``RENDERERS``.
    console
        Where it will be shown: its width, colours and encoding matter to tables.
    """
    if name not in RENDERERS:
        raise InputError(f"format must be one of {', '.join(RENDERERS)}; got {name!r}.")
    return RENDERERS[name](document, console)


def _table(document: Document, console: Console) -> str:
    """Tables with bars, as wide as the terminal allows."""
    with console.capture() as captured:
        for table in document.tables:
            if table.title:
                console.print(Text(printable(table.title), style="bold"))
            for part in _fitting(table, console.width):
                if sum(_least_widths(part)) > console.width + 1:
                    _print_records(part, console)
                else:
                    console.print(_rich_table(part, console))
                console.print()
        for note in document.notes:
            console.print(Text(printable(note), style="dim"))
        if document.commands:
            console.print("\nBy hand:")
        for command in document.commands:
            # A command that is broken into two lines cannot be copied.
            console.print(Text("  " + printable(command)), soft_wrap=True)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).rstrip() + "\n"


def _fitting(table: Table, width: int) -> list[Table]:
    """Divide a table whose numbers do not fit beside each other into several, each with all columns of words."""
    rows, widths = _cells(table), _least_widths(table)
    words = [i for i in range(len(widths)) if i in table.left]
    numbers = [i for i in range(len(widths)) if i not in table.left]
    room = width - sum(widths[i] for i in words)
    if not numbers or sum(widths[i] for i in numbers) <= room or room < max(widths[i] for i in numbers):
        return [table]
    parts: list[list[int]] = [[]]
    for i in numbers:
        if parts[-1] and sum(widths[j] for j in (*parts[-1], i)) > room:
            parts.append([])
        parts[-1].append(i)
    if room < width // 2 and len(parts) > _MOST_PARTS:
        return [table]  # long names, over and over, for a number or two beside them
    return [
        Table(
            [table.header[i] for i in (*words, *part)],
            [[row[i] for i in (*words, *part)] for row in rows],
            left=range(len(words)),
        )
        for part in parts
    ]


def _least_widths(table: Table) -> list[int]:
    """Return the room that each column needs, with a space: names and numbers are whole, sentences may be broken."""
    rows, found = _cells(table), []
    for i, title in enumerate(table.header):
        texts = [printable(row[i].text) for row in rows]
        is_prose = i in table.left and max(map(cell_len, texts), default=0) > _LONGEST_NAME
        parts = [part for text in texts for part in (text.split(" ") if is_prose else [text])]
        found.append(1 + max(map(cell_len, [*parts, *printable(title).split(" ")])))
    return found


def _print_records(table: Table, console: Console) -> None:
    """Print a table that is too wide line by line, below the first name of each row; names are never broken."""
    titles = [printable(title) for title in table.header]
    first, *others = sorted(range(len(titles)), key=lambda i: (i not in table.left, i))
    for row in _cells(table):
        console.print(Text(printable(row[first].text) or titles[first], style="bold"), soft_wrap=True)
        for i in others:
            if not (text := printable(row[i].text)):
                continue
            whole = [f"  {titles[i]}: {text}"]
            room = max(_LEAST_WIDTH, console.width) - 2
            lines = wrap(whole[0].strip(), room, subsequent_indent="  ", break_long_words=False)
            for line in whole if len(text) <= _LONGEST_NAME else [f"  {line}" for line in lines]:
                console.print(Text(line, style=row[i].style), soft_wrap=True)


def _cells(table: Table) -> list[list[Cell]]:
    """Return the rows of a table with every value as a cell."""
    return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in table.rows]


def _widths(rows: Sequence[Sequence[Cell]], count: int) -> list[int]:
    """Return the width of the text in each of ``count`` columns."""
    return [max((cell_len(printable(row[i].text)) for row in rows), default=0) for i in range(count)]


def _rich_table(table: Table, console: Console) -> RichTable:
    """Lay a table out, giving the bars the room that the text leaves: they are the first to give way."""
    rows = _cells(table)
    columns = range(len(table.header))
    widths = _widths(rows, len(columns))
    barred = [i for i in columns if any(row[i].bar is not None for row in rows)]
    header, free = list(table.header), 0
    for broken in (False, True):  # titles of several words are broken into lines only where they must
        header = [title.replace(" ", "\n") if broken else title for title in map(printable, table.header)]
        titles = [max(map(cell_len, title.split("\n"))) for title in header]
        free = console.width - sum(widths[i] if i in barred else max(widths[i], titles[i]) for i in columns)
        over = sum(max(0, titles[i] - widths[i]) for i in barred)  # bars stand below the rest of their titles
        if free - over >= len(columns):
            break
    gap = 2 if free - 2 * len(columns) >= (BAR_WIDTH + 1) * len(barred) else 1
    room = (free - gap * len(columns)) // len(barred) - 1 if barred else 0
    length = max(0, min(BAR_WIDTH, room))
    unicode = console.encoding.lower().startswith("utf")
    # The box puts one space between columns.
    laid_out = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for i, title in enumerate(header):
        words = i in table.left
        side: Literal["left", "right"] = "left" if words or i in barred else "right"
        whole = words and widths[i] <= _LONGEST_NAME
        laid_out.add_column(Text(title), justify=side, no_wrap=whole or not words, overflow="fold")
    for row in rows:
        laid_out.add_row(*(_rich_cell(row[i], widths[i] if i in barred else 0, length, unicode) for i in columns))
    return laid_out


def _rich_cell(cell: Cell, width: int, length: int, unicode: bool) -> Text:
    """Return the text of a cell, flush right in its width, and its bar."""
    text = Text(printable(cell.text).rjust(width), style=cell.style)
    if cell.bar is not None and length > 0:
        text.append(" " + bar(cell.bar, length, unicode=unicode), style=cell.style or "cyan")
    return text


def bar(share: float, width: int, *, unicode: bool = True) -> str:
    """Return a bar of blocks of which a share is filled, padded to its full width.

    Examples
    --------
    >>> bar(0.5, 4, unicode=False)
    '##  '
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    full, rest = divmod(eighths, 8)
    if not unicode:
        return ("#" * (full + (rest >= 4))).ljust(width)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _json(document: Document, console: Console) -> str:
    """JSON, in ASCII so that any terminal and pipe takes it."""
    del console
    return json.dumps(plain(document.data), indent=2, allow_nan=False) + "\n"


def _csv(document: Document, console: Console) -> str:
    """CSV with a header; a pair such as an interval becomes two columns, ``_low`` and ``_high``.

    Values are written as they are, but for a terminal, which would obey the control characters in them.
    """
    records = [flat(record) for record in document.records]
    if console.is_terminal:
        records = [
            {printable(name): printable(value) if isinstance(value, str) else value for name, value in record.items()}
            for record in records
        ]
    names = list(dict.fromkeys(name for record in records for name in record))
    return csv_text([names, *([record.get(name) for name in names] for record in records)])


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without pairs: the ends of an interval become two fields."""
    fields: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, list | tuple):
            fields[f"{name}_low"], fields[f"{name}_high"] = (plain(end) for end in value)
        else:
            fields[name] = plain(value)
    return fields


def _markdown(document: Document, console: Console) -> str:
    """Markdown tables of what people see in a terminal, without the bars."""
    del console
    blocks = []
    for table in document.tables:
        if table.title:
            blocks.append(f"**{_escaped(table.title)}**")
        rule = (":--" if position in table.left else "--:" for position in range(len(table.header)))
        rows = ((cell.text if isinstance(cell, Cell) else cell for cell in row) for row in table.rows)
        blocks.append("\n".join([_line(table.header), "|" + "|".join(rule) + "|", *map(_line, rows)]))
    blocks.extend(_escaped(note) for note in document.notes)
    if document.commands:
        blocks.append("\n".join(["```sh", *map(printable, document.commands), "```"]))
    return "\n\n".join(blocks) + "\n"


def _line(cells: Any) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Return text with the characters escaped that Markdown would read as markup."""
    return re.sub(r"([|*_`<>\[\]\\])", r"\\\1", printable(text))


#: How each ``--format`` is written.
RENDERERS: dict[str, Callable[[Document, Console], str]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "md": _markdown,
}
