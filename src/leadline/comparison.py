"""Estimators side by side: every method fitted on one source, and its estimate of every target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.results.comparison import Comparison, ComparisonRow

if TYPE_CHECKING:
    from leadline.estimators import Estimator
    from leadline.shift.judgement import Judgement
    from leadline.shift.source import SourceProfile

#: Called after each step with the number of steps done, the number in all, and what was done.
Progress = Callable[[int, int, str], None]


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
