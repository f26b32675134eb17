"""The one driver: segments, borrowed verdicts, class names, many groups, and nothing remembered between calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leadline as ll
from leadline.estimators import passes
from leadline.estimators.groups import ALL, Block, largest_groups
from leadline.estimators.passes import Pass, drive, judge_rows
from leadline.estimators.samples import GroupSamples, _by_group_and_key, hashes
from leadline.estimators.scans import InMemory
from leadline.shift.judgement import judge

Maker = Callable[..., ll.Outputs]
NAMES = ("cat", "dog", "owl", "fox", "elk")


@pytest.fixture
def named(make_outputs: Maker) -> ll.Outputs:
    return make_outputs(600, seed=1, classes=NAMES, metadata={"week": np.arange(600) % 3})


@pytest.mark.parametrize("method", list(ll.METHODS))
def test_outputs_are_taken_and_class_names_kept(method: str, make_outputs: Maker, tmp_path: Path) -> None:
    source, target = make_outputs(300, classes=NAMES), make_outputs(200, seed=1, classes=NAMES)
    model = ll.make(method).fit(source)
    plain = ll.make(method).fit(source.logits, source.labels)
    assert model.classes_ == NAMES
    assert plain.classes_ == (0, 1, 2, 3, 4)
    found, expected = model.estimate(target), plain.estimate(target.logits)
    assert (found.accuracy, found.interval) == (expected.accuracy, expected.interval)
    assert [entry.label for entry in found.by_class] == list(NAMES)
    assert [entry.label for entry in expected.by_class] == [0, 1, 2, 3, 4]
    model.save(tmp_path / "model.leadline")
    loaded = ll.load(tmp_path / "model.leadline")
    assert loaded.classes_ == NAMES
    other_order = ll.Outputs(target.logits, classes=NAMES[::-1])
    for refusing in (model, loaded):
        with pytest.raises(ll.InputError, match="must be in the order of the source, 'cat', 'dog'"):
            refusing.estimate(other_order)
        with pytest.raises(ll.InputError, match="must be those of the source, 'cat', 'dog'"):
            refusing.estimate(ll.Outputs(target.logits, classes=("a", "b", "c", "d", "e")))
        with pytest.raises(ll.InputError, match="order of the source"):
            refusing.estimate_by(other_order, [])


def test_files_with_other_classes_are_refused(make_outputs: Maker, named: ll.Outputs, tmp_path: Path) -> None:
    model = ll.make("ac").fit(make_outputs(300, classes=NAMES))
    ll.write_outputs(named, tmp_path / "good.parquet")
    ll.write_outputs(ll.Outputs(named.logits, classes=NAMES[::-1]), tmp_path / "bad.parquet")
    assert ll.estimate_files(model, str(tmp_path / "good.parquet")).overall.truth == named.accuracy
    with pytest.raises(ll.InputError, match=r"bad\.parquet: classes must be in the order of the source"):
        ll.estimate_files(model, str(tmp_path / "bad.parquet"))


def test_labels_that_are_names_need_no_repetition(make_outputs: Maker, tmp_path: Path) -> None:
    source, target = make_outputs(300, classes=NAMES), make_outputs(50, seed=1)
    model = ll.make("ac").fit(source)
    lists = pa.array(list(target.logits), pa.list_(pa.float32()))
    assert target.labels is not None
    pq.write_table(pa.table({"logits": lists, "label": [NAMES[k] for k in target.labels]}), tmp_path / "t.parquet")
    assert ll.estimate_files(model, str(tmp_path / "t.parquet")).overall.truth == target.accuracy


def test_fit_wants_labels_once(make_outputs: Maker) -> None:
    source = make_outputs(50)
    with pytest.raises(ll.InputError, match="outputs must have labels to fit on"):
        ll.make("ac").fit(ll.Outputs(source.logits))
    with pytest.raises(ll.InputError, match="labels must be given"):
        ll.make("ac").fit(source.logits)
    with pytest.raises(ll.InputError, match="give outputs alone"):
        ll.make("ac").fit(source, source.labels)


# ------------------------------------------------------------------------------------------------------- segments
@pytest.mark.parametrize("method", list(ll.METHODS))
def test_segments_of_a_method_are_its_estimates_on_their_rows(
    method: str, named: ll.Outputs, make_outputs: Maker
) -> None:
    model = ll.make(method).fit(make_outputs(400, classes=NAMES))
    found = model.estimate_by(named, "week")
    assert [row.group for row in found] == [{"week": 0}, {"week": 1}, {"week": 2}]
    whole = model.estimate(named)
    np.testing.assert_allclose(found.overall.estimate.accuracy, whole.accuracy, atol=1e-12)
    np.testing.assert_allclose(found.overall.estimate.interval, whole.interval, atol=1e-12)
    assert named.labels is not None
    for row in found:
        of_week = named.metadata["week"] == row.group["week"]
        assert row.truth == np.mean(named.logits[of_week].argmax(1) == named.labels[of_week])
        assert row.estimate.shift is not None
        assert 0.0 < row.estimate.shift.evidence < 1.0
        if method != "auto":
            assert row.estimate.accuracy == pytest.approx(model.estimate(named.logits[of_week]).accuracy, abs=1e-12)


def test_estimates_are_tables(named: ll.Outputs, make_outputs: Maker) -> None:
    model = ll.make("ac").fit(make_outputs(300))
    found = model.estimate_by(named, ["week"])
    table = found.to_arrow()
    numbers = ["accuracy", "interval_low", "interval_high", "confidence_level", "n_samples"]
    assert table.column_names == ["week", *numbers, "method", "shift", "truth", "model_id", "estimated_at"]
    assert table["n_samples"].to_pylist() == [200, 200, 200]
    for frame in (found.to_pandas(), found.to_polars()):
        assert list(frame.columns) == table.column_names
        assert frame["accuracy"].to_list() == table["accuracy"].to_pylist()
    assert set(table["model_id"].to_pylist()) == {model.model_id}
    assert model.model_id != ll.make("ac").fit(make_outputs(301)).model_id
    made = table["estimated_at"].to_pylist()[0]
    assert abs((datetime.now(UTC) - made).total_seconds()) < 600
    assert found.to_dict()["estimated_at"] == made.isoformat(timespec="seconds")
    assert found.to_dict()["overall"]["group"] is None
    assert found.to_dict()["rows"][1]["group"] == {"week": 1}
    assert "week 1" in str(found)
    assert f"{100 * found.overall.estimate.accuracy:.1f} %" in found._repr_html_()
    assert ll.make("ac").fit(make_outputs(300)).estimate_by(named, []).to_arrow().num_rows == 1


def test_metadata_is_needed_to_group_by(make_outputs: Maker) -> None:
    model = ll.make("ac").fit(make_outputs(50))
    with pytest.raises(ll.InputError, match=r"must be leadline\.Outputs with the metadata to group by; got ndarray"):
        model.estimate_by(make_outputs(50).logits, ["week"])  # type: ignore[arg-type]
    with pytest.raises(ll.InputError, match="'week' is not in these outputs"):
        model.estimate_by(make_outputs(50), ["week"])


def test_small_segments_borrow_and_large_ones_speak_for_themselves(make_outputs: Maker) -> None:
    """A segment whose classifier drifts is seen if it is large; a handful of its rows are read as the rest are."""
    source, target = make_outputs(4000, signal=2.0), make_outputs(4000, seed=1, signal=2.0)
    drifted = 0.5 * target.logits + np.array([1.0, 0, 0, 0, 0])
    model = ll.Auto().fit(source)
    for size, alone in ((2000, True), (20, False)):
        logits = np.concatenate([target.logits[:2000], drifted[2000 : 2000 + size]])
        part = np.repeat(["same", "drifted"], [2000, size])
        found = model.estimate_by(ll.Outputs(logits, metadata={"part": part}), ["part"])
        verdicts = {row.group["part"]: row.estimate.shift for row in found}
        shift = verdicts["drifted"]
        assert shift is not None
        assert (shift.evidence > 0.8) == alone
        assert (shift.evidence == 0.0) == (not alone)
        assert (shift.kind is ll.ShiftKind.COLLAPSE) == alone


def test_groups_that_are_judged_do_not_depend_on_their_order() -> None:
    assert largest_groups({0: 5, 1: 9, 2: 5, 3: 7}, 4) == [1, 3, 0, 2]
    assert largest_groups({0: 5, 1: 9, 2: 5, 3: 7}, 3) == [1, 3]
    assert largest_groups(dict.fromkeys(range(10), 5), 3) == []


def test_a_group_is_reduced_by_its_own_state_wherever_its_rows_stand(make_outputs: Maker) -> None:
    model, target = ll.Auto().fit(make_outputs(600)), make_outputs(500, seed=1).logits
    shared, other = (model.informed(judge_rows(model.source_, rows)) for rows in (target, target[:100] * 0.5))
    groups = np.random.default_rng(0).permutation(np.repeat([0, 3, 4, 6], 125))
    own = {3: other, 5: other, 6: shared, 9: other}  # of 5 and 9 there is no row here
    for order in (np.arange(500), np.argsort(groups), np.random.default_rng(1).permutation(500)):
        one = Pass(model, grouped=True, shared=shared, own=own)
        sums = one.sums()
        sums.add(one.reduce(Block(target[order], groups[order])))
        assert sums.numbers() == [ALL, 0, 3, 4, 6]
        for group in (0, 3, 4, 6):
            alone = model.reduce(target[groups == group], own.get(group, shared))
            np.testing.assert_allclose(sums.of(group).sums["value"], alone.sums["value"], rtol=1e-5)


def test_a_group_without_a_state_is_left_alone_where_nothing_is_shared(make_outputs: Maker) -> None:
    model, target = ll.Auto().fit(make_outputs(600)), make_outputs(200, seed=1).logits
    state = model.informed(judge_rows(model.source_, target))
    found = Pass(model, grouped=True, shared=None, own={2: state}).reduce(Block(target, np.arange(200) % 4))
    assert set(found.sums) == {2}
    np.testing.assert_allclose(found.sums[2].sums["count"].sum(), 50)


@pytest.mark.parametrize("n_groups", [1, 2, 300, 5_000])
@pytest.mark.parametrize("least_digits", [0, 1, 50])
def test_rows_are_sorted_by_group_and_key_whatever_the_keys_share(
    n_groups: int, least_digits: int, rng: np.random.Generator
) -> None:
    """Keys that begin alike, in all digits or in all but the last, are sorted by what is left of them."""
    groups = rng.integers(n_groups, size=4_000)
    keys = rng.integers(1 << 10, size=4_000, dtype=np.uint64) << np.uint64(least_digits)
    order, expected = _by_group_and_key(groups, keys, n_groups), np.lexsort((keys, groups))
    np.testing.assert_array_equal(groups[order], groups[expected])
    np.testing.assert_array_equal(keys[order], keys[expected])


def test_samples_of_groups_stay_within_their_cap(rng: np.random.Generator) -> None:
    logits = rng.normal(size=(20_000, 4)).astype(np.float32)
    groups = rng.integers(0, 50, 20_000)
    one = GroupSamples(1_000, most_values=8_000)
    for part in np.array_split(np.arange(20_000), 9):
        one.add(logits[part], hashes(logits[part]), groups[part])
    kept = [one.of(group) for group in range(50)]
    assert all(sample is not None and len(sample) == 40 for sample in kept)  # 8,000 values / (4 classes x 50 groups)
    for group, sample in enumerate(kept):
        assert sample is not None
        np.testing.assert_array_equal(sample.keys, np.sort(hashes(logits[groups == group]))[:40])


_MANY_GROUPS = """
import re
import numpy as np
import leadline as ll
rng = np.random.default_rng(0)
labels = rng.integers(0, 10, 300_000)
logits = rng.normal(size=(300_000, 10)).astype(np.float32)
logits[np.arange(300_000), labels] += 2
model = ll.Auto().fit(logits[:3000], labels[:3000])
def peak():  # in MB, of this program: ru_maxrss would begin with that of the process which started it
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s*(\\d+)", status.read())[1]) // 1024
before = peak()
outputs = ll.Outputs(logits, labels, metadata={"g": np.arange(300_000) % 10_000})
found = model.estimate_by(outputs, "g")
assert len(found) == 10_000
assert abs(np.mean([row.estimate.accuracy for row in found]) - found.overall.estimate.accuracy) < 1e-9
assert all(row.estimate.interval[0] < row.estimate.accuracy < row.estimate.interval[1] for row in found)
inside = np.mean([row.estimate.interval[0] <= row.truth <= row.estimate.interval[1] for row in found])
assert inside > 0.9, inside
print(peak() - before, peak())
"""


def test_auto_over_ten_thousand_groups_stays_small() -> None:
    """The groups add little memory (in MB) to that of the rows themselves, and none is judged from nothing."""
    done = subprocess.run([sys.executable, "-c", _MANY_GROUPS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    added, peak = map(int, done.stdout.split())
    assert added < 400
    assert peak < 1024


# --------------------------------------------------------------------------------------------- judged once, explicitly
def test_compare_learns_the_source_and_judges_each_target_once(
    make_outputs: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def counting(*arguments: Any) -> Any:
        judged.append(1)
        return judge(*arguments)

    monkeypatch.setattr(passes, "judge", counting)
    targets = {"a": make_outputs(80, seed=1), "b": make_outputs(80, seed=2)}
    ll.compare(make_outputs(200), targets, methods=["ac", "doc", "auto", "cot"])
    assert len(judged) == 2


def test_a_known_judgement_gives_the_same_estimate(make_outputs: Maker) -> None:
    target = make_outputs(300, seed=1).logits
    for method in ("auto", "ac", "cot"):
        model = ll.make(method).fit(make_outputs(200))
        told = model._estimate(target, confidence_level=0.9, judgement=judge_rows(model.source_, target))
        assert told.to_dict() == model.estimate(target).to_dict()


def test_a_class_says_how_many_passes_it_needs() -> None:
    with pytest.raises(TypeError, match="Hasty defines advance, so it must say passes = 'many'"):

        class Hasty(ll.Estimator):
            method = "hasty"

            def advance(self, state: object, total: object, sample: object) -> None:
                """Never called, as one pass is declared."""

    driven = drive(ll.make("ac").fit(np.eye(3), [0, 1, 2]), InMemory(np.eye(3)).scan, judged=False)
    assert driven.whole is None
    assert driven.estimate(ALL, 0.9).shift is None
