"""``python -m leadline`` is the command ``leadline``, and this is where both begin."""

from __future__ import annotations

import os
import signal
import sys


def run() -> int:
    """Run the command for this process and return its exit code."""
    # Until the command is loaded, and when it is done, an interrupt ends the process at once, without a traceback.
    on_interrupt = signal.getsignal(signal.SIGINT)  # ignored, where a shell runs the command in the background
    _end_by(on_interrupt)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: what is printed is for nobody
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the end
    from leadline.cli import main

    try:
        return main(on_loaded=lambda: signal.signal(signal.SIGINT, on_interrupt))
    finally:
        _end_by(on_interrupt)


def _end_by(on_interrupt: object) -> None:
    """Let an interrupt end the process, unless interrupts are ignored."""
    if on_interrupt is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(run())
