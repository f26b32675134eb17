"""One question asked in many ways: in memory, in blocks, of files, row by row, of a loaded model, of the monitor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from fuzz.numbers import Case, cases, choices, driven
from fuzz.target import BrokenPromiseError, MakeTarget, Target, unless_refused
from leadline import Accumulator, Estimate, Estimator, Monitor, Outputs
from leadline.checks.contract import SOLVERS
from leadline.engines.arrow import estimate_files
from leadline.estimators import persistence

Way = Callable[[Estimator, Outputs, Path], "tuple[float, tuple[float, float], int]"]
_TIME = np.datetime64("2026-03-02T12:00")


def _of(estimate: Estimate) -> tuple[float, tuple[float, float], int]:
    return estimate.accuracy, estimate.interval, estimate.n_samples


def _blocks(model: Estimator, outputs: Outputs, folder: Path) -> tuple[float, tuple[float, float], int]:
    del folder
    blocks = np.array_split(outputs.logits, min(3, len(outputs)))
    return _of(model.estimate_blocks(lambda: iter(blocks)))


def _files(model: Estimator, outputs: Outputs, folder: Path) -> tuple[float, tuple[float, float], int]:
    place = folder / "lake"
    place.mkdir(exist_ok=True)
    for number, rows in enumerate(np.array_split(outputs.logits, 2)):
        parquet.write_table(pa.table({"logits": list(rows)}), place / f"{number}.parquet")
    return _of(estimate_files(model, str(place)).overall.estimate)


def _one_by_one(model: Estimator, outputs: Outputs, folder: Path) -> tuple[float, tuple[float, float], int]:
    del folder
    running, other = Accumulator(model), Accumulator(model)
    for row in outputs.logits[:5]:
        running.update(row)
    other.update(outputs.logits[5:])
    running.merge(other)
    return _of(running.estimate())


def _loaded(model: Estimator, outputs: Outputs, folder: Path) -> tuple[float, tuple[float, float], int]:
    del folder
    return _of(persistence.from_bytes(persistence.to_bytes(model)).estimate(outputs.logits))


def _monitor(model: Estimator, outputs: Outputs, folder: Path) -> tuple[float, tuple[float, float], int]:
    store = folder / "store.db"
    store.unlink(missing_ok=True)
    with Monitor(f"sqlite:///{store}") as monitor:
        monitor.register("series", model, every="1d", reference=0.5)
        metadata = {"ts": np.full(len(outputs), _TIME), "id": np.arange(len(outputs))}
        monitor.add("series", Outputs(outputs.logits, metadata=metadata), time="ts", id="id")
        (row,) = monitor.history("series").rows
    return _of(row.estimate)


WAYS: dict[str, Way] = {
    "blocks": _blocks, "files": _files, "one by one": _one_by_one, "loaded": _loaded, "monitor": _monitor,
}  # fmt: skip


def check(case: Case, folder: Path, ways: tuple[str, ...] = tuple(WAYS)) -> bool:
    """Say whether a case was estimated in all ways, with one answer, and not refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = unless_refused(case.fit)
        if model is None:
            return False
        outputs = unless_refused(lambda: Outputs(case.target.rows(case.c)))
        if outputs is None:
            return False
        expected = unless_refused(lambda: _of(model.estimate(outputs.logits)))
        for name in ways:
            found = unless_refused(partial(WAYS[name], model, outputs, folder))
            if not _same(found, expected):
                raise BrokenPromiseError(f"{case.method}: in memory {expected}, {name} {found}")
    return expected is not None


def _same(
    one: tuple[float, tuple[float, float], int] | None, other: tuple[float, tuple[float, float], int] | None
) -> bool:
    """Say whether two answers are one, but for rounding in the solvers."""
    if one is None or other is None:
        return one is other
    numbers = np.abs(np.subtract([one[0], *one[1]], [other[0], *other[1]]))
    return one[2] == other[2] and bool((numbers <= SOLVERS).all())


TARGETS: dict[str, MakeTarget] = {
    # The accumulator and the monitor keep rows in single precision, in which much smaller logits are zero.
    "ways": lambda folder: Target(driven(cases(smallest=-5), lambda case: check(case, folder)), choices())
}
