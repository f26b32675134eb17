"""From data to logits: train the models of a suite and store what they say about source and targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.datasets.suite import Groups, Suite
from leadline.bench.download import fetch
from leadline.bench.inputs import Features, Inputs, Options, Split, Task
from leadline.bench.optional import need
from leadline.comparison import Progress
from leadline.data.files import write_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError

if TYPE_CHECKING:
    from torch import nn

SEEDS = (0, 1, 2)
DEFAULTS = Options()
Classifier = Callable[[Inputs], NDArray[np.floating[Any]]]


@dataclass(frozen=True)
class Job:
    """One model of a suite under one seed: what it reads, and where its training and its logits are kept.

    Attributes
    ----------
    suite, data, out
        The suite, the data folder, and the folder for checkpoints and logits.
    model, seed
        Which of the suite's models, and the seed of its data, its weights and its training.
    options
        What the paper leaves open.
    """

    suite: Suite
    data: Path
    out: Path
    model: str
    seed: int
    options: Options = DEFAULTS

    @property
    def checkpoint(self) -> Path:
        """Where the training is kept."""
        return self.out / "checkpoints" / self.suite.name / self.model / f"seed-{self.seed}"

    @property
    def logits(self) -> Path:
        """Where the logits are kept."""
        return self.out / "logits" / self.suite.name / f"{self.model}-seed{self.seed}"

    def load(self) -> Task:
        """Read the data."""
        if self.suite.load is None:
            raise InputError(f"suite {self.suite.name} has no data to load.")
        return self.suite.load(self.data, self.options, self.model, self.seed)

    def untrained(self, task: Task) -> nn.Module:
        """Make the network with weights drawn from the seed, or with those it comes with."""
        from leadline.bench.models import build

        n_features = getattr(task.source.inputs, "n_features", None)
        n_classes = sum(map(len, self.suite.merged)) or self.suite.n_classes
        return build(self.model, n_classes, seed=self.seed, n_features=n_features)

    def trained(self, task: Task) -> nn.Module:
        """Make the network with the weights of its training here, or with those it comes with."""
        from safetensors.torch import load_file

        from leadline.bench.training import load_best

        network = self.untrained(task)
        if self.suite.kind == "trained":
            load_best(network, self.checkpoint)
        elif self.suite.weights is not None:
            network.load_state_dict(load_file(self.data / self.suite.weights.format(self.model)))
        return network

    def announce(self, progress: Progress | None) -> Progress:
        """Return a progress that says which model and seed it is about."""

        def told(done: int, most: int, what: str) -> None:
            if progress is not None:
                progress(done, most, f"{self.model}, seed {self.seed}: {what}")

        return told


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


def _jobs(
    suite: Suite, data: Path, out: Path, options: Options, seeds: Sequence[int], models: Sequence[str] | None
) -> list[Job]:
    """Return what is to be done, after checking that the data is there and the models exist.

    Models that are trained here have a job for each seed, those that come trained one.
    """
    require_data(suite, data)
    known = suite.models_in(data)
    allowed = known + suite.other_models_in(data)
    for name in models or ():
        if name not in allowed:
            raise InputError(f"model must be one of {', '.join(allowed)}; got {name!r}.")
    own = seeds if suite.kind in ("trained", "sklearn") else (0,)
    chosen = known if models is None else models
    return [Job(suite, data, out, model, seed, options) for model in chosen for seed in own]


def train_suite(
    suite: Suite,
    data: Path,
    out: Path,
    *,
    options: Options = DEFAULTS,
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
    recipe = RECIPES[suite.recipe]
    if max_epochs is not None:
        recipe = replace(recipe, max_epochs=max_epochs)
    report = []
    for job in _jobs(suite, data, out, options, seeds, models):
        task = job.load()
        state = train(
            job.untrained(task), task.training, task.source, recipe, job.checkpoint,
            seed=job.seed, device=device, progress=job.announce(progress),
        )  # fmt: skip
        report.append({"suite": suite.name, "model": job.model, "seed": job.seed} | asdict(state))
    return report


def extract_logits(
    suite: Suite,
    data: Path,
    out: Path,
    *,
    options: Options = DEFAULTS,
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
    jobs = _jobs(suite, data, out, options, seeds, models)
    for job in jobs:
        _extract(job, device, job.announce(progress))
    return [job.logits for job in jobs]


def _extract(job: Job, device: str, progress: Progress) -> None:
    """Write the files of one model that are not there yet."""
    task = job.load()
    readers: dict[str, Callable[[], Split]] = {"source": lambda: task.source}
    readers |= {f"target_{name}": read for name, read in task.targets.items()}
    todo = {name: read for name, read in readers.items() if not (job.logits / f"{name}.npz").exists()}
    if not todo:
        return
    _same_options(job.logits, job.options)
    classify = classifier(job, task, device)
    for done, (name, read) in enumerate(todo.items(), start=len(readers) - len(todo) + 1):
        split = read()
        logits = classify(split.inputs).astype(np.float32)
        write_outputs(Outputs(logits, split.labels), job.logits / f"{name}.npz", force=True)
        progress(done, len(readers), name)


def _same_options(folder: Path, options: Options) -> None:
    """Remember the options that logits were made with, and refuse to mix them with others."""
    note = folder / "options.json"
    wanted = json.dumps(asdict(options), default=str, sort_keys=True)
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(wanted)
    elif note.read_text() != wanted:
        raise InputError(
            f"{folder} has logits made with other options, {note.read_text()}; delete it or choose another folder."
        )


def classifier(job: Job, task: Task, device: str = "cpu") -> Classifier:
    """Return what maps inputs of a job to logits."""
    if job.suite.kind == "sklearn":
        if not isinstance(task.training.inputs, Features):
            raise InputError(f"suite {job.suite.name} must give features to train on.")
        return _fit_features(job.model, task.training.inputs, task.training.labels, job.seed)
    from leadline.bench.training import predict

    logits = partial(predict, job.trained(task).to(device))
    groups = job.suite.merged
    return (lambda inputs: merge_logits(logits(inputs), groups)) if groups else logits


def merge_logits(logits: NDArray[np.floating[Any]], groups: Groups) -> NDArray[np.floating[Any]]:
    """Return logits of groups of classes, whose softmax is the summed softmax of the classes, shape (n, groups).

    Examples
    --------
    >>> merge_logits(np.log([[0.5, 0.2, 0.3]]), ((0,), (1, 2))).round(6) == np.log([[0.5, 0.5]]).round(6)
    array([[ True,  True]])
    """
    return np.stack([np.logaddexp.reduce(logits[:, list(group)], axis=1) for group in groups], axis=1)


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
