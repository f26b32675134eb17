"""An example from beginning to end without a download: digits, real shifts, every method.

scikit-learn ships 1,797 images of handwritten digits, 8 x 8 pixels each. A small network learns a third of
them, a third becomes the labelled source, and the last third is shifted in several ways into targets of known
accuracy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.comparison import Comparison, Progress, counting, evaluate, fit_planned, plan_fits
from leadline.data.outputs import IntArray, Outputs
from leadline.errors import InputError

SEED = 0
BRIGHTEST = 16.0
FIGURE = "estimated_vs_true.png"
TRAFFIC = "traffic.parquet"
COMPARISON = "comparison.json"

Images = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Demo:
    """What the demo made.

    Attributes
    ----------
    folder
        Where the files are.
    source_accuracy
        True accuracy of the network on the labelled source.
    comparison
        Every method on every target.
    figure
        Estimated against true accuracy; None where matplotlib is not installed.
    """

    folder: Path
    source_accuracy: float
    comparison: Comparison
    figure: Path | None


def run(folder: str | Path, *, force: bool = False, progress: Progress | None = None) -> Demo:
    """Train, shift, estimate, and write everything used to a folder.

    Parameters
    ----------
    folder
        Made if it does not exist.
    force
        Overwrite the demo's files if they exist.
    progress
        Called after each step with steps done, steps in all, and what was done.
    """
    from leadline.data.files import write_bytes, write_outputs

    folder, plan = Path(folder), plan_fits()
    draws = find_spec("matplotlib") is not None
    _check_folder(folder, [method for method, _, _ in plan], force=force)
    report = counting(progress, 2 + len(plan) * (1 + len(TARGETS)))
    source, targets = digits_outputs()
    report("train a network on digits")
    folder.mkdir(parents=True, exist_ok=True)
    write_outputs(source, folder / "source.npz", force=force)
    for name, target in targets.items():
        write_outputs(target, folder / target_file(name), force=force)
    write_outputs(_traffic(targets), folder / TRAFFIC, force=force)
    fitted = fit_planned(source, plan, progress=report)
    for fit in fitted:
        fit.estimator.save(folder / model_file(fit.method), force=force)
    comparison = evaluate(fitted, targets, progress=report)
    write_bytes(folder / COMPARISON, json.dumps(comparison.to_dict(), indent=2).encode() + b"\n", force=force)
    if draws:
        from leadline.report.scatter import save_predicted_vs_true

        save_predicted_vs_true(comparison, folder / FIGURE)
    report("draw the figure")
    return Demo(folder, float(source.accuracy or 0.0), comparison, folder / FIGURE if draws else None)


def digits_outputs() -> tuple[Outputs, dict[str, Outputs]]:
    """Return a small network's outputs on labelled source digits, and on targets by name of shift."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        raise InputError(
            "the demo needs scikit-learn, which is not installed; run pip install 'leadline[demo]'."
        ) from error

    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    images, labels = digits.images[order], digits.target[order].astype(np.int64)
    train, source, rest = np.array_split(np.arange(len(labels)), 3)
    network = MLPClassifier((64,), alpha=1.0, learning_rate_init=3e-3, max_iter=1000, random_state=SEED)
    network.fit(_pixels(images[train]), labels[train])

    def outputs(images: Images, labels: IntArray) -> Outputs:
        return Outputs(_logits(network, _pixels(images)), labels)

    targets = {}
    for number, name in enumerate(TARGETS):
        rng = np.random.default_rng([SEED, number])
        rows = _mostly(FREQUENT, labels[rest], rng) if name == LABEL_SHIFT else np.arange(len(rest))
        shifted = SHIFTS[name](images[rest], rng) if name in SHIFTS else images[rest]
        targets[name] = outputs(shifted[rows], labels[rest][rows])
    return outputs(images[source], labels[source]), targets


def target_file(name: str) -> str:
    """Return the file name of a target."""
    return f"target_{name}.npz"


def model_file(method: str) -> str:
    """Return the file name of a fitted method."""
    return f"{method}.leadline"


