"""MNIST, imbalanced 1 to 100, and its targets: MNIST-M, and USPS for the data at hand.

Official layouts, below the data folder::

    mnist/train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz     (or MNIST/raw/..., packed or not)
    mnist_m/mnist_m_test/*.png, mnist_m/mnist_m_test_labels.txt      (lines "00000000.png 7")
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.datasets.suite import Suite
from leadline.bench.download import Download
from leadline.bench.inputs import ImageArray, Options, Split, Task, locate, require, thinned
from leadline.errors import InputError

IMBALANCE = 100.0
TRAIN_IMAGES, TRAIN_LABELS = (
    "|".join(f"{folder}/train-{kind}-ubyte{end}" for folder in ("mnist", "MNIST/raw") for end in (".gz", ""))
    for kind in ("images-idx3", "labels-idx1")
)
MNIST_M_LABELS, MNIST_M_IMAGES = "mnist_m/mnist_m_test_labels.txt", "mnist_m/mnist_m_test"
MNIST_RAW, MNIST_M_RAW, USPS_RAW = "raw/mnist/mnist.npz", "raw/mnist_m/test.npz", "raw/usps/usps.npz"
_HALF = (0.5, 0.5, 0.5)


def load_mnist(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return imbalanced MNIST and the test set of MNIST-M."""
    del model
    images, labels = (read_idx(locate(data, path)) for path in (TRAIN_IMAGES, TRAIN_LABELS))
    return _task(images, labels, {"mnist-m": lambda: options.limited(read_mnist_m(data))}, options, seed)


def load_mnist_raw(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return imbalanced MNIST with clean MNIST, part of MNIST-M and USPS as targets, from ``raw/``."""
    del model
    with np.load(data / MNIST_RAW, allow_pickle=False) as file:
        mnist = dict(file)

    def read(path: str) -> Split:
        with np.load(data / path, allow_pickle=False) as file:
            return options.limited(digits(file["x"], file["y"]))

    targets: dict[str, Callable[[], Split]] = {
        "clean": lambda: options.limited(digits(mnist["x_test"], mnist["y_test"])),
        "mnist-m": lambda: read(MNIST_M_RAW),
        "usps": lambda: read(USPS_RAW),
    }
    return _task(mnist["x_train"], mnist["y_train"], targets, options, seed)


def _task(
    images: NDArray[Any],
    labels: NDArray[Any],
    targets: dict[str, Callable[[], Split]],
    options: Options,
    seed: int,
) -> Task:
    """Thin out the digits and hold a part of the rest out as the labelled source."""
    train, source = thinned(digits(images, labels), IMBALANCE, 10, options, seed)
    return Task(source, targets, train)


def digits(images: NDArray[np.uint8], labels: NDArray[Any]) -> Split:
    """Bring digits, grey (n, h, w) or coloured (n, h, w, 3), to 28 x 28 pixels in three channels."""
    from PIL import Image

    if images.shape[1:3] != (28, 28):
        resized = [np.asarray(Image.fromarray(image).resize((28, 28), Image.Resampling.BILINEAR)) for image in images]
        images = np.stack(resized)
    if images.ndim == 3:
        images = np.repeat(images[..., None], 3, axis=3)
    return Split(ImageArray(images, _HALF, _HALF), labels)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file, gzipped or not: two zeros, type 8 (bytes), number of dimensions, their sizes, the values."""
    content = require(path).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    zeros, kind, dimensions = struct.unpack_from(">HBB", content)
    sizes = struct.unpack_from(f">{dimensions}I", content, 4) if dimensions else ()
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions)
    if zeros != 0 or kind != 8 or values.size != int(np.prod(sizes)):
        raise InputError(f"{path} must be an IDX file of bytes with {sizes} values; got {values.size}.")
    return values.reshape(sizes)


def read_mnist_m(data: Path) -> Split:
    """Read the test set of MNIST-M: a folder of PNG files and a text file of names and labels."""
    from PIL import Image

    lines = [line.split() for line in (data / MNIST_M_LABELS).read_text().splitlines() if line.strip()]
    images = []
    for name, _ in lines:
        with Image.open(data / MNIST_M_IMAGES / name) as file:
            images.append(np.asarray(file.convert("RGB").resize((28, 28), Image.Resampling.BILINEAR)))
    return digits(np.stack(images), np.array([int(label) for _, label in lines]))


_OSSCI = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_MNIST_FILES = tuple(
    Download(url=_OSSCI + name, path=f"mnist/{name}", makes=makes, checksum=md5)
    for name, makes, md5 in (
        ("train-images-idx3-ubyte.gz", TRAIN_IMAGES, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", TRAIN_LABELS, "d53e105ee54ea40749a09fcbcd1e9432"),
    )
)
SUITES = (
    Suite(
        name="mnist",
        shift="synthetic",
        source="MNIST, classes 1:100",
        targets="MNIST-M",
        models=("mnist-cnn",),
        n_classes=10,
        size="0.1 GB",
        licence="MNIST CC BY-SA 3.0; MNIST-M research use",
        kind="trained",
        needs=(TRAIN_IMAGES, TRAIN_LABELS, MNIST_M_LABELS, MNIST_M_IMAGES),
        load=load_mnist,
        downloads=(
            *_MNIST_FILES,
            Download(
                url="https://cornell.box.com/shared/static/jado7quprg6hzzdubvwzh9umr75damwi",
                path="mnist_m.tar.gz",
                makes=MNIST_M_LABELS,
                checksum="859df31c91afe82e80e5012ba928f279",
                unpack=".",
            ),
        ),
        recipe="mnist",
        paper={"MNIST/MNIST-M": ".*"},
        same_setting=True,
    ),
    Suite(
        name="mnist-raw",
        shift="synthetic",
        source="MNIST, classes 1:100",
        targets="clean, MNIST-M (4,000), USPS",
        models=("mnist-cnn",),
        n_classes=10,
        size="with the data",
        licence="MNIST CC BY-SA 3.0; MNIST-M and USPS research use",
        kind="trained",
        needs=(MNIST_RAW, MNIST_M_RAW, USPS_RAW),
        load=load_mnist_raw,
        recipe="mnist",
        paper={"MNIST/MNIST-M": "mnist-m"},
    ),
)
