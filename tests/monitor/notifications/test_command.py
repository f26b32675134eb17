"""A program of the user's own: what it gets, and what happens where it fails."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.table import KINDS
from leadline.monitor.notifications.messages import of_test

KEEP = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read()); print('said')"


@pytest.fixture
def message(now: datetime) -> dict[str, Any]:
    return of_test("fraud", now)


def send(message: dict[str, Any], *command: object, timeout: float = 10) -> str:
    settings = {"command": [str(word) for word in command], "timeout": timeout}
    return KINDS["command"].send(message, settings, Secrets({}))


def test_the_message_comes_on_standard_input(
    message: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "$(touch evil); *"
    send(message, sys.executable, "-S", "-c", KEEP, path)
    assert json.loads(path.read_text()) == message
    assert os.listdir(tmp_path) == [path.name]
    assert capfd.readouterr() == ("", "")


def test_what_it_says_on_standard_error_is_shown(message: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DeliveryError, match=r"^the program ended with 3$"):
        send(message, "/bin/sh", "-c", "echo no such team >&2; exit 3")
    assert capfd.readouterr() == ("", "no such team\n")


def test_one_that_reads_nothing(message: dict[str, Any]) -> None:
    assert send({**message, "note": "x" * 1_000_000}, "/bin/true") == ""


def test_one_that_is_not_there(message: dict[str, Any]) -> None:
    with pytest.raises(DeliveryError, match=r"^No such file or directory$"):
        send(message, "/nowhere/page-me")


def test_one_that_hangs_is_ended_with_what_it_started(message: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match=r"^the program took longer than 0\.2 seconds$"):
        send(message, "/bin/sh", "-c", f"sleep 30 & echo $! > {tmp_path}/pid; wait", timeout=0.2)
    started = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not Path(f"/proc/{started}").exists() or ") Z " in Path(f"/proc/{started}/stat").read_text():
            break
        time.sleep(0.01)
    else:
        pytest.fail("what the program started still runs")
