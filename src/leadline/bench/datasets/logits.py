"""Logits of real models, given ready-made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leadline.bench.datasets.suite import Shift, Suite

_BY_HAND = "Put logits into DATA/logits/{}/<model>/source.npz and target_<name>.npz (arrays logits and labels)."


def _logits(
    name: str, shift: Shift, source: str, targets: str, n_classes: int, licence: str, paper: Mapping[str, str]
) -> Suite:
    """Return the line of a suite of precomputed logits."""

    sources, others = f"logits/{name}/*/source.npz", f"logits/{name}/*/target_*.npz"

    def folders(data: Path) -> tuple[str, ...]:
        return tuple(sorted(path.parent.name for path in data.glob(sources)))

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
        needs=(sources, others),
        instructions=_BY_HAND.format(name),
        paper=paper,
    )


SUITES = (
    _logits(
        "cifar10c",
        "synthetic",
        "CIFAR-10 test images",
        "19 corruptions x 5, and two other image sources",
        10,
        "CIFAR-10: free to use",
        {"CIFAR10/CIFAR-10C": r".+_[1-5]"},
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
    # Gas has 6 classes, electricity 2, delays 3 and carriers 14.
    _logits(
        "tabular_time",
        "temporal",
        "sensors, prices or flights, early",
        "later windows of the same tables",
        14,
        "gas CC BY 4.0, flights CC0, Elec2 none stated",
        {},
    ),
)
