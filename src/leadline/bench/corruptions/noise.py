"""Noise: Gaussian, shot, impulse, speckle. Images are uint8 (n, 32, 32, 3); results float in [0, 255]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.uint8]
Floats = NDArray[np.floating]


def to_levels(fractions: Floats) -> Floats:
    """Return values in [0, 1] as grey levels in [0, 255], clipped."""
    return np.asarray(np.clip(fractions, 0.0, 1.0) * 255.0)


def gaussian_noise(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Add normal noise of standard deviation 0.04 to 0.10."""
    scale = (0.04, 0.06, 0.08, 0.09, 0.10)[severity - 1]
    return to_levels(images / 255.0 + rng.normal(scale=scale, size=images.shape))


def shot_noise(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Count photons: Poisson noise at 500 to 50 photons for white."""
    photons = (500, 250, 100, 75, 50)[severity - 1]
    return to_levels(rng.poisson(images / 255.0 * photons) / photons)


def impulse_noise(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Turn 1 % to 7 % of all colour values black or white, half of them each."""
    amount = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    fractions = images / 255.0
    hit = rng.random(images.shape) < amount
    fractions[hit] = rng.integers(0, 2, np.count_nonzero(hit))
    return to_levels(fractions)


def speckle_noise(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Add normal noise in proportion to the brightness, standard deviation 0.06 to 0.2."""
    scale = (0.06, 0.1, 0.12, 0.16, 0.2)[severity - 1]
    fractions = images / 255.0
    return to_levels(fractions + fractions * rng.normal(scale=scale, size=images.shape))
