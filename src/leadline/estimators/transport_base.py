"""Transport of softmax outputs onto labels as frequent as the source's: exactly, or by the dual in passes."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, IntArray
from leadline.estimators import dual
from leadline.estimators.confidence import SoftmaxEstimator
from leadline.estimators.passes import Solved
from leadline.estimators.samples import MOST_GROUP_VALUES, Sample, hashes
from leadline.estimators.sums import Reduced, State
from leadline.numeric import assign, log_softmax, probabilities
from leadline.rowwise import Assigned

Array = NDArray[np.float64]

# What is solved at once; of more rows, a sample first.
_SOLVED_ROWS, _SOLVED_VALUES = 1 << 16, 1 << 25
_COARSE = 1e-4  # epsilon down to which a sample is solved: potentials are off by about as much, less than by sampling
_MARGIN = 1.5  # the mean of two halves is off by half of what they are apart
_MOST_PASSES = 10
_HASH_BITS = 32  # of a key
_NOWHERE = -1e9  # the potential of a label that takes nothing
# Rows that agree to here are one row for the exact solver, so that ties are split evenly and in any order of rows.
_DECIMALS = 12


class TransportEstimator(SoftmaxEstimator):
    """Base of the methods that transport softmax outputs onto labels distributed as in the source."""

    passes = "many"
    #: Whether the estimate differs between plans of the same least cost.
    _needs_one_plan: ClassVar[bool]

    label_share_: Array

    def __init__(self, *, solver: Literal["auto", "exact"] = "auto", temperature_scaling: bool = True) -> None:
        super().__init__(temperature_scaling=temperature_scaling)
        self.solver = solver

    def _fit_softmax(self, logits: FloatArray, labels: IntArray) -> None:
        del logits
        self.label_share_ = np.bincount(labels, minlength=self.n_classes_) / len(labels)

    @abstractmethod
    def _whole_values(self, logits: FloatArray, found: Assigned) -> Array:
        """Return the value of each row, shape (n,), whose mass goes to the label found for it as a whole."""

    @abstractmethod
    def _values(self, logits: FloatArray, shares: Array, tied: Array) -> Array:
        """Return the value of each row, shape (n,), given where its mass goes.

        Parameters
        ----------
        logits
            Shape (n, c).
        shares
            Shape (n, k): the share of each row's mass that goes to each of the k labels that the source has.
        tied
            Shape (n,): how many rows have the same shares for the same reason.
        """

    @property
    def _labels(self) -> NDArray[np.intp]:
        """The labels that the source has; no mass goes to any other, shape (k,)."""
        return np.flatnonzero(self.label_share_)

    def _take(self, columns: FloatArray) -> FloatArray:
        """Return the columns of the labels that the source has."""
        labels = self._labels
        return columns if len(labels) == self.n_classes_ else columns[:, labels]

    def _log_softmax(self, logits: FloatArray) -> Array:
        """Return calibrated log-probabilities, shape (n, c)."""
        return log_softmax(self.source_.outputs(logits), self.temperature_)

    def _probabilities(self, logits: FloatArray) -> Array:
        """Return calibrated probabilities of the labels that the source has, shape (n, k)."""
        return np.asarray(self._take(probabilities(self.source_.outputs(logits), self.temperature_)))

    def _assign(self, logits: FloatArray, potentials: Array) -> Assigned:
        """Send rows, shape (n, c), to the labels that the source has by these potentials, shape (k,)."""
        everywhere = np.full(self.n_classes_, _NOWHERE)
        everywhere[self._labels] = potentials
        return assign(self.source_.outputs(logits), self.temperature_, everywhere)

    # --------------------------------------------------------------------------------------- in passes over blocks
    @property
    def sample_rows(self) -> int:
        """How many rows of a target are sampled to begin with."""
        return self._room(1)

    def _room(self, n_groups: int) -> int:
        """Return how many rows of each of so many groups are kept in memory."""
        return max(1, min(_SOLVED_ROWS, MOST_GROUP_VALUES // (self.n_classes_ * n_groups)))

    def begin(self, sample: Sample, n_rows: int, n_groups: int) -> State:
        """Solve on a sample, and see from its halves how far that may be off."""
        weights, probabilities = sample.counts, self._probabilities(sample.logits)
        if float(weights.sum()) == n_rows:
            return self._final(dual.solve(self._problem(probabilities, weights)), passes=1)
        parts = (slice(0, None, 2), slice(1, None, 2)) if len(sample) > 1 else (slice(None), slice(None))
        halves = [
            dual.solve(self._problem(probabilities[part], weights[part]), last_epsilon=_COARSE).potentials
            for part in parts
        ]
        apart = float(np.ptp(halves[0] - halves[1]))
        return {
            "potentials": 0.5 * (halves[0] + halves[1]),
            "reach": np.asarray(_MARGIN * apart + 10 * _COARSE),
            "most": np.asarray(float(self._room(n_groups))),
            "passes": np.asarray(1.0),
            "final": np.asarray(0.0),
        }

    def _problem(self, probabilities: FloatArray, weights: Array, settled: Array | None = None) -> dual.Problem:
        label_share = self.label_share_[self._labels]
        rows = np.ascontiguousarray(probabilities)  # labels that were left out, and every other row, leave gaps
        return dual.Problem(rows, weights, label_share, np.zeros_like(label_share) if settled is None else settled)

    def _final(self, solution: dual.Solution, passes: float) -> State:
        """Return the state of the last pass."""
        return {
            "potentials": solution.potentials,
            "overlap": solution.overlap,
            "passes": np.asarray(float(passes)),
            "final": np.asarray(1.0),
        }

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        """Count the rows of each label at the potentials of the state and keep the near ones; at last, sum values."""
        found = self._assign(logits, state["potentials"])
        k, places = len(self._labels), np.searchsorted(self._labels, found.labels)
        if state["final"]:
            return self._reduce_last(logits, state, found, places)
        near = np.flatnonzero(found.margins <= state["reach"])
        keys = _keys_by(found.margins[near], hashes(logits[near]))
        sums = Reduced.from_values(
            logits,
            np.zeros(len(logits)),
            share=np.bincount(places, minlength=k).astype(np.float64),
            near=float(len(near)),
        ).sums
        return Reduced(sums, kept=Sample.by(keys, logits[near], int(state["most"])))

    def _reduce_last(self, logits: FloatArray, state: State, found: Assigned, places: NDArray[np.intp]) -> Reduced:
        """Sum values; of all rows but those within reach of epsilon, one label takes everything."""
        k, split = len(self._labels), np.flatnonzero(found.margins <= dual.REACH)
        values = self._whole_values(logits, found)
        single = np.ones(len(logits), dtype=bool)
        single[split] = False
        share = np.bincount(places[single], minlength=k).astype(np.float64)
        kept, reduced = float(found.kept[single].sum()), float(found.reduced.sum())
        if len(split):
            probabilities = self._probabilities(logits[split])
            shares, tied = self._dual_shares(logits[split], state)
            values[split] = self._values(logits[split], shares, tied)
            share += shares.sum(axis=0)
            kept += float((shares * probabilities).sum())
        return Reduced.from_values(logits, values, share=share, kept=kept, reduced=reduced)

    def _dual_shares(self, logits: FloatArray, state: State) -> tuple[Array, Array]:
        """Return the shares (n, k) of each row's mass and the number (n,) of rows tied with it, in the last pass."""
        found = dual.assign(self._probabilities(logits), state["potentials"])
        return found.dense_shares(), found.tied(state["overlap"])

    def advance(self, state: State, total: Reduced, sample: Sample | None) -> State | None:
        """Solve for the near rows; look again where the potentials moved beyond what was near, or end."""
        if state["final"]:
            return None
        assert total.kept is not None
        kept, potentials, passes = total.kept, state["potentials"], float(state["passes"]) + 1
        complete = float(kept.counts.sum()) == float(total.sums["near"])
        reach = float(state["reach"]) if complete else _margin_in(kept.keys[-1])
        rows, weights = kept.logits, kept.counts
        if sample is not None:
            # What lies beyond is settled as it is but for what a sample of it shows to move.
            outside = self._assign(sample.logits, potentials).margins > reach
            further = (
                sample.counts[outside] * (total.n_rows - kept.counts.sum()) / max(sample.counts[outside].sum(), 1.0)
            )
            rows, weights = np.concatenate([rows, sample.logits[outside]]), np.concatenate([weights, further])
        labels = np.searchsorted(self._labels, self._assign(rows, potentials).labels)
        counted = np.bincount(labels, weights=weights, minlength=len(potentials))
        problem = self._problem(self._probabilities(rows), weights, total.sums["share"] - counted)
        solution = dual.solve(problem, potentials, first_epsilon=reach / 4)
        moved = float(np.ptp(solution.potentials - potentials))
        if moved <= reach or passes >= _MOST_PASSES:
            return self._final(solution, passes)
        return dict(state) | {
            "potentials": solution.potentials,
            "reach": np.asarray(max(moved / 4, 10 * _COARSE)),
            "passes": np.asarray(passes),
        }

    # --------------------------------------------------------------------------------------------- all rows at once
    def _exact_shares(self, logits: FloatArray) -> tuple[Array, Array] | None:
        """Return what ``_dual_shares`` does, by the linear program; None where that is not wanted or has no answer."""
        if self.solver != "exact":
            return None
        import ot  # brings every array library that is installed, which takes seconds: only where it is asked for

        rounded = np.round(self._probabilities(logits), _DECIMALS)
        rows, place, count = np.unique(rounded, axis=0, return_inverse=True, return_counts=True)
        costs = 1.0 - rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it warns of is in the log
            label_share = self.label_share_[self._labels]
            plan, log = ot.emd(count / len(logits), label_share, costs, numItermax=100_000_000, log=True)
        if log["warning"]:
            return None
        if self._needs_one_plan:
            # More pairs without slack than a tree has edges: there is a cycle to move mass around at no cost. What
            # counts as slack is what the dual can tell apart, so that both agree on which plans are unique.
            slack = costs - log["u"][:, None] - log["v"]
            if np.count_nonzero(slack < dual.UNDECIDED) > sum(costs.shape) - 1:
                return None
        place = place.reshape(-1)
        return (plan / plan.sum(axis=1, keepdims=True))[place], count[place].astype(np.float64)

    def _solve(self, logits: FloatArray) -> Solved | None:
        found = self._exact_shares(logits)
        if found is not None:
            shares, tied = found
            kept = float((shares * self._probabilities(logits)).sum())
            return {}, Reduced.from_values(logits, self._values(logits, shares, tied), kept=kept)
        if len(logits) > _SOLVED_ROWS or logits.size > _SOLVED_VALUES:
            return None
        problem = self._problem(self._probabilities(logits), np.ones(len(logits)))
        state = self._final(dual.solve(problem), passes=0)
        return state, self.reduce(logits, state)

    def _diagnostics(self, state: State, total: Reduced) -> dict[str, Any]:
        n = float(total.sums["count"].sum())
        found: dict[str, Any] = {"transport_cost": 1.0 - float(total.sums["kept"]) / n, "solver": "exact"}
        if state:
            found |= {
                "solver": "dual",
                "passes": int(state["passes"]) + 1,
                "duality_gap": dual.duality_gap(state["potentials"], total.sums, n, self.label_share_[self._labels]),
            }
        return super()._diagnostics(state, total) | found


def _keys_by(margins: Array, hashed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return keys that order rows by margin, shape (n,), and tell rows of one margin apart."""
    bits = margins.astype(np.float32).view(np.uint32).astype(np.uint64)  # of numbers above zero, in their order
    return np.asarray((bits << np.uint64(_HASH_BITS)) | (hashed >> np.uint64(64 - _HASH_BITS)))


def _margin_in(key: np.uint64) -> float:
    """Return the margin that a key has in it."""
    return float(np.uint32(int(key) >> _HASH_BITS).view(np.float32))
