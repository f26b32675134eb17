"""The command against hostile files and names, and as a real process."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from command_line import Result, Run
from leadline.data.files import read_outputs, write_outputs
from leadline.data.outputs import Outputs
from leadline.results.render import RENDERERS


# ---------------------------------------------------------------------------------------------- hostile input
def test_hostile_files(folder: Path, run: Run) -> None:
    good = Path("plain.npz").read_bytes()
    evil = np.array([{"os": "system"}], dtype=object)
    np.savez("pickle.npz", logits=evil)
    np.savez("nan.npz", logits=np.full((3, 5), np.nan))
    np.savez("narrow.npz", logits=np.eye(4))
    np.savez("nameless.npz", numbers=np.eye(5))
    Path("empty.npz").write_bytes(b"")
    Path("cut.npz").write_bytes(good[: len(good) // 2])
    Path("text.npz").write_text("these are not the arrays\nyou are looking for\n")
    Path("text.parquet").write_bytes(b"PAR1\x00\x00\n\r\x1b[31mPAR1")
    Path("broken.csv").write_text('logit_0,logit_1\n1,"2\n')
    Path("outputs.exe").write_bytes(b"MZ")
    archives = ("pickle.npz", "nan.npz", "narrow.npz", "nameless.npz", "empty.npz", "cut.npz", "text.npz")
    for name in (*archives, "text.parquet", "broken.csv", "outputs.exe"):
        error = run("estimate", "ac.leadline", "plain.npz", name).error
        assert Path(name).stem in error, error
        assert "\x1b" not in error
        assert run("compare", "source.npz", name, "--methods", "ac").error


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("rows.csv", "method,target\nac,monday,0.5\n", "a line has more cells than there are names of columns"),
        ("rows.json", "[" * 100_000, "it is nested too deeply"),
        ("rows.json", '[{"method": "ac"}]', "each row must have"),
    ],
)
def test_hostile_rows_of_a_figure(name: str, content: str, reason: str, folder: Path, run: Run) -> None:
    Path(name).write_text(content)
    assert reason in run("figure", "alpha", name, "-o", "f.svg").error
    assert not Path("f.svg").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs devices")
@pytest.mark.parametrize(
    "words",
    [
        ("figure", "alpha", "endless.csv", "-o", "f.svg"),
        ("fit", "endless.csv", "-o", "m.leadline"),
        ("estimate", "ac.leadline", "endless.csv"),
        ("compare", "source.npz", "endless.csv"),
    ],
)
def test_devices_are_no_files(words: tuple[str, ...], folder: Path, run: Run) -> None:
    Path("endless.csv").symlink_to("/dev/zero")
    assert "endless.csv is no file but a device, a pipe or a socket" in run(*words).error


def test_names_of_classes_that_are_nested_too_deeply(folder: Path, run: Run) -> None:
    table = pq.read_table("traffic.parquet").replace_schema_metadata({"leadline.classes": "[" * 100_000})
    pq.write_table(table, "deep.parquet")
    for words in ((), ("--engine", "arrow")):
        assert "it is nested too deeply" in run("estimate", "ac.leadline", "deep.parquet", *words).error


def test_half_precision_without_a_warning(folder: Path, run: Run) -> None:
    logits = read_outputs("plain.npz").logits.astype(np.float16)
    logits[3, 1] = np.inf
    np.savez("half.npz", logits=logits)
    found = run("estimate", "ac.leadline", "half.npz", "--skip-bad", "--format", "json")
    assert found.data[0]["n_samples"] == 299


@pytest.mark.parametrize("content", [b"", b"not a model", b"\xff" * 64, b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_hostile_models(content: bytes, folder: Path, run: Run) -> None:
    Path("bad.leadline").write_bytes(content)
    assert "bad.leadline" in run("estimate", "bad.leadline", "plain.npz").error


def test_outputs_are_not_a_model(folder: Path, run: Run) -> None:
    assert "plain.npz" in run("estimate", "plain.npz", "labelled.npz").error


def test_control_characters_in_names_never_reach_the_terminal(folder: Path, run: Run) -> None:
    name = "a\x1b[31m|b\n.npz"
    Path("plain.npz").rename(name)
    for format in RENDERERS:
        result = run("estimate", "ac.leadline", name, "--format", format)
        assert result.code == 0
        assert "\x1b" not in result.out or format == "csv"
    assert run("estimate", "ac.leadline", name, "--format", "json").data[0]["target"] == name.removesuffix(".npz")
    assert "\x1b" not in run("estimate", "ac.leadline", name, "--by", "day").error


def test_a_name_that_is_not_unicode(folder: Path, run: Run) -> None:
    name = os.fsdecode(b"caf\xe9.npz")
    Path("plain.npz").rename(name)
    for format in RENDERERS:
        assert run("estimate", "ac.leadline", name, "--format", format).code == 0


def test_memory_and_system_errors_are_one_line(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: BaseException) -> Callable[..., None]:
        def read(*_: object, **__: object) -> None:
            raise error

        return read

    words = ("estimate", "ac.leadline", "plain.npz")
    monkeypatch.setattr("leadline.data.files.read_outputs", fail(MemoryError()))
    assert run(*words).error == "not enough memory for this input."
    monkeypatch.setattr("leadline.data.files.read_outputs", fail(PermissionError(13, "Permission denied", "plain.npz")))
    assert run(*words).error == "Permission denied: plain.npz"
    monkeypatch.setattr("leadline.data.files.read_outputs", fail(KeyboardInterrupt()))
    assert run(*words) == Result(130, "", "")
    monkeypatch.setattr("leadline.data.files.read_outputs", fail(ZeroDivisionError()))
    defect = run(*words)
    assert (defect.code, defect.out) == (3, "")  # neither like wrong input nor like an estimate that is not good enough
    assert "ZeroDivisionError" in defect.err
    assert "this is a defect of Leadline" in defect.err.splitlines()[-1]


# --------------------------------------------------------------------------------------------- real processes
def start(*words: str, output: int = subprocess.PIPE, **more: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "leadline", *words]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, **more)


def test_process_streams_and_exit_codes(folder: Path) -> None:
    good = start("estimate", "ac.leadline", "plain.npz", "--min-accuracy", "1.0", "--format", "json")
    out, err = good.communicate(timeout=60)
    assert good.returncode == 1
    assert json.loads(out)[0]["target"] == "plain"
    assert err.startswith(b"leadline: 1 of 1 estimates not good enough:\nleadline: plain: estimated accuracy 0.")
    bad = start("estimate", "ac.leadline", "no.npz")
    out, err = bad.communicate(timeout=60)
    assert (bad.returncode, out, err) == (2, b"", b"leadline: error: file no.npz does not exist.\n")


def test_closed_pipe_is_quiet_and_keeps_the_exit_code(folder: Path) -> None:
    for minimum, code in (("0", 0), ("1", 1)):
        process = start("estimate", "ac.leadline", "plain.npz", "--min-accuracy", minimum, "--quiet")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == code
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        ("estimate ac.leadline plain.npz --min-accuracy 1 >&-", 1, "estimated accuracy"),
        ("estimate ac.leadline plain.npz --min-accuracy 1 2>&-", 1, ""),
        ("estimate ac.leadline plain.npz --min-accuracy 1 2>/dev/full", 1, ""),
        ("estimate ac.leadline no.npz 2>/dev/full", 2, ""),
        ("estimate ac.leadline plain.npz >/dev/full", 2, "leadline: error: No space left on device\n"),
        ("estimate --help | head -1", 0, ""),
    ],
)
def test_streams_that_take_nothing(words: str, code: int, err: str, folder: Path) -> None:
    line = f"set -o pipefail; {sys.executable} -m leadline {words}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert err in done.stderr if err else done.stderr == ""
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


INTERRUPTED_AT = """
import os, signal, sys
class Interrupt:
    def find_spec(name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
from leadline.__main__ import run
sys.exit(run())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("name", ["numpy", "leadline.cli.estimation"])
def test_an_interrupt_while_the_command_is_loaded_is_quiet(name: str) -> None:
    program = [sys.executable, "-c", INTERRUPTED_AT.format(name=name), "estimate", "model.leadline", "target.npz"]
    done = subprocess.run(program, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_the_entry_point_loads_next_to_nothing_before_it_can_be_interrupted() -> None:
    program = (
        "import sys; before = set(sys.modules); import leadline.__main__; print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    own = {name for name in found.stdout.split() if name.startswith("leadline")}
    assert own == {"leadline", "leadline.__main__", "leadline.version"}
    assert not {"numpy", "typing"} & set(found.stdout.split())


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interrupts_that_a_shell_ignores_stay_ignored() -> None:
    program = [sys.executable, "-c", INTERRUPTED_AT.format(name="numpy")]
    line = f"trap '' INT; exec {shlex.join(program)} --version"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_escapes_in_headers_and_values_never_reach_a_terminal(folder: Path) -> None:
    import pty

    outputs = read_outputs("plain.npz")
    bad = "x\x1b[31m"
    write_outputs(Outputs(outputs.logits, metadata={bad: np.full(300, bad)}), "evil.parquet")
    for format in ("csv", "table"):
        ours, theirs = pty.openpty()
        process = start("estimate", "ac.leadline", "evil.parquet", "--by", bad, "--format", format, output=theirs)
        process.communicate(timeout=60)
        assert process.returncode == 0
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        assert "\\x1b[31m" in shown
        assert "\x1b[31m" not in shown


def test_output_that_cannot_hold_bars(folder: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = start("estimate", "ac.leadline", "plain.npz", env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert b"####" in out
    assert out.isascii()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_only_for_somebody_watching(quiet: bool, folder: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    words = [
        "compare",
        "source.npz",
        "plain.npz",
        "--methods",
        "ac",
        "--format",
        "json",
        *["--quiet"] * quiet,
    ]
    command = [sys.executable, "-m", "leadline", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux says "input/output error" at the end of a pseudo-terminal
        pass
    os.close(ours)
    assert len(json.loads(done.stdout)["rows"]) == 1
    assert (b"compare" in shown) == (not quiet)
    assert quiet == (shown == b"")


@pytest.mark.parametrize("columns", ["0", "1", "5", "-3", "many", "100000"])
def test_terminals_of_any_width(columns: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in (("estimate", "ac.leadline", "traffic.parquet", "--by", "channel"), ("methods",)):
        assert run(*words).code == 0
