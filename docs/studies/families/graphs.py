"""What families of graphs share: nodes with features, four models, and the logits of all nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64

Numbers = NDArray[np.int64]
Features = NDArray[np.float32]  # rows, components


class Graph(NamedTuple):
    features: Tensor
    links: Tensor
    """The edges and a loop at each node, divided by the roots of the degrees of both ends."""
    means: Tensor
    """The edges, divided by the degree of the one that gets."""


def graph(features: Features, pairs: Numbers) -> Graph:
    """Return the graph of these features and edges, two rows of the numbers of nodes; edges go both ways."""
    total = len(features)
    ends, itself = np.concatenate([pairs, pairs[::-1]], axis=1), np.tile(np.arange(total), (2, 1))

    def matrix(places: Numbers, values: NDArray[np.float64]) -> Tensor:
        cells, size = torch.from_numpy(places), (total, total)
        return torch.sparse_coo_tensor(cells, torch.from_numpy(values).float(), size, check_invariants=True).coalesce()

    both = np.concatenate([ends, itself], axis=1)
    degrees = np.bincount(both[0], minlength=total)
    links = matrix(both, 1 / np.sqrt(degrees[both[0]] * degrees[both[1]]))
    return Graph(torch.from_numpy(features), links, matrix(ends, 1 / (degrees[ends[0]] - 1)))


MIXES: dict[str, Callable[[Graph, Tensor], Tensor]] = {
    "gcn": lambda known, states: known.links @ states,
    "sage": lambda known, states: torch.cat([states, known.means @ states], dim=1),
    "mlp": lambda known, states: states,
}


class Network(nn.Module):
    """Two layers, before each of which nodes are mixed with their neighbours, or not."""

    def __init__(self, mix: Callable[[Graph, Tensor], Tensor], parts: int, inputs: int, classes: int) -> None:
        super().__init__()
        self.mix, self.drop = mix, nn.Dropout(0.3)
        self.first, self.last = nn.Linear(parts * inputs, HIDDEN), nn.Linear(parts * HIDDEN, classes)

    def forward(self, known: Graph) -> Tensor:
        states = functional.relu(self.first(self.mix(known, self.drop(known.features))))
        scores: Tensor = self.last(self.mix(known, self.drop(states)))
        return scores


def network(mix: str, known: Graph, rows: Numbers, labels: Numbers) -> Network:
    """Fit a network to the labels of these nodes with Adam, all at once."""
    torch.manual_seed(0)
    model = Network(MIXES[mix], 2 if mix == "sage" else 1, known.features.shape[1], labels.max() + 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-5)
    places, truth = torch.from_numpy(rows), torch.from_numpy(labels)
    for _ in range(100):
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(known)[places], truth)
        torch.autograd.backward(loss)
        optimiser.step()
    model.eval()
    return model


def neighbourhood(known: Graph) -> Features:
    """Return features, their means over neighbours, and the means of these over neighbours."""
    near = known.means @ known.features
    return torch.cat([known.features, near, known.means @ near], dim=1).numpy()


def fitted(known: Graph, rows: Numbers, labels: Numbers) -> dict[str, Callable[[Graph], Tensor]]:
    """Return the models, each a function from a graph to the logits of all its nodes."""
    models: dict[str, Callable[[Graph], Tensor]] = {mix: network(mix, known, rows, labels) for mix in MIXES}
    regression = make_pipeline(StandardScaler(), LogisticRegression(C=0.03, tol=0.01, max_iter=200))
    regression.fit(neighbourhood(known)[rows], labels)
    models["lr"] = lambda other: torch.from_numpy(regression.decision_function(neighbourhood(other)))
    return models
