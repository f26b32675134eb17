"""Outputs in memory: what is taken, from every library, and what is refused with which words."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from leadline.data.outputs import (
    Outputs,
    as_classes,
    as_labels,
    as_logits,
    is_probability_name,
    row_blocks,
)
from leadline.errors import InputError

# Twelve classes, so that logit_10 sorts before logit_2 as text; eighths, so that half precision is exact.
LOGITS = np.arange(-18, 18, dtype=np.float32).reshape(3, 12) / 8
LABELS = np.array([2, 0, 11])
NAMES = [f"logit_{i}" for i in range(12)]


def columns(names: list[str]) -> dict[str, NDArray[Any]]:
    return {name: LOGITS[:, i] for i, name in enumerate(names)}


def shuffled() -> dict[str, NDArray[Any]]:
    return dict(sorted(columns(NAMES).items()))


def fixed_lists() -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(LOGITS.reshape(-1)), 12)


HOLDERS: dict[str, Callable[[], Any]] = {
    "numpy": lambda: LOGITS,
    "half precision": lambda: LOGITS.astype(np.float16),
    "foreign byte order": lambda: LOGITS.astype(">f4"),
    "Fortran order": lambda: np.asfortranarray(LOGITS),
    "nested lists": LOGITS.tolist,
    "unmasked masked array": lambda: np.ma.masked_invalid(LOGITS),
    "torch": lambda: torch.tensor(LOGITS),
    "torch with gradient": lambda: torch.tensor(LOGITS, requires_grad=True) * 1,
    "torch bfloat16": lambda: torch.tensor(LOGITS, dtype=torch.bfloat16),
    "torch half": lambda: torch.tensor(LOGITS, dtype=torch.float16),
    "pandas frame": lambda: pd.DataFrame(LOGITS),
    "pandas frame with an index": lambda: pd.DataFrame(LOGITS, index=[7, 5, 9]),
    "pandas frame of named classes": lambda: pd.DataFrame(columns(list("lkjihgfedcba"))),
    "pandas logit columns": lambda: pd.DataFrame(shuffled()),
    "pandas lists": lambda: pd.DataFrame({"label": LABELS, "logits": LOGITS.tolist()}),
    "pandas arrays": lambda: pd.DataFrame({"logits": list(LOGITS)}),
    "pandas series of lists": lambda: pd.Series(LOGITS.tolist()),
    "polars frame": lambda: pl.DataFrame(LOGITS),
    "polars logit columns": lambda: pl.DataFrame(shuffled()),
    "polars lists": lambda: pl.DataFrame({"logits": LOGITS.tolist(), "time": ["a", "b", "c"]}),
    "polars arrays": lambda: pl.DataFrame({"logits": LOGITS}),
    "polars series of lists": lambda: pl.Series(LOGITS.tolist()),
    "Arrow table": lambda: pa.table(columns(list("abcdefghijkl"))),
    "Arrow record batch": lambda: pa.record_batch(shuffled()),
    "Arrow table of lists": lambda: pa.table({"logits": LOGITS.tolist()}),
    "Arrow table in chunks": lambda: pa.concat_tables(
        [pa.table({"logits": fixed_lists()[:1]}), pa.table({"logits": fixed_lists()[1:]})]
    ),
    "Arrow lists": lambda: pa.array(LOGITS.tolist()),
    "Arrow large lists, sliced": lambda: pa.array([[9.0] * 12, *LOGITS.tolist()], pa.large_list(pa.float32())).slice(1),
    "Arrow fixed lists": fixed_lists,
    "Arrow tensors": lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(LOGITS),
    "Arrow decimals": lambda: pa.table(
        {name: pa.array(column, pa.float64()).cast(pa.decimal128(12, 3)) for name, column in columns(NAMES).items()}
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_as_logits_takes_every_holder(holder: str) -> None:
    array = as_logits(HOLDERS[holder]())
    assert type(array) is np.ndarray
    assert array.dtype in (np.float32, np.float64)
    np.testing.assert_array_equal(array, LOGITS)


@pytest.mark.parametrize(
    "holder", ["numpy", "torch", "pandas frame", "polars frame", "Arrow fixed lists", "foreign byte order"]
)
def test_as_logits_keeps_single_precision(holder: str) -> None:
    assert as_logits(HOLDERS[holder]()).dtype == np.float32


@pytest.mark.parametrize("holder", ["numpy", "Fortran order", "unmasked masked array", "torch", "Arrow fixed lists"])
def test_as_logits_does_not_copy_one_block(holder: str) -> None:
    value = HOLDERS[holder]()
    first, second = as_logits(value), as_logits(value)
    assert np.shares_memory(first, second)


def test_integers_become_doubles() -> None:
    assert as_logits([[1, 2], [3, 4]]).dtype == np.float64


BAD_LOGITS: dict[str, tuple[Any, str]] = {
    "one dimension": ([1.0, 2.0], r"must have shape \(samples, classes\); got 1 dimension\(s\), \(2,\)"),
    "text": ([["a", "b"]], "must be real numbers; got dtype <U1"),
    "None inside": ([[1.0, None]], "must be real numbers; got dtype object"),
    "bool": ([[True, False]], "must be real numbers; got dtype bool"),
    "complex": (np.ones((2, 2), complex), "must be real numbers; got dtype complex128"),
    "no rows": (np.empty((0, 3)), "must have at least one row; got none"),
    "one class": ([[1.0], [2.0]], "must have at least 2 classes .* got 1. Give a binary model two columns"),
    "NaN": ([[1.0, 2.0], [1.0, np.nan]], "must be finite; got nan at row 1, class 1"),
    "infinite": ([[1.0, -np.inf]], "must be finite; got -inf at row 0, class 1"),
    "too large for a double": (np.array([["1e400", "1"]], np.longdouble), "must be finite; got inf at row 0"),
    "too large for single precision": ([[1.0, 2.0], [1e39, 1.0]], "must be at most 1e.30 in size; got 1e.39 at row 1"),
    "probabilities by value": (
        [[0.25, 0.75], [0.5, 0.5]],
        "must be outputs before softmax; all rows .* Give them as prob",
    ),
    "constant": (np.full((2, 3), 0.5), "must tell the classes apart; all 2 x 3 values are 0.5"),
    "ragged": ([[1.0, 2.0], [3.0]], "must be a regular array of numbers"),
    "masked": (
        np.ma.masked_equal([[1.0, 2.0], [1.0, 9.0]], 9.0),
        "must have no masked values; got one at row 1",
    ),
    "sparse tensor": (torch.eye(2).to_sparse(), "must be a regular array of numbers"),
    "dict": ({"logits": [[1.0, 2.0]]}, "got 0 dimension"),
    "label among logits": (
        pd.DataFrame({"a": [1.0], "b": [2.0], "Label": [0]}),
        "must hold logits only; got a column 'Label'",
    ),
    "label among logit columns": (
        pl.DataFrame({"logit_0": [1.0], "logit_1": [2.0], "label": [0]}),
        "must hold logits only; got a column 'label'",
    ),
    "probabilities": (
        pd.DataFrame({"prob_0": [0.2], "prob_1": [0.8]}),
        "'prob_0' says it holds probabilities",
    ),
    "gap": (pa.table({"logit_0": [1.0], "logit_2": [2.0]}), "without a gap; got 'logit_2' and no 'logit_1'"),
    "not from 0": (pa.table({"logit_1": [1.0], "logit_2": [2.0]}), "got 'logit_1' and no 'logit_0'"),
    "one number twice": (
        pa.table({"logit_0": [1.0], "logit_00": [2.0]}),
        "got both 'logit_0' and 'logit_00'",
    ),
    "one name twice": (pa.table([[1.0], [2.0]], ["logit_0", "logit_0"]), "got 'logit_0' 2 times"),
    "lists and columns": (pa.table({"logits": [[1.0]], "logit_0": [2.0]}), "got 'logits' and also 'logit_0'"),
    "text column": (pl.DataFrame({"a": [1.0], "city": ["Bern"]}), "must be numbers; column 'city' holds"),
    "scalar column logits": (
        pl.DataFrame({"logits": [1.0]}),
        "must be lists of numbers; column 'logits' holds double",
    ),
    "lists of lists": (
        pa.table({"logits": [[[1.0]], [[2.0]]]}),
        "must be numbers; column 'logits' holds list",
    ),
    "null in a column": (
        pl.DataFrame({"logit_0": [1.0, None], "logit_1": [2.0, 3.0]}),
        "got a missing value at row 1, column 'logit_0'",
    ),
    "NaN in a frame": (pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, 3.0]}), "logits must .* at row 1"),
    "null row": (pa.array([[1.0, 2.0], None]), "got a missing value at row 1"),
    "null in a list": (
        pa.array([[1.0, 2.0], [3.0, None]]),
        "known for every class; got a missing value at row 1",
    ),
    "ragged lists": (pl.Series([[1.0, 2.0], [3.0]]), "got 1 at row 1 and 2 at row 0"),
    "mixed column": (pd.DataFrame({"a": [1, "x"], "b": [1, 2]}), "a table or column of one type each"),
    "empty table": (pa.table({}), "at least one row"),
}


@pytest.mark.parametrize("case", BAD_LOGITS)
def test_bad_logits_are_refused(case: str) -> None:
    value, message = BAD_LOGITS[case]
    with pytest.raises(InputError, match=message) as caught:
        as_logits(value)
    assert str(caught.value).startswith("logits ")


def test_the_row_of_a_null_is_counted_over_chunks() -> None:
    column = pa.chunked_array([[[1.0, 2.0]] * 5, [[1.0, 2.0], [None, 2.0]]])
    with pytest.raises(InputError, match="at row 6"):
        as_logits(column)


def test_the_width_of_fit_is_required() -> None:
    with pytest.raises(InputError, match=r"new_logits must have 10 classes, as in fit; got 12\."):
        as_logits(LOGITS, name="new_logits", n_classes=10)


LABEL_HOLDERS: dict[str, Callable[[], Any]] = {
    "list": LABELS.tolist,
    "objects": lambda: LABELS.astype(object),
    "int8": lambda: LABELS.astype(np.int8),
    "uint64": lambda: LABELS.astype(np.uint64),
    "torch": lambda: torch.tensor(LABELS),
    "pandas": lambda: pd.Series(LABELS, index=[9, 8, 7]),
    "pandas nullable": lambda: pd.Series(LABELS, dtype="Int64"),
    "pandas categories": lambda: pd.Series(LABELS).astype("category"),
    "polars": lambda: pl.Series(LABELS),
    "Arrow": lambda: pa.array(LABELS),
    "Arrow chunks": lambda: pa.chunked_array([LABELS[:1], LABELS[1:]]),
    "Arrow dictionary": lambda: pa.array(LABELS).dictionary_encode(),
}


@pytest.mark.parametrize("holder", LABEL_HOLDERS)
def test_as_labels_takes_every_holder(holder: str) -> None:
    labels = as_labels(LABEL_HOLDERS[holder](), LOGITS)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, LABELS)


BAD_LABELS: dict[str, tuple[Any, str]] = {
    "too few": ([0, 1], r"must have shape \(3,\), one for each row of logits; got \(2,\)"),
    "one-hot": (np.eye(3, dtype=int), r"got \(3, 3\)"),
    "float": ([0.0, 1.0, 2.0], "must be integers from 0 to 11, .* got dtype float64"),
    "bool": ([True, False, True], "got dtype bool"),
    "too large": ([0, 12, 1], "must be from 0 to 11, as the logits have 12 classes; got 12 at row 1"),
    "negative": ([0, 1, -1], "got -1 at row 2"),
    "huge unsigned": (np.array([0, 1, 2**63], np.uint64), "got 9223372036854775808 at row 2"),
    "names without classes": (
        ["a", "b", "c"],
        "must be integers; got 'a'. To use class names, give `classes`",
    ),
    "None": ([0, 1, None], "all integers or all names of classes; got None at row 2"),
    "nullable": (pd.Series([0, None, 1], dtype="Int64"), "got None at row 1. Leave out rows without a label"),
    "mixed": (np.array(["a", 1, "b"], object), "all integers or all names of classes; got 1 at row 1"),
    "objects, too large": (np.array([0, 1, 2**70], object), "all integers or all names"),
    "null name": (pl.Series(["a", None, "b"]), "all names of classes; got None at row 1"),
    "bytes": ([b"a", b"b", b"c"], r"got dtype \|S1"),
    "times": (np.array(["2024-01-01"] * 3, "M8[D]"), r"got dtype datetime64\[D\]"),
    "masked": (np.ma.masked_equal([0, 1, 2], 2), "must have no masked values; got one at row 2"),
    "table": (pl.DataFrame({"label": [0, 1, 2]}), "must be one column; got a table with columns 'label'"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_are_refused(case: str) -> None:
    value, message = BAD_LABELS[case]
    with pytest.raises(InputError, match=message) as caught:
        as_labels(value, LOGITS)
    assert str(caught.value).startswith("labels ")


@pytest.mark.parametrize(
    "names", [["c", "a", "b"], np.array(["c", "a", "b"]), pd.Series(["c", "a", "b"]).astype("category")]
)
def test_names_follow_the_explicit_order_of_classes(names: Any) -> None:
    labels = as_labels(names, LOGITS[:, :3], classes=["a", "b", "c"])
    np.testing.assert_array_equal(labels, [2, 0, 1])


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="among the classes 'a', 'b'; got 'B' at row 1"):
        as_labels(["a", "B", "a"], LOGITS, classes=["a", "b"])


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "b"], "must name each of the 3 logit columns; got 2 names"),
        (["a", "b", "a"], "must be distinct; got 'a' more than once"),
        ("abc", "must be a sequence of names; got the text 'abc'"),
    ],
)
def test_bad_classes_are_refused(classes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_classes(classes, 3)


@pytest.mark.parametrize("name", ["prob_0", "probs", "Probabilities", "p_3", "p", "softmax", "y_proba", "prob.cat"])
def test_names_of_probabilities(name: str) -> None:
    assert is_probability_name(name)


@pytest.mark.parametrize(
    "name", ["logits", "logit_0", "log_probs", "log-probability", "problem", "pig", "0", "p_value"]
)
def test_other_names(name: str) -> None:
    assert not is_probability_name(name)


def test_row_blocks_are_views_that_cover_every_row(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(10, 3))
    blocks = row_blocks(logits, values_per_block=9)
    assert [len(block) for block in blocks] == [3, 3, 3, 1]
    assert all(np.shares_memory(block, logits) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), logits)


# --------------------------------------------------------------------------------------------- Outputs
def test_accuracy_is_the_share_of_right_predictions() -> None:
    assert Outputs(np.eye(4), [0, 1, 2, 0]).accuracy == 0.75
    assert Outputs(np.eye(4)).accuracy is None


def test_outputs_have_a_length_and_a_width() -> None:
    outputs = Outputs(LOGITS)
    assert (len(outputs), outputs.n_classes) == (3, 12)


@pytest.mark.parametrize("column", [["a", "b"], [["a"], ["b"], ["c"]], "abc"])
def test_metadata_must_have_one_value_for_each_row(column: Any) -> None:
    with pytest.raises(InputError, match="metadata column 'segment' must have one value for each of the 3 rows"):
        Outputs(LOGITS, metadata={"segment": column})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["b", "a", "b", "c"], {"a": [1], "b": [0, 2], "c": [3]}),
        ([2, 1, 2, 1], {1: [1, 3], 2: [0, 2]}),
        ([0.5, np.nan, 0.5, np.nan], {0.5: [0, 2], None: [1, 3]}),
        (pl.Series(["b", None, "a", None]), {"a": [2], "b": [0], None: [1, 3]}),
        (pd.Series(["b", "a", "a", "b"]).astype("category"), {"a": [1, 2], "b": [0, 3]}),
        (pl.Series([3, None, 3, 1]), {1: [3], 3: [0, 2], None: [1]}),
        ([None] * 4, {None: [0, 1, 2, 3]}),
        (
            np.array(["2024-01-02", "2024-01-01", "NaT", "2024-01-02"], "M8[D]"),
            {datetime.date(2024, 1, 1): [1], datetime.date(2024, 1, 2): [0, 3], None: [2]},
        ),
        (np.array(["2024-01-01"] * 4, "M8[ns]"), {datetime.datetime(2024, 1, 1): [0, 1, 2, 3]}),
        (np.array([1, 1, 2, 2], "M8[ns]"), {np.datetime64(1, "ns"): [0, 1], np.datetime64(2, "ns"): [2, 3]}),
    ],
)
def test_groups(column: Any, expected: dict[Any, list[int]]) -> None:
    groups = Outputs(np.eye(4), metadata={"by": column}).groups("by")
    assert list(groups) == list(expected)
    assert {value: rows.tolist() for value, rows in groups.items()} == expected


@pytest.mark.parametrize("column", [[1, "a", 2, "b"], [{"a": 1}] * 4, [[1], [2, 3], [4], [5]]])
def test_groups_of_mixed_values_are_refused(column: list[Any]) -> None:
    values = np.fromiter(column, dtype=object, count=4)
    with pytest.raises(InputError, match="column 'by' must hold plain values of one type"):
        Outputs(np.eye(4), metadata={"by": values}).groups("by")


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(InputError, match="column 'city' is not in these outputs; metadata columns: time"):
        Outputs(LOGITS, metadata={"time": [1, 2, 3]}).groups("city")
