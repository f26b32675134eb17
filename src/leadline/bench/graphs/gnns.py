"""Node classifiers: GCN, GraphSAGE, GAT and GIN of PyTorch Geometric, and an MLP that ignores the edges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leadline.bench.graphs.graph import KINDS, NORMALISED_KINDS, Graph, NodeBatch
from leadline.bench.optional import need
from leadline.errors import InputError

#: Wider features than this are bags of words, which a learned projection shortens first.
WIDE = 512


class _SparseProduct(torch.autograd.Function):
    """Sparse constant times dense weights. torch's own gradient of it is several times slower."""

    @staticmethod
    def forward(ctx: Any, features: Any, weight: Tensor) -> Tensor:
        """Return features @ weight."""
        ctx.features = features
        return _to_tensor(features, weight) @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        """Return the gradient of the weight."""
        gradient = gradients[0].contiguous()
        return None, _to_tensor(ctx.features.T.tocsr(), gradient) @ gradient


def _to_tensor(features: Any, like: Tensor) -> Tensor:
    """Return a SciPy CSR array as a torch tensor."""
    indptr, indices = (torch.as_tensor(part, dtype=torch.int64) for part in (features.indptr, features.indices))
    values = torch.as_tensor(features.data, dtype=like.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls this layout beta
        return torch.sparse_csr_tensor(indptr, indices, values, features.shape, device=like.device)


class _Projection(nn.Module):
    """A linear layer whose input may be sparse."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, features: Any) -> Tensor:
        """Map features (n, inputs) to (n, outputs)."""
        weight, bias = self.linear.weight, self.linear.bias
        if isinstance(features, np.ndarray):
            projected: Tensor = self.linear(torch.from_numpy(features).to(weight.device))
            return projected
        product: Tensor = _SparseProduct.apply(features, weight.t().contiguous())  # type: ignore[no-untyped-call]
        return product + bias


def _geometric() -> Any:
    """Import PyTorch Geometric's layers; what they warn of at import is between them and torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return need("torch_geometric.nn", "graph neural networks")


class NodeClassifier(nn.Module):
    """A graph network that embeds every node, and a linear layer that classifies the embeddings.

    Parameters
    ----------
    kind
        "gcn", "sage", "gat", "gin" or "mlp"; or "gcn_bn", "sage_bn", "gat_bn" or "gin_bn", whose layers but the last
        are normalised by batch.
    n_features, n_classes
        Sizes of a node's features and logits.
    hidden, layers, dropout
        Of the network.

    Notes
    -----
    The embedding has max(16, c) columns, so that the linear layer on top of it takes nothing away from the
    network. All else is as PyTorch Geometric has it by default, which is what the paper names: ReLU, GAT with one
    head, no normalisation. Features wider than 512 columns pass through a linear layer of ``hidden`` columns first,
    which lets sparse bags of words stay sparse.
    """

    def __init__(
        self, kind: str, n_features: int, n_classes: int, *, hidden: int = 128, layers: int = 2, dropout: float = 0.0
    ) -> None:
        """Make the layers."""
        super().__init__()
        if kind not in KINDS + NORMALISED_KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS + NORMALISED_KINDS)}; got {kind!r}.")
        pyg = _geometric()
        self.n_features, self._reads_edges = n_features, kind != "mlp"
        embedding = max(16, n_classes)
        self.projection = _Projection(n_features, hidden) if n_features > WIDE else None
        inputs = hidden if n_features > WIDE else n_features
        self._encoder: nn.Module
        if kind == "mlp":
            self._encoder = pyg.MLP([inputs, *[hidden] * (layers - 1), embedding], dropout=dropout, norm=None)
        else:
            make = {"gcn": pyg.GCN, "sage": pyg.GraphSAGE, "gat": pyg.GAT, "gin": pyg.GIN}[kind.removesuffix("_bn")]
            norm = "batch_norm" if kind in NORMALISED_KINDS else None
            self._encoder = make(inputs, hidden, layers, embedding, dropout=dropout, norm=norm)
        self.linear = nn.Linear(embedding, n_classes)

    def embed(self, graph: Graph) -> Tensor:
        """Return the embeddings of all nodes, shape (n, max(16, c))."""
        if graph.n_features != self.n_features:
            raise InputError(f"graph must have {self.n_features} features, as in training; got {graph.n_features}.")
        if self.projection is not None:
            x: Tensor = self.projection(graph.features)
        else:
            features = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
            x = torch.from_numpy(features)
        device = self.linear.weight.device
        inputs = [x.to(device)]
        if self._reads_edges:
            inputs.append(torch.from_numpy(graph.edges).to(device))
        embedded: Tensor = self._encoder(*inputs)
        return embedded

    def classify(self, embedded: Tensor) -> Tensor:
        """Return the logits of embedded nodes, shape (n, c)."""
        logits: Tensor = self.linear(embedded)
        return logits

    def forward(self, batch: NodeBatch) -> Tensor:
        """Return the logits of some nodes, shape (b, c), after messages over the whole graph."""
        nodes = torch.from_numpy(np.asarray(batch.nodes, dtype=np.int64))
        return self.classify(self.embed(batch.graph)[nodes.to(self.linear.weight.device)])
