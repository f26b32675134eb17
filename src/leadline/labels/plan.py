"""Which rows of a target to label."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from leadline.data.files import write_bytes
from leadline.data.names import one_line
from leadline.data.texts import parse_json
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.draws import correctness_in
from leadline.labels.strata import IntArray, arrange, turns
from leadline.labels.target import Drawn, opened
from leadline.numeric import Array

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """Rows of a target in the order in which to label them: every beginning is a valid sample.

    Attributes
    ----------
    rows
        Shape (budget,): row numbers of the target, in order.
    strata
        Shape (budget,): the stratum of each of them.
    sizes
        Shape (h,): how many rows of the target each stratum has.
    cuts
        Shape (h - 1,): values of the estimated correctness between the strata.
    seed
        Of the random draw.
    checksum
        Of the target's outputs.
    """

    rows: IntArray
    strata: IntArray
    sizes: IntArray
    cuts: Array
    seed: int
    checksum: str

    @property
    def budget(self) -> int:
        """How many rows are planned."""
        return len(self.rows)

    @property
    def n_rows(self) -> int:
        """How many rows the target has."""
        return int(self.sizes.sum())

    @property
    def probabilities(self) -> Array:
        """The probability with which each planned row was drawn, shape (budget,)."""
        counts = np.bincount(self.strata, minlength=len(self.sizes))
        return np.asarray((counts / self.sizes)[self.strata])

    def __len__(self) -> int:
        """Return how many rows are planned."""
        return self.budget

    def check_target(self, drawn: Drawn) -> None:
        """Refuse rows that are not those the plan was made for."""
        n_rows = int(drawn.sizes.sum())
        if n_rows != self.n_rows:
            raise InputError(
                f"outputs must be those of the plan, which has {self.n_rows:,} rows; got {n_rows:,}. "
                "Make a plan for these."
            )
        if drawn.checksum != self.checksum:
            wanted = one_line(self.checksum)
            raise InputError(
                f"outputs must be those of the plan (checksum {wanted}), in the same order; got others "
                f"({drawn.checksum}). Make a plan for these."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "format": _FORMAT,
            "rows": self.rows.tolist(),
            "strata": self.strata.tolist(),
            "sizes": self.sizes.tolist(),
            "cuts": self.cuts.tolist(),
            "seed": self.seed,
            "checksum": self.checksum,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the plan that :meth:`to_dict` gave."""
        try:
            if values["format"] != _FORMAT:
                raise InputError(f"format of a plan must be {_FORMAT}; got {values['format']!r}.")
            rows, strata, sizes = (np.array(values[name], dtype=np.int64) for name in ("rows", "strata", "sizes"))
            plan = cls(
                rows, strata, sizes, np.array(values["cuts"], float), int(values["seed"]), str(values["checksum"])
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"a plan must have rows, strata, sizes, cuts, seed and checksum ({error}).") from error
        plan._check()
        return plan

    def _check(self) -> None:
        """Refuse a plan that contradicts itself."""
        shapes = self.rows.ndim == 1 == self.sizes.ndim and self.rows.shape == self.strata.shape
        if not (shapes and len(self.rows) and len(self.cuts) == len(self.sizes) - 1 and (self.sizes > 0).all()):
            raise InputError("a plan must have a stratum for each row, a size for each stratum, and cuts between them.")
        if len(np.unique(self.rows)) < len(self.rows) or self.rows.min() < 0 or self.rows.max() >= self.n_rows:
            raise InputError(f"rows of a plan must be distinct, from 0 to {self.n_rows - 1}.")
        if self.strata.min() < 0 or self.strata.max() >= len(self.sizes):
            raise InputError(f"strata of a plan must be from 0 to {len(self.sizes) - 1}.")
        if (np.bincount(self.strata, minlength=len(self.sizes)) > self.sizes).any():
            raise InputError("a plan must not have more rows of a stratum than there are.")

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plan to a JSON file.

        Parameters
        ----------
        path
            The file.
        force
            Overwrite a file that exists.
        """
        write_bytes(path, (json.dumps(self.to_dict()) + "\n").encode(), force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan that :meth:`save` wrote."""
        try:
            values = parse_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
        except ValueError as error:
            raise InputError(f"{path}: is not a plan of labels ({error}).") from error
        if not isinstance(values, dict):
            raise InputError(f"{path}: is not a plan of labels.")
        return cls.from_dict(values)


def plan_labels(
    model: Estimator, outputs: Any, budget: int = 200, seed: int = 0, *, stratified: bool = True
) -> LabelPlan:
    """Choose rows of a target to label, so that few labels tell its accuracy under any shift.

    Parameters
    ----------
    model
        A fitted estimator.
    outputs
        The target: ``Outputs``, or logits of shape (n, c); or a table in files, larger than memory if need be: a
        :class:`leadline.Table`, or a file, folder, pattern or URL of Parquet or Arrow files.
    budget
        How many rows to label at most.
    seed
        Of the random draw.
    stratified
        Draw from strata of the estimated correctness, which makes intervals narrower; the better the estimate ranks
        rows, the more. False for a simple random sample, whose interval is exact.

    Returns
    -------
    LabelPlan
        Whose first rows, however many, :func:`leadline.estimate_with_labels` takes.

    Notes
    -----
    A table is gone over as often as the method needs for an estimate, and once more: in each stratum, the rows with the
    smallest keyed hashes of their numbers are kept. Rows are numbered from file to file, in the order of the files'
    names, so that a plan is the same whichever engine drew it. Memory holds a few blocks, and the numbers of at most
    ``budget`` rows of each stratum.

    Examples
    --------
    >>> import leadline as ll
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 4000)
    >>> logits = rng.normal(size=(4000, 3)) + 2 * np.eye(3)[labels]
    >>> model = ll.Auto().fit(logits[:2000], labels[:2000])
    >>> plan = ll.plan_labels(model, logits[2000:], budget=100)
    >>> estimate = ll.estimate_with_labels(model, logits[2000:], plan, labels[2000:][plan.rows[:60]])
    >>> estimate.diagnostics["n_labels"]
    60
    """
    budget, seed = _whole(budget, "budget", 1), _whole(seed, "seed", 0)
    with opened(model, outputs) as target:
        cuts = target.cuts(budget) if stratified else np.zeros(0)
        drawn = target.draw(cuts, seed, budget)
        n_rows = int(drawn.sizes.sum())
        if budget > n_rows:
            raise InputError(f"budget must be at most {n_rows:,}, the rows there are; got {budget:,}.")
        counts = target.allocate(cuts, drawn.sizes, budget)
        rows = arrange([drawn.rows(h)[:count] for h, count in enumerate(counts)], seed)
        return LabelPlan(rows, turns(counts, seed), drawn.sizes, cuts, seed, drawn.checksum)


def likely_errors(model: Estimator, outputs: Any, count: int = 200) -> tuple[IntArray, Array]:
    """Return the rows that are most likely predicted wrong, to be mended; no accuracy can be told from such rows.

    Parameters
    ----------
    model
        A fitted estimator.
    outputs
        The target, as for :func:`leadline.plan_labels`.
    count
        How many rows at most.

    Returns
    -------
    tuple of ndarray
        Row numbers, the likeliest error first, and the estimated probability that each is right; shape (count,) both.
    """
    count = _whole(count, "count", 1)
    with opened(model, outputs) as target:
        drawn = target.draw(np.zeros(0), None, count)
        return drawn.rows()[:count], correctness_in(drawn.keys()[:count])


def _whole(value: Any, name: str, least: int) -> int:
    """Return a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more; got {value!r}.")
    return int(value)
