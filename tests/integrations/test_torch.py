"""Outputs of PyTorch models over loaders of every kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import leadline as ll


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))


@pytest.fixture
def rows() -> torch.Tensor:
    return torch.randn(20, 4, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.randint(3, (20,), generator=torch.Generator().manual_seed(2))


def truth(model: torch.nn.Module, rows: torch.Tensor) -> Any:
    """Return the logits of all rows at once, without dropout."""
    first, _, last = list(model.children())
    return last(first(rows)).detach().numpy()


def test_loader_with_labels(model: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor) -> None:
    seen: list[int] = []
    outputs = ll.from_torch(
        model, DataLoader(TensorDataset(rows, labels), batch_size=8), progress=seen.append, classes=["a", "b", "c"]
    )
    np.testing.assert_allclose(outputs.logits, truth(model, rows), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outputs.labels, labels.numpy())
    assert outputs.classes == ("a", "b", "c")
    assert seen == [8, 16, 20]


@pytest.mark.parametrize("kind", ["tensor", "tuple", "dict"])
def test_loader_without_labels(kind: str, model: torch.nn.Module, rows: torch.Tensor) -> None:
    batches: dict[str, Any] = {"tensor": torch.split(rows, 8), "tuple": DataLoader(TensorDataset(rows), batch_size=8)}
    batches["dict"] = [{"input": batch} for batch in torch.split(rows, 8)]
    outputs = ll.from_torch(model, batches[kind])
    assert outputs.labels is None
    np.testing.assert_allclose(outputs.logits, truth(model, rows), rtol=1e-5, atol=1e-6)


class Wrapped(torch.nn.Module):
    """Takes arguments by name and gives an object or a dict, as models of Hugging Face do."""

    def __init__(self, inner: torch.nn.Module, as_dict: bool) -> None:
        super().__init__()
        self.inner, self.as_dict = inner, as_dict

    def forward(self, features: torch.Tensor, **others: Any) -> Any:
        assert "labels" not in others
        assert not torch.is_grad_enabled()
        logits = self.inner(features)
        return {"logits": logits} if self.as_dict else SimpleNamespace(logits=logits, loss=None)


@pytest.mark.parametrize("as_dict", [False, True])
def test_dicts_and_objects_with_logits(
    as_dict: bool, model: torch.nn.Module, rows: torch.Tensor, labels: torch.Tensor
) -> None:
    batches = [{"features": rows[:12], "labels": labels[:12]}, {"features": rows[12:], "labels": labels[12:]}]
    outputs = ll.from_torch(Wrapped(model, as_dict), batches)
    np.testing.assert_allclose(outputs.logits, truth(model, rows), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outputs.labels, labels.numpy())
    assert set(batches[0]) == {"features", "labels"}


def test_real_transformers_model() -> None:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    config.num_labels = 3
    torch.manual_seed(0)
    bert = BertForSequenceClassification(config)
    ids = torch.randint(50, (6, 5))
    outputs = ll.from_torch(
        bert, [{"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.arange(6) % 3}]
    )
    assert outputs.logits.shape == (6, 3)
    assert outputs.labels is not None


def test_every_part_returns_to_its_mode(model: torch.nn.Module, rows: torch.Tensor) -> None:
    first = next(model.children())
    model.train()
    first.eval()
    ll.from_torch(model, [rows])
    assert model.training
    assert not first.training
    with pytest.raises(ll.InputError, match="loader must give at least one batch"):
        ll.from_torch(model, [])
    assert model.training
    assert not first.training


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_single(dtype: torch.dtype, rows: torch.Tensor) -> None:
    outputs = ll.from_torch(torch.nn.Linear(4, 3).to(dtype), [rows.to(dtype)])
    assert outputs.logits.dtype == np.float32


class Recording(torch.nn.Linear):
    """Remembers where it was moved."""

    def to(self, *where: Any, **options: Any) -> Any:
        self.__dict__.setdefault("moves", []).append(*where)
        return super().to(*where, **options)


class Moved:
    """Rows that are only there once they have been moved."""

    def __init__(self, rows: torch.Tensor, device: Any) -> None:
        self.rows, self.device = rows, device

    def to(self, device: Any) -> torch.Tensor:
        assert device == self.device
        return self.rows


def test_model_and_rows_are_moved_and_the_model_back(rows: torch.Tensor) -> None:
    model = Recording(4, 3)
    outputs = ll.from_torch(model, [Moved(rows, "cpu:0")], device="cpu:0")
    assert model.moves == ["cpu:0", torch.device("cpu")]
    np.testing.assert_allclose(outputs.logits, model(rows).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_without_a_device_the_rows_go_to_the_model(rows: torch.Tensor) -> None:
    model = Recording(4, 3)
    ll.from_torch(model, [Moved(rows, torch.device("cpu"))])
    assert not hasattr(model, "moves")


@pytest.mark.parametrize(
    ("batches", "match"),
    [
        ([(torch.zeros(2, 4), torch.zeros(2), torch.zeros(2))], "batch 0 has 3 parts"),
        (["text"], "batch 0 is a str"),
        (
            [torch.randn(2, 4), (torch.randn(2, 4), torch.tensor([0, 1]))],
            "in all batches or in none; got them in 1 of 2",
        ),
        ([torch.randn(2, 5, 4)], r"must return logits of shape .*got \(2, 5, 3\) for batch 0"),
    ],
)
def test_wrong_batches(batches: Any, match: str, model: torch.nn.Module) -> None:
    with pytest.raises(ll.InputError, match=match):
        ll.from_torch(model, batches)


def test_wrong_models(rows: torch.Tensor) -> None:
    with pytest.raises(ll.InputError, match=r"model must be a torch\.nn\.Module; got function"):
        ll.from_torch(truth, [rows])
    with pytest.raises(ll.InputError, match=r"model must return a tensor, .* got tuple for batch 0"):
        ll.from_torch(torch.nn.LSTM(4, 3), [rows])
