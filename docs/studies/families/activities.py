"""Which of seven exercises of the shoulder somebody does, by a watch's sensors: other people, the other arm, handling.

    python docs/studies/families/activities.py --out DIR

Data: ten people doing seven exercises of physiotherapy with each arm, a watch with accelerometer and gyroscope on it,
50 readings a second (Burns et al., 2018), in the package seglearn 1.2.5 of PyPI (BSD 3-Clause; downloaded, not
installed). Rows are windows of two seconds that begin every 0.24 seconds. Trained on the first half of each recording
of the right arm of the first six people; the source is the third quarter of these, the target ``clean`` the last one.

Models: logistic regression and a forest on each sensor's mean, deviation, quantiles, changes and frequencies; a
convolutional and a recurrent network on the readings. Shifts: the right arm of each of the other four people, their
left arms, the left arms of the first six; in the target ``clean`` noise, a watch turned on the wrist, worn the other
way round, its gyroscope off, readings lost or too large, slow and fast movements; exercises weighted, also of other
people; four exercises only, of other people or with noise.
Needs scikit-learn, pandas, torch and Pillow; half a minute on one core.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, write
from downloads import file_in, from_pypi
from glyphs import Recipe, trained
from numpy.typing import NDArray
from shifts import label_shift, some_rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import logits_of
from torch import Tensor, nn

CLASSES, SENSORS = 7, 6
LENGTH, STEP = 100, 12  # readings in a window and between the beginnings of two
KNOWN_PEOPLE, PEOPLE = 6, 10
ROWS = 1000

Windows = NDArray[np.float32]  # rows, readings, sensors: acceleration in three directions, rotation about three
Sample = tuple[Windows, NDArray[np.int64]]
Recording = tuple[Windows, int, int, bool]  # readings, exercise, person from 1, whether of the right arm


def recordings(cache: Path) -> list[Recording]:
    package = from_pypi("seglearn", "1.2.5", cache)
    data = np.load(file_in(package, "watch_dataset.npy"), allow_pickle=True).item()
    return [
        (readings.astype(np.float32), int(exercise), int(person), bool(side))
        for readings, exercise, person, side in zip(data["X"], data["y"], data["subject"], data["side"], strict=True)
    ]


def cut(chosen: list[Recording], start: float = 0, end: float = 1, step: int = STEP) -> Sample:
    """Return the windows that lie within this part of each recording."""
    rows, labels = [], []
    for readings, exercise, _, _ in chosen:
        low, high = int(start * len(readings)), int(end * len(readings))
        found = [readings[i : i + LENGTH] for i in range(low, high - LENGTH + 1, step)]
        rows += found
        labels += [exercise] * len(found)
    return np.stack(rows), np.array(labels)


def turned(degrees: float) -> Callable[[Windows], Windows]:
    """Return what turns the watch about its third direction."""
    angle = math.radians(degrees)
    turn = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    both = np.kron(np.eye(2), turn).astype(np.float32)

    def apply(windows: Windows) -> Windows:
        found: Windows = windows @ both
        return found

    return apply


def paced(factor: float) -> Callable[[Windows], Windows]:
    """Return what makes movements slower (below 1) or faster, in a window that goes on with its own mirror image."""
    places = np.arange(LENGTH) * factor
    places = np.where(places <= LENGTH - 1, places, 2 * (LENGTH - 1) - places)
    low = np.minimum(places.astype(int), LENGTH - 2)
    share = (places - low).astype(np.float32)[:, None]
    return lambda windows: windows[:, low] * (1 - share) + windows[:, low + 1] * share


def noisy(windows: Windows, share: float, rng: np.random.Generator) -> Windows:
    """Add noise with this share of each sensor's deviation."""
    noise: Windows = rng.normal(size=windows.shape).astype(np.float32) * windows.std(axis=(0, 1))
    return windows + share * noise


def interrupted(windows: Windows, chance: float, rng: np.random.Generator) -> Windows:
    """Lose readings with this chance: the one before stays, as in bad connections."""
    kept = rng.random(windows.shape[:2]) >= chance
    kept[:, 0] = True
    last = np.maximum.accumulate(np.where(kept, np.arange(LENGTH), 0), axis=1)
    return windows[np.arange(len(windows))[:, None], last]


def features(windows: Windows) -> NDArray[np.float64]:
    """Return what the models of features know of each sensor."""
    quantiles = np.quantile(windows, [0, 0.25, 0.5, 0.75, 1], axis=1)
    changes = np.abs(np.diff(windows, axis=1)).mean(axis=1)
    waves = np.log(np.abs(np.fft.rfft(windows - windows.mean(axis=1, keepdims=True), axis=1))[:, 1:9] + 1e-3)
    parts = [windows.mean(axis=1), windows.std(axis=1), *quantiles, changes, *waves.swapaxes(0, 1)]
    return np.concatenate(parts, axis=1).astype(float)


