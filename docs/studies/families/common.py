"""What the scripts of the families share: their options, and the layout in which logits are stored."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser of the options of a script: `out`, the folder of logits; `cache`, the folder of downloads."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--out", type=Path, required=True, help="folder that gets <family>/<model>/source.npz")
    found.add_argument("--cache", type=Path, default=Path("families-cache"), help="folder that keeps downloads")
    return found


def arguments(description: str) -> argparse.Namespace:
    """Return the options of a script that has no others."""
    return parser(description).parse_args()


def write(out: Path, family: str, model: str, name: str, logits, labels) -> None:
    """Store the logits and labels of `name`, "source" or "target_x", and print the accuracy."""
    logits, labels = np.asarray(logits, dtype=np.float32), np.asarray(labels, dtype=np.int64)
    if logits.shape[:1] != labels.shape or not np.isfinite(logits).all():
        raise ValueError(f"{family}/{model}/{name} needs finite logits, a row for each of the {len(labels)} labels.")
    folder = out / family / model
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", logits=logits, labels=labels)
    accuracy = (logits.argmax(axis=1) == labels).mean()
    print(f"{family}/{model}/{name}: {len(labels)} rows, accuracy {accuracy:.3f}", flush=True)
