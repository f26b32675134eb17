"""Estimates in MLflow: as metrics and artefacts of a run."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path

from leadline.errors import InputError
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
    >>> import mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     log_estimate(estimate, report="report.html")
    """
    try:
        import mlflow
    except ModuleNotFoundError as error:
        raise InputError("log_estimate needs MLflow, which is not installed; run pip install mlflow.") from error
    if not isinstance(estimate, Estimate):
        raise InputError(f"estimate must be an Estimate; got {type(estimate).__name__}. Log several one by one.")
    if report is not None and not Path(report).is_file():
        raise InputError(f"report must be a file; {fspath(report)} is none. Write it with leadline report.")
    low, high = estimate.interval
    metrics = {
        f"{prefix}/accuracy": estimate.accuracy,
        f"{prefix}/interval_low": low,
        f"{prefix}/interval_high": high,
        f"{prefix}/n_samples": float(estimate.n_samples),
    }
    mlflow.log_metrics(metrics)
    mlflow.log_text(json.dumps(estimate.to_dict(), indent=2, allow_nan=False), f"{prefix}/estimate.json")
    if report is not None:
        mlflow.log_artifact(fspath(report), prefix)
    return metrics
