"""What a suite is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leadline.bench.download import Download
from leadline.bench.inputs import Options, Task, find

Loader = Callable[[Path, Options, str, int], Task]
Groups = tuple[tuple[int, ...], ...]
Shift = Literal["natural", "subpopulation", "synthetic", "domain", "temporal", "label"]


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A dataset with its targets, models and recipe.

    Attributes
    ----------
    name, shift, source, targets
        What it is, for people.
    models
        The classifiers, where they do not depend on the data.
    find_models
        Names the classifiers that a data folder allows; None where ``models`` does.
    other_models
        Models to be asked for by name: where the paper says ResNet18 only, one that starts from ImageNet's
        weights.
    find_other_models
        Names such models where they depend on the data folder; None where ``other_models`` does.
    n_classes, size, licence
        More for people; ``size`` is what must be downloaded.
    kind
        "trained" here with torch, "pretrained" elsewhere, trained here with "sklearn", or "logits" already
        there.
    needs
        Paths below the data folder of the files that are read, or of folders of them; ``a|b`` where either will do,
        ``a/*.npz`` where any number of files will.
    extras
        More such paths, each with targets of its own; what is not there is left out.
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
    merged
        Groups of the model's classes that are one class each of the suite; empty where the classes are the same.
    paper
        Rows of the paper's tables that it can be held against: row -> regular expression of the whole names
        of its targets.
    same_setting
        Whether it is the paper's own data and model, or only a similar one.
    graphs
        Whether its inputs are nodes of graphs, for which there are more methods than those on logits.
    """

    name: str
    shift: Shift
    source: str
    targets: str
    models: tuple[str, ...] = ()
    find_models: Callable[[Path], tuple[str, ...]] | None = None
    n_classes: int
    size: str
    licence: str
    kind: Literal["trained", "pretrained", "sklearn", "logits"]
    needs: tuple[str, ...]
    extras: tuple[str, ...] = ()
    load: Loader | None = None
    downloads: tuple[Download, ...] = ()
    instructions: str = ""
    recipe: str | None = None
    weights: str | None = None
    merged: Groups = ()
    paper: Mapping[str, str] = field(default_factory=dict)
    same_setting: bool = False
    graphs: bool = False
    other_models: tuple[str, ...] = ()
    find_other_models: Callable[[Path], tuple[str, ...]] | None = None

    def targets_of(self, paper_row: str, targets: Iterable[str]) -> list[str]:
        """Return the targets, of those given, that a row of the paper's tables is about."""
        return [target for target in targets if re.fullmatch(self.paper[paper_row], target)]

    def missing(self, data: Path) -> list[str]:
        """Return what is needed and not there."""
        return _absent(self.needs, data)

    def left_out(self, data: Path) -> list[str]:
        """Return the extras that are not there."""
        return _absent(self.extras, data)

    def models_in(self, data: Path) -> tuple[str, ...]:
        """Return the models that a data folder allows."""
        return self.models if self.find_models is None else self.find_models(data)

    def other_models_in(self, data: Path) -> tuple[str, ...]:
        """Return the models to be asked for by name that a data folder allows."""
        return self.other_models if self.find_other_models is None else self.find_other_models(data)


def _absent(wanted: tuple[str, ...], data: Path) -> list[str]:
    """Return the paths that are not there, for people."""
    return [paths.replace("|", " or ") for paths in wanted if find(data, paths) is None]
