"""``leadline compare`` and ``leadline methods``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from leadline.cli import completion
from leadline.cli.options import (
    ClassesOption,
    FileFormatOption,
    Files,
    ForceOption,
    FormatOption,
    LabelOption,
    LevelOption,
    LogitsOption,
    MemoryOption,
    PositiveOption,
    PredictionOption,
    ProbabilitiesOption,
    QuietOption,
    ResultOption,
    ScoreOption,
    SourceArgument,
    TargetsArgument,
    ThresholdOption,
    columns_of,
    find_targets,
    require_file,
    require_result,
    split,
    split_integers,
    without_folder,
)
from leadline.cli.terminal import deliver, progress, show, warn
from leadline.comparison import compare as compare_methods
from leadline.errors import InputError
from leadline.results.comparison import Comparison
from leadline.results.render import Cell, Document, Table, stated


def compare(
    source: SourceArgument,
    targets: TargetsArgument,
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B,...",
            help="The methods to compare; all by default.",
            autocompletion=completion.methods,
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="0,1,...", help="Seeds for methods with something random.")
    ] = "0",
    level: LevelOption = 0.9,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    label: LabelOption = None,
    threshold: ThresholdOption = None,
    prediction: PredictionOption = None,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    output: ResultOption = None,
    format: FileFormatOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Estimate by several methods on several targets, with the mean absolute error where targets have labels.

    Example: `leadline compare validation.npz 'target_*.npz' --methods alsa-g,ac,doc`
    """
    from leadline.data.files import read_outputs

    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a fraction between 0 and 1; got {level:g}.")
    names = split(classes, "--classes")
    columns = columns_of(logits, probabilities, score, positive, label, threshold, prediction)
    chosen, chosen_seeds = split(methods, "--methods"), split_integers(seeds, "--seeds")
    paths, source_path = find_targets(targets), require_file(source)
    require_result(output, format, [source_path, *paths.values()], force=force)
    with progress("compare", quiet=quiet) as advance:
        outputs = read_outputs(source_path, classes=names, columns=columns, memory_limit=memory_limit)
        files = Files(paths, names, outputs.columns, memory_limit)
        comparison = compare_methods(
            outputs,
            files,
            methods=chosen,
            seeds=chosen_seeds,
            confidence_level=level,
            progress=advance,
        )
    for remark in files.remarks:
        warn(remark, quiet=quiet)
    deliver(comparison_document(comparison), format, output, force=force, quiet=quiet)


def methods(*, format: FormatOption = "table", quiet: QuietOption = False) -> None:
    """List the methods: what each computes, when it is right, and who published it."""
    from leadline.estimators import METHODS

    del quiet  # it silences warnings of methods that cannot be used
    rows = [
        {
            "method": name,
            "summary": method.summary,
            "assumption": method.assumption,
            "reference": method.reference,
        }
        for name, method in METHODS.items()
    ]
    options = {name: method().get_params() for name, method in METHODS.items()}
    table = Table(
        ["method", "estimate", "is right when", "published by"],
        [[stated(text) for text in row.values()] for row in rows],
        left=range(4),
    )
    notes = ["The options of each method and their defaults: leadline methods --format json."]
    data = [row | {"options": options[row["method"]]} for row in rows]
    show(Document(data=data, records=rows, tables=[table], notes=notes), format)


def comparison_document(comparison: Comparison, *, notes: Sequence[str] = (), commands: Sequence[str] = ()) -> Document:
    """Return a comparison as data, as a table of targets against methods, and as a table of errors."""
    errors = comparison.mean_absolute_errors()
    tables = [_estimates_table(comparison)]
    if errors:
        tables.append(_errors_table(comparison, errors))
    if len({row.seed for row in comparison if row.seed is not None}) > 1:
        notes = ["Estimates are means over seeds; --format json has each.", *notes]
    return Document(
        data=comparison.to_dict(),
        records=[row.to_dict() for row in comparison],
        tables=tables,
        notes=notes,
        commands=commands,
    )


def _estimates_table(comparison: Comparison) -> Table:
    """Return estimates in percent, coloured by how far they are from the truth where it is known."""
    labelled = any(row.truth is not None for row in comparison)
    _, shown = without_folder(comparison.targets)
    rows: list[list[Cell | str]] = []
    for target in comparison.targets:
        truth = comparison.truth(target)
        cells: list[Cell | str] = [shown[target]]
        if labelled:
            cells.append("" if truth is None else Cell(_percent(truth), bar=truth))
        for method in comparison.methods:
            value = comparison.accuracy(method, target)
            cells.append(Cell(_percent(value), style="" if truth is None else _colour(abs(value - truth))))
        rows.append(cells)
    header = ["target", *(["true"] if labelled else []), *comparison.methods]
    return Table(header, rows, title="Estimated accuracy in percent")


def _errors_table(comparison: Comparison, errors: dict[str, float]) -> Table:
    """Return the mean absolute error of each method in percentage points, and the target it is worst on."""
    longest = max(errors.values()) or 1.0
    _, shown = without_folder(comparison.targets)
    rows: list[list[Cell | str]] = []
    for method, error in errors.items():
        worst = max(
            (row for row in comparison if row.method == method and row.error is not None),
            key=lambda row: abs(row.error or 0.0),
        )
        cell = Cell(_percent(error), bar=error / longest, style=_colour(error))
        rows.append([method, cell, shown[worst.target], f"{100 * (worst.error or 0.0):+.1f}"])
    header = ["method", "mean absolute error", "worst on", "error there"]
    return Table(header, rows, title="Error in percentage points", left=(0, 2))


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _colour(error: float) -> str:
    """Return green for an error that rarely matters, yellow, and red for one that misleads."""
    return "green" if error < 0.03 else "yellow" if error < 0.08 else "red"
