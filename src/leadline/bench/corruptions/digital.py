"""Digital: brightness, contrast, saturation, elastic, pixels, JPEG. Images are uint8 (n, 32, 32, 3)."""

from __future__ import annotations

from io import BytesIO
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from leadline.bench.corruptions.noise import Floats, Images, to_levels


def to_hsv(rgb: Floats) -> NDArray[np.float64]:
    """Turn red, green, blue (last axis, in [0, 1]) into hue, saturation, value in [0, 1]."""
    value = rgb.max(axis=-1)
    spread = value - rgb.min(axis=-1)
    red, green, blue = np.moveaxis(rgb, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hue = np.select(
            [blue == value, green == value], [4.0 + (red - green) / spread, 2.0 + (blue - red) / spread],
            (green - blue) / spread,
        )  # fmt: skip
        saturation = spread / value
    grey = spread == 0.0
    return np.stack([np.where(grey, 0.0, hue / 6.0 % 1.0), np.where(grey, 0.0, saturation), value], axis=-1)


def to_rgb(hsv: Floats) -> NDArray[np.float64]:
    """Turn hue, saturation, value (last axis, in [0, 1]) into red, green, blue."""
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    sector = np.floor(hue * 6.0)
    rest = hue * 6.0 - sector
    low = value * (1.0 - saturation)
    falling = value * (1.0 - rest * saturation)
    rising = value * (1.0 - (1.0 - rest) * saturation)
    index = sector.astype(np.intp) % 6
    channels = (
        (value, falling, low, low, rising, value),
        (rising, value, value, falling, low, low),
        (low, low, rising, value, value, falling),
    )
    return np.stack([np.choose(index, options) for options in channels], axis=-1)


def brightness(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Raise the value of each colour by 0.05 to 0.3."""
    del rng
    hsv = to_hsv(images / 255.0)
    hsv[..., 2] = np.clip(hsv[..., 2] + (0.05, 0.1, 0.15, 0.2, 0.3)[severity - 1], 0.0, 1.0)
    return to_levels(to_rgb(hsv))


def saturate(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Scale and shift the saturation: nearly grey at severities 1 and 2, garish from 3 on."""
    del rng
    factor, shift = ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))[severity - 1]
    hsv = to_hsv(images / 255.0)
    hsv[..., 1] = np.clip(hsv[..., 1] * factor + shift, 0.0, 1.0)
    return to_levels(to_rgb(hsv))


def contrast(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Pull each channel towards its mean over the image."""
    del rng
    factor = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
    fractions = images / 255.0
    means = fractions.mean(axis=(1, 2), keepdims=True)
    return to_levels((fractions - means) * factor + means)


def jpeg_compression(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Store as JPEG at quality 80 to 40."""
    from PIL import Image

    del rng
    quality = (80, 65, 58, 50, 40)[severity - 1]
    result = np.empty(images.shape)
    for target, pixels in zip(result, images, strict=True):
        file = BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=quality)
        with Image.open(file) as decoded:
            target[:] = np.asarray(decoded)
    return result


def pixelate(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Shrink to 95 % to 65 % and enlarge again, both with a box filter."""
    from PIL import Image

    del rng
    side = int(32 * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    box = Image.Resampling.BOX
    result = np.empty(images.shape)
    for target, pixels in zip(result, images, strict=True):
        target[:] = np.asarray(Image.fromarray(pixels).resize((side, side), box).resize((32, 32), box))
    return result


def elastic_transform(images: Images, severity: int, rng: np.random.Generator) -> Floats:
    """Warp by a random affine map, then by a smooth random field."""
    amplitude, sigma, jitter = (
        (0.0, 0.0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96),
    )[severity - 1]  # fmt: skip
    n = len(images)
    rows, columns = (axis.astype(np.float64) for axis in np.indices((32, 32)))
    corners = np.array([[26.0, 26.0], [26.0, 6.0], [6.0, 6.0]])
    moved = corners + rng.uniform(-jitter, jitter, size=(n, 3, 2))
    # The affine map takes moved corners (x, y, 1) back to the original ones: solve for its 2 x 3 matrix.
    design = np.concatenate([moved, np.ones((n, 3, 1))], axis=2)
    back = np.linalg.solve(design, np.broadcast_to(corners, (n, 3, 2)))
    grid = np.stack([columns, rows, np.ones((32, 32))], axis=-1)
    positions = np.einsum("hwk,nkd->nhwd", grid, back)
    warped = sample(images / 255.0, positions[..., 1], positions[..., 0], "mirror")
    field = rng.uniform(-1.0, 1.0, size=(2, n, 32, 32))
    if amplitude:
        field = ndimage.gaussian_filter(field, (0.0, 0.0, sigma, sigma), mode="reflect", truncate=3.0)
    field *= amplitude
    return to_levels(sample(warped, rows + field[0], columns + field[1], "reflect"))


def sample(images: Floats, rows: Floats, columns: Floats, outside: Literal["mirror", "reflect"]) -> Floats:
    """Read images at real positions by bilinear interpolation.

    Parameters
    ----------
    images
        Shape (n, h, w, channels).
    rows, columns
        Shape (n, h, w): where to read.
    outside
        "reflect" repeats the border pixel (c b a | a b c), "mirror" does not (c b | a b c), as in
        ``scipy.ndimage``.
    """
    n, height, width = images.shape[:3]
    top, left = np.floor(rows).astype(np.intp), np.floor(columns).astype(np.intp)
    down, right = (rows - top)[..., None], (columns - left)[..., None]
    each = np.arange(n)[:, None, None]

    def pixel(row: NDArray[np.intp], column: NDArray[np.intp]) -> Floats:
        return np.asarray(images[each, fold(row, height, outside), fold(column, width, outside)])

    upper = pixel(top, left) * (1.0 - right) + pixel(top, left + 1) * right
    lower = pixel(top + 1, left) * (1.0 - right) + pixel(top + 1, left + 1) * right
    return np.asarray(upper * (1.0 - down) + lower * down)


def fold(index: NDArray[np.intp], size: int, outside: Literal["mirror", "reflect"]) -> NDArray[np.intp]:
    """Bring indices outside 0, ..., size - 1 back inside."""
    if outside == "mirror":
        index = np.abs(index) % (2 * size - 2)
        return np.where(index < size, index, 2 * size - 2 - index)
    index = index % (2 * size)
    return np.where(index < size, index, 2 * size - 1 - index)
