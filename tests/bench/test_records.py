"""Scores, records, claims, and the paper's numbers beside ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Run
from leadline.bench.claims import check_claims
from leadline.bench.datasets import SUITES
from leadline.bench.experiments import TRAINING_SIZES, TrainingSize, time_training
from leadline.bench.graphs.paper_tables import graph_tables
from leadline.bench.metrics import score
from leadline.bench.records import load_measured, load_reported, record, reported_scores, summarise
from leadline.bench.result_tables import experiment_table, network_tables, result_document, target_tables
from leadline.bench.rows import Row
from leadline.errors import InputError


def make_row(method: str, estimate: float, truth: float, **more: Any) -> Row:
    values: dict[str, Any] = {
        "suite": "logits-cifar10c", "model": "resnet20", "model_seed": None, "target": "fog_1", "experiment": "main",
        "variant": method, "method": method, "seed": None, "estimate": estimate, "truth": truth, "n_samples": 100,
        "fit_seconds": 1.0, "seconds": 0.1, "version": "0",
    }  # fmt: skip
    return Row(**values | more)


def test_scores_follow_their_formulas() -> None:
    estimates, truths = np.array([0.9, 0.6, 0.5, 0.4]), np.array([0.8, 0.7, 0.5, 0.3])
    got = score([make_row("ac", e, t, seed=i % 2) for i, (e, t) in enumerate(zip(estimates, truths, strict=True))])
    errors = np.abs(estimates - truths)
    np.testing.assert_allclose(got.mae, errors.mean())
    np.testing.assert_allclose(got.std or 0, errors.std(ddof=1))
    np.testing.assert_allclose(got.seed_std or 0, np.std([errors[::2].mean(), errors[1::2].mean()], ddof=1))
    residual = ((estimates - truths) ** 2).sum() / ((truths - truths.mean()) ** 2).sum()
    np.testing.assert_allclose(got.r2 or 0, 1 - residual)
    np.testing.assert_allclose(got.rho or 0, np.corrcoef(estimates, truths)[0, 1])
    single = score([make_row("ac", 0.5, 0.4)])
    assert (single.std, single.r2, single.rho, single.seed_std) == (None, None, None, None)


def test_r2_of_equal_truths_is_undefined_whatever_rounding_leaves() -> None:
    got = score([make_row("ac", estimate, 0.1) for estimate in (0.2, 0.3, 0.4)])  # the mean of three 0.1 is not 0.1
    assert (got.r2, got.rho) == (None, None)


def test_truths_that_differ_by_rounding_only_have_no_r2() -> None:
    truths = [0.1 + 0.2, 0.3, 0.3]  # the first is 0.30000000000000004
    got = score([make_row("ac", e, t) for e, t in zip((0.5, 0.4, 0.6), truths, strict=True)])
    assert (got.r2, got.rho) == (None, None)
    constant = score([make_row("ac", e, t) for e, t in zip(truths, (0.5, 0.4, 0.6), strict=True)])
    assert constant.rho is None
    assert constant.r2 == pytest.approx(1.0 - 0.14 / 0.02)


def measured_with(tmp_path: Path, errors: dict[str, float]) -> dict[str, Any]:
    found = [
        make_row(method, truth + error, truth, target=f"fog_{i}")
        for method, error in errors.items()
        for i, truth in enumerate((0.5, 0.7, 0.8), start=1)
    ]
    record(tmp_path, "main", found)
    return load_measured(tmp_path)


def test_claims_are_computed(tmp_path: Path) -> None:
    baselines = {"ac": 0.11, "doc": 0.12, "im": 0.13, "atc-ne": 0.02}
    measured = measured_with(tmp_path, baselines | {"cot": 0.03, "alsa-g": 0.05, "alsa-e": 0.06})
    verdicts = {claim.claim: claim for claim in check_claims(measured)}
    corruption = verdicts["COT or ATC is ahead of ALSA under corruption"]
    assert (corruption.verdict, corruption.own_data) == ("holds", False)
    assert "atc-ne 2.0" in corruption.evidence
    assert verdicts["ALSA stays below 10 points everywhere"].verdict == "holds"
    assert verdicts["every baseline exceeds 10 points somewhere"].verdict == "holds in part"
    assert verdicts["ALSA is best under subpopulation shift"].verdict == "no data"
    reverse = measured_with(tmp_path, baselines | {"atc-ne": 0.2, "cot": 0.15, "alsa-g": 0.12, "alsa-e": 0.06})
    verdicts = {claim.claim: claim for claim in check_claims(reverse)}
    assert verdicts["COT or ATC is ahead of ALSA under corruption"].verdict == "does not hold"
    assert verdicts["ALSA stays below 10 points everywhere"].verdict == "holds in part"
    assert "alsa-g: no (logits-cifar10c 12.0)" in verdicts["ALSA stays below 10 points everywhere"].evidence
    assert verdicts["every baseline exceeds 10 points somewhere"].verdict == "holds"


def experiment_rows(experiment: str, errors: dict[str, float]) -> list[Row]:
    return [
        make_row("alsa-g", 0.5 + error, 0.5, experiment=experiment, variant=variant)
        for variant, error in errors.items()
    ]


@pytest.mark.parametrize(
    ("experiment", "good", "bad", "claim"),
    [
        ("ablation", {"Lrn": 0.01, "Fix a": 0.02}, {"Lrn": 0.03, "Fix a": 0.02}, "learning anchors"),
        ("init", {"sample": 0.010, "random": 0.012, "balanced": 0.2}, {"sample": 0.01, "random": 0.05}, "sampled and"),
        ("alpha", {"alsa-g 0.5": 0.05, "alsa-g 0.9": 0.01, "alsa-g 0.99": 0.04},
         {"alsa-g 0.5": 0.01, "alsa-g 0.9": 0.02, "alsa-g 0.99": 0.04}, "small and large alpha"),
        ("anchors", {"10": 0.05, "100": 0.021, "1000": 0.02}, {"10": 0.01, "100": 0.02, "1000": 0.03}, "more anchors"),
    ],
)  # fmt: skip
def test_claims_of_experiments(
    tmp_path: Path, experiment: str, good: dict[str, float], bad: dict[str, float], claim: str
) -> None:
    for errors, verdict in ((good, "holds"), (bad, "does not hold")):
        record(tmp_path, experiment, experiment_rows(experiment, errors))
        found = [entry for entry in check_claims(load_measured(tmp_path)) if entry.claim.startswith(claim)]
        assert [entry.verdict for entry in found] == [verdict]


def test_reported_numbers_are_the_papers_and_never_ours(tmp_path: Path) -> None:
    reported = load_reported()
    paper = reported_scores(reported)
    np.testing.assert_allclose(list(paper["CIFAR10/CIFAR-10.2"]["alsa-e"].values()), [0.0061, 0.0054])
    np.testing.assert_allclose(paper["Office-31/domain"]["atc-ne"]["mae"], 0.4155)
    assert reported["tables"]["tab:gnn_performance_metrics"]["rows"]["GIN"]["ATC"] == {"r2": -189.22, "rho": 0.82}
    plain = reported["tables"]["tab:mae_cv_language"]["rows"]
    full = reported["tables"]["tab:vision_language_mae_std"]["rows"]
    assert [list(row.values()) for row in plain.values()] == [
        [cell["mae"] for cell in row.values()] for row in full.values()
    ]
    times = reported["tables"]["tab:anchor_training_time"]["rows"]
    assert {size.dataset: (size.n_anchors, size.reported_seconds) for size in TRAINING_SIZES} == {
        name: (row["anchors"], row["seconds"]) for name, row in times.items()
    }
    for suite in SUITES.values():
        assert set(suite.paper) <= set(paper)
    measured = measured_with(tmp_path, {"ac": 0.1, "alsa-g": 0.05})
    document = result_document(measured, reported)
    assert document.data["measured"] is measured
    assert document.data["reported"] is reported
    row = next(r for r in document.records if r["targets"] == "CIFAR10/CIFAR-10C" and r["method"] == "ac")
    np.testing.assert_allclose((row["measured_mae"], row["reported_mae"], row["reported_std"]), (0.1, 0.0657, 0.0684))
    table = next(table for table in document.tables if table.title == "The paper's row CIFAR10/CIFAR-10C")
    assert [str(getattr(cell, "text", cell)) for cell in table.rows[0]] == ["ac", "6.57 (6.84)", "10.00 (0.00)"]
    waiting = result_document(measured, reported, ["mnist"])  # not measured: the paper's numbers alone
    assert [table.title for table in waiting.tables] == ["The paper's row MNIST/MNIST-M"]
    assert waiting.tables[0].header == ("method", "reported")
    assert waiting.notes[0] == "mnist was not measured; `leadline bench reproduce mnist` does it."
    with pytest.raises(InputError, match="no results of logits-banking77 yet"):
        result_document(measured, reported, ["logits-banking77"])


def test_the_papers_numbers_come_with_the_package(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("bench", "table", "--format", "json")
    assert shown.code == 0
    assert shown.data["measured"] == {"experiments": {}, "training_time": [], "bands": {}}
    assert shown.data["reported"] == load_reported()
    text = run("bench", "table", "--format", "md").out
    assert all(f"The paper's row {row}" in text for row in reported_scores(load_reported()))
    assert "The paper's Table 2" in text
    assert "mnist was not measured" in text
    (tmp_path / "other").mkdir()
    assert run("bench", "table", "--results", "other").error.startswith(
        "folder must hold reported.json; other does not."
    )
    (tmp_path / "other/reported.json").write_text(json.dumps(load_reported() | {"paper": "another"}))
    assert run("bench", "table", "--results", "other", "--format", "json").data["reported"]["paper"] == "another"


def test_records_keep_what_was_measured_before(tmp_path: Path) -> None:
    measured_with(tmp_path, {"ac": 0.1})
    record(tmp_path, "main", [make_row("ac", 0.5, 0.4, suite="logits-mnist", target="usps")])
    assert set(load_measured(tmp_path)["experiments"]["main"]) == {"logits-cifar10c", "logits-mnist"}
    time = time_training(TrainingSize("Office-31", 50, 5, 10, 5.0), max_epochs=2)
    assert time.epochs == 2
    np.testing.assert_allclose(time.seconds_per_epoch, time.seconds / 2)
    record(tmp_path, times=[time])
    record(tmp_path, times=[replace(time, seconds=9.0)])
    assert [entry["seconds"] for entry in load_measured(tmp_path)["training_time"]] == [9.0]


def test_a_network_without_edges_is_scored_beside_the_graph_networks() -> None:
    rows = [
        make_row("ac", 0.5 + error, 0.5, suite="citation-graphs", model=f"acmv9-{kind}", target="dblpv7")
        for kind, error in {"gcn": 0.01, "sage": 0.03, "mlp": 0.2}.items()
    ]
    entry = summarise(rows)["citation-graphs"]
    assert entry["all"]["ac"]["mae"] == pytest.approx(0.02)
    assert entry["all"]["ac"]["rows"] == 2
    assert entry["by_kind"]["mlp"]["ac"]["mae"] == entry["by_model"]["acmv9-mlp"]["ac"]["mae"] == pytest.approx(0.2)
    texts = [make_row("ac", 0.6, 0.5, suite="logits-banking77", model="tfidf_mlp", target="clean")]
    assert summarise(texts)["logits-banking77"]["all"]["ac"]["rows"] == 1


def test_large_drops_are_counted_from_the_best_target_of_the_same_model() -> None:
    truths = {"clean": 0.9, "fog_1": 0.61, "fog_5": 0.5}
    rows = [make_row("ac", truth + 0.04, truth, target=target) for target, truth in truths.items()]
    rows += [make_row("ac", 0.5, 0.5, target="fog_5", model="resnet32")]  # its only target: no drop is known
    drops = summarise(rows)["logits-cifar10c"]["large_drops"]["ac"]
    assert drops["rows"] == 1
    assert drops["mae"] == pytest.approx(0.04)


def test_tables_by_network_and_by_target() -> None:
    """Networks without edges stand below the mean of the others; targets are listed where they are few."""
    rows = [
        make_row("ac", 0.5 + error, 0.5, suite="citation-graphs", model=f"acmv9-{kind}", target=target)
        for (kind, target), error in {("gcn", "same"): 0.01, ("gcn", "dblpv7"): 0.05, ("mlp", "same"): 0.3}.items()
    ]
    rows += [make_row("ac", 0.6, 0.5, target=f"fog_{number}") for number in range(9)]
    summary = summarise(rows)
    (networks,), (targets,) = network_tables(summary), target_tables(summary)
    cells = {table.title: [[getattr(c, "text", c) for c in row] for row in table.rows] for table in (networks, targets)}
    assert cells == {
        "Measured: each network, citation-graphs ~": [["all", "3.0"], ["gcn", "3.0"], ["mlp", "30.0"]],
        "Measured: each target, citation-graphs ~": [["dblpv7", "5.0"], ["same", "1.0"]],
    }


def test_an_experiment_on_a_row_of_the_paper() -> None:
    digits = [
        make_row("sample", 0.5 + error, 0.5, suite="logits-mnist", target=target)
        for target, error in {"mnist_m": 0.1, "usps": 0.3}.items()
    ]
    entries = summarise([*digits, make_row("sample", 0.9, 0.5)])
    table = experiment_table("init", entries, "MNIST/MNIST-M")
    assert table.header == ("variant", "logits-mnist ~")
    assert [[getattr(cell, "text", cell) for cell in row] for row in table.rows] == [["sample", "10.0 (–)"]]
    assert len(experiment_table("init", entries).header) == 3


def test_a_row_of_the_paper_has_the_published_images_only() -> None:
    """MNIST-M is not another blend of digits and photographs, whose name begins alike."""
    errors = {"ac": (0.05, 0.3), "doc": (0.06, 0.3), "im": (0.07, 0.3), "atc-ne": (0.08, 0.3), "cot": (0.09, 0.3)}
    rows = [
        make_row(method, 0.5 + error, 0.5, suite="logits-mnist", target=target)
        for method, found in {**errors, "alsa-g": (0.04, 0.4)}.items()
        for target, error in zip(("mnist_m", "mnist_m_selfmade"), found, strict=True)
    ]
    summary = summarise(rows)
    assert summary["logits-mnist"]["paper_rows"]["MNIST/MNIST-M"]["alsa-g"]["mae"] == pytest.approx(0.04)
    assert summary["logits-mnist"]["by_target"]["mnist_m_selfmade"]["alsa-g"] == pytest.approx(0.4)
    claims = {claim.claim: claim for claim in check_claims({"experiments": {"main": summary}})}
    assert claims["ALSA is best on MNIST-M"].verdict == "holds"


def test_tables_of_graphs_end_with_the_mean_over_the_four_networks() -> None:
    errors = {"gcn": 0.01, "sage": 0.02, "gat": 0.03, "gin": 0.10, "mlp": 0.9}
    rows = [
        make_row("ac", truth + sign * error, truth, suite="citation-graphs", model=f"acmv9-{kind}", target=target)
        for kind, error in errors.items()
        for target, truth, sign in (("a", 0.3, 1), ("b", 0.5, 1), ("c", 0.6, -1))
    ]
    rows += [make_row("doc", 0.4, 0.3, suite="citation-graphs", model="acmv9-gcn", target="a")]
    error_table, agreement = graph_tables(summarise(rows), load_reported(), wanted=False)
    texts = [[getattr(cell, "text", cell) for cell in row] for row in error_table.rows[-2:]]
    assert texts[0][:4] == ["AVG.", "reported", "9.06 (1.95)", "3.67 (2.10)"]
    assert texts[1][:4] == ["", "measured: citation-graphs", "4.00 (0.00)", ""]  # DoC was run with one network only
    texts = [[getattr(cell, "text", cell) for cell in row] for row in agreement.rows[-2:]]
    assert texts[0][:3] == ["AVG.", "reported", "-40.32 / 0.91"]
    r2 = 1 - 3 * 0.00285 / 0.0466667  # three errors each, mean square 0.00285; the truths' sum of squares
    assert str(texts[1][2]).startswith(f"{r2:.2f} / ")
