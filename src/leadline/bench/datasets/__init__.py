"""The table of suites. A dataset is one loader and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leadline.bench.datasets import cifar, folders, mnist, reviews
from leadline.bench.datasets.origins import (
    CIFAR_101,
    CODALAB,
    GITHUB,
    IMAGENET,
    LOGITS,
    MNIST_FILES,
    OFFICE,
    TORONTO,
    ZENODO,
)
from leadline.bench.datasets.suite import Loader, Shift, Suite
from leadline.bench.download import Download
from leadline.bench.graphs import citation, ogb
from leadline.errors import InputError


def _logits(
    name: str, shift: Shift, source: str, targets: str, n_classes: int, licence: str, paper: Mapping[str, str]
) -> Suite:
    """Return the line of a suite of precomputed logits."""
    return Suite(
        f"logits-{name.replace('_', '-')}",
        shift,
        source,
        targets,
        (),
        n_classes,
        "with the data",
        licence,
        "logits",
        (f"logits/{name}",),
        instructions=LOGITS.format(name),
        paper=paper,
    )


def _arxiv(name: str, targets: str, load: Loader) -> Suite:
    """Return the line of ogbn-arxiv in one of its two settings."""
    return Suite(
        name,
        "temporal",
        "arXiv papers of 2012-2014",
        targets,
        ogb.MODELS,
        40,
        "0.1 GB",
        "ODC-BY",
        "trained",
        ("|".join(f"{folder}/raw" for folder in ogb.FOLDERS),),
        load,
        (Download("http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip", "arxiv.zip", "arxiv/raw", None, "."),),
        recipe="nodes",
        graphs=True,
        same_setting=True,
    )


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "cifar10",
            "synthetic",
            "CIFAR-10, classes 1:3",
            "CIFAR-10.1, CIFAR-10.2, CIFAR-10-C (95)",
            ("resnet18",),
            10,
            "3.1 GB",
            "free to use, cite Krizhevsky 2009; CIFAR-10-C CC BY 4.0",
            "trained",
            ("cifar-10-batches-bin|cifar-10-batches-py", "cifar-10.1", "cifar-10.2"),
            cifar.load_cifar10,
            (
                Download(
                    TORONTO + "cifar-10-binary.tar.gz",
                    "cifar-10-binary.tar.gz",
                    "cifar-10-batches-bin",
                    "c32a1d4ab5d03f1284b67883e8d87530",
                    ".",
                ),
                *CIFAR_101,
                Download(
                    GITHUB + "cifar-10.2/raw/master/cifar102_test.npz",
                    "cifar-10.2/cifar102_test.npz",
                    "cifar-10.2/cifar102_test.npz",
                ),
                Download(
                    ZENODO + "2535967/files/CIFAR-10-C.tar",
                    "CIFAR-10-C.tar",
                    "CIFAR-10-C",
                    "56bf5dcef84df0e2308c6dcbcbbd8499",
                    ".",
                ),
            ),
            recipe="cifar",
            same_setting=True,
            paper={
                "CIFAR10/CIFAR-10.1": "cifar-10.1",
                "CIFAR10/CIFAR-10.2": "cifar-10.2",
                "CIFAR10/CIFAR-10C": r".+_[1-5]$",
            },
        ),
        Suite(
            "cifar100",
            "synthetic",
            "CIFAR-100, classes 1:3",
            "CIFAR-100-C (95)",
            ("resnet18",),
            100,
            "3.1 GB",
            "free to use, cite Krizhevsky 2009; CIFAR-100-C CC BY 4.0",
            "trained",
            ("cifar-100-binary|cifar-100-python",),
            cifar.load_cifar100,
            (
                Download(
                    TORONTO + "cifar-100-binary.tar.gz",
                    "cifar-100-binary.tar.gz",
                    "cifar-100-binary",
                    "03b5dce01913d631647c71ecec9e9cb8",
                    ".",
                ),
                Download(
                    ZENODO + "3555552/files/CIFAR-100-C.tar",
                    "CIFAR-100-C.tar",
                    "CIFAR-100-C",
                    "11f0ed0f1191edbf9fa23466ae6021d3",
                    ".",
                ),
            ),
            recipe="cifar",
            paper={"CIFAR100/CIFAR-100C": ""},
            same_setting=True,
        ),
        Suite(
            "imagenet",
            "natural",
            "ImageNet validation",
            "ImageNetV2 matched frequency",
            ("alexnet", "mobilenet_v2", "efficientnet_b0"),
            1000,
            "7.5 GB",
            "ImageNet: research only, on registration",
            "pretrained",
            ("imagenet/val", "imagenetv2-matched-frequency-format-val"),
            folders.load_imagenet,
            (
                Download(
                    "https://huggingface.co/datasets/vaishaal/ImageNetV2/resolve/main/"
                    "imagenetv2-matched-frequency.tar.gz",
                    "imagenetv2-matched-frequency.tar.gz",
                    "imagenetv2-matched-frequency-format-val",
                    None,
                    ".",
                ),
            ),
            IMAGENET,
            paper={"ImageNet/ImageNetv2": "imagenetv2"},
            same_setting=True,
        ),
        Suite(
            "amazon-wilds",
            "subpopulation",
            "Amazon-WILDS id_val",
            "Subpop1 (val), Subpop2 (test): other reviewers",
            ("distilbert",),
            5,
            "2.0 GB",
            "research use",
            "trained",
            ("amazon_v2.0/reviews.csv", "amazon_v2.0/splits/user.csv"),
            reviews.load_amazon_wilds,
            (
                Download(
                    CODALAB + "0x2732a175b5a644468b0342081544d1fd/contents/blob/",
                    "amazon_v2.0.tar.gz",
                    "amazon_v2.0/reviews.csv",
                    None,
                    "amazon_v2.0",
                ),
            ),
            recipe="amazon-wilds",
            paper={"Amazon-WILD/Subpop1": "subpop1", "Amazon-WILD/Subpop2": "subpop2"},
            same_setting=True,
        ),
        Suite(
            "waterbirds",
            "subpopulation",
            "Waterbirds-WILDS val",
            "test: birds on all backgrounds alike",
            ("resnet18-large",),
            2,
            "0.5 GB",
            "non-commercial research and education",
            "trained",
            ("waterbirds_v1.0/metadata.csv",),
            folders.load_waterbirds,
            (
                Download(
                    CODALAB + "0x505056d5cdea4e4eaa0e242cbfe2daa4/contents/blob/",
                    "waterbirds_v1.0.tar.gz",
                    "waterbirds_v1.0/metadata.csv",
                    None,
                    "waterbirds_v1.0",
                ),
            ),
            recipe="waterbirds",
            paper={"Waterbirds-WILDS/Subpop": ""},
            other_models=("resnet18-pretrained",),
            same_setting=True,
        ),
        Suite(
            "mnist",
            "synthetic",
            "MNIST, classes 1:100",
            "MNIST-M",
            ("mnist-cnn",),
            10,
            "0.1 GB",
            "MNIST CC BY-SA 3.0; MNIST-M research use",
            "trained",
            ("mnist/train-images-idx3-ubyte.gz", "mnist_m/mnist_m_test_labels.txt"),
            mnist.load_mnist,
            (
                *MNIST_FILES,
                Download(
                    "https://cornell.box.com/shared/static/jado7quprg6hzzdubvwzh9umr75damwi",
                    "mnist_m.tar.gz",
                    "mnist_m/mnist_m_test_labels.txt",
                    "859df31c91afe82e80e5012ba928f279",
                    ".",
                ),
            ),
            recipe="mnist",
            paper={"MNIST/MNIST-M": ""},
            same_setting=True,
        ),
        Suite(
            "office31",
            "domain",
            "Office-31 Amazon",
            "DSLR, Webcam",
            ("resnet18-large",),
            31,
            "0.1 GB",
            "research use",
            "trained",
            tuple(f"office31/{name}/images" for name in ("amazon", "dslr", "webcam")),
            folders.load_office31,
            (),
            OFFICE,
            "office31",
            paper={"Office-31/domain": ""},
            other_models=("resnet18-pretrained",),
            same_setting=True,
        ),
        Suite(
            "cifar10-resnets",
            "synthetic",
            "CIFAR-10 test images 0-4999",
            "images 5000-6999 under 19 corruptions x 5",
            ("resnet20", "resnet32", "resnet56"),
            10,
            "with the data",
            "images free to use; models BSD-2",
            "pretrained",
            ("raw/cifar10/test.npz",),
            cifar.load_resnets,
            weights="raw/cifar10/{}.safetensors",
            paper={"CIFAR10/CIFAR-10C": r".+_[1-5]$"},
        ),
        Suite(
            "mnist-raw",
            "synthetic",
            "MNIST, classes 1:100",
            "clean, MNIST-M (4,000), USPS",
            ("mnist-cnn",),
            10,
            "with the data",
            "MNIST CC BY-SA 3.0; MNIST-M and USPS research use",
            "trained",
            ("raw/mnist/mnist.npz", "raw/mnist_m/test.npz", "raw/usps/usps.npz"),
            mnist.load_mnist_raw,
            recipe="mnist",
            paper={"MNIST/MNIST-M": "mnist-m"},
        ),
        Suite(
            "amazon-reviews-domains",
            "domain",
            "reviews of one domain",
            "the other three domains",
            reviews.DOMAIN_MODELS,
            4,
            "with the data",
            "research use",
            "sklearn",
            ("raw/amazon_reviews",),
            reviews.load_domains,
        ),
        Suite(
            "amazon-reviews-time",
            "temporal",
            "reviews until 2005",
            "the quarters of 2006",
            reviews.KINDS,
            4,
            "with the data",
            "research use",
            "sklearn",
            ("raw/amazon_reviews",),
            reviews.load_time,
        ),
        _arxiv("ogbn-arxiv", "each 2015-2020, messages over all years", ogb.load_arxiv),
        _arxiv("ogbn-arxiv-inductive", "each 2015-2020, later papers hidden", ogb.load_arxiv_inductive),
        Suite(
            "citation-graphs",
            "domain",
            "a citation network",
            "the rest of it, and the other two networks",
            tuple(f"{network}-{kind}" for network in citation.NETWORKS for kind in ogb.MODELS),
            5,
            "with the data",
            "research use",
            "trained",
            tuple(f"{citation.FOLDER}/{network}.npz" for network in citation.NETWORKS),
            citation.load_citation,
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
}


def get_suite(name: str) -> Suite:
    """Look a suite up, or list the names there are."""
    if name not in SUITES:
        raise InputError(f"suite must be one of {', '.join(SUITES)}; got {name!r}.")
    return SUITES[name]


def models_of(suite: Suite, data: Path) -> tuple[str, ...]:
    """Return the models of a suite; for precomputed logits, the folders found."""
    if suite.kind != "logits":
        return suite.models
    folder = data / suite.needs[0]
    return tuple(sorted(path.parent.name for path in folder.glob("*/source.npz")))
