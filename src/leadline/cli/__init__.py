"""The command ``leadline``: parses, calls, renders; no arithmetic.

A command is a function with typed options, registered in :data:`COMMANDS` by one line; a group of commands is
a ``typer.Typer``. Only the command that is called is loaded. Wrong input ends with one line on standard error and
exit code 2, a defect of ours with 3.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from leadline.cli.completion import completing
from leadline.cli.terminal import flush_output, one_line_warnings, show_error, show_internal_error, write
from leadline.errors import InputError
from leadline.version import __version__

EXIT_WRONG_INPUT = 2
EXIT_INTERNAL = 3
EXIT_INTERRUPTED = 130

#: In the order of the help: where each command is, as ``module:name``.
COMMANDS = {
    "demo": "leadline.cli.demonstration:demo",
    "fit": "leadline.cli.estimation:fit",
    "estimate": "leadline.cli.estimation:estimate",
    "plan": "leadline.cli.labels:plan",
    "recalibrate": "leadline.cli.labels:recalibrate",
    "monitor": "leadline.cli.monitor:app",
    "compare": "leadline.cli.comparison:compare",
    "methods": "leadline.cli.comparison:methods",
    "bench": "leadline.cli.bench:app",
    "report": "leadline.cli.report:report",
    "figure": "leadline.cli.figure:figure",
}


def _print_version(context: typer.Context, verbose: bool) -> bool:
    """Print the version and end, where ``--version`` is given; it is eager, and so is read before ``--verbose``."""
    if context.resilient_parsing:
        return verbose
    if context.params["version"]:
        write(f"leadline {__version__}\n")
        if verbose:
            from leadline.cli.surroundings import describe

            write(describe())
        raise typer.Exit
    if verbose:
        raise InputError("--verbose goes with --version; give both, or leave it out.")
    return verbose


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            callback=_print_version,
            help="With --version: also Python, packages, extras and cores, for reports of defects.",
        ),
    ] = False,
) -> None:
    """How accurate is a classifier on data that nobody has labelled?

    First `fit` an estimator on labelled outputs of the classifier, then `estimate` its accuracy on unlabelled
    ones. `leadline demo` shows all of it on an example.
    """
    del version, verbose
    if context.invoked_subcommand is None:
        write(context.get_help() + "\n")


def build_app(names: Collection[str] | None = None) -> typer.Typer:
    """Return the command line application with some commands of :data:`COMMANDS`; None for all of them."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown")
    app.callback(invoke_without_command=True)(_root)
    for name in COMMANDS if names is None else names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def build_command(names: Collection[str] | None = None) -> Any:
    """Return the application, or the part of it with these commands, as a command in whose help flags take no value."""
    command = get_command(build_app(names))
    waiting: list[Any] = [command]
    while waiting:
        one = waiting.pop()
        waiting.extend(getattr(one, "commands", {}).values())
        for option in (*one.params, one.get_help_option(typer.Context(one))):
            if getattr(option, "is_flag", False):
                option.metavar = ""  # Typer shows the type of the Python argument
    return command


def _needed(given: Sequence[str]) -> Collection[str] | None:
    """Return the commands that a command line is about; None for all, which help and advice on mistypings name."""
    first = given[0] if given else ""
    if first == "--version":
        return ()
    return [first] if first in COMMANDS else None


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
        command = build_command(_needed(given))
        on_loaded()
        with one_line_warnings():
            code: Any = command.main(given, prog_name="leadline", standalone_mode=False)
        flush_output()
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
