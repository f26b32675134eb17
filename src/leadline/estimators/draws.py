"""Which rows of a target to look at closer: drawn at random in strata of their correctness, or those likeliest wrong.

A draw is a pass like any other (:class:`leadline.estimators.passes.Pass`): every block leaves behind the rows with the
smallest keys of each stratum, the strata's sizes and a checksum, which add up whatever the blocks and their order. So a
target in memory, in files or on a cluster gives the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, row_blocks
from leadline.errors import InputError
from leadline.estimators.groups import ALL, Block, Partial
from leadline.estimators.samples import hashes
from leadline.estimators.sums import Array, Reduced, Rows, State
from leadline.numeric import of_class

if TYPE_CHECKING:
    from leadline.estimators.base import Estimator

IntArray = NDArray[np.int64]

_DIGITS = 6  # of a correctness: sums in another order must not move a row to another stratum
_ROW_BITS = np.uint64(44)  # of a key that orders by correctness
_LIMB_BITS = 16  # of a checksum: so many at a time add up exactly in float64 over 2^37 rows
_SLICE_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class Correctness:
    """The estimated probability that a row is predicted right, once the target as a whole has been estimated.

    Attributes
    ----------
    state, total
        Of the last pass over all rows.
    by_method
        Whether it is what the method says of each row, or the calibrated confidence.
    """

    state: State
    total: Reduced
    by_method: bool = True

    def of(self, estimator: Estimator, logits: FloatArray) -> Array:
        """Return it for rows, shape (n, c) -> (n,), to six digits."""
        found = [self._of(estimator, part) for part in row_blocks(logits, _SLICE_VALUES)]
        return np.asarray(np.round(np.clip(np.concatenate(found), 0.0, 1.0), _DIGITS), dtype=np.float64)

    def _of(self, estimator: Estimator, logits: FloatArray) -> Array:
        if self.by_method:
            values = estimator.reduce(logits, self.state).values
            if values is not None:
                return estimator._corrected(values, self.state, self.total)
        scores = estimator.source_.log_probabilities(logits)
        return np.asarray(np.exp(of_class(scores, logits.argmax(axis=1))), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Draw:
    """Which rows a pass keeps.

    Attributes
    ----------
    correctness
        Of each row.
    cuts
        Shape (h - 1,): values of it between the strata.
    seed
        Of the random order in each stratum; None to keep the rows that are likeliest wrong.
    """

    correctness: Correctness
    cuts: Array
    seed: int | None

    @property
    def parts(self) -> int:
        """The number of strata h."""
        return len(self.cuts) + 1

    def reduce(self, estimator: Estimator, block: Block, *, keep: bool) -> Partial:
        """Reduce a block: groups are cut into strata, group g into those from g h on; rows are kept by their keys."""
        if block.rows is None:
            raise InputError("rows can be drawn only where they have numbers: in memory, or from files.")
        correctness = self.correctness.of(estimator, block.logits)
        groups = block.group_of_rows * self.parts + strata_of(correctness, self.cuts)
        keys = None
        if keep and self.seed is not None:
            keys = row_keys(block.rows, self.seed)
        elif keep:
            keys = _keys_by(correctness, block.rows)
        return Partial(
            Block(block.logits, groups, block.right),
            keys,
            (Rows(block.logits.argmax(axis=1), block.logits.shape[1], correctness),),
            {ALL: Reduced({"checksum": _limbs(block.logits, block.rows)})},
            kept=block.rows[:, None].astype(np.float64),
        )


def strata_of(correctness: Array, cuts: Array) -> NDArray[np.intp]:
    """Return the stratum of each row, shape (n,)."""
    return np.searchsorted(cuts, correctness, side="right")


def checksum(limbs: Array) -> str:
    """Return 16 digits that tell the rows of a target from others and from another order, given their sums."""
    total = sum(int(limb) << (_LIMB_BITS * place) for place, limb in enumerate(limbs))
    return f"{total % 2**64:016x}"


def correctness_in(keys: NDArray[np.uint64]) -> Array:
    """Return the correctness that keys of rows likeliest wrong have in them, shape (n,)."""
    return np.asarray((keys >> _ROW_BITS).astype(np.float64) / 10**_DIGITS)


def row_keys(rows: IntArray, seed: int) -> NDArray[np.uint64]:
    """Return the keys by which rows are drawn, shape (n,): those of other rows are others."""
    return mix(rows.astype(np.uint64), seed)


def mix(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return random-looking integers for integers, the same everywhere: SplitMix64, keyed by a seed."""
    mixed = numbers
    for key in (np.uint64(seed % 2**64), np.uint64(0x632BE59BD9B4E019)):
        mixed = (mixed ^ key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


def _keys_by(correctness: Array, rows: IntArray) -> NDArray[np.uint64]:
    """Return keys in the order of the correctness, and of the rows where it is equal."""
    return np.asarray((np.rint(correctness * 10**_DIGITS).astype(np.uint64) << _ROW_BITS) | rows.astype(np.uint64))


def _limbs(logits: FloatArray, rows: IntArray) -> Array:
    """Return the sums, shape (4,), from which :func:`checksum` is made."""
    mixed = mix(hashes(logits) ^ mix(rows.astype(np.uint64), 0), 0)
    low = np.uint64(2**_LIMB_BITS - 1)
    parts = [(mixed >> np.uint64(_LIMB_BITS * place)) & low for place in range(64 // _LIMB_BITS)]
    return np.array([float(part.sum()) for part in parts])
