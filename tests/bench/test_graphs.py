"""Graphs: OGB's raw layout, citation networks, node classifiers, and the way through the benchmark."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from leadline.bench.datasets import SUITES, get_suite, ogb
from leadline.bench.datasets.citation import load_citation
from leadline.bench.experiments import run_experiment
from leadline.bench.graphs.gnns import WIDE, NodeClassifier
from leadline.bench.graphs.graph import KINDS, NORMALISED_KINDS, Graph, NodeBatch, NodeSet
from leadline.bench.inputs import Options
from leadline.bench.pipeline import extract_logits, train_suite
from leadline.bench.training import RECIPES, predict
from leadline.data.files import read_outputs
from leadline.errors import InputError
from official_files import write_citation, write_gzip, write_ogb


def test_ogb_layout_gives_back_what_was_written(tmp_path: Path) -> None:
    written = write_ogb(tmp_path / "arxiv")
    read = ogb.read_ogb(tmp_path / "arxiv")
    np.testing.assert_array_equal(read.labels, written["labels"])
    np.testing.assert_array_equal(read.years, written["years"])
    np.testing.assert_array_equal(read.graph.edges, written["edges"])
    np.testing.assert_allclose(read.graph.features, written["features"], atol=1e-6)
    assert read.graph.features.dtype == np.float32
    np.testing.assert_array_equal(read.splits["valid"], np.flatnonzero(written["years"] == 2018))
    assert sum(map(len, read.splits.values())) == len(read.labels)


@pytest.mark.parametrize("inductive", [False, True])
def test_years_of_the_paper(tmp_path: Path, inductive: bool) -> None:
    written = write_ogb(tmp_path / "ogbn_arxiv")
    years, labels = written["years"], written["labels"]
    load = ogb.load_arxiv_inductive if inductive else ogb.load_arxiv
    task = load(tmp_path, Options(), "gcn", 0)
    assert task.train is not None
    assert list(task.targets) == ["2015", "2016", "2017", "2018", "2019", "2020"]
    parts = {"train": (task.train, years <= 2011, 2011), "source": (task.source, (years > 2011) & (years < 2015), 2014)}
    parts |= {name: (read(), years == int(name), int(name)) for name, read in task.targets.items()}
    for part, wanted, last in parts.values():
        nodes = part.inputs
        assert isinstance(nodes, NodeSet)
        np.testing.assert_array_equal(part.labels, labels[wanted])
        np.testing.assert_allclose(nodes.graph.features[nodes.nodes], written["features"][wanted], atol=1e-6)
        assert nodes.graph.n_nodes == ((years <= last).sum() if inductive else len(years))
        pairs = set(map(tuple, nodes.graph.edges.T.tolist()))
        assert all((b, a) in pairs for a, b in pairs)


def test_inductive_graphs_hold_the_edges_among_their_papers(tmp_path: Path) -> None:
    written = write_ogb(tmp_path / "arxiv")
    early = np.flatnonzero(written["years"] <= 2011)
    task = ogb.load_arxiv_inductive(tmp_path, Options(), "gcn", 0)
    assert task.train is not None
    assert isinstance(task.train.inputs, NodeSet)
    expected = {
        pair
        for a, b in written["edges"].T.tolist()
        if a != b and {a, b} <= set(early.tolist())
        for pair in ((a, b), (b, a))
    }
    found = {(int(early[a]), int(early[b])) for a, b in task.train.inputs.graph.edges.T}
    assert found == expected


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("node-label.csv.gz", ["0", "1"], "must have 240 rows"),
        ("edge.csv.gz", ["0,1,2"] * 720, "must have 2 columns"),
        ("edge.csv.gz", ["0,999"] * 720, "edges must join nodes 0 to 239"),
        ("node-feat.csv.gz", ["a,b"] * 240, "finite numbers only"),
        ("node_year.csv.gz", ["2015.5"] * 240, "table of numbers"),
        ("num-node-list.csv.gz", [], "table of numbers"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, file: str, lines: list[str], message: str) -> None:
    write_ogb(tmp_path)
    write_gzip(tmp_path / "raw" / file, lines)
    with pytest.raises(InputError, match=message):
        ogb.read_ogb(tmp_path)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"num-node-list.csv.gz is missing"):
        ogb.load_arxiv(tmp_path, Options(), "gcn", 0)
    write_ogb(tmp_path)
    (tmp_path / "raw" / "edge.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(InputError, match=r"edge.csv.gz must be a gzip-compressed table"):
        ogb.read_ogb(tmp_path)


def test_graphs_refuse_wrong_shapes() -> None:
    with pytest.raises(InputError, match="edges must have shape"):
        Graph(np.eye(3, dtype=np.float32), np.zeros((3, 2), dtype=np.int64))
    with pytest.raises(InputError, match="features must have shape"):
        Graph(np.zeros(3, dtype=np.float32), np.zeros((2, 0), dtype=np.int64))


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_and_dense_features_give_the_same_logits_and_gradients(kind: str, rng: np.random.Generator) -> None:
    dense = (rng.random((30, WIDE + 1)) < 0.05).astype(np.float32)
    edges = rng.integers(0, 30, (2, 90))
    torch.manual_seed(0)
    model = NodeClassifier(kind, WIDE + 1, 3, hidden=8).eval()
    rows = np.arange(5, 20)
    gradients = []
    for features in (dense, csr_array(dense)):
        model.zero_grad()
        logits = model(NodeBatch(Graph(features, edges), rows))
        torch.autograd.backward(logits.square().sum())
        assert model.projection is not None
        gradient = model.projection.linear.weight.grad
        assert gradient is not None
        gradients.append((logits.detach(), gradient.clone()))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS + NORMALISED_KINDS)
def test_relabelled_nodes_give_permuted_logits(kind: str, rng: np.random.Generator) -> None:
    graph = Graph(rng.normal(size=(25, 6)).astype(np.float32), rng.integers(0, 25, (2, 60))).undirected()
    torch.manual_seed(1)
    model = NodeClassifier(kind, 6, 3, hidden=8)
    order = rng.permutation(25)
    logits = predict(model, NodeSet.all_of(graph))
    np.testing.assert_allclose(predict(model, NodeSet.all_of(graph.induced(order))), logits[order], atol=1e-5)
    without = predict(model, NodeSet.all_of(Graph(graph.features, np.zeros((2, 0), dtype=np.int64))))
    assert np.allclose(without, logits, atol=1e-5) == (kind == "mlp")


@pytest.mark.parametrize(("kind", "layer"), [("gcn", "GCN"), ("sage", "GraphSAGE"), ("gat", "GAT"), ("gin", "GIN")])
def test_networks_are_the_librarys_own(kind: str, layer: str, rng: np.random.Generator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import torch_geometric.nn as pyg
    graph = Graph(rng.normal(size=(25, 6)).astype(np.float32), rng.integers(0, 25, (2, 60)))
    model = NodeClassifier(kind, 6, 3)
    library = getattr(pyg, layer)(6, 128, 2, 16)
    weights = {name.removeprefix("_encoder."): value for name, value in model.state_dict().items()}
    library.load_state_dict({name: weights[name] for name in library.state_dict()})
    assert set(weights) == set(library.state_dict()) | {"linear.weight", "linear.bias"}
    expected = library(torch.from_numpy(graph.features), torch.from_numpy(graph.edges))
    torch.testing.assert_close(model.train().embed(graph), expected)  # in training: no dropout either


@pytest.mark.parametrize("kind", NORMALISED_KINDS)
def test_batch_norm_is_asked_for_by_name(kind: str) -> None:
    plain, normalised = (NodeClassifier(name, 6, 3) for name in (kind.removesuffix("_bn"), kind))
    assert not any("running_mean" in name for name in plain.state_dict())
    extra = set(normalised.state_dict()) - set(plain.state_dict())
    assert any("running_mean" in name for name in extra)
    with pytest.raises(InputError, match=r"kind must be one of gcn, .*gin_bn; got 'gcn-bn'"):
        NodeClassifier("gcn-bn", 6, 3)


def test_suites_of_graphs_train_plain_networks_unless_others_are_named(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write_citation(tmp_path, rng)
    for name, prefix in (("citation-graphs", "dblpv7-"), ("ogbn-arxiv", ""), ("ogbn-arxiv-inductive", "")):
        suite = get_suite(name)
        assert [model for model in suite.models_in(tmp_path) if model.startswith(prefix)] == [
            f"{prefix}{kind}" for kind in ("gcn", "sage", "gat", "gin", "mlp")
        ]
        assert f"{prefix}gin_bn" in suite.other_models_in(tmp_path)
    out = tmp_path / "out"
    suite = get_suite("citation-graphs")
    train_suite(suite, tmp_path, out, seeds=(0,), models=("dblpv7-gin_bn",), max_epochs=1)
    (folder,) = extract_logits(suite, tmp_path, out, seeds=(0,), models=("dblpv7-gin_bn",))
    assert sorted(path.stem for path in folder.glob("*.npz")) == [
        "source", "target_acmv9", "target_citationv1", "target_same"
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"model must be one of .*dblpv7-gin_bn; got 'dblpv7-gin-bn'"):
        train_suite(suite, tmp_path, out, models=("dblpv7-gin-bn",))


def test_the_recipe_is_the_papers() -> None:
    recipe = RECIPES["nodes"]
    assert (recipe.optimiser, recipe.learning_rate, recipe.weight_decay, recipe.patience) == ("adam", 1e-2, 5e-4, 20)


def test_from_official_files_to_rows(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    written = write_ogb(data / "arxiv")
    suite = get_suite("ogbn-arxiv-inductive")
    train_suite(suite, data, out, seeds=(0,), models=("sage",), max_epochs=30)
    extract_logits(suite, data, out, seeds=(0,), models=("sage",))
    stored = read_outputs(out / "logits" / suite.name / "sage-seed0" / "target_2017.npz")
    assert stored.labels is not None
    np.testing.assert_array_equal(stored.labels, written["labels"][written["years"] == 2017])
    rows = run_experiment(suite, "main", data, out, methods=["ac", "gnn-evaluator"], seeds=(0,))
    assert {(row.method, row.target) for row in rows} >= {("gnn-evaluator", "2020"), ("ac", "2015")}
    assert len({(row.target, row.truth) for row in rows}) == 6  # both methods are held against the same accuracy
    assert len({row.origin for row in rows if row.origin}) == 2  # one for each method, from its own code
    kept = run_experiment(suite, "main", data, out, methods=["ac"], seeds=(0,))
    assert {row.method for row in kept} == {"ac", "gnn-evaluator"}  # what would come out the same stays


def test_gnn_evaluator_on_logits_is_refused_by_name(tmp_path: Path) -> None:
    suite = next(suite for suite in SUITES.values() if suite.kind == "logits")
    with pytest.raises(InputError, match=r"gnn-evaluator needs graphs and the trained network.*citation-graphs"):
        run_experiment(suite, "main", tmp_path, tmp_path, methods=["gnn-evaluator"])


def test_citation_networks(data_root: Path) -> None:
    task = load_citation(data_root, Options(), "dblpv7-gcn", 0)
    assert task.train is not None
    assert set(task.targets) == {"same", "acmv9", "citationv1"}
    parts = [task.train, task.source, task.targets["same"]()]
    assert sum(map(len, parts)) == 5469
    nodes = np.concatenate([part.inputs.nodes for part in parts if isinstance(part.inputs, NodeSet)])
    assert len(set(nodes.tolist())) == 5469
    assert isinstance(task.train.inputs, NodeSet)
    assert task.train.inputs.graph.n_nodes == 5484
    assert task.train.inputs.graph.edges.shape == (2, 2 * 8117)
    other = task.targets["acmv9"]()
    given = read_outputs(data_root / "logits" / "citation_domains" / "citationv1_gcn" / "target_acmv9.npz")
    np.testing.assert_array_equal(other.labels, given.labels)
