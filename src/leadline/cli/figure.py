"""``leadline figure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.cli import completion
from leadline.cli.drawings import FIGURES, PANELS, Request
from leadline.cli.options import (
    ClassesOption,
    ForceOption,
    MemoryOption,
    QuietOption,
    find_targets,
    split,
    split_integers,
)
from leadline.cli.terminal import progress, tell
from leadline.errors import InputError
from leadline.report import require_matplotlib


def figure(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which figure; see the list.", show_default=False, autocompletion=completion.figure
        ),
    ],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="What it is drawn from; see the list.")
    ] = None,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FIGURE", help="The .svg, .png or .pdf to write.")],
    pair: Annotated[
        str | None, typer.Option("--pair", metavar="I,J", help="Two classes to look at (plane, anchors).")
    ] = None,
    panel: Annotated[
        str, typer.Option("--panel", metavar="|".join(PANELS), help="Which part of the plane to draw.")
    ] = "all",
    three_d: Annotated[bool, typer.Option("--3d", help="Draw the plane of three classes in three dimensions.")] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B,...",
            help="The methods to compare (scatter, methods).",
            autocompletion=completion.methods,
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option("--by", metavar="suite|network|target", help="Lines and groups (alpha, anchor-count, ablation)."),
    ] = "suite",
    anchors: Annotated[
        str | None, typer.Option("--anchors", metavar="K,L", help="Numbers of anchors side by side (anchor-sets).")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of what has to be fitted.")] = 0,
    classes: ClassesOption = None,
    memory_limit: MemoryOption = None,
    quiet: QuietOption = False,
    force: ForceOption = False,
) -> None:
    """Draw one figure into a file of the kind that its name ends with.

    Names:

    {names}

    SOURCE is a file of labelled outputs, MODEL one that `leadline fit` wrote, ROWS a .json or .csv file of
    benchmark rows (`leadline bench run`) or of `leadline compare --format json`.

    Example: `leadline figure plane validation.npz -o plane.svg`
    """
    require_matplotlib()
    from leadline.data.files import write_bytes
    from leadline.report.style import check_kind, save_bytes

    if name not in FIGURES:
        raise InputError(f"the figure must be one of {', '.join(FIGURES)}; got {name!r}.")
    if panel not in PANELS:
        raise InputError(f"--panel must be one of {', '.join(PANELS)}; got {panel!r}.")
    kind, path = check_kind(output), Path(output)
    if path.exists() and not force:
        raise InputError(f"file {output} exists; use --force to overwrite it.")
    takes = FIGURES[name].takes
    if bool(files) != bool(takes):
        raise InputError(f"{name} takes {takes or 'no file'}; got {', '.join(files or ()) or 'no file'}.")
    request = Request(
        files=find_targets(files or ()),
        pair=None if pair is None else split_integers(pair, "--pair"),
        panel=panel,
        three_d=three_d,
        methods=split(methods, "--methods"),
        seed=seed,
        classes=split(classes, "--classes"),
        by=by,
        anchors=None if anchors is None else split_integers(anchors, "--anchors"),
        memory_limit=memory_limit,
    )
    with progress(f"draw {name}", quiet=quiet):
        data = save_bytes(FIGURES[name].draw(request), kind)
    write_bytes(path, data, force=force)
    tell(f"{output} written.", quiet=quiet)


figure.__doc__ = (figure.__doc__ or "").format(
    names="\n    ".join(
        f"- `{f'{name} {drawing.takes}'.strip()}`: {drawing.shows}" for name, drawing in FIGURES.items()
    )
)
