"""HTML of tables and bars, for notebooks and for the report page: no style sheet needed, any background."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

# Greys and blues that stand out on white and on black; text and point take the colour of the page.
_EXACT = "print-color-adjust:exact;-webkit-print-color-adjust:exact"
_TRACK = (
    "display:block;position:relative;height:.5em;min-width:6em;margin:.25em 0;border-radius:.25em;"
    f"background:rgba(127,127,127,.22);{_EXACT}"
)
_BAND = f"position:absolute;top:0;bottom:0;border-radius:.25em;background:rgba(38,122,214,.55);{_EXACT}"
_POINT = f"position:absolute;top:-.15em;bottom:-.15em;width:.24em;border-radius:.12em;background:currentColor;{_EXACT}"
_HOLLOW = "position:absolute;top:0;height:.5em;width:.5em;box-sizing:border-box;border-radius:50%;border:.12em solid"


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
    '<table><thead><tr><th style="text-align:left">a</th></tr></thead><tbody><tr><td data-label="a" \
style="text-align:left">&lt;1</td></tr></tbody></table>'
    """

    def side(position: int, numbers: str = "") -> str:
        return f' style="text-align:{"left" if position in left else "right" + numbers}"'

    head = "".join(f"<th{side(i)}>{_escaped(title)}</th>" for i, title in enumerate(header))
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(header[i])}"{side(i, ";white-space:nowrap")}>{_escaped(cell)}</td>'
            for i, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    named = f' class="{escape(kind)}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_bar(
    value: float,
    interval: Sequence[float] | None = None,
    *,
    scale: tuple[float, float] = (0.0, 1.0),
    before: float | None = None,
) -> Markup:
    """Return a bar as HTML: a point on a scale with its interval, or a length where there is no interval.

    Parameters
    ----------
    value
        Where the point stands, or the bar ends.
    interval
        The ends of a shaded band.
    scale
        What the left and the right end of the bar stand for.
    before
        A second, hollow point, such as the accuracy on the source.

    Examples
    --------
    >>> "left:25.0%;width:50.0%" in html_bar(0.5, (0.25, 0.75))
    True
    """

    def place(number: float) -> float:
        return 100 * min(max((number - scale[0]) / (scale[1] - scale[0]), 0.0), 1.0)

    ends = (scale[0], value) if interval is None else interval
    low, high = (place(end) for end in ends)
    parts = [f'<span style="{_BAND};left:{low:.1f}%;width:{high - low:.1f}%"></span>']
    if before is not None:
        parts.append(f'<span style="{_HOLLOW};left:calc({place(before):.1f}% - .25em)"></span>')
    if interval is not None:
        parts.append(f'<span style="{_POINT};left:calc({place(value):.1f}% - .12em)"></span>')
    return Markup(f'<span style="{_TRACK}">{"".join(parts)}</span>')


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)
