"""Whole pages of HTML that need nothing else: one look for the report and the monitor."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template

from leadline.results.markup import html_table
from leadline.results.printing import printable
from leadline.results.render import Table
from leadline.results.views import cell_html
from leadline.version import __version__

_WIDE = 3  # columns that do not fit a phone side by side
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page_of(title: str, *, header: str, main: str, footer: str, style: str = "", script: str = "") -> str:
    """Return a page that loads nothing; browsers are told to refuse whatever it would load.

    Parameters
    ----------
    title
        Its name, as text.
    header, main
        HTML of the first screen and of what follows.
    footer
        What the page holds, as text; which Leadline made it stands before.
    style
        Rules of this page besides those of all pages.
    script
        The one script that may run: the policy has its checksum, so that no other does.
    """
    policy, element = _POLICY, ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        policy += f"; script-src 'sha256-{digest}'"
        element = f"<script>{script}</script>\n"
    template = Template(files("leadline.results").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=text_html(title),
        policy=policy,
        style=style,
        header=f"<h1>{text_html(title)}</h1>\n{header}",
        main=main,
        footer=f"Made with Leadline {escape(__version__)} {text_html(footer)}",
        script=element,
    )


def text_html(text: str) -> str:
    """Return text as HTML.

    Examples
    --------
    >>> text_html("a < b")
    'a &lt; b'
    """
    return escape(printable(text))


def table_html(table: Table, heading: str) -> str:
    """Return a table as HTML, its title in a heading such as ``h3``; a wide one becomes a list of cards on a phone."""
    kind = "wide" if len(table.header) >= _WIDE else ""
    rows = [[cell_html(cell) for cell in row] for row in table.rows]
    body = f'<div class="table">{html_table(table.header, rows, left=table.left, kind=kind)}</div>'
    return (f"<{heading}>{text_html(table.title)}</{heading}>" if table.title else "") + body
