"""Weather: snow, frost and fog. Images are uint8 (n, 32, 32, 3); results are floats in [0, 255]."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from leadline.bench.corruptions.blur import clipped_zoom, motion
from leadline.bench.corruptions.noise import Floats, Images, to_levels
from leadline.errors import InputError

_SNOW = (
    # mean, spread, zoom, cut, blur radius, blur sigma, share of the image
    (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
    (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
)
_GREY = np.array([0.299, 0.587, 0.114])
_FROST_PHOTOS = 5


def snow(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Whiten the image and lay blurred flakes over it, once as they are and once turned by 180 degrees."""
    mean, spread, factor, cut, radius, sigma, keep = _SNOW[severity - 1]
    fractions = images / 255.0
    n = len(images)
    flakes = clipped_zoom(rng.normal(mean, spread, size=(n, 32, 32)), factor)
    flakes[flakes < cut] = 0.0
    levels = (np.clip(flakes, 0.0, 1.0) * 255.0).astype(np.uint8)
    layer = motion(levels, radius, sigma, rng.uniform(-135.0, -45.0, n))[..., None] / 255.0
    white = np.maximum(fractions, (fractions @ _GREY)[..., None] * 1.5 + 0.5)
    return to_levels(keep * fractions + (1.0 - keep) * white + layer + layer[:, ::-1, ::-1])


def plasma(n: int, size: int, decay: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return n random height maps of the diamond-square algorithm, scaled to [0, 1]; shape (n, size, size).

    Each round halves the grid and divides the wibble by ``decay``; a new point is the mean of four neighbours
    (the map repeats beyond its edges) plus wibble times a uniform number in [-wibble, wibble].
    """
    heights = np.zeros((n, size, size))
    step, wibble = size, 100.0

    def wibbled(total: NDArray[np.float64]) -> NDArray[np.float64]:
        return total / 4.0 + wibble * rng.uniform(-wibble, wibble, total.shape)

    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, half::step] = wibbled(pairs + np.roll(pairs, -1, axis=2))
        middles = heights[:, half::step, half::step]
        across = middles + np.roll(middles, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = wibbled(across)
        along = middles + np.roll(middles, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, ::step] = wibbled(along)
        step, wibble = half, wibble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return np.asarray(heights / heights.max(axis=(1, 2), keepdims=True))


def fog(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Add a cloud and scale back so that the brightest value stays."""
    strength, decay = ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))[severity - 1]
    fractions = images / 255.0
    brightest = fractions.max(axis=(1, 2, 3), keepdims=True)
    clouded = fractions + strength * plasma(len(images), 32, decay, rng)[..., None]
    return to_levels(clouded * brightest / (brightest + strength))


def frost(
    images: Images, severity: int, rng: np.random.Generator, *, textures: tuple[Images, ...] | None = None
) -> Floats:
    """Lay a random piece of a picture of frost over the image.

    ``textures`` are pictures of shape (height, width, 3), at least 33 pixels each way, already at a fifth of
    the photographs' size; None for procedural ones.
    """
    keep, add = ((1.0, 0.2), (1.0, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))[severity - 1]
    pictures = procedural_frost() if textures is None else textures
    pieces = np.empty(images.shape)
    for piece, choice in zip(pieces, rng.integers(0, len(pictures), len(images)), strict=True):
        picture = pictures[choice]
        top, left = (int(rng.integers(0, size - 32)) for size in picture.shape[:2])
        piece[:] = picture[top : top + 32, left : left + 32]
    return np.asarray(np.clip(keep * images + add * pieces, 0.0, 255.0))


def read_frost(folder: Path) -> tuple[Images, ...]:
    """Read photographs of frost, the first five by name, at a fifth of their size.

    A bilinear reduction to exactly a fifth reads the middle pixel of each 5 x 5 square, so that is what is
    kept.
    """
    from PIL import Image

    paths = sorted(path for path in folder.glob("*") if path.suffix.lower() in {".png", ".jpg", ".jpeg"})
    if not paths:
        raise InputError(f"frost_folder must hold .png or .jpg photographs; found none in {folder}.")
    pictures = []
    for path in paths[:_FROST_PHOTOS]:
        with Image.open(path) as photo:
            picture = np.asarray(photo.convert("RGB"))[2::5, 2::5]
        if min(picture.shape[:2]) < 33:
            raise InputError(f"photographs of frost must have at least 165 pixels each way; {path} is smaller.")
        pictures.append(picture)
    return tuple(pictures)


@lru_cache(maxsize=1)
def procedural_frost() -> tuple[Images, ...]:
    """Return five bluish textures of ice needles, each of shape (200, 200, 3); always the same ones.

    Noise smeared along five directions gives needles, their maximum crystals; a slow noise decides where the
    ice is thick. The strength was set by hand so that a public ResNet20 loses about as much accuracy (4 to 38
    points) as with another generator of this corruption; it does not come from the photographs.
    """
    rng = np.random.default_rng(20190226)
    pictures = []
    for _ in range(_FROST_PHOTOS):
        needles = np.zeros((200, 200))
        for angle in rng.uniform(0.0, 180.0, 5):
            grains = ndimage.gaussian_filter(rng.normal(size=(300, 300)), (0.7, 6.0), mode="wrap")
            turned = ndimage.rotate(grains / grains.std(), angle, reshape=False, order=1, mode="wrap")
            needles = np.maximum(needles, turned[50:250, 50:250])
        thickness = ndimage.gaussian_filter(rng.normal(size=(200, 200)), 18.0, mode="wrap")
        thickness = 0.5 + 0.5 * np.tanh(thickness / thickness.std())
        light = np.clip(0.15 + (0.25 + 0.75 * thickness) * (0.45 * needles + 0.15), 0.0, 1.0)
        tint = np.stack([light**1.25, light**1.05, light**0.85], axis=-1)
        pictures.append((tint * 255.0).astype(np.uint8))
    return tuple(pictures)
