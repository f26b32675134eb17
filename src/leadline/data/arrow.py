"""From columns of Arrow tables to NumPy, by the same rules for tables in memory and in files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.names import LABEL_COLUMNS, brief, logit_columns, refuse_probabilities
from leadline.errors import InputError

_FLOAT_DIGITS, _INTEGER_DIGITS = 15, 18  # of decimals that a double, and an integer of 64 bits, hold exactly


def table_matrix(table: Any, columns: Sequence[str], name: str = "logits") -> NDArray[Any]:
    """Return columns of an Arrow table as an array of shape (n, c): a column of lists, or one for each value."""
    lists = columns == ["logits"] or (len(columns) == 1 and not _is_number(table.column(columns[0]).type))
    if lists:
        return list_matrix(table.column(columns[0]), name)
    parts = [_numbers(table.column(column), name, column) for column in columns]
    matrix = np.empty((table.num_rows, len(parts)), dtype=np.result_type(*parts))
    for i, part in enumerate(parts):
        matrix[:, i] = part
    return matrix


def frame_matrix(table: Any, name: str) -> NDArray[Any]:
    """Return the logits of an Arrow table that was given as logits."""
    columns = logit_columns(table.column_names, name)
    if columns != ["logits"]:
        label = next((column for column in table.column_names if column.lower() in LABEL_COLUMNS), None)
        if label is not None:
            raise InputError(f"{name} must hold logits only; got a column {label!r}. Drop it, and give labels apart.")
    if not columns:
        columns = table.column_names
        refuse_probabilities(columns, name)
    return table_matrix(table, columns, name) if columns else np.empty((table.num_rows, 0))


def list_matrix(column: Any, name: str = "logits") -> NDArray[Any]:
    """Return an Arrow column (a chunked array) of equally long lists of numbers as shape (n, c)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _storage(column)
    if _is_text(column.type):
        column = _parse_lists(column, name)
    if not is_list(column.type):
        raise InputError(f"{name} must be lists of numbers; column 'logits' holds {column.type}.")
    _refuse_nulls(column, name)
    lengths = pc.list_value_length(column).to_numpy()
    if not len(lengths):
        return np.empty((0, 0))
    ragged = np.flatnonzero(lengths != lengths[0])
    if len(ragged):
        row = ragged[0]
        raise InputError(
            f"{name} must have as many values in each row; got {lengths[row]} at row {row} and {lengths[0]} at row 0."
        )
    width = int(lengths[0])
    parts = []
    for start, chunk in _chunks(column):
        values = chunk.flatten()
        if values.null_count:
            row = start + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            raise InputError(f"{name} must be known for every class; got a missing value at row {row}.")
        parts.append(_numbers(pa.chunked_array([values]), name, "logits").reshape(len(chunk), width))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def known_rows(table: Any, names: Sequence[str], width: int | None = None) -> NDArray[np.bool_] | None:
    """Return which rows of an Arrow table have no missing values and the right number of them; None if all have.

    Parameters
    ----------
    table
        With at least one row.
    names
        A column of lists, or one for each value.
    width
        How long lists must be; None for the length that most have.
    """
    import pyarrow.compute as pc

    columns = [_storage(table.column(name)) for name in names]
    kind = columns[0].type
    listed = len(names) == 1 and is_list(kind)
    inside = listed and any(chunk.flatten().null_count for chunk in columns[0].chunks)
    lengths = pc.list_value_length(columns[0]) if listed else None
    if width is None and lengths is not None:
        width = next((mode["mode"] for mode in pc.mode(lengths).to_pylist()), 0)
    right_width = None if lengths is None else pc.equal(lengths, width)
    # Lists that are all of another length are those of another model.
    ragged = right_width is not None and pc.min_max(right_width).as_py() == {"min": False, "max": True}
    if not inside and not ragged and not any(column.null_count for column in columns):
        return None
    good = np.ones(table.num_rows, dtype=bool)
    if ragged:
        good &= pc.fill_null(right_width, False).to_numpy()
    for column in columns:
        good &= column.is_valid().to_numpy()
    if inside:
        column = columns[0].combine_chunks()
        missing = column.flatten().is_null().to_numpy(zero_copy_only=False)
        good[pc.list_parent_indices(column).to_numpy()[missing]] = False
    return good


