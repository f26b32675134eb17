"""The command ``leadline``: parses, calls, renders; no arithmetic.

Wrong input ends with one line on standard error and exit code 2, a defect of ours with 3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from leadline.cli.completion import completing
from leadline.cli.terminal import flush_output, one_line_warnings, show_error, show_internal_error, write_version
from leadline.errors import InputError

EXIT_WRONG_INPUT = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None, *, on_loaded: Callable[[], object] = lambda: None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments
        What follows ``leadline`` on the command line; None for that of this process.
    on_loaded
        Called when the command has been loaded, and before it does anything.

    Returns
    -------
    int
        0 good, 1 an estimate that is not good enough or an open alarm, 2 wrong input, 3 a defect of Leadline,
        130 interrupted.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(given, on_loaded)
    except (BrokenPipeError, SystemExit) as end:  # Rich ends the process where it meets a closed pipe
        # It was help, which the reader has seen enough of; or fish, which asks by exit code whether to complete files.
        return int(getattr(end, "code", 0) or 0) if completing() else 0
    except (InputError, OSError, MemoryError) as error:
        show_error(_describe(error))
        return EXIT_WRONG_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        # Typer's usage errors have no public base class that all its versions share, but all can say this.
        if not hasattr(error, "format_message"):
            show_internal_error(error)
            return EXIT_INTERNAL
        if message := error.format_message():  # a group without a command has shown its help instead
            show_error(message)
        return EXIT_WRONG_INPUT


def _run(given: Sequence[str], on_loaded: Callable[[], object]) -> int:
    """Do what a command line says and return the exit code."""
    if given == ["--version"]:  # what parses command lines takes many times as long to load as this to print
        write_version()
        return 0
    from leadline.cli.application import build_command, needed

    command = build_command(needed(given))
    on_loaded()
    with one_line_warnings():
        code: Any = command.main(given, prog_name="leadline", standalone_mode=False)
    flush_output()
    return code if isinstance(code, int) else 0


def _describe(error: Exception) -> str:
    """Return what went wrong, in one line for people."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    if isinstance(error, MemoryError):
        return f"not enough memory for this input{f' ({error})' if str(error) else ''}."
    # The library speaks of its own options: force=True is --force here, and memory_limit='8GB' is --memory-limit 8GB.
    options = re.compile(r"\b([a-z_]+)=(?:True\b|'(\d+GB)')|\bmemory_limit\b(?= must)")
    return options.sub(lambda found: _flag(found[1] or found[0], found[2]), str(error))


def _flag(name: str, value: str | None) -> str:
    """Return an option of the library as the command has it."""
    return "--" + name.replace("_", "-") + (f" {value}" if value else "")
