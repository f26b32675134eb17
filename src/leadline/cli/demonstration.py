"""``leadline demo``."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from leadline.cli.comparison import comparison_document
from leadline.cli.estimation import DEFAULT_METHOD
from leadline.cli.options import ForceOption, FormatOption, QuietOption
from leadline.cli.terminal import progress, show, tell

DEFAULT_FOLDER = "leadline-demo"
NO_FIGURE = 'No figure was drawn, as matplotlib is missing: pip install "leadline[report]".'


def demo(
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR", help="The folder for the files that the demo uses."),
    ] = DEFAULT_FOLDER,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Show every method on shifted digits: true against estimated accuracy, in under a minute.

    Nothing is downloaded. The outputs, the fitted models and the figure stay in a folder, and the commands
    that repeat each step by hand are printed at the end.
    """
    from leadline.demo import run

    with progress("demo", quiet=quiet) as advance:
        result = run(output, force=force, progress=advance)
    intro = (
        f"A small network that is {100 * result.source_accuracy:.1f} % accurate on held-out digits was given "
        "shifted ones; the labels of these were used for the column 'true' and for the errors only."
    )
    drawn = f"Figure: {result.figure}" if result.figure else NO_FIGURE
    show(comparison_document(result.comparison, notes=[intro, drawn], commands=_by_hand(output)), format)
    tell(f"The files are in {output}.", quiet=quiet)


def _by_hand(folder: str) -> list[str]:
    """Return the commands that repeat the demo step by step."""
    from leadline.demo import TRAFFIC

    quoted = shlex.quote(folder)
    return [
        f"leadline fit {quoted}/source.npz --method {DEFAULT_METHOD} -o {quoted}/mine.leadline",
        f"leadline estimate {quoted}/mine.leadline {quoted}/target_*.npz",
        f"leadline estimate {quoted}/mine.leadline {quoted}/{TRAFFIC} --by shift --min-accuracy 0.8",
        f"leadline compare {quoted}/source.npz {quoted}/target_*.npz",
    ]
