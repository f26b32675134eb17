"""Standard output for results, standard error for everything else.

What lays tables out and draws bars is loaded where there is something to show: ``--version`` and errors need none.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from leadline.errors import PluginWarning
from leadline.results.printing import printable, readable
from leadline.version import __version__

if TYPE_CHECKING:
    from leadline.results.render import Document


def show(document: Document, format: str) -> None:
    """Print a result to standard output in the format asked for."""
    from rich.console import Console

    from leadline.results.render import render

    write(render(document, format, Console(file=sys.stdout)))


def deliver(document: Document, format: str | None, output: str | None, *, force: bool, quiet: bool) -> None:
    """Print a result, or write it to a file if one is named."""
    if output is None:
        show(document, format or "table")
        return
    from leadline.data.files import write_bytes
    from leadline.results.export import file_format, to_bytes

    write_bytes(output, to_bytes(document, file_format(output, format)), force=force)
    tell(f"{output} written.", quiet=quiet)


def write(text: str) -> None:
    """Write to standard output.

    A reader that has seen enough and closed the pipe is no error, and must not change the exit code, which
    says whether the estimate is good enough.
    """
    with suppress(BrokenPipeError):
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            encoding = sys.stdout.encoding
            sys.stdout.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        flush_output()


def write_version() -> None:
    """Write the version to standard output."""
    write(f"leadline {__version__}\n")


def flush_output() -> None:
    """Hand over what was written to standard output; what cannot be is given up, and not tried again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        # The interpreter flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def show_error(message: str) -> None:
    """Print the one line that says what is wrong."""
    _to_stderr(f"leadline: error: {message}")


def show_internal_error(error: Exception) -> None:
    """Print where a defect of Leadline showed, and that it is one."""
    for line in "".join(traceback.format_exception(error)).splitlines():
        with suppress(OSError, ValueError):
            sys.stderr.write(printable(line) + "\n")
    show_error(f"this is a defect of Leadline {__version__}, not of your input; please report it with the lines above.")


def warn(message: str, *, quiet: bool) -> None:
    """Print a line that matters in logs too, unless ``--quiet``."""
    if not quiet:
        _to_stderr(f"leadline: {message}")


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print what the library warns of and logs like other messages, and the warnings of other packages as Python does.

    What changes the filters of warnings or the level of the log meanwhile is undone at the end.
    """
    log = logging.getLogger("leadline")
    level, shown = log.level, _Log()
    log.setLevel(logging.INFO)
    log.addHandler(shown)
    with warnings.catch_warnings():
        show_as_python = warnings.showwarning

        def show_warning(message: Warning | str, category: type[Warning], *args: Any, **more: Any) -> None:
            if issubclass(category, PluginWarning):
                warn(str(message), quiet=False)
            else:
                show_as_python(message, category, *args, **more)

        warnings.showwarning = show_warning
        try:
            yield
        finally:
            log.removeHandler(shown)
            log.setLevel(level)


class _Log(logging.Handler):
    """Messages of the library's log: warnings for everybody, others for somebody who is watching."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        (warn if record.levelno >= logging.WARNING else tell)(record.getMessage(), quiet=False)


def tell(message: str, *, quiet: bool) -> None:
    """Print a line for somebody who is watching: nothing with ``--quiet`` or away from a terminal."""
    if _watched(quiet):
        _to_stderr(message)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error and give the function that advances it: (done, total, what).

    Nothing is shown with ``--quiet`` or when standard error is not a terminal.
    """
    if not _watched(quiet):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(what), total=None)

        def advance(done: int, total: int, what: str) -> None:
            bars.update(task, completed=done, total=total, description=printable(what))

        yield advance


def _watched(quiet: bool) -> bool:
    """Say whether a person sees standard error and wants to."""
    return not quiet and sys.stderr.isatty()


def _to_stderr(line: str) -> None:
    """Print one line of readable length, whatever breaks and values the message has.

    Standard error may be closed or full: what is said there changes no result and no exit code.
    """
    with suppress(OSError, ValueError):
        sys.stderr.write(readable(printable(" ".join(line.split()))) + "\n")
