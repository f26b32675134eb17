"""How ALSA works, as a drawing: anchors learned with labels, then used without."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon
from numpy.typing import NDArray

from leadline.report.style import QUIET, RIGHT, WRONG, axes_or_new, styled

_LEARN, _USE = 4.55, 1.45  # heights of the two lanes
_HALF = 0.85  # half the height of a box
# Anchors of the drawing: place, sign of the peak, reach.
_ANCHORS = ((-0.5, 0.35, 1, 0.22), (0.5, -0.35, 1, 0.24), (-0.2, 0.5, 1, 0.15), (0.06, 0.02, -1, 0.19))


@styled
def workflow(ax: Axes | None = None) -> Axes:
    """Draw the workflow of ALSA.

    Parameters
    ----------
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.

    Notes
    -----
    The points are made up; the steps are the paper's: the total influence ``I`` of the anchors, its sigmoid, and 1/c
    where it does not reach the threshold ``t``.
    """
    drawn = axes_or_new(ax, size=(9.2, 4.6))
    drawn.set(xlim=(0, 13.4), ylim=(0, 6.05), aspect="equal")
    drawn.axis("off")
    for height, title in ((_LEARN, "Training: validation set, with labels"), (_USE, "Testing: target, without labels")):
        drawn.text(0.1, height + 1.25, title, fontsize=10, fontweight="bold", va="center")
    source, target = _points(0, 70), _points(1, 60)

    _box(drawn, 1.4, _LEARN, "logits, right and wrong")
    wrong = np.abs(source.sum(axis=1) * 0.2 + source[:, 0] - source[:, 1]) < 0.28
    _dots(drawn, (1.4, _LEARN), source[~wrong], RIGHT)
    _dots(drawn, (1.4, _LEARN), source[wrong], WRONG, marker="x", size=14)

    _box(drawn, 5.2, _LEARN, "anchors: place, peak, reach")
    _dots(drawn, (5.2, _LEARN), source, "0.8")
    _anchors(drawn, (5.2, _LEARN))

    _box(drawn, 9.4, _LEARN, "", width=3.4)
    _write(drawn, 9.4, _LEARN + 0.3, "loss: cross-entropy of", "estimated and true correctness")
    _write(drawn, 9.4, _LEARN - 0.45, "until the estimated accuracy", "meets the true one")

    _box(drawn, 1.4, _USE, "logits")
    _dots(drawn, (1.4, _USE), target, QUIET)

    _box(drawn, 5.2, _USE, "influence of all anchors")
    sample = np.array([[0.5, 0.3]])
    _dots(drawn, (5.2, _USE), sample, "black", size=22)
    _anchors(drawn, (5.2, _USE), faint=True)
    for x, y, *_ in _ANCHORS:
        _arrow(drawn, (5.2 + x, _USE + y), (5.2 + sample[0, 0], _USE + sample[0, 1]), thin=True)

    drawn.add_patch(
        Polygon([(7.35, _USE), (8.3, _USE + 0.7), (9.25, _USE), (8.3, _USE - 0.7)], facecolor="white", edgecolor="0.3")
    )
    drawn.text(8.3, _USE, "$|I| \\geq t$ ?", ha="center", va="center")
    _box(drawn, 10.7, _USE + 0.75, "", width=1.7, height=0.8)
    _write(drawn, 10.7, _USE + 0.75, "probability σ(I)")
    _box(drawn, 10.7, _USE - 0.75, "", width=1.7, height=0.8, dashed=True)
    _write(drawn, 10.7, _USE - 0.75, "rectified: 1/c")
    _box(drawn, 12.7, _USE, "", width=1.2, height=1.5)
    _write(drawn, 12.7, _USE, "mean:", "estimated", "accuracy")

    for start, end in (
        ((2.5, _LEARN), (4.1, _LEARN)),
        ((6.3, _LEARN + 0.3), (7.7, _LEARN + 0.3)),
        ((7.7, _LEARN - 0.3), (6.3, _LEARN - 0.3)),
        ((2.5, _USE), (4.1, _USE)),
        ((6.3, _USE), (7.35, _USE)),
        ((5.2, _LEARN - _HALF - 0.42), (5.2, _USE + _HALF)),
        ((8.8, _USE + 0.35), (9.85, _USE + 0.75)),
        ((8.8, _USE - 0.35), (9.85, _USE - 0.75)),
        ((11.55, _USE + 0.75), (12.1, _USE + 0.3)),
        ((11.55, _USE - 0.75), (12.1, _USE - 0.3)),
    ):
        _arrow(drawn, start, end)
    drawn.text(3.3, _LEARN + 0.12, "place on\nsome logits", ha="center", va="bottom", fontsize=7.5)
    drawn.text(7.0, _LEARN - 0.42, "learn", ha="center", va="top", fontsize=7.5)
    drawn.text(5.35, (_LEARN + _USE) / 2 - 0.1, "learnt anchors", va="center", fontsize=7.5)
    drawn.text(9.15, _USE + 0.75, "yes", ha="center", fontsize=7.5)
    drawn.text(9.15, _USE - 0.75, "no", ha="center", va="top", fontsize=7.5)
    return drawn


def _box(
    drawn: Any, x: float, y: float, title: str, *, width: float = 2.2, height: float = 2 * _HALF, dashed: bool = False
) -> None:
    """Draw a frame around a place, with its name below."""
    frame = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor="white",
        edgecolor="0.3", linestyle="--" if dashed else "-", zorder=1,
    )  # fmt: skip
    drawn.add_patch(frame)
    drawn.text(x, y - height / 2 - 0.1, title, ha="center", va="top", fontsize=8)


def _points(seed: int, number: int) -> NDArray[np.float64]:
    """Return points along a band, as logits of two classes are, shape (number, 2)."""
    rng = np.random.default_rng(seed)
    along, across = rng.uniform(-0.8, 0.8, number), rng.normal(scale=0.12, size=number)
    return np.column_stack([along + across, -0.75 * along + across])


def _dots(
    drawn: Any, centre: tuple[float, float], points: NDArray[np.float64], colour: str, *, marker: str = "o",
    size: float = 7.0,
) -> None:  # fmt: skip
    """Draw points around a centre."""
    outline = 0.9 if marker == "x" else 0.0
    x, y = (points + np.asarray(centre)).T
    drawn.scatter(x, y, s=size, c=colour, marker=marker, linewidths=outline, zorder=2)


def _anchors(drawn: Any, centre: tuple[float, float], *, faint: bool = False) -> None:
    """Draw anchors around a centre: colour and sign for the peak, size for the reach."""
    for x, y, sign, reach in _ANCHORS:
        colour = RIGHT if sign > 0 else WRONG
        place = (centre[0] + x, centre[1] + y)
        drawn.add_patch(
            Circle(place, reach, facecolor=colour, edgecolor=colour, alpha=0.35 if faint else 0.75, zorder=3)
        )
        drawn.text(*place, "+" if sign > 0 else "−", color="white", ha="center", va="center", fontsize=8, zorder=4)


def _arrow(drawn: Any, start: tuple[float, float], end: tuple[float, float], *, thin: bool = False) -> None:
    """Draw an arrow."""
    drawn.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=6 if thin else 11, linewidth=0.7 if thin else 1.2,
            color="0.3", shrinkA=5 if thin else 1, shrinkB=4 if thin else 1, zorder=5,
        )
    )  # fmt: skip


def _write(drawn: Any, x: float, y: float, *lines: str) -> None:
    """Write lines in the middle of a place."""
    drawn.text(x, y, "\n".join(lines), ha="center", va="center", fontsize=8, linespacing=1.35)
