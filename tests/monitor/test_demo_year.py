"""The demo of the monitor: only the harmful change alarms, and its commands work."""

from __future__ import annotations

import shlex

import pytest

from command_line import Run
from leadline.cli.demonstration import year_document
from leadline.demo.year import PAGE, STORE, Year, run
from leadline.errors import InputError
from leadline.monitor.monitor import Monitor


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Year:
    """The year with a cheaper method than the demo's."""
    return run(tmp_path_factory.mktemp("year") / "new folder", method="ac")


def test_only_the_harmful_change_alarms(year: Year) -> None:
    fails = year.phases[-1]
    harmful = [one for one in year.seen if one.alarm.harmful]
    assert {one.alarm.rule for one in harmful} == {"estimated-fall", "fall"}
    assert all(fails.first < one.on < fails.last for one in harmful)
    assert all(one.alarm.segments == ({"site": "north"},) for one in harmful)
    assert all(1 < one.weeks < 10 for one in harmful)


def test_the_changes_are_what_they_are_said_to_be(year: Year) -> None:
    usual, other_mix, _, fails = year.phases
    assert abs(other_mix.truth - usual.truth) < 0.02
    assert fails.by_site["north"][0] < usual.truth - 0.1
    assert abs(fails.by_site["south"][0] - usual.truth) < 0.02
    assert year.record.windows == 51  # the labels of the last week are still to come


def test_files_and_store_are_sound(year: Year) -> None:
    assert len(list((year.folder / "weeks").iterdir())) == 52
    assert "<!doctype html>" in (year.folder / PAGE).read_text().lower()
    with Monitor(year.folder / STORE) as monitor:
        assert monitor.verify() == []
        assert len(monitor.history("digits", {"site": "north"})) == 52
    with pytest.raises(InputError, match=r"monitor\.db exists; use --force to overwrite it"):
        run(year.folder)


def test_the_printed_commands_work(year: Year, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(year.folder.parent)
    document = year_document(year, year.folder.name)
    for path in list((year.folder / "weeks").iterdir()):  # so that adding them by hand takes less time
        if "2025-01" not in path.name:
            path.unlink()
    found = [run(*shlex.split(line)[1:]) for line in document.commands]
    assert {one.err for one in found} == {""}
    # Two alarms are open; acknowledged one after the other; January has none.
    assert [one.code for one in found] == [1, 0, 1, 0, 0, 0, 0, 0]
    whole, january = (Monitor(year.folder / name).history("digits").rows for name in (STORE, "mine.db"))
    assert [row.estimate.accuracy for row in january] == [row.estimate.accuracy for row in whole[:4]]
