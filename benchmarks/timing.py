"""What the measurements of speed have in common: a line of the table, and the least time of several runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, and what was hoped for."""

    what: str
    leadline: float
    other: float | None
    unit: str
    figure: float
    target: float
    at_least: bool

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of the target."""
        return self.figure >= self.target if self.at_least else self.figure <= self.target


def least_times(
    tasks: dict[str, Callable[..., Any]], repeats: int, fresh: Callable[[int], Any] | None = None
) -> dict[str, float]:
    """Run tasks in turns, so that whatever else the machine does hits all of them; return the least time of each.

    Parameters
    ----------
    tasks
        By name.
    repeats
        Runs of each, after one that does not count.
    fresh
        Makes the input of a run, given its number: no run sees what another has seen. None for tasks without input.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for run in range(repeats + 1):
        given = () if fresh is None else (fresh(run),)
        for name, task in tasks.items():
            start = time.perf_counter()
            task(*given)
            if run:
                times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}
