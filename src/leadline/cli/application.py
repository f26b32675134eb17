"""All commands in one application.

A command is a function with typed options, registered in :data:`COMMANDS` by one line; a group of commands is
a ``typer.Typer``. Only the command that is called is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from leadline.cli.terminal import write, write_version
from leadline.errors import InputError

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
        write_version()
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


def needed(given: Sequence[str]) -> Collection[str] | None:
    """Return the commands that a command line is about; None for all, which help and advice on mistypings name."""
    first = given[0] if given else ""
    if first == "--version":
        return ()
    return [first] if first in COMMANDS else None
