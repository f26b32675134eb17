"""Windows of time and of rows."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import InputError
from leadline.monitor.windows import Every, as_time, from_microseconds, microseconds, read_times

TIMES = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1))


@given(st.sampled_from(["1h", "1d", "1w", "1mo"]), TIMES)
def test_a_time_is_in_its_window(name: str, time: datetime) -> None:
    every = Every.parse(name)
    (number,) = every.numbers(np.array([time], dtype="datetime64[us]")).tolist()
    window = every.window(number)
    assert window.start <= time.replace(tzinfo=UTC) < window.end
    assert every.window(number + 1).start == window.end
    if name == "1w":
        assert window.start.weekday() == 0
    if name == "1mo":
        assert window.start.day == 1


@given(TIMES)
def test_times_come_back_from_the_store(time: datetime) -> None:
    assert from_microseconds(microseconds(time)) == time.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "name"),
    [("day", "1d"), ("1 h", "1h"), ("WEEK", "1w"), ("1mo", "1mo"), ("5000 rows", "5000 rows"), (7, "7 rows")],
)
def test_ways_to_say_it(text: str | int, name: str) -> None:
    assert Every.parse(text).name == name


@pytest.mark.parametrize("text", ["", "2d", "1y", "0 rows", "-5 rows", "rows", True, "1d; drop table"])
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(InputError, match="every must be"):
        Every.parse(text)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2026-03-01T23:30:00"], dtype="datetime64[ns]"),
        ["2026-03-01 23:30:00"],
        ["2026-03-02T00:30:00+01:00"],
        [datetime(2026, 3, 1, 23, 30)],
        pd.Series(pd.to_datetime(["2026-03-02T00:30:00+01:00"])),
    ],
)
def test_times_in_every_form_are_in_utc(values: object) -> None:
    (found,) = read_times(values, "ts").astype("datetime64[s]").astype(object)
    assert found == datetime(2026, 3, 1, 23, 30)


@pytest.mark.parametrize("values", [[1_700_000_000], [1.7e9], [True], ["yesterday"], [None]])
def test_what_is_no_time(values: list[object]) -> None:
    with pytest.raises(InputError, match="column 'ts' must hold"):
        read_times(values, "ts")


def test_one_time() -> None:
    assert as_time(np.datetime64("2026-03-01")) == datetime(2026, 3, 1, tzinfo=UTC)
    assert as_time(datetime(2026, 3, 1)) == datetime(2026, 3, 1, tzinfo=UTC)
