"""``leadline --version --verbose``: what a report of a defect needs, and nothing private."""

from __future__ import annotations

import getpass
import platform
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import leadline
from command_line import Result, Run


def lines(result: Result) -> dict[str, str]:
    """Return what is said of each thing."""
    assert (result.code, result.err) == (0, "")
    return dict(line.split(" ", maxsplit=1) for line in result.out.splitlines())


def test_versions_extras_and_cores(run: Run) -> None:
    said = lines(run("--version", "--verbose"))
    assert said["leadline"] == leadline.__version__
    assert said["python"].startswith(platform.python_version())
    assert said["numpy"] == np.__version__
    assert {"scipy", "numba", "pyarrow", "safetensors", "POT", "typer", "rich"} <= set(said)
    assert int(said["cores"]) >= 1
    assert "threads" in said["BLAS"]
    assert said["kernels"].startswith("numba")
    assert run("--verbose", "--version").out == run("--version", "--verbose").out


def test_nothing_private(run: Run) -> None:
    said = run("--version", "--verbose").out
    for private in (str(Path.home()), str(Path(leadline.__file__).parents[2]), platform.node(), "site-packages"):
        assert private not in said
    assert f"/{getpass.getuser()}" not in said


def test_an_extra_is_there_when_all_that_it_includes_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [
        "numpy>=1.26",
        'numpy>=1.26; extra == "small"',
        'leadline[small]; extra == "whole"',
        'no-such-package[more]>=1; extra == "absent"',
        'leadline[small,absent]; extra == "half"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: needs)
    said = lines(run("--version", "--verbose"))
    assert said["extras"] == "small, whole"
    assert "no-such-package" not in said


def test_source_that_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    said = lines(run("--version", "--verbose"))
    assert said["extras"] == "none"
    assert "numpy" not in said


def test_verbose_alone_says_what_it_goes_with(run: Run) -> None:
    assert run("--verbose", "methods").error == "--verbose goes with --version; give both, or leave it out."
