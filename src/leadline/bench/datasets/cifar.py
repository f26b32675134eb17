"""CIFAR-10 and CIFAR-100, their successors CIFAR-10.1 and CIFAR-10.2, and CIFAR-10-C and CIFAR-100-C.

Official layouts, below the data folder::

    cifar-10-batches-bin/data_batch_1.bin ... test_batch.bin     (or cifar-10-batches-py/data_batch_1 ... test_batch)
    cifar-100-binary/train.bin, test.bin                         (or cifar-100-python/train, test)
    cifar-10.1/cifar10.1_v6_data.npy, cifar10.1_v6_labels.npy    (and v4; or CIFAR-10.1/datasets/...)
    cifar-10.2/cifar102_test.npz                                 (arrays images and labels; or CIFAR-10.2/...)
    CIFAR-10-C/<corruption>.npy, labels.npy                      (50,000 images each: severities 1 to 5 in turn)
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from leadline.bench.datasets.suite import Suite
from leadline.bench.download import Download
from leadline.bench.inputs import ImageArray, Options, Split, Task, find, locate, require, thinned
from leadline.errors import InputError

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
IMBALANCE = 3.0
CIFAR_101, CIFAR_102 = "cifar-10.1|CIFAR-10.1/datasets", "cifar-10.2|CIFAR-10.2"
#: The binary and the Python layout, by the number of classes.
FOLDERS = {10: ("cifar-10-batches-bin", "cifar-10-batches-py"), 100: ("cifar-100-binary", "cifar-100-python")}
RESNETS, RESNET_WEIGHTS = ("resnet20", "resnet32", "resnet56"), "raw/cifar10/{}.safetensors"
RESNET_IMAGES = "raw/cifar10/test.npz"
_PIXELS = 3 * 32 * 32


def load_cifar10(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return imbalanced CIFAR-10 and its targets CIFAR-10.1, CIFAR-10.2 and CIFAR-10-C."""
    del model
    train, source = thinned(read_cifar(data, 10, "train"), IMBALANCE, 10, options, seed)
    targets: dict[str, Callable[[], Split]] = {}
    if find(data, CIFAR_101):
        targets["cifar-10.1"] = lambda: options.limited(read_cifar101(data, options.cifar101))
    if find(data, CIFAR_102):
        targets["cifar-10.2"] = lambda: options.limited(read_cifar102(data))
    return Task(source, targets | corrupted(data, 10, options), train)


def load_cifar100(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return imbalanced CIFAR-100 and its target CIFAR-100-C."""
    del model
    rising = 10 if options.imbalance == "first-ten" else 100
    train, source = thinned(read_cifar(data, 100, "train"), IMBALANCE, rising, options, seed)
    return Task(source, corrupted(data, 100, options), train)


def read_cifar(data: Path, n_classes: int, part: str) -> Split:
    """Read the training or test images of CIFAR-10 or CIFAR-100 in the binary or the Python layout.

    Parameters
    ----------
    data
        The data folder.
    n_classes
        10 or 100.
    part
        "train" or "test".
    """
    names = [part] if n_classes == 100 else [f"data_batch_{i}" for i in range(1, 6)] * (part == "train")
    names = names or ["test_batch"]
    folders = FOLDERS[n_classes]
    if binary := find(data, folders[0]):
        pieces = [_read_binary(binary / f"{name}.bin", label_bytes=1 + (n_classes == 100)) for name in names]
    elif python := find(data, folders[1]):
        pieces = [_read_python(python / name, b"labels" if n_classes == 10 else b"fine_labels") for name in names]
    else:
        raise InputError(f"CIFAR-{n_classes} must be in {data / folders[0]} or {data / folders[1]}; neither exists.")
    pixels, labels = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return _split(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels)


def _read_binary(path: Path, label_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read rows of label bytes (the last is the fine label) and 3,072 pixel bytes."""
    content = np.fromfile(require(path), dtype=np.uint8)
    if not content.size or content.size % (_PIXELS + label_bytes):
        raise InputError(f"{path} must hold rows of {_PIXELS + label_bytes} bytes; got {content.size}. Get it again.")
    rows = content.reshape(-1, _PIXELS + label_bytes)
    return rows[:, label_bytes:], rows[:, label_bytes - 1]


#: What reading a damaged pickle may raise; the format has no checksum.
_DAMAGE = (
    pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError,
    OverflowError, MemoryError,
)  # fmt: skip


class _ArraysOnly(pickle.Unpickler):
    """Read a pickle that holds nothing but containers, text, numbers and NumPy arrays."""

    _ALLOWED = frozenset({
        ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
        ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
    })  # fmt: skip

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Refuse everything that a plain array does not need."""
        if (module_name, global_name) not in self._ALLOWED:
            raise InputError(f"CIFAR files must hold arrays only; got {module_name}.{global_name}.")
        if module_name == "numpy.core.multiarray":  # its name before NumPy 2
            module_name = "numpy._core.multiarray"
        return super().find_class(module_name, global_name)


def _read_python(path: Path, labels: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read a batch of the Python layout, without running anything in it."""
    try:
        batch = _ArraysOnly(io.BytesIO(require(path).read_bytes()), encoding="bytes").load()
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{path} must be a CIFAR pickle; it is damaged ({type(error).__name__}). Get it again."
        ) from error
    if not isinstance(batch, dict) or b"data" not in batch or labels not in batch:
        raise InputError(f"{path} must hold {labels.decode()} and data. Check that it is an official CIFAR file.")
    pixels, numbers = batch[b"data"], batch[labels]
    sound = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.ndim == 2
    if not sound or pixels.shape[1] != _PIXELS or len(numbers) != len(pixels):
        raise InputError(f"{path} must hold rows of {_PIXELS} pixels with a label each; it does not. Get it again.")
    return pixels, np.asarray(numbers, dtype=np.uint8)


