"""How fast the methods besides ALSA are, on targets not seen before in the process: part of ``make bench-speed``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import ot
from scipy.special import log_softmax, softmax

import leadline as ll
from leadline.numeric import read
from rows import Logits, make_target, source_size
from timing import Row, least_times


def targets(n: int, c: int) -> Callable[[int], Logits]:
    """Return what makes the target of each run."""
    return lambda run: make_target(n, c, run + 1)[0]


def fitted(method: str, c: int, **options: Any) -> Any:
    """Return an estimator that knows a source of 5,000 rows, 10,000 of many classes."""
    return ll.make(method, **options).fit(*make_target(source_size(c), c, 0))


def confidence_rows(repeats: int) -> Iterable[Row]:
    """Compare average confidence with SciPy's softmax, and its reading of the rows with a bare pass over them."""
    n, c = 1_000_000, 10
    model = fitted("ac", c)
    least = least_times(
        {"leadline": model.estimate, "plain": lambda z: softmax(z / model.temperature_, axis=1).max(axis=1).mean()},
        repeats, targets(n, c),
    )  # fmt: skip
    yield Row(
        f"AC, n = {n:,}, c = {c}, with its interval and the verdict on the shift: times faster than the mean of "
        "SciPy's softmax",
        least["leadline"], least["plain"], "s", least["plain"] / least["leadline"], 3.0, at_least=True,
    )  # fmt: skip
    least = least_times({"leadline": read, "plain": lambda z: z.max(axis=1)}, repeats, targets(n, c))
    yield Row(
        f"classes and softmax of {n:,} rows of {c} logits: times NumPy's maximum of each row",
        least["leadline"], least["plain"], "s", least["leadline"] / least["plain"], 2.0, at_least=False,
    )  # fmt: skip


def transport_rows(repeats: int, *, quick: bool) -> Iterable[Row]:
    """Compare COT with the network simplex of POT, and time it where that takes hours."""
    n, c = 10_000, 10
    model = fitted("cot", c)

    def simplex(logits: Logits) -> float:
        costs = 1.0 - np.exp(log_softmax(logits.astype(np.float64) / model.temperature_, axis=1))
        return float(1.0 - ot.emd2(np.full(n, 1 / n), model.label_share_, costs, numItermax=10**8))

    make = targets(n, c)
    least = least_times({"leadline": model.estimate, "plain": simplex}, min(repeats, 3), make)
    apart = abs(model.estimate(make(0)).accuracy - simplex(make(0)))
    yield Row(
        f"COT, n = {n:,}, c = {c}: times faster than POT's network simplex, from which it is {apart:.0e} apart",
        least["leadline"], least["plain"], "s", least["plain"] / least["leadline"], 3.0, at_least=True,
    )  # fmt: skip
    sizes = ((1_000_000, 10, 1.5), (1_000_000, 100, 10.0), (20_000, 1_000, 5.0))
    for n, c, most in sizes[: 1 if quick else None]:
        yield _seconds("cot", n, c, most, 1)


def auto_rows(repeats: int, *, quick: bool) -> Iterable[Row]:
    """Time the default method, and 41 chunks of two classes, as in NannyML's example."""
    sizes = ((20_000, 10, 0.1), (10_000, 100, 1.0), (20_000, 1_000, 2.0))
    for n, c, most in sizes[: 1 if quick else None]:
        yield _seconds("auto", n, c, most, min(repeats, 3))
    model, chunks = fitted("auto", 2), 41
    least = least_times(
        {"leadline": lambda rows: [model.estimate(part) for part in np.split(rows, chunks)]},
        min(repeats, 3), targets(5_000 * chunks, 2),
    )  # fmt: skip
    yield Row(
        f"auto, {chunks} targets of 5,000 rows, c = 2",
        least["leadline"],
        None,
        "s",
        least["leadline"],
        1.0,
        at_least=False,
    )


def _seconds(method: str, n: int, c: int, most: float, repeats: int) -> Row:
    """Return the line of a method that has no counterpart at this size."""
    least = least_times({"leadline": fitted(method, c).estimate}, repeats, targets(n, c))["leadline"]
    return Row(f"{method}, n = {n:,}, c = {c:,}: seconds", least, None, "s", least, most, at_least=False)


def method_rows(repeats: int, *, quick: bool) -> Iterable[Row]:
    """Measure all of these."""
    yield from confidence_rows(repeats)
    yield from transport_rows(repeats, quick=quick)
    yield from auto_rows(repeats, quick=quick)