def column_values(column: Any) -> NDArray[Any]:
    """Return an Arrow column, a chunked array, as an array of shape (n,).

    Missing values become NaN among floats, NaT among times and None (in an object array) among the rest.
    Times with a zone become the instants in UTC; dictionary-encoded columns become the values themselves.
    """
    import pyarrow as pa

    column = _storage(column)
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        return _shared_texts(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = plain_decimals(column)
    kind = column.type
    holds_missing = pa.types.is_floating(kind) or (pa.types.is_temporal(kind) and not pa.types.is_time(kind))
    is_flat = pa.types.is_primitive(kind) and not pa.types.is_time(kind) and kind != pa.month_day_nano_interval()
    if is_flat and (holds_missing or column.null_count == 0):
        values: NDArray[Any] = column.to_numpy()
        return values
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def plain_decimals(column: Any) -> Any:
    """Return decimals, in an Arrow array or chunked array, as integers or floats where these hold all their digits."""
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_decimal(kind):
        return column
    if kind.scale == 0 and kind.precision <= _INTEGER_DIGITS:
        return column.cast(pa.int64())
    return column.cast(pa.float64()) if kind.scale >= 0 and kind.precision <= _FLOAT_DIGITS else column


def text_bytes(column: Any) -> int:
    """Return how many bytes the texts of an Arrow column take that may overlap: those of views."""
    import pyarrow as pa

    if not (pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)):
        return 0
    # A view is 16 bytes, of which the first four are its length.
    views = ((np.frombuffer(chunk.buffers()[1], dtype="<i4"), chunk) for chunk in column.chunks if len(chunk))
    return sum(int(view[4 * chunk.offset :: 4][: len(chunk)].sum(dtype=np.int64)) for view, chunk in views)


def _shared_texts(column: Any) -> NDArray[Any]:
    """Return a dictionary-encoded column of texts as objects; rows of equal text share it."""
    parts = []
    for chunk in column.chunks:
        texts = np.fromiter([*chunk.dictionary.to_pylist(), None], dtype=object, count=len(chunk.dictionary) + 1)
        parts.append(texts[chunk.indices.fill_null(len(chunk.dictionary)).to_numpy()])
    return np.concatenate(parts) if parts else np.empty(0, dtype=object)


def _is_text(kind: Any) -> bool:
    """Say whether an Arrow type is one of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _storage(column: Any) -> Any:
    """Strip an extension type, such as a tensor of fixed shape, down to what it is stored as."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    return column


def _numbers(column: Any, name: str, label: str) -> NDArray[Any]:
    """Return an Arrow column of numbers without missing ones as an array, without copying where possible."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    _refuse_nulls(column, name, f", column {label!r}")
    if not _is_number(kind):
        raise InputError(f"{name} must be numbers; column {label!r} holds {kind}.")
    values: NDArray[Any] = (
        column.chunk(0).to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()
    )
    return values


def _parse_lists(column: Any, name: str) -> Any:
    """Return a column of text such as ``[0.5, -1.2]`` or ``[0.5 -1.2]`` as a column of lists."""
    import pyarrow as pa

    values, ends = array("d"), [0]
    for row, text in enumerate(text for chunk in column.chunks for text in map(str, chunk)):
        body = text.strip()
        try:
            if not (body.startswith("[") and body.endswith("]")):
                raise ValueError("no brackets")
            body = body[1:-1]
            values.extend(float(item) for item in (body.split(",") if "," in body else body.split()))
            ends.append(len(values))
        except ValueError as error:
            raise InputError(
                f"{name} must be lists of numbers such as [0.5, -1.2]; got {brief([text])} at row {row}."
            ) from error
    lists = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(np.asarray(values)))
    return pa.chunked_array([lists])


def _refuse_nulls(column: Any, name: str, place: str = "") -> None:
    """Refuse a column with missing values, naming the row of the first."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(
            f"{name} must be known for every row; got a missing value at row {row}{place}. Remove or repair such rows."
        )


def is_list(kind: Any) -> bool:
    """Say whether an Arrow type is one of lists."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    """Say whether an Arrow type is one of numbers."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _chunks(column: Any) -> Iterable[tuple[int, Any]]:
    """Yield the chunks of a column that have rows, each with the number of its first row."""
    start = 0
    for chunk in column.chunks:
        if len(chunk):
            yield start, chunk
        start += len(chunk)
