"""Two records that never mix: what the paper reports, and what was measured here."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from leadline.bench.claims import CORRUPTION, LARGE_DROP, errors_of
from leadline.bench.datasets import SUITES
from leadline.bench.datasets.suite import Suite
from leadline.bench.experiments import TrainingTime
from leadline.bench.graphs.paper_tables import NETWORKS
from leadline.bench.metrics import Score, scores_by
from leadline.bench.rows import Row, save_json
from leadline.bench.runs import sources
from leadline.data.files import read_outputs
from leadline.errors import InputError
from leadline.estimators.alsa.band import band_width
from leadline.version import __version__

#: The paper's names of methods, by ours. Its ATC uses the negative entropy.
PAPER_METHODS = {
    "ac": "AC",
    "doc": "DoC",
    "im": "IM",
    "atc-ne": "ATC",
    "cot": "COT",
    "alsa-e": "ALSA-E",
    "alsa-g": "ALSA-G",
    "alsa-e-paper": "ALSA-E",
    "alsa-g-paper": "ALSA-G",
}
_MEASURED = "measured.json"
_CONFIDENCE = 0.999  # of the bands, as in the paper's example


def load_reported(folder: Path | None = None) -> dict[str, Any]:
    """Read the numbers of the paper: those that come with Leadline, or ``reported.json`` of a folder."""
    place = (files("leadline.bench") if folder is None else folder).joinpath("reported.json")
    if not place.is_file():
        raise InputError(f"folder must hold reported.json; {folder} does not. Leave it out for the paper's numbers.")
    reported: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return reported


def reported_scores(reported: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the paper's errors and deviations as fractions: row -> our method -> "mae" and "std"."""
    rows = reported["tables"]["tab:vision_language_mae_std"]["rows"]
    return {
        row: {
            ours: {name: value / 100.0 for name, value in cells[theirs].items()}
            for ours, theirs in PAPER_METHODS.items()
            if theirs in cells
        }
        for row, cells in rows.items()
    }


@dataclass(frozen=True)
class Machine:
    """Where something was measured."""

    system: str
    processor: str
    cores: int
    python: str

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine."""
        name = platform.processor() or platform.machine()
        info = Path("/proc/cpuinfo")
        if info.exists() and (found := re.search(r"model name\s*:\s*(.+)", info.read_text())):
            name = found.group(1)
        return cls(f"{platform.system()} {platform.machine()}", name, os.cpu_count() or 1, platform.python_version())


def summarise(rows: Iterable[Row]) -> dict[str, Any]:
    """Return scores per suite and variant: for all targets, each model and each row of the paper; errors per target.

    Where models are networks on graphs, "all" and the paper's rows hold those of the paper: a network that does not
    see the edges is scored beside them, not with them.
    """
    summary: dict[str, Any] = {}
    by_suite: dict[str, list[Row]] = {}
    for row in rows:
        by_suite.setdefault(row.suite, []).append(row)
    for name, group in by_suite.items():
        suite = SUITES[name]
        kinds = {row.model: network_of(row.model) for row in group}
        counted = counted_rows(group)
        entry: dict[str, Any] = {
            "shift": suite.shift,
            "same_setting": suite.same_setting,
            "models": sorted(kinds),
            "targets": len({row.target for row in group}),
            "seeds": sorted({row.seed for row in group if row.seed is not None}),
            "all": _scores(counted),
            "by_model": {model: _scores([row for row in group if row.model == model]) for model in sorted(kinds)},
            "by_target": {
                target: errors_of(_scores([row for row in counted if row.target == target]))
                for target in sorted({row.target for row in counted})
            },
            "paper_rows": {},
        }
        if any(kind in NETWORKS for kind in kinds.values()):
            entry["by_kind"] = {
                kind: _scores([row for row in group if kinds[row.model] == kind]) for kind in sorted({*kinds.values()})
            }
        for paper_row in suite.paper:
            meant = {*suite.targets_of(paper_row, entry["by_target"])}
            matching = [row for row in counted if row.target in meant]
            if matching:
                entry["paper_rows"][paper_row] = _scores(matching)
            if re.search(CORRUPTION, paper_row) and (fallen := _fallen(group, matching)):
                entry["large_drops"] = _scores(fallen)
        summary[name] = entry
    return summary


def counted_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a suite that count together: where models are networks on graphs, those of the paper."""
    on_graphs = [row for row in rows if network_of(row.model) in NETWORKS]
    return on_graphs or list(rows)