def read_cifar101(data: Path, version: str) -> Split:
    """Read CIFAR-10.1, version "v4" (2,021 images) or "v6" (2,000, balanced)."""
    stem = locate(data, CIFAR_101) / f"cifar10.1_{version}"
    return _split(_load(Path(f"{stem}_data.npy")), _load(Path(f"{stem}_labels.npy")))


def read_cifar102(data: Path) -> Split:
    """Read the test set of CIFAR-10.2 (2,000 images)."""
    path = locate(data, CIFAR_102) / "cifar102_test.npz"
    with np.load(require(path), allow_pickle=False) as file:
        return _split(file["images"], file["labels"])


def corrupted(data: Path, n_classes: int, options: Options) -> dict[str, Callable[[], Split]]:
    """Return how to get each corruption at each severity, from the official files or generated."""
    folder = data / f"CIFAR-{n_classes}-C"
    official = options.corruptions == "official" or (options.corruptions == "auto" and folder.is_dir())
    names = [name for name in CORRUPTIONS if not official or (folder / f"{name}.npy").exists()]
    if not names:
        raise InputError(f"{folder} must hold the official files, such as fog.npy; it has none of them.")

    def read(name: str, severity: int) -> Split:
        if official:
            images, labels = _load(folder / f"{name}.npy"), _load(folder / "labels.npy")
            size = len(images) // len(SEVERITIES)
            rows = slice((severity - 1) * size, severity * size)
            return options.limited(_split(np.asarray(images[rows]), np.asarray(labels[rows])))
        clean = options.limited(read_cifar(data, n_classes, "test"))
        assert isinstance(clean.inputs, ImageArray)  # of read_cifar
        pixels = corrupt(clean.inputs.pixels, name, severity, frost_folder=options.frost_folder)
        return _split(pixels, clean.labels)

    return {f"{name}_{severity}": partial(read, name, severity) for name in names for severity in SEVERITIES}


