"""What a shell completes beyond commands, options and files: methods, suites, formats and figures."""

from __future__ import annotations

import os
from collections.abc import Iterable

#: Set by the scripts of completion while they ask the command for words.
_ASKING = "_LEADLINE_COMPLETE"


def completing() -> bool:
    """Say whether a shell asks what a command line may go on with."""
    return _ASKING in os.environ


def method(incomplete: str) -> list[str]:
    """Return the methods that begin like this."""
    from leadline.estimators import METHODS

    return _beginning(METHODS, incomplete)


def methods(incomplete: str) -> list[str]:
    """Return lists of methods separated by commas, complete up to one more that begins like the last part."""
    done, comma, last = incomplete.rpartition(",")
    given = done.split(",")
    return [done + comma + name for name in method(last) if name not in given]


def suite(incomplete: str) -> list[str]:
    """Return the suites of the benchmark that begin like this."""
    from leadline.bench.datasets import SUITES

    return _beginning(SUITES, incomplete)


def format(incomplete: str) -> list[str]:
    """Return the formats of results that begin like this."""
    from leadline.results.render import RENDERERS

    return _beginning(RENDERERS, incomplete)


def figure(incomplete: str) -> list[str]:
    """Return the figures that begin like this."""
    from leadline.cli.drawings import FIGURES

    return _beginning(FIGURES, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
