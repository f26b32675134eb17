"""The site: it builds without a broken link, and its reference lists all that is public."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import leadline

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", REFERENCE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["command.md", "store.md"])
def test_generated_page_is_up_to_date(generator: ModuleType, page: str) -> None:
    assert (REFERENCE / page).read_text() == generator.PAGES[page](), "run: python docs/reference/generate.py"


def test_reference_lists_every_public_name() -> None:
    listed = re.findall(r"^::: \S+\.(\w+)$", "".join(path.read_text() for path in REFERENCE.glob("*.md")), re.M)
    assert set(leadline.__all__) - {"__version__"} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"<(?:(?:script|img|iframe)[^>]* src|link[^>]* href)=\"?https?://[^\" >]+")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    assert {match[0] for page in pages for match in fetched.finditer(page.read_text())} == set()


def test_formulas_are_drawn_and_not_shown_as_source(site: Path) -> None:
    page = (site / "how" / "alsa.html").read_text()
    assert page.count("<math") >= 8
    assert "\\exp" not in page
