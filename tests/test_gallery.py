"""The gallery of the documentation: its pages are their scripts', and the scripts run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import leadline

ROOT = Path(__file__).parents[1]
GALLERY, HOW = ROOT / "docs/gallery", ROOT / "docs/how"


def load(path: Path) -> ModuleType:
    """Return a script of the documentation as a module."""
    name = f"docs_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


build = load(GALLERY / "build.py")
figures = load(HOW / "methods_figures.py")
FASTEST = ("digits_drift", "fraud_label_shift")
OTHERS = [name for name in build.SCRIPTS if name not in FASTEST]


def test_every_script_is_shown() -> None:
    tools = {"build", "pictures"}
    assert {path.stem for path in GALLERY.glob("*.py")} == {*build.SCRIPTS, *tools}
    assert {path.stem for path in GALLERY.glob("*.md")} == {*build.SCRIPTS, "index"}


@pytest.mark.parametrize("name", build.SCRIPTS)
def test_a_page_is_its_script(name: str) -> None:
    page = (GALLERY / f"{name}.md").read_text()
    assert build.without_outputs(page) == build.page(name, build.read_cells(name)), "run `make gallery`"
    assert "<!-- output -->" in page


def test_the_index_is_up_to_date() -> None:
    assert (GALLERY / "index.md").read_text() == build.index(), "run `make gallery`"


def test_a_changed_script_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "HERE", tmp_path)
    script = "# %% [markdown]\n# # Title\n#\n# **Why?**\n\n# %%\nx = 1\nprint(x)\n\n# %% [figure]\ny = 2\n"
    (tmp_path / "one.py").write_text(script)
    ran = build.page("one", build.run("one"))
    assert "```text\n1\n```" in ran
    assert build.without_outputs(ran) == build.page("one", build.read_cells("one"))
    (tmp_path / "one.py").write_text(script.replace("x = 1", "x = 2"))
    assert build.without_outputs(ran) != build.page("one", build.read_cells("one"))


def test_pictures_are_those_of_the_pages_and_small() -> None:
    text = "".join(path.read_text() for path in GALLERY.glob("*.md"))
    for path in (GALLERY / "images").iterdir():
        assert f"images/{path.name}" in text, path
        assert path.stat().st_size < 150_000, path
    assert text.count("](images/") == len(list((GALLERY / "images").iterdir()))


def check_runs(name: str) -> None:
    """Run a script; it must draw what its page shows and print what has as many lines."""
    page, again = (GALLERY / f"{name}.md").read_text(), build.page(name, build.run(name))
    assert again.count("![") == page.count("![")
    assert again.count("\n") == page.count("\n")


@pytest.mark.parametrize("name", FASTEST)
def test_the_fastest_scripts_run(name: str) -> None:
    check_runs(name)


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_the_other_scripts_run(name: str) -> None:
    check_runs(name)


def test_every_method_is_explained_and_drawn() -> None:
    text = (HOW / "methods.md").read_text()
    built_in = [name for name in leadline.METHODS if leadline.METHODS[name].cls.__module__.startswith("leadline.")]
    assert list(figures.SHOWN) == built_in
    for name in built_in:
        assert f"`{name}`" in text
        assert f"](../images/methods/{name}.png)" in text
        assert 0 < (figures.IMAGES / f"{name}.png").stat().st_size < 150_000


@pytest.mark.long
def test_methods_hold_and_fail_as_they_are_drawn() -> None:
    found = figures.courses()
    for method, (holds, fails) in figures.SHOWN.items():
        assert abs(found[holds].errors(method)).max() < 0.06, (method, holds)
        assert abs(found[fails].errors(method)[-1]) > 0.1, (method, fails)
