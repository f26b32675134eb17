"""How good the methods are on real logits that are in the repository, where the large data is absent.

The logits are those of a small network on 599 digits (source, 97.0 % right), on 599 others (97.5 %), on these with
noise (78.8 %), and with other class frequencies (96.0 %); ``fixtures/make_digits.py`` made them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from leadline import METHODS, Outputs, make

FILE = Path(__file__).parents[1] / "fixtures" / "digits.npz"
TARGETS = ("clean", "noise2", "labelshift")
N_SEEDS = 4
N_SPLITS = 6


@dataclass(frozen=True)
class Bounds:
    """The most points that a method may be off: what was measured, which the comments give, and a margin.

    Attributes
    ----------
    clean, noise2, labelshift
        Absolute error on a target, its mean over seeds where something is random.
    halves
        Mean error, sign kept, on halves of the source when fitted on the others. Chance alone gives a few tenths.
    """

    clean: float
    noise2: float
    labelshift: float
    halves: float


#: To say that nothing changed would be off by 0.5, 18.2 and 1.0 points.
BOUNDS = {
    # Which rows of the source are drawn together decides between 4.5 and 7: noise of 1e-4 on its logits is enough.
    "auto": Bounds(1.0, 7.5, 1.5, 1.0),  # 0.2, 4.5, 0.7, -0.2
    "alsa-g": Bounds(2.5, 4.5, 5.0, 4.0),  # 1.1, 2.2, 3.5, -2.9: too low with few rows
    "alsa-e": Bounds(5.5, 12.5, 9.5, 6.5),  # 4.3, 10.2, 7.9, -5.1: much too low with few rows
    "ac": Bounds(1.2, 8.0, 1.0, 1.0),  # 0.7, 7.3, 0.2, -0.5
    "cbpe": Bounds(1.0, 11.5, 1.0, 1.0),  # 0.4, 10.8, 0.3, -0.3
    "doc": Bounds(1.0, 8.5, 1.0, 1.0),  # 0.1, 7.9, 0.4, 0.0
    "im": Bounds(1.0, 10.0, 1.0, 1.0),  # 0.4, 9.4, 0.5, 0.0
    "atc-mc": Bounds(1.0, 8.0, 1.5, 1.0),  # 0.2, 7.5, 0.7, -0.2
    "atc-ne": Bounds(1.5, 4.5, 2.0, 1.0),  # 0.8, 4.0, 1.5, -0.3
    # Both assume the class frequencies of the source: label shift breaks that, and with 30 rows of each class, so does
    # chance, which costs six points.
    "cot": Bounds(6.5, 5.0, 48.5, 8.0),  # 5.9, 4.4, 47.8, -6.7
    "cott": Bounds(6.5, 6.0, 49.5, 8.0),  # 5.7, 5.3, 48.8, -6.5
}


@pytest.fixture(scope="module")
def digits() -> dict[str, Outputs]:
    with np.load(FILE) as arrays:
        return {
            name: Outputs(arrays[f"{name}_logits"].astype(np.float32), arrays[f"{name}_labels"].astype(np.int64))
            for name in ("source", *TARGETS)
        }


def test_the_file_is_small_and_what_the_bounds_belong_to(digits: dict[str, Outputs]) -> None:
    assert FILE.stat().st_size < 100_000
    assert {name: (len(outputs), outputs.n_classes) for name, outputs in digits.items()} == dict.fromkeys(
        digits, (599, 10)
    )
    truths = {name: round(100 * (outputs.accuracy or 0.0), 1) for name, outputs in digits.items()}
    assert truths == {"source": 97.0, "clean": 97.5, "noise2": 78.8, "labelshift": 96.0}


def test_every_method_of_leadline_has_bounds() -> None:
    assert {name for name, method in METHODS.items() if method.cls.__module__.startswith("leadline.")} == set(BOUNDS)


@pytest.mark.parametrize("method", BOUNDS)
def test_estimates_are_near_the_truth(method: str, digits: dict[str, Outputs]) -> None:
    source, bounds = digits["source"], BOUNDS[method]
    seeds = [{"seed": seed} for seed in range(N_SEEDS)] if "seed" in make(method).get_params() else [{}]
    errors: dict[str, list[float]] = {name: [] for name in TARGETS}
    for seed in seeds:
        model = make(method, **seed).fit(source.logits, source.labels)
        for name in TARGETS:
            estimate, truth = model.estimate(digits[name].logits), digits[name].accuracy
            assert truth is not None
            assert estimate.interval[0] <= truth <= estimate.interval[1], name
            errors[name].append(100 * abs(estimate.accuracy - truth))
    assert {name: np.mean(found) for name, found in errors.items() if np.mean(found) > getattr(bounds, name)} == {}


@pytest.mark.parametrize("method", BOUNDS)
def test_a_half_of_the_source_tells_of_the_other(method: str, digits: dict[str, Outputs]) -> None:
    source = digits["source"]
    assert source.labels is not None
    right = source.logits.argmax(axis=1) == source.labels
    errors = []
    for seed in range(N_SPLITS):
        one, other = np.array_split(np.random.default_rng(seed).permutation(len(source)), 2)
        for known, unknown in ((one, other), (other, one)):
            model = make(method).fit(source.logits[known], source.labels[known])
            errors.append(100 * (model.estimate(source.logits[unknown]).accuracy - right[unknown].mean()))
    assert abs(np.mean(errors)) < BOUNDS[method].halves
