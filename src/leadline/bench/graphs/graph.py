"""A graph, and nodes of it as inputs of a classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leadline.bench.inputs import Rows
from leadline.errors import InputError

Edges = NDArray[np.int64]
#: The node classifiers, by the last part of a model's name. Here, as naming them must not need torch.
KINDS = ("gcn", "sage", "gat", "gin", "mlp")
#: The same graph networks with batch normalisation. An underscore, as a hyphen would begin another part of the name.
NORMALISED_KINDS = ("gcn_bn", "sage_bn", "gat_bn", "gin_bn")


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with features, and directed edges between them.

    Attributes
    ----------
    features
        Shape (n, d): a float32 array, or a SciPy CSR array for bags of words.
    edges
        Shape (2, m): a message goes from node ``edges[0, j]`` to node ``edges[1, j]``.
    """

    features: Any
    edges: Edges

    def __post_init__(self) -> None:
        """Check shapes, and that edges lead to nodes that exist."""
        edges = np.ascontiguousarray(self.edges, dtype=np.int64)
        object.__setattr__(self, "edges", edges)
        if len(self.features.shape) != 2 or not self.n_nodes:
            raise InputError(f"features must have shape (n, d) with n at least 1; got {self.features.shape}.")
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise InputError(f"edges must have shape (2, m); got {edges.shape}.")
        if edges.size and (edges.min() < 0 or edges.max() >= self.n_nodes):
            raise InputError(
                f"edges must join nodes 0 to {self.n_nodes - 1}; got {edges.min()} to {edges.max()}. "
                "Check that features and edges belong to the same graph."
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.features.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of the features."""
        return int(self.features.shape[1])

    def undirected(self) -> Graph:
        """Return the graph with every edge in both directions once, and no edge from a node to itself.

        Examples
        --------
        >>> Graph(np.eye(3, dtype=np.float32), np.array([[0, 1, 2], [1, 0, 2]])).undirected().edges
        array([[0, 1],
               [1, 0]])
        """
        start, end = self.edges[:, self.edges[0] != self.edges[1]]
        codes = np.unique(np.concatenate([start * self.n_nodes + end, end * self.n_nodes + start]))
        return replace(self, edges=np.stack(np.divmod(codes, self.n_nodes)))

    def induced(self, nodes: Rows) -> Graph:
        """Return the graph of some distinct nodes, renumbered in the order given, and the edges among them."""
        place = np.full(self.n_nodes, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        edges = place[self.edges]
        return Graph(self.features[nodes], edges[:, (edges >= 0).all(axis=0)])


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """Nodes that a classifier is to answer for; it sees the whole graph."""

    graph: Graph
    nodes: Rows


@dataclass(frozen=True, eq=False)
class NodeSet:
    """Some nodes of a graph: inputs of a node classifier.

    Attributes
    ----------
    graph
        What messages are passed on, beyond these nodes too.
    nodes
        Shape (n,): the nodes, as rows of ``graph.features``.
    """

    graph: Graph
    nodes: Rows

    @classmethod
    def all_of(cls, graph: Graph) -> Self:
        """Return all nodes of a graph."""
        return cls(graph, np.arange(graph.n_nodes))

    @property
    def n_features(self) -> int:
        """Number of features of a node."""
        return self.graph.n_features

    @property
    def batch_size(self) -> int:
        """All nodes at once: one pass over the graph gives the logits of every node."""
        return max(1, len(self))

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def take(self, rows: Rows) -> Self:
        """Return some of the nodes; the graph stays whole."""
        return replace(self, nodes=self.nodes[rows])

    def batch(self, rows: Rows) -> NodeBatch:
        """Return some of the nodes as the classifier wants them."""
        return NodeBatch(self.graph, self.nodes[rows])
