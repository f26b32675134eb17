"""GNNEvaluator against its description: augmentations, attributes, network, training and estimate."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import leadline
from leadline.bench.graphs.augment import AUGMENTATIONS, augmented, drop_edges, mask_features, mix_nodes, sample_nodes
from leadline.bench.graphs.evaluator import GNNEvaluator
from leadline.bench.graphs.gnns import NodeClassifier
from leadline.bench.graphs.graph import Graph, NodeSet
from leadline.bench.graphs.network import EvaluatorNetwork, make_view, merge, unit_rows
from leadline.bench.graphs.run import PUBLISHED
from leadline.errors import InputError

Case = tuple[NodeClassifier, NodeSet, NodeSet, np.ndarray]


@pytest.fixture
def graph(rng: np.random.Generator) -> Graph:
    return Graph(rng.normal(size=(40, 6)).astype(np.float32), rng.integers(0, 40, (2, 120))).undirected()


@pytest.fixture
def labels(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 3, 40)


@pytest.fixture(scope="module")
def case() -> Case:
    """Return a trained network, its training nodes, other nodes, and their labels."""
    rng = np.random.default_rng(0)
    n, classes = 300, 3
    labels = rng.integers(0, classes, n)
    features = rng.normal(size=(n, 6)).astype(np.float32)
    features[np.arange(n), labels] += 1.5
    start = rng.integers(0, n, 600)
    end = np.array([rng.choice(np.flatnonzero(labels == labels[node])) for node in start])
    graph = Graph(features, np.stack([start, end])).undirected()
    train, rest = NodeSet(graph, np.arange(150)), NodeSet(graph, np.arange(150, n))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = NodeClassifier("gcn", 6, classes, hidden=16)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        truths = torch.from_numpy(labels[:150])
        for _ in range(40):
            loss = torch.nn.functional.cross_entropy(model(train.batch(np.arange(150))), truths)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    return model.eval(), train, rest, labels[150:]


def small(model: Any, train: Any, **options: Any) -> GNNEvaluator:
    return GNNEvaluator(model, train, **({"n_graphs": 10, "max_epochs": 8} | options))


def test_dropped_edges(graph: Graph, labels: np.ndarray, rng: np.random.Generator) -> None:
    thinned, _ = drop_edges(graph, labels, 0.4, rng)
    assert set(map(tuple, thinned.edges.T.tolist())) <= set(map(tuple, graph.edges.T.tolist()))
    np.testing.assert_allclose(thinned.edges.shape[1] / graph.edges.shape[1], 0.6, atol=0.15)
    assert drop_edges(graph, labels, 1.0, rng)[0].edges.shape == (2, 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_masked_columns_are_zero_for_every_node(
    graph: Graph, labels: np.ndarray, rng: np.random.Generator, sparse: bool
) -> None:
    given = Graph(csr_array(graph.features), graph.edges) if sparse else graph
    masked = mask_features(given, labels, 0.5, rng)[0].features
    masked = masked.toarray() if sparse else masked
    changed = (masked != graph.features).any(axis=0)
    assert changed.any()
    assert not changed.all()
    assert not masked[:, changed].any()


@pytest.mark.parametrize("sparse", [False, True])
def test_mixed_nodes_are_mostly_another_node_and_have_its_label(
    graph: Graph, rng: np.random.Generator, sparse: bool
) -> None:
    given = Graph(csr_array(graph.features), graph.edges) if sparse else graph
    mixed, others = mix_nodes(given, np.arange(40), 0.3, rng)  # labels that name the node they come from
    values = mixed.features.toarray() if sparse else mixed.features
    assert values.dtype == np.float32
    np.testing.assert_array_equal(np.sort(others), np.arange(40))
    assert (others != np.arange(40)).mean() > 0.8
    np.testing.assert_allclose(values, 0.3 * graph.features + 0.7 * graph.features[others], atol=1e-6)
    np.testing.assert_array_equal(mixed.edges, graph.edges)


def test_sampled_nodes_keep_their_labels_and_edges(graph: Graph, labels: np.ndarray, rng: np.random.Generator) -> None:
    sampled, own = sample_nodes(graph, labels, 0.7, rng)
    assert sampled.n_nodes == len(own) == 28
    places = [int(np.flatnonzero((graph.features == row).all(axis=1))[0]) for row in sampled.features]
    np.testing.assert_array_equal(own, labels[places])
    assert sampled.edges.shape[1] == sum(a in places and b in places for a, b in graph.edges.T)


def test_strengths_are_the_published_ranges(graph: Graph, labels: np.ndarray, rng: np.random.Generator) -> None:
    ranges = {name: (low, high) for name, (_, low, high) in AUGMENTATIONS.items()}
    assert ranges == {
        "drop edges": (0.0, 1.0), "mask features": (0.0, 1.0), "mix nodes": (1e-5, 0.3), "sample nodes": (0.6, 1.0),
    }  # fmt: skip
    before = graph.features.copy()
    assert len(list(augmented(graph, labels, 3, rng))) == 12
    np.testing.assert_array_equal(graph.features, before)


def test_network_equals_convolutions_over_the_whole_attribute_matrix(graph: Graph) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch_geometric.nn import GCNConv
    torch.manual_seed(0)
    embedded, training = torch.randn(40, 5), unit_rows(torch.randn(17, 5))
    network = EvaluatorNetwork(training, 0.7).eval()
    attributes = torch.nn.functional.cosine_similarity(embedded[:, None], training[None], dim=2)
    first, second = GCNConv(17, 128), GCNConv(128, 16)
    for convolution, layer in ((first, network.first), (second, network.second)):
        convolution.lin.weight.data, convolution.bias.data = layer.weight.data, layer.bias.data + 0.1
        layer.bias.data = layer.bias.data + 0.1
    edges = torch.from_numpy(graph.edges)
    x = second(first(attributes, edges).relu(), edges).relu()
    nodes = np.arange(3, 30)
    for pooled, chosen in ((x, None), (x[nodes], nodes)):
        expected = torch.sigmoid(network.last(pooled.mean(dim=0)))
        torch.testing.assert_close(network(make_view(embedded, graph.edges, chosen)), expected, rtol=1e-5, atol=1e-6)


def test_graphs_side_by_side_give_their_own_answers(graph: Graph) -> None:
    torch.manual_seed(0)
    network = EvaluatorNetwork(unit_rows(torch.randn(9, 4)), 0.0).eval()
    views = [make_view(torch.randn(40, 4), graph.edges), make_view(torch.randn(40, 4), graph.edges, np.arange(7))]
    together = network(merge(views))
    torch.testing.assert_close(together, torch.cat([network(view) for view in views]), rtol=1e-5, atol=1e-6)


def test_training_learns_what_the_published_rate_does_not(case: Case) -> None:
    model, train, rest, labels = case
    learned = small(model, train, dropout=0.0).fit(rest, labels)
    published = small(model, train, **{**PUBLISHED, "max_epochs": 8}).fit(rest, labels)
    assert learned.held_out_error_ < 0.8 * published.held_out_error_
    assert published.history_[0] == pytest.approx(published.history_[-1], abs=1e-3)
    assert learned.n_train_nodes_ == 150


def test_estimates_are_pure_and_repeatable(case: Case) -> None:
    model, train, rest, labels = case
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    first, second = (small(model, train, seed=3).fit(rest, labels).estimate(rest) for _ in range(2))
    assert first.accuracy == second.accuracy
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert 0.0 <= first.interval[0] <= first.accuracy <= first.interval[1] <= 1.0
    assert first.n_samples == len(rest) == sum(entry.count for entry in first.by_class)
    assert first.method == "gnn-evaluator"


@pytest.mark.parametrize(
    ("options", "epochs", "reason"),
    [({"max_epochs": 1}, 1, "max_epochs"), ({"learning_rate": 1e-12, "patience": 1}, 2, "patience")],
)
def test_it_says_why_training_stopped(case: Case, options: dict[str, Any], epochs: int, reason: str) -> None:
    model, train, rest, labels = case
    found = small(model, train, **options).fit(rest, labels).estimate(rest).diagnostics
    assert (found["epochs"], found["stop_reason"]) == (epochs, reason)


def test_memory_is_bounded_by_drawing_nodes(case: Case) -> None:
    model, train, rest, labels = case
    evaluator = small(model, train, max_train_nodes=20, max_seed_nodes=50, max_epochs=1).fit(rest, labels)
    assert (evaluator.n_train_nodes_, evaluator.n_seed_nodes_) == (20, 50)
    assert evaluator.network_.first.in_features == 20


def test_logits_alone_are_refused(case: Case) -> None:
    model, train, rest, labels = case
    logits: Any = np.zeros((150, 3))
    with pytest.raises(InputError, match=r"GNNEvaluator.fit needs the graph: pass a NodeSet of it; got ndarray"):
        small(model, train).fit(logits, labels)
    with pytest.raises(InputError, match=r"not fitted yet"):
        small(model, train).estimate(rest)
    fitted = small(model, train, max_epochs=1).fit(rest, labels)
    with pytest.raises(InputError, match=r"use one of leadline.METHODS"):
        fitted.estimate(logits)
    with pytest.raises(InputError, match=r"needs model, a NodeClassifier"):
        small(None, train).fit(rest, labels)
    with pytest.raises(InputError, match=r"n_graphs must be at least 1; got 0"):
        small(model, train, n_graphs=0).fit(rest, labels)
    with pytest.raises(InputError, match=r"labels must have shape"):
        small(model, train).fit(rest, labels[:-1])
    with pytest.raises(InputError, match=r"must have 6 features"):
        fitted.estimate(NodeSet.all_of(Graph(np.zeros((3, 5), dtype=np.float32), np.zeros((2, 0), dtype=np.int64))))
    with pytest.raises(InputError, match=r"confidence_level must be between 0 and 1; got 1.0"):
        fitted.estimate(rest, confidence_level=1.0)


def test_it_does_not_pretend_to_take_logits(case: Case) -> None:
    model, train, _, _ = case
    assert "gnn-evaluator" not in leadline.METHODS
    assert not isinstance(small(model, train), leadline.estimators.Estimator)
    public = {name for name, value in vars(GNNEvaluator).items() if callable(value) and not name.startswith("_")}
    assert public == {"fit", "estimate"}


def test_an_interrupted_fit_passes_neither_for_a_finished_one_nor_for_the_one_before(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, train, rest, labels = case
    evaluator = small(model, train, max_epochs=1).fit(rest, labels)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("leadline.bench.graphs.evaluator.merge", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluator.fit(rest, labels)
    with pytest.raises(InputError, match=r"this GNNEvaluator is not fitted yet; call fit\(nodes, labels\) first"):
        evaluator.estimate(rest)


def test_asking_for_it_by_name_says_what_it_needs() -> None:
    with pytest.raises(InputError, match=r"gnn-evaluator needs graphs and the trained network, not logits alone"):
        leadline.compare((np.eye(3), [0, 1, 2]), {"t": np.eye(3)}, methods=["gnn-evaluator"])
