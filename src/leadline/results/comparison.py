"""What a comparison found: every method on every target, and how far off each is where labels are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.errors import InputError
from leadline.results.frames import Tabular

if TYPE_CHECKING:
    from leadline.results.estimate import Estimate


@dataclass(frozen=True)
class ComparisonRow:
    """One method's estimate on one target. Accuracies are fractions.

    Attributes
    ----------
    method, target
        The names of both.
    seed
        The seed the method was fitted with; None for a method without anything random.
    accuracy
        The estimated accuracy.
    truth
        The true accuracy, where the target has labels.
    error
        ``accuracy - truth``, where the target has labels.
    interval
        Lower and upper end of the estimate's interval.
    n_samples
        Rows of the target.
    seconds, fit_seconds
        Time that the estimate took, and the one fit that serves all targets. What serves all methods, learning the
        source's profile and judging the target, is done once and not counted.
    estimate
        The whole estimate, without values per row; None in rows that were read from a file.
    """

    method: str
    target: str
    seed: int | None
    accuracy: float
    truth: float | None
    error: float | None
    interval: tuple[float, float]
    n_samples: int
    seconds: float
    fit_seconds: float
    estimate: Estimate | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; the whole estimate stays out."""
        return {name: value for name, value in vars(self).items() if name != "estimate"} | {
            "interval": list(self.interval)
        }


@dataclass(frozen=True)
class Comparison(Tabular):
    """The rows of :func:`compare`: iterable, with a length, and a table in a terminal or a notebook.

    Attributes
    ----------
    rows
        One row per target, method and seed, in the order given.
    confidence_level
        Nominal coverage of the intervals.
    """

    rows: tuple[ComparisonRow, ...]
    confidence_level: float

    def __iter__(self) -> Iterator[ComparisonRow]:
        """Go through the rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in their order."""
        return tuple(dict.fromkeys(row.method for row in self.rows))

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets, in their order."""
        return tuple(dict.fromkeys(row.target for row in self.rows))

    def accuracy(self, method: str, target: str) -> float:
        """Return a method's estimate on a target, the mean over seeds."""
        found = [row.accuracy for row in self.rows if (row.method, row.target) == (method, target)]
        if not found:
            raise InputError(f"this comparison has no row for method {method!r} and target {target!r}.")
        return sum(found) / len(found)

    def truth(self, target: str) -> float | None:
        """Return the true accuracy on a target, None where it has no labels."""
        return next((row.truth for row in self.rows if row.target == target), None)

    def mean_absolute_errors(self) -> dict[str, float]:
        """Return the mean absolute error of each method over labelled targets and seeds.

        Methods keep their order; the dict is empty where no target has labels.
        """
        errors: dict[str, list[float]] = {}
        for row in self.rows:
            if row.error is not None:
                errors.setdefault(row.method, []).append(abs(row.error))
        return {method: sum(values) / len(values) for method, values in errors.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "confidence_level": self.confidence_level,
            "mean_absolute_errors": self.mean_absolute_errors(),
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table.

        Columns: ``target``, ``method``, ``seed`` (null for a method without anything random), ``accuracy``,
        ``interval_low``, ``interval_high``, ``confidence_level``, ``n_samples``, ``truth`` and ``error`` (null without
        labels), ``seconds`` and ``fit_seconds``.
        """
        import pyarrow as pa

        texts, integers = ("target", "method"), ("seed", "n_samples")
        plain = [
            {"target": row.target, "method": row.method, "seed": row.seed, "accuracy": row.accuracy}
            | {"interval_low": row.interval[0], "interval_high": row.interval[1]}
            | {"confidence_level": self.confidence_level, "n_samples": row.n_samples, "truth": row.truth}
            | {"error": row.error, "seconds": row.seconds, "fit_seconds": row.fit_seconds}
            for row in self.rows
        ]
        kinds = {name: pa.string() if name in texts else pa.float64() for name in plain[0]}
        return pa.Table.from_pylist(plain, pa.schema(kinds | dict.fromkeys(integers, pa.int64())))

    def __str__(self) -> str:
        """Return a table of percentages in aligned columns: targets down, methods across."""
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]

        def line(cells: list[str]) -> str:
            first, *others = zip(cells, widths, strict=True)
            return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])

        return "\n".join(map(line, cells))

    def _repr_html_(self) -> str:
        """Return a notebook's view."""
        from leadline.results.render import Cell, Table, percent
        from leadline.results.views import table_view

        methods, errors = self.methods, self.mean_absolute_errors()
        rows: list[list[Cell | str]] = []
        for target in self.targets:
            truth, found = self.truth(target), [self.accuracy(method, target) for method in methods]
            gaps = [0.0 if truth is None else abs(accuracy - truth) for accuracy in found]
            styles = ["bold" if truth is not None and gap == min(gaps) else "" for gap in gaps]
            cells = [Cell(percent(value), bar=value, style=style) for value, style in zip(found, styles, strict=True)]
            rows.append([target, percent(truth), *cells])
        if errors:
            rows.insert(0, ["mean absolute error", "", *(f"{100 * errors[method]:.1f} points" for method in methods)])
        table = Table(["target", "true", *methods], rows)
        return table_view(table, "lines; to_dict() has all")

    def _cells(self) -> list[list[str]]:
        """Return the table as text: a header, a line per target, and the mean absolute errors."""

        def percent(value: float | None) -> str:
            return "" if value is None else f"{value:.1%}"

        methods, errors = self.methods, self.mean_absolute_errors()
        lines = [["target", "true", *methods]]
        for target in self.targets:
            estimates = [percent(self.accuracy(method, target)) for method in methods]
            lines.append([target, percent(self.truth(target)), *estimates])
        if errors:
            lines.append(["mean absolute error", "", *(percent(errors[method]) for method in methods)])
        return lines
