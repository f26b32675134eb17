"""A program of the user's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from types import MappingProxyType

from leadline.monitor.notifications.kinds.base import Kind, Message, Settings
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.settings import words


class Command(Kind):
    """The message as JSON on the standard input of ``command``, a list of a program and its arguments, without a shell.

    What it prints is not kept; what it says on standard error goes to that of this process.
    """

    name = "command"
    rules = MappingProxyType({"command": words})
    required = ("command",)

    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        text = json.dumps(message, allow_nan=False) + "\n"
        # A session of its own, so that what it has started ends with it.
        with subprocess.Popen(
            list(settings["command"]), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        ) as process:
            try:
                process.communicate(text.encode(), timeout=wait)
            except subprocess.TimeoutExpired:
                raise DeliveryError(f"the program took longer than {wait:g} seconds") from None
            finally:
                if process.returncode is None:
                    _end(process)
        if process.returncode != 0:
            raise DeliveryError(f"the program ended with {process.returncode}")
        return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started."""
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
