"""``leadline bench``: the paper's datasets, models, experiments and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli import completion
from leadline.cli.options import FormatOption, QuietOption, split, split_integers
from leadline.cli.terminal import progress, show, tell
from leadline.errors import InputError
from leadline.results.render import Document, Table

if TYPE_CHECKING:
    from leadline.bench.datasets.suite import Suite
    from leadline.comparison import Progress

app = typer.Typer(
    help="Reproduce the paper: datasets, training, logits, experiments, tables and figures.",
    no_args_is_help=True,
)

DataOption = Annotated[
    Path, typer.Option("--data", envvar="LEADLINE_DATA", metavar="DIR", help="Folder with the datasets.")
]
OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for checkpoints, logits, rows and measured.json.")
]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A suite; see `leadline bench list`.", autocompletion=completion.suite),
]
SeedsOption = Annotated[str, typer.Option("--seeds", metavar="0,1,...", help="Seeds.")]
ModelsOption = Annotated[
    str | None, typer.Option("--models", metavar="A,B,...", help="Some of the suite's models; all by default.")
]
EpochsOption = Annotated[int | None, typer.Option("--max-epochs", help="Fewer epochs than the recipe.")]
DeviceOption = Annotated[str, typer.Option("--device", help="A torch device: cpu, cuda, mps.")]
Cifar101Option = Annotated[str, typer.Option("--cifar-10.1", metavar="v4|v6", help="Version of CIFAR-10.1.")]
ImagenetOption = Annotated[
    str,
    typer.Option(
        "--imagenet-source", metavar="all|half",
        help="ImageNet validation images used as source: all, or half with the rest as target `clean`.",
    ),
]  # fmt: skip
ImbalanceOption = Annotated[
    str,
    typer.Option(
        "--imbalance", metavar="all|first-ten",
        help="CIFAR-100: class sizes rise over all classes, or over classes 0 to 9 only.",
    ),
]  # fmt: skip
CorruptionsOption = Annotated[
    str,
    typer.Option(
        "--corruptions", metavar="auto|official|generated",
        help="Read CIFAR-10-C and CIFAR-100-C, or generate them from the clean test images.",
    ),
]  # fmt: skip
FrostOption = Annotated[
    Path | None, typer.Option("--frost", metavar="DIR", help="Photographs of frost for generated corruptions.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="At most N samples of each set, for a trial.")
]

_EXPERIMENT_HELP = (
    "main; ablation, init, alpha, anchors or rectify, also with -paper for the paper's choices; or gnn-evaluator."
)
_DATA, _OUT, _SEEDS = Path("data"), Path("results"), "0,1,2"


@app.command("list")
def list_(*, data: DataOption = _DATA, format: FormatOption = "table", quiet: QuietOption = False) -> None:
    """List the suites: shift, source, targets, models, size, licence, and whether the data is there."""
    from leadline.bench.result_tables import list_document

    del quiet
    show(list_document(data), format)


@app.command()
def prepare(
    name: NameArgument, *, data: DataOption = _DATA, format: FormatOption = "table", quiet: QuietOption = False
) -> None:
    """Download the data of a suite, or say exactly how to get it; continues where an attempt stopped.

    The exit code is 2 while something is missing that the suite cannot do without.
    """
    from leadline.bench.pipeline import fetch_data

    with _working("prepare", name, quiet=quiet) as (suite, advance):
        fetched = fetch_data(suite, data, advance)
    files = [{"file": str(path), "state": "not fetched" if problem else "there"} for path, problem in fetched]
    notes = [problem for _, problem in fetched if problem]
    missing, left_out = suite.missing(data), suite.left_out(data)
    by_hand = suite.instructions.replace("DATA", str(data)).splitlines() if missing else []
    if left_out:
        notes.append(f"Not there, and left out: {', '.join(left_out)}.")
    if not missing:
        notes.append(f"{name} is ready.")
    summary = {
        "suite": name, "ready": not missing, "missing": missing, "left_out": left_out,
        "instructions": suite.instructions, "files": files, "notes": notes,
    }  # fmt: skip
    _show_rows(files, f"Files of {name}", format, notes=notes, by_hand=by_hand, data=summary)
    if missing:
        raise InputError(f"{name} is not complete; {', '.join(missing)} must be in {data}.")


@app.command()
def train(
    name: NameArgument,
    *,
    data: DataOption = _DATA,
    out: OutOption = _OUT,
    seeds: SeedsOption = _SEEDS,
    models: ModelsOption = None,
    max_epochs: EpochsOption = None,
    device: DeviceOption = "cpu",
    imbalance: ImbalanceOption = "all",
    limit: LimitOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Train the models of a suite by the paper's recipe; continues from the last finished epoch."""
    from leadline.bench.inputs import Options
    from leadline.bench.pipeline import train_suite

    with _working("train", name, quiet=quiet) as (suite, advance):
        report = train_suite(
            suite, data, out, options=Options(imbalance=imbalance, limit=limit),
            seeds=split_integers(seeds, "--seeds"), models=split(models, "--models"), max_epochs=max_epochs,
            device=device, progress=advance,
        )  # fmt: skip
    _show_rows(report, f"Trained models of {name}", format)


