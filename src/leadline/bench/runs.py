"""Estimators x models x targets x seeds, kept as they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import leadline
from leadline.bench.datasets.suite import Suite
from leadline.bench.pipeline import SEEDS, Job, require_data
from leadline.bench.rows import Row, save_json
from leadline.comparison import Fitted, Progress, evaluate, fit_planned, plan_fits
from leadline.data.files import read_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.estimators import METHODS
from leadline.estimators.alsa.model import ALSA
from leadline.estimators.alsa.reach import rectification_threshold
from leadline.estimators.sources import learn_profile
from leadline.results.comparison import Comparison
from leadline.shift.judgement import Judgement
from leadline.shift.source import SourceProfile
from leadline.version import __version__

_SOURCE = "source.npz"


@dataclass(frozen=True)
class Variant:
    """A method with options, under a name of its own."""

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Targets(Mapping[str, Outputs]):
    """The targets of a model, read one at a time."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> Outputs:
        return read_outputs(self.paths[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, eq=False)
class _Model:
    """The logits of one model, and what the variants that are run on it share.

    Attributes
    ----------
    job
        The model, its seed and its suite; the seed is 0 for models that came trained.
    folder
        Its logits.
    paths
        The files of the targets that are asked for, by name.
    seeds
        Of the estimators.
    judgements
        What was found about each target so far; it is the same for every method.
    fits
        The last fit, by what it depends on.
    """

    job: Job
    folder: Path
    paths: Mapping[str, Path]
    seeds: Sequence[int]
    judgements: dict[str, Judgement] = field(default_factory=dict)
    fits: dict[str, list[Fitted]] = field(default_factory=dict)

    @cached_property
    def source(self) -> Outputs:
        """The labelled logits."""
        return read_outputs(self.folder / _SOURCE)

    @cached_property
    def profile(self) -> SourceProfile:
        """What judging targets needs of the source."""
        return learn_profile(self.source)

    def compare(self, variant: Variant) -> Comparison:
        """Estimate by a variant on all targets."""
        if variant.method in METHODS:
            return evaluate(
                self._fit(variant), _Targets(self.paths), judgements=self.judgements, progress=lambda _: None
            )
        from leadline.bench.graphs.run import compare_on_graphs

        return compare_on_graphs(self.job, variant.options, list(self.paths))

    def _fit(self, variant: Variant) -> list[Fitted]:
        """Fit a variant, or reuse the last fit where only alpha differs: it matters after training only."""
        training = {name: value for name, value in variant.options.items() if name != "alpha"}
        question = json.dumps([variant.method, training])
        alpha = variant.options.get("alpha")
        if alpha is None or question not in self.fits:
            self.fits.clear()
            plan = plan_fits([variant.method], self.seeds, {variant.method: training})
            self.fits[question] = fit_planned(self.source, plan, profile=self.profile, progress=lambda _: None)
        if alpha is not None:
            for fit in self.fits[question]:
                if not isinstance(fit.estimator, ALSA):
                    raise InputError(f"only ALSA has alpha; got it for {variant.method}.")
                fit.estimator.set_params(alpha=alpha)
                fit.estimator.alpha_ = alpha
                fit.estimator.threshold_ = rectification_threshold(alpha, fit.estimator.get_params()["influence"])
        return self.fits[question]


def sources(suite: Suite, data: Path, out: Path) -> list[tuple[str, int | None, Path]]:
    """Return (model, its seed, folder of logits) for everything that was extracted."""
    if suite.kind == "logits":
        require_data(suite, data)
        folders = sorted(path.parent for path in data.glob(suite.needs[0]))
        return [(folder.name, None, folder) for folder in folders]
    found: list[tuple[str, int | None, Path]] = []
    for folder in sorted((out / "logits" / suite.name).glob("*-seed*")):
        model, seed = folder.name.rsplit("-seed", maxsplit=1)
        if (folder / _SOURCE).exists():
            found.append((model, int(seed) if suite.kind != "pretrained" else None, folder))
    if not found:
        raise InputError(f"suite {suite.name} has no logits in {out}; run `leadline bench logits {suite.name}` first.")
    return found


def run_variants(
    suite: Suite,
    variants: Sequence[Variant],
    data: Path,
    out: Path,
    *,
    experiment: str = "main",
    seeds: Sequence[int] = SEEDS,
    models: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Estimate by every variant on every target of every model, keeping what an earlier run did.

    Parameters
    ----------
    suite, variants
        What to estimate, and how.
    data, out
        The data folder, and the folder that receives rows.
    experiment
        Name under which the rows are kept.
    seeds
        Of estimators with something random. Where the models themselves were trained with seeds, those of
        these seeds are used, each with an estimator of its own seed: a seed is one run of everything, as in
        the paper.
    models, targets
        Some of them; None for all. Models without any of the targets are left out.
    progress
        Called after each variant on each model.

    Returns
    -------
    list of Row
        The rows of these variants, models and targets.
    """
    chosen = _chosen(suite, data, out, seeds, models, targets)
    parts = out / "parts" / experiment / suite.name
    rows: list[Row] = []
    done, total = 0, len(chosen) * len(variants)
    for model_seed, model in chosen:
        for variant in variants:
            name = f"{model.job.model}{'' if model_seed is None else f'-seed{model_seed}'}__{variant.name}.json"
            same = {
                "suite": suite.name, "model": model.job.model, "model_seed": model_seed, "experiment": experiment,
                "variant": variant.name, "version": __version__, "origin": origin_of(variant, model.folder),
            }  # fmt: skip
            rows += _run_part(parts / name, model, variant, same)
            done += 1
            if progress is not None:
                progress(done, total, f"{model.job.model}: {variant.name}")
    return rows


def require_known(argument: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that do not exist, and say which do."""
    known = list(dict.fromkeys(known))
    if unknown := [name for name in given if name not in known]:
        raise InputError(f"{argument} must be among {', '.join(known)}; got {', '.join(unknown)}.")


def origin_of(variant: Variant, folder: Path) -> str:
    """Return a checksum of what decides the rows of a variant on a model.

    It is one of Leadline's version, the code behind the method, the options and the source's logits. Rows with another
    one no longer say what the present code does.

    Parameters
    ----------
    variant
        The method and its options.
    folder
        The logits of the model.
    """
    decisive = [
        __version__, code_fingerprint(variant.method), variant.method, dict(variant.options),
        hashlib.sha256((folder / _SOURCE).read_bytes()).hexdigest(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


@lru_cache
def code_fingerprint(method: str) -> str:
    """Return a checksum of the code behind a method, so that rows of other code are computed again."""
    package = Path(leadline.__file__).parent
    on_logits = ("numeric.py", "rowwise/*.py", "shift/*.py", "estimators/**/*.py")
    patterns = on_logits if method in METHODS else ("bench/graphs/*.py",)
    files = [file for pattern in patterns for file in sorted(package.glob(pattern))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _chosen(
    suite: Suite,
    data: Path,
    out: Path,
    seeds: Sequence[int],
    models: Sequence[str] | None,
    targets: Sequence[str] | None,
) -> list[tuple[int | None, _Model]]:
    """Return the seed of each model to run on and the model, after checking that all names exist."""
    found = sources(suite, data, out)
    if models is not None:
        require_known("models", models, (model for model, _, _ in found))
        found = [source for source in found if source[0] in models]
    found = [source for source in found if source[1] is None or source[1] in seeds]
    if not found:
        raise InputError(f"seeds must be among those {suite.name} was trained with; got {', '.join(map(str, seeds))}.")
    paths = [
        {file.stem.removeprefix("target_"): file for file in sorted(folder.glob("target_*.npz"))}
        for _, _, folder in found
    ]
    if targets is not None:
        require_known("targets", targets, (name for own in paths for name in own))
        paths = [{name: own[name] for name in targets if name in own} for own in paths]
    return [
        (seed, _Model(Job(suite, data, out, model, seed or 0), folder, own, seeds if seed is None else [seed]))
        for (model, seed, folder), own in zip(found, paths, strict=True)
        if own
    ]


def _run_part(path: Path, model: _Model, variant: Variant, same: Mapping[str, Any]) -> list[Row]:
    """Return the rows of one variant on one model: kept ones if they answer the same question, or new."""
    key = {"origin": same["origin"], "seeds": list(model.seeds), "targets": list(model.paths)}
    if path.exists() and all(file.stat().st_mtime <= path.stat().st_mtime for file in model.paths.values()):
        kept = json.loads(path.read_text())
        if kept["key"] == key:
            return [Row(**row) for row in kept["rows"]]
    rows = [
        Row(
            **same,
            target=row.target,
            method=row.method,
            seed=row.seed,
            estimate=row.accuracy,
            truth=row.truth,
            n_samples=row.n_samples,
            fit_seconds=row.fit_seconds,
            seconds=row.seconds,
        )
        for row in model.compare(variant)
        if row.truth is not None
    ]
    save_json(path, {"key": key, "rows": [asdict(row) for row in rows]})
    return rows
