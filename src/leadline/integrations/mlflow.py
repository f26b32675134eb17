"""Estimates in MLflow: as metrics and artefacts of a run, and as a metric of its evaluation."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.integrations.kinds import Kind, check_kind, outputs_of_kind
from leadline.results.estimate import Estimate


def log_estimate(
    estimate: Estimate, *, prefix: str = "leadline", report: str | PathLike[str] | None = None
) -> dict[str, float]:
    """Log an estimate to MLflow's active run; MLflow starts one where there is none.

    Parameters
    ----------
    estimate
        What ``estimate`` of any method gave.
    prefix
        Metrics are ``{prefix}/accuracy``, ``{prefix}/interval_low``, ``{prefix}/interval_high`` and
        ``{prefix}/n_samples``; the whole estimate is the artefact ``{prefix}/estimate.json``.
    report
        The page that ``leadline report`` wrote, to be kept as an artefact beside the estimate.

    Returns
    -------
    dict
        The metrics that were logged.

    Examples
    --------
    Not run, as it writes to a tracking store; docs/your-model.md is run with one.

    >>> import mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     log_estimate(estimate, report="report.html")
    """
    mlflow = _mlflow("log_estimate")
    if not isinstance(estimate, Estimate):
        raise InputError(f"estimate must be an Estimate; got {type(estimate).__name__}. Log several one by one.")
    if report is not None and not Path(report).is_file():
        raise InputError(f"report must be a file; {fspath(report)} is none. Write it with leadline report.")
    metrics = {f"{prefix}/{name}": value for name, value in _metrics(estimate).items()}
    mlflow.log_metrics(metrics)
    mlflow.log_text(json.dumps(estimate.to_dict(), indent=2, allow_nan=False), f"{prefix}/estimate.json")
    if report is not None:
        mlflow.log_artifact(fspath(report), prefix)
    return metrics


def make_metric(model: Estimator, *, kind: Kind = "logits", name: str = "leadline") -> Any:
    """Return the estimated accuracy as a metric for ``mlflow.models.evaluate``; it needs no targets.

    Parameters
    ----------
    model
        A fitted estimator.
    kind
        What the evaluated predictions are, each a list: ``"logits"`` or ``"probabilities"``; or ``"scores"``, numbers.
    name
        Metrics are ``{name}/accuracy``, ``{name}/interval_low``, ``{name}/interval_high`` and ``{name}/n_samples``.

    Returns
    -------
    mlflow.models.EvaluationMetric
        To be given as one of ``extra_metrics``.

    Examples
    --------
    Not run, as it writes to a tracking store; the tests evaluate with one.

    >>> metric = make_metric(model, kind="probabilities")  # doctest: +SKIP
    >>> mlflow.models.evaluate(data=frame, predictions="proba", extra_metrics=[metric])  # doctest: +SKIP
    """
    mlflow = _mlflow("make_metric")
    check_kind(kind)
    from mlflow.metrics import MetricValue

    def estimated_accuracy(predictions: Any) -> Any:
        estimate = model.estimate(outputs_of_kind(kind, predictions))
        return MetricValue(aggregate_results=_metrics(estimate))

    return mlflow.models.make_metric(eval_fn=estimated_accuracy, greater_is_better=True, name=name)


def _metrics(estimate: Estimate) -> dict[str, float]:
    """Return the numbers of an estimate that are worth a curve over time."""
    low, high = estimate.interval
    return {
        "accuracy": estimate.accuracy,
        "interval_low": low,
        "interval_high": high,
        "n_samples": float(estimate.n_samples),
    }


def _mlflow(function: str) -> Any:
    """Return the package, or say what to install."""
    try:
        import mlflow
    except ModuleNotFoundError as error:
        raise InputError(f"{function} needs MLflow, which is not installed; run pip install mlflow.") from error
    return mlflow
