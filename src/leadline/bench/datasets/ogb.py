"""ogbn-arxiv in the official raw layout of the Open Graph Benchmark, read without the ``ogb`` package.

Layout, below the data folder (``arxiv.zip`` unpacks to ``arxiv``; the ``ogb`` package renames it to
``ogbn_arxiv``)::

    ogbn_arxiv/raw/num-node-list.csv.gz    one number: n
    ogbn_arxiv/raw/num-edge-list.csv.gz    one number: m
    ogbn_arxiv/raw/edge.csv.gz             m rows: citing paper, cited paper
    ogbn_arxiv/raw/node-feat.csv.gz        n rows of d numbers
    ogbn_arxiv/raw/node-label.csv.gz       n rows: class
    ogbn_arxiv/raw/node_year.csv.gz        n rows: year
    ogbn_arxiv/split/time/{train,valid,test}.csv.gz   node numbers of the official split

The tables have no header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.datasets.suite import Loader, Suite
from leadline.bench.download import Download
from leadline.bench.graphs.graph import KINDS, NORMALISED_KINDS, Graph, NodeSet
from leadline.bench.inputs import Options, Split, Task, locate
from leadline.data.outputs import IntArray
from leadline.errors import InputError

FOLDER = "ogbn_arxiv/raw|arxiv/raw"
LAST_TRAINING_YEAR = 2011
LAST_VALIDATION_YEAR = 2014
TARGET_YEARS = tuple(range(2015, 2021))


@dataclass(frozen=True, eq=False)
class OgbNodes:
    """A node-classification dataset of OGB.

    Attributes
    ----------
    graph
        The graph as given: edges directed, features float32.
    labels, years
        Shape (n,).
    splits
        The official split: "train", "valid" and "test", each an array of node numbers; empty where the folder
        ``split`` is not there. The paper divides by year instead.
    """

    graph: Graph
    labels: IntArray
    years: IntArray
    splits: Mapping[str, IntArray] = field(default_factory=dict)


def read_ogb(folder: Path) -> OgbNodes:
    """Read a folder of OGB's raw layout.

    Parameters
    ----------
    folder
        The folder that contains ``raw``.

    Returns
    -------
    OgbNodes
        Every table checked for its shape; wrong ones are an ``InputError`` that names the file.
    """
    raw = folder / "raw"
    n_nodes = int(_read_table(raw / "num-node-list.csv.gz", np.int64, columns=1)[0, 0])
    n_edges = int(_read_table(raw / "num-edge-list.csv.gz", np.int64, columns=1)[0, 0])
    edges = _read_table(raw / "edge.csv.gz", np.int64, rows=n_edges, columns=2)
    features = _read_table(raw / "node-feat.csv.gz", np.float32, rows=n_nodes)
    labels = _read_table(raw / "node-label.csv.gz", np.int64, rows=n_nodes, columns=1)[:, 0]
    years = _read_table(raw / "node_year.csv.gz", np.int64, rows=n_nodes, columns=1)[:, 0]
    splits = {}
    for name in ("train", "valid", "test"):
        path = folder / "split" / "time" / f"{name}.csv.gz"
        if path.exists():
            splits[name] = _read_table(path, np.int64, columns=1)[:, 0]
            if splits[name].size and not 0 <= splits[name].min() <= splits[name].max() < n_nodes:
                raise InputError(f"{path} must hold node numbers from 0 to {n_nodes - 1}; it does not.")
    return OgbNodes(Graph(features, edges.T), labels, years, splits)


def _read_table(path: Path, kind: Any, *, rows: int | None = None, columns: int | None = None) -> NDArray[Any]:
    """Return a compressed table of numbers without header, shape (rows, columns)."""
    import pyarrow as pa
    from pyarrow import csv

    if not path.exists():
        raise InputError(f"{path} is missing; see `leadline bench prepare ogbn-arxiv`.")
    if not rows and rows is not None:
        return np.empty((0, columns or 0), dtype=kind)
    try:
        table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
        values = np.column_stack([column.to_numpy() for column in table.columns])
        if not np.issubdtype(values.dtype, np.number) or not np.isfinite(values).all():
            raise InputError(f"{path} must hold finite numbers only; it does not.")
        numbers = values.astype(kind, casting="same_kind" if kind == np.int64 else "unsafe")
    except (pa.ArrowInvalid, OSError, EOFError, TypeError) as error:
        raise InputError(f"{path} must be a gzip-compressed table of numbers; it is not ({error}).") from error
    if rows is not None and len(numbers) != rows:
        raise InputError(f"{path} must have {rows} rows, as raw/num-*-list.csv.gz say; got {len(numbers)}.")
    if columns is not None and numbers.shape[1] != columns:
        raise InputError(f"{path} must have {columns} columns; got {numbers.shape[1]}.")
    return numbers


def load_arxiv(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return ogbn-arxiv by the paper's years, transductive: messages pass over the papers of all years."""
    del model, seed
    return yearly_task(_read_arxiv(data), options, inductive=False)


