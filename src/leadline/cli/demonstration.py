"""``leadline demo`` and ``leadline monitor demo``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.comparison import comparison_document
from leadline.cli.estimation import DEFAULT_METHOD
from leadline.cli.monitor_views import record_words
from leadline.cli.options import ForceOption, FormatOption, QuietOption
from leadline.cli.terminal import progress, show, tell
from leadline.results.render import Document, Table, percent

if TYPE_CHECKING:
    from leadline.demo.year import Year

DEFAULT_FOLDER = "leadline-demo"
DEFAULT_MONITOR_FOLDER = "leadline-monitor-demo"
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
    from leadline.demo.methods import run

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
    from leadline.demo.methods import TRAFFIC

    quoted = shlex.quote(folder)
    return [
        f"leadline fit {quoted}/source.npz --method {DEFAULT_METHOD} -o {quoted}/mine.leadline",
        f"leadline estimate {quoted}/mine.leadline {quoted}/target_*.npz",
        f"leadline estimate {quoted}/mine.leadline {quoted}/{TRAFFIC} --by shift --min-accuracy 0.8",
        f"leadline compare {quoted}/source.npz {quoted}/target_*.npz",
    ]


def monitor_demo(
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR", help="The folder for the store, the page and the files."),
    ] = DEFAULT_MONITOR_FOLDER,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Watch a year of digits in fast motion: a harmless change, a sensor that fails, late labels, in under a minute.

    Nothing is downloaded. The store, the page and what they were made of stay in a folder, and commands to try on
    them are printed at the end.
    """
    from leadline.demo.year import PAGE, run

    with progress("demo", quiet=quiet) as advance:
        result = run(output, force=force, progress=advance)
    show(year_document(result, output), format)
    tell(f"The page is {output}/{PAGE}.", quiet=quiet)


def year_document(year: Year, folder: str) -> Document:
    """Return what the year showed."""
    from leadline.demo.year import SITES

    phases: list[dict[str, Any]] = [
        {
            "what": phase.what, "first": phase.first, "last": phase.last, "truth": phase.truth,
            "estimated": phase.estimated,
            **{f"{kind}_{site}": value for site in SITES
               for kind, value in zip(("truth", "estimated"), phase.by_site[site], strict=True)},
        }
        for phase in year.phases
    ]  # fmt: skip
    alarms = [
        {
            "rule": one.alarm.rule, "harmful": one.alarm.harmful, "raised": one.on, "weeks": one.weeks,
            "reason": one.alarm.reason,
        }
        for one in year.seen
    ]  # fmt: skip
    numbers = [name for name in phases[0] if name.startswith(("truth", "estimated"))]
    cells = [[row["first"], row["what"], *(percent(row[name]) for name in numbers)] for row in phases]
    parts = Table(
        ["since", "what came", *(name.replace("truth", "true").replace("_", " ") for name in numbers)],
        cells,
        left=(0, 1),
    )
    told = Table(
        ["alarm", "", "raised", "after", "reason"],
        [
            [one.alarm.rule, "harmful" if one.alarm.harmful else "information", one.on, f"{one.weeks} weeks",
             one.alarm.reason]
            for one in year.seen
        ],
        left=(0, 1, 2, 3, 4),
    )  # fmt: skip
    early = [one for one in year.seen if one.on <= year.phases[-1].first]
    notes = [
        f"A small network, {percent(year.reference)} accurate on its source, read 400 digits a week. The monitor got "
        "its outputs, and four labels in ten a week late; what is true by all labels stands beside for comparison.",
        f"{len(early) or 'No'} {'alarm' if len(early) == 1 else 'alarms'} came before the sensor began to fail, on "
        f"{year.phases[-1].first}: the other digits of spring do no harm.",
        record_words(year.record),
    ]
    record = vars(year.record)
    return Document(
        {"reference": year.reference, "phases": phases, "alarms": alarms, "record": record}, phases, [parts, told],
        notes, _year_commands(folder, year),
    )  # fmt: skip


def _year_commands(folder: str, year: Year) -> list[str]:
    """Return commands to try on the store, and those that make it again."""
    from leadline.demo.year import BATCHES, FAILING, LABELS, MODEL, PAGE, SERIES, STORE

    quoted = shlex.quote(folder)
    store = f"{quoted}/{STORE}"
    answer = f"leadline monitor alarms {store} {SERIES} --note 'new sensor ordered' --acknowledge"
    return [
        f"leadline monitor status {store}",
        f"leadline monitor history {store} {SERIES} --segment site={FAILING} --last 20",
        *(f"{answer} {one.alarm.number}" for one in year.seen if one.alarm.harmful),
        f"leadline monitor page {store} -o {quoted}/{PAGE} --force",
        f"leadline monitor register {quoted}/mine.db {SERIES} {quoted}/{MODEL} --every 1w --by site",
        f"leadline monitor add {quoted}/mine.db {SERIES} {quoted}/{BATCHES}",
        f"leadline monitor labels {quoted}/mine.db {SERIES} {quoted}/{LABELS}",
    ]
