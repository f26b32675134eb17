"""Error against an option, bars of variants, and error against time: the pictures of the benchmark.

Each takes the rows of an experiment, as mappings. A row has ``error``, or ``estimate`` (or ``accuracy``) and
``truth``, as fractions; errors that share all else are averaged in absolute value. One method may be there in several
variants, such as ``alsa-g`` and ``alsa-g-paper``; they are never averaged together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes

from leadline.errors import InputError
from leadline.report.style import axes_or_new, legend_beside, looks, short, styled, tidy

Rows = Iterable[Mapping[str, Any]]
#: What lines and groups of bars are told apart by.
By = Literal["suite", "network", "target"]

_ERROR_LABEL = "mean absolute error (points)"
_MOST_BARS_WITH_NUMBERS = 16


@styled
def error_vs_alpha(rows: Rows, ax: Axes | None = None, *, by: By = "suite") -> Axes:
    """Draw mean absolute error, in points, against ALSA's alpha.

    Parameters
    ----------
    rows
        Rows with ``alpha``, or a ``variant`` that ends with it as in "alsa-g 0.98"; ``method`` and what ``by`` names
        tell lines apart.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    by
        "suite", "target", or "network": the last word of ``model``, such as "gcn" in "acmv9-gcn".
    """
    curves = _curves(rows, "alpha", by)
    alphas = sorted({x for points in curves.values() for x, _ in points})
    if alphas and not (alphas[0] >= 0.0 and alphas[-1] < 1.0):
        raise InputError(f"alpha must be from 0 to below 1; got {alphas[0]:g} to {alphas[-1]:g}.")
    drawn = error_curves(curves, ax, label="α, share of an anchor's area that counts as reached")
    # The last values before 1 differ most: space alpha by the digits of what is left out.
    drawn.set_xlim(_undigits(_digits(alphas[0]) - 0.1), _undigits(_digits(alphas[-1]) + 0.1))
    drawn.set_xscale("function", functions=(_digits, _undigits))
    ticks = [x for x in (0.0, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999) if alphas[0] <= x <= alphas[-1]] or alphas
    drawn.set_xticks(ticks, [f"{x:g}" for x in ticks])
    return drawn


def error_vs_anchors(rows: Rows, ax: Axes | None = None, *, by: By = "suite") -> Axes:
    """Draw mean absolute error, in points, against the number of anchors, on a logarithmic axis.

    Parameters
    ----------
    rows
        Rows with ``n_anchors``, or a ``variant`` that is the number; ``method`` and what ``by`` names tell lines
        apart.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    by
        As in :func:`error_vs_alpha`.
    """
    return error_curves(_curves(rows, "n_anchors", by), ax, label="number of anchors", logarithmic=True)


def ablation(rows: Rows, ax: Axes | None = None, *, by: By = "suite") -> Axes:
    """Draw mean absolute errors, in points, as bars: one group per suite, one bar per variant.

    Parameters
    ----------
    rows
        Rows with ``variant``; what ``by`` names makes the groups.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    by
        As in :func:`error_vs_alpha`.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        group = found.setdefault(_group(row, by), {})
        group.setdefault(str(_need(row, "variant")), []).append(_error(row))
    return error_bars(
        {suite: {name: float(np.mean(errors)) for name, errors in group.items()} for suite, group in found.items()},
        ax,
    )


