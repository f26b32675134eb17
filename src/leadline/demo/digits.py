"""Digits for the demos: images, a small network, and real shifts.

scikit-learn ships 1,797 images of handwritten digits, 8 x 8 pixels each. A small network learns a third of
them, a third becomes the labelled source, and the last third is shifted in several ways into targets of known
accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import IntArray, Outputs
from leadline.errors import InputError

SEED = 0
BRIGHTEST = 16.0

Images = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Digits:
    """A network, and the images that it has not learned.

    Attributes
    ----------
    network
        Of scikit-learn.
    source_images, source_labels
        Shapes (n, 8, 8) and (n,): the labelled source.
    images, labels
        Shapes (m, 8, 8) and (m,): what comes after it.
    """

    network: Any
    source_images: Images
    source_labels: IntArray
    images: Images
    labels: IntArray

    @property
    def source(self) -> Outputs:
        """The network's outputs on the source, with labels."""
        return Outputs(self.logits(self.source_images), self.source_labels)

    def logits(self, images: Images) -> NDArray[np.float32]:
        """Return the network's outputs before softmax, shape (n, 10); scikit-learn gives probabilities only."""
        rows = _pixels(images)
        *hidden, last = zip(self.network.coefs_, self.network.intercepts_, strict=True)
        for weights, bias in hidden:
            rows = np.maximum(rows @ weights + bias, 0.0)
        weights, bias = last
        return np.asarray(rows @ weights + bias, dtype=np.float32)


def train() -> Digits:
    """Train a small network on a third of the digits."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        raise InputError(
            "the demo needs scikit-learn, which is not installed; run pip install 'leadline[demo]'."
        ) from error

    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    images, labels = digits.images[order], digits.target[order].astype(np.int64)
    train, source, rest = np.array_split(np.arange(len(labels)), 3)
    network = MLPClassifier((64,), alpha=1.0, learning_rate_init=3e-3, max_iter=1000, random_state=SEED)
    network.fit(_pixels(images[train]), labels[train])
    return Digits(network, images[source], labels[source], images[rest], labels[rest])


def digits_outputs() -> tuple[Outputs, dict[str, Outputs]]:
    """Return a small network's outputs on labelled source digits, and on targets by name of shift."""
    digits = train()
    targets = {}
    for number, name in enumerate(TARGETS):
        rng = np.random.default_rng([SEED, number])
        n = len(digits.labels)
        rows = mostly(FREQUENT, digits.labels, n, rng) if name == LABEL_SHIFT else np.arange(n)
        shifted = SHIFTS[name](digits.images, rng) if name in SHIFTS else digits.images
        targets[name] = Outputs(digits.logits(shifted[rows]), digits.labels[rows])
    return digits.source, targets


def refuse_to_overwrite(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Refuse, before any work, to overwrite what is there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give another name.")
    existing = next((name for name in names if (folder / name).exists()), None)
    if existing is not None and not force:
        raise InputError(f"file {folder / existing} exists; use --force to overwrite it, or another folder.")


def _pixels(images: Images) -> Images:
    """Return images as rows of numbers from 0 to 1."""
    return images.reshape(len(images), -1) / BRIGHTEST


def _rotate(images: Images, rng: Rng, *, degrees: float) -> Images:
    from scipy.ndimage import rotate

    del rng
    return np.asarray(rotate(images, degrees, axes=(2, 1), reshape=False, order=1))


def _translate(images: Images, rng: Rng, *, pixels: float) -> Images:
    from scipy.ndimage import shift

    del rng
    return np.asarray(shift(images, (0, 0, pixels), order=1))


def _blur(images: Images, rng: Rng, *, width: float) -> Images:
    from scipy.ndimage import gaussian_filter

    del rng
    return np.asarray(gaussian_filter(images, (0, width, width)))


def add_noise(images: Images, rng: Rng, *, spread: float) -> Images:
    """Return images with noise, of a standard deviation of so much of the brightest."""
    return np.clip(images + rng.normal(0.0, spread * BRIGHTEST, images.shape), 0.0, BRIGHTEST)


def _fade(images: Images, rng: Rng, *, contrast: float) -> Images:
    del rng
    return BRIGHTEST / 2 + contrast * (images - BRIGHTEST / 2)


def _invert(images: Images, rng: Rng, *, share: float) -> Images:
    inverted = rng.random((len(images), 1, 1)) < share
    return np.where(inverted, BRIGHTEST - images, images)


def _drop(images: Images, rng: Rng, *, share: float) -> Images:
    return np.where(rng.random(images.shape) < share, 0.0, images)


def _occlude(images: Images, rng: Rng, *, size: int) -> Images:
    covered = images.copy()
    corners = rng.integers(0, images.shape[1] - size + 1, (len(images), 2))
    for image, (top, left) in zip(covered, corners, strict=True):
        image[top : top + size, left : left + size] = 0.0
    return covered


def mostly(frequent: tuple[int, ...], labels: IntArray, n: int, rng: Rng) -> NDArray[np.intp]:
    """Draw n rows, most of them of the frequent classes."""
    often = np.isin(labels, frequent)
    weight = np.where(often, 0.8 / often.sum(), 0.2 / (~often).sum())
    return rng.choice(len(labels), n, p=weight)


SHIFTS: dict[str, Callable[[Images, Rng], Images]] = {
    "rotate10": partial(_rotate, degrees=10.0),
    "rotate20": partial(_rotate, degrees=20.0),
    "translate": partial(_translate, pixels=0.5),
    "blur": partial(_blur, width=1.0),
    "noise1": partial(add_noise, spread=0.2),
    "noise2": partial(add_noise, spread=0.4),
    "contrast": partial(_fade, contrast=0.5),
    "invert": partial(_invert, share=0.1),
    "missing1": partial(_drop, share=0.15),
    "missing2": partial(_drop, share=0.3),
    "occlude": partial(_occlude, size=3),
}
LABEL_SHIFT = "labelshift"
FREQUENT = (1, 8, 9)
TARGETS = ("clean", *SHIFTS, LABEL_SHIFT)
