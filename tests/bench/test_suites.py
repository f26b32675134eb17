"""What each suite says it needs, against the files that are read when it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from leadline.bench.datasets import SUITES
from leadline.bench.datasets.suite import Suite
from leadline.bench.inputs import Options
from leadline.bench.pipeline import Job, classifier
from leadline.bench.runs import sources
from leadline.data.files import read_outputs
from leadline.errors import InputError
from official_files import (
    write_amazon_wilds,
    write_cifar100_binary,
    write_cifar_binary,
    write_cifar_shifts,
    write_citation,
    write_imagenet,
    write_logits,
    write_mnist,
    write_mnist_raw,
    write_office31,
    write_ogb,
    write_resnets,
    write_reviews,
    write_waterbirds,
)

Write = Callable[[Path, np.random.Generator], None]


def write_cifar10(data: Path, rng: np.random.Generator) -> None:
    write_cifar_binary(data, rng, n=20)
    write_cifar_shifts(data, rng)


def write_ogbn(folder: Path) -> None:
    write_ogb(folder, n=130)


#: How to write small files of each suite. Without CIFAR-10-C and CIFAR-100-C, which are made from the test images.
LAYOUTS: dict[str, Write] = {
    "cifar10": write_cifar10,
    "cifar100": write_cifar100_binary,
    "cifar10-three": write_cifar10,
    "cifar10-resnets": write_resnets,
    "cifar10-resnets-three": write_resnets,
    "cifar10-resnets-two": write_resnets,
    "imagenet": lambda data, _: write_imagenet(data),
    "waterbirds": lambda data, _: write_waterbirds(data),
    "office31": lambda data, _: write_office31(data),
    "mnist": partial(write_mnist, n=200),
    "mnist-raw": write_mnist_raw,
    "ogbn-arxiv": lambda data, _: write_ogbn(data / "ogbn_arxiv"),
    "ogbn-arxiv-inductive": lambda data, _: write_ogbn(data / "arxiv"),
    "citation-graphs": write_citation,
    "amazon-wilds": lambda data, _: write_amazon_wilds(data, ["good", "bad"] * 10, [i % 4 for i in range(20)]),
    "amazon-reviews-domains": write_reviews,
    "amazon-reviews-time": write_reviews,
    "logits-cifar10c": partial(write_logits, name="cifar10c"),
    "logits-mnist": partial(write_logits, name="mnist"),
    "logits-amazon-blitzer": partial(write_logits, name="amazon_blitzer"),
    "logits-banking77": partial(write_logits, name="banking77"),
    "logits-citation-domains": partial(write_logits, name="citation_domains"),
    "logits-tabular-time": partial(write_logits, name="tabular_time"),
}


def test_tables_over_time_at_hand(data_root: Path) -> None:
    suite = SUITES["logits-tabular-time"]
    found = sources(suite, data_root, data_root)
    assert len(found) == len(suite.models_in(data_root)) == 24
    classes = set()
    for _, _, folder in found:
        source, clean = (read_outputs(folder / f"{name}.npz") for name in ("source", "target_clean"))
        assert clean.logits.shape[1] == source.logits.shape[1]
        classes.add(source.logits.shape[1])
        assert len(list(folder.glob("target_*.npz"))) in range(6, 12)
    assert classes == {2, 3, 6, 14}
    assert suite.n_classes == max(classes)


def read_all(suite: Suite, data: Path) -> dict[str, list[int]]:
    """Read all that `logits` and `run` would read, and return the labels of every part of it."""
    if suite.kind == "logits":
        found = [path for _, _, folder in sources(suite, data, data) for path in sorted(folder.iterdir())]
        return {str(path): np.asarray(read_outputs(path).labels).tolist() for path in found}
    jobs = [Job(suite, data, data / "out", model, 0, Options(limit=12)) for model in suite.models_in(data)]
    task = jobs[0].load()
    parts = {"source": task.source} | {name: read() for name, read in task.targets.items()}
    if task.train is not None:
        parts["train"] = task.train
    for part in parts.values():
        part.inputs.batch(np.arange(len(part)))
    if suite.weights is not None:
        for job in jobs:
            classifier(job, task)
    return {name: part.labels.tolist() for name, part in parts.items()}


def outcome(suite: Suite, data: Path) -> str:
    """Return what came of reading everything, in text."""
    try:
        return str(read_all(suite, data))
    except (InputError, OSError) as error:
        return f"error: {error}"


def files_in(data: Path, paths: Iterable[str]) -> set[Path]:
    """Return the files that paths such as ``a|b/*.npz`` mean, and those in the folders they mean."""
    found = [match for entry in paths for place in entry.split("|") for match in data.glob(place)]
    return {file for match in found for file in (match, *match.rglob("*")) if file.is_file()}


@contextmanager
def without(files: Iterable[Path], aside: Path) -> Iterator[None]:
    """Move files away for a while."""
    aside.mkdir(exist_ok=True)
    moved = {file: aside / str(number) for number, file in enumerate(files)}
    for file, place in moved.items():
        file.rename(place)
    yield
    for file, place in moved.items():
        place.rename(file)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_needs_what_is_read_and_nothing_else(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    suite, data, aside = SUITES[name], tmp_path / "data", tmp_path / "aside"
    data.mkdir()
    LAYOUTS[name](data, rng)
    assert suite.missing(data) == []
    assert suite.left_out(data) == []
    whole = str(read_all(suite, data))
    read = set()
    for file in sorted(path for path in data.rglob("*") if path.is_file()):
        with without([file], aside):
            found = outcome(suite, data)
        if found != whole:
            read.add(file)
            assert file.name in found or not found.startswith("error: ")
    assert read <= files_in(data, suite.needs + suite.extras)
    for entry in suite.needs + suite.extras:
        assert files_in(data, [entry]) & read, entry


@pytest.mark.parametrize("name", SUITES)
def test_what_is_needed_and_not_there_is_said(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    suite, data = SUITES[name], tmp_path / "data"
    data.mkdir()
    LAYOUTS[name](data, rng)
    for entry, absent in [*((e, suite.missing) for e in suite.needs), *((e, suite.left_out) for e in suite.extras)]:
        with without({match for place in entry.split("|") for match in data.glob(place)}, tmp_path / "aside"):
            assert absent(data) == [entry.replace("|", " or ")]
        assert absent(data) == []
