"""Text in columns, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


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
