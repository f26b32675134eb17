"""From whatever holds numbers in memory to NumPy: tensors, pandas and polars frames, Arrow tables, lists.

Frames and series of every library pass through Arrow, so that a table in memory and a table in a file
(:mod:`leadline.data.tables`) are read by the same rules.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.arrow import column_values, frame_matrix, is_list, list_matrix
from leadline.data.names import brief, one_line
from leadline.errors import InputError


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
        return frame_matrix(arrow, name)
    return list_matrix(arrow, name) if is_list(arrow.type) else column_values(arrow)


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
