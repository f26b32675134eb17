"""What judging a target needs of the labelled source: learned in ``fit``, saved and restored with the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leadline.data.decisions import from_decision, to_decision
from leadline.data.outputs import FloatArray, IntArray, row_blocks
from leadline.numeric import Array, log_softmax, read, sigmoid, top_two
from leadline.rowwise import WORTH_IT_FROM
from leadline.shift.calibration import fit_bias, fit_gaps, fit_temperature, gaps_at, matching_threshold
from leadline.shift.cells import TopTwo
from leadline.shift.clusters import MOST_ROWS as MOST_CLUSTERED
from leadline.shift.clusters import PRIOR_ROWS, ClusteredSource
from leadline.shift.moved_rows import MovedRows
from leadline.shift.priors import restoring_bias

# Bounds on work: rows of the source, and rows times classes, that are looked at.
MOST_ROWS = 20_000
_MOST_VALUES = 4_000_000
_LEAST_ROWS = 1_000
_TEMPERATURE_VALUES = 1_000_000  # one parameter needs no more
_SINGLE_PRECISION_FROM = 150  # classes: memory traffic is the cost
_EXPLAINED_ROWS, _EXPLAINED_LEAST, _EXPLAINED_VALUES = 4_000, 2_000, 2_000_000  # rows that explanations are built from

_FEW_CLASSES = 10  # from here on, entropy's threshold replaces confidence; anchors and class shares tell less
MOST_CLASSES = 250  # of more, rows never tell where each lies: clusters and anchors would take nearly all of the time
_LEAST_CLUSTERED = 10  # rows


def sample_size(n_classes: int) -> int:
    """Return how many rows of source and target are looked at."""
    return max(_LEAST_ROWS, min(MOST_ROWS, _MOST_VALUES // n_classes))


@dataclass(frozen=True, eq=False)
class SourceProfile:
    """The labelled source, as far as targets are judged against it.

    Rows, of source and target, are logits whose largest value is that of the predicted class.

    Attributes
    ----------
    logits, labels
        Shapes (m, c) and (m,): a sample of the source in random order.
    marginal
        Shape (c,): class shares of the whole source.
    accuracy, n_rows
        Of the whole source.
    temperature
        Of the calibration.
    entropy_threshold
        ATC's threshold on minus the entropy.
    gap_edges, gaps
        Bins of log-odds, and accuracy less confidence in each: what scaling leaves.
    restored_gap
        Mean confidence less mean prior-restored confidence, both corrected in the same way.
    ranking
        How well confidence ranks right before wrong: 2 AUC - 1, in [0, 1].
    decision_threshold
        Probability of the second of two classes from which the classifier predicts it; None for the largest output.
    bias
        What calibration adds to the log-odds of the second class of a classifier with a threshold, whose probabilities
        are often those of other class shares; 0 without.
    """

    logits: NDArray[np.float32]
    labels: IntArray
    marginal: Array
    accuracy: float
    n_rows: int
    temperature: float
    entropy_threshold: float
    gap_edges: Array
    gaps: Array
    restored_gap: float
    ranking: float
    decision_threshold: float | None = None
    bias: float = 0.0

    @classmethod
    def learn(
        cls,
        logits: NDArray[np.float32],
        labels: IntArray,
        *,
        marginal: Array,
        accuracy: float,
        n_rows: int,
        decision_threshold: float | None = None,
        whole: tuple[FloatArray, IntArray] | None = None,
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        logits, labels
            Shapes (m, c) and (m,): a sample of the source in random order.
        marginal
            Shape (c,): class shares of the whole source.
        accuracy, n_rows
            Of the whole source.
        decision_threshold
            Of the classifier.
        whole
            Shapes (n, c) and (n,): all rows of the source and their labels; the sample where they are not at hand.
        """
        c = logits.shape[1]
        few = slice(max(_LEAST_ROWS, _TEMPERATURE_VALUES // c))
        outputs, top, bias = from_decision(logits, decision_threshold), logits.argmax(axis=1), 0.0
        if decision_threshold is not None:
            bias = fit_bias(outputs, labels)
            outputs = _biased(outputs, bias)
        temperature = fit_temperature(outputs[few], labels[few])
        scores = _scores(outputs, temperature)
        odds, correct = top_two(scores, top)[2], top == labels
        # Calibrated on the sample alone, every estimate would be as lucky as the sample is.
        rows, of_rows = (logits, labels) if whole is None else whole
        all_odds, entropies = _certainty(rows, decision_threshold, bias, temperature)
        all_correct = rows.argmax(axis=1) == of_rows
        restored = read(scores, bias=restoring_bias(scores, marginal), classes=top).probability
        edges, gaps = fit_gaps(all_odds, all_correct)
        own = gaps_at(odds, edges, gaps)
        confident, corrected = (np.clip(each + own, 0.0, 1.0).mean() for each in (sigmoid(odds), restored))
        return cls(
            logits=logits,
            labels=labels,
            marginal=marginal,
            accuracy=accuracy,
            n_rows=n_rows,
            temperature=temperature,
            entropy_threshold=matching_threshold(entropies, all_correct),
            gap_edges=edges,
            gaps=gaps,
            restored_gap=float(confident - corrected),
            ranking=_ranking(odds, correct),
            decision_threshold=decision_threshold,
            bias=bias,
        )

    @property
    def few_classes(self) -> float:
        """1 with few classes, and less the more there are: how far anchors, class shares, confidence are believed."""
        return min(1.0, _FEW_CLASSES / len(self.marginal))

    def rows(self, logits: FloatArray) -> FloatArray:
        """Return a classifier's outputs, shape (n, c), as rows whose largest value is that of the predicted class."""
        return to_decision(logits, self.decision_threshold)

    def outputs(self, rows: FloatArray) -> FloatArray:
        """Return the classifier's outputs that :meth:`rows` made into rows, with the bias of the calibration."""
        return _biased(from_decision(rows, self.decision_threshold), self.bias)

    def log_probabilities(self, logits: FloatArray) -> FloatArray:
        """Return calibrated log-probabilities of rows, shape (n, c).

        Rows are taken in the precision in which the sample is kept: scores of few digits, that fall on a threshold or
        on the edge of a bin by the thousand, must do so on the same side as the source's.
        """
        return _scores(self.outputs(_single(logits)), self.temperature)

    def _sample_scores(self) -> list[FloatArray]:
        """Return calibrated log-probabilities of the sample, in blocks so small that no compiler is loaded for them."""
        return [self.log_probabilities(block) for block in row_blocks(self.logits, WORTH_IT_FROM - 1)]

    @cached_property
    def top_two(self) -> TopTwo:
        """Top class, runner-up and calibrated log-odds of each row of the sample, shapes (m,).

        By rising log-odds, of which quantiles are found soonest.
        """
        top, second, odds = map(np.concatenate, zip(*map(top_two, self._sample_scores()), strict=True))
        order = np.argsort(odds)
        return top[order], second[order], odds[order]

    @property
    def clusters_share(self) -> float:
        """What clusters count for beside the softmax: as much, and less the fewer rows there are of each class."""
        n, c = min(len(self.logits), MOST_CLUSTERED), len(self.marginal)
        known = c <= MOST_CLASSES and n >= _LEAST_CLUSTERED
        return 0.5 * n / (n + PRIOR_ROWS * c) if known else 0.0

    @cached_property
    def clusters(self) -> ClusteredSource | None:
        """Where the classes of the sample lie; None where clusters do not count."""
        if not self.clusters_share:
            return None
        scores = np.concatenate(self._sample_scores())
        return ClusteredSource.learn(scores, self.labels, self.logits.argmax(axis=1))

    @cached_property
    def moved_rows(self) -> MovedRows:
        """Some rows of the sample, and what moves make of them: what targets are explained by."""
        scores = np.concatenate(self._sample_scores())
        n, c = scores.shape
        few = slice(max(_EXPLAINED_LEAST, min(_EXPLAINED_ROWS, _EXPLAINED_VALUES // c)))
        centred = scores - scores.mean(axis=0)
        return MovedRows(scores[few], self.labels[few], np.roll(centred, n // 2, axis=0)[few])


def _biased(logits: FloatArray, bias: float) -> FloatArray:
    """Return logits, shape (n, c), with a bias on the log-odds of the second of two classes."""
    return logits + np.array([-bias / 2, bias / 2], dtype=logits.dtype) if bias else logits


def _single(rows: FloatArray) -> FloatArray:
    """Return rows, shape (n, c), in the precision in which the sample is kept."""
    return rows.astype(np.float32, copy=False)


def _scores(logits: FloatArray, temperature: float) -> FloatArray:
    """Return calibrated log-probabilities, shape (n, c); in single precision where there are many classes."""
    scores: FloatArray = log_softmax(logits, temperature)
    return scores.astype(np.float32) if logits.shape[1] > _SINGLE_PRECISION_FROM else scores


def _certainty(
    rows: FloatArray, decision_threshold: float | None, bias: float, temperature: float
) -> tuple[FloatArray, FloatArray]:
    """Return calibrated log-odds of the predicted classes and minus the entropies of rows, shapes (n,)."""
    found = []
    for block in row_blocks(rows):
        scores = _scores(_biased(from_decision(_single(block), decision_threshold), bias), temperature)
        found.append((top_two(scores, block.argmax(axis=1))[2], read(scores, entropy=True).negative_entropy))
    odds, entropies = zip(*found, strict=True)
    return np.concatenate(odds), np.concatenate(entropies)


def _ranking(odds: FloatArray, correct: NDArray[np.bool_]) -> float:
    """Return 2 AUC - 1 of the log-odds for correctness, in [0, 1]; 1 where there is nothing to rank."""
    right = int(correct.sum())
    wrong = len(correct) - right
    if right == 0 or wrong == 0:
        return 1.0
    _, place, count = np.unique(odds, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # ties share their mean rank
    auc = (ranks[correct].sum() - right * (right + 1) / 2) / (right * wrong)
    return float(np.clip(2 * auc - 1, 0.0, 1.0))
