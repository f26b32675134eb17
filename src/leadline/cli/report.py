"""``leadline report``."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from leadline.cli.options import (
    ClassesOption,
    Files,
    ForceOption,
    LabelOption,
    LevelOption,
    LogitsOption,
    PositiveOption,
    PredictionOption,
    ProbabilitiesOption,
    QuietOption,
    ScoreOption,
    SourceArgument,
    TargetsArgument,
    ThresholdOption,
    columns_of,
    find_targets,
    require_file,
    require_new,
    split,
    without_folder,
)
from leadline.cli.terminal import progress, tell, write
from leadline.errors import InputError
from leadline.report import require_matplotlib

FORMATS = ("html", "md", "json")


def report(
    source: SourceArgument,
    targets: TargetsArgument,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; a page needs one, md and json go to standard output without.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", metavar="NAME", help="The method that answers; `auto` where there is one.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", metavar="A,B,...", help="The methods side by side; all by default.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN,...",
            help="Report each segment: one per value of these columns. `time:week` cuts times into weeks.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of methods with something random.")] = 0,
    level: LevelOption = 0.9,
    logits: LogitsOption = None,
    probabilities: ProbabilitiesOption = None,
    score: ScoreOption = None,
    positive: PositiveOption = None,
    label: LabelOption = None,
    threshold: ThresholdOption = None,
    prediction: PredictionOption = None,
    classes: ClassesOption = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="By default, that of the file's ending, or html."),
    ] = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Write one page to send to a colleague: the answer, how far to rely on it and why, all methods, and figures.

    The page needs no network and holds no single sample. Targets may have labels, which are compared with the
    estimates and never used for them.

    Example: `leadline report validation.npz monday.npz -o report.html`
    """  # fmt: skip
    require_matplotlib()
    from leadline.data.files import read_outputs, write_bytes
    from leadline.report.content import build_report
    from leadline.report.page import REPORT_FORMATS
    from leadline.report.pictures import report_pictures

    kind = _format(format, output)
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a fraction between 0 and 1; got {level:g}.")
    paths, source_path = find_targets(targets), require_file(source)
    if output is not None:
        require_new(output, [source_path, *paths.values()], "the report", force=force)
    _, shown = without_folder(paths)
    named = {shown[name]: path for name, path in paths.items()}
    names = split(classes, "--classes")
    columns = columns_of(logits, probabilities, score, positive, label, threshold, prediction)
    with progress("report", quiet=quiet) as advance:
        outputs = read_outputs(source_path, classes=names, columns=columns)
        files = Files(named, names, outputs.columns)
        content = build_report(
            outputs,
            files,
            method=method,
            methods=split(methods, "--methods"),
            by=split(by, "--by") or (),
            seed=seed,
            confidence_level=level,
            source_name=source_path.stem,
            settings={
                "command": _command(
                    source,
                    paths,
                    method=method,
                    methods=methods,
                    by=by,
                    seed=seed,
                    level=level,
                    logits=logits,
                    probabilities=probabilities,
                    score=score,
                    positive=positive,
                    label=label,
                    threshold=threshold,
                    prediction=prediction,
                    classes=classes,
                ),
                "sha256": {path.name: _checksum(path) for path in [source_path, *paths.values()]},
            },
            progress=advance,
        )
        text = REPORT_FORMATS[kind](content, report_pictures(content, outputs, files))
    if output is None:
        write(text)
        return
    write_bytes(output, text.encode(), force=force)
    tell(f"{output} written, {len(text.encode()) / 1e6:.1f} MB.", quiet=quiet)


def _format(format: str | None, output: str | None) -> str:
    """Return the format asked for, or that of the file's ending."""
    ending = Path(output).suffix.lower().removeprefix(".") if output else ""
    kind = format or {"htm": "html", "markdown": "md"}.get(ending, ending) or "html"
    if kind not in FORMATS:
        raise InputError(
            f"the report must be one of {', '.join(FORMATS)}; got {kind!r}. Use --format, or such an ending."
        )
    if kind == "html" and output is None:
        raise InputError("a page needs a file: use -o report.html, or --format md or json for standard output.")
    return kind


def _command(source: str, paths: Mapping[str, Path], **options: Any) -> str:
    """Return the command that makes this report again."""
    words = ["leadline", "report", source, *map(str, paths.values())]
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return shlex.join([*words, "-o", "report.html"])


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file, by which the same input is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