def time_vs_error(rows: Rows, ax: Axes | None = None) -> Axes:
    """Draw mean absolute error, in points, against the time of an estimate; one marker per variant of a method.

    Parameters
    ----------
    rows
        Rows with ``seconds``, and ``variant`` or ``method``.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault(name_of(row), []).append((float(_need(row, "seconds")), _error(row)))
    means = {method: tuple(np.mean(pairs, axis=0)) for method, pairs in found.items()}
    return error_against_time({method: (float(s), float(e)) for method, (s, e) in means.items()}, ax)


@styled
def error_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    ax: Axes | None = None,
    *,
    label: str,
    logarithmic: bool = False,
) -> Axes:
    """Draw mean absolute error, in points, against a number.

    Parameters
    ----------
    curves
        By name: pairs of the number and the error as a fraction.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    label
        What the number is.
    logarithmic
        Space the numbers by their ratios.
    """
    _require(curves)
    drawn = axes_or_new(ax, size=(5.6, 3.6))
    styles = looks(curves)
    for name, points in curves.items():
        x, y = zip(*sorted(points), strict=True)
        drawn.plot(x, [100 * error for error in y], label=short(name, 40), **styles[name])
    if logarithmic:
        drawn.set_xscale("log")
    drawn.set(xlabel=label, ylabel=_ERROR_LABEL, ylim=(0, None))
    tidy(drawn)
    if len(curves) > 1 or "" not in curves:
        legend_beside(drawn)
    return drawn


@styled
def error_bars(groups: Mapping[str, Mapping[str, float]], ax: Axes | None = None) -> Axes:
    """Draw mean absolute errors, in points, as bars: one group per suite, one bar per variant.

    Parameters
    ----------
    groups
        Suite -> variant -> error as a fraction.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    """
    _require(groups)
    variants = list(dict.fromkeys(variant for errors in groups.values() for variant in errors))
    n_bars = len(groups) * len(variants)
    drawn = axes_or_new(ax, size=(max(4.8, 0.32 * n_bars + 2.0), 3.6))
    width = 0.8 / len(variants)
    hatches = ("", "///", "...", "\\\\\\", "xxx", "---", "ooo")
    styles = looks(variants)
    for number, variant in enumerate(variants):
        places = [place for place, errors in enumerate(groups.values()) if variant in errors]
        heights = [100 * errors[variant] for errors in groups.values() if variant in errors]
        offsets = [place - 0.4 + (number + 0.5) * width for place in places]
        bars = drawn.bar(
            offsets,
            heights,
            width,
            label=short(variant),
            color=styles[variant]["color"],
            hatch=hatches[number % len(hatches)],
            edgecolor="white",
            linewidth=0.5,
        )
        if n_bars <= _MOST_BARS_WITH_NUMBERS:
            drawn.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
    turned = max(map(len, groups)) * len(groups) > 45
    drawn.set_xticks(
        range(len(groups)),
        [short(name) for name in groups],
        rotation=20 if turned else 0,
        ha="right" if turned else "center",
    )
    drawn.tick_params(axis="x", length=0)
    drawn.set_ylabel(_ERROR_LABEL)
    tidy(drawn)
    legend_beside(drawn)
    return drawn


@styled
def error_against_time(points: Mapping[str, tuple[float, float]], ax: Axes | None = None) -> Axes:
    """Draw mean absolute error, in points, against the time of an estimate, in milliseconds.

    Parameters
    ----------
    points
        Method -> (seconds, error as a fraction).
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    """
    _require(points)
    drawn = axes_or_new(ax, size=(5.6, 3.6))
    styles = looks(points)
    for method, (seconds, error) in points.items():
        drawn.plot(1000 * seconds, 100 * error, linestyle="none", markersize=7, label=short(method), **styles[method])
    drawn.set_xscale("log")
    drawn.set(xlabel="time of an estimate (ms)", ylabel=_ERROR_LABEL, ylim=(0, None))
    tidy(drawn)
    legend_beside(drawn)
    return drawn


def name_of(row: Mapping[str, Any]) -> str:
    """Return what a row is called beside rows of other methods: its variant, or its method where it has none."""
    return str(row["variant"] if row.get("variant") is not None else _need(row, "method"))


def _digits(alpha: Any) -> Any:
    """Return how many nines alpha begins with, counting fractions of one; limits at 1 and beyond stay finite."""
    return -np.log10(np.maximum(1.0 - alpha, 1e-9))


def _undigits(digits: Any) -> Any:
    """Invert :func:`_digits`."""
    return 1.0 - 10.0**-digits


def _require(series: Mapping[str, Any]) -> None:
    """Refuse to draw nothing."""
    if not series:
        raise InputError("rows must have at least one entry; got none.")


def _need(row: Mapping[str, Any], key: str) -> Any:
    """Return a field that a row must have."""
    if row.get(key) is None:
        raise InputError(f"each row must have {key!r}; got a row with {', '.join(row) or 'nothing'}.")
    return row[key]


def _error(row: Mapping[str, Any]) -> float:
    """Return the absolute error of a row."""
    if row.get("error") is not None:
        return abs(float(row["error"]))
    estimate = row["estimate"] if row.get("estimate") is not None else _need(row, "accuracy")
    return abs(float(estimate) - float(_need(row, "truth")))


def _group(row: Mapping[str, Any], by: By) -> str:
    """Return what a row is told apart by."""
    if by == "suite":
        return str(row.get("suite", ""))
    if by == "target":
        return str(_need(row, "target"))
    if by == "network":
        return re.split("[-_]", str(_need(row, "model")))[-1]
    raise InputError(f"by must be one of {', '.join(get_args(By))}; got {by!r}.")


def _curves(rows: Rows, key: str, by: By) -> dict[str, list[tuple[float, float]]]:
    """Average errors by group, method and the number on the x axis; leave out of names what all rows share."""
    found: dict[tuple[str, str], dict[float, list[float]]] = {}
    for row in rows:
        series = (_group(row, by), str(row.get("method", "")))
        found.setdefault(series, {}).setdefault(_number(row, key), []).append(_error(row))
    shown = [len({series[part] for series in found}) > 1 for part in range(2)]
    if not any(shown):
        shown = [False, True]
    return {
        ", ".join(part for part, keep in zip(series, shown, strict=True) if keep): [
            (x, float(np.mean(errors))) for x, errors in points.items()
        ]
        for series, points in found.items()
    }


def _number(row: Mapping[str, Any], key: str) -> float:
    """Return the number on the x axis: the row's field, or the last word of its variant."""
    value = row[key] if row.get(key) is not None else str(_need(row, "variant")).split()[-1]
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{key} must be a number; got {value!r}.") from error
