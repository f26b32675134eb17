"""1,000 Chinese characters, read from small grey pictures: many classes, corruptions, unseen fonts, label shift.

    python docs/studies/families/glyphs.py --out DIR

Characters: 1,000 of those that the first levels of GB 2312, JIS X 0208 and Big5 have in common, drawn at random.
Fonts, from Debian packages (unpacked, not installed): WenQuanYi Micro Hei (Apache-2.0 or GPL-3 with font exception) and
Zen Hei (GPL-2 with font exception), AR PL UMing and UKai (Arphic Public License), VL Gothic (M+, Sazanami, BSD) and
IPAex Mincho (IPA Font License) are trained on; LXGW WenKai, Yusei Magic and Seto (all SIL OFL 1.1) are not.
Rows are pictures of 24 x 24 with random place, size, slant, stroke width, contrast and noise.

Models: a linear model of histograms of gradients, a perceptron with one hidden layer and a convolutional network, all
of 96,000 pictures, and the same network of 12,000 (``cnn_few``). Shifts: noise, blur, low contrast, rotation, occlusion
and JPEG at several strengths, the three fonts, 300 of the classes only, classes weighted as 1 / rank, and both of these
with a corruption.
Needs torch and Pillow; about 20 minutes on one core.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from common import arguments, write
from downloads import debian_packages, file_in
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor, nn
from torch.nn import functional

CLASSES, SIDE, DRAWN = 1000, 24, 48
SOURCE_ROWS, TARGET_ROWS, COPIES = 3000, 2000, 16
TRAINED = {
    "fonts-wqy-microhei": "wqy-microhei.ttc",
    "fonts-wqy-zenhei": "wqy-zenhei.ttc",
    "fonts-arphic-uming": "uming.ttc",
    "fonts-arphic-ukai": "ukai.ttc",
    "fonts-vlgothic": "VL-Gothic-Regular.ttf",
    "fonts-ipaexfont-mincho": "ipaexm.ttf",
}
UNSEEN = {
    "wenkai": ("fonts-lxgw-wenkai", "LXGWWenKai-Regular.ttf"),
    "marker": ("fonts-yusei-magic", "YuseiMagic-Regular.ttf"),
    "longhand": ("fonts-seto", "setofont.ttf"),
}


def characters(rng: np.random.Generator) -> list[str]:
    """Return the characters that are the classes."""
    first_levels = (("gb2312", 0xB0, 0xD7), ("euc_jp", 0xB0, 0xCF), ("big5", 0xA4, 0xC6))
    common: set[str] | None = None
    for codec, low, high in first_levels:
        pairs = (bytes((lead, trail)) for lead in range(low, high + 1) for trail in range(0x40, 0xFF))
        found = {pair.decode(codec, "ignore") for pair in pairs}
        common = found if common is None else common & found
    assert common is not None
    ideographs = sorted(c for c in common if len(c) == 1 and "\u4e00" <= c <= "\u9fff")
    return [ideographs[i] for i in sorted(rng.permutation(len(ideographs))[:CLASSES])]


def rendered(package: Path, file: str, chars: list[str]) -> Tensor:
    """Return one large picture of each character in a font of a package, ink 1 on paper 0."""
    font = ImageFont.truetype(file_in(package, file), 42)
    pictures = np.zeros((len(chars), DRAWN, DRAWN), dtype=np.float32)
    for picture, char in zip(pictures, chars, strict=True):
        image = Image.new("L", (DRAWN, DRAWN))
        ImageDraw.Draw(image).text((DRAWN / 2, DRAWN / 2), char, fill=255, font=font, anchor="mm")
        picture[:] = np.asarray(image) / 255
    return torch.from_numpy(pictures)


def varied(large: Tensor, generator: torch.Generator, turn: float = 8.0) -> Tensor:
    """Return pictures of 24 x 24, each with its own stroke, place, size, slant, contrast and noise."""

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(large), generator=generator)

    ink = large[:, None]
    thick, thin = functional.max_pool2d(ink, 3, 1, 1), -functional.max_pool2d(-ink, 3, 1, 1)
    stroke = uniform(-0.6, 1.0)[:, None, None, None]
    ink = torch.where(stroke > 0, torch.lerp(ink, thick, stroke.abs()), torch.lerp(ink, thin, stroke.abs()))
    angle, slant = uniform(-turn, turn) * math.pi / 180, uniform(-0.15, 0.15)
    across, down = uniform(0.9, 1.3), uniform(0.9, 1.3)
    matrix = torch.stack(
        [
            torch.stack([across * angle.cos(), across * (slant - angle.sin()), uniform(-0.16, 0.16)], dim=1),
            torch.stack([down * angle.sin(), down * angle.cos(), uniform(-0.16, 0.16)], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(matrix, [len(large), 1, SIDE, SIDE], align_corners=False)
    small = functional.grid_sample(ink, grid, align_corners=False)
    small = small * uniform(0.5, 1.0)[:, None, None, None]
    noise = torch.randn(small.shape, generator=generator) * uniform(0.0, 0.2)[:, None, None, None]
    return (small + noise).clamp(0, 1)


def noisy(deviation: float) -> Callable[[Tensor], Tensor]:
    return lambda x: (x + deviation * torch.randn(x.shape, generator=torch.Generator().manual_seed(7))).clamp(0, 1)


def blurred(deviation: float) -> Callable[[Tensor], Tensor]:
    kernel = torch.exp(-0.5 * (torch.arange(-4, 5) / deviation) ** 2)
    kernel = kernel / kernel.sum()
    return lambda x: functional.conv2d(
        functional.conv2d(x, kernel.view(1, 1, 9, 1), padding=(4, 0)), kernel.view(1, 1, 1, 9), padding=(0, 4)
    )


def flattened(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda x: 0.4 + factor * (x - 0.4)


def occluded(side: int, seed: int = 8) -> Callable[[Tensor], Tensor]:
    """Return what hides a square of this side in each picture."""

    def apply(pictures: Tensor) -> Tensor:
        places = pictures.shape[-1] - side + 1
        corners = torch.randint(0, places, (len(pictures), 2), generator=torch.Generator().manual_seed(seed))
        covered = pictures.clone()
        for picture, (row, column) in zip(covered, corners.tolist(), strict=True):
            picture[:, row : row + side, column : column + side] = 0.5
        return covered

    return apply


def compressed(quality: int) -> Callable[[Tensor], Tensor]:
    def one(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        stream = io.BytesIO()
        Image.fromarray(picture).save(stream, "jpeg", quality=quality)
        return np.asarray(Image.open(stream))

    return lambda x: torch.from_numpy(
        np.stack([one(p) for p in (255 * x[:, 0]).byte().numpy()])[:, None] / np.float32(255)
    )


CORRUPTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "noise_1": noisy(0.1),
    "noise_2": noisy(0.2),
    "noise_3": noisy(0.35),
    "blur_1": blurred(0.6),
    "blur_2": blurred(0.9),
    "blur_3": blurred(1.3),
    "contrast_1": flattened(0.6),
    "contrast_2": flattened(0.3),
    "occlusion_1": occluded(5),
    "occlusion_2": occluded(8),
    "jpeg_1": compressed(30),
    "jpeg_2": compressed(12),
}
ROTATIONS = {"rotation_1": 20.0, "rotation_2": 35.0}


class Histograms(nn.Module):
    """Directions of the gradient in eight bins, summed over cells of 4 x 4 pixels, each cell of length one."""

    def forward(self, pictures: Tensor) -> Tensor:
        down, across = torch.gradient(pictures[:, 0], dim=(1, 2))
        place = (torch.atan2(down, across) / math.pi + 1) * 4
        size = (down**2 + across**2 + 1e-12).sqrt()
        bins = torch.arange(8.0).view(1, 8, 1, 1)
        away = (place[:, None] - bins).abs()
        share = (1 - torch.minimum(away, 8 - away)).clamp(min=0)
        cells = functional.avg_pool2d(share * size[:, None], 4)
        return functional.normalize(cells, dim=1, eps=0.05).flatten(1) * 3


def convolutional() -> nn.Module:
    def block(channels: int, out: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*block(1, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 9, CLASSES)]
    return nn.Sequential(*layers)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 1024), nn.ReLU(), nn.Linear(1024, CLASSES))


@dataclass(frozen=True)
class Recipe:
    """A model, how many of the pictures of each glyph it sees, how often, and the highest learning rate."""

    make: Callable[[], nn.Module]
    copies: int
    epochs: int
    rate: float


MODELS = {
    "hog_linear": Recipe(lambda: nn.Sequential(Histograms(), nn.Linear(288, CLASSES)), COPIES, 6, 1e-2),
    "mlp": Recipe(perceptron, COPIES, 8, 1e-3),
    "cnn": Recipe(convolutional, COPIES, 5, 3e-3),
    "cnn_few": Recipe(convolutional, 2, 20, 3e-3),
}


def trained(recipe: Recipe, pictures: Tensor, labels: Tensor) -> nn.Module:
    """Fit a model to pictures of bytes with Adam on one cycle of learning rates."""
    model = recipe.make()
    size = 128
    generator = torch.Generator().manual_seed(3)
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.rate, total_steps=recipe.epochs * (len(labels) // size)
    )
    for _ in range(recipe.epochs):
        order = torch.randperm(len(labels), generator=generator)
        for rows in order[: len(order) // size * size].view(-1, size):
            loss = functional.cross_entropy(model(pictures[rows] / 255), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def weighted_targets(rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Return the classes of rows of each kind of target."""
    few = rng.permutation(CLASSES)[:300]
    weights = 1 / (1 + rng.permutation(CLASSES))
    return {
        "all": rng.integers(CLASSES, size=TARGET_ROWS),
        "few": rng.choice(few, size=TARGET_ROWS),
        "weighted": rng.choice(CLASSES, size=TARGET_ROWS, p=weights / weights.sum()),
    }


