"""What every script of a family shares: its arguments, its files, and samples with other shares of classes."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray


def output_folder(description: str | None) -> Path:
    """Return the folder that ``--out`` names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets FAMILY/MODEL/source.npz and so on")
    return Path(parser.parse_args().out)


def write(out: Path, family: str, model: str, name: str, logits: ArrayLike, labels: ArrayLike) -> None:
    """Write rows to ``out/family/model/name.npz``, with "source" or "target_x" as name, and print their accuracy."""
    path = out / family / model / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    values, truth = np.asarray(logits, dtype=np.float32), np.asarray(labels, dtype=np.int64)
    np.savez(path, logits=values, labels=truth)
    right = float((values.argmax(axis=1) == truth).mean())
    print(f"{family}/{model}/{name}: {len(truth)} rows, {100 * right:.1f} % right", flush=True)


def label_shifted(
    labels: NDArray[np.int64], weights: NDArray[np.float64], size: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return ``size`` different rows, drawn one after the other with the weights of their classes."""
    chances = weights[labels]
    return rng.choice(len(labels), size=size, replace=False, p=chances / chances.sum())
