"""The table of suites. A dataset is one loader and one entry in a list of suites."""

from __future__ import annotations

from leadline.bench.datasets.others import OTHER_SUITES
from leadline.bench.datasets.paper import PAPER_SUITES
from leadline.bench.datasets.suite import Suite
from leadline.errors import InputError

SUITES: dict[str, Suite] = {suite.name: suite for suite in (*PAPER_SUITES, *OTHER_SUITES)}


def get_suite(name: str) -> Suite:
    """Look a suite up, or list the names there are."""
    if name not in SUITES:
        raise InputError(f"suite must be one of {', '.join(SUITES)}; got {name!r}.")
    return SUITES[name]
