"""``leadline fit`` and ``leadline estimate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.options import (
    ClassesOption,
    ForceOption,
    FormatOption,
    LevelOption,
    QuietOption,
    SourceArgument,
    parse_method_options,
    require_file,
    split,
    without_folder,
)
from leadline.cli.targets import ENGINES, Request, find_requests, group_texts, rows_of
from leadline.cli.terminal import progress, show, tell, warn
from leadline.errors import InputError
from leadline.results.render import Cell, Document, Table, interval, percent, points, printable
from leadline.results.words import sentences

if TYPE_CHECKING:
    from leadline.estimators import Estimator

DEFAULT_METHOD = "auto"
EXIT_BELOW = 1
#: What a table says of the shift that was found; the words under a single estimate say more.
_SHIFTS = {"no detectable shift": "none", "label shift": "labels", "collapse": "collapse", "undecided": "unclear"}


def fit(
    source: SourceArgument,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="How to estimate; `leadline methods` lists them.")
    ] = DEFAULT_METHOD,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the method; may be given several times."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed of methods with something random; others ignore it."),
    ] = None,
    classes: ClassesOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Fit an estimator on labelled outputs and write it to a file.

    Example: `leadline fit validation.npz -o model.leadline`
    """
    from leadline.data.files import read_outputs
    from leadline.estimators import make

    options = parse_method_options(method, option or [])
    if seed is not None and "seed" in options:
        raise InputError("the seed must be given once: by --seed or by --option seed=...")
    if seed is not None and "seed" in make(method).get_params():
        options["seed"] = seed
    estimator = make(method, **options)
    path = require_file(source)
    _require_new(Path(output), path, force=force)
    with progress(f"fit {method}", quiet=quiet):
        outputs = read_outputs(path, classes=split(classes, "--classes"))
        if outputs.labels is None:
            raise InputError(f"{source} must have labels to fit on; got logits only.")
        estimator.fit(outputs.logits, outputs.labels)
        estimator.save(output, force=force)
    show(_fit_document(estimator, output, source), format)
    tell(f"Next: leadline estimate {output} TARGET...", quiet=quiet)


