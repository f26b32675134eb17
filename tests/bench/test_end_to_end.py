"""Datasets of the paper through `prepare`, `train`, `logits`, `run` and `table`, from official files made small."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from leadline.bench import text
from leadline.bench.datasets import SUITES
from leadline.bench.rows import load_rows
from leadline.cli import main
from leadline.cli.bench import app
from leadline.data.files import read_outputs
from official_files import (
    write_amazon_wilds,
    write_cifar_binary,
    write_cifar_shifts,
    write_corruption,
    write_imagenet,
    write_mnist,
    write_office31,
    write_waterbirds,
)

METHODS = ("ac", "doc", "atc-ne", "alsa-g")


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def go_through(name: str, data: Path, out: Path) -> set[str]:
    """Run a suite with one seed and one epoch, and return the targets that have rows."""
    folders = ("--data", str(data), "--out", str(out))
    assert f"{name} is ready" in call("prepare", name, "--data", str(data))
    if SUITES[name].kind == "trained":
        call("train", name, *folders, "--seeds", "0", "--max-epochs", "1", "--limit", "20")
    call("logits", name, *folders, "--seeds", "0", "--limit", "20")
    call("run", name, *folders, "--seeds", "0", "--methods", ",".join(METHODS))
    rows = load_rows(out, suite=name)
    assert {row.method for row in rows} == set(METHODS)
    for row in rows:
        stored = read_outputs(out / "logits" / name / f"{row.model}-seed0" / f"target_{row.target}.npz")
        assert (row.truth, row.n_samples) == (stored.accuracy, len(stored.logits))
    assert f"measured: {name}" in call("table", name, "--out", str(out), "--format", "md")
    assert json.loads((out / "measured.json").read_text())["experiments"]["main"][name]["same_setting"]
    return {row.target for row in rows}


def test_cifar10(tmp_path: Path, rng: np.random.Generator) -> None:
    write_cifar_binary(tmp_path, rng, n=20)
    write_cifar_shifts(tmp_path, rng)
    write_corruption(tmp_path, rng, "fog")
    assert go_through("cifar10", tmp_path, tmp_path / "out") == {
        "cifar-10.1", "cifar-10.2", *(f"fog_{severity}" for severity in range(1, 6)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "write", "targets"),
    [("waterbirds", write_waterbirds, {"test"}), ("office31", write_office31, {"dslr", "webcam"})],
)
def test_folders_of_images(tmp_path: Path, name: str, write: Callable[[Path], None], targets: set[str]) -> None:
    write(tmp_path)
    assert go_through(name, tmp_path, tmp_path / "out") == targets


class Pooled(torch.nn.Module):
    """Stands in for torchvision's networks: the mean colour of an image, mapped to 1,000 logits."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.linear(x.mean(dim=(2, 3)))
        return logits


def test_imagenet_asks_torchvision_for_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def get_model(name: str, *, weights: str) -> torch.nn.Module:
        asked.append((name, weights))
        return Pooled()

    torchvision: Any = ModuleType("torchvision")
    torchvision.models = SimpleNamespace(get_model=get_model)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    write_imagenet(tmp_path)
    assert go_through("imagenet", tmp_path, tmp_path / "out") == {"imagenetv2"}
    assert asked == [(name, "IMAGENET1K_V1") for name in SUITES["imagenet"].models]


def make_distilbert(folder: Path) -> None:
    """Write a DistilBERT of one thin layer with its tokens, as `from_pretrained` reads it."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "book"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.DistilBertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.DistilBertConfig(vocab_size=len(words), dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    transformers.DistilBertForMaskedLM(config).save_pretrained(folder)


def test_amazon_wilds_with_a_small_distilbert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_distilbert(tmp_path / "distilbert")
    monkeypatch.setattr(text, "_CHECKPOINT", str(tmp_path / "distilbert"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    texts = [" ".join(["good", "bad", "book"][: 1 + i % 3]) for i in range(80)]
    write_amazon_wilds(tmp_path, texts, [i % 4 for i in range(80)])
    assert go_through("amazon-wilds", tmp_path, tmp_path / "out") == {"subpop1", "subpop2"}


def test_one_command_does_it_all_and_goes_on_where_it_stopped(tmp_path: Path, rng: np.random.Generator) -> None:
    write_mnist(tmp_path, rng, n=800)
    command = ("reproduce", "mnist", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "0")
    text = call(*command, "--max-epochs", "1", "--format", "md")
    assert "The paper's row MNIST/MNIST-M" in text
    checkpoint = tmp_path / "out/checkpoints/mnist/mnist-cnn/seed-0/last.safetensors"
    before = checkpoint.stat().st_mtime_ns
    assert call(*command, "--max-epochs", "1", "--format", "md") == text
    assert checkpoint.stat().st_mtime_ns == before


def test_a_suite_that_cannot_be_had_says_how_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "prepare", "office31", "--data", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert f"mkdir -p {tmp_path}/office31" in printed.out
    assert "office31 is not complete" in printed.err
