"""``import leadline`` is light, and everything public is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import leadline

HEAVY = (
    "torch",
    "matplotlib",
    "pandas",
    "pyspark",
    "numba",
    "ot",
    "sklearn",
    "scipy",
    "pyarrow",
    "rich",
    "typer",
)


def loaded_after(statement: str) -> set[str]:
    """Return which heavy packages a fresh process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    assert loaded_after("import leadline") == set()


def test_the_check_can_fail() -> None:
    assert "scipy" in loaded_after("import leadline, scipy")


def test_command_starts_without_numerics() -> None:
    assert loaded_after("import leadline.cli") <= {"rich", "typer"}


@pytest.mark.parametrize("name", leadline.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(leadline, name) is not None
    assert name in dir(leadline)


def test_lazy_table_names_nothing_private() -> None:
    assert set(leadline._HOME) <= set(leadline.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'leadline' has no attribute 'accuracy'"):
        _ = leadline.accuracy


def test_compare_stays_the_function_after_its_module_is_imported() -> None:
    code = (
        "import leadline.comparison, leadline as ll\n"
        "from leadline.comparison import Comparison\n"
        "assert ll.Comparison is Comparison and ll.compare.__module__ == 'leadline.comparison'\n"
        "assert callable(ll.compare)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
