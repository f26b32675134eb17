"""Datasets that are folders of image files: ImageNet with ImageNetV2, Waterbirds, and Office-31.

Official layouts, below the data folder::

    imagenet/val/<WordNet id>/*.JPEG                                 (1,000 folders of 50 images)
    imagenetv2-matched-frequency-format-val/<class number>/*.jpeg    (1,000 folders of 10 images)
    waterbirds_v1.0/metadata.csv and the files it names              (columns img_filename, y, split, place)
    office31/amazon|dslr|webcam/images/<class>/*.jpg                 (31 classes; or domain_adaptation_images/...)
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from leadline.bench.datasets.suite import Suite
from leadline.bench.download import Download
from leadline.bench.inputs import HELD_OUT, ImageFiles, Options, Split, Task, holdout, locate, require
from leadline.errors import InputError

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
WATERBIRDS, _BIRDS = "waterbirds_v1.0/metadata.csv", "waterbirds_v1.0/*/*.jpg"
#: The images of each domain of Office-31.
OFFICE31 = {
    name: f"office31/{name}/images|domain_adaptation_images/{name}/images" for name in ("amazon", "dslr", "webcam")
}
IMAGENET, IMAGENET_V2 = "imagenet/val", "imagenetv2-matched-frequency-format-val"
_IMAGENET_CLASSES = 1000
#: Models whose torchvision weights go with bicubic resizing; all of ours resize to 256 and crop to 224.
_BICUBIC = ("efficientnet_b0",)


def load_imagenet(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return the labelled ImageNet validation images and ImageNetV2 (matched frequency), resized as the model wants.

    The number of a class is the place of its folder, so that one folder more or less would shift all that follow.
    """

    def read(folder: Path, number: Callable[[int, str], int]) -> Split:
        names = sorted(_subfolders(folder))
        if len(names) != _IMAGENET_CLASSES:
            raise InputError(
                f"{folder} must have {_IMAGENET_CLASSES} class folders; got {len(names)}. "
                "Unpack it again, and move away folders that are not of a class."
            )
        labels = {name: number(place, name) for place, name in enumerate(names)}
        if set(labels.values()) != set(range(_IMAGENET_CLASSES)):
            raise InputError(f"{folder} must have class folders 0 to {_IMAGENET_CLASSES - 1}; got other names.")
        return options.limited(_read_folders(folder, labels, bicubic=model in _BICUBIC))

    def version2() -> Split:
        return read(data / IMAGENET_V2, lambda place, name: int(name) if name.isdecimal() else -1)

    source = read(data / IMAGENET, lambda place, name: place)

    if options.imagenet_source == "half":
        source, clean = holdout(source, 0.5, seed)
        return Task(source, {"imagenetv2": version2, "clean": lambda: clean})
    return Task(source, {"imagenetv2": version2})


