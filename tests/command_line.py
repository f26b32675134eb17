"""What a call of the command leaves behind, for the tests of the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Result:
    """What a call of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON on standard output, and nothing else there."""
        return json.loads(self.out, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))

    @property
    def error(self) -> str:
        """The one line of a failed call."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("leadline: error: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("leadline: error: ").rstrip("\n")


Run = Callable[..., Result]
