"""The options by which a pipeline stops, which several commands share, and what they say then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from leadline.cli.terminal import warn
from leadline.errors import InputError
from leadline.results.estimates import MISSING
from leadline.results.gate import Gate, Judged
from leadline.results.printing import printable

if TYPE_CHECKING:
    from leadline.results.estimates import Segment

EXIT_BELOW = 1

MinAccuracyOption = Annotated[
    float | None, typer.Option("--min-accuracy", metavar="FRACTION", help="Exit with 1 if any estimate is below.")
]
MaxDropOption = Annotated[
    float | None,
    typer.Option(
        "--max-drop", metavar="FRACTION",
        help="Exit with 1 if any estimate is further below the accuracy on the source.",
    ),
]  # fmt: skip
GateOnOption = Annotated[
    str,
    typer.Option(
        "--gate-on", metavar="|".join(get_args(Judged)),
        help="What must keep --min-accuracy and --max-drop: the estimate, or the lower end of its interval.",
    ),
]  # fmt: skip
MinSamplesOption = Annotated[
    int, typer.Option("--min-samples", min=0, help="Do not exit with 1 for segments of fewer rows.")
]


def gate_of(min_accuracy: float | None, max_drop: float | None, gate_on: str, min_samples: int) -> Gate:
    """Return the limits that options state, checked under the options' own names."""
    if gate_on not in get_args(Judged):
        raise InputError(f"--gate-on must be one of {', '.join(get_args(Judged))}; got {gate_on!r}.")
    try:
        gate = Gate(min_accuracy, max_drop, cast(Judged, gate_on), min_samples)
    except InputError as error:  # which begins with the name of the limit
        raise InputError("--" + str(error).replace("_", "-", 1)) from error
    if not gate.is_set and (gate_on != "estimate" or min_samples):
        raise InputError("--gate-on and --min-samples are about --min-accuracy and --max-drop; give one of these.")
    return gate


def group_texts(segment: Segment, by: Iterable[str]) -> list[str]:
    """Return a segment as texts, one for each column grouped by."""
    return [MISSING if segment.group[key] is None else str(segment.group[key]) for key in by]


def called(target: str, segment: Segment) -> str:
    """Return which estimate it is."""
    values = zip(segment.group, group_texts(segment, segment.group), strict=True)
    return printable(", ".join([target, *(f"{key} {value}" for key, value in values)]))


def leave(failed: Mapping[str, Sequence[str]], spared: int, judged: int, *, quiet: bool) -> None:
    """End with the code that says whether estimates are good enough, and a line for each that is not.

    Parameters
    ----------
    failed
        By estimate, what is wrong with it.
    spared
        How many have too few rows to be judged.
    judged
        How many estimates there are, with these.
    quiet
        Print nothing.
    """
    if spared:
        warn(f"{spared} of {judged} estimates have fewer rows than --min-samples, and are not judged.", quiet=quiet)
    if failed:
        warn(f"{len(failed)} of {judged} estimates not good enough:", quiet=quiet)
        for name, reasons in failed.items():
            warn(f"{name}: {'; '.join(reasons)}.", quiet=quiet)
        raise typer.Exit(EXIT_BELOW)
