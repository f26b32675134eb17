"""``leadline.compare``: the same numbers as by hand, each method fitted once, honest errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import leadline
from leadline import InputError, Outputs, compare
from leadline.estimators.confidence import AverageConfidence
from leadline.results.comparison import Comparison

Maker = Callable[..., Outputs]
FAST = ["ac", "doc"]


@pytest.fixture(scope="module")
def source(make_outputs: Maker) -> Outputs:
    return make_outputs(seed=0)


@pytest.fixture(scope="module")
def targets(make_outputs: Maker) -> dict[str, Any]:
    hard = make_outputs(seed=1, signal=1.0)
    return {"hard": hard, "pair": (hard.logits * 2, hard.labels), "unlabelled": make_outputs(seed=2).logits}


@pytest.fixture(scope="module")
def result(source: Outputs, targets: dict[str, Any]) -> Comparison:
    return compare(source, targets, methods=FAST)


def test_rows_are_what_the_estimators_say(result: Comparison, source: Outputs, targets: dict[str, Any]) -> None:
    assert [(row.target, row.method) for row in result] == [(target, method) for target in targets for method in FAST]
    assert len(result) == len(result.rows) == 6
    for row in result:
        target = targets[row.target]
        logits = target.logits if isinstance(target, Outputs) else target[0] if row.target == "pair" else target
        expected = leadline.make(row.method).fit(source.logits, source.labels).estimate(logits)
        assert (row.accuracy, row.interval, row.n_samples) == (
            expected.accuracy,
            expected.interval,
            expected.n_samples,
        )
        assert row.seconds >= 0.0
        assert row.fit_seconds >= 0.0


def test_truth_and_error_only_where_labels_are(result: Comparison, targets: dict[str, Any]) -> None:
    for row in result:
        if row.target == "unlabelled":
            assert row.truth is None
            assert row.error is None
        else:
            truth = targets["hard"].accuracy
            assert row.truth == truth
            assert row.error == row.accuracy - truth


def test_mean_absolute_errors(result: Comparison) -> None:
    errors = result.mean_absolute_errors()
    assert list(errors) == FAST
    for method, error in errors.items():
        of_method = [abs(row.error) for row in result if row.method == method and row.error is not None]
        assert len(of_method) == 2
        assert error == pytest.approx(np.mean(of_method), abs=1e-15)


def test_no_errors_without_labels(source: Outputs, targets: dict[str, Any]) -> None:
    unlabelled = compare(source, {"unlabelled": targets["unlabelled"]}, methods=FAST)
    assert unlabelled.mean_absolute_errors() == {}
    assert "mean absolute error" not in str(unlabelled)


def test_to_arrow_has_every_row(result: Comparison) -> None:
    table = result.to_arrow()
    assert table["accuracy"].to_pylist() == [row.accuracy for row in result]
    assert table["error"].to_pylist() == [row.error for row in result]
    assert table["interval_high"].to_pylist() == [row.interval[1] for row in result]
    for frame in (result.to_pandas(), result.to_polars()):
        assert list(frame.columns) == table.column_names
        assert frame["method"].to_list() == [row.method for row in result]


def test_to_dict_is_plain(result: Comparison) -> None:
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data == result.to_dict()
    assert data["rows"][0]["accuracy"] == result.rows[0].accuracy
    assert data["mean_absolute_errors"] == result.mean_absolute_errors()


def test_rows_are_frozen(result: Comparison) -> None:
    with pytest.raises(FrozenInstanceError):
        result.rows[0].accuracy = 1.0  # type: ignore[misc]


def test_text_is_aligned_and_has_every_number(result: Comparison) -> None:
    lines = str(result).splitlines()
    assert lines[0].split() == ["target", "true", *FAST]
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split() == [
        "hard", f"{result.truth('hard'):.1%}", *(f"{result.accuracy(method, 'hard'):.1%}" for method in FAST)
    ]  # fmt: skip
    assert lines[-1].startswith("mean absolute error")


def test_html_escapes_names(source: Outputs, targets: dict[str, Any]) -> None:
    html = compare(source, {"<b>": targets["hard"]}, methods=["ac"])._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == html.count("</tr>") == 3


def test_all_methods_by_default(make_outputs: Maker) -> None:
    small = make_outputs(n=60, c=3)
    assert compare(small, {"t": small.logits}).methods == tuple(leadline.METHODS)


def test_seeds_only_where_something_is_random(source: Outputs, targets: dict[str, Any]) -> None:
    options = {"alsa-g": {"n_anchors": 5, "max_epochs": 1}}
    rows = compare(source, targets, methods=["alsa-g", "ac"], seeds=[3, 4], options=options).rows
    assert [(row.method, row.seed) for row in rows[:3]] == [("alsa-g", 3), ("alsa-g", 4), ("ac", None)]
    expected = leadline.make("alsa-g", seed=4, n_anchors=5, max_epochs=1).fit(source.logits, source.labels)
    assert rows[1].accuracy == expected.estimate(targets["hard"].logits).accuracy
    assert rows[0].accuracy != rows[1].accuracy


def test_mean_over_seeds(source: Outputs, targets: dict[str, Any]) -> None:
    options = {"alsa-g": {"n_anchors": 5, "max_epochs": 1}}
    result = compare(source, {"t": targets["hard"]}, methods=["alsa-g"], seeds=[0, 1], options=options)
    assert result.accuracy("alsa-g", "t") == pytest.approx(np.mean([row.accuracy for row in result]), abs=1e-15)


def test_a_seed_among_the_options_wins(source: Outputs, targets: dict[str, Any]) -> None:
    options = {"alsa-g": {"seed": 7, "n_anchors": 5, "max_epochs": 1}}
    rows = compare(source, {"t": targets["hard"]}, methods=["alsa-g"], seeds=[0, 1], options=options).rows
    assert [row.seed for row in rows] == [7]


def test_each_method_is_fitted_once_and_each_target_read_once(
    source: Outputs, targets: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fits, reads = [], []
    original = AverageConfidence._fit

    def fit(self: AverageConfidence, logits: Any, labels: Any) -> None:
        fits.append(self)
        original(self, logits, labels)

    class Lazy(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            reads.append(name)
            return targets[name]

        def __iter__(self) -> Iterator[str]:
            return iter(targets)

        def __len__(self) -> int:
            return len(targets)

    monkeypatch.setattr(AverageConfidence, "_fit", fit)
    compare(source, Lazy(), methods=["ac"])
    assert len(fits) == 1
    assert reads == list(targets)


def test_progress_counts_every_step(source: Outputs, targets: dict[str, Any]) -> None:
    steps: list[tuple[int, int, str]] = []
    compare(source, targets, methods=FAST, progress=lambda *step: steps.append(step))
    total = len(FAST) * (1 + len(targets))
    assert [(done, of) for done, of, _ in steps] == [(i + 1, total) for i in range(total)]
    assert steps[0][2] == "fit ac"
    assert steps[-1][2] == "estimate doc on unlabelled"


def test_confidence_level_reaches_the_intervals(source: Outputs, targets: dict[str, Any]) -> None:
    def width(level: float) -> float:
        low, high = compare(source, targets, methods=["ac"], confidence_level=level).rows[0].interval
        return high - low

    assert width(0.5) < width(0.9) < width(0.99)


def test_inputs_are_not_changed(source: Outputs, targets: dict[str, Any]) -> None:
    before = source.logits.copy(), targets["unlabelled"].copy()
    compare(source, targets, methods=FAST)
    np.testing.assert_array_equal(source.logits, before[0])
    np.testing.assert_array_equal(targets["unlabelled"], before[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["ac", "nope"]}, "method must be one of .*; got 'nope'"),
        ({"methods": []}, "methods must have at least one entry; got none"),
        ({"methods": ["ac", "ac"]}, "methods must be distinct; got ac, ac"),
        ({"seeds": []}, "seeds must have at least one entry"),
        ({"seeds": [1.5]}, "seeds must be integers from 0; got 1.5"),
        ({"seeds": [-1]}, "seeds must be integers from 0; got -1"),
        ({"options": {"cot": {}}}, "options must be for the methods compared, ac, doc; got 'cot'"),
        ({"options": {"ac": {"colour": 1}}}, "has no option 'colour'"),
        ({"targets": {}}, "targets must have at least one entry"),
        ({"targets": {"t": np.zeros((3, 4, 5))}}, "target 't': logits must have shape"),
        ({"targets": {"t": np.eye(4)}}, "target 't': logits must have 5 classes, as in fit; got 4"),
        ({"source": np.eye(5)}, "source must have labels; got logits only"),
        ({"source": (np.eye(5), [0, 1])}, r"source: labels must have shape \(5,\)"),
        ({"confidence_level": 1.0}, "confidence_level must be between 0 and 1"),
    ],
)
def test_wrong_input(change: dict[str, Any], message: str, source: Outputs, targets: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"source": source, "targets": targets, "methods": FAST} | change
    with pytest.raises(InputError, match=message):
        compare(**arguments)


def test_classes_in_another_order_are_refused() -> None:
    source = Outputs(np.eye(2), np.array([0, 1]), classes=("dog", "cat"))
    target = Outputs(np.eye(2), classes=("cat", "dog"))
    with pytest.raises(InputError, match="target 't': classes must be in the order of the source, 'dog', 'cat'"):
        compare(source, {"t": target}, methods=["ac"])


def test_unknown_pair(result: Comparison) -> None:
    with pytest.raises(InputError, match="no row for method 'cot' and target 'hard'"):
        result.accuracy("cot", "hard")