def targets(
    fonts: Tensor, unseen: dict[str, Tensor], rng: np.random.Generator
) -> dict[str, tuple[Tensor, NDArray[np.int64]]]:
    """Return pictures and classes of every target."""
    generator = torch.Generator().manual_seed(2)
    classes = weighted_targets(rng)

    def drawn(labels: NDArray[np.int64], turn: float = 8.0) -> Tensor:
        return varied(fonts[rng.integers(len(fonts), size=len(labels)), labels], generator, turn)

    found = {"clean": (drawn(classes["all"]), classes["all"])}
    for name, corrupt in CORRUPTIONS.items():
        found[name] = (corrupt(drawn(classes["all"])), classes["all"])
    for name, turn in ROTATIONS.items():
        found[name] = (drawn(classes["all"], turn), classes["all"])
    for name, font in unseen.items():
        found[f"font_{name}"] = (varied(font[classes["all"]], generator), classes["all"])
    found["few"] = (drawn(classes["few"]), classes["few"])
    found["few_noise"] = (CORRUPTIONS["noise_2"](drawn(classes["few"])), classes["few"])
    found["weighted"] = (drawn(classes["weighted"]), classes["weighted"])
    found["weighted_blur"] = (CORRUPTIONS["blur_2"](drawn(classes["weighted"])), classes["weighted"])
    return found


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    chars = characters(rng)
    packages = debian_packages((*TRAINED, *(package for package, _ in UNSEEN.values())), options.cache)
    fonts = torch.stack([rendered(packages[package], file, chars) for package, file in TRAINED.items()])
    unseen = {name: rendered(packages[package], file, chars) for name, (package, file) in UNSEEN.items()}
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(CLASSES).repeat(len(fonts) * COPIES)
    every = fonts.flatten(0, 1)
    pictures = torch.cat([(255 * varied(every, generator)).byte() for _ in range(COPIES)])
    source_labels = rng.integers(CLASSES, size=SOURCE_ROWS)
    source = varied(fonts[rng.integers(len(fonts), size=SOURCE_ROWS), source_labels], generator)
    samples = {f"target_{name}": sample for name, sample in targets(fonts, unseen, rng).items()}
    for name, recipe in MODELS.items():
        seen = recipe.copies * len(every)
        model = trained(recipe, pictures[:seen], labels[:seen])
        with torch.no_grad():
            for sample, (rows, truth) in {"source": (source, source_labels), **samples}.items():
                logits = torch.cat([model(part) for part in rows.split(500)])
                write(options.out, "glyphs", name, sample, logits, truth)


if __name__ == "__main__":
    main()
