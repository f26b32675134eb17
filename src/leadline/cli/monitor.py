"""``leadline monitor``: accuracy over time, late labels, alarms."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.demonstration import monitor_demo
from leadline.cli.monitor_views import (
    added_document,
    alarms_document,
    history_document,
    record_sentence,
    status_document,
)
from leadline.cli.notifications import StoreArgument, channels, notify, outbox, tell_problems
from leadline.cli.notifications import deliver as deliver_messages
from leadline.cli.options import (
    FileFormatOption,
    ForceOption,
    FormatOption,
    LevelOption,
    MemoryOption,
    QuietOption,
    ResultOption,
    require_new,
    split,
)
from leadline.cli.terminal import progress, show, tell, warn
from leadline.errors import InputError
from leadline.results.render import Document, Table

if TYPE_CHECKING:
    from leadline.monitor.monitor import Monitor
    from leadline.monitor.records import Watched

EXIT_OPEN_ALARM = 1

app = typer.Typer(help="Watch accuracy over time: batches, late labels, alarms.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the series is called.")]
TimeOption = Annotated[
    str | None, typer.Option("--time", metavar="COLUMN", help="The column of times; that of `register` by default.")
]
IdOption = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="The column of row ids; that of `register` by default.")
]
NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="What is to be remembered with the alarm.")]


app.command("demo")(monitor_demo)


def _open(store: str, *, create: bool = False) -> Monitor:
    from leadline.monitor.monitor import Monitor

    return Monitor(store, create=create)


@app.command()
def register(
    store: StoreArgument,
    name: NameArgument,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `leadline fit` wrote.")],
    *,
    every: Annotated[str, typer.Option("--every", help="A window: 1h, 1d, 1w, 1mo, or '5000 rows'.")] = "1d",
    by: Annotated[str | None, typer.Option("--by", metavar="A,B,...", help="Columns that make segments.")] = None,
    time: Annotated[str, typer.Option("--time", metavar="COLUMN", help="The column of times.")] = "ts",
    id: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The column of row ids, for late labels.")] = "id",
    floor: Annotated[float | None, typer.Option("--floor", help="Raise an alarm below this accuracy.")] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", help="How far below the reference is no fall yet.")] = 0.02,
    reference: Annotated[
        float | None, typer.Option("--reference", help="The accuracy to hold; that on the source by default.")
    ] = None,
    false_alarm_every: Annotated[
        float, typer.Option("--false-alarm-every", help="Windows, on average, to at most one false alarm.")
    ] = 1000,
    level: LevelOption = 0.9,
    quiet: QuietOption = False,
) -> None:
    """Begin to watch a model, in a store that is made if it is not there; again, to change its settings.

    Example: `leadline monitor register monitor.db fraud model.leadline --every 1d --by country --floor 0.8`
    """
    with _open(store, create=True) as monitor:
        monitor.register(
            name, model, every=every, by=split(by, "--by") or (), time=time, id=id, floor=floor, tolerance=tolerance,
            reference=reference, false_alarm_every=false_alarm_every, confidence_level=level,
        )  # fmt: skip
    tell(f"{name} is watched. Next: leadline monitor add {store} {name} FILES", quiet=quiet)


@app.command()
def add(
    store: StoreArgument,
    name: NameArgument,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Files, folders or patterns of outputs; a batch each."),
    ],
    *,
    time: TimeOption = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="One time for all rows, in UTC.")] = None,
    id: IdOption = None,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="NAME", help="Its name; the path of the file by default."),
    ] = None,
    memory_limit: MemoryOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Add files to a series. A file that was added before is not added again. Exits with 1 if an alarm is open.

    Example, every night: `leadline monitor add monitor.db fraud 'logs/*.parquet' --quiet`
    """
    if time is not None and at is not None:
        raise InputError("--time names a column, --at gives one time for all rows; give one of them.")
    if batch is not None:
        from leadline.monitor.intake import find_batches

        files = [path for word in files for path in find_batches(word)]
        if len(files) != 1:
            raise InputError(f"--batch names one file; got {len(files)}.")
    moment = None if at is None else _time(at, "--at")
    with _open(store) as monitor:
        try:
            with progress("add", quiet=quiet) as advance:
                if batch is None:
                    added = monitor.add_files(
                        name, *files, time=moment or time, id=id, memory_limit=memory_limit, progress=advance
                    )
                else:
                    added = [monitor.add(name, files[0], moment or time, id, batch, memory_limit=memory_limit)]
            watched = monitor.watched(name, segments=False)
        finally:  # a file that cannot be added must not keep alarms from being told
            tell_problems(monitor.deliver())
    show(added_document(added, watched), format)
    _leave([watched])


