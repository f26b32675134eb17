"""CIFAR-10 remapped to two and three classes, which can be looked at in logit space.

The paper remaps CIFAR-10 to three classes and does not say which; here they are vehicles, wild animals and pets.
``cifar10-three`` trains the paper's network on them, from the files of ``cifar10``. The others need no training: the
logit of a group is the logarithm of the summed exponentials of its classes' logits, so that its softmax is the
probability that a public ResNet gives to the group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from leadline.bench.datasets import cifar
from leadline.bench.datasets.suite import Groups, Suite
from leadline.bench.inputs import Options, Split, Task
from leadline.errors import InputError

_VEHICLES, _WILD, _PETS = (0, 1, 8, 9), (2, 4, 6, 7), (3, 5)
_TWO, _THREE = (_VEHICLES, _WILD + _PETS), (_VEHICLES, _WILD, _PETS)


def remapped(split: Split, groups: Groups) -> Split:
    """Return a split with the number of its group in place of each class."""
    group_of = np.empty(sum(map(len, groups)), dtype=np.int64)
    for number, group in enumerate(groups):
        group_of[list(group)] = number
    return Split(split.inputs, group_of[split.labels])


def _load(suite: Suite, groups: Groups, kept: str, data: Path, options: Options, model: str, seed: int) -> Task:
    """Return the data of another suite with its classes remapped, and those of its targets whose names match."""
    if suite.load is None:
        raise InputError(f"suite {suite.name} has no data to load.")
    task = suite.load(data, options, model, seed)

    def reader(read: Callable[[], Split]) -> Callable[[], Split]:
        return lambda: remapped(read(), groups)

    return Task(
        remapped(task.source, groups),
        {name: reader(read) for name, read in task.targets.items() if re.fullmatch(kept, name)},
        None if task.train is None else remapped(task.train, groups),
    )


def _remap(name: str, suite: Suite, groups: Groups, *, kept: str = ".*", targets: str | None = None) -> Suite:
    """Return another suite with its classes remapped; a model that comes trained keeps its own, and is merged."""
    return replace(
        suite,
        name=name,
        source=f"{suite.source}, remapped to {len(groups)} classes",
        targets=targets or suite.targets,
        n_classes=len(groups),
        load=partial(_load, suite, groups, kept),
        merged=groups if suite.kind == "pretrained" else (),
        paper={},
        same_setting=False,
    )


_CIFAR = {suite.name: suite for suite in cifar.SUITES}
_worst = partial(_remap, kept="clean|.*_5", targets="images 5000-6999, clean and under 19 corruptions of severity 5")
SUITES = (
    _remap("cifar10-three", _CIFAR["cifar10"], _THREE),
    _worst("cifar10-resnets-three", _CIFAR["cifar10-resnets"], _THREE),
    _worst("cifar10-resnets-two", _CIFAR["cifar10-resnets"], _TWO),
)
