"""A small language for choosing rows, such as ``country = 'de' and time >= '2026-01-01'``.

Text is parsed into a tree, never evaluated as code; the tree becomes an Arrow expression, which Arrow pushes down into
files, or Spark SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.data.names import brief
from leadline.errors import InputError

Literal = str | int | float | bool

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_SIGNS = {"=": "==", "<>": "!="}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_JOIN: dict[str, Callable[[Any, Any], Any]] = {"and": lambda a, b: a & b, "or": lambda a, b: a | b}
_WORDS = {"and", "or", "not", "in", "is", "null", "true", "false"}
_LONGEST_NUMBER = 400  # digits; the largest double has 309
_DEEPEST = 50  # nested deeper, parentheses could exhaust the stack
_GRAMMAR = "comparisons of a column with a value (=, !=, <, <=, >, >=, in (...), is null), joined by and, or, not"


@dataclass(frozen=True)
class Comparison:
    """A column compared with one value."""

    column: str
    sign: str
    value: Literal


@dataclass(frozen=True)
class Membership:
    """A column that has one of several values."""

    column: str
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Missing:
    """A column without a value."""

    column: str


@dataclass(frozen=True)
class Joined:
    """Conditions of which all ("and"), any ("or") or none of one ("not") must hold."""

    how: str
    parts: tuple[Condition, ...]


Condition = Comparison | Membership | Missing | Joined


def parse(text: str) -> Condition:
    """Return the condition that a text states.

    Examples
    --------
    >>> parse("country in ('de', 'fr') and score > 0.5").how
    'and'
    """
    return _Parser(text).parse()


def columns(condition: Condition) -> set[str]:
    """Return the columns that a condition looks at."""
    if isinstance(condition, Joined):
        return set().union(*(columns(part) for part in condition.parts))
    return {condition.column}


def to_arrow(condition: Condition, schema: Any) -> Any:
    """Return a condition as a ``pyarrow.compute`` expression; values take the types of the schema's columns."""
    import pyarrow.compute as pc

    if isinstance(condition, Joined):
        parts = [to_arrow(part, schema) for part in condition.parts]
        return ~parts[0] if condition.how == "not" else _joined(parts, _JOIN[condition.how])
    if condition.column not in schema.names:
        raise InputError(f"column {condition.column!r} of --where is not in this file; it has {brief(schema.names)}.")
    field = pc.field(condition.column)
    if isinstance(condition, Missing):
        return field.is_null(nan_is_null=True)
    kind = schema.field(condition.column).type
    if isinstance(condition, Membership):
        return _is_among(field, [_scalar(value, kind, condition.column) for value in condition.values])
    return _COMPARE[condition.sign](field, _scalar(condition.value, kind, condition.column))


