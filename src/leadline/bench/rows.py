"""Estimators x models x targets x seeds, as tidy rows that are kept as they come."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import leadline
from leadline.bench.datasets.suite import Suite
from leadline.bench.pipeline import SEEDS, Job, require_data
from leadline.comparison import Fitted, Progress, evaluate, fit_planned, plan_fits
from leadline.data.files import read_outputs, write_bytes
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.estimators import METHODS
from leadline.estimators.alsa.model import ALSA
from leadline.estimators.alsa.reach import rectification_threshold
from leadline.version import __version__

#: What the names of variants and experiments with the paper's own choices end with.
PAPER_SUFFIX = "-paper"


@dataclass(frozen=True)
class Row:
    """One estimate. Accuracies are fractions.

    Attributes
    ----------
    suite, model, model_seed, target
        What was estimated; ``model_seed`` is None for models that came trained.
    experiment, variant
        The experiment it belongs to ("main" for the plain comparison) and which variant of it.
    method, seed
        The estimator, and its seed; None where nothing in it is random.
    estimate, truth
        Estimated and true accuracy.
    n_samples
        Rows of the target.
    fit_seconds, seconds
        Time of the fit, which serves all targets of a model, and of this estimate.
    version
        Of Leadline.
    """

    suite: str
    model: str
    model_seed: int | None
    target: str
    experiment: str
    variant: str
    method: str
    seed: int | None
    estimate: float
    truth: float
    n_samples: int
    fit_seconds: float
    seconds: float
    version: str

    @property
    def error(self) -> float:
        """The absolute error."""
        return abs(self.estimate - self.truth)


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


def sources(suite: Suite, data: Path, out: Path) -> list[tuple[str, int | None, Path]]:
    """Return (model, its seed, folder of logits) for everything that was extracted."""
    if suite.kind == "logits":
        require_data(suite, data)
        folders = sorted(path.parent for path in data.glob(suite.needs[0]))
        return [(folder.name, None, folder) for folder in folders]
    found: list[tuple[str, int | None, Path]] = []
    for folder in sorted((out / "logits" / suite.name).glob("*-seed*")):
        model, seed = folder.name.rsplit("-seed", maxsplit=1)
        if (folder / "source.npz").exists():
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
        Some of them; None for all.
    progress
        Called after each variant on each model.

    Returns
    -------
    list of Row
        All rows of this suite and experiment.
    """
    found = [source for source in sources(suite, data, out) if models is None or source[0] in models]
    if not found:
        raise InputError(f"models must be among those of {suite.name}; got {', '.join(models or ())}.")
    found = [source for source in found if source[1] is None or source[1] in seeds]
    if not found:
        raise InputError(f"seeds must be among those {suite.name} was trained with; got {', '.join(map(str, seeds))}.")
    parts = out / "parts" / experiment / suite.name
    fits: dict[str, list[Fitted]] = {}
    rows: list[Row] = []
    done, total = 0, len(found) * len(variants)
    for model, model_seed, folder in found:
        for variant in variants:
            name = f"{model}{'' if model_seed is None else f'-seed{model_seed}'}__{variant.name}.json"
            own_seeds = list(seeds) if model_seed is None else [model_seed]
            key = {
                "version": __version__, "code": code_fingerprint(variant.method), "method": variant.method,
                "options": _plain(variant.options), "source": (folder / "source.npz").stat().st_mtime_ns,
                "seeds": own_seeds, "targets": None if targets is None else list(targets),
            }  # fmt: skip
            same = {"suite": suite.name, "model": model, "model_seed": model_seed, "experiment": experiment}
            rows += _run_part(parts / name, key, variant, folder, same, targets, fits, (suite, data, out))
            done += 1
            if progress is not None:
                progress(done, total, f"{model}: {variant.name}")
    return rows


