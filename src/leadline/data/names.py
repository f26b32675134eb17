"""Names of columns, and words for messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from leadline.errors import InputError

_LOGIT_COLUMN = re.compile(r"logit_(\d{1,9})", re.ASCII)
LABEL_COLUMNS = ("label", "labels")
_PROBABILITY_WORDS = frozenset({"prob", "probs", "proba", "probas", "probability", "probabilities", "softmax"})


def logit_columns(names: Sequence[str], name: str = "logits") -> list[str]:
    """Return the columns of a table that are the logits, in the order of the classes, by their names.

    Parameters
    ----------
    names
        The columns of the table.
    name
        What to call the logits in an error.

    Returns
    -------
    list of str
        ``["logits"]``, or ``["logit_0", "logit_1", ...]`` in numeric order, or an empty list.

    Examples
    --------
    >>> logit_columns(["logit_1", "label", "logit_0"])
    ['logit_0', 'logit_1']
    """
    column, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise InputError(f"{name} must come in a table of distinct columns; got {column!r} {times} times.")
    numbers: dict[int, str] = {}
    for column in names:
        if match := _LOGIT_COLUMN.fullmatch(column):
            other = numbers.setdefault(int(match[1]), column)
            if other != column:
                raise InputError(f"{name} must have one column for each class; got both {other!r} and {column!r}.")
    if "logits" in names:
        if numbers:
            raise InputError(f"{name} must be in one place; got 'logits' and also {min(numbers.items())[1]!r}.")
        return ["logits"]
    for expected, number in enumerate(sorted(numbers)):
        if number != expected:
            raise InputError(
                f"{name} must have columns logit_0 to logit_{len(numbers) - 1} without a gap; "
                f"got {numbers[number]!r} and no 'logit_{expected}'."
            )
    return [numbers[number] for number in sorted(numbers)]


def label_column(names: Iterable[str]) -> str | None:
    """Return which of the names holds the labels; None if there is none."""
    found = [column for column in names if column in LABEL_COLUMNS]
    if len(found) > 1:
        raise InputError("labels must be in one place; got both 'label' and 'labels'.")
    return found[0] if found else None


def is_probability_name(column: str) -> bool:
    """Say whether a column or array name announces probabilities instead of logits.

    Examples
    --------
    >>> [is_probability_name(name) for name in ("prob_0", "softmax_out", "p3", "log_probs", "price")]
    [True, True, True, False, False]
    """
    words = re.split(r"[^a-z]+", column.lower())
    if "log" in words:
        return False
    return not _PROBABILITY_WORDS.isdisjoint(words) or [word for word in words if word] in (
        ["p"],
        ["confidence"],
    )


def refuse_probabilities(columns: Iterable[str], name: str = "logits") -> None:
    """Refuse columns or arrays whose names say that they hold probabilities."""
    for column in columns:
        if is_probability_name(column):
            raise InputError(
                f"{name} must be logits; {column!r} says it holds probabilities. "
                "Give them as probabilities, or store the model's outputs before softmax."
            )


def brief(items: Iterable[Any], most: int = 8) -> str:
    """Return the first few of many items as a list for a message, each cut to a readable length."""
    texts = [repr(str(item)) for item in items]
    shown = [text if len(text) <= 60 else f"{text[:56]}...'" for text in texts[:most]]
    return ", ".join(shown) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def one_line(error: object, most: int = 300) -> str:
    """Return the text of an error on one line of printable characters and of readable length."""
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in str(error)).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
