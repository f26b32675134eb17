"""The campaign in short: the same targets and checks as in make fuzz, with few changes that are the same every time."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import leadline
from fuzz import numbers, ways
from fuzz.__main__ import reproduce
from fuzz.mutation import mutations
from fuzz.numbers import Case, Part
from fuzz.target import BrokenPromiseError, Target, unless_refused
from fuzz.targets import TARGETS
from fuzz.worker import COUNTS, FOUND, REFUSED, TAKEN, Log, current
from leadline import InputError

#: How many changed inputs each target gets here; those that are read twice or estimated with get fewer.
CHANGES = dict.fromkeys(TARGETS, 50) | {"parquet": 15, "arrow": 15, "feather": 5, "model": 10, "download": 30}
DRIVEN = {"numbers", "ways"}  # by hypothesis
SHORT = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of urllib, as for downloads
@pytest.mark.parametrize("name", sorted(TARGETS.keys() - DRIVEN))
def test_changed_bytes_are_taken_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    assert any([target.attempt(seed) for seed in target.seeds])  # noqa: C419 - each is an attempt
    became = [target.attempt(data) for data in islice(mutations(target.seeds, 0), CHANGES[name])]
    assert not all(became)


@pytest.mark.parametrize("method", leadline.METHODS)
def test_no_numbers_break_an_estimator(method: str) -> None:
    estimated = []

    @settings(SHORT, max_examples=4 if method == "auto" else 8)
    @given(numbers.cases((method,)))
    def check(case: Case) -> None:
        estimated.append(numbers.check(case))

    check()
    assert any(estimated)


@pytest.mark.parametrize("method", leadline.METHODS)
def test_every_way_to_ask_has_the_same_answer(method: str, tmp_path: Path) -> None:
    parts = Part("normal", 120, 0, 0, "f4"), Part("heavy tails", 60, 0, 1, "f4")
    assert ways.check(Case(method, 3, *parts, "mostly right"), tmp_path)


def test_unsound_estimates_are_found_out() -> None:
    model = leadline.make("ac").fit(np.eye(3) * 3, [0, 1, 2])
    estimate = model.estimate(np.eye(3))
    numbers.require_sound(estimate)
    for field, value in (("accuracy", float("nan")), ("interval", (0.0, 0.0)), ("correctness", np.array([2.0]))):
        broken = leadline.Estimate(**{**vars(estimate), field: value})
        with pytest.raises(BrokenPromiseError):
            numbers.require_sound(broken)


def test_what_is_found_is_kept_and_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(data: bytes) -> bool:
        if data == b"bad":
            raise ZeroDivisionError
        return data == b"good"

    folder = tmp_path / "planted"
    folder.mkdir()
    np.zeros(3, np.int64).tofile(folder / COUNTS)
    target, log = Target(attempt, [b"good"]), Log(folder)
    for data in (b"good", b"other", b"bad", b"bad"):
        log.attempt(target, data)
    assert [int(log.counts[what]) for what in (TAKEN, REFUSED, FOUND)] == [1, 1, 2]
    assert current(folder) == b"bad"
    (crash,) = (path for path in folder.glob("crash-*") if path.suffix != ".txt")
    assert crash.read_bytes() == b"bad"
    assert "ZeroDivisionError" in crash.with_name(f"{crash.name}.txt").read_text()
    monkeypatch.setitem(TARGETS, "planted", lambda _: target)
    with pytest.raises(ZeroDivisionError):
        reproduce(crash)
    crash.write_bytes(b"good")
    assert reproduce(crash) == 0


def test_a_refusal_of_many_lines_is_a_finding() -> None:
    def refuse() -> None:
        raise InputError("one\ntwo")

    with pytest.raises(BrokenPromiseError, match="one readable line"):
        unless_refused(refuse)
