"""Logits on their plane: what was right, what ATC decides, and how likely ALSA thinks each prediction is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, as_labels, as_logits
from leadline.errors import InputError
from leadline.report.plane import Plane, find_plane
from leadline.report.style import CORRECTNESS, RIGHT, WRONG, axes_or_new, look_across, new_figure, styled, tidy

if TYPE_CHECKING:
    from leadline.estimators import ALSA, AverageThresholdedConfidence

Detail = Literal["points", "cells"]

PANEL_SIZE = (4.2, 3.4)
LEAST_PER_CELL = 3
_MOST_POINTS = 20_000  # more than this show nothing more, and make large files
_FEW_POINTS = 1_000  # enough to show where logits are, and to leave the surface visible
_GRID, _GRID_3D = 160, 50
_PROBABILITY = "probability of being right"


@styled
def true_correctness(
    logits: Any, labels: Any, ax: Axes | None = None, *, plane: Plane | None = None, detail: Detail = "points"
) -> Axes:
    """Draw which predictions were right.

    Parameters
    ----------
    logits
        Shape (n, c).
    labels
        Shape (n,): the true classes.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned. Three-dimensional axes
        take three classes.
    plane
        The plane to draw on; None for :func:`leadline.report.plane.find_plane` of these logits.
    detail
        "points" draws rows; "cells" draws the share in each hexagon that holds three rows or more.
    """
    logits = as_logits(logits)
    labels = as_labels(labels, logits)
    correct = logits.argmax(axis=1) == labels
    drawn = _draw(logits, correct, ax, plane or find_plane(logits, labels), detail, label="share that was right")
    drawn.set_title("true correctness")
    return drawn


@styled
def atc_decision(
    estimator: AverageThresholdedConfidence,
    logits: Any,
    ax: Axes | None = None,
    *,
    plane: Plane | None = None,
    detail: Detail = "points",
) -> Axes:
    """Draw which predictions ATC takes for right: those at or above its threshold.

    Parameters
    ----------
    estimator
        A fitted ``AverageThresholdedConfidence``.
    logits
        Shape (n, c).
    ax, plane, detail
        As in :func:`true_correctness`.
    """
    logits = as_logits(logits)
    accepted = _correctness(estimator, logits) > 0.5
    label = "share that ATC takes for right"
    drawn = _draw(logits, accepted, ax, plane or find_plane(logits), detail, label=label)
    drawn.set_title(f"{estimator.method.upper()}'s decision")
    return drawn


@styled
def alsa_probability(
    estimator: ALSA, logits: Any, ax: Axes | None = None, *, plane: Plane | None = None, detail: Detail = "points"
) -> Axes:
    """Draw the probability that ALSA gives each prediction.

    Parameters
    ----------
    estimator
        A fitted ``ALSA``.
    logits
        Shape (n, c).
    ax, plane, detail
        As in :func:`true_correctness`.
    """
    logits = as_logits(logits)
    drawn = _draw(logits, _correctness(estimator, logits), ax, plane or find_plane(logits), detail, label=_PROBABILITY)
    drawn.set_title(f"{estimator.method.upper()}'s probability")
    return drawn


@styled
def alsa_surface(estimator: ALSA, logits: Any, ax: Axes | None = None, *, plane: Plane | None = None) -> Axes:
    """Draw the probability that ALSA gives every place of the plane, as far as the logits reach.

    Places out of the anchors' reach, which count 1/c, are hatched.

    Parameters
    ----------
    estimator
        A fitted ``ALSA``.
    logits
        Shape (n, c): what the surface is to cover.
    ax, plane
        As in :func:`true_correctness`.
    """
    logits = as_logits(logits)
    plane = plane or find_plane(logits)
    drawn = _axes(ax, logits)
    shown = plane.project(_shown(plane, logits))
    low, high = shown.min(axis=0), shown.max(axis=0)
    margin = 0.05 * (high - low)
    number = _GRID_3D if drawn.name == "3d" else _GRID
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], number) for i in range(2))
    lifted = plane.lift(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
    values = _correctness(estimator, lifted).reshape(number, number)
    if drawn.name == "3d":
        _surface_in_space(drawn, lifted.reshape(number, number, 3), values)
    else:
        drawn.pcolormesh(x, y, values, cmap=CORRECTNESS, vmin=0, vmax=1, shading="nearest", rasterized=True)
        outside = np.abs(estimator.influence(lifted)).reshape(number, number) < estimator.threshold_
        if estimator.rectify == "total" and outside.any():
            drawn.contourf(x, y, outside, levels=[0.5, 1.5], colors="none", hatches=["////"])
    _label(drawn, plane)
    _colour_bar(drawn, _PROBABILITY)
    drawn.set_title(f"{estimator.method.upper()}'s surface")
    return drawn


def _surface_in_space(drawn: Any, places: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Draw the coloured plane, places of shape (m, m, 3), where it lies among the three classes."""
    drawn.plot_surface(
        *np.moveaxis(places, -1, 0), facecolors=CORRECTNESS(values), rcount=len(values), ccount=len(values),
        shade=False, linewidth=0, antialiased=False, rasterized=True,
    )  # fmt: skip


