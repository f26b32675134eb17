"""The paper's experiments: comparison, ablations, initialisation, alpha, anchors, and training time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from leadline.bench.datasets.suite import Suite
from leadline.bench.graphs import run as on_graphs
from leadline.bench.pipeline import SEEDS
from leadline.bench.rows import PAPER_SUFFIX, Row, load_rows, rows_stem, save_rows
from leadline.bench.runs import Variant, origin_of, require_known, run_variants, sources
from leadline.comparison import Progress
from leadline.errors import InputError
from leadline.estimators import ALSA, METHODS, make
from leadline.estimators.alsa.training import PARTS

_log = logging.getLogger(__name__)
ALPHAS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
ANCHOR_COUNTS = (10, 30, 100, 300, 1000, 3000)
_FIXED = {
    "Lrn": (),
    "Fix a": ("anchors",),
    "Fix p": ("peaks",),
    "Fix v": ("widths",),
    "Fix p&v": ("peaks", "widths"),
}


def _learn(fixed: Sequence[str]) -> list[str]:
    """Return what stays learnable."""
    return [name for name in PARTS if name not in fixed]


def _paper(influence: Literal["gaussian", "exponential"]) -> dict[str, Any]:
    """Return the paper's choices, as far as they differ from the defaults, as options that JSON can hold."""
    ours, paper = ALSA(influence=influence).get_params(), ALSA.paper(influence).get_params()
    return {name: value for name, value in paper.items() if value != ours[name]}


_PAPER = {"alsa-g": _paper("gaussian"), "alsa-e": _paper("exponential")}
#: The paper's experiments with ALSA, around our defaults.
_AROUND_OURS: dict[str, tuple[Variant, ...]] = {
    "ablation": tuple(Variant(name, "alsa-g", {"learn": _learn(fixed)}) for name, fixed in _FIXED.items()),
    "init": tuple(Variant(name, "alsa-g", {"init": name}) for name in ("balanced", "sample", "random")),
    "alpha": tuple(
        Variant(f"{method} {alpha:g}", method, {"alpha": alpha}) for method in ("alsa-g", "alsa-e") for alpha in ALPHAS
    ),
    "anchors": tuple(Variant(f"{count}", "alsa-g", {"n_anchors": count}) for count in ANCHOR_COUNTS),
    "rectify": tuple(Variant(f"{rule or 'none'}", "alsa-g", {"rectify": rule}) for rule in ("total", "single", None)),
}
#: The same around the paper's choices (:meth:`leadline.ALSA.paper`). What is fixed there is a constant, what is fixed
#: here was solved from the source.
_AROUND_THE_PAPERS: dict[str, tuple[Variant, ...]] = {
    f"{experiment}{PAPER_SUFFIX}": tuple(
        Variant(variant.name, variant.method, {**_PAPER[variant.method], **variant.options}) for variant in variants
    )
    for experiment, variants in _AROUND_OURS.items()
}
EXPERIMENTS: dict[str, tuple[Variant, ...]] = {
    "main": (
        *(Variant(name, name) for name in METHODS),
        *(Variant(f"{name}{PAPER_SUFFIX}", name, options) for name, options in _PAPER.items()),
    ),
    **_AROUND_OURS,
    **_AROUND_THE_PAPERS,
}


