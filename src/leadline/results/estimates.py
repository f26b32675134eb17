"""Estimates by segment: a table that other tools can take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leadline.results.estimate import Estimate
from leadline.results.frames import Tabular

MISSING = "(missing)"


@dataclass(frozen=True)
class LeftOut:
    """Something bad that was left out: a whole file (``rows`` is None), or rows of it."""

    file: str
    rows: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class Segment:
    """The estimate on one segment.

    Attributes
    ----------
    group
        The value of each column grouped by, None where it is missing; empty for all rows together.
    estimate
        Its estimate.
    truth
        The true accuracy, where all labels are known.
    """

    group: Mapping[str, Any]
    estimate: Estimate
    truth: float | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The value of each column as text."""
        return tuple(MISSING if value is None else str(value) for value in self.group.values())

    @property
    def error(self) -> float | None:
        """The estimated accuracy less the true one, where that is known."""
        return None if self.truth is None else self.estimate.accuracy - self.truth

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: ``group`` is an object, or None for all rows together."""
        return {
            "group": dict(self.group) or None,
            **self.estimate.to_dict(),
            "truth": self.truth,
            "error": self.error,
        }


@dataclass(frozen=True, eq=False)
class Estimates(Tabular):
    """Estimates on a target and on each of its segments.

    Attributes
    ----------
    by
        The columns that the segments were made by.
    overall
        The estimate on all rows.
    rows
        The estimates on the segments, in the order of their values.
    left_out
        What was bad and not taken.
    model_id
        The id of the model (``Estimator.model_id``).
    estimated_at
        When the estimates were made, in UTC.
    """

    by: tuple[str, ...]
    overall: Segment
    rows: tuple[Segment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    model_id: str | None = None
    estimated_at: datetime | None = None

    def __iter__(self) -> Iterator[Segment]:
        """Go through the segments."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "by": list(self.by),
            "overall": self.overall.to_dict(),
            "rows": [row.to_dict() for row in self.rows],
            "left_out": [vars(item) for item in self.left_out],
            **self.origin(),
        }

    def origin(self) -> dict[str, str | None]:
        """Return which model made the estimates, and when, as plain values."""
        return {
            "model_id": self.model_id,
            "estimated_at": None if self.estimated_at is None else self.estimated_at.isoformat(timespec="seconds"),
        }

    def by_pull(self) -> list[tuple[Segment, float]]:
        """Return the segments and how far each pulls the accuracy up or, below 0, down; the farthest down first."""
        whole = self.overall.estimate
        pulls = [(row, whole.pull(row.estimate.accuracy, row.estimate.n_samples)) for row in self.rows]
        return sorted(pulls, key=lambda pair: pair[1])

    def to_arrow(self) -> Any:
        """Return the segments as an Arrow table; without segments, one row for all rows.

        Columns: those of ``by``, ``accuracy``, ``interval_low``, ``interval_high``, ``confidence_level``,
        ``n_samples``, ``method``, ``shift`` (null where it was not judged), ``truth`` (null without labels),
        ``model_id`` and ``estimated_at``.
        """
        import pyarrow as pa

        rows = self.rows if self.by else (self.overall,)
        found = [row.estimate for row in rows]
        columns: dict[str, Any] = {name: pa.array([row.group[name] for row in rows]) for name in self.by}
        columns |= {
            "accuracy": pa.array([one.accuracy for one in found], pa.float64()),
            "interval_low": pa.array([one.interval[0] for one in found], pa.float64()),
            "interval_high": pa.array([one.interval[1] for one in found], pa.float64()),
            "confidence_level": pa.array([one.confidence_level for one in found], pa.float64()),
            "n_samples": pa.array([one.n_samples for one in found], pa.int64()),
            "method": pa.array([one.method for one in found], pa.string()),
            "shift": pa.array([None if one.shift is None else one.shift.kind.value for one in found], pa.string()),
            "truth": pa.array([row.truth for row in rows], pa.float64()),
            "model_id": pa.array([self.model_id] * len(rows), pa.string()),
            "estimated_at": pa.array([self.estimated_at] * len(rows), pa.timestamp("us", "UTC")),
        }
        return pa.table(columns)

    def __str__(self) -> str:
        """Return a line for all rows, and one for each segment."""
        lines = [str(self.overall.estimate)]
        for row in self.rows:
            low, high = row.estimate.interval
            name = ", ".join(f"{key} {value}" for key, value in zip(row.group, row.values, strict=True))
            lines.append(f"  {name}: {row.estimate.accuracy:.1%} ({low:.1%} to {high:.1%}), {row.estimate.n_samples:,}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return a notebook's view."""
        from leadline.results.views import estimates_view

        return estimates_view(self)