@styled
def initialisation_surfaces(
    logits: Any,
    labels: Any,
    *,
    pair: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Figure:
    """Draw ALSA-G's surface with sampled anchors above, random ones below: at first on the left, trained on the right.

    White dots are some of the logits.

    Parameters
    ----------
    logits
        Shape (n, c): the source.
    labels
        Shape (n,): the true classes.
    pair, names
        As in :func:`logit_planes`.
    seed
        Of the fits.
    """
    from leadline.estimators import ALSA
    from leadline.estimators.alsa.training import PARTS

    logits = as_logits(logits)
    labels = as_labels(labels, logits)
    plane = find_plane(logits, labels, pair=pair, names=names)
    shown = plane.project(_shown(plane, logits))
    places = shown[np.linspace(0, len(shown) - 1, min(len(shown), _FEW_POINTS)).astype(int)]
    figure, panels = new_figure(2, 2, size=PANEL_SIZE)
    inits: tuple[tuple[Literal["sample", "random"], str], ...] = (("sample", "sampled"), ("random", "random"))
    cases = [(init, word, learn) for init, word in inits for learn in (False, True)]
    for ax, (init, word, learn) in zip(panels, cases, strict=True):
        parts = PARTS if learn else ()
        alsa = ALSA(init=init, seed=seed, learn=parts, geometry="cosine", folds=1)  # one fit, as in the paper
        alsa_surface(alsa.fit(logits, labels), logits, ax, plane=plane)
        # Only where there are logits have the surfaces to agree.
        ax.scatter(*places.T, s=1.5, c="white", alpha=0.5, linewidths=0, rasterized=True)
        ax.set_title(f"{word} anchors, {'after training' if learn else 'at initialisation'}")
    return figure


@styled
def logit_planes(
    logits: Any,
    labels: Any,
    *,
    alsa: ALSA | None = None,
    atc: AverageThresholdedConfidence | None = None,
    pair: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    three_d: bool = False,
    detail: Detail = "points",
) -> Figure:
    """Draw the truth, ATC's decisions, ALSA's probabilities and ALSA's surface side by side.

    Parameters
    ----------
    logits
        Shape (n, c).
    labels
        Shape (n,): the true classes.
    alsa, atc
        Fitted estimators; None to fit ALSA-G and ATC-MC on these logits.
    pair
        Two classes to look at; None for those of :func:`leadline.report.plane.find_plane`.
    names
        The names of the classes.
    three_d
        Draw three classes in their three dimensions.
    detail
        As in :func:`true_correctness`.
    """
    from leadline.estimators import ALSA, AverageThresholdedConfidence

    logits = as_logits(logits)
    labels = as_labels(labels, logits)
    plane = find_plane(logits, labels, pair=pair, names=names)
    alsa = alsa or ALSA().fit(logits, labels)
    atc = atc or AverageThresholdedConfidence().fit(logits, labels)
    figure, axes = new_figure(2, 2, size=(5.2, 4.2) if three_d else PANEL_SIZE, three_d=three_d)
    if three_d:
        figure.set_layout_engine("none")  # which does not know where the labels of such axes are
    true_correctness(logits, labels, axes[0], plane=plane, detail=detail)
    atc_decision(atc, logits, axes[1], plane=plane, detail=detail)
    alsa_probability(alsa, logits, axes[2], plane=plane, detail=detail)
    alsa_surface(alsa, logits, axes[3], plane=plane)
    return figure


def _correctness(estimator: Any, logits: FloatArray) -> NDArray[np.float64]:
    """Return what an estimator gives each row, shape (n,); of ALSA before the correction, which is of whole targets."""
    from leadline.estimators import ALSA

    if isinstance(estimator, ALSA):
        return estimator.probabilities(estimator.rows_of(logits))[0]
    values = estimator.estimate(logits).correctness
    if values is None:
        raise InputError(f"method {estimator.method} gives no value per row; use ALSA or ATC.")
    return np.asarray(values)


def _axes(ax: Axes | None, logits: FloatArray) -> Axes:
    """Return the axes, and refuse three dimensions for any other number of classes."""
    drawn = axes_or_new(ax, size=PANEL_SIZE)
    if drawn.name == "3d" and logits.shape[1] != 3:
        raise InputError(f"logits must have 3 classes to be drawn in three dimensions; got {logits.shape[1]}.")
    return drawn


def _shown(plane: Plane, logits: FloatArray) -> FloatArray:
    """Return the rows that belong on the plane, or all where none does."""
    shown = plane.shows(logits)
    return logits[shown] if shown.any() else logits


def _draw(
    logits: FloatArray, values: NDArray[Any], ax: Axes | None, plane: Plane, detail: Detail, *, label: str
) -> Axes:
    """Draw values in [0, 1], or right and wrong, where the rows are."""
    if detail not in ("points", "cells"):
        raise InputError(f"detail must be 'points' or 'cells'; got {detail!r}.")
    drawn = _axes(ax, logits)
    shown = plane.shows(logits)
    if shown.any():
        logits, values = logits[shown], values[shown]
    if detail == "cells" and drawn.name != "3d":
        x, y = plane.project(logits).T
        drawn.hexbin(
            x, y, C=values.astype(float), gridsize=_cells_across(len(x)), mincnt=LEAST_PER_CELL, cmap=CORRECTNESS,
            vmin=0, vmax=1, linewidths=0.2,
        )  # fmt: skip
        _colour_bar(drawn, label)
    else:
        if len(logits) > _MOST_POINTS:
            kept = np.linspace(0, len(logits) - 1, _MOST_POINTS).astype(int)
            logits, values = logits[kept], values[kept]
        coordinates = (logits if drawn.name == "3d" else plane.project(logits)).T
        if values.dtype == bool:
            _scatter_decisions(drawn, coordinates, values)
        else:
            _scatter_probabilities(drawn, coordinates, values)
            _colour_bar(drawn, label)
    _label(drawn, plane)
    return drawn


def _scatter_probabilities(drawn: Any, coordinates: NDArray[Any], values: NDArray[np.float64]) -> None:
    """Draw rows in the colour of their probability."""
    order = np.argsort(values)[::-1]  # the unsure are drawn last: they are few, and what one wants to see
    drawn.scatter(
        *coordinates[:, order], c=values[order], cmap=CORRECTNESS, vmin=0, vmax=1, s=_dot(len(values)),
        linewidths=0, rasterized=True, **_depth(drawn),
    )  # fmt: skip


def _scatter_decisions(drawn: Any, coordinates: NDArray[Any], right: NDArray[np.bool_]) -> None:
    """Draw right rows as dots and wrong ones as crosses, so that no colour is needed to tell them apart."""
    size = _dot(len(right))
    more = _depth(drawn) | {"rasterized": True}
    drawn.scatter(*coordinates[:, right], s=size, c=RIGHT, linewidths=0, label="right", **more)
    drawn.scatter(*coordinates[:, ~right], s=1.8 * size, c=WRONG, marker="x", linewidths=0.9, label="wrong", **more)
    place = "upper left" if drawn.name == "3d" else "best"
    drawn.legend(loc=place, markerscale=1.4, framealpha=0.85, edgecolor="none", handletextpad=0.3)


def _depth(drawn: Any) -> dict[str, bool]:
    """Return what keeps a third dimension from fading colours that carry a meaning, or from hiding the wrong rows."""
    if drawn.name != "3d":
        return {}
    drawn.computed_zorder = False
    return {"depthshade": False}


def _dot(number: int) -> float:
    """Return the area of a dot, smaller the more there are."""
    return float(np.clip(9000.0 / number, 4.0, 12.0))


def _cells_across(number: int) -> int:
    """Return how many hexagons stand side by side, so that most hold enough rows to be shown."""
    return int(np.clip(np.sqrt(number) / 1.6, 8, 30))


def _label(drawn: Any, plane: Plane) -> None:
    """Name the axes."""
    if drawn.name == "3d":
        drawn.set(xlabel="logit of class 0", ylabel="logit of class 1", zlabel="logit of class 2")
        look_across(drawn)
        return
    drawn.set(xlabel=plane.labels[0], ylabel=plane.labels[1])
    tidy(drawn)


def _colour_bar(drawn: Any, label: str) -> None:
    """Add the key to the colours from surely wrong to surely right."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    key = ScalarMappable(Normalize(0, 1), CORRECTNESS)
    drawn.figure.colorbar(key, ax=drawn, label=label, **({"pad": 0.12, "shrink": 0.8} if drawn.name == "3d" else {}))
