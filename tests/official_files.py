"""Small files of exactly the official layouts of the paper's datasets."""

from __future__ import annotations

import csv
import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.sparse import csr_array


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


def write_imagenet(data: Path, *, classes: int = 1000) -> None:
    """Write a folder for each class, with images for the first three only."""
    validation, version2 = data / "imagenet/val", data / "imagenetv2-matched-frequency-format-val"
    for label in range(classes):
        (validation / f"n{label:08d}").mkdir(parents=True)
        (version2 / str(label)).mkdir(parents=True)
    for label in (2, 0, 1):
        for i in range(4):
            write_image(validation / f"n{label:08d}/ILSVRC2012_val_{i:08d}.JPEG", 10 * i)
        write_image(version2 / f"{label}/a.jpeg", 80)


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


def write_cifar100_binary(data: Path, rng: np.random.Generator, *, n: int = 200) -> None:
    folder = data / "cifar-100-binary"
    folder.mkdir()
    for name in ("train", "test"):
        rows = rng.integers(0, 256, (n, 3074), dtype=np.uint8)
        rows[:, 1] = np.arange(n) % 100
        rows.tofile(folder / f"{name}.bin")


def write_resnets(data: Path, rng: np.random.Generator, *, n: int = 5004) -> None:
    """Write the test images and weights for the public ResNets; the targets start at image 5,000."""
    from safetensors.torch import save_file

    from leadline.bench.models import build

    folder = data / "raw/cifar10"
    folder.mkdir(parents=True)
    np.savez(folder / "test.npz", x=rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), y=np.arange(n) % 10)
    for name in ("resnet20", "resnet32", "resnet56"):
        save_file(dict(build(name, 10).state_dict()), folder / f"{name}.safetensors")


def write_mnist_raw(data: Path, rng: np.random.Generator, *, n: int = 200) -> None:
    def images(*shape: int) -> Any:
        return rng.integers(0, 256, shape, dtype=np.uint8)

    for folder in ("mnist", "mnist_m", "usps"):
        (data / "raw" / folder).mkdir(parents=True)
    few, many = np.arange(20) % 10, np.arange(n) % 10
    np.savez(
        data / "raw/mnist/mnist.npz", x_train=images(n, 28, 28), y_train=many, x_test=images(20, 28, 28), y_test=few
    )
    np.savez(data / "raw/mnist_m/test.npz", x=images(20, 32, 32, 3), y=few)
    np.savez(data / "raw/usps/usps.npz", x=images(20, 16, 16), y=few, n_train=10)


def write_reviews(data: Path, rng: np.random.Generator, *, n: int = 80) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = data / "raw/amazon_reviews"
    folder.mkdir(parents=True)
    columns = {
        "domain": [("books", "dvd", "electronics", "kitchen")[i % 4] for i in range(n)],
        "rating": [(1, 2, 4, 5)[i // 4 % 4] for i in range(n)],
        "text": [("good", "bad", "good book", "bad book")[i // 4 % 4] for i in range(n)],
        "title": ["a title" if i % 3 else None for i in range(n)],
        "date": [f"{('March', 'June', 'August', 'October')[i // 4 % 4]} 1, {2005 + i // 16 % 2}" for i in range(n)],
    }
    pq.write_table(pa.table(columns), folder / "reviews.parquet")
    np.savez(folder / "minilm_l6_v2_128tok.npz", emb=rng.normal(size=(n, 8)).astype(np.float16))


def write_citation(data: Path, rng: np.random.Generator, *, n: int = 60) -> None:
    folder = data / "raw/citation_graphs"
    folder.mkdir(parents=True)
    for name in ("acmv9", "citationv1", "dblpv7"):
        words = csr_array(rng.random((n, 12)) < 0.3)
        labels = np.eye(5, dtype=np.int8)[np.arange(n) % 5]
        labels[0] = 1  # of several classes: not scored
        np.savez(
            folder / f"{name}.npz", edges=rng.integers(0, n, (2, 2 * n)), x_indptr=words.indptr,
            x_indices=words.indices, x_shape=words.shape, labels_multi=labels,
        )  # fmt: skip


def write_gzip(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.write("".join(line + "\n" for line in lines))


def write_ogb(folder: Path, *, n: int = 240, d: int = 8, classes: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    """Write a small dataset in OGB's layout: classes differ in their features, papers cite their own class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    years = np.concatenate([np.arange(2008, 2021).repeat(n // 13 + 1)])[:n]
    features = rng.normal(size=(n, d)).astype(np.float32)
    features[np.arange(n), labels] += 2.0
    start = rng.integers(0, n, 3 * n)
    end = np.array([rng.choice(np.flatnonzero(labels == labels[node])) for node in start])
    raw = folder / "raw"
    write_gzip(raw / "num-node-list.csv.gz", [str(n)])
    write_gzip(raw / "num-edge-list.csv.gz", [str(len(start))])
    write_gzip(raw / "edge.csv.gz", [f"{a},{b}" for a, b in zip(start, end, strict=True)])
    write_gzip(raw / "node-feat.csv.gz", [",".join(f"{value:.6f}" for value in row) for row in features])
    write_gzip(raw / "node-label.csv.gz", [str(label) for label in labels])
    write_gzip(raw / "node_year.csv.gz", [str(year) for year in years])
    for name, rows in (("train", years <= 2017), ("valid", years == 2018), ("test", years >= 2019)):
        write_gzip(folder / "split" / "time" / f"{name}.csv.gz", [str(row) for row in np.flatnonzero(rows)])
    return {"labels": labels, "years": years, "features": features, "edges": np.stack([start, end])}


def write_logits(data: Path, rng: np.random.Generator, name: str, *, n: int = 40, c: int = 4) -> None:
    for model in ("first", "second"):
        folder = data / "logits" / name / model
        folder.mkdir(parents=True)
        for part in ("source", "target_a"):
            np.savez(folder / f"{part}.npz", logits=rng.normal(size=(n, c)).astype(np.float32), labels=np.arange(n) % c)
