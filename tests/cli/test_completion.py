"""Completion: the script for each shell, and the words that it gets for a command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import leadline
from command_line import Run
from leadline.bench.datasets import SUITES
from leadline.cli.application import COMMANDS
from leadline.cli.drawings import FIGURES
from leadline.results.render import RENDERERS

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(run: Run, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Return what the script for bash is told: the words that the last one of a command line may become."""

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_LEADLINE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        result = run()
        assert (result.code, result.err) == (0, "")
        return result.out.split()

    return ask


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_for_a_shell(shell: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the shell's name is given instead
    result = run("--show-completion", shell)
    assert (result.code, result.err) == (0, "")
    assert f"_LEADLINE_COMPLETE=complete_{shell}" in result.out
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=result.out, text=True, check=True)


def test_bash_completes_by_the_script_it_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "leadline"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m leadline "$@"\n')
    program.chmod(0o755)
    ask = (
        'eval "$(leadline --show-completion)"\n'
        "COMP_WORDS=(leadline fit --method alsa-) COMP_CWORD=3\n"
        '_leadline_completion leadline; echo "${COMPREPLY[@]}"'
    )
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(leadline.__file__).parents[1]),
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    )
    assert (sorted(done.stdout.split()), done.stderr) == (["alsa-e", "alsa-g"], "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("leadline ", list(COMMANDS)),
        ("leadline fit --method ", list(leadline.METHODS)),
        ("leadline fit --method atc", ["atc-mc", "atc-ne"]),
        ("leadline compare a.npz b.npz --methods auto,alsa-g,al", ["auto,alsa-g,alsa-e"]),
        ("leadline report a.npz b.npz --methods co", ["cot", "cott"]),
        ("leadline bench prepare ", list(SUITES)),
        ("leadline bench table mnist mnist-r", ["mnist-raw"]),
        ("leadline estimate m.leadline a.npz --format ", list(RENDERERS)),
        ("leadline figure ", list(FIGURES)),
        ("leadline fit val", []),
    ],
)
def test_words_for_a_line(line: str, words: list[str], complete: Complete) -> None:
    assert sorted(complete(line)) == sorted(words)  # commands come in the order of the help


@pytest.mark.parametrize(("line", "code"), [("leadline fit --method al", 0), ("leadline fit val", 1)])
def test_fish_learns_whether_to_complete_files(line: str, code: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LEADLINE_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    assert run().code == code
