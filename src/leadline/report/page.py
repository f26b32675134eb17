"""A report as one HTML page that needs nothing else, as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files

from rich.console import Console

from leadline.report.assumptions import RELIANCE
from leadline.report.content import Report
from leadline.report.headline import advice, headline, reliance, title_of
from leadline.report.pictures import Picture
from leadline.report.sections import Section, outline
from leadline.results.markup import html_bar
from leadline.results.pages import page_of, table_html, text_html
from leadline.results.render import Document, interval, percent, points, render

#: A page that is larger does not pass through every mail server.
MOST_BYTES = 1_900_000
_LEVELS = [level for level, _ in RELIANCE.values()]


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
    blocks = [_heading(1, title_of(report)), _words([headline(report), f"{reliance(report)}."])]
    blocks.append(_words([f"{name}: {text}" for name, text in advice(report).items()]))
    blocks += [block for section in outline(report, pictures) for block in _section_blocks(section, 2)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section_blocks(section: Section, level: int) -> list[str]:
    """Return a section and those within as Markdown."""
    blocks = [_heading(level, section.title), _words(section.paragraphs)]
    blocks += [_document(Document(None, [], [table])) for table in section.tables]
    blocks.append(_words([f"Figure: {picture.title}. {picture.caption}" for picture in section.pictures]))
    return blocks + [block for part in section.parts for block in _section_blocks(part, level + 1)]


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
    """Return the whole page."""
    told = "".join(f"<p><b>{text_html(name)}</b> {text_html(text)}</p>" for name, text in advice(report).items())
    level = max((target.reliance for target in report.targets), key=_LEVELS.index)
    return page_of(
        title_of(report),
        header=f"{_answer(report)}\n"
        f'<p class="reliance {level}">{text_html(reliance(report))}</p>\n<div class="advice">{told}</div>',
        main="\n".join(_section(section, images, 2) for section in sections),
        footer=f"on {report.created}. This page holds sums, means and figures of them, no single sample, and loads "
        "nothing from elsewhere.",
        style=files("leadline.report").joinpath("page.css").read_text(encoding="utf-8"),
    )


def _answer(report: Report) -> str:
    """Return the answer: of one target as a large number with its interval, of several as a sentence."""
    if len(report.targets) > 1:
        return f'<p class="answer">{text_html(headline(report))}</p>'
    target, source = report.targets[0], report.source["accuracy"]
    estimate, before = target.final, target.estimate
    labels = estimate.diagnostics.get("n_labels")
    marks = [f"{100 * estimate.confidence_level:g} % interval {interval(estimate.interval)}"]
    if labels is not None:
        without = f"without labels, {report.method} said {percent(before.accuracy)}, {interval(before.interval)}"
        marks.append(f"{without} (lower bar)")
    marks.append(f"○ on the labelled source {percent(source)}")
    if target.truth is not None:
        error = points(estimate.accuracy - target.truth)
        marks.append(f"true accuracy {percent(target.truth)} by labels that no method saw, so off by {error} points")
    by = f"as {labels:,} labels show" if labels is not None else f"as {text_html(report.method)} estimates"
    shown = [estimate] if labels is None else [estimate, before]
    bars = "".join(html_bar(one.accuracy, one.interval, before=source) for one in shown)
    return (
        f'<p class="number">{percent(estimate.accuracy)} <span>of {estimate.n_samples:,} predictions are right, '
        f"{by}</span></p>"
        f'<div class="scale">{bars}'
        f'<p><span>0 %</span><span>100 %</span></p></div><p class="marks">{text_html("; ".join(marks))}</p>'
    )


def _section(section: Section, images: dict[int, str], level: int) -> str:
    """Return a section as HTML."""
    parts = [f"<p>{text_html(text)}</p>" for text in section.paragraphs if text]
    parts += [table_html(table, f"h{level + 1}") for table in section.tables]
    if section.pictures:
        parts.append('<div class="figures">' + "".join(images[id(picture)] for picture in section.pictures) + "</div>")
    parts += [_section(part, images, level + 1) for part in section.parts]
    title, body = f"<h{level}>{text_html(section.title)}</h{level}>", "\n".join(parts)
    if section.folded:
        gist = f" <small>{text_html(section.gist)}</small>" if section.gist else ""
        return f"<details><summary>{title}{gist}</summary>\n{body}\n</details>"
    return f"<section>\n{title}\n{body}\n</section>"


def _figure(picture: Picture) -> str:
    """Return a figure as HTML, drawn."""
    caption, title = text_html(picture.caption), text_html(picture.title)
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
