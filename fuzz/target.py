"""What can be attacked: a way in for bytes, and what to start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

import leadline
from leadline import Estimator, InputError, Outputs

T = TypeVar("T")
N_CLASSES = 3
_LONGEST_REFUSAL = 2000


class BrokenPromiseError(AssertionError):
    """A promise does not hold."""


@dataclass(frozen=True)
class Target:
    """Something that takes bytes from strangers.

    Attributes
    ----------
    attempt
        Takes bytes and says whether they were good; refuses bad ones in one line. Whatever it raises is a finding.
    seeds
        Good bytes, which are changed.
    """

    attempt: Callable[[bytes], bool]
    seeds: Sequence[bytes]


#: Makes a target that keeps its files in a folder.
MakeTarget = Callable[[Path], Target]


def unless_refused(work: Callable[[], T]) -> T | None:
    """Return what a function returns; None where it refuses its input, as it must: in one line that can be read."""
    try:
        return work()
    except InputError as error:
        text = str(error)
        if not text.isprintable() or len(text) > _LONGEST_REFUSAL:
            raise BrokenPromiseError(f"a refusal must be one readable line; got {text[:_LONGEST_REFUSAL]!r}") from error
        return None


def write_afresh(path: Path, data: bytes) -> None:
    """Write a file that shares nothing with the one of this name before, which may still be mapped."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def sample(n: int = 40, seed: int = 0) -> Outputs:
    """Return labelled outputs."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLASSES, size=n)
    logits = rng.normal(size=(n, N_CLASSES)).astype(np.float32)
    logits[np.arange(n), labels] += 2
    return Outputs(logits, labels)


def model(method: str = "ac") -> Estimator:
    """Return a small model."""
    short = {"max_epochs": 5, "n_anchors": 10, "folds": 1} if method.startswith("alsa") else {}
    return leadline.make(method, **short).fit(sample(200, seed=1))