class Recurrent(nn.Module):
    """The mean of the states of a network that reads a window from its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.BatchNorm1d(SENSORS)
        self.reader = nn.GRU(SENSORS, 48, batch_first=True)
        self.last = nn.Linear(48, CLASSES)

    def forward(self, windows: Tensor) -> Tensor:
        states, _ = self.reader(self.scale(windows).transpose(1, 2))
        scores: Tensor = self.last(states.mean(dim=1))
        return scores


def convolutional() -> nn.Module:
    def block(channels: int, out: int) -> list[nn.Module]:
        return [nn.Conv1d(channels, out, 7, stride=2, padding=3), nn.BatchNorm1d(out), nn.ReLU()]

    layers = [*block(SENSORS, 32), *block(32, 48), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(192, CLASSES)]
    return nn.Sequential(nn.BatchNorm1d(SENSORS), *layers)


def as_tensor(windows: Windows) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(windows.swapaxes(1, 2), dtype=np.float32))


def fitted(train: Sample) -> dict[str, Callable[[Windows], Any]]:
    """Return the models, each a function from windows to logits."""
    rows = features(train[0])
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(rows, train[1])
    forest = RandomForestClassifier(150, random_state=0).fit(rows, train[1])
    pictures, labels = 255 * as_tensor(train[0]), torch.from_numpy(train[1])  # `trained` divides by 255
    cnn = trained(Recipe(convolutional, 1, 15, 3e-3), pictures, labels)
    gru = trained(Recipe(Recurrent, 1, 20, 1e-2), pictures, labels)
    return {
        "lr": lambda windows: regression.decision_function(features(windows)),
        "rf": lambda windows: logits_of(forest, features(windows)),
        "cnn": lambda windows: cnn(as_tensor(windows)),
        "gru": lambda windows: gru(as_tensor(windows)),
    }


def targets(every: list[Recording], clean: Sample, rng: np.random.Generator) -> dict[str, Sample]:
    new = [recording for recording in every if recording[2] > KNOWN_PEOPLE]
    right = cut([recording for recording in new if recording[3]])
    few = rng.permutation(CLASSES)[:4]

    def some(sample: Sample, rows: NDArray[np.int64]) -> Sample:
        chosen = rows[some_rows(len(rows), ROWS, rng)]
        return sample[0][chosen], sample[1][chosen]

    def left(people: list[Recording]) -> Sample:
        sample = cut([recording for recording in people if not recording[3]])
        return some(sample, np.arange(len(sample[1])))

    found = {"clean": clean}
    for person in range(KNOWN_PEOPLE + 1, PEOPLE + 1):
        found[f"person_{person}"] = cut([recording for recording in new if recording[2] == person and recording[3]])
    found["left"] = left([recording for recording in every if recording[2] <= KNOWN_PEOPLE])
    found["left_others"] = left(new)
    changes: dict[str, Callable[[Windows], Windows]] = {
        "noise_1": lambda x: noisy(x, 0.2, rng),
        "noise_2": lambda x: noisy(x, 0.6, rng),
        "turned_15": turned(15),
        "turned_40": turned(40),
        "round": turned(180),
        "no_gyroscope": lambda x: np.where(np.arange(SENSORS) < 3, x, np.float32(0)),
        "lost": lambda x: interrupted(x, 0.5, rng),
        "large": lambda x: x * np.float32(1.2),
        "slow": paced(0.7),
        "fast": paced(1.5),
    }
    found |= {name: (change(clean[0]), clean[1]) for name, change in changes.items()}
    found["weighted"] = some(clean, label_shift(clean[1], ROWS, rng))
    found["weighted_others"] = some(right, label_shift(right[1], ROWS, rng))
    found["few_others"] = some(right, np.flatnonzero(np.isin(right[1], few)))
    windows, labels = some(clean, np.flatnonzero(np.isin(clean[1], few)))
    found["few_noise"] = noisy(windows, 0.4, rng), labels
    return found


def main() -> None:
    options = arguments(__doc__)
    every = recordings(options.cache)
    right = [recording for recording in every if recording[3] and recording[2] <= KNOWN_PEOPLE]
    samples = {"source": cut(right, 0.5, 0.75)}
    found = targets(every, cut(right, 0.75, 1), np.random.default_rng(0))
    samples |= {f"target_{name}": sample for name, sample in found.items()}
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, model in fitted(cut(right, 0, 0.5)).items():
        for sample, (windows, labels) in samples.items():
            with torch.no_grad():
                write(options.out, "activities", name, sample, model(windows), labels)


if __name__ == "__main__":
    main()
