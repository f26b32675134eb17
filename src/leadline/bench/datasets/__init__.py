"""The suites of the benchmark. A dataset is one module of this package, with its loader and its ``SUITES``."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from leadline.bench.datasets.suite import Suite
from leadline.errors import InputError

_MODULES = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
_FOUND: list[Suite] = [suite for module in _MODULES for suite in getattr(module, "SUITES", ())]
#: All suites by name: those of the paper first, ready-made logits last.
SUITES = {
    suite.name: suite for suite in sorted(_FOUND, key=lambda suite: (not suite.same_setting, suite.kind == "logits"))
}


def get_suite(name: str) -> Suite:
    """Look a suite up, or list the names there are."""
    if name not in SUITES:
        raise InputError(f"suite must be one of {', '.join(SUITES)}; got {name!r}.")
    return SUITES[name]
