"""What MkDocs does besides rendering: formulas become MathML, drawn without a script, and nothing is fetched."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

#: Fences and code spans are left alone; then $$...$$ on lines of its own, and $...$ within a line.
_PARTS = re.compile(
    r"(?P<code>^ *```.*?^ *```$|`[^`\n]+`)"
    r"|^(?P<indent> *)\$\$(?P<block>.+?)\$\$$"
    r"|(?<![\\$\w])\$(?P<inline>[^$\n]+)\$(?![\w$])",
    re.M | re.S,
)

#: The one script that the theme takes from elsewhere, and ours in its place.
_FETCHED = '<script src="https://unpkg.com/iframe-worker/shim"></script>'


def _formula(found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    if found["block"]:
        return f'{found["indent"]}<div class="formula">{convert(found["block"].strip(), display="block")}</div>'
    return str(convert(found["inline"]))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn the formulas of a page into MathML."""
    return _PARTS.sub(_formula, markdown)


def _local(output: str, root: str) -> str:
    if _FETCHED not in output:
        raise ValueError("the theme no longer fetches a worker for pages opened from a folder: drop docs/worker.js.")
    return output.replace(_FETCHED, f'<script src="{root}worker.js"></script>')


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Replace what a page would fetch from elsewhere."""
    return _local(output, "../" * page.url.count("/"))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """Do the same for the page of what is not found; other templates fetch nothing."""
    return _local(output_content, "/") if template_name == "404.html" else output_content
