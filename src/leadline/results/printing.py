"""Text of others on a terminal; loads nothing, so that the command can say what is wrong at any time."""

from __future__ import annotations

import re

_LONGEST_WORD, _LONGEST_LINE = 300, 2000  # characters of a message; longer ones are attacks or accidents


def printable(text: object) -> str:
    """Return text on one line with unprintable characters escaped: file names may hold anything.

    Examples
    --------
    >>> printable("a\\x1b[31m\\nb")
    'a\\\\x1b[31m\\\\nb'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in str(text)
    )


def readable(line: str) -> str:
    """Return a message without the middle of words, and of the whole, that nobody would read to the end.

    Examples
    --------
    >>> print(readable(f"file {'ab' * 5000}.npz does not exist.").replace("abab", ""))
    file ....npz does not exist.
    """
    shorter = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _without_middle(word[0], _LONGEST_WORD), line)
    return _without_middle(shorter, _LONGEST_LINE)


def _without_middle(text: str, most: int) -> str:
    """Return text of at most so many characters, the same at both ends."""
    end = (most - 3) // 2
    return text if len(text) <= most else f"{text[:end]}...{text[-end:]}"
