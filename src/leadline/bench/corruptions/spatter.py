"""Spatter: drops of water or mud on the lens.

The definition is a chain of OpenCV calls (edges after Canny, distance to them, histogram equalisation, small
filters), restated here for images of shape (n, 32, 32).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from leadline.bench.corruptions.blur import smooth
from leadline.bench.corruptions.noise import Floats, Images, to_levels

_SPATTER = (
    # mean, spread, blur sigma, cut, strength (water) or blur of the spots (mud), mud
    (0.62, 0.1, 0.7, 0.7, 0.5, False),
    (0.65, 0.1, 0.8, 0.7, 0.5, False),
    (0.65, 0.3, 1.0, 0.69, 0.5, False),
    (0.65, 0.1, 0.7, 0.69, 0.6, True),
    (0.65, 0.1, 0.5, 0.68, 0.6, True),
)
_WATER = np.array([175.0, 238.0, 238.0]) / 255.0
_MUD = np.array([63.0, 42.0, 20.0]) / 255.0
_EMBOSS = np.array([[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
_TAN_22_5 = np.sqrt(2.0) - 1.0
_FARTHEST = 20.0


def spatter(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Lay water (severities 1 to 3) or mud (4 and 5) over the image."""
    mean, spread, sigma, cut, last, mud = _SPATTER[severity - 1]
    fractions = images / 255.0
    liquid = smooth(rng.normal(mean, spread, size=(len(images), 32, 32)), sigma)
    liquid[liquid < cut] = 0.0
    if mud:
        spots = smooth((liquid > cut).astype(np.float64), last)
        spots[spots < 0.8] = 0.0
        return to_levels(fractions * (1.0 - spots[..., None]) + spots[..., None] * _MUD)
    # A level above 1 wraps around in eight bits, as it does in the definition.
    drops = (liquid * 255.0).astype(np.int64).astype(np.uint8)
    distance = np.minimum(distance_to(canny(drops, 50, 150)), _FARTHEST)
    levels = equalise(box(distance).astype(np.uint8)).astype(np.float64)
    embossed = np.clip(ndimage.correlate(levels, _EMBOSS[None], mode="mirror"), 0.0, 255.0)
    shine = drops * np.rint(box(embossed))
    brightest = shine.max(axis=(1, 2), keepdims=True)
    shine = np.divide(shine, brightest, out=np.zeros_like(shine), where=brightest > 0.0) * last
    return to_levels(fractions + shine[..., None] * _WATER)


def box(images: Floats) -> Floats:
    """Return the mean over 3 x 3 pixels; the image is mirrored at its border."""
    return np.asarray(ndimage.correlate(images, np.full((1, 3, 3), 1.0 / 9.0), mode="mirror"))


def canny(images: Images, low: int, high: int) -> NDArray[np.bool_]:
    """Find edges: local maxima of the Sobel gradient along its direction, kept if connected to a strong one.

    Parameters
    ----------
    images
        Shape (n, h, w), uint8.
    low, high
        The sum of the absolute derivatives must exceed ``low``, and ``high`` somewhere along the edge.

    Returns
    -------
    NDArray[np.bool_]
        Shape (n, h, w).
    """
    levels = images.astype(np.float64)
    slope, average = np.array([-1.0, 0.0, 1.0]), np.array([1.0, 2.0, 1.0])
    right = ndimage.correlate1d(ndimage.correlate1d(levels, slope, 2, mode="nearest"), average, 1, mode="nearest")
    down = ndimage.correlate1d(ndimage.correlate1d(levels, slope, 1, mode="nearest"), average, 2, mode="nearest")
    size = np.abs(right) + np.abs(down)
    padded = np.pad(size, ((0, 0), (1, 1), (1, 1)))

    def neighbour(rows: int, columns: int) -> NDArray[np.float64]:
        height, width = size.shape[1:]
        return np.asarray(padded[:, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width])

    flat = np.abs(down) < _TAN_22_5 * np.abs(right)
    steep = np.abs(down) > (_TAN_22_5 + 2.0) * np.abs(right)
    same_sign = right * down >= 0.0
    maximum = np.select(
        [flat, steep, same_sign],
        [
            (size > neighbour(0, -1)) & (size >= neighbour(0, 1)),
            (size > neighbour(-1, 0)) & (size >= neighbour(1, 0)),
            (size > neighbour(-1, -1)) & (size > neighbour(1, 1)),
        ],
        (size > neighbour(-1, 1)) & (size > neighbour(1, -1)),
    )
    candidates = maximum & (size > low)
    within_image = np.zeros((3, 3, 3), dtype=int)
    within_image[1] = 1
    pieces, count = ndimage.label(candidates, within_image)
    strong = np.zeros(count + 1, dtype=bool)
    strong[np.unique(pieces[candidates & (size > high)])] = True
    strong[0] = False
    return np.asarray(strong[pieces])


@lru_cache(maxsize=1)
def _steps_between() -> NDArray[np.float32]:
    """Return the chamfer length from each of the 32 x 32 pixels to each other; shape (1024, 1024).

    Steps to a side cost 1, to a corner 1.4, a knight's move 2.1969: OpenCV's 5 x 5 approximation of the
    distance.
    """
    offsets = np.arange(32)
    rows, columns = (grid.ravel() for grid in np.meshgrid(offsets, offsets, indexing="ij"))
    apart = np.abs(rows[:, None] - rows), np.abs(columns[:, None] - columns)
    far, near = np.maximum(*apart).astype(np.float64), np.minimum(*apart).astype(np.float64)
    shallow = near * 2.1969 + (far - 2.0 * near)
    diagonal = (far - near) * 2.1969 + (2.0 * near - far) * 1.4
    return np.asarray(np.where(2.0 * near <= far, shallow, diagonal), dtype=np.float32)


def distance_to(edges: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return each pixel's distance to the nearest edge pixel; the farthest possible where there is none."""
    table = _steps_between()
    result = np.full((len(edges), 1024), _FARTHEST)
    for distance, edge in zip(result, edges.reshape(len(edges), -1), strict=True):
        if edge.any():
            distance[:] = table[:, edge].min(axis=1)
    return result.reshape(edges.shape)


def equalise(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Spread the grey levels of each image, shape (n, h, w), so that their histogram becomes flat."""
    result = images.copy()
    for target, image in zip(result, images, strict=True):
        counts = np.bincount(image.ravel(), minlength=256)
        first = int(counts.nonzero()[0][0])
        rest = image.size - int(counts[first])
        if rest:
            below = np.cumsum(counts) - counts[first]
            target[:] = np.rint(np.maximum(below, 0) * (255.0 / rest)).astype(np.uint8)[image]
    return result
