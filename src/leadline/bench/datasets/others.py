"""Suites of data that the paper does not have: small enough to run anywhere, or given as logits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leadline.bench.datasets import cifar, mnist, reviews
from leadline.bench.datasets.origins import LOGITS
from leadline.bench.datasets.suite import Shift, Suite
from leadline.bench.graphs import citation, ogb


def _logits(
    name: str, shift: Shift, source: str, targets: str, n_classes: int, licence: str, paper: Mapping[str, str]
) -> Suite:
    """Return the line of a suite of precomputed logits."""

    def folders(data: Path) -> tuple[str, ...]:
        return tuple(sorted(path.parent.name for path in (data / "logits" / name).glob("*/source.npz")))

    return Suite(
        name=f"logits-{name.replace('_', '-')}",
        shift=shift,
        source=source,
        targets=targets,
        find_models=folders,
        n_classes=n_classes,
        size="with the data",
        licence=licence,
        kind="logits",
        needs=(f"logits/{name}",),
        instructions=LOGITS.format(name),
        paper=paper,
    )


OTHER_SUITES = (
    Suite(
        name="cifar10-resnets",
        shift="synthetic",
        source="CIFAR-10 test images 0-4999",
        targets="images 5000-6999 under 19 corruptions x 5",
        models=("resnet20", "resnet32", "resnet56"),
        n_classes=10,
        size="with the data",
        licence="images free to use; models BSD-2",
        kind="pretrained",
        needs=("raw/cifar10/test.npz",),
        load=cifar.load_resnets,
        weights="raw/cifar10/{}.safetensors",
        paper={"CIFAR10/CIFAR-10C": r".+_[1-5]$"},
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
        needs=("raw/mnist/mnist.npz", "raw/mnist_m/test.npz", "raw/usps/usps.npz"),
        load=mnist.load_mnist_raw,
        recipe="mnist",
        paper={"MNIST/MNIST-M": "mnist-m"},
    ),
    Suite(
        name="amazon-reviews-domains",
        shift="domain",
        source="reviews of one domain",
        targets="the other three domains",
        models=reviews.DOMAIN_MODELS,
        n_classes=4,
        size="with the data",
        licence="research use",
        kind="sklearn",
        needs=("raw/amazon_reviews",),
        load=reviews.load_domains,
    ),
    Suite(
        name="amazon-reviews-time",
        shift="temporal",
        source="reviews until 2005",
        targets="the quarters of 2006",
        models=reviews.KINDS,
        n_classes=4,
        size="with the data",
        licence="research use",
        kind="sklearn",
        needs=("raw/amazon_reviews",),
        load=reviews.load_time,
    ),
    Suite(
        name="citation-graphs",
        shift="domain",
        source="a citation network",
        targets="the rest of it, and the other networks",
        find_models=lambda data: tuple(f"{name}-{kind}" for name in citation.networks(data) for kind in ogb.MODELS),
        n_classes=5,
        size="with the data",
        licence="research use",
        kind="trained",
        needs=(citation.FOLDER,),
        load=citation.load_citation,
        recipe="nodes",
        graphs=True,
    ),
    _logits(
        "cifar10c",
        "synthetic",
        "CIFAR-10 test images",
        "19 corruptions x 5, and two other image sources",
        10,
        "CIFAR-10: free to use",
        {"CIFAR10/CIFAR-10C": r".+_[1-5]$"},
    ),
    _logits(
        "mnist",
        "synthetic",
        "MNIST, most 1:100",
        "MNIST-M, USPS, optdigits, distortions",
        10,
        "MNIST CC BY-SA 3.0",
        {"MNIST/MNIST-M": "mnist_m"},
    ),
    _logits("amazon_blitzer", "domain", "reviews of one domain", "the other domains", 4, "research use", {}),
    _logits("banking77", "label", "BANKING77", "noisy texts, most with label shift", 77, "CC BY 4.0", {}),
    _logits(
        "citation_domains",
        "domain",
        "a citation graph",
        "the other citation graphs",
        5,
        "research use",
        {},
    ),
)
