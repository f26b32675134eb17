"""``leadline fit`` and ``leadline estimate``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli import completion
from leadline.cli.gates import (
    GateOnOption,
    MaxDropOption,
    MinAccuracyOption,
    MinSamplesOption,
    called,
    gate_of,
    group_texts,
    leave,
)
from leadline.cli.labels import labelled_estimates
from leadline.cli.options import (
    ClassesOption,
    FileFormatOption,
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
    ThresholdOption,
    columns_of,
    parse_method_options,
    require_file,
    require_new,
    require_result,
    split,
    without_folder,
)
from leadline.cli.targets import (
    EngineOption,
    MasterOption,
    Request,
    WhereOption,
    estimates_of,
    find_requests,
    one_target,
    remarks,
)
from leadline.cli.terminal import deliver, progress, show, tell, warn
from leadline.errors import InputError
from leadline.results.render import Cell, Document, Table, interval, percent, points
from leadline.results.shift import ShiftKind
from leadline.results.words import sentences

if TYPE_CHECKING:
    from leadline.estimators import Estimator
    from leadline.results.estimates import Estimates, LeftOut, Segment

DEFAULT_METHOD = "auto"
#: What a table says of the shift that was found; the words under a single estimate say more.
_SHIFTS = {
    ShiftKind.NONE: "none",
    ShiftKind.LABEL: "labels",
    ShiftKind.COLLAPSE: "collapse",
    ShiftKind.UNDECIDED: "unclear",
}


def fit(
    source: SourceArgument,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="How to estimate; `leadline methods` lists them.",
            autocompletion=completion.method,
        ),
    ] = DEFAULT_METHOD,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the method; may be given several times."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed of methods with something random; others ignore it."),
    ] = None,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    label: LabelOption = None,
    threshold: ThresholdOption = None,
    prediction: PredictionOption = None,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Fit an estimator on labelled outputs and write it to a file.

    Example: `leadline fit validation.npz -o model.leadline`
    """
    from leadline.data.files import read_outputs
    from leadline.data.names import brief
    from leadline.estimators import make

    options = parse_method_options(method, option or [])
    if seed is not None and "seed" in options:
        raise InputError("the seed must be given once: by --seed or by --option seed=...")
    if seed is not None and "seed" in make(method).get_params():
        options["seed"] = seed
    estimator = make(method, **options)
    columns = columns_of(logits, probabilities, score, positive, label, threshold, prediction)
    path = require_file(source)
    require_new(output, [path], "the model", force=force)
    with progress(f"fit {method}", quiet=quiet):
        outputs = read_outputs(path, classes=split(classes, "--classes"), columns=columns, memory_limit=memory_limit)
        if outputs.labels is None:
            name = "label" if columns is None or columns.label is None else columns.label
            others = f"{brief(outputs.metadata) or 'none'} beside the {'logits' if columns is None else columns.kind}"
            raise InputError(f"{source} must have labels to fit on; it has no column {name!r}, but {others}.")
        estimator.fit(outputs)
        estimator.save(output, force=force)
    if outputs.n_saturated:
        warn(
            f"{outputs.n_saturated:,} of {len(outputs):,} rows have a probability of exactly 0 or 1: thresholds and "
            "anchors (atc, cott, alsa) cannot tell them apart, and their confidence counts as all but certain.",
            quiet=quiet,
        )
    show(_fit_document(estimator, output, source), format)
    tell(f"Next: leadline estimate {output} TARGET...", quiet=quiet)


