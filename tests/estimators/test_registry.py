"""The table of methods, and what becomes of entry points, good and bad."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from command_line import Run
from leadline.cli.options import parse_method_options
from leadline.estimators import registry

OWN = ["auto", "alsa-g", "alsa-e", "ac", "cbpe", "doc", "im", "atc-mc", "atc-ne", "cot", "cott"]
CODE = '''
import numpy as np
import leadline as ll

class Fixed(ll.Estimator):
    """Always the same number.

    Whatever the rows are.
    """

    method = "fixed"

    def __init__(self, value=0.5, *, places=None, kind: "Unknown" = "plain"):
        self.value, self.places, self.kind = value, places, kind

    def _fit(self, logits, labels):
        pass

    def reduce(self, logits, state):
        return ll.Reduced.from_values(logits, np.full(len(logits), self.value))

class Silent(Fixed):
    method = "silent"

class Needy(Fixed):
    method = "needy"

    def __init__(self, value):
        self.value = value

class Unfinished(ll.Estimator):
    method = "unfinished"

METHOD = ll.Method(Fixed, "a number", "it is that number", "us", {"value": 0.25})
WRONG = ll.Method(Fixed, options={"colour": 1})
NUMBER = 7
'''


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package with entry points as pip would, for this test only."""
    modules: list[str] = []

    def put(points: Mapping[str, str], *, package: str = "toy", code: str = CODE) -> None:
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(code)
        folder = tmp_path / f"{module}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[leadline.methods]", *lines, ""]))
        modules.append(module)

    monkeypatch.syspath_prepend(tmp_path)
    registry._plugins.cache_clear()
    yield put
    registry._plugins.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def source() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    return rng.normal(size=(60, 3)) + np.eye(3)[labels], labels


# ----------------------------------------------------------------------------------------------------------- the table
def test_the_table_is_a_mapping_that_nobody_can_change() -> None:
    assert list(ll.METHODS)[: len(OWN)] == OWN
    assert set(OWN) <= set(ll.METHODS)
    assert len(ll.METHODS) == len(list(ll.METHODS)) == len(dict(ll.METHODS))
    assert "ac" in ll.METHODS
    assert "magic" not in ll.METHODS
    assert ll.METHODS.get("magic") is None
    assert ll.METHODS["ac"].cls is ll.AverageConfidence
    assert "alsa-g, " in repr(ll.METHODS)
    table: Any = ll.METHODS
    with pytest.raises(TypeError):
        table["ac"] = table["doc"]
    with pytest.raises(AttributeError):
        table.extra = 1
    with pytest.raises(KeyError, match="magic"):
        table["magic"]


def test_every_own_method_is_described() -> None:
    for name in OWN:
        method = ll.METHODS[name]
        assert all((method.summary, method.assumption, method.reference)), name


def test_names_of_its_own_need_no_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise AssertionError("packages were looked through")

    monkeypatch.setattr(registry, "_plugins", refuse)
    assert ll.make("ac").method == "ac"
    assert "ac" in ll.METHODS
    with pytest.raises(AssertionError, match="looked through"):
        list(ll.METHODS)


# ------------------------------------------------------------------------------------------------------- good packages
def test_a_class_joins_with_the_first_line_of_its_docstring(install: Install) -> None:
    install({"fixed": "toy:Fixed", "silent": "toy:Silent"})
    assert list(ll.METHODS) == [*OWN, "fixed", "silent"]
    assert len(ll.METHODS) == len(OWN) + 2
    method = ll.METHODS["fixed"]
    assert (method.summary, method.assumption, method.reference) == ("Always the same number.", "", "")
    assert ll.METHODS["silent"].summary == ""  # that of a base class describes another method
    assert ll.make("fixed", value=0.75).get_params()["value"] == 0.75
    with pytest.raises(ll.InputError, match=r"method must be one of auto, .*, cott, fixed, silent; got 'magic'"):
        ll.make("magic")
    with pytest.raises(ll.InputError, match="Fixed has no option 'colour'; it has value, places, kind"):
        ll.make("fixed", colour=1)


def test_a_method_joins_as_it_is(install: Install) -> None:
    install({"fixed": "toy:METHOD"})
    method = ll.METHODS["fixed"]
    assert (method.summary, method.assumption, method.reference) == ("a number", "it is that number", "us")
    assert ll.make("fixed").get_params()["value"] == 0.25


def test_saved_models_need_the_package(install: Install, source: Any, tmp_path: Path) -> None:
    install({"fixed": "toy:METHOD"})
    ll.make("fixed", value=0.75).fit(*source).save(tmp_path / "model.leadline")
    loaded = ll.load(tmp_path / "model.leadline")
    assert type(loaded) is ll.METHODS["fixed"].cls
    assert loaded.estimate(source[0]).accuracy == 0.75
    assert loaded.estimate_blocks(lambda: np.array_split(source[0], 3)).accuracy == 0.75
    (tmp_path / "toy-1.5.dist-info" / "entry_points.txt").write_text("")
    registry._plugins.cache_clear()
    with pytest.raises(ll.InputError, match=r"got 'fixed'\. If another package adds it, install that"):
        ll.load(tmp_path / "model.leadline")


