"""One look for all figures: colours told apart with any colour vision, markers that differ too, files by suffix."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from leadline.errors import InputError
from leadline.results.printing import printable

#: The kinds of file that a figure can become, by their suffix.
KINDS = ("svg", "png", "pdf")
#: Width and height of a figure with one panel, in inches: readable at the width of a phone and of a column.
FIGURE_SIZE = (4.2, 3.2)

# Okabe & Ito's colours, told apart with any kind of colour vision; without yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# A different number of markers than of colours: pairs repeat only after all of them have been used.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
RIGHT, WRONG, QUIET = "#0B3C6F", "#E8871E", "#8A8A8A"

#: From surely wrong to surely right. Its lightness falls all the way, so that it reads in grey as well.
CORRECTNESS: Colormap = LinearSegmentedColormap.from_list(
    "correctness", ["#F7A84A", "#D9A381", "#9E9CA8", "#5A82AE", "#0B3C6F"]
)
#: From negative to positive with nothing in the middle; orange and purple are apart for all.
SIGNED = "PuOr"

_SETTINGS: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "svg.hashsalt": "leadline",  # the same figure gives the same bytes
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


_P = ParamSpec("_P")
_R = TypeVar("_R")


def styled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function draw with Leadline's settings, and leave those of the caller alone."""

    @wraps(function)
    def draw(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with matplotlib.rc_context(_SETTINGS):
            return function(*args, **kwargs)

    return draw


@styled
def new_figure(
    columns: int = 1, rows: int = 1, *, size: tuple[float, float] = FIGURE_SIZE, three_d: bool = False
) -> tuple[Figure, list[Any]]:
    """Return a figure that no window knows of, and its axes in reading order.

    Parameters
    ----------
    columns, rows
        How many panels stand side by side and below each other.
    size
        Width and height of one panel in inches.
    three_d
        Make three-dimensional axes.
    """
    figure = Figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
    keywords = {"projection": "3d"} if three_d else {}
    return figure, list(figure.subplots(rows, columns, squeeze=False, subplot_kw=keywords).flat)


def axes_or_new(ax: Axes | None, *, size: tuple[float, float] = FIGURE_SIZE, three_d: bool = False) -> Axes:
    """Return the axes given, or those of a new figure (found at ``.figure`` of what is returned)."""
    if ax is not None:
        return ax
    new: Axes = new_figure(size=size, three_d=three_d)[1][0]
    return new


def look(position: int) -> dict[str, Any]:
    """Return the colour and the marker of the n-th of several series."""
    return {"color": COLOURS[position % len(COLOURS)], "marker": MARKERS[position % len(MARKERS)]}


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return colours and markers by name; a method looks the same in every figure, whatever else is drawn.

    Examples
    --------
    >>> looks(["doc", "ac"])["ac"] == looks(["ac"])["ac"]
    True
    """
    from leadline.estimators import METHODS

    distinct = list(dict.fromkeys(names))
    taken = list(METHODS) if any(name in METHODS for name in distinct) else []
    places = dict.fromkeys([*taken, *distinct])  # variants and suites, which have none of their own, come after methods
    found = {name: look(position) for position, name in enumerate(places)}
    return {name: found[name] for name in distinct}


def short(name: object, most: int = 24) -> str:
    """Return a name that fits beside an axis and that is no formula.

    Examples
    --------
    >>> short("$5"), short("incomprehensibilities", 10)
    ('\\\\$5', 'incompreh…')
    """
    text = printable(name)
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")


def tidy(ax: Any) -> None:
    """Remove the lines above and to the right of the data."""
    ax.spines[["top", "right"]].set_visible(False)


def look_across(ax: Any) -> None:
    """Turn three axes so that logits, which lie near a plane across (1, 1, 1), are neither edge on nor flat."""
    ax.view_init(elev=28, azim=18)
    ax.locator_params(nbins=5)


def legend_beside(ax: Any, title: str | None = None) -> None:
    """Put the legend to the right of the axes, where it covers no data."""
    ax.legend(title=title, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, alignment="left")


def check_kind(path: str | Path) -> str:
    """Return the kind of file that a path ends with, or say which there are."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(f"the figure must be a .{', .'.join(KINDS)} file; got {str(path)!r}.")
    return kind


def save(drawn: Any, path: str | Path) -> None:
    """Write a figure to a file of the kind that its name ends with.

    Parameters
    ----------
    drawn
        A figure, or axes of it.
    path
        An .svg, .png or .pdf file.
    """
    Path(path).write_bytes(save_bytes(drawn, check_kind(path)))


@styled
def save_bytes(drawn: Any, kind: str) -> bytes:
    """Return a figure, or the figure of axes, as a file of one of :data:`KINDS`."""
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    # Dates would make two files of the same figure differ.
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    file = io.BytesIO()
    figure.savefig(file, dpi=160, bbox_inches="tight", metadata=metadata, format=kind)
    return file.getvalue()
