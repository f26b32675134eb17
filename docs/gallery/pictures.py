"""One look for the pictures of the documentation: fonts, colours of what is not data, and small files.

They are white, on light and on dark pages alike, and have twice the resolution of the column that they are shown in.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

INK, PALE = "#24292F", "#E4E7EB"
STYLE: dict[str, Any] = {
    "figure.figsize": (7.2, 4.2),
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.titlesize": 12.0,
    "figure.titleweight": "bold",
    "font.size": 9.5,
    "text.color": INK,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9AA3AD",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
}
_DPI = 200
_MOST_BYTES = 150_000
_THUMBNAIL = (640, 460)  # pixels


@contextmanager
def collected() -> Iterator[Callable[[], list[Any]]]:
    """Draw in this look and without windows; what is given returns the figures drawn since it was last called."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    def take() -> list[Any]:
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        pyplot.close("all")
        return figures

    with matplotlib.rc_context(STYLE):
        pyplot.close("all")
        yield take
        pyplot.close("all")


def save(figure: Any, path: Path) -> None:
    """Write a figure as a small PNG file."""
    from PIL import Image

    file = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, dpi=_DPI, facecolor="white", format="png")
    _write(Image.open(file).convert("RGB"), path)


def save_thumbnail(picture: Path, path: Path) -> None:
    """Write a small version of a picture; all of them are of one size."""
    from PIL import Image, ImageOps

    _write(ImageOps.pad(Image.open(picture).convert("RGB"), _THUMBNAIL, color="white"), path)


def _write(image: Any, path: Path) -> None:
    """Write an image with few colours, which is a third of the bytes."""
    few = image.quantize(128, dither=0)
    palette, white = few.getpalette(), few.getpixel((0, 0))
    palette[3 * white : 3 * white + 3] = [255] * 3  # not a mean of whites, of which a white page would show the edge
    few.putpalette(palette)
    few.save(path, optimize=True)
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{path} must be below {_MOST_BYTES:,} bytes; it has {path.stat().st_size:,}. Draw less.")
