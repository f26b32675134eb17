"""``python -m leadline`` is the command ``leadline``, and this is where both begin."""

from __future__ import annotations

import os
import signal
import sys


def run() -> int:
    """Run the command for this process and return its exit code."""
    # Until the command is loaded, an interrupt ends the process at once, and without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: what is printed is for nobody
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the end
    from leadline.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())