def test_options_without_types_are_read_as_their_defaults(install: Install) -> None:
    install({"fixed": "toy:Fixed"})
    # One of the hints is a name that exists for a type checker only, so that none can be looked up.
    assert parse_method_options("fixed", ["value=1", "kind=odd"]) == {"value": 1.0, "kind": "odd"}
    with pytest.raises(ll.InputError, match="option value must be a number; got 'x'"):
        parse_method_options("fixed", ["value=x"])
    with pytest.raises(ll.InputError, match="option places of method fixed has no stated type"):
        parse_method_options("fixed", ["places=3"])


# -------------------------------------------------------------------------------------------------------- bad packages
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("broken", "missing_module:Thing", "ModuleNotFoundError: No module named 'missing_module'"),
        ("broken", "toy:Nothing", "AttributeError: module 'toy' has no attribute 'Nothing'"),
        ("broken", "toy:NUMBER", "must name a subclass of leadline.Estimator or a leadline.Method; got int."),
        ("broken", "toy:np", "got numpy."),
        ("broken", "toy:WRONG", "TypeError: .*unexpected keyword argument 'colour'"),
        ("needy", "toy:Needy", "TypeError: .*missing 1 required positional argument: 'value'"),
        ("unfinished", "toy:Unfinished", "TypeError: Can't instantiate abstract class Unfinished"),
        ("other", "toy:Fixed", "must have this name as `method`, by which files know them; got 'fixed'"),
        ("ac", "toy:Fixed", "Leadline has a method of this name, which cannot be replaced"),
        ("gnn-evaluator", "toy:Fixed", "Leadline has a method of this name, which cannot be replaced"),
        ("a,b", "toy:Fixed", "a name must be of letters, digits"),
        ("../up", "toy:Fixed", "a name must be of letters, digits"),
    ],
)
def test_a_bad_entry_point_is_left_out_with_one_warning(name: str, value: str, reason: str, install: Install) -> None:
    install({name: value, "fixed": "toy:METHOD"})
    with pytest.warns(ll.PluginWarning, match=rf"^method '{name}' \({value}\) of toy 1\.5 is left out: .*{reason}"):
        assert list(ll.METHODS) == [*OWN, "fixed"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert len(ll.METHODS) == len(OWN) + 1
        assert ll.METHODS["ac"].cls is ll.AverageConfidence
        assert ll.make("fixed").method == "fixed"


@pytest.mark.parametrize("code", ["1 / 0", "import sys; sys.exit(3)", "raise ImportError('two\\nlines')", "def"])
def test_a_package_that_fails_to_import_breaks_no_other(code: str, install: Install) -> None:
    install({"bad": "bad_one:Thing"}, package="bad-one", code=code)
    install({"fixed": "toy:Fixed"})
    with pytest.warns(ll.PluginWarning, match=r"method 'bad' \(bad_one:Thing\) of bad-one 1\.5 is left out") as caught:
        assert list(ll.METHODS) == [*OWN, "fixed"]
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)


def test_of_two_methods_with_one_name_the_first_by_place_stays(install: Install) -> None:
    install({"fixed": "zebra:METHOD"}, package="zebra")
    install({"fixed": "antelope:Fixed"}, package="antelope")
    with pytest.warns(ll.PluginWarning, match=r"of zebra 1\.5 is left out: another package has a method of this name"):
        assert ll.METHODS["fixed"].cls.__module__ == "antelope"


# --------------------------------------------------------------------------------------------------------- the command
@pytest.mark.filterwarnings("default::leadline.errors.PluginWarning")
def test_the_command_warns_in_one_line(install: Install, run: Run) -> None:
    install({"bad": "missing_module:Thing", "fixed": "toy:Fixed"})
    result = run("methods", "--format", "json")
    assert [row["method"] for row in result.data] == [*OWN, "fixed"]
    assert result.err.startswith("leadline: method 'bad' (missing_module:Thing) of toy 1.5 is left out: ")
    assert result.err.count("\n") == 1
    registry._plugins.cache_clear()
    assert run("methods", "--format", "json", "--quiet").err == ""
    registry._plugins.cache_clear()
    assert run("methods").err.count("\n") == 1  # what --quiet silenced speaks again


def test_missing_descriptions_read_well(install: Install, run: Run, folder: Path) -> None:
    install({"silent": "toy:Silent"})
    row = run("methods", "--format", "json").data[-1]
    assert (row["method"], row["summary"], row["assumption"], row["reference"]) == ("silent", "", "", "")
    assert "| silent | not stated | not stated | not stated |" in run("methods", "--format", "md").out
    assert run("fit", "source.npz", "--method", "silent", "-o", "silent.leadline").code == 0
    assert "assumes" not in run("estimate", "silent.leadline", "plain.npz").out
    words = ("--method", "silent", "--methods", "silent,ac", "--format", "md")
    report = run("report", "source.npz", "plain.npz", *words).out
    lines = [line for line in report.splitlines() if line.startswith("| silent")]
    assert [line.count("not stated") for line in lines if "not stated" in line] == [1, 2]
    assert "confidence is calibrated on the target" in report
