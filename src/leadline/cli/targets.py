"""What `leadline estimate` is asked about: files in memory, or tables that an engine goes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.options import find_targets
from leadline.engines import ENGINES
from leadline.errors import InputError

if TYPE_CHECKING:
    from leadline.data.columns import Columns
    from leadline.data.outputs import Outputs
    from leadline.engines.arrow import StreamProgress
    from leadline.estimators import Estimator
    from leadline.labels.target import LabelTarget
    from leadline.results.estimates import Estimates, LeftOut

_STREAM_FROM = 64 << 20  # bytes of a single file, above which it is streamed rather than read whole
_TOLD = 5  # bad files that are named

Advance = Callable[[int, int, str], None]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="CONDITION", help="Take only such rows: \"country = 'de' and time >= '2026-01-01'\"."
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="|".join(ENGINES),
        help="Treat each TARGET as one table, streamed through this machine (arrow) or on a cluster (spark).",
    ),
]  # fmt: skip
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="The cluster of --engine spark; default `local[*]`.")
]


@dataclass(frozen=True)
class Target:
    """Something to estimate on.

    Attributes
    ----------
    name
        What to call it.
    place
        A path, pattern or URL.
    engine
        "arrow" or "spark", or None to read it into memory.
    """

    name: str
    place: str
    engine: str | None = None


@dataclass(frozen=True)
class Request:
    """What to estimate: options of the command that all engines understand."""

    by: tuple[str, ...] = ()
    where: str | None = None
    skip_bad: bool = False
    confidence_level: float = 0.9
    together: bool = False
    classes: list[str] | None = None
    columns: Columns | None = None
    master: str | None = None
    memory_limit: str | None = None


def find_requests(words: Sequence[str], engine: str | None, request: Request) -> list[Target]:
    """Return the targets that are meant.

    A folder, a URL and a pattern with ``**`` for Parquet or Arrow files are one table each; so is every word if an
    engine is asked for. Other words are files, a target each.
    """
    from leadline.engines.lake import SUFFIXES, is_url

    if engine is not None and engine not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}; got {engine!r}.")
    if request.master is not None and engine != "spark":
        raise InputError("--master is that of a Spark cluster; give --engine spark with it.")
    if engine is not None:
        return [Target(word, word, engine) for word in dict.fromkeys(words)]

    def is_table(word: str) -> bool:
        deep = "**" in word and word.lower().endswith(SUFFIXES) and not Path(word).exists()
        return is_url(word) or Path(word).is_dir() or (deep and has_magic(word))

    tables = [word for word in dict.fromkeys(words) if is_table(word)]
    files = find_targets([word for word in words if word not in tables])
    targets = []
    for name, path in files.items():
        can_stream = path.suffix.lower() in SUFFIXES
        if request.where is not None and not can_stream:
            raise InputError(f"--where works on {', '.join(SUFFIXES)} files; got {path}.")
        must_stream = request.where is not None or request.skip_bad or path.stat().st_size > _STREAM_FROM
        targets.append(Target(name, str(path), "arrow" if can_stream and must_stream else None))
    return targets + [Target(word, word, "arrow") for word in tables]


def one_target(targets: Sequence[Target], what: str) -> Target:
    """Return the only target; refuse more than one."""
    if len(targets) > 1:
        raise InputError(f"{what} is about one TARGET; got {len(targets)}. A folder of Parquet files is one table.")
    return targets[0]


def estimates_of(estimator: Estimator, target: Target, request: Request, advance: Advance) -> Estimates:
    """Return the estimates for a target and its segments."""
    from leadline.engines.arrow import BadFileError

    if request.columns is not None:
        request = replace(request, columns=columns_for(estimator, request.columns))
    try:
        return _ENGINES[target.engine](estimator, target, request, advance)
    except BadFileError:
        raise  # names its file
    except InputError as error:
        raise InputError(f"target {target.name}: {error}") from error


def columns_for(estimator: Estimator, columns: Columns | None) -> Columns | None:
    """Return which columns of a target hold what: as given, or else as the model learned."""
    learned = estimator.columns_
    if columns is None or learned is None or columns.values is not None:
        return columns or learned
    # Another column of labels leaves the rest of what the model learned as it is.
    return replace(learned, label=columns.label)


def read_target(estimator: Estimator, place: str, request: Request) -> Outputs:
    """Read a file whole, as the options say or else as the model learned."""
    from leadline.data.files import read_outputs
    from leadline.engines.arrow import BadFileError

    try:
        names, mapping = request.classes or estimator.class_names, columns_for(estimator, request.columns)
        return read_outputs(
            place, classes=names, columns=mapping, late_labels=True, skip_bad=request.skip_bad,
            memory_limit=request.memory_limit,
        )  # fmt: skip
    except InputError as error:
        raise BadFileError(str(error)) from error


def label_target(
    estimator: Estimator, target: Target, request: Request, advance: Advance
) -> AbstractContextManager[LabelTarget]:
    """Give a target as plans and labels take it, wherever its rows are."""
    from leadline.engines.table import Table
    from leadline.labels.target import opened

    if target.engine is None:
        return opened(estimator, read_target(estimator, target.place, request))
    columns = columns_for(estimator, request.columns)
    table = Table(target.place, request.where, request.classes, columns, target.engine, request.master,
                  request.memory_limit)  # fmt: skip
    return opened(estimator, table, _reporter(target, advance))


def _reporter(target: Target, advance: Advance) -> StreamProgress:
    """Return what tells how far a table has been read."""

    def report(done: int, total: int, rows: int, rate: float) -> None:
        advance(done, total, f"{target.name}: {rows:,} rows, {rate:,.0f} rows/s")

    return report


def _in_memory(estimator: Estimator, target: Target, request: Request, advance: Advance) -> Estimates:
    """Read a file whole."""
    from leadline.results.estimates import LeftOut

    del advance
    outputs = read_target(estimator, target.place, request)
    found = estimator.estimate_by(
        outputs, request.by, confidence_level=request.confidence_level, together=request.together
    )
    if not outputs.n_left_out:
        return found
    n_read = len(outputs) + outputs.n_left_out
    reason = f"{target.place}: {outputs.n_left_out:,} of {n_read:,} rows."
    return replace(found, left_out=(LeftOut(target.place, outputs.n_left_out, reason),))


def _streamed(estimator: Estimator, target: Target, request: Request, advance: Advance) -> Estimates:
    """Stream a table through this machine."""
    from leadline.engines.arrow import estimate_files

    return estimate_files(
        estimator, target.place, by=request.by, where=request.where, confidence_level=request.confidence_level,
        together=request.together, skip_bad=request.skip_bad, classes=request.classes, columns=request.columns,
        memory_limit=request.memory_limit, progress=_reporter(target, advance),
    )  # fmt: skip


def _on_spark(estimator: Estimator, target: Target, request: Request, advance: Advance) -> Estimates:
    """Send the work to a cluster."""
    from leadline.engines.sparkfiles import estimate_place

    del advance
    if request.columns is not None:
        estimator = copy(estimator)
        estimator.columns_ = request.columns
    return estimate_place(
        estimator, target.place, master=request.master, by=request.by, where=request.where,
        confidence_level=request.confidence_level, together=request.together, skip_bad=request.skip_bad,
    )  # fmt: skip


_ENGINES: Mapping[str | None, Callable[[Estimator, Target, Request, Advance], Estimates]] = {
    None: _in_memory,
    "arrow": _streamed,
    "spark": _on_spark,
}


def remarks(left_out: Sequence[LeftOut]) -> list[str]:
    """Return lines on what was left out of a target."""
    told = [f"left out {item.reason}" for item in left_out[:_TOLD]]
    if len(left_out) > _TOLD:
        told.append(f"left out {len(left_out) - _TOLD} more such files.")
    return told
