"""What a classifier takes in: images in memory, image files, texts or feature vectors, with labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import IntArray
from leadline.errors import InputError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Rows = NDArray[np.intp]
#: The share of the training data that becomes the labelled source where there is no official validation set.
HELD_OUT = 0.2


class Inputs(Protocol):
    """A sequence of inputs that gives batches ready for a model."""

    def __len__(self) -> int:
        """Return the number of inputs."""

    def take(self, rows: Rows) -> Inputs:
        """Return some of the inputs, in the order given."""

    def batch(self, rows: Rows) -> Any:
        """Return some of the inputs as the model wants them."""


@dataclass(frozen=True, eq=False)
class ImageArray:
    """Images in memory.

    Attributes
    ----------
    pixels
        Shape (n, height, width, 3), uint8.
    mean, std
        Per channel, subtracted from and divided into pixels scaled to [0, 1].
    """

    pixels: NDArray[np.uint8]
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.pixels)

    def take(self, rows: Rows) -> Self:
        """Return some of the images."""
        return replace(self, pixels=self.pixels[rows])

    def batch(self, rows: Rows) -> NDArray[np.float32]:
        """Return normalised images of shape (b, 3, height, width)."""
        return normalise(self.pixels[rows], self.mean, self.std)


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images on disk, decoded when they are asked for.

    Attributes
    ----------
    paths
        The files.
    resize
        Length to which the shorter side is brought; with ``square``, both sides.
    crop
        Side of the square cut from the middle.
    bicubic
        Whether to interpolate bicubically instead of bilinearly.
    """

    paths: tuple[Path, ...]
    resize: int = 256
    crop: int = 224
    square: bool = False
    bicubic: bool = False

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.paths)

    def take(self, rows: Rows) -> Self:
        """Return some of the images."""
        return replace(self, paths=tuple(self.paths[row] for row in rows))

    def batch(self, rows: Rows) -> NDArray[np.float32]:
        """Return normalised images of shape (b, 3, crop, crop)."""
        pixels = np.stack([self._read(self.paths[row]) for row in rows])
        return normalise(pixels, IMAGENET_MEAN, IMAGENET_STD)

    def _read(self, path: Path) -> NDArray[np.uint8]:
        """Decode, resize and cut out the middle."""
        from PIL import Image

        with Image.open(path) as file:
            image = file.convert("RGB")
        shorter = min(image.size)  # in whole numbers: 103 * (256 / 103) is below 256
        width, height = ((self.resize if self.square else side * self.resize // shorter) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BICUBIC if self.bicubic else Image.Resampling.BILINEAR)
        left, top = (round((side - self.crop) / 2) for side in image.size)
        return np.asarray(image.crop((left, top, left + self.crop, top + self.crop)))


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts; the model brings its own tokens."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    def take(self, rows: Rows) -> Self:
        """Return some of the texts."""
        return replace(self, texts=tuple(self.texts[row] for row in rows))

    def batch(self, rows: Rows) -> list[str]:
        """Return some of the texts."""
        return [self.texts[row] for row in rows]


@dataclass(frozen=True, eq=False)
class Features:
    """Feature vectors of shape (n, d), dense or sparse."""

    values: Any

    def __len__(self) -> int:
        """Return the number of vectors."""
        return int(self.values.shape[0])

    def take(self, rows: Rows) -> Self:
        """Return some of the vectors."""
        return replace(self, values=self.values[rows])

    def batch(self, rows: Rows) -> Any:
        """Return some of the vectors."""
        return self.values[rows]


def find(data: Path, paths: str) -> Path | None:
    """Return the first of the paths ``a|b/*.npz`` below the data folder that is there; None where none is.

    An empty folder is not there: it is what a failed attempt to unpack an archive leaves behind.
    """
    matches = (match for place in paths.split("|") for match in data.glob(place))
    return next((match for match in matches if match.is_file() or any(match.iterdir())), None)


def locate(data: Path, paths: str) -> Path:
    """Return the first of the paths ``a|b`` below the data folder that is there, or ``a``."""
    return find(data, paths) or data / paths.split("|", maxsplit=1)[0]


def require(path: Path) -> Path:
    """Return a path that exists, or say how to get what is missing."""
    if not path.exists():
        raise InputError(f"{path} does not exist; see `leadline bench prepare`.")
    return path


def normalise(pixels: NDArray[np.uint8], mean: tuple[float, ...], std: tuple[float, ...]) -> NDArray[np.float32]:
    """Scale pixels (n, h, w, 3) to [0, 1], normalise each channel and return (n, 3, h, w).

    The channels of a pixel stay side by side in memory, where convolutions on a CPU are the fastest.
    """
    scaled = (pixels.astype(np.float32) / 255.0 - np.array(mean, np.float32)) / np.array(std, np.float32)
    return np.asarray(scaled, dtype=np.float32).transpose(0, 3, 1, 2)


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs with their labels, shape (n,)."""

    inputs: Inputs
    labels: IntArray

    def __post_init__(self) -> None:
        """Check that there are as many labels as inputs."""
        object.__setattr__(self, "labels", np.asarray(self.labels, dtype=np.int64))
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"labels must be as many as inputs, {len(self.inputs)}; got {len(self.labels)}. "
                "Check that the dataset's files are complete."
            )

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    def take(self, rows: Rows) -> Split:
        """Return some of the samples, in the order given."""
        return Split(self.inputs.take(rows), self.labels[rows])


@dataclass(frozen=True, eq=False)
class Task:
    """A dataset as the benchmark uses it.

    Attributes
    ----------
    source
        Labelled data like the training data: stops the training early and teaches the estimators.
    targets
        By name, how to read each target.
    train
        What to train on; None for models that come trained.
    """

    source: Split
    targets: Mapping[str, Callable[[], Split]] = field(default_factory=dict)
    train: Split | None = None

    @property
    def training(self) -> Split:
        """What to train on, for those who cannot do without."""
        if self.train is None:
            raise InputError("this dataset has nothing to train on; its models come trained.")
        return self.train


@dataclass(frozen=True)
class Options:
    """What the paper leaves open, with a default for each.

    Attributes
    ----------
    cifar101
        Which CIFAR-10.1: "v6", which its authors recommend, or "v4".
    imagenet_source
        "all" labelled ImageNet validation images are the source: the pretrained models have not seen any of
        them. "half": a random half, stratified by class; the other half becomes the target ``clean``.
    imbalance
        Over which classes the class sizes rise linearly from the smallest to the largest: "all" (for
        CIFAR-100, class 99 is the largest) or "first-ten" (the paper names classes 0 and 9; classes from 10
        on stay whole).
    corruptions
        "official" reads the published files of CIFAR-10-C and CIFAR-100-C, "generated" makes the same
        corruptions from the clean test images; "auto" takes the official files where they are.
    frost_folder
        Photographs of frost for generated corruptions; None for procedural textures.
    limit
        At most so many samples per target and training set, chosen at random but always the same; None for
        all.
    """

    cifar101: str = "v6"
    imagenet_source: str = "all"
    imbalance: str = "all"
    corruptions: str = "auto"
    frost_folder: Path | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse choices that do not exist."""
        choices = {
            "cifar101": ("v4", "v6"), "imagenet_source": ("all", "half"), "imbalance": ("all", "first-ten"),
            "corruptions": ("auto", "official", "generated"),
        }  # fmt: skip
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}.")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit must be at least 1; got {self.limit}.")

    def limited(self, split: Split) -> Split:
        """Return at most ``limit`` samples of a split."""
        if self.limit is None or len(split) <= self.limit:
            return split
        return split.take(np.sort(np.random.default_rng(0).choice(len(split), self.limit, replace=False)))