def estimate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `leadline fit` wrote.")],
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Files of outputs, or quoted patterns such as `'week_*.npz'`. A folder, a URL or a pattern such as "
            "`'logs/**/*.parquet'` is one table in many files.",
        ),
    ],
    *,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN,...",
            help="Estimate each segment too: one per value of these columns. `time:week` cuts times into weeks "
            "(or hour, day, month).",
        ),
    ] = None,
    where: WhereOption = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out bad files and rows of a table, and say so, instead of stopping."),
    ] = False,
    engine: EngineOption = None,
    master: MasterOption = None,
    labelled: Annotated[
        str | None,
        typer.Option(
            "--labelled", metavar="FILE", help="Rows of the target that people labelled, planned by `leadline plan`."
        ),
    ] = None,
    min_accuracy: MinAccuracyOption = None,
    max_drop: MaxDropOption = None,
    gate_on: GateOnOption = "estimate",
    min_samples: MinSamplesOption = 0,
    level: LevelOption = 0.9,
    together: Annotated[
        bool,
        typer.Option("--together", help="Widen the intervals of --by so that all of them together hold at --level."),
    ] = False,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    label: LabelOption = None,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    output: ResultOption = None,
    format: FileFormatOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Estimate the accuracy on unlabelled outputs of the same classifier.

    Where a target has labels, the true accuracy and the error are shown beside the estimate, which never uses
    them. With --labelled, the estimate rests on the few labels of a plan and holds whatever the shift.

    Examples: `leadline estimate model.leadline monday.npz tuesday.npz --min-accuracy 0.85`,
    `leadline estimate model.leadline 'logs/**/*.parquet' --by time:week,country`
    """
    from leadline.estimators import load

    gate = gate_of(min_accuracy, max_drop, gate_on, min_samples)
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a fraction between 0 and 1; got {level:g}.")
    keys = split(by, "--by") or []
    if together and not keys:
        raise InputError("--together is about the segments of --by; give --by with it.")
    request = Request(
        by=tuple(keys), where=where, skip_bad=skip_bad, confidence_level=level, together=together,
        classes=split(classes, "--classes"), columns=columns_of(logits, probabilities, score, positive, label),
        master=master, memory_limit=memory_limit,
    )  # fmt: skip
    wanted = find_requests(targets, engine, request)
    if labelled is not None:
        one_target(wanted, "--labelled")
        if skip_bad:
            raise InputError("--labelled is about the rows of a plan, all of them; leave out --skip-bad.")
    inputs = [model, *(target.place for target in wanted), *([] if labelled is None else [labelled])]
    files = [Path(place) for place in inputs if Path(place).exists()]
    require_result(output, format, files, force=force)
    estimator = load(model)
    found: dict[str, Estimates] = {}
    with progress("estimate", quiet=quiet) as advance:
        for done, target in enumerate(wanted):
            advance(done, len(wanted), f"estimate {target.name}")
            if labelled is None:
                found[target.name] = estimates_of(estimator, target, request, advance)
            else:
                found[target.name] = labelled_estimates(estimator, target, labelled, request, advance)
            for remark in remarks(found[target.name].left_out):
                warn(remark, quiet=quiet)
    lines = [Line(name, row) for name, item in found.items() for row in (item.overall, *item.rows)]
    failures = {line: gate.failures(line.segment, estimator.source_accuracy_) for line in lines}
    failed = {line: reasons for line, reasons in failures.items() if reasons}
    document = _estimate_document(found, lines, by=keys, level=level, failed=failed)
    deliver(document, format, output, force=force, quiet=quiet)
    spared = sum(gate.leaves_out(line.segment) for line in lines) if gate.is_set else 0
    leave({called(line.target, line.segment): reasons for line, reasons in failed.items()}, spared, len(lines),
          quiet=quiet)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Line:
    """What is printed of one segment of one target."""

    target: str
    segment: Segment

    def group_texts(self, by: Sequence[str]) -> list[str]:
        """Return the segment as texts, one for each column grouped by."""
        if not self.segment.group:
            return ["(all)", *[""] * (len(by) - 1)] if by else []
        return group_texts(self.segment, by)


def _fit_document(estimator: Estimator, output: str, source: str) -> Document:
    """Return what was fitted and where it is."""
    row = {
        "model": output,
        "method": estimator.method,
        "source": source,
        "source_accuracy": estimator.source_accuracy_,
        "n_samples": estimator.n_source_,
        "n_classes": estimator.n_classes_,
    }
    cells = [
        output, estimator.method, percent(estimator.source_accuracy_), f"{estimator.n_source_:,}",
        str(estimator.n_classes_),
    ]  # fmt: skip
    table = Table(["model", "method", "source accuracy", "samples", "classes"], [cells], left=(0, 1))
    return Document(data=row | {"options": estimator.get_params()}, records=[row], tables=[table])


def _estimate_document(
    found: Mapping[str, Estimates], lines: Sequence[Line], *, by: list[str], level: float, failed: Collection[Line]
) -> Document:
    """Return estimates as data and as a table; columns that would be empty stay out of the table."""
    from leadline.estimators import METHODS

    labelled = any(line.segment.truth is not None for line in lines)
    title, shown = without_folder(found)
    # Several columns to group by need the width that the name of a single target would take in every line.
    named = len(by) < 2 or len(shown) > 1
    title = title if named else lines[0].target
    header = [*(["target"] if named else []), *by, "estimated accuracy", f"{level:.0%} interval", "samples"]
    header += ["true", "error"] if labelled else []
    judged = not by and any(line.segment.estimate.shift is not None for line in lines)
    header += ["shift"] if judged else []
    table_rows: list[list[Cell | str]] = []
    for line in lines:
        estimate = line.segment.estimate
        cells: list[Cell | str] = [shown[line.target]] if named else []
        cells += line.group_texts(by)
        cells.append(Cell(percent(estimate.accuracy), bar=estimate.accuracy, style="red" if line in failed else ""))
        cells += [interval(estimate.interval), f"{estimate.n_samples:,}"]
        if labelled:
            cells += [percent(line.segment.truth), points(line.segment.error)]
        if judged:
            cells.append("" if estimate.shift is None else _SHIFTS[estimate.shift.kind])
        table_rows.append(cells)
    first = lines[0].segment.estimate
    notes = sentences(first)[:-1] if len(lines) == 1 else []
    covered = dict.fromkeys(line.segment.estimate.diagnostics["interval_covers"] for line in lines)
    notes += [f"The {level:.0%} interval covers {text}." for text in covered]
    own = {line.segment.estimate.confidence_level for line in lines if line.segment.group} - {level}
    notes += [f"The segments' intervals hold together at {level:.0%}, each alone at {max(own):.2%}."] if own else []
    assumption = METHODS[first.method].assumption.rstrip(".") if first.method in METHODS else ""
    notes += [f"{first.method} assumes: {assumption}."] if assumption else []
    data = [{"target": line.target, **line.segment.to_dict(), **found[line.target].origin()} for line in lines]
    for target, estimates in found.items():
        if estimates.left_out:
            left_out = _left_out(estimates.left_out)
            next(row for row in data if row["target"] == target)["diagnostics"]["left_out"] = left_out
            notes.append(f"{target}: left out {left_out['files']:,} bad files, {left_out['rows']:,} bad rows.")
    return Document(
        data=data,
        records=[_record(line, row, by) for line, row in zip(lines, data, strict=True)],
        notes=notes,
        tables=[Table(header, table_rows, title=title, left=range(named + len(by)))],
    )


def _record(line: Line, row: dict[str, Any], by: Sequence[str]) -> dict[str, Any]:
    """Return a row for CSV: a column for each one grouped by, and the kind of shift in a word."""
    flat = {key: value for key, value in row.items() if key not in ("group", "by_class", "diagnostics")}
    flat["shift"] = None if row["shift"] is None else row["shift"]["kind"]
    groups = dict(zip(by, line.group_texts(by), strict=True)) if line.segment.group else dict.fromkeys(by)
    return {"target": flat.pop("target")} | groups | flat


def _left_out(items: Sequence[LeftOut]) -> dict[str, int]:
    """Return how many files and rows were left out."""
    return {"files": sum(item.rows is None for item in items), "rows": sum(item.rows or 0 for item in items)}
