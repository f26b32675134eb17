"""Estimates in a real store of MLflow, in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest

import leadline as ll
from leadline.integrations.mlflow import log_estimate, make_metric


@pytest.fixture
def estimate(make_outputs: Callable[..., ll.Outputs]) -> ll.Estimate:
    return ll.make("ac").fit(make_outputs()).estimate(make_outputs(seed=1).logits)


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the databases need packages that mlflow-skinny lacks
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())


def test_metrics_estimate_and_report_are_logged(estimate: ll.Estimate, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("<p>all is well</p>")
    with mlflow.start_run() as run:
        log_estimate(estimate, prefix="monday", report=report)
    found = mlflow.get_run(run.info.run_id)
    assert found.data.metrics == {
        "monday/accuracy": estimate.accuracy,
        "monday/interval_low": estimate.interval[0],
        "monday/interval_high": estimate.interval[1],
        "monday/n_samples": 300,
    }
    stored = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, dst_path=str(tmp_path / "copy")))
    assert json.loads((stored / "monday" / "estimate.json").read_text()) == json.loads(json.dumps(estimate.to_dict()))
    assert (stored / "monday" / "report.html").read_text() == "<p>all is well</p>"


def test_wrong_input_logs_nothing(estimate: ll.Estimate, tmp_path: Path) -> None:
    with mlflow.start_run() as run:
        with pytest.raises(ll.InputError, match=r"report must be a file; .*nowhere.html is none"):
            log_estimate(estimate, report=tmp_path / "nowhere.html")
        with pytest.raises(ll.InputError, match="estimate must be an Estimate; got float"):
            log_estimate(0.5)  # type: ignore[arg-type]
    assert mlflow.get_run(run.info.run_id).data.metrics == {}


@pytest.mark.filterwarnings("ignore")  # MLflow uses what pandas will drop, and warns about types in its own classes
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_metric_of_an_evaluation(kind: Any, make_outputs: Callable[..., ll.Outputs]) -> None:
    model, target = ll.make("ac").fit(make_outputs()), make_outputs(seed=1).logits.astype(float)
    given = target if kind == "logits" else np.exp(target) / np.exp(target).sum(axis=1, keepdims=True)
    frame = pd.DataFrame({"age": np.linspace(20.0, 60.0, len(given)), "outputs": given.tolist()})
    evaluate: Any = mlflow.models.evaluate  # it has no types
    with mlflow.start_run() as run:
        result = evaluate(data=frame, predictions="outputs", extra_metrics=[make_metric(model, kind=kind)])
    assert result.metrics["leadline/accuracy"] == pytest.approx(model.estimate(target).accuracy, abs=1e-6)
    assert result.metrics["leadline/n_samples"] == 300
    assert mlflow.get_run(run.info.run_id).data.metrics == result.metrics


def test_metric_of_an_unknown_kind(make_outputs: Callable[..., ll.Outputs]) -> None:
    with pytest.raises(ll.InputError, match="kind must be one of"):
        make_metric(ll.make("ac").fit(make_outputs()), kind="odds")  # type: ignore[arg-type]


def test_without_mlflow(estimate: ll.Estimate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(
        ll.InputError, match="log_estimate needs MLflow, which is not installed; run pip install mlflow"
    ):
        log_estimate(estimate)
