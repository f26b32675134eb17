"""The methods that need graphs, as `bench run` runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from leadline.bench.datasets import SUITES
from leadline.bench.datasets.suite import Suite
from leadline.bench.graphs.graph import NodeSet
from leadline.bench.inputs import Split
from leadline.bench.pipeline import Job
from leadline.errors import InputError
from leadline.results.comparison import Comparison, ComparisonRow

METHOD = "gnn-evaluator"
#: Options of GNNEvaluator that give the published training; its other defaults are the published ones.
PUBLISHED: Mapping[str, Any] = {
    "learning_rate": 1e-7, "max_epochs": 50, "patience": 10, "max_train_nodes": None, "max_seed_nodes": None,
}  # fmt: skip
#: Variants beyond those on logits, by experiment: name -> options of GNNEvaluator.
VARIANTS: dict[str, dict[str, Mapping[str, Any]]] = {
    "main": {METHOD: {}},
    METHOD: {"default": {}, "published": PUBLISHED},
}


def require_graphs(suite: Suite) -> None:
    """Refuse to estimate from graphs where there are only logits."""
    if not suite.graphs:
        with_graphs = ", ".join(name for name, other in SUITES.items() if other.graphs)
        raise InputError(
            f"{METHOD} needs graphs and the trained network, and suite {suite.name} has neither; "
            f"it runs on {with_graphs}."
        )


def compare_on_graphs(job: Job, options: Mapping[str, Any], targets: Sequence[str]) -> Comparison:
    """Estimate by GNNEvaluator on some targets of a trained model.

    Parameters
    ----------
    job
        The trained model; its seed is that of the estimator too.
    options
        Of :class:`leadline.bench.graphs.evaluator.GNNEvaluator`.
    targets
        Names of targets.
    """
    from leadline.bench.graphs.evaluator import GNNEvaluator
    from leadline.bench.graphs.gnns import NodeClassifier
    from leadline.bench.training import predict

    require_graphs(job.suite)
    task = job.load()
    network = job.trained(task)
    if not isinstance(network, NodeClassifier):
        raise InputError(f"suite {job.suite.name} must train a node classifier.")
    started = perf_counter()
    evaluator = GNNEvaluator(network, _nodes(task.training), seed=job.seed, **options)
    evaluator.fit(_nodes(task.source), task.source.labels)
    fit_seconds = perf_counter() - started
    rows = []
    for name in targets:
        split = task.targets[name]()
        started = perf_counter()
        estimate = evaluator.estimate(_nodes(split))
        seconds = perf_counter() - started
        truth = float(np.mean(predict(network, split.inputs).argmax(axis=1) == split.labels))
        rows.append(
            ComparisonRow(
                method=METHOD,
                target=name,
                seed=job.seed,
                accuracy=estimate.accuracy,
                truth=truth,
                error=estimate.accuracy - truth,
                interval=estimate.interval,
                n_samples=estimate.n_samples,
                seconds=seconds,
                fit_seconds=fit_seconds,
            )
        )
    return Comparison(tuple(rows), 0.9)


def _nodes(split: Split) -> NodeSet:
    """Return the nodes of a split."""
    if not isinstance(split.inputs, NodeSet):
        raise InputError(f"{METHOD} needs nodes of a graph; got {type(split.inputs).__name__}.")
    return split.inputs