def imbalanced_rows(labels: IntArray, ratio: float, n_classes: int, rng: np.random.Generator) -> Rows:
    """Choose rows so that class sizes rise linearly, the first class having 1/ratio of the last one's.

    Parameters
    ----------
    labels
        Shape (n,).
    ratio
        Size of class ``n_classes - 1`` over that of class 0; classes above keep all their rows.
    n_classes
        Number of classes over which the sizes rise.
    rng
        Chooses the rows.

    Returns
    -------
    Rows
        Sorted row numbers.

    Examples
    --------
    >>> rows = imbalanced_rows(np.repeat(np.arange(3), 30), 3.0, 3, np.random.default_rng(0))
    >>> np.bincount(np.repeat(np.arange(3), 30)[rows])
    array([10, 20, 30])
    """
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        place = min(float(label) / max(n_classes - 1, 1), 1.0)
        share = 1.0 / ratio + (1.0 - 1.0 / ratio) * place
        chosen.append(rng.choice(rows, max(1, round(share * len(rows))), replace=False))
    return np.sort(np.concatenate(chosen))


def holdout(split: Split, share: float, seed: int) -> tuple[Split, Split]:
    """Divide a split into two, the second with ``share`` of the samples of each class (at least one)."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(split), dtype=bool)
    for label in np.unique(split.labels):
        rows = np.flatnonzero(split.labels == label)
        held[rng.choice(rows, max(1, round(share * len(rows))), replace=False)] = True
    return split.take(np.flatnonzero(~held)), split.take(np.flatnonzero(held))


def thinned(split: Split, ratio: float, n_classes: int, options: Options, seed: int) -> tuple[Split, Split]:
    """Thin out the classes by :func:`imbalanced_rows`, then hold a share of the rest out as the labelled source."""
    rows = imbalanced_rows(split.labels, ratio, n_classes, np.random.default_rng(seed))
    return holdout(options.limited(split.take(rows)), HELD_OUT, seed)