def estimate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that `leadline fit` wrote.")],
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            help="Files of outputs, or quoted patterns such as 'week_*.npz'. A folder, a URL or a pattern such as "
            "'logs/**/*.parquet' is one table in many files.",
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
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="CONDITION", help="Take only such rows: \"country = 'de' and time >= '2026-01-01'\"."
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out bad files and rows of a table, and say so, instead of stopping."),
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="|".join(ENGINES),
            help="Treat each TARGET as one table, streamed through this machine (arrow) or on a cluster (spark).",
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The cluster of --engine spark; default local[*].")
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option("--min-accuracy", metavar="FRACTION", help="Exit with 1 if any printed estimate is below."),
    ] = None,
    level: LevelOption = 0.9,
    together: Annotated[
        bool,
        typer.Option("--together", help="Widen the intervals of --by so that all of them together hold at --level."),
    ] = False,
    classes: ClassesOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Estimate the accuracy on unlabelled outputs of the same classifier.

    Where a target has labels, the true accuracy and the error are shown beside the estimate, which never uses
    them.

    Examples: `leadline estimate model.leadline monday.npz tuesday.npz --min-accuracy 0.85`,
    `leadline estimate model.leadline 'logs/**/*.parquet' --by time:week,country`
    """
    from leadline.estimators import load

    if min_accuracy is not None and not 0.0 <= min_accuracy <= 1.0:
        raise InputError(f"--min-accuracy must be a fraction from 0 to 1; got {min_accuracy:g}.")
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a fraction between 0 and 1; got {level:g}.")
    if engine is not None and engine not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}; got {engine!r}.")
    if master is not None and engine != "spark":
        raise InputError("--master is that of a Spark cluster; give --engine spark with it.")
    keys = split(by, "--by") or []
    if together and not keys:
        raise InputError("--together is about the segments of --by; give --by with it.")
    request = Request(
        by=tuple(keys), where=where, skip_bad=skip_bad, level=level, together=together,
        classes=split(classes, "--classes"), master=master,
    )  # fmt: skip
    found = find_requests(targets, engine, request)
    estimator = load(model)
    rows: list[dict[str, Any]] = []
    with progress("estimate", quiet=quiet) as advance:
        for done, target in enumerate(found):
            advance(done, len(found), f"estimate {target.name}")
            new, remarks = rows_of(estimator, target, request, advance)
            rows.extend(new)
            for remark in remarks:
                warn(remark, quiet=quiet)
    show(_estimate_document(rows, by=keys, level=level, min_accuracy=min_accuracy), format)
    below = [row for row in rows if min_accuracy is not None and row["accuracy"] < min_accuracy]
    if below:
        worst = min(below, key=lambda row: row["accuracy"])
        warn(
            f"{len(below)} of {len(rows)} estimates below --min-accuracy {min_accuracy:g}; "
            f"lowest {worst['accuracy']:.4f}, {_describe(worst, keys)}.",
            quiet=quiet,
        )
        raise typer.Exit(EXIT_BELOW)


def _require_new(output: Path, source: Path, *, force: bool) -> None:
    """Refuse to write over something, before the work rather than after it."""
    if output.exists() and not force:
        raise InputError(f"file {output} exists; use --force to overwrite it.")
    if output.exists() and output.samefile(source):
        raise InputError(f"the model must not replace its own source, {source}.")
    if not output.parent.is_dir():
        raise InputError(f"folder {output.parent} does not exist; make it first.")


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
    rows: list[dict[str, Any]], *, by: list[str], level: float, min_accuracy: float | None
) -> Document:
    """Return estimates as data and as a table; columns that would be empty stay out of the table."""
    from leadline.estimators import METHODS

    labelled = any(row["truth"] is not None for row in rows)
    title, shown = without_folder(row["target"] for row in rows)
    # Several columns to group by need the width that the name of a single target would take in every line.
    named = len(by) < 2 or len(shown) > 1
    title = title if named else rows[0]["target"]
    header = [*(["target"] if named else []), *by, "estimated accuracy", f"{level:.0%} interval", "samples"]
    header += ["true", "error"] if labelled else []
    judged = not by and any("trust" in row["diagnostics"] for row in rows)
    header += ["shift"] if judged else []
    table_rows: list[list[Cell | str]] = []
    for row in rows:
        bad = min_accuracy is not None and row["accuracy"] < min_accuracy
        cells: list[Cell | str] = [shown[row["target"]]] if named else []
        cells += group_texts(row["group"], by)
        cells.append(Cell(percent(row["accuracy"]), bar=row["accuracy"], style="red" if bad else ""))
        cells += [interval(row["interval"]), f"{row['n_samples']:,}"]
        if labelled:
            cells += [percent(row["truth"]), points(row["error"])]
        if judged:
            cells.append(_SHIFTS.get(row["diagnostics"].get("trust", {}).get("hypothesis"), ""))
        table_rows.append(cells)
    method = rows[0]["method"]
    notes = _explanation(rows[0], level) if len(rows) == 1 else []
    notes += [f"The {level:.0%} interval covers {text}." for text in _distinct(rows, "interval_covers")]
    own = {row["confidence_level"] for row in rows if row["group"] is not None} - {level}
    notes += [f"The segments' intervals hold together at {level:.0%}, each alone at {max(own):.2%}."] if own else []
    assumption = METHODS[method].assumption.rstrip(".")
    notes += [f"{method} assumes: {assumption}."] if assumption else []
    for row in rows:
        left_out = row["diagnostics"].get("left_out")
        if left_out:
            notes.append(f"{row['target']}: left out {left_out['files']:,} bad files, {left_out['rows']:,} bad rows.")
    flat = [{key: row[key] for key in row if key not in ("by_class", "diagnostics")} for row in rows]
    if len(by) > 1:
        flat = [row | {"group": ", ".join(group_texts(row["group"], by)) if row["group"] else None} for row in flat]
    return Document(
        data=rows,
        records=flat,
        notes=notes,
        tables=[Table(header, table_rows, title=title, left=range(named + len(by)))],
    )


def _explanation(row: dict[str, Any], level: float) -> list[str]:
    """Return in words what a single estimate says and rests on."""
    found = row["diagnostics"]
    told = sentences(row["accuracy"], row["interval"], level, row["n_samples"], row["method"], found)
    return [sentence for sentence in told if not sentence.startswith("The interval covers")]


def _distinct(rows: list[dict[str, Any]], key: str) -> list[str]:
    """Return the different values of a diagnostic, in their order."""
    return list(dict.fromkeys(row["diagnostics"][key] for row in rows if key in row["diagnostics"]))


def _describe(row: dict[str, Any], by: list[str]) -> str:
    """Return which estimate a row is."""
    values = group_texts(row["group"], by) if row["group"] is not None else []
    return printable(", ".join([row["target"], *(f"{key} {value}" for key, value in zip(by, values, strict=False))]))
