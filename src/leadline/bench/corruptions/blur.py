"""Blur: defocus, Gaussian, glass, motion, zoom. Images: uint8 (n, 32, 32, 3); results: float in [0, 255]."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from leadline.bench.corruptions.noise import Floats, Images, to_levels


def smooth(fractions: Floats, sigma: float) -> Floats:
    """Blur the image axes with a Gaussian cut at 4 standard deviations; border pixels repeat outside."""
    sigmas = (0.0, sigma, sigma) + (0.0,) * (fractions.ndim - 3)
    return np.asarray(ndimage.gaussian_filter(fractions, sigmas, mode="nearest", truncate=4.0))


def gaussian_blur(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Blur with a standard deviation of 0.4 to 1 pixel."""
    del rng
    return to_levels(smooth(images / 255.0, (0.4, 0.6, 0.7, 0.8, 1.0)[severity - 1]))


def disk_kernel(radius: float, alias_sigma: float) -> NDArray[np.float32]:
    """Return a disk of the given radius, softened by a 3 x 3 Gaussian; shape (17, 17)."""
    steps = np.arange(-8, 9)
    inside = (steps[:, None] ** 2 + steps[None, :] ** 2 <= radius**2).astype(np.float32)
    weights = np.exp(-np.square([-1.0, 0.0, 1.0]) / (2.0 * alias_sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    softened = inside / inside.sum()
    for axis in (0, 1):
        softened = ndimage.correlate1d(softened, weights, axis=axis, mode="mirror")
    return np.asarray(softened, dtype=np.float32)


def defocus_blur(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Blur with the image of an out-of-focus point, a disk."""
    del rng
    radius, alias_sigma = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))[severity - 1]
    kernel = disk_kernel(radius, alias_sigma)
    reach = np.flatnonzero(kernel.any(axis=0))  # the kernel is symmetric and mostly zero
    kernel = kernel[reach[0] : reach[-1] + 1, reach[0] : reach[-1] + 1].astype(np.float64)
    return to_levels(ndimage.correlate(images / 255.0, kernel[None, :, :, None], mode="mirror"))


def glass_blur(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Displace pixels at random by up to one, between two Gaussian blurs.

    Notes
    -----
    The definition speaks of swapping neighbours, from the bottom right to the top left. The published program
    swaps array views, whose effect is a copy: each pixel takes the value of itself or of the neighbour above,
    to the left or both, and the neighbour keeps its own. The official files contain that, and so does this.
    """
    sigma, passes = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    pixels = (smooth(images / 255.0, sigma) * 255.0).astype(np.uint8)
    n = len(images)
    rows, columns = np.meshgrid(np.arange(2, 32), np.arange(2, 32), indexing="ij")
    each = np.arange(n)[:, None, None]
    for _ in range(passes):
        shift = rng.integers(-1, 1, size=(2, n, 30, 30))
        pixels[:, 2:, 2:] = pixels[each, rows + shift[0], columns + shift[1]]
    return to_levels(smooth(pixels / 255.0, sigma))


def motion(layers: NDArray[np.uint8], radius: int, sigma: float, degrees: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Blur along a line, as ImageMagick does.

    Parameters
    ----------
    layers
        Shape (n, h, w) or (n, h, w, channels).
    radius, sigma
        The line has 2 radius + 1 pixels with half-normal weights.
    degrees
        Shape (n,): the direction of each image's line.

    Returns
    -------
    NDArray[np.uint8]
        Same shape, rounded. The border pixel repeats outside.
    """
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-np.square(steps) / (2.0 * sigma**2))
    weights /= weights.sum()
    angle = np.deg2rad(degrees)[:, None]
    down = np.ceil(steps * np.sin(angle) - 0.5).astype(np.intp)
    right = np.ceil(steps * np.cos(angle) - 0.5).astype(np.intp)
    n, height, width = layers.shape[:3]
    each = np.arange(n)[:, None, None]
    result = np.zeros(layers.shape)
    for step, weight in enumerate(weights):
        rows = np.clip(np.arange(height) + down[:, step, None], 0, height - 1)
        columns = np.clip(np.arange(width) + right[:, step, None], 0, width - 1)
        result += weight * layers[each, rows[:, :, None], columns[:, None, :]]
    return np.floor(result + 0.5).astype(np.uint8)


def motion_blur(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Move the camera along a line within 45 degrees of the horizontal."""
    radius, sigma = ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))[severity - 1]
    return motion(images, radius, sigma, rng.uniform(-45.0, 45.0, len(images))).astype(np.float64)


@lru_cache(maxsize=64)
def zoom_matrix(factor: float, size: int = 32) -> NDArray[np.float64]:
    """Return the (size, size) matrix that enlarges the middle of a line of pixels by linear interpolation."""
    crop = int(np.ceil(size / factor))
    top = (size - crop) // 2
    grown = ndimage.zoom(np.eye(crop), (factor, 1.0), order=1)
    trim = (len(grown) - size) // 2
    matrix = np.zeros((size, size))
    matrix[:, top : top + crop] = grown[trim : trim + size]
    return matrix


def clipped_zoom(layers: Floats, factor: float) -> Floats:
    """Enlarge the middle of images of shape (n, 32, 32) to the full size."""
    matrix = zoom_matrix(factor)
    return np.asarray(matrix @ layers @ matrix.T)


def zoom_blur(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Move towards the scene: the mean of the image and enlargements by steps of 1 %."""
    del rng
    factors = np.arange(1.0, (1.06, 1.11, 1.16, 1.21, 1.26)[severity - 1], 0.01)
    planes = np.moveaxis(images / 255.0, 3, 1)
    total = planes.copy()
    for factor in factors:
        total += clipped_zoom(planes, float(factor))
    return to_levels(np.moveaxis(total / (len(factors) + 1), 1, 3))
