"""Twenty spoken words: other voices, accents and synthesisers, other speeds and pitches, noise, bad lines, label shift.

    python docs/studies/families/speech.py --out DIR

Data: words that eSpeak NG 1.51 says (GPL-3 or later), half of them with the accent of its American voice, half with
that of its British one, each in one of 16 variants of the voice and with its own speed, pitch, melody, place and faint
noise; and that Flite 2.2 says (MIT-like licence of Carnegie Mellon University). Both are programs of Debian 12 that
have to be there (``apt-get install espeak-ng flite``). Trained on 3,000 words; the source has 2,000 others, the targets
1,000 each, all said anew.

Models: logistic regression, perceptron, random forest and boosted trees of twelve cepstral coefficients (MFCC) in
twelve stretches of a second, and a convolutional network of the spectrogram.
Shifts: ten unseen variants, artificial (Klatt) and whispering voices, Scottish and Caribbean accents, voices of five
other languages, four voices of Flite; faster, slower, higher; noise, hum, telephone, clipping, the beginning cut off,
another word behind, echo; words weighted at random, also with noise or with unseen voices; numbers only, also with
unseen voices.
Needs scikit-learn, pandas and torch; about two minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from common import arguments, write
from glyphs import Recipe, trained
from numpy.typing import NDArray
from scipy import fft, signal
from sklearn.preprocessing import StandardScaler
from synthesisers import ESPEAK_HERTZ, Espeak, say_by_flite
from tables import logits_of, models
from torch import Tensor, nn

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORDS = (*NUMBERS, "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
TRAIN_ROWS, SOURCE_ROWS, TARGET_ROWS = 3000, 2000, 1000
HERTZ = 11_025  # samples in a second; all sounds last one
FRAME, HOP, FRAMES, BANDS, STRETCHES, COEFFICIENTS = 256, 224, 48, 24, 12, 12
RANGE = 7  # powers of ten below the loudest that count

TRAINED = (
    *("f1", "f2", "f3", "m1", "m2", "m3", "m5", "m7"),
    *("Andy", "Alex", "Alicia", "linda", "adam", "david", "caleb", "john"),
)
FLITE = ("slt", "rms", "awb", "kal16")

Sounds = NDArray[np.float64]
Change = Callable[[Sounds, np.random.Generator], Sounds]


class Manner(NamedTuple):
    """Which voices speak, from the slowest to the fastest in words a minute, from the lowest to the highest in 100."""

    accents: tuple[str, ...] = ("en-us", "en")
    variants: tuple[str, ...] = TRAINED
    speed: tuple[int, int] = (130, 220)
    pitch: tuple[int, int] = (25, 75)


HOME = Manner()
UNSEEN = Manner(variants=("f4", "f5", "m4", "m6", "m8", "Annie", "belinda", "Hugo", "pedro", "victor"))
MANNERS = {
    "clean": HOME,
    "voices": UNSEEN,
    "klatt": Manner(variants=("klatt", "klatt2", "klatt3", "klatt4")),
    "whisper": Manner(variants=("whisper", "whisperf")),
    "scottish": Manner(("en-gb-scotland",)),
    "caribbean": Manner(("en-029",)),
    "foreign": Manner(("de", "fr", "es", "it", "pl")),
    "fast": Manner(speed=(270, 350)),
    "slow": Manner(speed=(80, 105)),
    "high": Manner(pitch=(85, 99)),
}


def placed(words: list[NDArray[np.float64]], rng: np.random.Generator) -> Sounds:
    """Return sounds of a second: words as loud as each other, each with its own start and faint noise."""
    sounds = np.zeros((len(words), HERTZ))
    for sound, word in zip(sounds, words, strict=True):
        loud, start = word / np.abs(word).max(), rng.integers(HERTZ // 4)
        kept = loud[np.argmax(np.abs(loud) > 0.02) :][: HERTZ - start]
        sound[start : start + len(kept)] = kept
    return with_noise(rng.uniform(15, 40, size=(len(words), 1)))(sounds, rng)


def spoken(espeak: Espeak, manner: Manner, labels: NDArray[np.int64], rng: np.random.Generator) -> Sounds:
    words = []
    for label in labels:
        voice = f"{rng.choice(manner.accents)}+{rng.choice(manner.variants)}"
        speed, pitch = (int(rng.integers(low, high + 1)) for low, high in (manner.speed, manner.pitch))
        word = espeak.say(WORDS[label], voice, speed, pitch, int(rng.integers(30, 71)))
        words.append(signal.resample_poly(word.astype(float), HERTZ, ESPEAK_HERTZ))
    return placed(words, rng)


def spoken_by_flite(labels: NDArray[np.int64], rng: np.random.Generator) -> Sounds:
    words = []
    for label in labels:
        rate, word = say_by_flite(WORDS[label], rng.choice(FLITE), rng.uniform(0.8, 1.3))
        words.append(signal.resample_poly(word.astype(float), HERTZ, rate))
    return placed(words, rng)


def with_noise(decibels: float | NDArray[np.float64]) -> Change:
    """Return what adds white noise so many decibels below the sound."""

    def apply(sounds: Sounds, rng: np.random.Generator) -> Sounds:
        power = (sounds**2).mean(axis=1, keepdims=True) / 10 ** (np.asarray(decibels) / 10)
        noise: Sounds = rng.normal(size=sounds.shape) * np.sqrt(power)
        return sounds + noise

    return apply


def with_hum(sounds: Sounds, rng: np.random.Generator) -> Sounds:
    """Add the sound of mains: 50 Hz and its multiples."""
    times = np.arange(HERTZ) / HERTZ + rng.random((len(sounds), 1))
    hum: Sounds = np.sum([0.02 / k * np.sin(2 * np.pi * 50 * k * times) for k in (1, 2, 3, 4, 6, 8, 12)], axis=0)
    return sounds + hum


def by_telephone(sounds: Sounds, rng: np.random.Generator) -> Sounds:
    passed: Sounds = signal.sosfilt(signal.butter(2, (300, 3400), "bandpass", fs=HERTZ, output="sos"), sounds)
    return passed


def with_echo(sounds: Sounds, rng: np.random.Generator) -> Sounds:
    times = np.arange(HERTZ // 2) / HERTZ
    room = rng.normal(size=(len(sounds), len(times))) * np.exp(-times / 0.08) * 0.06
    room[:, 0] = 1
    heard: Sounds = signal.fftconvolve(sounds, room, axes=1)[:, :HERTZ]
    return heard


def no_start(sounds: Sounds, rng: np.random.Generator) -> Sounds:
    """Leave out all before a quarter of the second."""
    return np.where(np.arange(HERTZ) < HERTZ / 4, 0, sounds)


CHANGES: dict[str, Change] = {
    "noise_1": with_noise(10),
    "noise_2": with_noise(5),
    "hum": with_hum,
    "telephone": by_telephone,
    "clipped": lambda sounds, rng: sounds.clip(-0.1, 0.1),
    "no_start": no_start,
    "echo": with_echo,
}


def spectrograms(sounds: Sounds) -> Tensor:
    """Return powers by pitch (mels) and time, as pictures with 1 at the loudest place of each and 0 far below."""
    frames = np.lib.stride_tricks.sliding_window_view(sounds, FRAME, axis=1)[:, ::HOP][:, :FRAMES]
    powers = np.abs(fft.rfft(frames * np.hanning(FRAME), axis=2)) ** 2
    mels = np.linspace(2595 * np.log10(1 + 100 / 700), 2595 * np.log10(1 + HERTZ / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    bins = np.arange(FRAME // 2 + 1) * HERTZ / FRAME
    filters = np.stack([np.interp(bins, edges[i : i + 3], [0, 1, 0]) for i in range(BANDS)])
    heard = np.log10(np.einsum("nfb,mb->nmf", powers, filters) + 1e-12)
    heard = 1 + (heard - heard.max(axis=(1, 2), keepdims=True)) / RANGE
    return torch.from_numpy(heard.clip(min=0).astype(np.float32))[:, None]


def cepstra(pictures: Tensor) -> NDArray[np.float64]:
    """Return the mean coefficients of each stretch in one row."""
    coefficients = fft.dct(pictures[:, 0].double().numpy(), axis=1, norm="ortho")[:, :COEFFICIENTS]
    stretches: NDArray[np.float64] = coefficients.reshape(-1, COEFFICIENTS, STRETCHES, FRAMES // STRETCHES).mean(axis=3)
    return stretches.reshape(len(pictures), -1)


def samples(espeak: Espeak, rng: np.random.Generator) -> dict[str, tuple[Tensor, NDArray[np.int64]]]:
    """Return training, source and targets: spectrograms and the numbers of the words."""
    found: dict[str, tuple[Tensor, NDArray[np.int64]]] = {}
    weights = rng.dirichlet(np.full(len(WORDS), 0.7))

    def drawn(size: int = TARGET_ROWS) -> NDArray[np.int64]:
        return rng.integers(len(WORDS), size=size)

    def weighted() -> NDArray[np.int64]:
        return rng.choice(len(WORDS), size=TARGET_ROWS, p=weights)

    def add(name: str, labels: NDArray[np.int64], manner: Manner = HOME, change: Change | None = None) -> None:
        sounds = spoken(espeak, manner, labels, rng)
        found[name] = spectrograms(change(sounds, rng) if change else sounds), labels

    def behind(sounds: Sounds, rng: np.random.Generator) -> Sounds:
        return sounds + 0.4 * spoken(espeak, HOME, drawn(len(sounds)), rng)

    add("train", drawn(TRAIN_ROWS))
    add("source", drawn(SOURCE_ROWS))
    for name, manner in MANNERS.items():
        add(f"target_{name}", drawn(), manner)
    for name, change in {**CHANGES, "behind": behind}.items():
        add(f"target_{name}", drawn(), change=change)
    add("target_weighted", weighted())
    add("target_weighted_noise", weighted(), change=CHANGES["noise_1"])
    add("target_weighted_voices", weighted(), UNSEEN)
    add("target_numbers", rng.integers(len(NUMBERS), size=TARGET_ROWS))
    add("target_numbers_voices", rng.integers(len(NUMBERS), size=TARGET_ROWS), UNSEEN)
    labels = drawn()
    found["target_flite"] = spectrograms(spoken_by_flite(labels, rng)), labels
    return found


def convolutional() -> nn.Module:
    def block(channels: int) -> list[nn.Module]:
        return [nn.Conv1d(channels, 48, 5, padding=2), nn.BatchNorm1d(48), nn.ReLU(), nn.MaxPool1d(2)]

    return nn.Sequential(
        nn.Flatten(1, 2), *block(BANDS), *block(48), nn.Flatten(), nn.Linear(48 * FRAMES // 4, len(WORDS))
    )


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    every = samples(Espeak(), np.random.default_rng(0))
    train, words = every.pop("train")
    scale = StandardScaler().fit(cepstra(train))
    rows = {sample: scale.transform(cepstra(pictures)) for sample, (pictures, _) in every.items()}
    for name, model in models().items():
        model.fit(scale.transform(cepstra(train)), words)
        for sample, (_, labels) in every.items():
            write(options.out, "speech", name, sample, logits_of(model, rows[sample]), labels)
    network = trained(Recipe(convolutional, 1, 10, 3e-3), (255 * train).byte(), torch.from_numpy(words))
    with torch.no_grad():
        for sample, (pictures, labels) in every.items():
            write(options.out, "speech", "cnn", sample, network(pictures), labels)


if __name__ == "__main__":
    main()
