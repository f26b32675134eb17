"""Small files of exactly the official layouts of the paper's datasets."""

from __future__ import annotations

import csv
import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def write_cifar_binary(data: Path, rng: np.random.Generator, *, n: int = 60) -> None:
    folder = data / "cifar-10-batches-bin"
    folder.mkdir()
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        rows = rng.integers(0, 256, (n, 3073), dtype=np.uint8)
        rows[:, 0] = np.arange(n) % 10
        rows.tofile(folder / f"{name}.bin")


def write_cifar_shifts(data: Path, rng: np.random.Generator, *, n: int = 30) -> None:
    (data / "cifar-10.1").mkdir()
    (data / "cifar-10.2").mkdir()
    labels = np.arange(n) % 10
    for version, count in (("v4", n), ("v6", n - 10)):
        images = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
        np.save(data / f"cifar-10.1/cifar10.1_{version}_data.npy", images)
        np.save(data / f"cifar-10.1/cifar10.1_{version}_labels.npy", labels[:count].astype(np.int32))
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    np.savez(data / "cifar-10.2/cifar102_test.npz", images=images, labels=labels)


def write_idx(path: Path, values: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    header = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    with gzip.open(path, "wb") as file:
        file.write(header + values.tobytes())


def write_mnist(data: Path, rng: np.random.Generator, *, n: int = 2000) -> None:
    (data / "mnist").mkdir()
    labels = (np.arange(n) % 10).astype(np.uint8)
    images = rng.integers(0, 60, (n, 28, 28), dtype=np.uint8)
    for row, label in enumerate(labels):  # a bar in a place of its own tells the digits apart
        images[row, 2 * label + 3 : 2 * label + 6] = 250
    for part in ("train", "t10k"):
        write_idx(data / f"mnist/{part}-images-idx3-ubyte.gz", images)
        write_idx(data / f"mnist/{part}-labels-idx1-ubyte.gz", labels)
    (data / "mnist_m/mnist_m_test").mkdir(parents=True)
    lines = []
    for row in range(60):
        picture = Image.fromarray(np.repeat(images[row][..., None], 3, axis=2)).resize((32, 32))
        picture.save(data / f"mnist_m/mnist_m_test/{row:08d}.png")
        lines.append(f"{row:08d}.png {labels[row]}")
    (data / "mnist_m/mnist_m_test_labels.txt").write_text("\n".join(lines) + "\n")


def write_image(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((40, 60, 3), shade, dtype=np.uint8)).save(path)


def write_corruption(data: Path, rng: np.random.Generator, name: str, *, n: int = 10) -> Any:
    folder = data / "CIFAR-10-C"
    folder.mkdir(exist_ok=True)
    images = rng.integers(0, 256, (5 * n, 32, 32, 3), dtype=np.uint8)
    np.save(folder / f"{name}.npy", images)
    np.save(folder / "labels.npy", np.tile(np.arange(n) % 10, 5).astype(np.uint8))
    return images


def write_imagenet(data: Path) -> None:
    for wnid in ("n03", "n01", "n02"):
        for i in range(4):
            write_image(data / f"imagenet/val/{wnid}/ILSVRC2012_val_{i:08d}.JPEG", 10 * i)
    for number in ("0", "2", "1"):
        write_image(data / f"imagenetv2-matched-frequency-format-val/{number}/a.jpeg", 80)


def write_waterbirds(data: Path, *, n: int = 9) -> None:
    folder = data / "waterbirds_v1.0"
    rows = []
    for i in range(n):
        write_image(folder / f"001.Albatross/{i}.jpg", 20 * i % 256)
        rows.append({"img_id": i, "img_filename": f"001.Albatross/{i}.jpg", "y": i % 2, "split": i % 3, "place": 0})
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_office31(data: Path) -> None:
    for domain in ("amazon", "dslr", "webcam"):
        for name in ("bike", "back_pack", "mug"):
            for i in range(5):
                write_image(data / f"office31/{domain}/images/{name}/frame_{i:04d}.jpg", 10 * i)


def write_amazon_wilds(data: Path, texts: list[str], splits: list[int], *, version: str = "2.1") -> None:
    folder = data / f"amazon_v{version}"
    (folder / "splits").mkdir(parents=True)
    with (folder / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["reviewerID", "asin", "overall", "reviewText", "reviewYear"])
        writer.writerows(["A", "B", float(1 + i % 5), text, 2013] for i, text in enumerate(texts))
    (folder / "splits/user.csv").write_text("split\n" + "".join(f"{split}\n" for split in splits))
