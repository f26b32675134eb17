"""Estimated against true accuracy: the picture of how far a method can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes

from leadline.compare import ComparisonRow
from leadline.errors import InputError
from leadline.report.style import axes_or_new, legend_beside, looks, save, styled, tidy

FIGURE_SIZE = (5.2, 3.6)


@styled
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
    drawn = axes_or_new(ax, size=FIGURE_SIZE)
    everything = [value for pair in known.values() for values in pair for value in values]
    low, high = min(everything), max(everything)
    margin = max(0.05 * (high - low), 1.0)
    limits = (max(0.0, low - margin), min(100.0, high + margin))
    drawn.axline((50.0, 50.0), slope=1.0, color="0.6", linewidth=1.0, zorder=0)
    styles = looks(known)
    for method, (truths, estimates) in known.items():
        error = sum(abs(e - t) for e, t in zip(estimates, truths, strict=True)) / len(truths)
        drawn.plot(
            truths,
            estimates,
            linestyle="none",
            markeredgecolor="white",
            markeredgewidth=0.5,
            clip_on=False,
            label=f"{method} ({error:.1f})",
            **styles[method],
        )
    drawn.set(xlim=limits, ylim=limits, box_aspect=1)
    drawn.set(xlabel="true accuracy (%)", ylabel="estimated accuracy (%)")
    tidy(drawn)
    legend_beside(drawn, "method (mean absolute\nerror in points)")
    return drawn


@styled
def method_intervals(
    rows: Iterable[ComparisonRow], ax: Axes | None = None, *, source_accuracy: float | None = None
) -> Axes:
    """Draw the estimates of several methods on one target with their intervals.

    Parameters
    ----------
    rows
        One row per method, all of one target.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    source_accuracy
        Drawn as a dotted line; the true accuracy, where a row knows it, as a dashed one.
    """
    given = list(rows)
    if not given or len({row.target for row in given}) > 1:
        raise InputError("rows must be of one target; got none, or several targets.")
    drawn = axes_or_new(ax, size=(4.2, 0.9 + 0.25 * len(given)))
    styles = looks(row.method for row in given)
    for place, row in enumerate(given):
        low, high = row.interval
        drawn.plot([100 * low, 100 * high], [place, place], color=styles[row.method]["color"], linewidth=1.4)
        drawn.plot([100 * row.accuracy], [place], linestyle="none", label=row.method, **styles[row.method])
    if source_accuracy is not None:
        drawn.axvline(100 * source_accuracy, color="0.4", linestyle=":", linewidth=1.2, zorder=0)
    if given[0].truth is not None:
        drawn.axvline(100 * given[0].truth, color="black", linestyle="--", linewidth=1.0, zorder=0)
    drawn.set_yticks(range(len(given)), [row.method for row in given])
    drawn.set(xlabel="accuracy (%)", ylim=(len(given) - 0.5, -0.5))
    drawn.tick_params(axis="y", length=0)
    tidy(drawn)
    return drawn


def save_predicted_vs_true(rows: Iterable[ComparisonRow], path: Path) -> None:
    """Draw :func:`predicted_vs_true` into a file of the kind that its name ends with."""
    save(predicted_vs_true(rows), path)
