"""Estimated against true accuracy: the picture of how far a method can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leadline.errors import InputError
from leadline.report.style import axes_or_new, legend_beside, looks, new_figure, save, styled, tidy
from leadline.results.comparison import ComparisonRow

FIGURE_SIZE = (5.2, 3.6)
_PANELS_ABREAST = 4


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
    limits = _limits([value for pair in known.values() for values in pair for value in values])
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
def predicted_vs_true_panels(points: Iterable[tuple[str, float, float]]) -> Figure:
    """Draw estimated against true accuracy, one panel per method: for more points than one panel can show.

    Parameters
    ----------
    points
        Method, true and estimated accuracy as fractions.

    Returns
    -------
    Figure
        Panels in reading order, all with the same axes in percent.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for method, truth, estimate in points:
        found.setdefault(method, []).append((100 * truth, 100 * estimate))
    if not found:
        raise InputError("points must have at least one entry; got none.")
    columns = min(_PANELS_ABREAST, len(found))
    figure, panels = new_figure(columns, -(-len(found) // columns), size=(1.7, 1.9))
    limits = _limits([value for pairs in found.values() for pair in pairs for value in pair])
    styles = looks(found)
    for number, (panel, (method, pairs)) in enumerate(zip(panels, found.items(), strict=False)):
        truths, estimates = zip(*pairs, strict=True)
        error = sum(abs(estimate - truth) for truth, estimate in pairs) / len(pairs)
        panel.axline((50.0, 50.0), slope=1.0, color="0.6", linewidth=1.0, zorder=0)
        panel.plot(
            truths, estimates, "o", color=styles[method]["color"], markersize=3, alpha=0.6, markeredgewidth=0,
            clip_on=False,
        )  # fmt: skip
        panel.set(xlim=limits, ylim=limits, box_aspect=1, title=f"{method} ({error:.1f})")
        panel.tick_params(labelleft=number % columns == 0, labelbottom=number >= len(found) - columns)
        tidy(panel)
    for panel in panels[len(found) :]:
        panel.set_visible(False)
    figure.supxlabel("true accuracy (%); in brackets the mean absolute error in points", fontsize=9)
    figure.supylabel("estimated accuracy (%)", fontsize=9)
    return figure


def _limits(values: list[float]) -> tuple[float, float]:
    """Return limits in percent with room around the values."""
    low, high = min(values), max(values)
    margin = max(0.05 * (high - low), 1.0)
    return max(0.0, low - margin), min(100.0, high + margin)


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
