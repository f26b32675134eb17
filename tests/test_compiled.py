"""Compiled loops where nothing may be written: another user, a read-only package, no home."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import leadline
from command_line import Run
from containers import STRANGER, as_stranger, environment, read_only_package, runs_here
from leadline import compiled
from leadline.estimators.alsa.kernels.cpu import LOOPS

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs users")

#: A module with little to compile.
TOY = """
from numba import njit

@njit("f8(f8)", cache=True)
def twice(x):
    return x + x
"""
RUN_TOY = "from leadline.compiled import load_loops; print(load_loops('leadline.toy').twice(2.0))"
RUN_KERNEL = """
import numpy as np
from leadline.estimators.alsa.kernels import AnchorField, get_kernel
rng = np.random.default_rng(0)
field = AnchorField(*(rng.normal(size=s).astype("f4") for s in ((50, 4), 50, 50)), power=2)
print(get_kernel("numba").influence(rng.normal(size=(10, 4)), field).sum())
"""


@pytest.fixture
def installed() -> Iterator[Path]:
    """Return a folder with a package that others can read and nobody write, and a folder ``tmp`` of the stranger's."""
    if not runs_here():
        pytest.skip("setpriv (util-linux) is not installed, and root may write everywhere")
    compiled.load_loops(LOOPS)  # so that they are beside the package, as after an installation that was tried
    with read_only_package({"toy.py": TOY}) as root:
        yield root


def run_as_stranger(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    words = as_stranger([sys.executable, "-c", code])
    return subprocess.run(words, capture_output=True, text=True, cwd="/", env=environment(root), check=True)


def test_kernels_are_kept_where_only_the_user_can_write(installed: Path) -> None:
    place = installed / "tmp" / f"leadline-kernels-{STRANGER}"
    done = run_as_stranger(installed, RUN_TOY)
    assert done.stdout == "4.0\n"
    assert done.stderr == (
        f"compiled kernels are kept in {place}, as neither the package nor a home can be written; "
        "set NUMBA_CACHE_DIR to a directory of your own to keep them elsewhere.\n"
    )
    assert place.stat().st_mode & 0o777 == 0o700
    assert list(place.rglob("toy.twice-*.nbi"))


def test_what_was_compiled_beside_the_package_is_taken_along(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(RUN_KERNEL, {})
    expected = float(capsys.readouterr().out)
    done = run_as_stranger(installed, RUN_KERNEL)
    assert float(done.stdout) == pytest.approx(expected, rel=1e-6)
    assert len(done.stderr.splitlines()) == 1
    beside, taken = (
        {path.name: path.stat().st_size for path in folder.rglob("loops.*.nb[ic]")}
        for folder in (installed / "leadline" / "estimators" / "alsa" / "kernels", installed / "tmp")
    )
    assert beside == taken != {}


def test_kernels_run_where_nothing_can_be_kept(installed: Path) -> None:
    code = "import leadline.compiled as c; c._private_place = lambda: None\n" + RUN_TOY
    done = run_as_stranger(installed, code)
    assert done.stdout == "4.0\n"
    assert done.stderr == (
        "no directory can be written to keep compiled kernels in: every process compiles them, for about 5 s; "
        "set NUMBA_CACHE_DIR to a directory of your own.\n"
    )


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o702])
def test_a_directory_that_others_can_read_or_write_is_not_private(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(compiled, "_TEMPORARY", ())
    place = tmp_path / f"leadline-kernels-{os.getuid()}"
    assert compiled._private_place() == place
    place.chmod(mode)
    assert compiled._private_place() is None
    place.rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    place.symlink_to(elsewhere)
    assert compiled._private_place() is None


COMPILING = """
import logging, sys
sys.path.insert(0, {folder!r})
from leadline.compiled import load_loops
logging.basicConfig(level=logging.INFO, format="%(message)s")
load_loops("toy")
"""


def test_what_is_compiled_is_announced_once(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY + TOY.replace("twice", "double"))
    code = COMPILING.format(folder=str(tmp_path))
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said == ["compiling kernels once, about 5 s\n", ""]


def test_the_command_shows_the_log_unless_quiet(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = leadline.AverageConfidence.estimate_by

    def talkative(self: leadline.AverageConfidence, *args: object, **more: object) -> leadline.Estimates:
        logging.getLogger("leadline.compiled").warning("kept %s", "here")
        logging.getLogger("leadline.compiled").info("for somebody who is watching")
        return estimate(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(leadline.AverageConfidence, "estimate_by", talkative)
    assert run("estimate", "ac.leadline", "plain.npz").err == "leadline: kept here\n"
    assert run("estimate", "ac.leadline", "plain.npz", "--quiet").err == ""
    assert logging.getLogger("leadline").level == logging.NOTSET
    assert not logging.getLogger("leadline").handlers
