"""GNNEvaluator (Zheng et al. 2023): learns from augmented copies of the source how accuracy falls with the shift."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from leadline.bench.graphs.augment import augmented
from leadline.bench.graphs.gnns import NodeClassifier
from leadline.bench.graphs.graph import NodeSet
from leadline.bench.graphs.network import EvaluatorNetwork, View, make_view, merge, unit_rows
from leadline.bench.graphs.run import METHOD
from leadline.data.outputs import IntArray
from leadline.errors import InputError
from leadline.results.estimate import ClassEstimate, Estimate
from leadline.shift.intervals import SAMPLING_ONLY, sampling_interval

_HELD_OUT = 0.2


@dataclass(eq=False)
class GNNEvaluator:
    """Estimate the accuracy of a frozen graph network from the graph itself.

    It sees nodes of graphs and the network, where the methods of ``leadline.METHODS`` see logits; ``fit`` and
    ``estimate`` are called alike.

    Parameters
    ----------
    model
        The network whose accuracy is asked for; it is not changed.
    train
        The source nodes it was trained on, in their graph.
    n_graphs
        Augmented graphs of each of the four kinds.
    max_train_nodes
        Training nodes that nodes are compared with, at most; drawn at random. None for all of them.
    max_seed_nodes
        Labelled nodes that the augmented graphs are made of, at most; drawn at random. None for all of them.
    learning_rate, max_epochs, patience, batch_size, dropout
        Of the evaluator's training, which ends after ``patience`` epochs without a smaller error on the fifth of
        the augmented graphs that is held out; the best weights are kept.
    seed
        Of everything random.

    Notes
    -----
    1. Seed graph: the labelled nodes and the edges among them.
    2. ``4 n_graphs`` augmented graphs: edges dropped at a rate of U(0, 1), feature columns masked at U(0, 1),
       features x replaced by l x + (1 - l) x' with x' and the label of another node and l from U(1e-5, 0.3), nodes
       sampled at U(0.6, 1).
    3. The frozen network embeds each; its true accuracy there is known.
    4. Attributes of a node: cosine of its embedding with that of each training node.
    5. GCN(N, 128), ReLU, GCN(128, 16), ReLU, mean, dropout, linear, sigmoid; squared error, Adam.

    The published learning rate of 1e-7 leaves the network almost as it was drawn; ``GNNEvaluator(model, train,
    **PUBLISHED)`` selects it (``leadline.bench.graphs.run.PUBLISHED``).
    """

    model: NodeClassifier
    train: NodeSet
    _: KW_ONLY
    n_graphs: int = 100
    max_train_nodes: int | None = 1000
    max_seed_nodes: int | None = 5000
    learning_rate: float = 1e-3
    max_epochs: int = 20
    patience: int = 5
    batch_size: int = 4
    dropout: float = 0.7
    seed: int = 0

    def fit(self, nodes: NodeSet, labels: ArrayLike) -> Self:
        """Learn from labelled source nodes.

        Parameters
        ----------
        nodes
            n nodes that the network was not trained on.
        labels
            Shape (n,): index of the true class of each node.

        Returns
        -------
        Self
            The evaluator itself.
        """
        self._check_options()
        _require_nodes(nodes, "fit")
        labels = np.asarray(labels, dtype=np.int64)
        if labels.shape != (len(nodes),):
            raise InputError(f"labels must have shape ({len(nodes)},), one for each node; got {labels.shape}.")
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # an interrupted fit must not pass for a finished one, nor for the one before
        rng = np.random.default_rng(self.seed)
        with torch.no_grad():
            predicted = self._embed_and_predict(nodes)[1][nodes.nodes]
        kept = _at_most(len(nodes), self.max_seed_nodes, rng)
        compared = self.train.take(_at_most(len(self.train), self.max_train_nodes, rng))
        views, accuracies, held = self._make_graphs(nodes.take(kept), labels[kept], rng)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            reference = unit_rows(self.model.embed(compared.graph)[torch.from_numpy(compared.nodes)])
            network = EvaluatorNetwork(reference.cpu(), self.dropout)
            with torch.enable_grad():
                history, reason = self._train(network, views, torch.tensor(accuracies, dtype=torch.float32), held, rng)
        self.network_, self.history_, self.stop_reason_ = network, history, reason
        self.held_out_error_ = min(history)
        self.n_train_nodes_, self.n_seed_nodes_ = len(compared), len(kept)
        self.accuracy_range_ = (min(accuracies), max(accuracies))
        self.n_source_ = len(nodes)
        self.source_accuracy_ = float(np.mean(predicted == labels))
        return self

    def estimate(self, nodes: NodeSet, *, confidence_level: float = 0.9) -> Estimate:
        """Estimate the accuracy on unlabelled nodes.

        Parameters
        ----------
        nodes
            Messages pass over their whole graph, and the mean goes over these nodes.
        confidence_level
            Nominal coverage of the interval.
        """
        if not hasattr(self, "network_"):
            raise InputError("this GNNEvaluator is not fitted yet; call fit(nodes, labels) first.")
        _require_nodes(nodes, "estimate")
        if not len(nodes):
            raise InputError("nodes must hold at least one node; got none.")
        if not 0.0 < confidence_level < 1.0:
            raise InputError(f"confidence_level must be between 0 and 1; got {confidence_level}.")
        with torch.no_grad():
            embedded, predicted = self._embed_and_predict(nodes)
            accuracy = float(self.network_(make_view(embedded, nodes.graph.edges, nodes.nodes))[0])
        counts = np.bincount(predicted[nodes.nodes], minlength=self.model.linear.out_features)
        interval = sampling_interval(
            accuracy,
            target_variance=accuracy * (1.0 - accuracy),
            n_target=len(nodes),
            source_accuracy=self.source_accuracy_,
            n_source=self.n_source_,
            confidence_level=confidence_level,
        )
        return Estimate(
            accuracy=accuracy,
            interval=interval,
            confidence_level=confidence_level,
            n_samples=len(nodes),
            method=METHOD,
            by_class=tuple(ClassEstimate(label, int(count), None) for label, count in enumerate(counts)),
            diagnostics={
                "epochs": len(self.history_),
                "stop_reason": self.stop_reason_,
                "held_out_error": self.held_out_error_,
                "accuracy_range": self.accuracy_range_,
                "n_train_nodes": self.n_train_nodes_,
                "n_seed_nodes": self.n_seed_nodes_,
                "source_accuracy": self.source_accuracy_,
                "n_source": self.n_source_,
                "interval_covers": SAMPLING_ONLY,
            },
        )

    def _check_options(self) -> None:
        """Refuse options out of range, and things that are not a network and nodes."""
        if not isinstance(self.model, NodeClassifier) or not isinstance(self.train, NodeSet):
            raise InputError(
                "GNNEvaluator needs model, a NodeClassifier, and train, the NodeSet it was trained on; "
                f"got {type(self.model).__name__} and {type(self.train).__name__}."
            )
        for name in ("n_graphs", "max_train_nodes", "max_seed_nodes", "max_epochs", "patience", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; got {value}.")
        if not self.learning_rate > 0.0 or not 0.0 <= self.dropout < 1.0:
            raise InputError(
                f"learning_rate must be above 0 and dropout in [0, 1); got {self.learning_rate} and {self.dropout}."
            )

    def _embed_and_predict(self, nodes: NodeSet) -> tuple[torch.Tensor, IntArray]:
        """Return the frozen network's embeddings and predictions of all nodes of a graph."""
        self.model.eval()
        embedded = self.model.embed(nodes.graph)
        return embedded.cpu(), self.model.classify(embedded).argmax(dim=1).cpu().numpy()

    def _make_graphs(
        self, seeds: NodeSet, labels: IntArray, rng: np.random.Generator
    ) -> tuple[list[View], list[float], Any]:
        """Return the augmented graphs as the evaluator sees them, the accuracy on each, and which are held out."""
        views, accuracies, kinds = [], [], []
        with torch.no_grad():
            for kind, (graph, own) in augmented(seeds.graph.induced(seeds.nodes), labels, self.n_graphs, rng):
                embedded, predicted = self._embed_and_predict(NodeSet.all_of(graph))
                views.append(make_view(embedded, graph.edges))
                accuracies.append(float(np.mean(predicted == own)))
                kinds.append(kind)
        held = np.zeros(len(views), dtype=bool)
        for kind in dict.fromkeys(kinds):
            places = np.flatnonzero(np.array(kinds) == kind)
            held[rng.choice(places, int(_HELD_OUT * len(places)), replace=False)] = True
        return views, accuracies, held if held.any() else ~held

    def _train(
        self, network: EvaluatorNetwork, views: list[View], truths: torch.Tensor, held: Any, rng: np.random.Generator
    ) -> tuple[list[float], str]:
        """Fit the network to the accuracies, keeping the weights with the smallest held-out error.

        Returns the held-out error of each epoch, and why training stopped.
        """
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        learned, outside = np.flatnonzero(~held if not held.all() else held), np.flatnonzero(held)
        best, best_epoch, best_weights = np.inf, 0, network.state_dict()
        history: list[float] = []
        reason = "max_epochs"
        checked = merge([views[row] for row in outside])
        for epoch in range(1, self.max_epochs + 1):
            network.train()
            order = rng.permutation(learned)
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                loss = nn.functional.mse_loss(network(merge([views[row] for row in rows])), truths[rows])
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                optimiser.step()
            network.eval()
            with torch.no_grad():
                difference = network(checked) - truths[outside]
            error = float(difference.square().mean().sqrt())
            history.append(error)
            if error < best:
                best, best_epoch = error, epoch
                best_weights = {name: value.clone() for name, value in network.state_dict().items()}
            elif epoch - best_epoch >= self.patience:
                reason = "patience"
                break
        network.load_state_dict(best_weights)
        return history, reason


def _at_most(size: int, limit: int | None, rng: np.random.Generator) -> Any:
    """Return all of ``size`` rows, or ``limit`` of them drawn at random."""
    return np.arange(size) if limit is None or size <= limit else np.sort(rng.choice(size, limit, replace=False))


def _require_nodes(given: object, doing: str) -> None:
    """Refuse anything but nodes, and say what takes logits instead."""
    if not isinstance(given, NodeSet):
        raise InputError(
            f"GNNEvaluator.{doing} needs the graph: pass a NodeSet of it; got {type(given).__name__}. "
            "With logits alone, use one of leadline.METHODS."
        )
