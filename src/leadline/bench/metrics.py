"""How good estimates are: mean absolute error and its spread, agreement with y = x, correlation, time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from leadline.bench.rows import Row

#: Fractions closer than this are the same: the mean of equal ones may differ from them by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Score:
    """What a group of estimates amounts to. Errors are fractions.

    Attributes
    ----------
    mae
        Mean absolute error over all rows.
    std
        Sample standard deviation (of n - 1) of the absolute errors over all rows: seeds, models and targets; None
        for a single row. The paper's Tables 2 and 3 agree with each other only if its deviations are these.
    seed_std
        Standard deviation, over seeds, of the mean absolute error of each seed; None with fewer than two
        seeds.
    r2
        1 - sum (estimate - truth)^2 / sum (truth - mean truth)^2: agreement with y = x, not with the best
        line. None where the truths do not differ.
    rho
        Pearson's correlation of estimates and truths; None where either do not differ.
    rows
        How many estimates.
    seconds, fit_seconds
        Mean time of an estimate and of a fit.
    """

    mae: float
    std: float | None
    seed_std: float | None
    r2: float | None
    rho: float | None
    rows: int
    seconds: float
    fit_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def score(rows: Iterable[Row]) -> Score:
    """Summarise estimates.

    Parameters
    ----------
    rows
        At least one.
    """
    rows = list(rows)
    estimates = np.array([row.estimate for row in rows])
    truths = np.array([row.truth for row in rows])
    errors = np.abs(estimates - truths)
    by_seed: dict[int, list[float]] = {}
    for row, error in zip(rows, errors, strict=True):
        seed = row.seed if row.seed is not None else row.model_seed
        if seed is not None:
            by_seed.setdefault(seed, []).append(float(error))
    means = [float(np.mean(values)) for values in by_seed.values()]
    truths_differ, estimates_differ = (float(np.ptp(values)) > _ROUNDING for values in (truths, estimates))
    return Score(
        mae=float(errors.mean()),
        std=float(errors.std(ddof=1)) if len(rows) > 1 else None,
        seed_std=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        r2=1.0 - float(np.sum(errors**2) / np.sum((truths - truths.mean()) ** 2)) if truths_differ else None,
        rho=float(np.corrcoef(estimates, truths)[0, 1]) if truths_differ and estimates_differ else None,
        rows=len(rows),
        seconds=float(np.mean([row.seconds for row in rows])),
        fit_seconds=float(np.mean([row.fit_seconds for row in rows])),
    )


def scores_by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, Score]:
    """Summarise groups of estimates, in the order in which the groups appear."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: score(group) for name, group in groups.items()}
