"""CSV that comes back as it was, whatever is in its cells."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from leadline.data.texts import csv_text


@given(st.lists(st.lists(st.text(st.sampled_from('ab,;"\r\n\t é')), min_size=2, max_size=2)))
def test_lines_come_back(lines: list[list[str]]) -> None:
    assert list(csv.reader(io.StringIO(csv_text(lines), newline=""))) == lines