def run_experiment(
    suite: Suite,
    experiment: str,
    data: Path,
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    seeds: Sequence[int] = SEEDS,
    models: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run an experiment on a suite and store its rows as Parquet and JSON below ``out/rows``.

    Rows of other models and variants that were run earlier are kept and returned too, as long as they have the origin
    that they would have today (:func:`leadline.bench.runs.origin_of`). Those that have not are left out, which a
    warning in the log says.

    ``methods`` keeps some of the variants, by their name or by the method they use; the other parameters are those of
    :func:`leadline.bench.runs.run_variants`.
    """
    if on_graphs.METHOD in (experiment, *(methods or ())):
        on_graphs.require_graphs(suite)
    variants = _variants(suite, experiment)
    chosen = variants
    if methods is not None:
        require_known("methods", methods, (name for variant in variants for name in (variant.method, variant.name)))
        chosen = tuple(variant for variant in variants if {variant.method, variant.name} & {*methods})
    rows = run_variants(
        suite, chosen, data, out, experiment=experiment, seeds=seeds, models=models, targets=targets, progress=progress
    )
    new = {_place(row) for row in rows}
    earlier = [row for row in load_rows(out, experiment, suite.name) if _place(row) not in new]
    origins = {
        (model, seed, variant.name): origin_of(variant, folder)
        for model, seed, folder in (sources(suite, data, out) if earlier else ())
        for variant in variants
    }
    rows += [row for row in earlier if row.origin == origins.get(_place(row))]
    if stale := [row for row in earlier if row.origin != origins.get(_place(row))]:
        _log.warning(
            "left out %d earlier rows of %s, %s: another version, other code, options or logits made them. "
            "Run it again without a choice of methods and models to have all.",
            len(stale), suite.name, ", ".join(dict.fromkeys(row.variant for row in stale)),
        )  # fmt: skip
    save_rows(rows, rows_stem(out, experiment, suite.name))
    return rows


def _variants(suite: Suite, experiment: str) -> tuple[Variant, ...]:
    """Return the variants of an experiment that a suite allows for."""
    experiments = dict.fromkeys([*EXPERIMENTS, *on_graphs.VARIANTS])
    if experiment not in experiments:
        raise InputError(f"experiment must be one of {', '.join(experiments)}; got {experiment!r}.")
    variants = EXPERIMENTS.get(experiment, ())
    if suite.graphs:
        more = on_graphs.VARIANTS.get(experiment, {})
        variants += tuple(Variant(name, on_graphs.METHOD, options) for name, options in more.items())
    return variants


def _place(row: Row) -> tuple[str, int | None, str]:
    """Return the model, its seed and the variant that a row is about."""
    return row.model, row.model_seed, row.variant


@dataclass(frozen=True)
class TrainingSize:
    """The size of a training of ALSA in the paper, and the time the paper states for it on a GPU.

    Attributes
    ----------
    dataset
        The paper's name of it.
    n_samples, n_classes, n_anchors
        Source samples (of our splits where the paper does not say), classes and anchors.
    reported_seconds
        As in the paper, which rounds.
    """

    dataset: str
    n_samples: int
    n_classes: int
    n_anchors: int
    reported_seconds: float


TRAINING_SIZES = (
    TrainingSize("CIFAR10", 6_667, 10, 3000, 10.0),
    TrainingSize("CIFAR100", 6_667, 100, 3000, 20.0),
    TrainingSize("ImageNet", 50_000, 1000, 20_000, 1800.0),
    TrainingSize("Amazon-WILD", 46_950, 5, 5000, 240.0),
    TrainingSize("Waterbirds", 1_199, 2, 500, 20.0),
    TrainingSize("MNIST", 6_060, 10, 3000, 30.0),
    TrainingSize("Office-31", 563, 31, 300, 5.0),
)


@dataclass(frozen=True)
class TrainingTime:
    """How long ALSA's fit took on synthetic logits of the paper's size.

    Attributes
    ----------
    dataset, n_samples, n_classes, n_anchors, reported_seconds
        Of :class:`TrainingSize`.
    epochs
        Epochs that were timed.
    seconds
        Of the whole fit.
    seconds_per_epoch
        ``seconds / epochs``, the start included.
    synthetic
        Always true: the logits have the size of the data, not its values.
    """

    dataset: str
    n_samples: int
    n_classes: int
    n_anchors: int
    reported_seconds: float
    epochs: int
    seconds: float
    seconds_per_epoch: float
    synthetic: bool = True


def time_training(size: TrainingSize, *, max_epochs: int | None = None, seed: int = 0) -> TrainingTime:
    """Time one fit of ALSA-G on synthetic logits.

    Parameters
    ----------
    size
        Samples, classes and anchors.
    max_epochs
        Fewer epochs than the default, for sizes that would take hours.
    seed
        Of the logits and the fit.
    """
    logits, labels = synthetic_logits(size.n_samples, size.n_classes, seed)
    estimator = make("alsa-g", n_anchors=size.n_anchors, seed=seed, max_epochs=max_epochs)
    started = perf_counter()
    estimator.fit(logits, labels)
    seconds = perf_counter() - started
    epochs = len(getattr(estimator, "history_", ())) or 1
    return TrainingTime(**asdict(size), epochs=epochs, seconds=seconds, seconds_per_epoch=seconds / epochs)


def synthetic_logits(
    n_samples: int, n_classes: int, seed: int
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return logits of a made-up classifier that is right about four times in five, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_samples)
    logits = rng.normal(size=(n_samples, n_classes)).astype(np.float32)
    logits[np.arange(n_samples), labels] += np.float32(1.3 + np.sqrt(2.0 * np.log(n_classes)))
    return logits, labels