def network_of(model: str) -> str:
    """Return the kind of a network on graphs, which the name of a model ends with.

    Examples
    --------
    >>> network_of("acmv9-gcn"), network_of("acmv9_gcn"), network_of("gcn")
    ('gcn', 'gcn', 'gcn')
    """
    return re.split("[-_]", model)[-1]


def _fallen(group: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the rows whose accuracy is far below that on the best target of the same model.

    The accuracy on the source is not in the rows; the best target is unshifted or nearly so, and no better.
    """
    best: dict[tuple[str, int | None], float] = {}
    for row in group:
        model = (row.model, row.model_seed)
        best[model] = max(best.get(model, 0.0), row.truth)
    return [row for row in rows if best[row.model, row.model_seed] - row.truth > LARGE_DROP]


def _scores(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the score of each variant as plain values."""
    found: dict[str, Score] = scores_by(rows, lambda row: row.variant)
    return {variant: score.to_dict() for variant, score in found.items()}


def band_widths(suite: Suite, data: Path, out: Path) -> dict[str, Any]:
    """Measure the band of the source logits of each model of a suite, the mean over its seeds.

    Parameters
    ----------
    suite
        Its logits must have been extracted, or come with the data.
    data, out
        The folders of data and of results.
    """
    widths: dict[tuple[str, int], list[float]] = {}
    for model, _, folder in sources(suite, data, out):
        logits = read_outputs(folder / "source.npz").logits
        widths.setdefault((model, logits.shape[1]), []).append(band_width(logits, _CONFIDENCE))
    models = {
        model: {"n_classes": n_classes, "width": sum(found) / len(found)}
        for (model, n_classes), found in widths.items()
    }
    return {suite.name: {"same_setting": suite.same_setting, "confidence": _CONFIDENCE, "models": models}}


def load_measured(out: Path) -> dict[str, Any]:
    """Read what was measured so far."""
    path = out / _MEASURED
    empty: dict[str, Any] = {"experiments": {}, "training_time": [], "bands": {}}
    return empty | json.loads(path.read_text()) if path.exists() else empty


def record(
    out: Path,
    experiment: str | None = None,
    rows: Iterable[Row] = (),
    times: Sequence[TrainingTime] = (),
    bands: Mapping[str, Any] | None = None,
) -> Path:
    """Put the scores of an experiment, training times, or bands into ``measured.json`` with version and machine.

    Suites and datasets measured earlier stay; the same ones are replaced.
    """
    measured = load_measured(out)
    stamp = {"version": __version__, "machine": asdict(Machine.here())}
    if experiment is not None:
        suites = measured["experiments"].setdefault(experiment, {})
        suites |= {name: stamp | entry for name, entry in summarise(rows).items()}
    if times:
        kept = {entry["dataset"]: entry for entry in measured["training_time"]}
        kept |= {time.dataset: stamp | asdict(time) for time in times}
        measured["training_time"] = list(kept.values())
    measured["bands"] |= {name: stamp | entry for name, entry in (bands or {}).items()}
    return save_json(out / _MEASURED, rounded(measured))


def rounded(value: Any) -> Any:
    """Return a value with its numbers to six digits: what is beyond them differs from machine to machine.

    Examples
    --------
    >>> rounded({"mae": 0.044665229587903726, "rows": 96, "targets": [0.1]})
    {'mae': 0.0446652, 'rows': 96, 'targets': [0.1]}
    """
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value
