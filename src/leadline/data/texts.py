"""CSV and JSON, whatever is in them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    r"""Return lines of cells as CSV, each ended by one sign, with quotes around whatever else could end a line.

    Before Python 3.13, its own writer quotes only what it ends lines with itself.

    Examples
    --------
    >>> csv_text([["id", "text"], [1, "one\rline"]])
    'id,text\n1,"one\rline"\n'
    """
    text = io.StringIO()
    parts = []
    for line in lines:
        csv.writer(text, lineterminator="\r\n").writerow(line)
        parts.append(text.getvalue()[:-2])
        text.seek(0)
        text.truncate()
    return "".join(f"{part}\n" for part in parts)


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says; raise ValueError where it is none, and where it is nested too deeply to be read.

    Examples
    --------
    >>> parse_json("[" * 100000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
