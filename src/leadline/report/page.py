"""A report as one HTML page that needs nothing else, as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from rich.console import Console

from leadline.report.content import Report
from leadline.report.pictures import Picture
from leadline.report.sections import Section, headline, outline, title_of
from leadline.results.markup import Markup, html_table
from leadline.results.render import Cell, Document, Table, printable, render

#: A page that is larger does not pass through every mail server.
MOST_BYTES = 1_900_000
_LONG = 30  # rows that are shown only when asked for
_WIDE = 3  # columns that do not fit a phone side by side


def html_page(report: Report, pictures: Sequence[Picture]) -> str:
    """Return one page without scripts and without any other file: figures are part of it.

    Where many targets and classes would make it too large, the least accurate classes and targets stay.
    """
    images = {id(picture): _figure(picture) for picture in pictures}
    page = ""
    for all_classes, folded in ((True, True), (False, True), (False, False)):
        sections = outline(report, pictures, all_classes=all_classes, folded=folded)
        page = _page(report, sections, images)
        if len(page.encode()) <= MOST_BYTES:
            break
    return page


def markdown(report: Report, pictures: Sequence[Picture]) -> str:
    """Return the same content as Markdown, with the figures' titles and captions."""
    blocks = [_heading(1, title_of(report)), _words([headline(report)])]
    for section in outline(report, pictures):
        blocks += [_heading(2, section.title), _words(section.paragraphs)]
        blocks += [_document(Document(None, [], [table])) for table in section.tables]
        blocks.append(_words([f"Figure: {picture.title}. {picture.caption}" for picture in section.pictures]))
    return "\n\n".join(block for block in blocks if block) + "\n"


def json_text(report: Report, pictures: Sequence[Picture]) -> str:
    """Return the same content as JSON, in ASCII, with the figures' titles and captions."""
    figures = [
        {"name": picture.name, "title": picture.title, "caption": picture.caption, "target": picture.target}
        for picture in pictures
    ]
    return json.dumps(report.to_dict() | {"headline": headline(report), "figures": figures}, indent=2) + "\n"


#: How each ``--format`` of a report is written.
REPORT_FORMATS: dict[str, Callable[[Report, Sequence[Picture]], str]] = {
    "html": html_page,
    "md": markdown,
    "json": json_text,
}


def _page(report: Report, sections: Sequence[Section], images: dict[int, str]) -> str:
    """Fill the template."""
    template = Template(files("leadline.report").joinpath("template.html").read_text(encoding="utf-8"))
    body = "\n".join(_section(section, images) for section in sections)
    title = escape(printable(title_of(report)))
    return template.substitute(
        title=title,
        headline=escape(printable(headline(report))),
        reliance=_reliance(report),
        body=body,
        version=escape(report.versions["leadline"]),
        created=escape(report.created),
    )


def _reliance(report: Report) -> str:
    """Return how far to rely on the answer, in one line."""
    if len(report.targets) == 1:
        return f"Reliance: <strong>{escape(report.targets[0].reliance)}</strong>. The reasons follow."
    counts = {
        level: sum(target.reliance == level for target in report.targets) for level in ("reasonable", "limited", "low")
    }
    words = ", ".join(f"<strong>{level}</strong> for {count}" for level, count in counts.items() if count)
    return f"Reliance: {words} of {len(report.targets)} targets. The reasons follow."


def _section(section: Section, images: dict[int, str]) -> str:
    """Return a section as HTML."""
    parts = [f"<p>{escape(printable(text))}</p>" for text in section.paragraphs]
    parts += [_table(table) for table in section.tables]
    if section.pictures:
        parts.append('<div class="figures">' + "".join(images[id(picture)] for picture in section.pictures) + "</div>")
    title, body = escape(printable(section.title)), "\n".join(parts)
    if section.folded:
        return f"<details><summary>{title}</summary>\n{body}\n</details>"
    return f"<section>\n<h2>{title}</h2>\n{body}\n</section>"


def _table(table: Table) -> str:
    """Return a table as HTML; a wide one becomes a list of cards on a phone."""
    title = escape(printable(table.title))
    kind = "wide" if len(table.header) >= _WIDE else ""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    body = f'<div class="table">{html_table(table.header, rows, left=table.left, kind=kind)}</div>'
    if title and len(rows) > _LONG:
        return f"<details><summary>{title} ({len(rows)} rows)</summary>{body}</details>"
    return (f"<h3>{title}</h3>" if title else "") + body


def _cell(cell: Cell | str) -> str:
    """Return a cell, with its bar if it has one."""
    text = escape(printable(cell.text if isinstance(cell, Cell) else cell))
    if isinstance(cell, Cell) and cell.bar is not None:
        text += f'<i class="bar"><i style="width:{100 * min(max(cell.bar, 0.0), 1.0):.0f}%"></i></i>'
    return Markup(text)


def _figure(picture: Picture) -> str:
    """Return a figure as HTML, drawn."""
    caption = escape(printable(picture.caption))
    title = escape(printable(picture.title))
    return (
        f'<figure><figcaption><b>{title}</b></figcaption><img src="{picture.data_uri()}" alt="{title}. {caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _heading(level: int, text: str) -> str:
    return f"{'#' * level} {_words([text])}"


def _words(paragraphs: Sequence[str]) -> str:
    """Return sentences as Markdown."""
    return _document(Document(None, [], [], notes=paragraphs)) if paragraphs else ""


def _document(document: Document) -> str:
    return render(document, "md", Console()).strip()