@app.command()
def labels(
    store: StoreArgument,
    name: NameArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A table of ids and labels, or a plan that people have labelled.")
    ],
    *,
    id: IdOption = None,
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column of labels.")] = "label",
    memory_limit: MemoryOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Add late labels, in any order and as often as they come. Exits with 1 if an alarm is open.

    Example: `leadline monitor labels monitor.db fraud chargebacks.csv --id transaction --label fraud`
    """
    from leadline.monitor.label_files import read_label_file

    with _open(store) as monitor:
        with progress("labels", quiet=quiet):
            given = read_label_file(file, id=id or monitor.get(name).id, label=label, memory_limit=memory_limit)
            found = monitor.add_labels(name, given.ids, monitor.classes(name, given.labels), cuts=given.cuts)
            watched = monitor.watched(name, segments=False)
        tell_problems(monitor.deliver())
    row = {"series": name, "joined": found.joined, "changed": found.changed, "waiting": found.waiting}
    notes = [record_sentence(watched)]
    if found.waiting:
        notes.append(f"{found.waiting:,} labels have no row yet; they wait for it.")
    show(Document(row, [row], [Table(list(row), [[str(value) for value in row.values()]])], notes), format)
    _leave([watched])


@app.command()
def history(
    store: StoreArgument,
    name: NameArgument,
    *,
    segment: Annotated[
        str | None,
        typer.Option("--segment", metavar="A=x,B=y", help="One segment, or `*` for each; else all rows."),
    ] = None,
    every: Annotated[str | None, typer.Option("--every", help="Merge to longer windows: 1d, 1w, 1mo.")] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Let intervals learn from the labels of earlier windows.")
    ] = False,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Show only so many latest windows.")] = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Show accuracy over time, beside what late labels say.

    Example: `leadline monitor history monitor.db fraud --segment country=de --every 1w`
    """
    del quiet  # it silences warnings of methods that cannot be used
    with _open(store) as monitor:
        found = monitor.history(name, _segment(segment, monitor, name), every=every, adaptive=adaptive)
    show(history_document(found, last), format)


@app.command()
def export(
    store: StoreArgument,
    name: NameArgument,
    *,
    output: ResultOption,
    every: Annotated[str | None, typer.Option("--every", help="Merge to longer windows: 1d, 1w, 1mo.")] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Let intervals learn from the labels of earlier windows.")
    ] = False,
    format: FileFormatOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Write all windows, of all rows and of every segment, to a .parquet, .csv or .json file.

    Example: `leadline monitor export monitor.db fraud -o fraud.parquet`
    """
    if output is None:
        raise InputError("--output must name a file, such as fraud.parquet.")
    with _open(store) as monitor:
        monitor.export(name, output, every=every, adaptive=adaptive, format=format, force=force)
    tell(f"{output} written.", quiet=quiet)


@app.command()
def alarms(
    store: StoreArgument,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The series; all of them by default.")] = None,
    *,
    acknowledge: Annotated[int | None, typer.Option("--acknowledge", metavar="N", help="Somebody knows of it.")] = None,
    close: Annotated[int | None, typer.Option("--close", metavar="N", help="It is dealt with.")] = None,
    note: NoteOption = "",
    closed: Annotated[bool, typer.Option("--closed", help="Show closed alarms too.")] = False,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """List alarms, acknowledge or close one. Exits with 1 if one is open.

    Example: `leadline monitor alarms monitor.db fraud --acknowledge 3 --note 'new camera, ticket 512'`
    """
    from leadline.monitor.records import AlarmState

    del quiet  # it silences warnings of methods that cannot be used
    with _open(store) as monitor:
        names = [series.name for series in monitor.series()] if name is None else [name]
        for number, answer in ((acknowledge, monitor.acknowledge), (close, monitor.close_alarm)):
            if number is not None:
                if name is None:
                    raise InputError("NAME must be given to answer an alarm.")
                answer(name, number, note)
        watched = [monitor.watched(one, segments=False) for one in names]
        tell_problems(monitor.deliver())
    found = [one for each in watched for one in each.alarms if closed or one.state is not AlarmState.CLOSED]
    show(alarms_document(found), format)
    _leave(watched)


@app.command()
def status(store: StoreArgument, *, format: FormatOption = "table", quiet: QuietOption = False) -> None:
    """Say which models are fine and which are not. Exits with 1 if an alarm is open."""
    del quiet  # it silences warnings of methods that cannot be used
    with _open(store) as monitor:
        watched = [monitor.watched(series.name, segments=False) for series in monitor.series()]
    show(status_document(watched), format)
    _leave(watched)


@app.command()
def page(
    store: StoreArgument,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The .html file to write.")],
    name: Annotated[list[str] | None, typer.Option("--name", help="Only this series; may be repeated.")] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Let intervals learn from the labels of earlier windows.")
    ] = False,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Write a page that shows everything: one self-contained HTML file.

    Example: `leadline monitor page monitor.db -o monitor.html --force`
    """
    require_new(output, [], "the page", force=force)
    with _open(store) as monitor:
        monitor.page(output, names=name, adaptive=adaptive, force=force)
    tell(f"{output} written.", quiet=quiet)


