"""From data to logits: train the models of a suite and store what they say about source and targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.datasets.suite import Suite
from leadline.bench.download import fetch
from leadline.bench.inputs import Features, Inputs, Options, Split, Task
from leadline.bench.optional import need
from leadline.data.files import write_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError

if TYPE_CHECKING:
    from torch import nn

SEEDS = (0, 1, 2)
#: Called with steps done, steps in all, and what is being done.
Progress = Callable[[int, int, str], None]
Classifier = Callable[[Inputs], NDArray[np.floating[Any]]]


def fetch_data(suite: Suite, data: Path, progress: Progress | None = None) -> list[tuple[Path, str]]:
    """Fetch what a suite can fetch, going on past a file that cannot be had.

    Returns what each download makes, and why it is not there; nothing where it is.
    """
    files = []
    for item in suite.downloads:
        try:
            files.append((fetch(item, data, progress), ""))
        except InputError as error:
            files.append((data / item.path, str(error)))
    return files


def require_data(suite: Suite, data: Path) -> None:
    """Refuse to start without the data."""
    if missing := suite.missing(data):
        raise InputError(
            f"suite {suite.name} needs {', '.join(missing)} in {data}; see `leadline bench prepare {suite.name}`."
        )


def checkpoint_folder(suite: Suite, out: Path, model: str, seed: int) -> Path:
    """Return where the training of a model is kept."""
    return out / "checkpoints" / suite.name / model / f"seed-{seed}"


def logits_folder(suite: Suite, out: Path, model: str, seed: int) -> Path:
    """Return where the logits of a model are kept."""
    return out / "logits" / suite.name / f"{model}-seed{seed}"


def model_seeds(suite: Suite, seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds of the models: several where they are trained here, one where they come trained."""
    return tuple(seeds) if suite.kind in ("trained", "sklearn") else (0,)


