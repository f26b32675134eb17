"""The lists of the Debian archive: stanzas of fields, and descriptions in many languages."""

from __future__ import annotations

import bz2
import lzma
import re
from collections.abc import Iterator
from pathlib import Path


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each stanza of a control file."""
    for block in text.split("\n\n"):
        fields = re.findall(r"^([A-Za-z0-9-]+): *(.*(?:\n[ \t].*)*)", block, flags=re.MULTILINE)
        if fields:
            yield dict(fields)


def plain(description: str) -> str:
    """Return a description as one line; the summary ends in a stop, lone dots part paragraphs."""
    summary, *rest = description.split("\n")
    return f"{summary.strip()}. " + " ".join(line.strip() for line in rest if line.strip() != ".")


def descriptions(file: Path, language: str) -> dict[str, str]:
    """Return the descriptions of a file of translations by their key."""
    unpack = {".xz": lzma.open, ".bz2": bz2.open}[file.suffix]
    with unpack(file, "rt", encoding="utf-8") as lines:
        field = f"Description-{language}"
        return {s["Description-md5"]: plain(s[field]) for s in stanzas(lines.read()) if field in s}