@app.command()
def prune(
    store: StoreArgument,
    name: NameArgument,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="90d", help="Days (d) or weeks (w) that stay.")
    ] = "90d",
    quiet: QuietOption = False,
) -> None:
    """Drop what old windows need to take more rows and labels. Estimates, realised accuracy and alarms stay."""
    with _open(store) as monitor:
        found = monitor.prune(name, datetime.now(UTC) - _duration(older_than))
        size = monitor.store.size()
    tell(
        f"Dropped {found.rows:,} rows and {found.labels:,} labels that waited, and the samples of {found.windows:,} "
        f"windows; the store has {size / 1e6:.1f} MB.",
        quiet=quiet,
    )


@app.command()
def verify(store: StoreArgument, *, quiet: QuietOption = False) -> None:
    """Check the store. Exits with 1 if something is wrong with it."""
    with _open(store) as monitor:
        found = monitor.verify()
        size = monitor.store.size()
    for fault in found:
        warn(fault, quiet=False)
    if found:
        raise typer.Exit(1)
    tell(f"{store} is sound ({size / 1e6:.1f} MB).", quiet=quiet)


for command in (notify, channels, outbox):
    app.command()(command)
app.command("deliver")(deliver_messages)


def _leave(watched: Sequence[Watched]) -> None:
    """End with the code that says whether an alarm is open."""
    from leadline.monitor.alarmbook import open_alarms

    if any(open_alarms(one.alarms) for one in watched):
        raise typer.Exit(EXIT_OPEN_ALARM)


def _segment(text: str | None, monitor: Monitor, name: str) -> dict[str, Any] | str | None:
    """Return the segment that is meant by a text."""
    from leadline.monitor.showing import EVERY_SEGMENT

    if text is None or text == EVERY_SEGMENT:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(sign for _, sign, _ in pairs):
        raise InputError(f"--segment must be column=value, joined by commas, or *; got {text!r}.")
    return monitor.find_segment(name, {column.strip(): value.strip() for column, _, value in pairs})


def _time(text: str, what: str) -> datetime:
    """Return a time in UTC."""
    from leadline.monitor.windows import as_time

    try:
        return as_time(datetime.fromisoformat(text))
    except ValueError as error:
        raise InputError(f"{what} must be a time such as 2026-11-18 or 2026-11-18T02:00; got {text!r}.") from error


def _duration(text: str) -> timedelta:
    """Return a number of days or weeks."""
    number, unit = text[:-1], text[-1:]
    if unit not in ("d", "w") or not number.isdecimal() or len(number) > 5:
        raise InputError(f"--older-than must be a number of days or weeks such as 90d or 12w; got {text!r}.")
    return timedelta(**{"d": {"days": int(number)}, "w": {"weeks": int(number)}}[unit])
