"""The four augmentations by which GNNEvaluator imitates distribution shifts of a labelled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from leadline.bench.graphs.graph import Graph
from leadline.data.outputs import IntArray

Labelled = tuple[Graph, IntArray]
Augmentation = Callable[[Graph, IntArray, float, np.random.Generator], Labelled]


def drop_edges(graph: Graph, labels: IntArray, share: float, rng: np.random.Generator) -> Labelled:
    """Remove each edge with probability ``share``."""
    return replace(graph, edges=graph.edges[:, rng.random(graph.edges.shape[1]) >= share]), labels


def mask_features(graph: Graph, labels: IntArray, share: float, rng: np.random.Generator) -> Labelled:
    """Set each column of the features to zero with probability ``share``."""
    kept = (rng.random(graph.n_features) >= share).astype(np.float32)
    if isinstance(graph.features, np.ndarray):
        return replace(graph, features=graph.features * kept), labels
    features = graph.features.copy()
    features.data = features.data * kept[features.indices]
    return replace(graph, features=features), labels


def mix_nodes(graph: Graph, labels: IntArray, share: float, rng: np.random.Generator) -> Labelled:
    """Replace features x by share x + (1 - share) x', x' those of another node, and the label by that node's.

    As published. With shares of at most 0.3 the other node prevails in the features, so the label is its label; the
    edges stay those of the node itself.
    """
    other = rng.permutation(graph.n_nodes)
    return replace(graph, features=graph.features * share + graph.features[other] * (1.0 - share)), labels[other]


def sample_nodes(graph: Graph, labels: IntArray, share: float, rng: np.random.Generator) -> Labelled:
    """Keep ``share`` of the nodes and the edges among them."""
    kept = np.sort(rng.choice(graph.n_nodes, max(1, int(share * graph.n_nodes)), replace=False))
    return graph.induced(kept), labels[kept]


#: Each augmentation with the range its strength is drawn from.
AUGMENTATIONS: dict[str, tuple[Augmentation, float, float]] = {
    "drop edges": (drop_edges, 0.0, 1.0),
    "mask features": (mask_features, 0.0, 1.0),
    "mix nodes": (mix_nodes, 1e-5, 0.3),
    "sample nodes": (sample_nodes, 0.6, 1.0),
}


def augmented(graph: Graph, labels: IntArray, count: int, rng: np.random.Generator) -> Iterator[tuple[str, Labelled]]:
    """Give ``count`` graphs of each augmentation, one at a time, under the name of the augmentation.

    Examples
    --------
    >>> graph = Graph(np.eye(4, dtype=np.float32), np.array([[0, 1], [1, 0]]))
    >>> [name for name, _ in augmented(graph, np.zeros(4, dtype=np.int64), 1, np.random.default_rng(0))]
    ['drop edges', 'mask features', 'mix nodes', 'sample nodes']
    """
    for name, (augment, low, high) in AUGMENTATIONS.items():
        for _ in range(count):
            yield name, augment(graph, labels, float(rng.uniform(low, high)), rng)
