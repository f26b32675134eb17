"""Citation networks with shared features and five classes: ACMv9, Citationv1, DBLPv7, and any of the same form.

Layout, below the data folder: ``raw/citation_graphs/<name>.npz`` with ``edges`` (2, m), each pair once; sparse binary
features as ``x_indptr``, ``x_indices`` and ``x_shape``; and ``labels_multi`` (n, 5).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from leadline.bench.datasets.suite import Suite
from leadline.bench.graphs.graph import KINDS, NORMALISED_KINDS, Graph, NodeSet
from leadline.bench.inputs import Options, Split, Task, holdout
from leadline.errors import InputError

NETWORKS = "raw/citation_graphs/{}.npz"
_ARRAYS = ("edges", "x_indptr", "x_indices", "x_shape", "labels_multi")


def _models(data: Path, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for every network that is there and every kind of classifier."""
    return tuple(f"{name}-{kind}" for name in networks(data) for kind in kinds)


def networks(data: Path) -> tuple[str, ...]:
    """Return the names of the networks that are there."""
    return tuple(sorted(path.stem for path in data.glob(NETWORKS.format("*"))))


def read_network(path: Path) -> Split:
    """Return the nodes of a network that have exactly one label, in the whole undirected graph.

    Nodes of several labels pass messages on and are not scored.
    """
    from scipy.sparse import csr_array

    with np.load(path, allow_pickle=False) as file:
        if missing := [name for name in _ARRAYS if name not in file]:
            raise InputError(f"{path} must hold the arrays {', '.join(_ARRAYS)}; it lacks {', '.join(missing)}.")
        edges, indptr, indices, shape, labels = (file[name] for name in _ARRAYS)
    ones = np.ones(len(indices), dtype=np.float32)
    features = csr_array((ones, indices.astype(np.int64), indptr.astype(np.int64)), shape=tuple(shape))
    if len(labels) != features.shape[0]:
        raise InputError(f"{path} must label each of its {features.shape[0]} nodes; got {len(labels)} rows.")
    scored = np.flatnonzero(labels.sum(axis=1) == 1)
    graph = Graph(features, edges).undirected()
    return Split(NodeSet(graph, scored), labels[scored].argmax(axis=1))


def load_citation(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return one network to train on and estimate from, and as targets its own rest and the other networks.

    Of the scored nodes of the source, 60 % train, 20 % are the labelled source and 20 % the target ``same``,
    by a stratified draw of the seed. A model is named after its source and its kind: ``acmv9-gcn``.
    """
    name = model.rsplit("-", maxsplit=1)[0]
    whole = read_network(data / NETWORKS.format(name))
    rest, same = holdout(whole, 0.2, seed)
    train, source = holdout(rest, 0.25, seed)

    def other(network: str) -> Split:
        return options.limited(read_network(data / NETWORKS.format(network)))

    targets = {network: partial(other, network) for network in networks(data) if network != name}
    return Task(source, {"same": lambda: options.limited(same), **targets}, options.limited(train))


SUITES = (
    Suite(
        name="citation-graphs",
        shift="domain",
        source="a citation network",
        targets="the rest of it, and the other networks",
        find_models=partial(_models, kinds=KINDS),
        find_other_models=partial(_models, kinds=NORMALISED_KINDS),
        n_classes=5,
        size="with the data",
        licence="research use",
        kind="trained",
        needs=(NETWORKS.format("*"),),
        load=load_citation,
        recipe="nodes",
        graphs=True,
    ),
)
