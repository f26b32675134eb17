"""What the footer of a Parquet file says of its columns.

Arrow's own objects for it end the process where a footer contradicts itself, so that its bytes are read here, and such
a footer is refused before Arrow looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from leadline.errors import InputError

_END = 8  # bytes after the footer, of which the first four are its length
_DAMAGED = "its footer contradicts itself; is it damaged?"
_DELTA_BYTE_ARRAY = 7

# Kinds of values in Thrift's compact protocol, which footers are written in.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


class _Field(NamedTuple):
    """A field that is read: its kinds, those of the items of a list, and the fields inside by their numbers."""

    kinds: tuple[int, ...]
    items: tuple[int, ...] = ()
    inside: Mapping[int, _Field] = MappingProxyType({})


_NUMBER, _NUMBERS, _TEXTS = _Field(_INTEGERS), _Field((_LIST,), _INTEGERS), _Field((_LIST,), (_BINARY,))
# Numbers of the fields that are read.
_PATH, _ENCODINGS, _VALUES, _UNCOMPRESSED, _DICTIONARY, _SIZES = 3, 2, 5, 6, 11, 16
_TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_ROW_GROUPS, _COLUMNS, _COLUMN, _ENCRYPTION = 4, 1, 3, 8
_OF_SIZES = MappingProxyType({_TEXT_BYTES: _NUMBER, _REPETITIONS: _NUMBERS, _DEFINITIONS: _NUMBERS})
_OF_COLUMN = MappingProxyType({
    _PATH: _TEXTS, _ENCODINGS: _NUMBERS, _VALUES: _NUMBER, _UNCOMPRESSED: _NUMBER, _DICTIONARY: _NUMBER,
    _SIZES: _Field((_STRUCT,), inside=_OF_SIZES),
})  # fmt: skip
_OF_CHUNK = MappingProxyType({_COLUMN: _Field((_STRUCT,), inside=_OF_COLUMN), _ENCRYPTION: _Field((_STRUCT,))})
_OF_GROUP = MappingProxyType({_COLUMNS: _Field((_LIST,), (_STRUCT,), _OF_CHUNK)})
_FOOTER = MappingProxyType({_ROW_GROUPS: _Field((_LIST,), (_STRUCT,), _OF_GROUP)})


@dataclass(frozen=True)
class Chunk:
    """A column of a row group.

    Attributes
    ----------
    path
        Of a leaf of the schema, such as ``logits.list.element``.
    type
        How values are stored, such as ``DOUBLE``.
    width
        Bytes of each value of type FIXED_LEN_BYTE_ARRAY.
    n_values
        How many there are.
    n_bytes
        That all pages unpack to.
    has_dictionary
        Whether values are numbers of those in a dictionary.
    has_prefixes
        Whether values are told by what they share with the one before.
    """

    path: str
    type: str
    width: int
    n_values: int
    n_bytes: int
    has_dictionary: bool
    has_prefixes: bool

    @classmethod
    def of(cls, found: Mapping[int, Any], leaf: Any) -> Self:
        """Return what was found in a footer; ``leaf`` is the ``pyarrow.parquet.ColumnSchema``."""
        column = found.get(_COLUMN, {})
        if _ENCRYPTION in found or not {_PATH, _VALUES, _UNCOMPRESSED} <= column.keys():
            raise InputError("its footer does not describe all columns; is it encrypted?")
        sizes, is_text = column.get(_SIZES, {}), leaf.physical_type == "BYTE_ARRAY"
        repetitions, definitions = len(sizes.get(_REPETITIONS, ())), len(sizes.get(_DEFINITIONS, ()))
        if (
            repetitions not in (0, leaf.max_repetition_level + 1)
            or definitions not in (0, leaf.max_definition_level + 1)
            or (_TEXT_BYTES in sizes and not is_text)
        ):
            raise InputError(_DAMAGED)
        return cls(
            b".".join(column[_PATH]).decode(errors="replace"), leaf.physical_type, max(1, leaf.length or 1),
            max(0, column[_VALUES]), max(0, column[_UNCOMPRESSED]), _DICTIONARY in column,
            _DELTA_BYTE_ARRAY in column.get(_ENCODINGS, ()),
        )  # fmt: skip


def row_groups(file: Any, metadata: Any) -> list[list[Chunk]]:
    """Return the columns of each row group.

    Parameters
    ----------
    file
        The file, open for bytes.
    metadata
        Its ``pyarrow.parquet.FileMetaData``.
    """
    try:
        footer, _ = _record(_footer(file), 0, _FOOTER)
    except (IndexError, KeyError) as error:
        raise InputError(_DAMAGED) from error
    leaves = [metadata.schema.column(i) for i in range(len(metadata.schema))]
    found = [group.get(_COLUMNS, []) for group in footer.get(_ROW_GROUPS, [])]
    if any(len(columns) != len(leaves) for columns in found):
        raise InputError(f"its footer contradicts itself: not every row group has the {len(leaves)} columns.")
    return [[Chunk.of(*pair) for pair in zip(columns, leaves, strict=True)] for columns in found]


def _footer(file: Any) -> bytes:
    """Return the bytes of the footer: Arrow, asked for them, ends the process where a footer says it is signed."""
    end = file.seek(0, 2) - _END
    file.seek(end)
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(end - length, 0))
    return bytes(file.read(length))


def _record(data: bytes, place: int, wanted: Mapping[int, _Field]) -> tuple[dict[int, Any], int]:
    """Read a record in Thrift's compact protocol: its fields that are wanted, by number, and where it ends."""
    found: dict[int, Any] = {}
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _integer(data, place)
        if number in found:
            raise InputError(_DAMAGED)
        if number in wanted:
            found[number], place = _value(data, place, head & 15, wanted[number])
        else:
            place = _after(data, place, head & 15)
    return found, place + 1


