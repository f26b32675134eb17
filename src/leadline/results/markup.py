"""HTML of tables, for notebooks and for the report page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


class Markup(str):
    """Text that is HTML already; all other text is escaped."""

    __slots__ = ()


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,), kind: str = ""
) -> str:
    """Return an HTML table.

    Parameters
    ----------
    header
        The titles of the columns.
    rows
        As many cells each as there are titles.
    left
        Positions of the columns of words; the others are numbers and stand flush right.
    kind
        The class of the table, for a style sheet.

    Examples
    --------
    >>> html_table(["a"], [["<1"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td data-label="a">&lt;1</td></tr></tbody></table>'
    """

    def side(position: int) -> str:
        return "" if position in left else ' style="text-align:right"'

    head = "".join(f"<th{side(i)}>{_escaped(title)}</th>" for i, title in enumerate(header))
    body = "".join(
        "<tr>"
        + "".join(f'<td data-label="{escape(header[i])}"{side(i)}>{_escaped(cell)}</td>' for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    named = f' class="{escape(kind)}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)
