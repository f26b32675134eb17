"""``leadline monitor``: a nightly job and the person on call, with right and wrong input."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import leadline as ll
from command_line import Run
from leadline import Outputs, write_outputs
from leadline.monitor.monitor import Monitor
from streams import DAY, FIRST, draw

GOOD, BAD, ROWS = 10, 4, 200  # days as on the source, days of more mistakes, rows of a day


def day_of(day: int) -> tuple[Outputs, list[str], list[int]]:
    """Return a day's outputs, ids and labels."""
    logits, labels = draw(ROWS, 50 + day, 2.5 if day < GOOD else 0.6)
    ids = [f"{day}-{row}" for row in range(ROWS)]
    metadata = {
        "ts": FIRST + day * DAY + np.arange(ROWS) * np.timedelta64(60, "s"),
        "id": np.array(ids),
        "channel": np.where(np.arange(ROWS) % 2, "web", "app"),
    }
    return Outputs(logits, metadata=metadata), ids, labels.tolist()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, two folders of daily files, tables of labels, a store of the good days, and one of all."""
    folder = tmp_path_factory.mktemp("monitored")
    ll.make("ac").fit(*draw(2_000, 100)).save(folder / "model.leadline")
    lines = ["id,label"]
    for day in range(GOOD + BAD):
        outputs, ids, labels = day_of(day)
        kind = folder / ("good" if day < GOOD else "bad")
        kind.mkdir(exist_ok=True)
        write_outputs(outputs, kind / f"{day:02}.parquet")
        lines += [f"{one},{label}" for one, label in zip(ids, labels, strict=True)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    spreadsheet = "\r\n".join(line.replace(",", ";") for line in lines[: 1 + 7 * ROWS])
    (folder / "sheet.csv").write_bytes(b"\xef\xbb\xbf" + spreadsheet.encode())
    with Monitor(folder / "monitor.db") as monitor:
        monitor.register("fraud", folder / "model.leadline", by=["channel"])
        for path in sorted((folder / "good").iterdir()):
            monitor.add("fraud", path, batch=f"good/{path.name}")
    shutil.copy(folder / "monitor.db", folder / "fallen.db")
    with Monitor(folder / "fallen.db") as monitor:
        monitor.add_files("fraud", folder / "bad")
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fallen(place: Path) -> Path:
    """The same where the store has the bad days too."""
    Path("fallen.db").replace("monitor.db")
    return place


# ------------------------------------------------------------------------------------------------------ every night
def test_from_nothing_to_an_alarm(place: Path, run: Run) -> None:
    words = ("--by", "channel", "--floor", "0.5", "--every", "1d")
    assert run("monitor", "register", "new.db", "fraud", "model.leadline", *words).code == 0
    first = run("monitor", "add", "new.db", "fraud", "good/0[0-3].parquet")
    assert first.code == 0
    assert first.out.count("good/") == 4
    assert "fine" in first.out
    again = run("monitor", "add", "new.db", "fraud", "good/0[0-4].parquet", "--format", "json")
    assert [row["new"] for row in again.data] == [False] * 4 + [True]
    assert [row["rows"] for row in again.data] == [ROWS] * 5
    night = run("monitor", "add", "new.db", "fraud", "good/0[0-3].parquet", "bad", "--quiet")
    assert night.code == 1
    assert "4 of 8 files were known and not added again." in night.out
    assert "estimated-fall" in night.out
    assert night.err == ""
    assert run("monitor", "verify", "new.db").code == 0


def test_a_file_that_cannot_be_added_keeps_no_other_from_it(place: Path, run: Run) -> None:
    Path("bad/11.parquet").write_bytes(b"cut off")
    error = run("monitor", "add", "monitor.db", "fraud", "bad").error
    assert error.startswith("bad/11.parquet: ")
    assert error.endswith("1 of 4 files were left out; the others are added.")
    windows = run("monitor", "history", "monitor.db", "fraud", "--format", "json").data["windows"]
    assert len(windows) == GOOD + BAD - 1
    assert run("monitor", "status", "monitor.db").code == 1


def test_settings_change_by_registering_again(place: Path, run: Run) -> None:
    assert run("monitor", "register", "monitor.db", "fraud", "model.leadline", "--by", "channel").code == 0
    assert run("monitor", "status", "monitor.db").code == 0
    words = ("--by", "channel", "--floor", "0.99")
    assert run("monitor", "register", "monitor.db", "fraud", "model.leadline", *words).code == 0
    status = run("monitor", "status", "monitor.db", "--format", "json")
    assert status.code == 1
    assert status.data[0]["open_alarms"] == 1


def test_one_time_and_a_name_for_rows_that_have_none(place: Path, run: Run) -> None:
    write_outputs(Outputs(draw(100, 1)[0]), "plain.npz")
    run("monitor", "register", "new.db", "x", "model.leadline")
    added = run(
        "monitor", "add", "new.db", "x", "plain.npz", "--at", "2026-03-02T10:00", "--batch", "b", "--format", "csv"
    )
    assert added.out.splitlines() == ["batch,new,rows,windows", "b,True,100,1"]
    (window,) = run("monitor", "history", "new.db", "x", "--format", "json").data["windows"]
    assert window["window"] == "2026-03-02T00:00:00+00:00"


# -------------------------------------------------------------------------------------------------------- late labels
def test_labels_of_a_spreadsheet(place: Path, run: Run) -> None:
    found = run("monitor", "labels", "monitor.db", "fraud", "sheet.csv", "--format", "json")
    assert found.code == 0
    assert found.data == {"series": "fraud", "joined": 7 * ROWS, "changed": 0, "waiting": 0}
    table = " ".join(run("monitor", "labels", "monitor.db", "fraud", "sheet.csv").out.split())
    assert re.search(r"Realised accuracy lay inside the interval in \d of 7 labelled windows \(nominal 90%\)\.", table)


def test_labels_may_come_before_rows(place: Path, run: Run) -> None:
    found = run("monitor", "labels", "monitor.db", "fraud", "labels.csv")
    assert found.code == 0
    assert f"{BAD * ROWS} labels have no row yet; they wait for it." in found.out
    assert run("monitor", "add", "monitor.db", "fraud", "bad").code == 1
    rules = [one["rule"] for one in run("monitor", "alarms", "monitor.db", "fraud", "--format", "json").data]
    assert {"fall", "estimated-fall"} <= set(rules)
    windows = run("monitor", "history", "monitor.db", "fraud", "--format", "json").data["windows"]
    assert [window["n_labels"] for window in windows] == [ROWS] * (GOOD + BAD)


# ------------------------------------------------------------------------------------------------------------- on call
def test_an_alarm_from_open_to_closed(fallen: Path, run: Run) -> None:
    status = run("monitor", "status", "monitor.db")
    assert status.code == 1
    assert "1 open: estimated-fall" in status.out
    assert "Estimated accuracy is" in status.out
    listed = run("monitor", "alarms", "monitor.db", "--format", "json")
    assert listed.code == 1
    (alarm,) = [one for one in listed.data if one["harmful"]]
    assert (alarm["state"], alarm["series"], alarm["rule"]) == ("open", "fraud", "estimated-fall")
    known = run("monitor", "alarms", "monitor.db", "fraud", "--acknowledge", alarm["number"], "--note", "ticket 512")
    assert known.code == 0
    assert "acknowledged" in known.out
    assert run("monitor", "status", "monitor.db").code == 0
    assert run("monitor", "alarms", "monitor.db", "fraud", "--close", alarm["number"]).code == 0
    assert "is closed already" in run("monitor", "alarms", "monitor.db", "fraud", "--close", alarm["number"]).error
    rows = list(csv.DictReader(io.StringIO(run("monitor", "alarms", "monitor.db", "--closed", "--format", "csv").out)))
    assert [row["state"] for row in rows if row["rule"] == "estimated-fall"] == ["closed"]


def test_history_in_every_form(fallen: Path, run: Run) -> None:
    table = run("monitor", "history", "monitor.db", "fraud", "--last", 3)
    assert table.code == 0  # reading says nothing by its code
    assert table.out.count("2026-03-") == 3
    data = run("monitor", "history", "monitor.db", "fraud", "--format", "json").data
    assert len(data["windows"]) == GOOD + BAD
    assert data["record"]["windows"] == 0
    segment = run("monitor", "history", "monitor.db", "fraud", "--segment", "channel=web", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(segment.out)))
    assert {row["channel"] for row in rows} == {"web"}
    assert {row["n_samples"] for row in rows} == {str(ROWS // 2)}
    every = run("monitor", "history", "monitor.db", "fraud", "--segment", "*", "--every", "1w", "--format", "json")
    assert [window["group"]["channel"] for window in every.data["windows"]] == ["app", "web"] * 2
    assert sum(window["n_samples"] for window in every.data["windows"]) == (GOOD + BAD) * ROWS
    run("monitor", "labels", "monitor.db", "fraud", "labels.csv")
    plain, adaptive = (
        run("monitor", "history", "monitor.db", "fraud", "--format", "json", *more).data["windows"]
        for more in ((), ("--adaptive",))
    )
    assert [one["accuracy"] for one in plain] == [one["accuracy"] for one in adaptive]
    assert [one["interval"] for one in plain] != [one["interval"] for one in adaptive]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_export(place: Path, run: Run, ending: str) -> None:
    name = f"out.{ending}"
    assert run("monitor", "export", "monitor.db", "fraud", "-o", name).code == 0
    rows: list[Any]
    if ending == "parquet":
        rows = pq.read_table(name).to_pylist()
    else:
        text = Path(name).read_text()
        rows = json.loads(text) if ending == "json" else list(csv.DictReader(text.splitlines()))
    assert len(rows) == 3 * GOOD  # all rows, and two segments
    assert "exists; use --force" in run("monitor", "export", "monitor.db", "fraud", "-o", name).error


def test_page(place: Path, run: Run) -> None:
    assert run("monitor", "page", "monitor.db", "-o", "page.html").code == 0
    text = Path("page.html").read_text()
    assert "<!doctype html>" in text.lower()
    assert "fraud" in text
    assert "exists; use --force" in run("monitor", "page", "monitor.db", "-o", "page.html").error
    assert run("monitor", "page", "monitor.db", "-o", "page.html", "--force", "--name", "fraud").code == 0


def test_prune_keeps_what_is_known(place: Path, run: Run) -> None:
    before = run("monitor", "history", "monitor.db", "fraud", "--format", "json").data["windows"]
    assert run("monitor", "prune", "monitor.db", "fraud", "--older-than", "4w").code == 0
    assert run("monitor", "verify", "monitor.db").code == 0
    assert run("monitor", "history", "monitor.db", "fraud", "--format", "json").data["windows"] == before
    write_outputs(Outputs(draw(ROWS, 1)[0], metadata=day_of(3)[0].metadata), "late.npz")
    assert "was pruned and takes no more rows" in run("monitor", "add", "monitor.db", "fraud", "late.npz").error


def test_a_command_is_told_once(fallen: Path, run: Run) -> None:
    script = "import sys, pathlib; pathlib.Path('told.txt').open('a').write(sys.stdin.read())"
    Path("tell.py").write_text(script)
    told = run("monitor", "notify", "monitor.db", "fraud", "--command", f"{sys.executable} tell.py")
    assert told.code == 0
    (channel,) = run("monitor", "channels", "monitor.db", "--format", "json").data
    assert channel["kind"] == "command"
    (alarm,) = [one for one in run("monitor", "alarms", "monitor.db", "--format", "json").data if one["harmful"]]
    run("monitor", "alarms", "monitor.db", "fraud", "--acknowledge", alarm["number"])
    for _ in range(2):
        assert run("monitor", "deliver", "monitor.db").code == 0
    events = [json.loads(line)["event"] for line in Path("told.txt").read_text().splitlines()]
    assert events == ["acknowledged"]
    assert run("monitor", "outbox", "monitor.db").code == 0


# -------------------------------------------------------------------------------------------------------- wrong input
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "monitor.db", "fraud", "none.parquet"), "none.parquet: does not exist."),
        (("add", "monitor.db", "fraud", "none/*.npz"), "no file matches 'none/*.npz'."),
        (("add", "none.db", "fraud", "good"), "store none.db does not exist; register a model first."),
        (("add", "monitor.db", "froud", "good"), "series 'froud' is not registered; registered: fraud."),
        (("add", "monitor.db", "fraud", "bad", "--time", "when"), "column 'when' of times is not in these outputs;"),
        (("add", "monitor.db", "fraud", "bad", "--id", "key"), "column 'key' is not in these outputs;"),
        (("add", "monitor.db", "fraud", "bad", "--at", "gestern"), "--at must be a time such as 2026-11-18"),
        (("add", "monitor.db", "fraud", "bad", "--at", "2026-03-02", "--time", "ts"), "--time names a column, --at"),
        (("add", "monitor.db", "fraud", "bad", "--batch", "b"), "--batch names one file; got 4."),
        (("labels", "monitor.db", "fraud", "none.csv"), "none.csv: does not exist."),
        (("labels", "monitor.db", "fraud", "labels.csv", "--id", "key"), "labels.csv: must have one column 'key';"),
        (("history", "monitor.db", "fraud", "--segment", "channel=mail"), "has no segment {'channel': 'mail'}"),
        (("history", "monitor.db", "fraud", "--segment", "web"), "--segment must be column=value"),
        (("history", "monitor.db", "fraud", "--every", "1h"), "windows of 1d cannot be merged to windows of 1h."),
        (("alarms", "monitor.db", "--close", "1"), "NAME must be given to answer an alarm."),
        (("alarms", "monitor.db", "fraud", "--close", "7"), "series 'fraud' has no alarm 7."),
        (("page", "monitor.db", "-o", "p.html", "--name", "x"), "series 'x' is not registered"),
        (("prune", "monitor.db", "fraud", "--older-than", "1y"), "--older-than must be a number of days or weeks"),
        (("prune", "monitor.db", "fraud", "--older-than", "9999999999d"), "--older-than must be a number of days"),
        (("register", "monitor.db", "x", "none.leadline"), "model file none.leadline does not exist."),
        (("register", "monitor.db", "x", "labels.csv"), "model file labels.csv is damaged or not a Leadline model"),
        (("register", "monitor.db", "x", "model.leadline", "--every", "2d"), "every must be 1h, 1d, 1w, 1mo, or a"),
        (("register", "monitor.db", "x", "model.leadline", "--floor", "80"), "floor must be between 0 and 1; got 80."),
        (("register", "monitor.db", "fraud", "model.leadline"), "cannot become"),
        (("status", "none.db"), "store none.db does not exist; register a model first."),
        (("status", "good"), "store good is a folder"),
        (("status", "labels.csv"), "cannot be used (file is not a database)."),
        (("status", "mysql://host/name"), "a store must be in SQLite or PostgreSQL; got 'mysql'."),
        (("register", "none/new.db", "x", "model.leadline"), "folder none of the store does not exist."),
    ],
)  # fmt: skip
def test_wrong_words(place: Path, run: Run, words: tuple[str, ...], message: str) -> None:
    assert message in run("monitor", *words).error


def test_wrong_rows(place: Path, run: Run) -> None:
    logits, _ = draw(50, 1)
    times, channel = np.full(50, FIRST), np.full(50, "web")

    def error(**metadata: object) -> str:
        write_outputs(Outputs(logits, metadata=metadata), "rows.npz", force=True)
        return run("monitor", "add", "monitor.db", "fraud", "rows.npz").error

    assert "column 'ts' of times is not in these outputs" in error(channel=channel)
    assert "column 'channel' is not in these outputs" in error(ts=times)
    assert "holds numbers, of an unknown unit" in error(ts=np.arange(50) + 1_700_000_000, channel=channel)
    assert "ids must be distinct within a batch" in error(ts=times, channel=channel, id=np.zeros(50, dtype=int))
    write_outputs(Outputs(logits[:, :2], metadata={"ts": times, "channel": channel}), "two.npz")
    error_classes = run("monitor", "add", "monitor.db", "fraud", "two.npz").error
    assert "logits must have 3 classes, as in fit; got 2." in error_classes
    shutil.copy("good/01.parquet", "good/00.parquet")
    error_again = run("monitor", "add", "monitor.db", "fraud", "good/00.parquet").error
    assert "batch 'good/00.parquet' was added before with other rows" in error_again


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1-1,cat", "labels must be numbers of classes, as the model has no names for them; got 'cat'."),
        ("1-1,7", "labels must be from 0 to 2"),
        ("1-1,0\n1-1,1", "ids must have one label each"),
        (",1", "line 2 has a label but no id."),
        ("1-1,", "no line has a label."),
    ],
)
def test_wrong_labels(place: Path, run: Run, lines: str, message: str) -> None:
    Path("wrong.csv").write_text(f"id,label\n{lines}\n")
    assert message in run("monitor", "labels", "monitor.db", "fraud", "wrong.csv").error


def test_damaged_stores(place: Path, run: Run) -> None:
    data = bytearray(Path("monitor.db").read_bytes())
    middle = len(data) // 2
    Path("cut.db").write_bytes(data[:20_000])
    data[middle : middle + 9_000] = bytes(9_000)
    Path("holed.db").write_bytes(data)
    assert "cannot be used" in run("monitor", "status", "cut.db").error
    checked = run("monitor", "verify", "holed.db")
    assert checked.code == 1
    assert checked.err.startswith("leadline: ")
    assert checked.out == ""


def test_a_series_without_rows(place: Path, run: Run) -> None:
    run("monitor", "register", "new.db", "empty", "model.leadline")
    assert "no data yet" in run("monitor", "status", "new.db").out
    assert run("monitor", "alarms", "new.db").out == "No alarm.\n"
    assert run("monitor", "history", "new.db", "empty", "--format", "json").data["windows"] == []
    for words in (
        ("page", "new.db", "-o", "p.html"),
        ("export", "new.db", "empty", "-o", "e.csv"),
        ("verify", "new.db"),
    ):
        assert run("monitor", *words).code == 0


def test_every_command_is_in_the_help(run: Run) -> None:
    text = run("monitor", "--help").out
    known = "register add labels history export alarms status page prune verify notify channels outbox deliver demo"
    assert all(f" {word} " in text for word in known.split())
