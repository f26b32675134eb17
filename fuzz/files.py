"""Files of outputs, read in memory and, where there is that way, streamed: the same rows, or both refused."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path

import numpy as np

from fuzz.target import BrokenPromiseError, MakeTarget, Target, model, sample, unless_refused, write_afresh
from leadline import Estimate, Estimator, Outputs
from leadline.data.files import FORMATS, read_outputs, write_outputs
from leadline.engines.arrow import estimate_files
from leadline.engines.lake import SUFFIXES as STREAMED

#: Before the bytes of one array, which then become a good archive: its checksum lets no damage through otherwise.
ONE_ARRAY = b"array:"


def _target(suffix: str, folder: Path) -> Target:
    path = folder / f"outputs{suffix}"
    return Target(partial(_attempt, path, model()), _seeds(path))


def _attempt(path: Path, fitted: Estimator, data: bytes) -> bool:
    if path.suffix == ".npz" and data.startswith(ONE_ARRAY):
        data = _archive(data.removeprefix(ONE_ARRAY))
    write_afresh(path, data)
    outputs = unless_refused(lambda: read_outputs(path, late_labels=True))
    if path.suffix in STREAMED:
        _compare(outputs, fitted, path)
    return outputs is not None


def _compare(outputs: Outputs | None, fitted: Estimator, path: Path) -> None:
    """Refuse two different answers to one question."""
    streamed = unless_refused(lambda: estimate_files(fitted, str(path)).overall.estimate)
    if outputs is None:
        # The stream looks at no column that it does not need, so that it may not see what is wrong with one.
        return
    in_memory = unless_refused(lambda: fitted.estimate(outputs))
    if _numbers(streamed) != _numbers(in_memory):
        raise BrokenPromiseError(f"in memory {_numbers(in_memory)}, streamed {_numbers(streamed)}")


def _numbers(estimate: Estimate | None) -> tuple[int, float] | None:
    return None if estimate is None else (estimate.n_samples, round(estimate.accuracy, 9))


def _seeds(path: Path) -> list[bytes]:
    """Return small files of a format: with labels, and with more columns where it has room for them."""
    made = sample(6)
    columns = {"city": np.array(["Bern", "Köln"] * 3), "n": np.arange(6)}
    several = [made, Outputs(made.logits, made.labels, columns, ["a", "b", "c"])]
    seeds = []
    for outputs in several if path.suffix != ".npy" else [Outputs(made.logits)]:
        write_outputs(outputs, path)
        seeds.append(path.read_bytes())
        path.unlink()
    if path.suffix == ".npz":
        array = io.BytesIO()
        np.save(array, made.logits)
        seeds.append(ONE_ARRAY + array.getvalue())
    if path.suffix == ".csv":
        seeds.append(b'logits,label\n"[1.5, -2, 0]",1\n"[0, 1e3, .5]",\n')
    return seeds


def _archive(array: bytes) -> bytes:
    """Return an archive whose logits are these bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("logits.npy", array)
    return stream.getvalue()


TARGETS: dict[str, MakeTarget] = {suffix.removeprefix("."): partial(_target, suffix) for suffix in FORMATS}
