"""Draw each method where its assumption holds and where it does not: the pictures of methods.md.

    python docs/how/methods_figures.py

A world in which everything is known: five classes, each a Gaussian cloud, and the classifier that is best for them. Its
confidence is therefore right, until one of the changes below happens, by degrees.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leadline as ll

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "gallery"))
IMAGES = HERE.parent / "images" / "methods"

N_CLASSES, N_FEATURES, N_SOURCE, N_TARGET = 5, 6, 3000, 2000
DEGREES = np.linspace(0, 1, 6)
_CENTRES = np.random.default_rng(2).normal(0, 1.2, (N_CLASSES, N_FEATURES))
_EQUAL = np.full(N_CLASSES, 1.0 / N_CLASSES)
_LAST = np.eye(N_CLASSES)[-1]

Array = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class World:
    """Clouds, and a classifier that believes each to have a spread of 1; ``spreads`` are the true ones, by class."""

    spreads: tuple[float, ...] = (1.0,) * N_CLASSES

    def draw(self, n: int, frequencies: Array, rng: Rng) -> tuple[Array, NDArray[np.intp]]:
        """Return rows of features and their classes."""
        labels = rng.choice(N_CLASSES, n, p=frequencies)
        noise = rng.normal(size=(n, N_FEATURES)) * np.array(self.spreads)[labels][:, None]
        return _CENTRES[labels] + noise, labels


def logits(rows: Array) -> Array:
    """Return what the classifier gives out: the logarithms of the probabilities of the classes, up to a constant."""
    return np.asarray(rows @ _CENTRES.T - (_CENTRES**2).sum(axis=1) / 2)


FAIR = World()
#: One class is more spread out than the classifier believes, the others less.
UNEVEN = World((0.7, 0.7, 0.7, 0.7, 2.5))


def _noise(rows: Array, degree: float, rng: Rng) -> Array:
    return rows + 2.0 * degree * rng.normal(size=rows.shape)


def _drift(rows: Array, degree: float, rng: Rng) -> Array:
    del rng
    return rows + degree * (_CENTRES[4] - _CENTRES.mean(axis=0))


@dataclass(frozen=True)
class Change:
    """A change of the data, by degrees from 0 to 1.

    Attributes
    ----------
    title
        What it is called in pictures.
    features
        What becomes of the features; None for nothing.
    scale
        What the logits are multiplied by in the end.
    frequent
        The share of rows that go to the last class in the end, instead of where they belong.
    doubt
        How much rows between two classes are preferred in the end.
    wrong
        The share of rows in the end whose labels are others, while nothing else is.
    world
        Where source and target come from.
    """

    title: str
    features: Callable[[Array, float, Rng], Array] | None = None
    scale: float = 1.0
    frequent: float = 0.0
    doubt: float = 0.0
    wrong: float = 0.0
    world: World = FAIR

    def target(self, degree: float) -> ll.Outputs:
        """Return outputs with labels; the same rows, as far as they can be, at every degree."""
        rng = np.random.default_rng(1)
        share = self.frequent * degree
        rows, labels = self.world.draw(N_TARGET * (4 if self.doubt else 1), (1 - share) * _EQUAL + share * _LAST, rng)
        if self.doubt:
            top = np.sort(logits(rows), axis=1)
            preferred = np.exp(-self.doubt * degree * (top[:, -1] - top[:, -2]))
            kept = rng.choice(len(rows), N_TARGET, replace=False, p=preferred / preferred.sum())
            rows, labels = rows[kept], labels[kept]
        labels = np.where(rng.random(len(labels)) < self.wrong * degree, (labels + 1) % N_CLASSES, labels)
        if self.features is not None:
            rows = self.features(rows, degree, rng)
        return ll.Outputs(self.scale**degree * logits(rows), labels)


CHANGES: Mapping[str, Change] = {
    "noise": Change("noise in the inputs", features=_noise),
    "collapse": Change("predictions drift to one class", features=_drift),
    "label-shift": Change("one class becomes frequent", frequent=0.7),
    "uneven": Change("a miscalibrated class becomes frequent", frequent=0.7, world=UNEVEN),
    "doubt": Change("more rows between two classes", doubt=1.6),
    "flat": Change("flatter logits, same predictions", scale=0.3),
    "sharp": Change("sharper logits, same predictions", scale=4.0),
    "wrong": Change("confidently wrong", wrong=0.4),
}
#: By method: a change under which it holds, and one under which it does not.
SHOWN: Mapping[str, tuple[str, str]] = {
    "auto": ("label-shift", "wrong"),
    "alsa-g": ("label-shift", "collapse"),
    "alsa-e": ("label-shift", "noise"),
    "ac": ("doubt", "noise"),
    "cbpe": ("label-shift", "collapse"),
    "doc": ("label-shift", "uneven"),
    "im": ("doubt", "sharp"),
    "atc-mc": ("label-shift", "doubt"),
    "atc-ne": ("label-shift", "flat"),
    "cot": ("collapse", "label-shift"),
    "cott": ("collapse", "label-shift"),
}


@dataclass(frozen=True)
class Course:
    """Accuracy under a change by degrees: the truth, and the estimates by method."""

    truth: Array
    estimates: Mapping[str, Array]

    def errors(self, method: str) -> Array:
        """Return estimated less true accuracy."""
        return np.asarray(self.estimates[method] - self.truth)


def fitted(world: World, methods: Mapping[str, Any] = ll.METHODS) -> dict[str, ll.Estimator]:
    """Return methods fitted on the source of a world."""
    rows, labels = world.draw(N_SOURCE, _EQUAL, np.random.default_rng(0))
    return {name: ll.make(name).fit(logits(rows), labels) for name in methods}


def courses() -> dict[str, Course]:
    """Return what every method says under every change."""
    models = {world: fitted(world) for world in (FAIR, UNEVEN)}
    found = {}
    for name, change in CHANGES.items():
        targets = [change.target(degree) for degree in DEGREES]
        estimates = {
            method: np.array([model.estimate(target.logits).accuracy for target in targets])
            for method, model in models[change.world].items()
        }
        found[name] = Course(np.array([target.accuracy for target in targets]), estimates)
    return found


def draw_method(method: str, found: Mapping[str, Course]) -> Any:
    """Return a figure of a method where it holds, and where it does not."""
    from matplotlib import pyplot as plt

    from leadline.report.style import COLOURS

    figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.7), sharey=True)
    for ax, name, verdict in zip(panels, SHOWN[method], ("holds", "fails"), strict=True):
        course, colour = found[name], COLOURS[0] if verdict == "holds" else COLOURS[1]
        ends = {"truth": (course.truth, "black"), method: (course.estimates[method], colour)}
        if method != "auto":
            ax.plot(DEGREES, course.estimates["auto"], color="#A9B1BA", linewidth=1.2)
            ends["auto"] = (course.estimates["auto"], "#8A929B")
        ax.fill_between(DEGREES, course.truth, course.estimates[method], color=colour, alpha=0.15, linewidth=0)
        ax.plot(DEGREES, course.estimates[method], color=colour)
        ax.plot(DEGREES, course.truth, "o", color="black", markersize=4)
        for text, height, shade in _apart([(text, values[-1], shade) for text, (values, shade) in ends.items()]):
            ax.text(1.04, height, text, color=shade, va="center", weight="bold" if text == method else "normal")
        ax.set(xlim=(-0.03, 1.3), ylim=(0.15, 1.02), xticks=[0, 1], xticklabels=["none", "much"])
        ax.set_title(f"{verdict}: {CHANGES[name].title}", color=colour)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panels[0].set_ylabel("accuracy")
    return figure


def _apart(labels: list[tuple[str, float, str]], least: float = 0.075) -> list[tuple[str, float, str]]:
    """Return texts in the order of their heights, moved as little as makes them readable."""
    from scipy.optimize import isotonic_regression

    ordered = sorted(labels, key=lambda label: label[1])
    steps = least * np.arange(len(ordered))
    heights = isotonic_regression(np.array([height for _, height, _ in ordered]) - steps).x + steps
    return [(text, height, shade) for (text, _, shade), height in zip(ordered, heights, strict=True)]


def draw_overview(found: Mapping[str, Course]) -> Any:
    """Return a figure of the error of every method under every change, where there is much of it."""
    from matplotlib import pyplot as plt

    methods = list(SHOWN)
    errors = 100 * np.array([[found[name].errors(method)[-1] for name in CHANGES] for method in methods])
    figure, ax = plt.subplots(figsize=(7.2, 4.9))
    ax.imshow(errors, cmap="PuOr_r", vmin=-60, vmax=60, aspect="auto")
    for (row, column), value in np.ndenumerate(errors):
        shade = "white" if abs(value) > 36 else "black" if abs(value) >= 4 else "#B8BEC5"
        ax.text(column, row, f"{round(value):+d}", ha="center", va="center", color=shade)
    ax.set_xticks(range(len(CHANGES)), [_folded(change.title) for change in CHANGES.values()], size=8)
    ax.set_yticks(range(len(methods)), methods)
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(-0.5, len(CHANGES)), minor=True)
    ax.set_yticks(np.arange(-0.5, len(methods)), minor=True)
    ax.grid(visible=False)
    ax.grid(which="minor", axis="both", color="white", linewidth=2)
    ax.spines[:].set_visible(False)
    return figure


def _folded(title: str) -> str:
    """Return a title in lines that fit a column."""
    from textwrap import fill

    return fill(title, 15)


def main() -> None:
    """Draw all of them."""
    import pictures

    found = courses()
    IMAGES.mkdir(parents=True, exist_ok=True)
    with pictures.collected():
        for method in SHOWN:
            pictures.save(draw_method(method, found), IMAGES / f"{method}.png")
        pictures.save(draw_overview(found), IMAGES / "overview.png")


if __name__ == "__main__":
    main()
