"""Estimators side by side: every method on every target, and how far off each is where labels are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.results.frames import Tabular

if TYPE_CHECKING:
    from leadline.estimators import Estimator
    from leadline.results.estimate import Estimate
    from leadline.shift.judgement import Judgement
    from leadline.shift.source import SourceProfile

#: Called after each step with the number of steps done, the number in all, and what was done.
Progress = Callable[[int, int, str], None]


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


@dataclass(frozen=True)
class Fitted:
    """A method fitted on the source, with the seed it had and the time it took."""

    method: str
    seed: int | None
    estimator: Estimator
    seconds: float


def compare(
    source: Any,
    targets: Mapping[str, Any],
    *,
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] = (0,),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    confidence_level: float = 0.9,
    progress: Progress | None = None,
) -> Comparison:
    """Estimate the accuracy on every target by every method.

    Each method is fitted once per seed. The labels of targets are used for nothing but the errors.

    Parameters
    ----------
    source
        Labelled outputs of the classifier: ``(logits, labels)`` of shapes (n, c) and (n,), or ``Outputs``.
    targets
        By name: logits of shape (m, c), ``(logits, labels)``, or ``Outputs``. Each is looked up once, so that
        a mapping that reads files keeps one of them in memory at a time.
    methods
        Names in ``leadline.METHODS``; None for all of them.
    seeds
        Seeds to fit with; a method without a ``seed`` option is fitted once and its rows have seed None.
    options
        Options of methods, by the name of the method.
    confidence_level
        Nominal coverage of the intervals.
    progress
        Called after each step with steps done, steps in all, and what was done.

    Returns
    -------
    Comparison
        One row per target, method and seed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 500)
    >>> logits = rng.normal(size=(500, 3)) + 2 * np.eye(3)[labels]
    >>> result = compare((logits, labels), {"half": (logits / 2, labels)}, methods=["ac", "doc"])
    >>> [(row.method, row.target, row.seed) for row in result]
    [('ac', 'half', None), ('doc', 'half', None)]
    """
    plan = plan_fits(methods, seeds, options)
    if not targets:
        raise InputError("targets must have at least one entry; got none.")
    report = counting(progress, len(plan) * (1 + len(targets)))
    fitted = fit_planned(source, plan, progress=report)
    return evaluate(fitted, targets, confidence_level=confidence_level, progress=report)


def plan_fits(
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] = (0,),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[tuple[str, int | None, Estimator]]:
    """Return what is to be fitted, as (method, seed, estimator), after checking every name and option.

    The parameters are those of :func:`compare`.
    """
    from leadline.estimators import METHODS, make

    names, seeds, options = list(METHODS if methods is None else methods), list(seeds), options or {}
    for what, given in (("methods", names), ("seeds", seeds)):
        if not given:
            raise InputError(f"{what} must have at least one entry; got none.")
        if len(set(given)) != len(given):
            raise InputError(f"{what} must be distinct; got {', '.join(map(str, given))}.")
    wrong = next((seed for seed in seeds if not isinstance(seed, int | np.integer) or seed < 0), None)
    if wrong is not None:
        raise InputError(f"seeds must be integers from 0; got {wrong!r}.")
    unused = next((name for name in options if name not in names), None)
    if unused is not None:
        raise InputError(f"options must be for the methods compared, {', '.join(names)}; got {unused!r}.")
    plan: list[tuple[str, int | None, Estimator]] = []
    for name in names:
        chosen = dict(options.get(name, {}))
        estimator = make(name, **chosen)
        if "seed" in chosen or "seed" not in estimator.get_params():
            plan.append((name, chosen.get("seed"), estimator))
        else:
            plan.extend((name, seed, make(name, **chosen, seed=seed)) for seed in seeds)
    return plan


def fit_planned(
    source: Any,
    plan: Sequence[tuple[str, int | None, Estimator]],
    *,
    profile: SourceProfile | None = None,
    progress: Callable[[str], None],
) -> list[Fitted]:
    """Fit what :func:`plan_fits` returned on the labelled source; report each fit.

    The source's profile is learned once, unless it is given.
    """
    from leadline.estimators.sources import learn_profile

    source = _as_outputs(source, "source")
    if source.labels is None:
        raise InputError("source must have labels; got logits only.")
    fitted, profile = [], learn_profile(source) if profile is None else profile
    for method, seed, estimator in plan:
        started = perf_counter()
        estimator._fit_outputs(source, profile)
        fitted.append(Fitted(method, seed, estimator, perf_counter() - started))
        progress(f"fit {method}")
    return fitted


def evaluate(
    fitted: Sequence[Fitted],
    targets: Mapping[str, Any],
    *,
    confidence_level: float = 0.9,
    judgements: dict[str, Judgement] | None = None,
    progress: Callable[[str], None],
) -> Comparison:
    """Estimate by every method fitted on one source on every target; report each estimate.

    A target is judged once, and not at all where ``judgements`` has it by name; they receive the others, for a later
    call with methods fitted on the same source.
    """
    from leadline.estimators.passes import judge_rows

    rows = []
    judgements = {} if judgements is None else judgements
    for name in targets:
        target = _as_outputs(targets[name], f"target {name!r}")
        with _naming(f"target {name!r}"):
            logits = fitted[0].estimator._target(target)
        if name not in judgements:
            judgements[name] = judge_rows(fitted[0].estimator.source_, logits)
        truth = None if target.labels is None else float(np.mean(logits.argmax(axis=1) == target.labels))
        for fit in fitted:
            started = perf_counter()
            estimate = fit.estimator._estimate(logits, confidence_level=confidence_level, judgement=judgements[name])
            rows.append(
                ComparisonRow(
                    method=fit.method,
                    target=name,
                    seed=fit.seed,
                    accuracy=estimate.accuracy,
                    truth=truth,
                    error=None if truth is None else estimate.accuracy - truth,
                    interval=estimate.interval,
                    n_samples=estimate.n_samples,
                    seconds=perf_counter() - started,
                    fit_seconds=fit.seconds,
                    estimate=replace(estimate, correctness=None),
                )
            )
            progress(f"estimate {fit.method} on {name}")
    return Comparison(tuple(rows), confidence_level)


def _as_outputs(value: Any, name: str) -> Outputs:
    """Return logits, or logits and labels, as validated outputs."""
    if isinstance(value, Outputs):
        return value
    with _naming(name):
        return Outputs(*value) if isinstance(value, tuple) and len(value) == 2 else Outputs(value)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Say in an error which of the many inputs it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def counting(progress: Progress | None, total: int) -> Callable[[str], None]:
    """Return a function that counts its calls and passes the count on."""
    done = 0

    def report(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total, what)

    return report