def load_waterbirds(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return Waterbirds: the official training, validation (source) and test (target) splits."""
    del model, seed
    table = data / WATERBIRDS
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    parts: list[Split] = []
    for number in ("0", "1", "2"):
        chosen = [row for row in rows if row["split"] == number]
        if not chosen:
            raise InputError(f"{table} must have rows with split {number}; it has none.")
        files = ImageFiles(tuple(table.parent / row["img_filename"] for row in chosen), 256, 224, square=True)
        parts.append(options.limited(Split(files, np.array([int(row["y"]) for row in chosen]))))
    train, source, test = parts
    return Task(source, {"test": lambda: test}, train)


def load_office31(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return Office-31: of the Amazon domain 4/5 to train and 1/5 as source, the other two as targets."""
    del model
    names = sorted(_subfolders(locate(data, OFFICE31["amazon"])))
    labels = {name: index for index, name in enumerate(names)}

    def domain(name: str) -> Split:
        return options.limited(_read_folders(locate(data, OFFICE31[name]), labels))

    train, source = holdout(domain("amazon"), HELD_OUT, seed)
    return Task(source, {name: partial(domain, name) for name in ("dslr", "webcam")}, train)


def _subfolders(folder: Path) -> list[str]:
    """Return the names of the class folders."""
    names = [entry.name for entry in require(folder).iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    if len(names) < 2:
        raise InputError(f"{folder} must have one folder per class; got {len(names)}.")
    return names


def _read_folders(folder: Path, labels: dict[str, int], *, bicubic: bool = False) -> Split:
    """List the images of every class folder, in a fixed order."""
    paths, numbers = [], []
    for name in sorted(_subfolders(folder)):
        if name not in labels:
            raise InputError(f"{folder} must have the classes of the source; got {name!r}.")
        found = sorted(path for path in (folder / name).iterdir() if path.suffix.lower() in _SUFFIXES)
        paths += found
        numbers += [labels[name]] * len(found)
    return Split(ImageFiles(tuple(paths), bicubic=bicubic), np.array(numbers))


_BY_HAND_IMAGENET = """ImageNet is given out to registered researchers only.
1. Register at https://image-net.org and download ILSVRC2012_img_val.tar (6.3 GB,
   MD5 29b22e2961454d5413ddabcf34fc5622).
2. Sort the 50,000 images into one folder per WordNet id, DATA/imagenet/val/n01440764/ILSVRC2012_val_00000293.JPEG
   and so on; the ids stand in ILSVRC2012_devkit_t12.tar.gz, and
   torchvision.datasets.ImageNet(root, split="val") sorts them for you."""
_BY_HAND_OFFICE31 = """Office-31 is given out for research, through a Google Drive link that asks for a click.
1. Open https://drive.google.com/open?id=0B4IapRTv9pJ1WGZVd1VDMmhwdlE and save domain_adaptation_images.tar.gz
   (SHA-1 7aa25a86f3880b6e79283227816f9d4d8506d636).
2. mkdir -p DATA/office31 && tar -xzf domain_adaptation_images.tar.gz -C DATA/office31
   so that DATA/office31/amazon/images/back_pack/ exists."""
SUITES = (
    Suite(
        name="imagenet",
        shift="natural",
        source="ImageNet validation",
        targets="ImageNetV2 matched frequency",
        models=("alexnet", "mobilenet_v2", "efficientnet_b0"),
        n_classes=1000,
        size="7.5 GB",
        licence="ImageNet: research only, on registration",
        kind="pretrained",
        needs=(IMAGENET, IMAGENET_V2),
        load=load_imagenet,
        downloads=(
            Download(
                url="https://huggingface.co/datasets/vaishaal/ImageNetV2/resolve/main/imagenetv2-matched-frequency.tar.gz",
                path="imagenetv2-matched-frequency.tar.gz",
                makes=IMAGENET_V2,
                checksum="f0c37fdf925916b19ea1323cd9a2208cdb6959ba2c32eef2a7fc393835c9ca7c",
                unpack=".",
            ),
        ),
        instructions=_BY_HAND_IMAGENET,
        paper={"ImageNet/ImageNetv2": "imagenetv2"},
        same_setting=True,
    ),
    Suite(
        name="waterbirds",
        shift="subpopulation",
        source="Waterbirds-WILDS val",
        targets="test: birds on all backgrounds alike",
        models=("resnet18-large",),
        n_classes=2,
        size="0.5 GB",
        licence="non-commercial research and education",
        kind="trained",
        needs=(WATERBIRDS, _BIRDS),
        load=load_waterbirds,
        downloads=(
            Download(
                url="https://worksheets.codalab.org/rest/bundles/0x505056d5cdea4e4eaa0e242cbfe2daa4/contents/blob/",
                path="waterbirds_v1.0.tar.gz",
                makes=WATERBIRDS,
                also=(_BIRDS,),
                unpack="waterbirds_v1.0",
            ),
        ),
        recipe="waterbirds",
        paper={"Waterbirds-WILDS/Subpop": ".*"},
        other_models=("resnet18-pretrained",),
        same_setting=True,
    ),
    Suite(
        name="office31",
        shift="domain",
        source="Office-31 Amazon",
        targets="DSLR, Webcam",
        models=("resnet18-large",),
        n_classes=31,
        size="0.1 GB",
        licence="research use",
        kind="trained",
        needs=tuple(OFFICE31.values()),
        load=load_office31,
        instructions=_BY_HAND_OFFICE31,
        recipe="office31",
        paper={"Office-31/domain": ".*"},
        other_models=("resnet18-pretrained",),
        same_setting=True,
    ),
)