def _check_folder(folder: Path, methods: list[str], *, force: bool) -> None:
    """Refuse, before any work, to overwrite what is there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give another name.")
    names = ["source.npz", *map(target_file, TARGETS), TRAFFIC, *map(model_file, methods), COMPARISON, FIGURE]
    existing = next((name for name in names if (folder / name).exists()), None)
    if existing is not None and not force:
        raise InputError(f"file {folder / existing} exists; use --force to overwrite it, or another folder.")


def _traffic(targets: dict[str, Outputs]) -> Outputs:
    """Return all targets as one unlabelled set with the shift as a column, like mixed traffic."""
    origin = np.concatenate([np.full(len(target), name) for name, target in targets.items()])
    return Outputs(np.concatenate([target.logits for target in targets.values()]), metadata={"shift": origin})


def _pixels(images: Images) -> Images:
    """Return images as rows of numbers from 0 to 1."""
    return images.reshape(len(images), -1) / BRIGHTEST


def _logits(network: Any, rows: Images) -> NDArray[np.float32]:
    """Return the network's outputs before softmax, shape (n, 10); scikit-learn gives probabilities only."""
    *hidden, last = zip(network.coefs_, network.intercepts_, strict=True)
    for weights, bias in hidden:
        rows = np.maximum(rows @ weights + bias, 0.0)
    weights, bias = last
    return np.asarray(rows @ weights + bias, dtype=np.float32)


def _rotate(images: Images, rng: Rng, *, degrees: float) -> Images:
    from scipy.ndimage import rotate

    del rng
    return np.asarray(rotate(images, degrees, axes=(2, 1), reshape=False, order=1))


def _translate(images: Images, rng: Rng, *, pixels: float) -> Images:
    from scipy.ndimage import shift

    del rng
    return np.asarray(shift(images, (0, 0, pixels), order=1))


def _blur(images: Images, rng: Rng, *, width: float) -> Images:
    from scipy.ndimage import gaussian_filter

    del rng
    return np.asarray(gaussian_filter(images, (0, width, width)))


def _noise(images: Images, rng: Rng, *, spread: float) -> Images:
    return np.clip(images + rng.normal(0.0, spread * BRIGHTEST, images.shape), 0.0, BRIGHTEST)


def _fade(images: Images, rng: Rng, *, contrast: float) -> Images:
    del rng
    return BRIGHTEST / 2 + contrast * (images - BRIGHTEST / 2)


def _invert(images: Images, rng: Rng, *, share: float) -> Images:
    inverted = rng.random((len(images), 1, 1)) < share
    return np.where(inverted, BRIGHTEST - images, images)


def _drop(images: Images, rng: Rng, *, share: float) -> Images:
    return np.where(rng.random(images.shape) < share, 0.0, images)


def _occlude(images: Images, rng: Rng, *, size: int) -> Images:
    covered = images.copy()
    corners = rng.integers(0, images.shape[1] - size + 1, (len(images), 2))
    for image, (top, left) in zip(covered, corners, strict=True):
        image[top : top + size, left : left + size] = 0.0
    return covered


def _mostly(frequent: tuple[int, ...], labels: IntArray, rng: Rng) -> NDArray[np.intp]:
    """Draw as many rows as there are, most of them of the frequent classes."""
    often = np.isin(labels, frequent)
    weight = np.where(often, 0.8 / often.sum(), 0.2 / (~often).sum())
    return rng.choice(len(labels), len(labels), p=weight)


SHIFTS: dict[str, Callable[[Images, Rng], Images]] = {
    "rotate10": partial(_rotate, degrees=10.0),
    "rotate20": partial(_rotate, degrees=20.0),
    "translate": partial(_translate, pixels=0.5),
    "blur": partial(_blur, width=1.0),
    "noise1": partial(_noise, spread=0.2),
    "noise2": partial(_noise, spread=0.4),
    "contrast": partial(_fade, contrast=0.5),
    "invert": partial(_invert, share=0.1),
    "missing1": partial(_drop, share=0.15),
    "missing2": partial(_drop, share=0.3),
    "occlude": partial(_occlude, size=3),
}
LABEL_SHIFT = "labelshift"
FREQUENT = (1, 8, 9)
TARGETS = ("clean", *SHIFTS, LABEL_SHIFT)