@app.command()
def logits(
    name: NameArgument,
    *,
    data: DataOption = _DATA,
    out: OutOption = _OUT,
    seeds: SeedsOption = _SEEDS,
    models: ModelsOption = None,
    device: DeviceOption = "cpu",
    cifar101: Cifar101Option = "v6",
    imagenet_source: ImagenetOption = "all",
    imbalance: ImbalanceOption = "all",
    corruptions: CorruptionsOption = "auto",
    frost: FrostOption = None,
    limit: LimitOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Store the logits of every model on source and targets; files that are there are kept."""
    from leadline.bench.inputs import Options
    from leadline.bench.pipeline import extract_logits

    options = Options(
        cifar101=cifar101, imagenet_source=imagenet_source, imbalance=imbalance, corruptions=corruptions,
        frost_folder=frost, limit=limit,
    )  # fmt: skip
    with _working("logits", name, quiet=quiet) as (suite, advance):
        folders = extract_logits(
            suite, data, out, options=options, seeds=split_integers(seeds, "--seeds"),
            models=split(models, "--models"), device=device, progress=advance,
        )  # fmt: skip
    rows = [{"folder": str(folder), "files": len(list(folder.glob("*.npz")))} for folder in folders]
    _show_rows(rows, f"Logits of {name}", format)


@app.command()
def run(
    name: NameArgument,
    *,
    experiment: Annotated[str, typer.Option("--experiment", help=_EXPERIMENT_HELP)] = "main",
    data: DataOption = _DATA,
    out: OutOption = _OUT,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B,...",
            help="Some methods or variants; all by default.",
            autocompletion=completion.methods,
        ),
    ] = None,
    models: ModelsOption = None,
    targets: Annotated[
        str | None, typer.Option("--targets", metavar="A,B,...", help="Some targets; all by default.")
    ] = None,
    seeds: SeedsOption = _SEEDS,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Estimate by all methods on all targets with all seeds; store rows and update measured.json.

    What an earlier run finished is kept while the same version, code, options and logits would give it again. What no
    longer holds of methods and models that are not run is left out, and said to be.
    """
    from leadline.bench.experiments import run_experiment
    from leadline.bench.records import band_widths, record, summarise

    with _working("run", name, quiet=quiet) as (suite, advance):
        rows = run_experiment(
            suite, experiment, data, out, methods=split(methods, "--methods"),
            models=split(models, "--models"), targets=split(targets, "--targets"),
            seeds=split_integers(seeds, "--seeds"), progress=advance,
        )  # fmt: skip
    path = record(out, experiment, rows, bands=band_widths(suite, data, out))
    scores = summarise(rows)[name]["all"]
    records = [{"variant": variant} | score for variant, score in scores.items()]
    tell(f"recorded in {path}", quiet=quiet)
    _show_rows(records, f"{name}, experiment {experiment}", format)


@app.command()
def reproduce(
    name: NameArgument,
    *,
    data: DataOption = _DATA,
    out: OutOption = _OUT,
    seeds: SeedsOption = _SEEDS,
    max_epochs: EpochsOption = None,
    device: DeviceOption = "cpu",
    limit: LimitOption = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Do it all: fetch the data, train, store logits, run every method, and show the paper's table beside ours.

    Continues where an earlier attempt stopped. The single steps have more options.
    """
    from leadline.bench.experiments import run_experiment
    from leadline.bench.inputs import Options
    from leadline.bench.pipeline import extract_logits, fetch_data, require_data, train_suite
    from leadline.bench.records import band_widths, record

    options, chosen = Options(limit=limit), split_integers(seeds, "--seeds")
    with _working("reproduce", name, quiet=quiet) as (suite, advance):
        fetch_data(suite, data, advance)
        require_data(suite, data)
        if suite.kind == "trained":
            train_suite(
                suite, data, out, options=options, seeds=chosen, max_epochs=max_epochs, device=device, progress=advance
            )
        if suite.kind != "logits":
            extract_logits(suite, data, out, options=options, seeds=chosen, device=device, progress=advance)
        rows = run_experiment(suite, "main", data, out, seeds=chosen, progress=advance)
        record(out, "main", rows, bands=band_widths(suite, data, out))
    table([name], out=out, format=format)


@app.command()
def times(
    *,
    out: OutOption = _OUT,
    datasets: Annotated[
        str | None, typer.Option("--datasets", metavar="A,B,...", help="Some datasets of the paper's table.")
    ] = None,
    max_epochs: Annotated[
        int | None, typer.Option("--max-epochs", help="Time so many epochs only, for the large sizes.")
    ] = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Time ALSA's training on synthetic logits of the paper's sizes, and record it."""
    from leadline.bench.experiments import TRAINING_SIZES, time_training
    from leadline.bench.records import record
    from leadline.bench.result_tables import time_table

    wanted = split(datasets, "--datasets")
    known = [size.dataset for size in TRAINING_SIZES]
    if unknown := [dataset for dataset in wanted or () if dataset not in known]:
        raise InputError(f"--datasets must be among {', '.join(known)}; got {', '.join(unknown)}.")
    sizes = [size for size in TRAINING_SIZES if wanted is None or size.dataset in wanted]
    measured = []
    with progress("training times", quiet=quiet) as advance:
        for number, size in enumerate(sizes):
            measured.append(time_training(size, max_epochs=max_epochs))
            record(out, times=measured[-1:])
            advance(number + 1, len(sizes), size.dataset)
    rows = [vars(time) for time in measured]
    show(Document(rows, rows, [time_table(rows)]), format)


@app.command()
def table(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Suites; all by default.", autocompletion=completion.suite),
    ] = None,
    *,
    out: OutOption = _OUT,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="Folder with a reported.json other than the paper's."),
    ] = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Show what was measured beside what the paper reports, and which of its claims hold."""
    from leadline.bench.records import load_measured, load_reported
    from leadline.bench.result_tables import result_document

    del quiet
    show(result_document(load_measured(out), load_reported(results), names or None), format)


@app.command()
def figures(
    *,
    out: OutOption = _OUT,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to draw; OUT/figures by default.")
    ] = None,
    kind: Annotated[str, typer.Option("--kind", metavar="svg|png|pdf", help="Kind of file.")] = "svg",
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """Draw the figures of everything that was run."""
    from leadline.bench.figures import draw_figures

    del quiet
    paths = draw_figures(out, folder or out / "figures", kind=kind)
    _show_rows([{"figure": str(path)} for path in paths], "Figures", format)


@contextmanager
def _working(doing: str, name: str, *, quiet: bool) -> Iterator[tuple[Suite, Progress]]:
    """Look a suite up, and show how far the work on it has come."""
    from leadline.bench.datasets import get_suite

    suite = get_suite(name)
    with progress(f"{doing} {name}", quiet=quiet) as advance:
        yield suite, advance


def _show_rows(
    rows: Sequence[Mapping[str, Any]],
    title: str,
    format: str,
    *,
    notes: Sequence[str] = (),
    by_hand: Sequence[str] = (),
    data: Any = None,
) -> None:
    """Print rows that share their columns."""
    header = list(rows[0]) if rows else []
    cells = [[_text(row[name]) for name in header] for row in rows]
    left = [place for place, name in enumerate(header) if rows and isinstance(rows[0][name], str)]
    tables = [Table(header, cells, title, left)] if rows else []
    show(Document(list(rows) if data is None else data, rows, tables, notes, by_hand), format)


def _text(value: Any) -> str:
    """Write a value for people; numbers with four digits."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