def load_arxiv_inductive(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return ogbn-arxiv by the paper's years, inductive: each part sees papers up to its own last year only."""
    del model, seed
    return yearly_task(_read_arxiv(data), options, inductive=True)


def yearly_task(nodes: OgbNodes, options: Options, *, inductive: bool) -> Task:
    """Divide papers by year: train to 2011, labelled source 2012 to 2014, one target per year from 2015 to
    2020.

    Parameters
    ----------
    nodes
        The dataset; its edges are made undirected.
    options
        ``limit`` bounds the scored papers of each part, not the graph.
    inductive
        Whether later papers are hidden: training sees the graph of papers to 2011, the source that of papers
        to 2014, and a target that of papers to its year. Otherwise all parts share the whole graph, as is
        usual with OGB; labels of later papers are never used.
    """
    graph, years = nodes.graph.undirected(), nodes.years

    def part(first: int | None, last: int) -> Split:
        wanted = (years <= last) & (True if first is None else years >= first)
        if not wanted.any():
            span = f"up to {last}" if first is None else f"from {first} to {last}"
            raise InputError(f"node_year.csv.gz must have papers {span}; it has none.")
        if not inductive:
            scored = np.flatnonzero(wanted)
            return options.limited(Split(NodeSet(graph, scored), nodes.labels[scored]))
        visible = np.flatnonzero(years <= last)
        scored = np.flatnonzero(wanted[visible])
        return options.limited(Split(NodeSet(graph.induced(visible), scored), nodes.labels[visible][scored]))

    present = [year for year in TARGET_YEARS if (years == year).any()]
    return Task(
        part(LAST_TRAINING_YEAR + 1, LAST_VALIDATION_YEAR),
        {str(year): partial(part, year, year) for year in present},
        part(None, LAST_TRAINING_YEAR),
    )


def _read_arxiv(data: Path) -> OgbNodes:
    """Read ogbn-arxiv under either of the names its folder has."""
    return read_ogb(locate(data, FOLDER).parent)


def _arxiv(name: str, targets: str, load: Loader) -> Suite:
    """Return the line of ogbn-arxiv in one of its two settings."""
    return Suite(
        name=name,
        shift="temporal",
        source="arXiv papers of 2012-2014",
        targets=targets,
        models=KINDS,
        other_models=NORMALISED_KINDS,
        n_classes=40,
        size="0.1 GB",
        licence="ODC-BY",
        kind="trained",
        needs=(FOLDER,),
        load=load,
        downloads=(
            Download(
                url="http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
                path="arxiv.zip",
                makes=FOLDER,
                checksum="49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276",
                unpack=".",
            ),
        ),
        recipe="nodes",
        graphs=True,
        same_setting=True,
    )


SUITES = (
    _arxiv("ogbn-arxiv", "each 2015-2020, messages over all years", load_arxiv),
    _arxiv("ogbn-arxiv-inductive", "each 2015-2020, later papers hidden", load_arxiv_inductive),
)
