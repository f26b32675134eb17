"""Every estimator on numbers that no one expects: huge, tiny, tied, constant, one row, classes without rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import leadline
from fuzz.target import BrokenPromiseError, MakeTarget, Target, unless_refused
from leadline import Estimate, Estimator

Floats = NDArray[Any]
#: Rows by the name of what is odd about them; from a generator and a shape.
ROWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "ties": lambda rng, shape: rng.integers(-1, 2, size=shape).astype(float),
    "one-hot": lambda rng, shape: np.eye(shape[1])[rng.integers(shape[1], size=shape[0])],
    "constant": lambda rng, shape: np.repeat(rng.normal(size=(shape[0], 1)), shape[1], axis=1),
    "one class": lambda rng, shape: rng.normal(size=shape) + 9 * np.eye(shape[1])[0],
    "duplicates": lambda rng, shape: np.repeat(rng.normal(size=(1, shape[1])), shape[0], axis=0),
    "sure": lambda rng, shape: 1e4 * np.eye(shape[1])[rng.integers(shape[1], size=shape[0])],
    "heavy tails": lambda rng, shape: rng.standard_cauchy(size=shape),
    "far away": lambda rng, shape: 1e6 + rng.normal(size=shape),
    "mixed sizes": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-30, 20, size=(shape[0], 1)),
}  # fmt: skip
#: Short trainings: none of the promises depends on their length.
OPTIONS: dict[str, dict[str, Any]] = {
    "alsa-g": {"max_epochs": 15, "n_anchors": 12},
    "alsa-e": {"max_epochs": 15, "n_anchors": 12},
}


@dataclass(frozen=True)
class Part:
    """How to make a source or a target: what is odd, how many rows, how large (a power of ten), which draw."""

    kind: str
    n: int
    power: int
    seed: int
    dtype: str

    def rows(self, c: int) -> Floats:
        """Return logits of shape (n, c)."""
        power = max(self.power, -37) if self.dtype == "f4" else self.power  # smaller ones are all zero
        made = ROWS[self.kind](np.random.default_rng(self.seed), (self.n, c)) * 10.0**power
        return np.clip(made, -1e30, 1e30).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """A source and a target for a method."""

    method: str
    c: int
    source: Part
    target: Part
    labels: str

    def fit(self) -> Estimator:
        """Return the model, or refuse the source."""
        logits = self.source.rows(self.c)
        return leadline.make(self.method, **OPTIONS.get(self.method, {})).fit(logits, self.make_labels(logits))

    def make_labels(self, logits: Floats) -> NDArray[np.int64]:
        """Return labels of the source: right, wrong, or of classes of unequal size, whatever was predicted."""
        predicted = logits.argmax(axis=1)
        rng = np.random.default_rng(self.source.seed + 1)
        unequal = np.minimum(rng.geometric(0.6, size=len(logits)) - 1, self.c - 1)
        made = {"right": predicted, "wrong": (predicted + 1) % self.c, "unequal": unequal}
        return made[self.labels] if self.labels in made else np.where(rng.random(len(logits)) < 0.7, predicted, unequal)


def _parts(smallest: int) -> st.SearchStrategy[Part]:
    powers = st.one_of(st.just(0), st.integers(smallest, 30))
    sizes = st.one_of(st.integers(1, 12), st.integers(13, 150))
    return st.builds(
        Part, st.sampled_from(sorted(ROWS)), sizes, powers, st.integers(0, 999), st.sampled_from(["f4", "f8"])
    )


def cases(methods: tuple[str, ...] = tuple(leadline.METHODS), smallest: int = -300) -> st.SearchStrategy[Case]:
    """Return a strategy of cases, with logits as small as a power of ten."""
    classes = st.sampled_from([2, 2, 3, 5, 20])
    labels = st.sampled_from(["right", "wrong", "unequal", "mostly right"])
    return st.builds(Case, st.sampled_from(methods), classes, _parts(smallest), _parts(smallest), labels)


def check(case: Case) -> bool:
    """Say whether a case was estimated, and not refused; no promise may break on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = unless_refused(case.fit)
        if model is None:
            return False
        target = case.target.rows(case.c)
        estimate = unless_refused(lambda: model.estimate(target))
    if estimate is None:
        return False
    require_sound(estimate)
    if estimate.n_samples != len(target):
        raise BrokenPromiseError(f"{estimate.n_samples} of {len(target)} rows")
    return True


def require_sound(estimate: Estimate) -> None:
    """Refuse an estimate with NaN, outside [0, 1], or with an interval that does not hold it."""
    low, high = estimate.interval
    if not 0 <= low <= estimate.accuracy <= high <= 1:
        raise BrokenPromiseError(f"accuracy {estimate.accuracy} and interval {estimate.interval}")
    by_row = np.zeros(0) if estimate.correctness is None else estimate.correctness
    if not np.all((by_row >= 0) & (by_row <= 1)):
        raise BrokenPromiseError(f"correctness from {by_row.min()} to {by_row.max()}")
    by_class = [entry.accuracy for entry in estimate.by_class if entry.accuracy is not None]
    if not all(0 <= accuracy <= 1 for accuracy in by_class):
        raise BrokenPromiseError(f"accuracy by class {by_class}")
    json.dumps(estimate.to_dict(), allow_nan=False)


def driven(strategy: st.SearchStrategy[Any], work: Callable[[Any], bool]) -> Callable[[bytes], bool]:
    """Return a function of bytes that does work on what hypothesis makes of them."""

    def attempt(data: bytes) -> bool:
        done: list[bool] = []

        @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(strategy)
        def once(case: Any) -> None:
            done.append(work(case))

        once.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]
        return any(done)

    return attempt


def choices() -> list[bytes]:
    """Return bytes from which hypothesis makes its first choices."""
    rng = np.random.default_rng(0)
    return [rng.bytes(200) for _ in range(20)]


TARGETS: dict[str, MakeTarget] = {"numbers": lambda folder: Target(driven(cases(), check), choices())}
