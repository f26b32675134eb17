"""What a suite is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leadline.bench.download import Download
from leadline.bench.inputs import Options, Task

Loader = Callable[[Path, Options, str, int], Task]
Shift = Literal["natural", "subpopulation", "synthetic", "domain", "temporal", "label"]


@dataclass(frozen=True)
class Suite:
    """A dataset with its targets, models and recipe.

    Attributes
    ----------
    name, shift, source, targets
        What it is, for people.
    models
        The classifiers; for precomputed logits, those found.
    other_models
        Models to be asked for by name: where the paper says ResNet18 only, one that starts from ImageNet's
        weights.
    n_classes, size, licence
        More for people; ``size`` is what must be downloaded.
    kind
        "trained" here with torch, "pretrained" elsewhere, trained here with "sklearn", or "logits" already
        there.
    needs
        Paths below the data folder; ``a|b`` where either will do.
    load
        Reads the data for a model and a seed; None for precomputed logits.
    downloads
        What `prepare` fetches.
    instructions
        What to do by hand where the licence or the host does not allow fetching.
    recipe
        Name in ``leadline.bench.training.RECIPES``, for trained models.
    weights
        Pattern of the weights of a pretrained model below the data folder; None for torchvision's own.
    paper
        Rows of the paper's tables that it can be held against: row -> regular expression of its targets.
    same_setting
        Whether it is the paper's own data and model, or only a similar one.
    graphs
        Whether its inputs are nodes of graphs, for which there are more methods than those on logits.
    """

    name: str
    shift: Shift
    source: str
    targets: str
    models: tuple[str, ...]
    n_classes: int
    size: str
    licence: str
    kind: Literal["trained", "pretrained", "sklearn", "logits"]
    needs: tuple[str, ...]
    load: Loader | None = None
    downloads: tuple[Download, ...] = ()
    instructions: str = ""
    recipe: str | None = None
    weights: str | None = None
    paper: Mapping[str, str] = field(default_factory=dict)
    same_setting: bool = False
    graphs: bool = False
    other_models: tuple[str, ...] = ()

    def missing(self, data: Path) -> list[str]:
        """Return what is needed and not there."""
        return [need for need in self.needs if not any((data / path).exists() for path in need.split("|"))]
