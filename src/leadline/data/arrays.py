"""From whatever holds numbers in memory to NumPy: tensors, pandas and polars frames, Arrow tables, lists.

Frames and series of every library pass through Arrow, so that a table in memory and a table in a file
(:mod:`leadline.data.tables`) are read by the same rules.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import InputError

_LOGIT_COLUMN = re.compile(r"logit_(\d{1,9})", re.ASCII)
_LABEL_COLUMNS = ("label", "labels")
_PROBABILITY_WORDS = frozenset({"prob", "probs", "proba", "probas", "probability", "probabilities", "softmax"})


# -------------------------------------------------------------------------------------------- in memory
def as_matrix(value: Any, name: str) -> NDArray[Any]:
    """Return what holds logits as an array, copying only where the numbers do not lie in one block.

    Parameters
    ----------
    value
        An array, tensor, nested sequence, an Arrow, pandas or polars column of lists, or a table. Of a table,
        the list column ``logits`` or the columns ``logit_0``, ``logit_1``, ... are taken; without either, all
        columns in their order, which must be numbers.
    name
        What to call it in an error.

    Returns
    -------
    ndarray
        Shape (n, c) for every table; an array keeps the shape that it has, to be checked by the caller.
    """
    arrow = _as_arrow(value, name)
    if arrow is None:
        return _plain_array(value, name)
    if hasattr(arrow, "column_names"):
        return _frame_matrix(arrow, name)
    return list_matrix(arrow, name) if _is_list(arrow.type) else column_values(arrow)


def as_column(value: Any, name: str) -> NDArray[Any]:
    """Return one value for each row as an array; missing values stay (see :func:`column_values`)."""
    arrow = _as_arrow(value, name)
    if arrow is None:
        return _plain_array(value, name)
    if hasattr(arrow, "column_names"):
        raise InputError(f"{name} must be one column; got a table with columns {brief(arrow.column_names)}.")
    return column_values(arrow)


def _as_arrow(value: Any, name: str) -> Any | None:
    """Return tables as an Arrow table, series and Arrow arrays as a chunked array, None for the rest."""
    pandas: Any = sys.modules.get("pandas")  # whoever holds a frame has imported it; Leadline itself never does
    from_pandas = pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series)
    if not from_pandas and not hasattr(value, "__arrow_c_stream__") and not hasattr(value, "__arrow_c_array__"):
        return None
    import pyarrow as pa

    try:
        if from_pandas and isinstance(value, pandas.DataFrame):
            return pa.Table.from_pandas(value, preserve_index=False)
        if hasattr(value, "columns") or hasattr(value, "column_names"):
            return pa.table(value)
        if from_pandas or isinstance(value, pa.Array):
            value = pa.array(value)
            return value if isinstance(value, pa.ChunkedArray) else pa.chunked_array([value])
        return pa.chunked_array(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"{name} must be a table or column of one type each ({one_line(error)}).") from error


def _plain_array(value: Any, name: str) -> NDArray[Any]:
    """Return an array, tensor or nested sequence as a NumPy array."""
    # Whoever made a masked array has imported the module, which NumPy would only now.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(value))
        if len(masked):
            raise InputError(f"{name} must have no masked values; got one at row {masked[0][0]}.")
        value = value.data
    try:
        if hasattr(value, "detach"):  # a torch tensor, on any device, perhaps with a gradient
            value = value.detach().cpu()
            if value.is_floating_point() and value.element_size() < 4:
                value = value.float()  # NumPy has no bfloat16
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a regular array of numbers ({one_line(error)}).") from error


# ----------------------------------------------------------------------------------------- Arrow tables
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


def label_column(names: Iterable[str]) -> str | None:
    """Return which of the names holds the labels; None if there is none."""
    found = [column for column in names if column in _LABEL_COLUMNS]
    if len(found) > 1:
        raise InputError("labels must be in one place; got both 'label' and 'labels'.")
    return found[0] if found else None


def _frame_matrix(table: Any, name: str) -> NDArray[Any]:
    """Return the logits of an Arrow table that was given as logits."""
    columns = logit_columns(table.column_names, name)
    if columns != ["logits"]:
        label = next((column for column in table.column_names if column.lower() in _LABEL_COLUMNS), None)
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
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parse_lists(column, name)
    if not _is_list(column.type):
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


def column_values(column: Any) -> NDArray[Any]:
    """Return an Arrow column, a chunked array, as an array of shape (n,).

    Missing values become NaN among floats, NaT among times and None (in an object array) among the rest.
    Times with a zone become the instants in UTC; dictionary-encoded columns become the values themselves.
    """
    import pyarrow as pa

    column = _storage(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    holds_missing = pa.types.is_floating(kind) or (pa.types.is_temporal(kind) and not pa.types.is_time(kind))
    is_flat = pa.types.is_primitive(kind) and not pa.types.is_time(kind) and kind != pa.month_day_nano_interval()
    if is_flat and (holds_missing or column.null_count == 0):
        values: NDArray[Any] = column.to_numpy()
        return values
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


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

    rows = []
    for row, text in enumerate(column.to_pylist()):
        body = (text or "").strip()
        try:
            if not (body.startswith("[") and body.endswith("]")):
                raise ValueError("no brackets")
            body = body[1:-1]
            rows.append([float(item) for item in (body.split(",") if "," in body else body.split())])
        except ValueError as error:
            raise InputError(
                f"{name} must be lists of numbers such as [0.5, -1.2]; got {brief([str(text)])} at row {row}."
            ) from error
    return pa.chunked_array([pa.array(rows, pa.list_(pa.float64()))])


def _refuse_nulls(column: Any, name: str, place: str = "") -> None:
    """Refuse a column with missing values, naming the row of the first."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(
            f"{name} must be known for every row; got a missing value at row {row}{place}. Remove or repair such rows."
        )


def _is_list(kind: Any) -> bool:
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


# ----------------------------------------------------------------------------------- names and messages
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