def _value(data: bytes, place: int, kind: int, field: _Field) -> tuple[Any, int]:
    """Read the value of a field, and where it ends."""
    if kind not in field.kinds:
        raise InputError("its footer has fields of another kind than Parquet's.")
    if kind == _STRUCT:
        return _record(data, place, field.inside)
    if kind == _BINARY:
        count, place = _number(data, place)
        return data[place : place + count], place + count
    if kind in _INTEGERS:
        return _integer(data, place)
    count, inner, place = _list(data, place)
    item, values = _Field(field.items, inside=field.inside), []
    for _ in range(count):
        value, place = _value(data, place, inner, item)
        values.append(value)
    return values, place


def _after(data: bytes, place: int, kind: int) -> int:
    """Return where a value of a kind ends."""
    if kind in _INTEGERS:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind == _BINARY:
        count, place = _number(data, place)
        return place + count
    if kind == _STRUCT:
        while head := data[place]:
            place = _after(data, place + 1 if head >> 4 else _integer(data, place + 1)[1], head & 15)
        return place + 1
    if kind in (_LIST, _SET):
        count, inner, place = _list(data, place)
        for _ in range(count):
            place = _after_item(data, place, inner)
        return place
    if kind == _MAP:
        count, place = _number(data, place)
        kinds, place = (data[place], place + 1) if count else (0, place)
        for _ in range(count):
            place = _after_item(data, _after_item(data, place, kinds >> 4), kinds & 15)
        return place
    return place + {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}[kind]


def _after_item(data: bytes, place: int, kind: int) -> int:
    """Return where an item of a list ends: truth takes a byte there, while in a record the kind says it."""
    return _after(data, place, _BYTE if kind in (_TRUE, _FALSE) else kind)


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    """Read how many items of which kind a list has, and where they begin."""
    head = data[place]
    count, place = (head >> 4, place + 1) if head >> 4 < 15 else _number(data, place + 1)
    return count, head & 15, place


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Read a number of seven bits in each byte, the lowest first, and where it ends."""
    value, shift = 0, 0
    while (byte := data[place]) > 127:
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
    return value | byte << shift, place + 1


def _integer(data: bytes, place: int) -> tuple[int, int]:
    """Read a number whose lowest bit is its sign, and where it ends."""
    value, place = _number(data, place)
    return value >> 1 ^ -(value & 1), place
