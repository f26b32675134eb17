"""Error against an option, bars of variants, and error against time: the pictures of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

FIGURE_SIZE = (6.4, 4.0)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def save_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    path: Path,
    *,
    label: str,
    logarithmic: bool = False,
) -> None:
    """Draw mean absolute error, in points, against a number.

    Parameters
    ----------
    curves
        By name: pairs of the number and the error as a fraction.
    path
        The file, of the kind that its name ends with.
    label
        What the number is.
    logarithmic
        Space the numbers by their ratios.
    """
    figure = Figure(figsize=FIGURE_SIZE)
    ax = figure.add_subplot()
    for number, (name, points) in enumerate(curves.items()):
        x, y = zip(*sorted(points), strict=True)
        ax.plot(
            x, [100 * error for error in y], marker="o", label=name, color=_COLOURS[number % len(_COLOURS)]
        )
    if logarithmic:
        ax.set_xscale("log")
    ax.set(xlabel=label, ylabel="mean absolute error (points)", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def save_bars(groups: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw mean absolute errors, in points, as bars: one group per suite, one bar per variant.

    Parameters
    ----------
    groups
        Suite -> variant -> error as a fraction.
    path
        The file.
    """
    figure = Figure(figsize=FIGURE_SIZE)
    ax = figure.add_subplot()
    variants = list(dict.fromkeys(variant for errors in groups.values() for variant in errors))
    width = 0.8 / len(variants)
    for number, variant in enumerate(variants):
        places = [place for place, errors in enumerate(groups.values()) if variant in errors]
        heights = [100 * errors[variant] for errors in groups.values() if variant in errors]
        offsets = [place - 0.4 + (number + 0.5) * width for place in places]
        ax.bar(offsets, heights, width, label=variant, color=_COLOURS[number % len(_COLOURS)])
    ax.set_xticks(range(len(groups)), list(groups), rotation=20, ha="right")
    ax.set_ylabel("mean absolute error (points)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def save_time_against_error(points: Mapping[str, tuple[float, float]], path: Path) -> None:
    """Draw mean absolute error, in points, against the time of an estimate, in milliseconds; one dot per
    method.

    Parameters
    ----------
    points
        Method -> (seconds, error as a fraction).
    path
        The file.
    """
    figure = Figure(figsize=FIGURE_SIZE)
    ax = figure.add_subplot()
    for number, (method, (seconds, error)) in enumerate(points.items()):
        ax.plot(1000 * seconds, 100 * error, "o", color=_COLOURS[number % len(_COLOURS)])
        ax.annotate(method, (1000 * seconds, 100 * error), xytext=(5, 4), textcoords="offset points")
    ax.set_xscale("log")
    ax.set(xlabel="time of an estimate (ms)", ylabel="mean absolute error (points)", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, bbox_inches="tight")
