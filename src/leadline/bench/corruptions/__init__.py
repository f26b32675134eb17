"""The 19 corruptions of CIFAR-10-C, written from their published definition.

Hendrycks and Dietterich (*Benchmarking neural network robustness to common corruptions and perturbations*,
ICLR 2019) define 15 corruptions and 4 further ones for validation, each at 5 severities. The constants here
are those of CIFAR-10-C and CIFAR-100-C (images of 32 x 32 pixels; ImageNet-C has others). Neither OpenCV nor
ImageMagick is needed: their filters are short enough to state in NumPy and SciPy.

Everything is exact as far as the definition is, with these exceptions. Random numbers are our own, so that
single images differ from the official files while their distribution agrees. Frost is laid over the image
from photographs that cannot be shipped: procedural textures stand in for them unless a folder of photographs
is given. OpenCV rounds the coordinates of an affine warp to 1/32 of a pixel; here they are not rounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.bench.corruptions import blur, digital, noise, spatter, weather
from leadline.errors import InputError

Images = NDArray[np.uint8]
Corruption = Callable[[Images, int, np.random.Generator], NDArray[np.floating]]

SEVERITIES = (1, 2, 3, 4, 5)
CORRUPTIONS: dict[str, Corruption] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "speckle_noise": noise.speckle_noise,
    "defocus_blur": blur.defocus_blur,
    "gaussian_blur": blur.gaussian_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": digital.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "spatter": spatter.spatter,
    "saturate": digital.saturate,
}
_ROWS_AT_ONCE = 500


def corrupt(images: Images, name: str, severity: int, *, seed: int = 0, frost_folder: Path | None = None) -> Images:
    """Corrupt a set of images.

    Parameters
    ----------
    images
        Shape (n, 32, 32, 3), uint8, red-green-blue.
    name
        One of ``CORRUPTIONS``.
    severity
        From 1 to 5.
    seed
        The same seed, images, name and severity give the same result.
    frost_folder
        Photographs of frost (the original uses ``frost1.png`` to ``frost5.jpg``); None for procedural
        textures.

    Returns
    -------
    NDArray[np.uint8]
        Shape (n, 32, 32, 3). Fractions of grey levels are cut off, as in the official files.

    Examples
    --------
    >>> grey = np.full((1, 32, 32, 3), 100, dtype=np.uint8)
    >>> corrupt(grey, "brightness", 1)[0, 0, 0]
    array([112, 112, 112], dtype=uint8)
    """
    if name not in CORRUPTIONS:
        raise InputError(f"corruption must be one of {', '.join(CORRUPTIONS)}; got {name!r}.")
    if severity not in SEVERITIES:
        raise InputError(f"severity must be from 1 to 5; got {severity!r}.")
    if images.ndim != 4 or images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8:
        raise InputError(f"images must be uint8 of shape (n, 32, 32, 3); got {images.dtype}, {images.shape}.")
    function = CORRUPTIONS[name]
    if name == "frost" and frost_folder is not None:
        function = partial(weather.frost, textures=weather.read_frost(frost_folder))
    result = np.empty_like(images)
    for start in range(0, len(images), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), severity, start])
        result[rows] = function(images[rows], severity, rng).astype(np.uint8)
    return result