def load_resnets(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return CIFAR-10 test images for public ResNets: 0-4999 as source, 5000-6999 corrupted as targets."""
    del model, seed
    with np.load(data / RESNET_IMAGES, allow_pickle=False) as file:
        images, labels = file["x"], file["y"]

    def target(name: str, severity: int) -> Split:
        rows = slice(5000, 5000 + (options.limit or 2000))
        pixels = images[rows]
        if severity:
            pixels = corrupt(pixels, name, severity, frost_folder=options.frost_folder)
        return Split(ImageArray(pixels), labels[rows])

    source = options.limited(Split(ImageArray(images[:5000]), labels[:5000]))
    targets: dict[str, Callable[[], Split]] = {"clean": partial(target, "clean", 0)}
    for name in CORRUPTIONS:
        targets |= {f"{name}_{severity}": partial(target, name, severity) for severity in SEVERITIES}
    return Task(source, targets)


def _load(path: Path) -> NDArray[Any]:
    """Map an array file into memory, or say that it is missing."""
    return np.asarray(np.load(require(path), mmap_mode="r", allow_pickle=False))


def _split(pixels: NDArray[Any], labels: NDArray[Any]) -> Split:
    """Put images and labels together, with CIFAR's normalisation."""
    return Split(ImageArray(np.ascontiguousarray(pixels, dtype=np.uint8), MEAN, STD), labels)


_TORONTO = "https://www.cs.toronto.edu/~kriz/"
_GITHUB = "https://github.com/modestyachts/"
_ZENODO = "https://zenodo.org/records/"
_CIFAR_10, _CIFAR_100 = "|".join(FOLDERS[10]), "|".join(FOLDERS[100])
_CIFAR_101_FILES = tuple(
    Download(
        url=f"{_GITHUB}CIFAR-10.1/raw/master/datasets/{name}",
        path=f"cifar-10.1/{name}",
        makes=f"cifar-10.1/{name}|CIFAR-10.1/datasets/{name}",
        checksum=sha256,
    )
    for name, sha256 in (
        ("cifar10.1_v4_data.npy", "5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75"),
        ("cifar10.1_v4_labels.npy", "1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18"),
        ("cifar10.1_v6_data.npy", "2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6"),
        ("cifar10.1_v6_labels.npy", "ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448"),
    )
)
SUITES = (
    Suite(
        name="cifar10",
        shift="synthetic",
        source="CIFAR-10, classes 1:3",
        targets="CIFAR-10.1, CIFAR-10.2, CIFAR-10-C (95)",
        models=("resnet18",),
        n_classes=10,
        size="3.1 GB",
        licence="free to use, cite Krizhevsky 2009; CIFAR-10-C CC BY 4.0",
        kind="trained",
        needs=(_CIFAR_10,),
        extras=(CIFAR_101, CIFAR_102),
        load=load_cifar10,
        downloads=(
            Download(
                url=_TORONTO + "cifar-10-binary.tar.gz",
                path="cifar-10-binary.tar.gz",
                makes=_CIFAR_10,
                checksum="c32a1d4ab5d03f1284b67883e8d87530",
                unpack=".",
            ),
            *_CIFAR_101_FILES,
            Download(
                url=_GITHUB + "cifar-10.2/raw/master/cifar102_test.npz",
                path="cifar-10.2/cifar102_test.npz",
                makes="|".join(f"{folder}/cifar102_test.npz" for folder in CIFAR_102.split("|")),
                checksum="e4fd6462bd5141ed293acd52ea570952f65d1bfd4ec9b068f87742f75a7a632e",
            ),
            Download(
                url=_ZENODO + "2535967/files/CIFAR-10-C.tar",
                path="CIFAR-10-C.tar",
                makes="CIFAR-10-C",
                checksum="56bf5dcef84df0e2308c6dcbcbbd8499",
                unpack=".",
            ),
        ),
        recipe="cifar",
        same_setting=True,
        paper={
            "CIFAR10/CIFAR-10.1": r"cifar-10\.1",
            "CIFAR10/CIFAR-10.2": r"cifar-10\.2",
            "CIFAR10/CIFAR-10C": r".+_[1-5]",
        },
    ),
    Suite(
        name="cifar100",
        shift="synthetic",
        source="CIFAR-100, classes 1:3",
        targets="CIFAR-100-C (95)",
        models=("resnet18",),
        n_classes=100,
        size="3.1 GB",
        licence="free to use, cite Krizhevsky 2009; CIFAR-100-C CC BY 4.0",
        kind="trained",
        needs=(_CIFAR_100,),
        load=load_cifar100,
        downloads=(
            Download(
                url=_TORONTO + "cifar-100-binary.tar.gz",
                path="cifar-100-binary.tar.gz",
                makes=_CIFAR_100,
                checksum="03b5dce01913d631647c71ecec9e9cb8",
                unpack=".",
            ),
            Download(
                url=_ZENODO + "3555552/files/CIFAR-100-C.tar",
                path="CIFAR-100-C.tar",
                makes="CIFAR-100-C",
                checksum="11f0ed0f1191edbf9fa23466ae6021d3",
                unpack=".",
            ),
        ),
        recipe="cifar",
        paper={"CIFAR100/CIFAR-100C": ".*"},
        same_setting=True,
    ),
    Suite(
        name="cifar10-resnets",
        shift="synthetic",
        source="CIFAR-10 test images 0-4999",
        targets="images 5000-6999 under 19 corruptions x 5",
        models=RESNETS,
        n_classes=10,
        size="with the data",
        licence="images free to use; models BSD-2",
        kind="pretrained",
        needs=(RESNET_IMAGES, *(RESNET_WEIGHTS.format(name) for name in RESNETS)),
        load=load_resnets,
        weights=RESNET_WEIGHTS,
        paper={"CIFAR10/CIFAR-10C": r".+_[1-5]"},
    ),
)
