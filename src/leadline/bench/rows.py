"""One estimate as a tidy row, and files of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadline.data.files import write_bytes

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
    origin
        Checksum of what made it, :func:`leadline.bench.runs.origin_of`; empty in rows stored before they had one.
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
    origin: str = ""

    @property
    def error(self) -> float:
        """The absolute error."""
        return abs(self.estimate - self.truth)


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
