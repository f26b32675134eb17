"""``import leadline`` and the command are light, as are estimates of small targets; everything public is there."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.data.outputs import Outputs

HEAVY = (
    "numpy",
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
    "sqlalchemy",
)


def loaded_after(statement: str) -> set[str]:
    """Return which heavy packages a fresh process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def loaded_by_command(*words: str) -> set[str]:
    """Return which heavy packages the command has loaded when it ends."""
    return loaded_after(f"import sys\nfrom leadline.__main__ import run\nsys.argv[1:] = {words!r}\nassert run() == 0")


def test_import_is_light() -> None:
    assert loaded_after("import leadline") == set()


def test_the_check_can_fail() -> None:
    assert "scipy" in loaded_after("import leadline, scipy")


def test_the_command_loads_what_it_is_asked_for() -> None:
    assert loaded_by_command("--version") == set()
    assert loaded_by_command("methods", "--format", "json") <= {"typer", "rich", "numpy"}


#: All but those of transport, which are solved in compiled loops however few rows there are.
LIGHT_METHODS = ("auto", "alsa-g", "alsa-e", "ac", "doc", "atc-mc", "atc-ne", "im", "cbpe")


def test_a_small_estimate_loads_neither_a_compiler_nor_what_others_need(
    tmp_path: Path, make_outputs: Callable[..., Outputs]
) -> None:
    source, target = make_outputs(), make_outputs(n=100, seed=1)
    for name in LIGHT_METHODS:
        leadline.make(name).fit(source).save(tmp_path / f"{name}.leadline")
    code = (
        "import leadline as ll, numpy as np\n"
        "target = np.random.default_rng(0).normal(size=(100, 5))\n"
        f"for name in {LIGHT_METHODS!r}:\n"
        f"    ll.load({str(tmp_path)!r} + f'/{{name}}.leadline').estimate(target)\n"
    )
    assert loaded_after(code) == {"numpy"}
    leadline.write_outputs(target, tmp_path / "target.npz")
    words = ("estimate", str(tmp_path / "auto.leadline"), str(tmp_path / "target.npz"))
    assert loaded_by_command(*words) == {"numpy", "typer", "rich"}


def test_a_large_source_makes_no_small_estimate_heavy(tmp_path: Path, make_outputs: Callable[..., Outputs]) -> None:
    """The sample of the source has more values than compiled loops are otherwise loaded for."""
    leadline.make("ac").fit(make_outputs(n=20_000, c=10)).save(tmp_path / "ac.leadline")
    code = (
        "import leadline as ll, numpy as np\n"
        f"ll.load({str(tmp_path / 'ac.leadline')!r}).estimate(np.random.default_rng(0).normal(size=(100, 10)))\n"
    )
    assert loaded_after(code) == {"numpy"}


@pytest.mark.parametrize("name", leadline.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(leadline, name) is not None
    assert name in dir(leadline)


def test_lazy_table_names_nothing_private() -> None:
    assert set(leadline._HOME) <= set(leadline.__all__)


#: What Reduced and Estimator carry between themselves and the engines; who writes or uses a method never makes one.
INTERNAL = {"Rows", "Sample"}


def classes_in(hint: Any) -> Iterator[type]:
    """Go through Leadline's own classes that a type hint mentions."""
    if isinstance(hint, type) and hint.__module__.startswith("leadline."):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


def given_by(thing: Any) -> Iterator[type]:
    """Go through the classes of what a public function returns, or a public class has and returns."""
    public = {name: getattr(leadline, name) for name in leadline.__all__}  # some are imported for type checkers only
    members = [thing]
    if isinstance(thing, type):
        members = [member for name, member in inspect.getmembers(thing) if not name.startswith("_")]
    if dataclasses.is_dataclass(thing):
        for hint in typing.get_type_hints(thing, localns=public).values():
            yield from classes_in(hint)
    for member in members:
        function = getattr(member, "fget", member)
        if inspect.isroutine(function):
            yield from classes_in(typing.get_type_hints(function, localns=public).get("return"))


def test_the_walk_over_types_finds_something() -> None:
    assert leadline.Comparison in given_by(leadline.compare)
    assert leadline.ClassEstimate in given_by(leadline.Estimate)
    assert leadline.Performance in given_by(leadline.Auto)


@pytest.mark.parametrize("name", leadline.__all__)
def test_what_public_things_return_is_public(name: str) -> None:
    for cls in given_by(getattr(leadline, name)):
        assert cls.__name__ in {*leadline.__all__, *INTERNAL}, f"{name} gives a {cls.__qualname__}, which is not public"


def test_every_method_has_a_public_class() -> None:
    own = {method.cls for method in leadline.METHODS.values() if method.cls.__module__.startswith("leadline.")}
    assert {cls.__name__ for cls in own} <= set(leadline.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'leadline' has no attribute 'accuracy'"):
        _ = leadline.accuracy


def test_compare_stays_the_function_after_its_module_is_imported() -> None:
    code = (
        "import leadline.comparison, leadline as ll\n"
        "from leadline.results.comparison import Comparison\n"
        "assert ll.Comparison is Comparison and ll.compare.__module__ == 'leadline.comparison'\n"
        "assert callable(ll.compare)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
