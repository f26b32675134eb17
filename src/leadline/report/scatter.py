"""Estimated against true accuracy: the picture of how far a method can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadline.compare import ComparisonRow
from leadline.errors import InputError

FIGURE_SIZE = (6.4, 5.0)

# Okabe & Ito's colours, told apart with any kind of colour vision; without yellow, which is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# A different number of markers than of colours: pairs repeat only after all of them have been used.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


def predicted_vs_true(rows: Iterable[ComparisonRow], ax: Axes | None = None) -> Axes:
    """Draw estimated against true accuracy, one marker and colour per method.

    Parameters
    ----------
    rows
        Rows of a comparison; those without a known truth are left out.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.

    Returns
    -------
    Axes
        The axes drawn on: both in percent, with the line on which estimates are right.
    """
    known: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        if row.truth is not None:
            truths, estimates = known.setdefault(row.method, ([], []))
            truths.append(100 * row.truth)
            estimates.append(100 * row.accuracy)
    if not known:
        raise InputError("rows must have at least one target with labels; got none.")
    if ax is None:
        ax = Figure(figsize=FIGURE_SIZE).add_subplot()
    everything = [value for pair in known.values() for values in pair for value in values]
    low, high = min(everything), max(everything)
    margin = max(0.05 * (high - low), 1.0)
    limits = (max(0.0, low - margin), min(100.0, high + margin))
    ax.axline((50.0, 50.0), slope=1.0, color="0.6", linewidth=1.0, zorder=0)
    for number, (method, (truths, estimates)) in enumerate(known.items()):
        error = sum(abs(e - t) for e, t in zip(estimates, truths, strict=True)) / len(truths)
        ax.plot(
            truths,
            estimates,
            linestyle="none",
            marker=_MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            label=f"{method} ({error:.1f})",
        )
    ax.set(xlim=limits, ylim=limits, box_aspect=1)
    ax.set(xlabel="true accuracy (%)", ylabel="estimated accuracy (%)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        title="method (mean absolute\nerror in points)",
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        frameon=False,
    )
    return ax


def save_predicted_vs_true(rows: Iterable[ComparisonRow], path: Path) -> None:
    """Draw :func:`predicted_vs_true` into a file of the kind that its name ends with."""
    figure = Figure(figsize=FIGURE_SIZE)
    predicted_vs_true(rows, figure.add_subplot())
    figure.savefig(path, dpi=150, bbox_inches="tight")
