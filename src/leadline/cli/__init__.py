"""The command ``leadline``: parses, calls, renders; no arithmetic.

A command is a function with typed options, registered in :data:`COMMANDS` by one line; a group of commands is
a ``typer.Typer``. Wrong input ends with one line on standard error and exit code 2, a defect of ours with 3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from leadline.cli.bench import app as bench
from leadline.cli.comparison import compare, methods
from leadline.cli.demonstration import demo
from leadline.cli.estimation import estimate, fit
from leadline.cli.figure import figure
from leadline.cli.labels import plan, recalibrate
from leadline.cli.monitor import app as monitor
from leadline.cli.report import report
from leadline.cli.terminal import flush_output, one_line_warnings, show_error, show_internal_error, write
from leadline.errors import InputError
from leadline.version import __version__

EXIT_WRONG_INPUT = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130

COMMANDS: dict[str, Callable[..., None] | typer.Typer] = {
    "demo": demo,
    "fit": fit,
    "estimate": estimate,
    "plan": plan,
    "recalibrate": recalibrate,
    "monitor": monitor,
    "compare": compare,
    "methods": methods,
    "bench": bench,
    "report": report,
    "figure": figure,
}


def _print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        write(f"leadline {__version__}\n")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """How accurate is a classifier on data that nobody has labelled?

    First `fit` an estimator on labelled outputs of the classifier, then `estimate` its accuracy on unlabelled
    ones. `leadline demo` shows all of it on an example.
    """
    del version
    if context.invoked_subcommand is None:
        write(context.get_help() + "\n")


def build_app() -> typer.Typer:
    """Return the command line application with every command of :data:`COMMANDS`."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    app.callback(invoke_without_command=True)(_root)
    for name, command in COMMANDS.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def build_command() -> Any:
    """Return the application as a command to run, in whose help flags take no value."""
    command = get_command(build_app())
    waiting: list[Any] = [command]
    while waiting:
        one = waiting.pop()
        waiting.extend(getattr(one, "commands", {}).values())
        for option in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(option, "is_flag", False):
                option.metavar = ""  # Typer shows the type of the Python argument
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments
        What follows ``leadline`` on the command line; None for that of this process.

    Returns
    -------
    int
        0 good, 1 an estimate that is not good enough or an open alarm, 2 wrong input, 3 a defect of Leadline,
        130 interrupted.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        command = build_command()
        with one_line_warnings():
            code: Any = command.main(given, prog_name="leadline", standalone_mode=False)
        flush_output()
    except (BrokenPipeError, SystemExit):  # Rich ends the process where it meets a closed pipe
        return 0  # it was help, which the reader has seen enough of
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
        show_error(error.format_message())
        return EXIT_WRONG_INPUT
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