def train_suite(
    suite: Suite,
    data: Path,
    out: Path,
    *,
    options: Options = Options(),  # noqa: B008  immutable
    seeds: Sequence[int] = SEEDS,
    models: Sequence[str] | None = None,
    max_epochs: int | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Train the models of a suite by the paper's recipe, continuing where an earlier run stopped.

    Parameters
    ----------
    suite, data, out
        What to train, the data folder, and the folder that receives checkpoints.
    options
        What the paper leaves open.
    seeds
        One training each.
    models
        Some of the suite's models; None for all.
    max_epochs
        Fewer epochs than the recipe's.
    device
        A torch device.
    progress
        Called after each epoch.

    Returns
    -------
    list of dict
        Per model and seed: epochs done, best epoch, its validation accuracy, and whether training is over.
    """
    from leadline.bench.training import RECIPES, train

    if suite.kind != "trained" or suite.recipe is None:
        raise InputError(f"suite {suite.name} has nothing to train; its models are {suite.kind}. Go on with `logits`.")
    require_data(suite, data)
    recipe = RECIPES[suite.recipe]
    if max_epochs is not None:
        recipe = replace(recipe, max_epochs=max_epochs)
    report = []
    for model in _chosen(suite, data, models):
        for seed in seeds:
            task = _load(suite, data, options, model, seed)
            if task.train is None:
                raise InputError(f"suite {suite.name} has no training data.")

            def told(epoch: int, most: int, what: str, model: str = model, seed: int = seed) -> None:
                if progress is not None:
                    progress(epoch, most, f"{model}, seed {seed}: {what}")

            state = train(
                network_of(suite, task, model, seed), task.train, task.source, recipe,
                checkpoint_folder(suite, out, model, seed), seed=seed, device=device, progress=told,
            )  # fmt: skip
            report.append({"suite": suite.name, "model": model, "seed": seed} | asdict(state))
    return report


def extract_logits(
    suite: Suite,
    data: Path,
    out: Path,
    *,
    options: Options = Options(),  # noqa: B008  immutable
    seeds: Sequence[int] = SEEDS,
    models: Sequence[str] | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Path]:
    """Store the logits of every model on source and targets as ordinary files of outputs, keeping those there.

    The parameters are those of :func:`train_suite`. Returns the folders, one per model and seed.
    """
    if suite.kind == "logits":
        raise InputError(f"suite {suite.name} already consists of logits; go on with `run`.")
    require_data(suite, data)
    folders = []
    for model in _chosen(suite, data, models):
        for seed in model_seeds(suite, seeds):
            folder = logits_folder(suite, out, model, seed)
            _extract(suite, data, out, folder, options, model, seed, device, progress)
            folders.append(folder)
    return folders


def _extract(
    suite: Suite,
    data: Path,
    out: Path,
    folder: Path,
    options: Options,
    model: str,
    seed: int,
    device: str,
    progress: Progress | None,
) -> None:
    """Write the files of one model that are not there yet."""
    task = _load(suite, data, options, model, seed)
    readers: dict[str, Callable[[], Split]] = {"source": lambda: task.source}
    readers |= {f"target_{name}": read for name, read in task.targets.items()}
    todo = {name: read for name, read in readers.items() if not (folder / f"{name}.npz").exists()}
    if not todo:
        return
    _same_options(folder, options)
    classify = _classifier(suite, data, out, task, model, seed, device)
    for name, read in todo.items():
        split = read()
        logits = classify(split.inputs).astype(np.float32)
        write_outputs(Outputs(logits, split.labels), folder / f"{name}.npz", force=True)
        if progress is not None:
            done = len(readers) - len(todo) + list(todo).index(name) + 1
            progress(done, len(readers), f"{model}, seed {seed}: {name}")


def _same_options(folder: Path, options: Options) -> None:
    """Remember the options that logits were made with, and refuse to mix them with others."""
    note = folder / "options.json"
    wanted = json.dumps(asdict(options), default=str, sort_keys=True)
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(wanted)
    elif note.read_text() != wanted:
        raise InputError(
            f"{folder} has logits made with other options, {note.read_text()}; delete it or use another --out."
        )


def network_of(suite: Suite, task: Task, model: str, seed: int) -> nn.Module:
    """Make a model of a suite, untrained."""
    from leadline.bench.models import build

    return build(model, suite.n_classes, seed=seed, n_features=getattr(task.source.inputs, "n_features", None))


def _classifier(suite: Suite, data: Path, out: Path, task: Task, model: str, seed: int, device: str) -> Classifier:
    """Return what maps inputs to logits."""
    if suite.kind == "sklearn":
        if task.train is None or not isinstance(task.train.inputs, Features):
            raise InputError(f"suite {suite.name} must give features to train on.")
        return _fit_features(model, task.train.inputs, task.train.labels, seed)
    from safetensors.torch import load_file

    from leadline.bench.training import load_best, predict

    network = network_of(suite, task, model, seed)
    if suite.kind == "trained":
        load_best(network, checkpoint_folder(suite, out, model, seed))
    elif suite.weights is not None:
        network.load_state_dict(load_file(data / suite.weights.format(model)))
    return partial(predict, network.to(device))


def _fit_features(model: str, features: Features, labels: NDArray[np.int64], seed: int) -> Classifier:
    """Train a linear model or a network of one hidden layer on feature vectors."""
    if model.endswith("-lr"):
        models = need("sklearn.linear_model", "logistic regression")
        linear = models.LogisticRegression(C=10.0, max_iter=2000, random_state=seed).fit(features.values, labels)
        return lambda inputs: _two_columns(linear.decision_function(inputs.batch(np.arange(len(inputs)))))
    networks = need("sklearn.neural_network", "networks on feature vectors")
    network = networks.MLPClassifier((64,), alpha=1e-3, max_iter=60, early_stopping=True, random_state=seed)
    network.fit(features.values, labels)
    (first, last), (shift, offset) = network.coefs_, network.intercepts_

    def forward(inputs: Inputs) -> NDArray[np.floating[Any]]:
        hidden = np.maximum(np.asarray(inputs.batch(np.arange(len(inputs))) @ first) + shift, 0.0)
        return _two_columns(hidden @ last + offset)

    return forward


def _two_columns(scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return the logits of a binary model, which may have one score only, as two columns."""
    scores = scores[:, None] if scores.ndim == 1 else scores
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores


def _load(suite: Suite, data: Path, options: Options, model: str, seed: int) -> Task:
    """Read the data of a suite."""
    if suite.load is None:
        raise InputError(f"suite {suite.name} has no data to load.")
    return suite.load(data, options, model, seed)


def _chosen(suite: Suite, data: Path, models: Sequence[str] | None) -> tuple[str, ...]:
    """Return the models asked for, after checking their names."""
    known = suite.models_in(data)
    allowed = known + suite.other_models
    for name in models or ():
        if name not in allowed:
            raise InputError(f"model must be one of {', '.join(allowed)}; got {name!r}.")
    return known if models is None else tuple(models)
