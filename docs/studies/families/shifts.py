"""Shifts of texts and of class frequencies that more than one family uses."""

from __future__ import annotations

import numpy as np

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE = {
    letter: row[max(i - 1, 0) : i] + row[i + 1 : i + 2] for row in _ROWS for i, letter in enumerate(row)
}  # the keys to the left and right of each


def typos(text: str, rate: float, rng: np.random.Generator) -> str:
    """Hit a share of the letters: each is left out, doubled, swapped with the next sign, or missed by one key.

    Letters that are on no Latin keyboard are swapped instead of missed.
    """
    signs = list(text)
    hit = np.flatnonzero(rng.random(len(signs)) < rate)
    kinds = rng.integers(4, size=len(hit))
    for i, kind in zip(hit, kinds, strict=True):
        sign = signs[i]
        if not sign.isalpha():
            continue
        if kind == 0:
            signs[i] = ""
        elif kind == 1:
            signs[i] = sign * 2
        elif kind == 2 and sign.lower() in _BESIDE:
            beside = _BESIDE[sign.lower()]
            missed = beside[rng.integers(len(beside))]
            signs[i] = missed.upper() if sign.isupper() else missed
        elif i + 1 < len(signs):
            signs[i], signs[i + 1] = signs[i + 1], signs[i]
    return "".join(signs)


def drop_words(text: str, rate: float, rng: np.random.Generator) -> str:
    """Leave out a share of the words, but never all."""
    words = text.split()
    kept = rng.random(len(words)) >= rate
    kept[rng.integers(len(words))] = True
    return " ".join(word for word, keep in zip(words, kept, strict=True) if keep)


def join_words(text: str, rate: float, rng: np.random.Generator) -> str:
    """Lose a share of the spaces, as in texts taken out of PDF files."""
    words = text.split()
    gaps = np.where(rng.random(len(words)) < rate, "", " ")
    return "".join(word + gap for word, gap in zip(words, gaps, strict=True)).strip()


def first_words(text: str, count: int) -> str:
    """Keep the beginning of a text."""
    return " ".join(text.split()[:count])


def some_rows(n_rows: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many of the rows in random order, or all where there are fewer."""
    return rng.permutation(n_rows)[:size]


def label_shift(labels: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return about `size` rows, each at most once, whose class frequencies are a draw from Dirichlet(1, ..., 1).

    A class with fewer rows than its share gives all it has, so that there may be fewer rows than `size`.
    """
    classes = np.unique(labels)
    counts = rng.multinomial(size, rng.dirichlet(np.ones(len(classes))))
    return rng.permutation(
        np.concatenate(
            [
                rng.permutation(np.flatnonzero(labels == label))[:count]
                for label, count in zip(classes, counts, strict=True)
            ]
        )
    )


def third_of_classes(labels: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most `size` rows that belong to a random third of the classes."""
    classes = rng.permutation(np.unique(labels))
    rows = np.flatnonzero(np.isin(labels, classes[: len(classes) // 3]))
    return rng.permutation(rows)[:size]
