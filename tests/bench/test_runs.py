"""What a run does once, keeps, does again, and refuses."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import Run
from leadline.bench import runs
from leadline.bench.datasets import SUITES
from leadline.bench.experiments import run_experiment
from leadline.bench.rows import load_rows
from leadline.bench.runs import Variant, run_variants
from leadline.comparison import fit_planned
from leadline.data.files import write_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError
from leadline.estimators import passes
from leadline.estimators.sources import learn_profile

Make = Callable[..., Outputs]
SUITE = SUITES["logits-mnist"]


def put_logits(data: Path, make_outputs: Make, model: str = "model", targets: Sequence[str] = ("a", "b")) -> Path:
    """Write the logits of a model of the suite, and return their folder."""
    folder = data / "logits/mnist" / model
    folder.mkdir(parents=True)
    for seed, name in enumerate(("source", *(f"target_{target}" for target in targets))):
        write_outputs(make_outputs(200, 10, seed), folder / f"{name}.npz")
    return folder


def test_a_finished_part_is_not_computed_again(
    tmp_path: Path, make_outputs: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_logits(tmp_path, make_outputs)
    out = tmp_path / "out"
    variants = [Variant("ac", "ac"), Variant("doc", "doc")]
    calls = []

    def broken_on_doc(source: Any, plan: Any, **options: Any) -> Any:
        calls.append(plan[0][0])
        if calls == ["ac", "doc"]:
            raise KeyboardInterrupt
        return fit_planned(source, plan, **options)

    monkeypatch.setattr(runs, "fit_planned", broken_on_doc)
    with pytest.raises(KeyboardInterrupt):
        run_variants(SUITE, variants, tmp_path, out)
    found = run_variants(SUITE, variants, tmp_path, out)
    assert calls == ["ac", "doc", "doc"]
    assert [(row.variant, row.target) for row in found] == [("ac", "a"), ("ac", "b"), ("doc", "a"), ("doc", "b")]
    run_variants(SUITE, variants, tmp_path, out, targets=["b"])
    assert calls == ["ac", "doc", "doc", "ac", "doc"]  # another question
    with pytest.raises(InputError, match="targets must be among a, b; got c"):
        run_variants(SUITE, variants, tmp_path, out, targets=["c"])
    write_outputs(make_outputs(200, 10, 9), folder / "target_c.npz")  # logits were not complete
    later = (out / "parts/main/logits-mnist/model__ac.json").stat().st_mtime + 1
    os.utime(folder / "target_c.npz", (later, later))
    assert {row.target for row in run_variants(SUITE, variants, tmp_path, out)} == {"a", "b", "c"}
    with pytest.raises(InputError, match="models must be among"):
        run_variants(SUITE, variants, tmp_path, out, models=["other"])


def test_alpha_sweep_equals_separate_fits(tmp_path: Path, make_outputs: Make) -> None:
    put_logits(tmp_path, make_outputs, targets=("a",))
    quick = {"n_anchors": 20, "max_epochs": 3}
    variants = [Variant(f"{alpha}", "alsa-g", {"alpha": alpha} | quick) for alpha in (0.5, 0.9, 0.99)]
    shared = run_variants(SUITE, variants, tmp_path, tmp_path / "shared", seeds=(0,))
    for variant, row in zip(variants, shared, strict=True):
        alone = run_variants(SUITE, [variant], tmp_path, tmp_path / variant.name, seeds=(0,))
        assert alone[0].estimate == row.estimate


@pytest.mark.parametrize(
    ("option", "names", "line"),
    [
        ("--models", "one,typo", "models must be among one, two; got typo."),
        ("--targets", "typo,b,c", "targets must be among a, b; got typo, c."),
        ("--methods", "ac,typo", "methods must be among auto, alsa-g, .*, alsa-g-paper, alsa-e-paper; got typo."),
    ],
)
def test_a_name_that_does_not_exist_is_refused_before_anything_is_run(
    tmp_path: Path, make_outputs: Make, run: Run, option: str, names: str, line: str
) -> None:
    put_logits(tmp_path, make_outputs, "one", targets=("a",))
    put_logits(tmp_path, make_outputs, "two")
    words = ["logits-mnist", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--methods", "ac", option, names]
    result = run("bench", "run", *words)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(f"leadline: error: {line}\n", result.err)
    assert not (tmp_path / "out").exists()


def test_each_model_is_run_on_the_targets_that_it_has(tmp_path: Path, make_outputs: Make) -> None:
    for model, targets in (("one", ("a",)), ("two", ("a", "b")), ("three", ("c",))):
        put_logits(tmp_path, make_outputs, model, targets)
    found = run_variants(SUITE, [Variant("ac", "ac")], tmp_path, tmp_path / "out", targets=["b", "a"])
    assert [(row.model, row.target) for row in found] == [("one", "a"), ("two", "b"), ("two", "a")]


def test_a_target_is_judged_once_for_all_variants(
    tmp_path: Path, make_outputs: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in ("one", "two"):
        put_logits(tmp_path, make_outputs, model)
    quick = {"n_anchors": 20, "max_epochs": 3}
    variants = [Variant("ac", "ac"), Variant("cbpe", "cbpe"), Variant("few", "alsa-g", quick)]
    apart = {
        (row.model, row.target, row.variant): row.estimate
        for variant in variants
        for row in run_variants(SUITE, [variant], tmp_path, tmp_path / variant.name, seeds=(0,))
    }
    calls: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(passes, "judge_rows", counted("judged", passes.judge_rows))
    monkeypatch.setattr(runs, "learn_profile", counted("learned", learn_profile))
    found = run_variants(SUITE, variants, tmp_path, tmp_path / "out", seeds=(0,))
    assert calls == {"judged": 4, "learned": 2}
    assert {(row.model, row.target, row.variant): row.estimate for row in found} == apart


def test_rows_that_other_code_options_or_logits_made_are_left_out_and_said_to_be(
    tmp_path: Path, make_outputs: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for model in ("one", "two"):
        put_logits(tmp_path, make_outputs, model)
    out = tmp_path / "out"

    def variants_of_models(method: str) -> set[tuple[str, str]]:
        rows = run_experiment(SUITE, "main", tmp_path, out, methods=[method])
        assert rows == load_rows(out, suite=SUITE.name)
        return {(row.model, row.variant) for row in rows}

    both = {("one", "ac"), ("two", "ac"), ("one", "doc"), ("two", "doc")}
    variants_of_models("ac")
    assert variants_of_models("doc") == both  # the earlier ones hold
    assert variants_of_models("doc") == both
    assert not caplog.messages
    write_outputs(make_outputs(200, 10, 9), tmp_path / "logits/mnist/two/source.npz", force=True)
    assert variants_of_models("doc") == both - {("two", "ac")}
    assert "left out 2 earlier rows of logits-mnist, ac: " in caplog.messages.pop()
    assert variants_of_models("ac") == both
    monkeypatch.setattr(runs, "code_fingerprint", lambda method: f"changed {method}")
    assert variants_of_models("doc") == {("one", "doc"), ("two", "doc")}
    assert "left out 4 earlier rows of logits-mnist, ac: " in caplog.messages.pop()


def test_the_origin_of_a_row_tells_options_apart(tmp_path: Path, make_outputs: Make) -> None:
    folder = put_logits(tmp_path, make_outputs)
    variants = [Variant("a", "alsa-g"), Variant("a", "alsa-g", {"alpha": 0.9}), Variant("a", "alsa-e")]
    assert len({runs.origin_of(variant, folder) for variant in variants}) == 3
    assert runs.origin_of(Variant("another name", "alsa-g"), folder) == runs.origin_of(variants[0], folder)
