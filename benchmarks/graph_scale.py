"""A random graph of ogbn-arxiv's size through one training epoch of each network and through all estimators.

Run: ``python benchmarks/graph_scale.py`` (options: --threads, --output). Every part runs in a process of its own, so
that its peak memory is its own; its processor time covers the making of the graph too. Nothing here says anything
about accuracy; it says what fits.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

NODES, EDGES, FEATURES, CLASSES = 169_343, 1_166_243, 128, 40
# Shares of papers up to 2011, and up to 2014, of the real dataset; the rest are targets.
TRAIN_END, SOURCE_END = 0.24, 0.42


def make_parts(nodes: int, edges: int) -> tuple[Any, Any, Any]:
    """Return train, source and target splits of a random graph whose labels can be learned."""
    from leadline.bench.graphs.graph import Graph, NodeSet
    from leadline.bench.inputs import Split

    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, nodes)
    features = rng.normal(size=(nodes, FEATURES)).astype(np.float32)
    features[np.arange(nodes), labels] += 1.0
    # Endpoints are squared uniforms: early papers are cited far more often than late ones, as in real networks.
    ends = (rng.random((2, edges)) ** [[1.0], [2.0]] * nodes).astype(np.int64)
    graph = Graph(features, ends).undirected()
    cuts = [0, int(TRAIN_END * nodes), int(SOURCE_END * nodes), nodes]
    parts = [np.arange(low, high) for low, high in pairwise(cuts)]
    train, source, target = (Split(NodeSet(graph, part), labels[part]) for part in parts)
    return train, source, target


def train_epoch(kind: str, nodes: int, edges: int) -> dict[str, Any]:
    """Train a network for one epoch and return its times."""
    from leadline.bench.models import build
    from leadline.bench.training import NODES as RECIPE
    from leadline.bench.training import train

    train_split, source, _ = make_parts(nodes, edges)
    model = build(kind, CLASSES, n_features=FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        started = perf_counter()
        train(model, train_split, source, replace(RECIPE, max_epochs=1), Path(folder))
    return {"what": f"{kind}: one epoch and one validation", "seconds": perf_counter() - started}


def estimate(method: str, nodes: int, edges: int) -> dict[str, Any]:
    """Fit an estimator on the source and estimate on the target, and return the times of both."""
    from leadline.bench.graphs.evaluator import GNNEvaluator
    from leadline.bench.models import build
    from leadline.bench.training import predict
    from leadline.estimators import make

    train_split, source, target = make_parts(nodes, edges)
    model: Any = build("gcn", CLASSES, n_features=FEATURES)
    if method == "gnn-evaluator":
        estimator: Any = GNNEvaluator(model, train_split.inputs, max_epochs=1)
        given, asked = source.inputs, target.inputs
    else:
        estimator = make(method)
        rng = np.random.default_rng(1)  # an untrained network is never sure; logits like a trained one's
        given, asked = (
            predict(model, split.inputs) + rng.normal(size=(len(split), CLASSES)) for split in (source, target)
        )
        for logits, split in ((given, source), (asked, target)):
            logits[np.arange(len(split)), split.labels] += 3.5
    started = perf_counter()
    estimator.fit(given, source.labels)
    fitted = perf_counter()
    estimator.estimate(asked)
    return {"what": method, "seconds": fitted - started, "estimate_seconds": perf_counter() - fitted}


def measured(task: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a part in a process of its own, with its peak memory in GB."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_with_peak, (task, *arguments))


def _with_peak(task: Callable[..., dict[str, Any]], threads: int, *arguments: Any) -> dict[str, Any]:
    import torch

    torch.set_num_threads(threads)
    result = task(*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return result | {"peak_gb": used.ru_maxrss * 1024 / 1e9, "cpu_seconds": used.ru_utime + used.ru_stime}


def main() -> None:
    from leadline.bench.graphs.graph import KINDS
    from leadline.bench.records import Machine
    from leadline.estimators import METHODS
    from leadline.version import __version__

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--only", help="Names of networks or methods, with commas.")
    parser.add_argument("--output", type=Path, help="JSON file for the results.")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [*KINDS, *METHODS, "gnn-evaluator"]
    results = []
    for name in wanted:
        task = train_epoch if name in KINDS else estimate
        result = measured(task, options.threads, name, options.nodes, options.edges)
        results.append(result)
        print(json.dumps(result), flush=True)
    if options.output:
        record = {"version": __version__, "machine": asdict(Machine.here()), "threads": options.threads}
        options.output.write_text(json.dumps(record | {"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
