"""Training, logits, runs and the command, end to end on small data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.special import softmax
from typer.testing import CliRunner

from leadline.bench import experiments, runs
from leadline.bench.datasets import SUITES
from leadline.bench.experiments import EXPERIMENTS
from leadline.bench.inputs import ImageArray, Options, Split
from leadline.bench.models import build
from leadline.bench.optional import need
from leadline.bench.pipeline import Job, classifier, extract_logits, train_suite
from leadline.bench.records import load_measured
from leadline.bench.rows import load_rows
from leadline.bench.runs import Variant, run_variants
from leadline.bench.training import MNIST, RECIPES, Recipe, load_best, predict, status, train
from leadline.cli.bench import app
from leadline.data.files import read_outputs
from leadline.errors import InputError
from official_files import write_mnist, write_office31


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep torch from starting threads that wait for each other longer than these small models take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_split(seed: int, n: int = 60) -> Split:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    pixels = rng.integers(0, 80, (n, 28, 28, 3), dtype=np.uint8)
    for row, label in enumerate(labels):
        pixels[row, 8 * label : 8 * label + 4] = 250
    return Split(ImageArray(pixels), labels)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path, optimiser: Any) -> None:
    recipe = Recipe(optimiser, 1e-2, 16, 4, None, 1e-3, 0.9, drop_every=2, augment=True)
    data, validation = small_split(0), small_split(1, 30)
    straight = train(build("mnist-cnn", 3, seed=5), data, validation, recipe, tmp_path / "a", seed=5)

    def stop(epoch: int, most: int, what: str) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(build("mnist-cnn", 3, seed=5), data, validation, recipe, tmp_path / "b", seed=5, progress=stop)
    assert status(tmp_path / "b").epoch == 2
    resumed = train(build("mnist-cnn", 3, seed=5), data, validation, recipe, tmp_path / "b", seed=5)
    assert resumed == straight
    assert status(tmp_path / "b").finished
    first, second = (load_best(build("mnist-cnn", 3), tmp_path / name).state_dict() for name in "ab")
    for name, tensor in first.items():
        torch.testing.assert_close(tensor, second[name], rtol=0, atol=0)
    longer = train(
        build("mnist-cnn", 3, seed=5), data, validation, replace(recipe, max_epochs=5), tmp_path / "b", seed=5
    )
    assert longer.epoch == 5
    with pytest.raises(InputError, match=r"trained with other settings.* delete its folder or choose another one\.$"):
        train(build("mnist-cnn", 3), data, validation, recipe, tmp_path / "b", seed=6)


def test_training_stops_early_and_keeps_the_best_epoch(tmp_path: Path) -> None:
    recipe = replace(MNIST, batch_size=16, patience=2)
    state = train(build("mnist-cnn", 3), small_split(0), small_split(1, 30), recipe, tmp_path)
    assert state.finished
    assert state.epoch == state.best_epoch + 2 < recipe.max_epochs
    model = load_best(build("mnist-cnn", 3), tmp_path)
    validation = small_split(1, 30)
    accuracy = (predict(model, validation.inputs).argmax(1) == validation.labels).mean()
    np.testing.assert_allclose(accuracy, state.best_accuracy)


def test_recipes_are_the_papers() -> None:
    assert asdict(RECIPES["cifar"]).items() >= {
        "learning_rate": 0.1, "weight_decay": 5e-4, "batch_size": 200, "patience": 10, "drop_every": 100,
    }.items()  # fmt: skip
    assert asdict(RECIPES["amazon-wilds"]).items() >= {
        "optimiser": "adamw", "learning_rate": 1e-5, "weight_decay": 1e-2, "batch_size": 8, "max_epochs": 3,
    }.items()  # fmt: skip
    assert (RECIPES["waterbirds"].batch_size, RECIPES["waterbirds"].patience) == (200, 5)
    assert (RECIPES["office31"].batch_size, RECIPES["office31"].max_epochs) == (64, 300)
    assert (RECIPES["mnist"].learning_rate, RECIPES["mnist"].patience) == (1e-3, 5)


@pytest.mark.parametrize(
    ("name", "size", "parameters"),
    [("resnet20", 32, 269_722), ("resnet32", 32, 464_154), ("resnet56", 32, 853_018),
     ("resnet18", 32, 11_173_962), ("resnet18-large", 64, 11_181_642)],
)  # fmt: skip
def test_models_have_the_published_number_of_parameters(name: str, size: int, parameters: int) -> None:
    model = build(name, 10, seed=1).eval()
    assert sum(tensor.numel() for tensor in model.parameters()) == parameters
    with torch.no_grad():
        assert model(torch.zeros(2, 3, size, size)).shape == (2, 10)
    again = build(name, 10, seed=1)
    torch.testing.assert_close(next(model.parameters()), next(again.parameters()), rtol=0, atol=0)


def test_mnist_goes_from_official_files_to_the_table(tmp_path: Path, rng: np.random.Generator) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    write_mnist(data, rng, n=1500)

    def call(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*arguments])
        assert result.exit_code == code, result.output
        return result.output

    folders = ["--data", str(data), "--out", str(out)]
    listed = json.loads(call("list", "--data", str(data), "--format", "json"))
    assert {entry["name"]: entry["present"] for entry in listed} == {name: name == "mnist" for name in SUITES}
    assert "mnist is ready" in call("prepare", "mnist", "--data", str(data))
    trained = json.loads(call("train", "mnist", *folders, "--seeds", "0,1", "--max-epochs", "2", "--format", "json"))
    assert [entry["epoch"] for entry in trained] == [2, 2]
    call("logits", "mnist", *folders, "--seeds", "0,1")
    source = read_outputs(out / "logits/mnist/mnist-cnn-seed0/source.npz")
    assert source.n_classes == 10
    (out / "logits/mnist/mnist-cnn-seed0/target_mnist-m.npz").unlink()
    with pytest.raises(InputError, match=r"made with other options, .*; delete it or choose another folder\.$"):
        extract_logits(SUITES["mnist"], data, out, options=Options(limit=5), seeds=(0,))
    call("logits", "mnist", *folders, "--seeds", "0,1")
    found = json.loads(
        call("run", "mnist", *folders, "--seeds", "0,1", "--methods", "ac,doc,atc-ne", "--format", "json")
    )
    assert [entry["variant"] for entry in found] == ["ac", "doc", "atc-ne"]
    table = pq.read_table(out / "rows/main/mnist.parquet").to_pylist()
    assert len(table) == 3 * 2
    assert {"method", "suite", "model", "target", "seed", "estimate", "truth", "version"} <= set(table[0])
    measured = load_measured(out)["experiments"]["main"]["mnist"]
    assert measured["paper_rows"]["MNIST/MNIST-M"]["ac"]["rows"] == 2
    assert {"version", "machine"} <= set(measured)
    text = call("table", "--out", str(out), "--format", "md")
    assert "13.27" in text  # the paper's AC on MNIST-M, with its two decimals
    assert "reported" in text
    assert "no data" in text
    assert str(out / "figures/scatter-mnist.svg") in call("figures", "--out", str(out), "--format", "csv")
    assert (out / "figures/scatter-mnist.svg").stat().st_size > 1000


def test_every_experiment_names_options_that_exist() -> None:
    from leadline.estimators import ALSA, make

    for variants in EXPERIMENTS.values():
        assert len({variant.name for variant in variants}) == len(variants)
        for variant in variants:
            make(variant.method, **variant.options)
    for name in ("ablation", "init", "alpha", "anchors", "rectify"):
        for ours, papers in zip(EXPERIMENTS[name], EXPERIMENTS[f"{name}-paper"], strict=True):
            assert papers.name == ours.name
            expected = ALSA.paper("gaussian" if ours.method == "alsa-g" else "exponential", **ours.options)
            assert make(papers.method, **papers.options).get_params() == expected.get_params()
    with pytest.raises(InputError, match="experiment must be one of main"):
        experiments.run_experiment(SUITES["mnist"], "nothing", Path(), Path())


def test_public_resnets_give_the_stored_logits(tmp_path: Path, data_root: Path) -> None:
    folder = extract_logits(
        SUITES["cifar10-resnets"], data_root, tmp_path, options=Options(limit=8), models=["resnet20"]
    )[0]
    got = read_outputs(folder / "target_contrast_3.npz")
    stored = read_outputs(data_root / "logits/cifar10c/resnet20/target_contrast_3.npz")
    np.testing.assert_allclose(got.logits, stored.logits[:8], atol=0.25)  # half precision, and one grey level
    assert len(list(folder.glob("target_*.npz"))) == 96
    before = (folder / "source.npz").stat().st_mtime_ns
    extract_logits(SUITES["cifar10-resnets"], data_root, tmp_path, options=Options(limit=8), models=["resnet20"])
    assert (folder / "source.npz").stat().st_mtime_ns == before


def test_public_resnets_on_groups_of_classes_give_the_summed_probabilities(tmp_path: Path, data_root: Path) -> None:
    found = []
    for name in ("cifar10-resnets", "cifar10-resnets-three"):
        job = Job(SUITES[name], data_root, tmp_path, "resnet20", 0, Options(limit=20))
        task = job.load()
        found.append(softmax(classifier(job, task)(task.source.inputs), axis=1))
    ten, three = found
    sums = [ten[:, group].sum(axis=1) for group in ([0, 1, 8, 9], [2, 4, 6, 7], [3, 5])]
    np.testing.assert_allclose(three, np.stack(sums, axis=1), atol=1e-6)
    assert len(task.targets) == 20  # clean, and each corruption at its worst


def test_reviews_are_classified_and_run(tmp_path: Path, data_root: Path) -> None:
    suite = SUITES["amazon-reviews-time"]
    models = ["minilm-lr"]
    for folder in extract_logits(suite, data_root, tmp_path, seeds=(0,), models=models):
        source = read_outputs(folder / "source.npz")
        assert source.accuracy is not None
        assert source.accuracy > 0.45  # four classes
    found = run_variants(suite, [Variant("ac", "ac")], data_root, tmp_path)
    assert len(found) == 5
    assert {row.model_seed for row in found} == {0}


def test_errors_name_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leadline bench prepare mnist"):
        train_suite(SUITES["mnist"], tmp_path, tmp_path)
    write_office31(tmp_path)
    with pytest.raises(InputError, match="model must be one of resnet18-large, resnet18-pretrained; got 'vgg'"):
        train_suite(SUITES["office31"], tmp_path, tmp_path, models=["vgg"])
    with pytest.raises(InputError, match="nothing to train"):
        train_suite(SUITES["imagenet"], tmp_path, tmp_path)
    with pytest.raises(InputError, match="already consists of logits"):
        extract_logits(SUITES["logits-mnist"], tmp_path, tmp_path)
    with pytest.raises(InputError, match="leadline bench logits mnist"):
        runs.sources(SUITES["mnist"], tmp_path, tmp_path)
    with pytest.raises(InputError, match="no trained model"):
        load_best(build("mnist-cnn", 10), tmp_path)
    with pytest.raises(InputError, match="is needed for the models: pip install not_a_package"):
        need("not_a_package", "the models")
    assert load_rows(tmp_path) == []


def test_listing_needs_neither_torch_nor_matplotlib() -> None:
    heavy = ("torch", "torchvision", "transformers", "wilds", "matplotlib", "pandas")
    code = (
        "import sys; from leadline.bench.result_tables import list_document; from pathlib import Path; "
        f"list_document(Path('x')); import leadline.cli.bench; print([m for m in {heavy} if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
