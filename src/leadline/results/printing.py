"""Text of others on a terminal; loads nothing, so that the command can say what is wrong at any time."""

from __future__ import annotations


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
