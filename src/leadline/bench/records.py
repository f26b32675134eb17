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

from leadline.bench.datasets import SUITES
from leadline.bench.experiments import TrainingTime
from leadline.bench.metrics import Score, scores_by
from leadline.bench.rows import Row, save_json
from leadline.errors import InputError
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
}
_MEASURED = "measured.json"


def load_reported(folder: Path | None = None) -> dict[str, Any]:
    """Read the numbers of the paper: those that come with Leadline, or ``reported.json`` of a folder."""
    place = (files("leadline.bench") if folder is None else folder).joinpath("reported.json")
    if not place.is_file():
        raise InputError(f"folder must hold reported.json; {folder} does not. Leave it out for the paper's numbers.")
    reported: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return reported


def reported_mae(reported: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the paper's mean absolute errors as fractions: row -> our method -> error."""
    ours = {theirs: name for name, theirs in PAPER_METHODS.items()}
    rows = reported["tables"]["tab:vision_language_mae_std"]["rows"]
    return {
        row: {ours[method]: cell["mae"] / 100.0 for method, cell in cells.items() if method in ours}
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
    """Return scores per suite and variant: for all targets, each model and each row of the paper."""
    summary: dict[str, Any] = {}
    by_suite: dict[str, list[Row]] = {}
    for row in rows:
        by_suite.setdefault(row.suite, []).append(row)
    for name, group in by_suite.items():
        suite = SUITES[name]
        seeds = sorted({row.seed for row in group if row.seed is not None})
        entry: dict[str, Any] = {
            "shift": suite.shift,
            "same_setting": suite.same_setting,
            "models": sorted({row.model for row in group}),
            "targets": len({row.target for row in group}),
            "seeds": seeds,
            "all": _scores(group),
            "by_model": {
                model: _scores([row for row in group if row.model == model])
                for model in sorted({row.model for row in group})
            },
            "paper_rows": {},
        }
        if suite.graphs:
            entry["by_kind"] = {
                kind: _scores([row for row in group if row.model.endswith(kind)])
                for kind in sorted({row.model.rsplit("-", maxsplit=1)[-1] for row in group})
            }
        for paper_row, pattern in suite.paper.items():
            matching = [row for row in group if re.match(pattern, row.target)]
            if matching:
                entry["paper_rows"][paper_row] = _scores(matching)
        summary[name] = entry
    return summary


def _scores(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the score of each variant as plain values."""
    found: dict[str, Score] = scores_by(rows, lambda row: row.variant)
    return {variant: score.to_dict() for variant, score in found.items()}


def load_measured(out: Path) -> dict[str, Any]:
    """Read what was measured so far."""
    path = out / _MEASURED
    if not path.exists():
        return {"experiments": {}, "training_time": []}
    measured: dict[str, Any] = json.loads(path.read_text())
    return measured


def record(
    out: Path, experiment: str | None = None, rows: Iterable[Row] = (), times: Sequence[TrainingTime] = ()
) -> Path:
    """Put the scores of an experiment, or training times, into ``measured.json`` with version and machine.

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
    return save_json(out / _MEASURED, measured)
