"""The network of GNNEvaluator: two graph convolutions over discrepancy attributes, a mean, and a sigmoid.

The attributes of a graph are the cosines of its n nodes with N training nodes of the source, an (n, N) matrix that
would take 36 GB for ogbn-arxiv. It is never made: with unit embeddings U (n, h) and V (N, h) it is U V', and the
first convolution A U V' W equals (A U)(V' W), of which the left factor is computed once and the right one is (h, 128).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline.bench.graphs.graph import Edges
from leadline.bench.inputs import Rows

HIDDEN, POOLED = 128, 16


@dataclass(frozen=True, eq=False)
class View:
    """One graph or several as the evaluator sees them.

    Attributes
    ----------
    smoothed
        Shape (n, h): A U, unit embeddings after one convolution.
    start, end, weights
        Shape (m,): the entries of A, the normalised adjacency; ``weights[j]`` of node ``start[j]`` goes to ``end[j]``.
    nodes, owner
        Shape (k,): the nodes that are averaged over, and the number of the graph that each belongs to.
    count
        Number of graphs.
    """

    smoothed: Tensor
    start: Tensor
    end: Tensor
    weights: Tensor
    nodes: Tensor
    owner: Tensor
    count: int = 1


def normalised_adjacency(edges: Edges, n_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the entries of D^-1/2 (A + I) D^-1/2: where each starts and ends, and its weight."""
    loops = np.arange(n_nodes)
    start, end = np.concatenate([edges, [loops, loops]], axis=1)
    scale = 1.0 / np.sqrt(np.bincount(end, minlength=n_nodes))
    weights = (scale[start] * scale[end]).astype(np.float32)
    return torch.from_numpy(start), torch.from_numpy(end), torch.from_numpy(weights)


def propagate(x: Tensor, start: Tensor, end: Tensor, weights: Tensor) -> Tensor:
    """Return A x for x of shape (n, any)."""
    return torch.zeros_like(x).index_add(0, end, weights[:, None] * x[start])


def unit_rows(embedded: Tensor) -> Tensor:
    """Scale embeddings to length one."""
    return functional.normalize(embedded, dim=1)


def make_view(embedded: Tensor, edges: Edges, nodes: Rows | None = None) -> View:
    """Return what the evaluator needs of a graph whose nodes have these embeddings, shape (n, h)."""
    entries = normalised_adjacency(edges, len(embedded))
    pooled = torch.arange(len(embedded)) if nodes is None else torch.from_numpy(np.asarray(nodes, dtype=np.int64))
    return View(propagate(unit_rows(embedded), *entries), *entries, pooled, torch.zeros_like(pooled))


def merge(views: Sequence[View]) -> View:
    """Put graphs side by side, so that one pass serves all of them."""
    first = np.cumsum([0, *(len(view.smoothed) for view in views)]).tolist()
    return View(
        torch.cat([view.smoothed for view in views]),
        torch.cat([view.start + place for view, place in zip(views, first, strict=False)]),
        torch.cat([view.end + place for view, place in zip(views, first, strict=False)]),
        torch.cat([view.weights for view in views]),
        torch.cat([view.nodes + place for view, place in zip(views, first, strict=False)]),
        torch.cat([view.owner + number for number, view in enumerate(views)]),
        len(views),
    )


class EvaluatorNetwork(nn.Module):
    """GCN(N, 128), ReLU, GCN(128, 16), ReLU, mean over nodes, dropout, linear, sigmoid.

    Parameters
    ----------
    training_nodes
        Shape (N, h): unit embeddings of the source's training nodes.
    dropout
        Share of the pooled values that is dropped in training.
    """

    def __init__(self, training_nodes: Tensor, dropout: float) -> None:
        """Draw the weights as graph convolutions do: Glorot's, and no bias."""
        super().__init__()
        self.register_buffer("training_nodes", training_nodes, persistent=False)
        self.first, self.second = nn.Linear(len(training_nodes), HIDDEN), nn.Linear(HIDDEN, POOLED)
        self.last = nn.Linear(POOLED, 1)
        self._dropout = dropout
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, view: View) -> Tensor:
        """Return the estimated accuracy on each graph of a view, shape (b,)."""
        projected = self.get_buffer("training_nodes").t() @ self.first.weight.t()
        x = functional.relu(view.smoothed @ projected + self.first.bias) @ self.second.weight.t()
        x = functional.relu(propagate(x, view.start, view.end, view.weights) + self.second.bias)
        pooled = x.new_zeros(view.count, POOLED).index_add(0, view.owner, x[view.nodes])
        pooled = pooled / torch.bincount(view.owner, minlength=view.count)[:, None]
        dropped = functional.dropout(pooled, self._dropout, self.training)
        accuracies: Tensor = torch.sigmoid(self.last(dropped))[:, 0]
        return accuracies