def _run_part(
    path: Path,
    key: Mapping[str, Any],
    variant: Variant,
    folder: Path,
    same: Mapping[str, Any],
    targets: Sequence[str] | None,
    fits: dict[str, list[Fitted]],
    place: tuple[Suite, Path, Path],
) -> list[Row]:
    """Return the rows of one variant on one model: kept ones if they answer the same question, or new."""
    paths = {file.stem.removeprefix("target_"): file for file in sorted(folder.glob("target_*.npz"))}
    if targets is not None:
        if unknown := [name for name in targets if name not in paths]:
            raise InputError(f"targets must be among {', '.join(paths)}; got {', '.join(unknown)}.")
        paths = {name: paths[name] for name in targets}
    if path.exists() and all(file.stat().st_mtime <= path.stat().st_mtime for file in paths.values()):
        kept = json.loads(path.read_text())
        if kept["key"] == key:
            return [Row(**row) for row in kept["rows"]]
    if variant.method in METHODS:
        fitted = _fit(folder / "source.npz", variant, key["seeds"], fits)
        result = evaluate(fitted, _Targets(paths), progress=lambda _: None)
    else:
        from leadline.bench.graphs.run import compare_on_graphs

        result = compare_on_graphs(Job(*place, same["model"], same["model_seed"]), variant.options, list(paths))
    rows = [
        Row(
            **same,
            target=row.target,
            variant=variant.name,
            method=row.method,
            seed=row.seed,
            estimate=row.accuracy,
            truth=row.truth,
            n_samples=row.n_samples,
            fit_seconds=row.fit_seconds,
            seconds=row.seconds,
            version=__version__,
        )
        for row in result
        if row.truth is not None
    ]
    save_json(path, {"key": dict(key), "rows": [asdict(row) for row in rows]})
    return rows


def _fit(source: Path, variant: Variant, seeds: Sequence[int], fits: dict[str, list[Fitted]]) -> list[Fitted]:
    """Fit a variant, or reuse the last fit where only alpha differs: it matters after training only."""
    training = {name: value for name, value in variant.options.items() if name != "alpha"}
    question = json.dumps([str(source), variant.method, _plain(training), list(seeds)])
    alpha = variant.options.get("alpha")
    if alpha is None or question not in fits:
        fits.clear()
        plan = plan_fits([variant.method], seeds, {variant.method: training})
        fits[question] = fit_planned(read_outputs(source), plan, progress=lambda _: None)
    if alpha is not None:
        for fit in fits[question]:
            if not isinstance(fit.estimator, ALSA):
                raise InputError(f"only ALSA has alpha; got it for {variant.method}.")
            fit.estimator.set_params(alpha=alpha)
            fit.estimator.alpha_ = alpha
            fit.estimator.threshold_ = rectification_threshold(alpha, fit.estimator.get_params()["influence"])
    return fits[question]


@lru_cache
def code_fingerprint(method: str) -> str:
    """Return a checksum of the code behind a method, so that rows of other code are computed again."""
    package = Path(leadline.__file__).parent
    patterns = ("numeric.py", "shift/*.py", "estimators/**/*.py") if method in METHODS else ("bench/graphs/*.py",)
    files = [file for pattern in patterns for file in sorted(package.glob(pattern))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def save_rows(rows: Sequence[Row], stem: Path) -> tuple[Path, Path]:
    """Write rows as ``stem.parquet`` and ``stem.json``, and return both paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    records = [asdict(row) for row in rows]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records), sink, compression="zstd")
    parquet = stem.with_name(stem.name + ".parquet")
    parquet.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(parquet, sink.getvalue().to_pybytes(), force=True)
    return parquet, save_json(stem.with_name(stem.name + ".json"), records)


def load_rows(out: Path, experiment: str = "main", suite: str = "*") -> list[Row]:
    """Read the rows of one suite, or of every suite that an experiment was run on."""
    import pyarrow.parquet as pq

    rows = []
    for path in sorted((out / "rows" / experiment).glob(f"{suite}.parquet")):
        rows += [Row(**record) for record in pq.read_table(path).to_pylist()]
    return rows


def rows_stem(out: Path, experiment: str, suite: str) -> Path:
    """Return where the rows of a suite go, without the ending."""
    return out / "rows" / experiment / suite


def save_json(path: Path, value: Any) -> Path:
    """Write a value as JSON, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, (json.dumps(value, indent=1) + "\n").encode(), force=True)
    return path


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON gives them back."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(options)))
    return plain