def _joined(parts: Sequence[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Return expressions joined as a tree of little depth: Arrow goes down a long chain by recursion, and crashes."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return join(_joined(parts[:half], join), _joined(parts[half:], join))


def _is_among(field: Any, values: Sequence[Any]) -> Any:
    """Return whether a field has one of some scalars; unknown, as for a comparison, where the field is missing."""
    import pyarrow as pa

    by_type: dict[Any, list[Any]] = {}
    for value in values:
        by_type.setdefault(value.type, []).append(value)
    # is_in says that a missing value is not among them; the comparison beside it makes that unknown.
    sets = [field.isin(pa.array(found, kind)) for kind, found in by_type.items()]
    return _joined([*sets, field == values[0]], _JOIN["or"])


def to_sql(condition: Condition) -> str:
    """Return a condition as Spark SQL, in which columns and values cannot be taken for anything else."""
    if isinstance(condition, Joined):
        parts = [f"({to_sql(part)})" for part in condition.parts]
        return f"NOT {parts[0]}" if condition.how == "not" else f" {condition.how.upper()} ".join(parts)
    column = "`" + condition.column.replace("`", "``") + "`"
    if isinstance(condition, Missing):
        return f"{column} IS NULL"
    if isinstance(condition, Membership):
        return f"{column} IN ({', '.join(_sql_value(value) for value in condition.values)})"
    return f"{column} {condition.sign} {_sql_value(condition.value)}"


def _sql_value(value: Literal) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return repr(value) if not isinstance(value, bool) else str(value).upper()


def _scalar(value: Literal, kind: Any, column: str) -> Any:
    """Return a value in the type of its column, so that files can be pruned by their statistics."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(value, float) and pa.types.is_integer(kind):
        return pa.scalar(value)  # 2.5 is between integers, not one of them
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None and isinstance(value, str):
            return pa.scalar(value).cast(pa.timestamp(kind.unit)).cast(kind)  # a time without a zone is UTC
        scalar = pa.scalar(value).cast(kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"--where compares column {column!r}, which holds {kind}, with {value!r}.") from error
    if isinstance(value, str) != (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and not (
        isinstance(value, str) and pa.types.is_temporal(kind)
    ):
        raise InputError(f"--where compares column {column!r}, which holds {kind}, with {value!r}.")
    return scalar


class _Parser:
    """Recursive descent: or, and, not, then parentheses or one test of a column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        self.place = self.depth = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self.error(f"{text[position:].strip()[:20]!r} is not part of the language")
            kind = str(match.lastgroup)
            word = match[kind]
            self.tokens.append((word.lower() if kind == "word" and word.lower() in _WORDS else kind, word))
            position = match.end()

    def error(self, reason: str) -> InputError:
        return InputError(f"--where must be {_GRAMMAR}; in {brief([self.text])}, {reason}.")

    def parse(self) -> Condition:
        found = self.either()
        if self.place < len(self.tokens):
            raise self.error(f"{self.tokens[self.place][1]!r} comes after the end of the condition")
        return found

    def peek(self) -> str:
        kind, word = self.tokens[self.place] if self.place < len(self.tokens) else ("end", "")
        return word if kind == "sign" else kind

    def take(self, *wanted: str) -> str | None:
        if self.peek() not in wanted:
            return None
        self.place += 1
        return self.tokens[self.place - 1][1]

    def need(self, what: str, *wanted: str) -> str:
        found = self.take(*wanted)
        if found is None:
            there = self.tokens[self.place][1] if self.place < len(self.tokens) else "the end"
            raise self.error(f"{what} must stand where {there!r} is")
        return found

    def either(self) -> Condition:
        parts = [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Joined("or", tuple(parts))

    def both(self) -> Condition:
        parts = [self.negated()]
        while self.take("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def negated(self) -> Condition:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"conditions are nested more than {_DEEPEST} deep")
        if self.take("not"):
            found: Condition = Joined("not", (self.negated(),))
        elif self.take("("):
            found = self.either()
            self.need("')'", ")")
        else:
            found = self.test()
        self.depth -= 1
        return found

    def test(self) -> Condition:
        column = self.need("a column", "word", "quoted")
        if column[0] in '"`':
            column = column[1:-1].replace(column[0] * 2, column[0])
        if self.take("is"):
            negative = self.take("not")
            self.need("null", "null")
            return Joined("not", (Missing(column),)) if negative else Missing(column)
        negative = self.take("not")
        if negative or self.peek() == "in":
            self.need("in", "in")
            return Joined("not", (self.members(column),)) if negative else self.members(column)
        sign = self.need("=, !=, <, <=, >, >=, in or is", "=", "==", "!=", "<>", "<", "<=", ">", ">=")
        return Comparison(column, _SIGNS.get(sign, sign), self.value())

    def members(self, column: str) -> Membership:
        self.need("'('", "(")
        values = [self.value()]
        while self.take(","):
            values.append(self.value())
        self.need("')'", ")")
        return Membership(column, tuple(values))

    def value(self) -> Literal:
        kind = self.peek()
        word = self.need("a number, a text in single quotes, true or false", "number", "text", "true", "false")
        if kind == "number":
            if len(word) > _LONGEST_NUMBER:
                raise self.error(f"{word[:20]}... is a number of {len(word)} digits")
            return float(word) if re.search(r"[.eE]", word) else int(word)
        return word[1:-1].replace("''", "'") if kind == "text" else kind == "true"
