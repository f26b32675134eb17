"""``leadline report``."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
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
    leave,
)
from leadline.cli.labels import labelled_estimates
from leadline.cli.options import (
    ClassesOption,
    Files,
    ForceOption,
    LabelOption,
    LevelOption,
    LogitsOption,
    MemoryOption,
    PositiveOption,
    PredictionOption,
    ProbabilitiesOption,
    QuietOption,
    ScoreOption,
    TargetsArgument,
    ThresholdOption,
    columns_of,
    find_targets,
    is_model,
    require_file,
    require_new,
    split,
    without_folder,
)
from leadline.cli.targets import Request, Target, columns_for
from leadline.cli.terminal import progress, tell, warn, write
from leadline.errors import InputError
from leadline.report import require_matplotlib

if TYPE_CHECKING:
    from leadline.data.columns import Columns
    from leadline.data.outputs import Outputs
    from leadline.estimators import Estimator

FORMATS = ("html", "md", "json")


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE|MODEL",
            help="Labelled outputs to fit on, or a .leadline file that `leadline fit` wrote.",
        ),
    ],
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
    with_source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="With a MODEL: the labelled outputs it was fitted on, where it keeps only some of them.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="The method that answers; that of a MODEL, or `auto`.",
            autocompletion=completion.method,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B,...",
            help="The methods side by side; all by default.",
            autocompletion=completion.methods,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN,...",
            help="Report each segment: one per value of these columns. `time:week` cuts times into weeks.",
        ),
    ] = None,
    min_accuracy: MinAccuracyOption = None,
    max_drop: MaxDropOption = None,
    gate_on: GateOnOption = "estimate",
    min_samples: MinSamplesOption = 0,
    labelled: Annotated[
        str | None,
        typer.Option(
            "--labelled",
            metavar="FILE",
            help="With a MODEL and one TARGET: rows that people labelled, planned by `leadline plan`.",
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
    memory_limit: MemoryOption = None,
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

    Examples: `leadline report validation.npz monday.npz -o report.html`,
    `leadline report model.leadline monday.npz --by country --min-accuracy 0.85 -o report.html`
    """  # fmt: skip
    require_matplotlib()
    from leadline.report.building import build_report
    from leadline.report.page import REPORT_FORMATS
    from leadline.report.pictures import report_pictures

    kind = _format(format, output)
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a fraction between 0 and 1; got {level:g}.")
    gate = gate_of(min_accuracy, max_drop, gate_on, min_samples)
    paths, given = find_targets(targets), [require_file(source)]
    if with_source is not None:
        if not is_model(given[0]):
            raise InputError("--source is that of a MODEL; give a .leadline file with it, or the source alone.")
        given.append(require_file(with_source))
    if labelled is not None:
        if len(paths) > 1 or not is_model(given[0]):
            raise InputError("--labelled needs the MODEL that the rows were planned with, and one TARGET.")
        require_file(labelled)
    if output is not None:
        require_new(output, [*given, *paths.values()], "the report", force=force)
    _, shown = without_folder(paths)
    named = {shown[name]: path for name, path in paths.items()}
    names = split(classes, "--classes")
    columns = columns_of(logits, probabilities, score, positive, label, threshold, prediction)
    options = {
        "source": with_source, "labelled": labelled, "method": method, "methods": methods, "by": by,
        "min-accuracy": min_accuracy, "max-drop": max_drop, "gate-on": gate_on if gate.is_set else None,
        "min-samples": min_samples or None,
        "seed": seed, "level": level, "logits": logits, "probabilities": probabilities, "score": score,
        "positive": positive, "label": label, "threshold": threshold, "prediction": prediction, "classes": classes,
        "memory-limit": memory_limit,
        "format": format, "output": output,
    }  # fmt: skip
    with progress("report", quiet=quiet) as advance:
        learned = _learn_from(given, names, columns, memory_limit)
        files = Files(named, learned.classes, learned.columns, memory_limit)
        after = {}
        if labelled is not None and learned.model is not None:
            request = Request(confidence_level=level, classes=names, columns=columns, memory_limit=memory_limit)
            for name, path in named.items():
                found = labelled_estimates(learned.model, Target(name, str(path)), labelled, request, advance)
                after[name] = found.overall.estimate
        content = build_report(
            learned.outputs,
            files,
            model=learned.model,
            method=method,
            methods=split(methods, "--methods"),
            by=split(by, "--by") or (),
            gate=gate,
            with_labels=after,
            seed=seed,
            confidence_level=level,
            source_name=given[-1].stem,
            settings={
                "command": _command([source, *map(str, paths.values())], options),
                "sha256": {path.name: _checksum(path) for path in [*given, *paths.values()]},
            },
            progress=advance,
        )
        text = REPORT_FORMATS[kind](content, report_pictures(content, learned.outputs, files))
    for remark in files.remarks:
        warn(remark, quiet=quiet)
    _deliver(text, output, force=force, quiet=quiet)
    failed = {called(part.name, one.segment): one.reasons for part in content.targets for one in part.failed}
    spared, judged = (sum(getattr(part, name) for part in content.targets) for name in ("n_spared", "n_judged"))
    leave(failed, spared, judged, quiet=quiet)


def _deliver(text: str, output: str | None, *, force: bool, quiet: bool) -> None:
    """Print the report, or write it to the file that is named."""
    from leadline.data.files import write_bytes

    if output is None:
        write(text)
    else:
        write_bytes(output, text.encode(), force=force)
        tell(f"{output} written, {len(text.encode()) / 1e6:.1f} MB.", quiet=quiet)


@dataclass(frozen=True)
class _Learned:
    """What a report is made from besides targets: labelled outputs, a model perhaps, and how targets are to be read."""

    outputs: Outputs
    model: Estimator | None
    classes: Sequence[str] | None
    columns: Columns | None


def _learn_from(
    given: Sequence[Path], classes: Sequence[str] | None, columns: Columns | None, memory_limit: str | None
) -> _Learned:
    """Read the source, or a model and perhaps its source."""
    from leadline.data.files import read_outputs
    from leadline.estimators import load
    from leadline.report.building import kept_source

    if not is_model(given[0]):
        source = read_outputs(given[0], classes=classes, columns=columns, memory_limit=memory_limit)
        return _Learned(source, None, classes, columns)
    model = load(given[0])
    classes, columns = classes or model.class_names, columns_for(model, columns)
    whole = [read_outputs(path, classes=classes, columns=columns, memory_limit=memory_limit) for path in given[1:]]
    return _Learned(whole[0] if whole else kept_source(model), model, classes, columns)


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


def _command(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the command that makes this report again."""
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return shlex.join(["leadline", "report", *words, *given])


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file, by which the same input is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
