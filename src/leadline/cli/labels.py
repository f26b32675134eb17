"""``leadline plan``: which rows to label; and the labelled file for ``leadline estimate --labelled``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.options import (
    ClassesOption,
    ForceOption,
    FormatOption,
    LogitsOption,
    MemoryOption,
    PositiveOption,
    ProbabilitiesOption,
    QuietOption,
    ScoreOption,
    columns_of,
    require_new,
    split,
)
from leadline.cli.targets import (
    Advance,
    EngineOption,
    MasterOption,
    Request,
    Target,
    WhereOption,
    find_requests,
    label_target,
    one_target,
)
from leadline.cli.terminal import progress, show, tell
from leadline.errors import InputError
from leadline.results.render import Document, Table, percent

if TYPE_CHECKING:
    from leadline.estimators import Estimator
    from leadline.labels.plan import LabelPlan
    from leadline.results.estimates import Estimates


def plan(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `leadline fit` wrote.")],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A file of unlabelled outputs, or a table in many: a folder, a URL, or `'logs/**/*.parquet'`.",
        ),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file of rows to label: .csv or .parquet.")
    ],
    budget: Annotated[int, typer.Option("--budget", min=1, help="How many rows to label at most.")] = 200,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="The column that tells rows apart; their numbers by default."),
    ] = None,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="A,B,...", help="Columns to show to those who label.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random draw.")] = 0,
    simple: Annotated[
        bool, typer.Option("--simple", help="Draw a simple random sample: wider intervals, but exact ones.")
    ] = False,
    find_errors: Annotated[
        bool,
        typer.Option("--find-errors", help="Take the rows most likely wrong, to mend them; they measure nothing."),
    ] = False,
    where: WhereOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Choose rows to label, so that a few labels tell the accuracy under any shift.

    Fill in the column `label` from the top, stop whenever you like, and give the file to
    `leadline estimate MODEL TARGET --labelled FILE`.

    Example: `leadline plan model.leadline monday.parquet --budget 200 --id ticket --keep text -o to_label.csv`
    """
    from leadline.estimators import load
    from leadline.labels.plan import likely_errors, plan_labels
    from leadline.labels.sheets import write_errors, write_sheet

    if find_errors and simple:
        raise InputError("--simple is about samples; --find-errors draws none. Give one of them.")
    columns = columns_of(logits, probabilities, score, positive, None)
    request = Request(
        where=where, classes=split(classes, "--classes"), columns=columns, master=master, memory_limit=memory_limit
    )
    wanted = one_target(find_requests([target], engine, request), "plan")
    require_new(output, _files(model, wanted.place), "the plan", force=force)
    shown, estimator = split(keep, "--keep") or [], load(model)
    with progress("plan", quiet=quiet) as advance, label_target(estimator, wanted, request, advance) as rows_of:
        if find_errors:
            rows, correctness = likely_errors(estimator, rows_of, budget)
            write_errors(output, rows, correctness, rows_of, id=id, keep=shown, force=force)
            document = _errors_document(output, target, len(rows), float(correctness.mean()))
        else:
            drawn = plan_labels(estimator, rows_of, budget, seed, stratified=not simple)
            write_sheet(output, drawn, rows_of, id=id, keep=shown, force=force)
            document = _plan_document(output, target, drawn)
    show(document, format)
    if not find_errors:
        again = [model, target, *(["--where", where] if where else []), *(["--engine", engine] if engine else [])]
        tell(f"Next: leadline estimate {shlex.join(again)} --labelled {shlex.quote(output)}", quiet=quiet)


def recalibrate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `leadline fit` wrote.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The target that the rows were planned for.")],
    *,
    labelled: Annotated[
        str, typer.Option("--labelled", metavar="FILE", help="Rows that people labelled, planned by `leadline plan`.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    where: WhereOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Tell a model what the labels of a target showed, for the estimates of later ones that look like it.

    Example: `leadline recalibrate model.leadline monday.parquet --labelled to_label.csv -o model2.leadline`
    """
    from leadline.estimators import load
    from leadline.labels.next_target import recalibrate_with_labels
    from leadline.labels.sheets import read_sheet

    columns = columns_of(logits, probabilities, score, positive, None)
    request = Request(
        where=where, classes=split(classes, "--classes"), columns=columns, master=master, memory_limit=memory_limit
    )
    wanted = one_target(find_requests([target], engine, request), "recalibrate")
    require_new(output, _files(model, labelled, wanted.place), "the model", force=force)
    estimator = load(model)
    with progress("recalibrate", quiet=quiet) as advance, label_target(estimator, wanted, request, advance) as rows:
        told = recalibrate_with_labels(estimator, rows, *read_sheet(labelled, rows, memory_limit))
        told.save(output, force=force)
    batches = told.labelled_batches_
    row: dict[str, str | int] = {"model": output, "method": told.method, "labelled_targets": len(batches)}
    gap = float(batches[-1, 0])
    show(_document(row, f"On this target the labels are {100 * gap:+.1f} points from what {told.method} says."), format)


def labelled_estimates(
    estimator: Estimator, target: Target, labelled: str, request: Request, advance: Advance
) -> Estimates:
    """Return the estimates for a target and its segments from a plan that people have labelled."""
    from leadline.labels.evaluation import estimate_with_labels_by
    from leadline.labels.sheets import read_sheet

    with label_target(estimator, target, request, advance) as rows:
        drawn, labels = read_sheet(labelled, rows, request.memory_limit)
        return estimate_with_labels_by(
            estimator, rows, drawn, labels, request.by, request.confidence_level, together=request.together
        )


def _files(*places: str) -> list[Path]:
    """Return those of the places that are files, which must not be overwritten."""
    return [Path(place) for place in places if Path(place).is_file()]


def _plan_document(output: str, target: str, drawn: LabelPlan) -> Document:
    """Return which plan was written."""
    row: dict[str, str | int] = {"plan": output, "target": target, "rows": drawn.budget, "of": drawn.n_rows}
    note = "Fill in the column label from the top. Stop whenever you like, but not because of what the labels say."
    return _document(row | {"strata": len(drawn.sizes), "seed": drawn.seed}, note)


def _errors_document(output: str, target: str, count: int, correctness: float) -> Document:
    """Return which rows were written, and what they are not."""
    expected = f"About {percent(1 - correctness)} of these rows are expected to be wrong."
    note = f"{expected} They are no sample: no accuracy can be told from their labels."
    return _document({"errors": output, "target": target, "rows": count}, note)


def _document(row: dict[str, str | int], note: str) -> Document:
    """Return what was written, and what to do with it."""
    cells = [f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()]
    table = Table([name.replace("_", " ") for name in row], [cells], left=(0, 1))
    return Document(data=row, records=[row], tables=[table], notes=[note])
