"""What a terminal would obey, in every name and value that a command can be given, reaches none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import leadline as ll
from command_line import Run
from leadline.cli import main
from leadline.cli.application import COMMANDS
from leadline.cli.monitor import app as monitor_app
from leadline.results.render import RENDERERS

# Sets the title, rings, colours (in one byte), goes back to the beginning of the line and turns the text around.
BAD = "x\x1b]0;owned\x07\x9b31m\r\u202e"
SOURCE, MODEL, TARGET, SHEET, STORE, LATE = (
    f"{BAD}.{ending}" for ending in ("npz", "leadline", "parquet", "csv", "db", "late.csv")
)
CLASSES = [f"{BAD}{number}" for number in range(3)]
SERIES = "owned"  # names of series must be printable, and are refused below where they are not

#: Commands that succeed, or find something: for each format where there are several.
SHOWN = {
    "fit": ("fit", SOURCE, "--method", "ac", "-o", MODEL, "--force"),
    "estimate": ("estimate", MODEL, TARGET, "--by", BAD),
    "estimate, gate": ("estimate", MODEL, TARGET, "--by", BAD, "--min-accuracy", "1"),
    "estimate, labelled": ("estimate", MODEL, TARGET, "--labelled", SHEET, "--by", BAD),
    "compare": ("compare", SOURCE, TARGET, "--methods", "ac,atc-mc"),
    "plan": ("plan", MODEL, TARGET, "--id", f"{BAD}id", "--budget", "9", "-o", f"{BAD}2.csv", "--force"),
    "plan, errors": ("plan", MODEL, TARGET, "--find-errors", "--budget", "9", "-o", f"{BAD}3.csv", "--force"),
    "recalibrate": ("recalibrate", MODEL, TARGET, "--labelled", SHEET, "-o", f"{BAD}2.leadline", "--force"),
    "methods": ("methods",),
    "bench": ("bench", "list", "--data", BAD),
    "monitor add": ("monitor", "add", STORE, SERIES, TARGET),
    "monitor labels": ("monitor", "labels", STORE, SERIES, LATE, "--id", f"{BAD}id"),
    "monitor history": ("monitor", "history", STORE, SERIES, "--segment", "*"),
    "monitor alarms": ("monitor", "alarms", STORE),
    "monitor status": ("monitor", "status", STORE),
    "monitor channels": ("monitor", "channels", STORE),
    "monitor outbox": ("monitor", "outbox", STORE),
}
WRITTEN = {
    "report": ("report", MODEL, TARGET, "--by", BAD, "--methods", "ac", "--format", "md"),
    "report, data": ("report", MODEL, TARGET, "--by", BAD, "--methods", "ac", "--format", "json"),
    "figure": ("figure", "reliability", SOURCE, "-o", f"{BAD}.svg", "--force"),
    "estimate, file": ("estimate", MODEL, TARGET, "-o", f"{BAD}out.json", "--force"),
    "monitor register": ("monitor", "register", STORE, f"{SERIES} too", MODEL),
    "monitor export": ("monitor", "export", STORE, SERIES, "-o", f"{BAD}.json", "--force"),
    "monitor page": ("monitor", "page", STORE, "-o", f"{BAD}.html", "--force"),
    "monitor prune": ("monitor", "prune", STORE, SERIES),
    "monitor verify": ("monitor", "verify", STORE),
    "monitor notify": ("monitor", "notify", STORE, SERIES, "--command", "true"),
    "monitor deliver": ("monitor", "deliver", STORE),
}
#: Commands that are refused.
REFUSED = {
    "no command": (BAD,),
    "no option": ("estimate", MODEL, TARGET, f"--{BAD}"),
    "no source": ("fit", f"{BAD}no.npz", "-o", "m.leadline"),
    "no method": ("fit", SOURCE, "--method", BAD, "-o", "m.leadline"),
    "no option of a method": ("fit", SOURCE, "--method", "ac", "--option", f"{BAD}=1", "-o", "m.leadline"),
    "no folder": ("fit", SOURCE, "--method", "ac", "-o", f"{BAD}no/m.leadline"),
    "no model": ("estimate", f"{BAD}no.leadline", TARGET),
    "no target": ("estimate", MODEL, f"{BAD}no.npz"),
    "no file of a pattern": ("estimate", MODEL, f"{BAD}no*.npz"),
    "no column": ("estimate", MODEL, TARGET, "--by", f"{BAD}no"),
    "no condition": ("estimate", MODEL, TARGET, "--where", f"{BAD} ="),
    "no column of a condition": ("estimate", MODEL, TARGET, "--where", "'a' = \"b\""),
    "no format": ("estimate", MODEL, TARGET, "--format", BAD),
    "no number": ("estimate", MODEL, TARGET, "--level", BAD),
    "no engine": ("estimate", MODEL, TARGET, "--engine", BAD),
    "no size": ("estimate", MODEL, TARGET, "--memory-limit", BAD),
    "no class": ("estimate", MODEL, TARGET, "--classes", f"a,{BAD},c"),
    "no outputs": ("estimate", MODEL, SHEET),
    "no sheet": ("estimate", MODEL, TARGET, "--labelled", LATE),
    "no methods": ("compare", SOURCE, TARGET, "--methods", BAD),
    "no kept column": ("plan", MODEL, TARGET, "--budget", "9", "--keep", f"{BAD}no", "-o", "p.csv"),
    "no id": ("plan", MODEL, TARGET, "--budget", "9", "--id", f"{BAD}no", "-o", "p.csv"),
    "no kind of plan": ("plan", MODEL, TARGET, "--budget", "9", "-o", f"p.{BAD}"),
    "no report": ("report", MODEL, TARGET, "-o", f"r.{BAD}"),
    "no figure": ("figure", BAD, SOURCE, "-o", "f.svg"),
    "no panel": ("figure", "plane", SOURCE, "--panel", BAD, "-o", "f.svg"),
    "no rows": ("figure", "time", SHEET, "-o", "f.svg"),
    "no suite": ("bench", "run", BAD),
    "no store": ("monitor", "status", f"{BAD}no.db"),
    "no store of a kind": ("monitor", "status", f"{BAD}://"),
    "no series": ("monitor", "history", STORE, f"{BAD}no"),
    "no name of a series": ("monitor", "register", STORE, BAD, MODEL),
    "no window": ("monitor", "register", STORE, SERIES, MODEL, "--every", BAD),
    "no segment": ("monitor", "history", STORE, SERIES, "--segment", f"{BAD}={BAD}no"),
    "no time": ("monitor", "add", STORE, SERIES, TARGET, "--at", BAD),
    "no duration": ("monitor", "prune", STORE, SERIES, "--older-than", BAD),
    "no label": ("monitor", "labels", STORE, SERIES, LATE, "--id", f"{BAD}id", "--label", f"{BAD}no"),
    "no channel": ("monitor", "notify", STORE, SERIES, "--webhook", BAD),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, make_outputs: Callable[..., ll.Outputs]) -> Path:
    """Return a folder in which everything has such a name."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ll.write_outputs(make_outputs(300, 3, classes=CLASSES), SOURCE)
        ids = np.array([f"{BAD}{number}" for number in range(300)])
        columns = {
            BAD: ids.astype(object)[np.arange(300) % 2], f"{BAD}id": ids,
            "ts": np.datetime64("2026-01-01") + np.arange(300) * np.timedelta64(8, "m"),
        }  # fmt: skip
        ll.write_outputs(make_outputs(300, 3, seed=1, classes=CLASSES, metadata=columns), TARGET)
        assert main(["fit", SOURCE, "--method", "ac", "-o", MODEL]) == 0
        assert main(["plan", MODEL, TARGET, "--id", f"{BAD}id", "--budget", "20", "-o", SHEET]) == 0
        Path(SHEET).write_bytes(Path(SHEET).read_bytes().replace(b",,", f',"{CLASSES[0]}",'.encode()))
        Path(LATE).write_bytes(f'"{BAD}id",label\n"{ids[0]}","{CLASSES[0]}"\n'.encode())
        words = [
            "monitor",
            "register",
            STORE,
            SERIES,
            MODEL,
            "--by",
            BAD,
            "--id",
            f"{BAD}id",
            "--floor",
            "0.99",
            "--every",
        ]
        assert main([*words, "1h"]) == 0
        assert main(["monitor", "add", STORE, SERIES, TARGET]) in (0, 1)
    return folder


@pytest.fixture
def shown(world: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what a command shows on a terminal that somebody watches."""
    monkeypatch.chdir(world)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("leadline.cli.terminal._watched", lambda quiet: not quiet)

    def show(words: tuple[str, ...], codes: tuple[int, ...]) -> str:
        result = run(*words)
        assert result.code in codes, result
        text = result.out + result.err
        for sign in ("\x1b]", "\x07", "\x9b", "\u202e"):
            assert sign not in text
        assert "\r" not in text.replace("\r\x1b[", "")  # bars of progress go back to the beginning of their own line
        return text

    return show


@pytest.mark.parametrize("format", RENDERERS)
@pytest.mark.parametrize("name", SHOWN)
def test_results(name: str, format: str, shown: Callable[..., str]) -> None:
    text = shown((*SHOWN[name], "--format", format), (0, 1))
    silent = name in ("methods", "bench", "monitor channels", "monitor outbox")  # nothing of anybody is shown
    assert silent or "owned" in text


@pytest.mark.parametrize("name", WRITTEN)
def test_files(name: str, shown: Callable[..., str]) -> None:
    assert shown(WRITTEN[name], (0,))


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, shown: Callable[..., str]) -> None:
    assert "leadline: error: " in shown(REFUSED[name], (2,)).splitlines()[-1]


def test_every_command_is_tried() -> None:
    tried = {words[:2] if words[0] == "monitor" else words[:1] for words in (*SHOWN.values(), *WRITTEN.values())}
    names = {name: command.callback for command in monitor_app.registered_commands for name in [command.name]}
    known = {("monitor", name or callback.__name__) for name, callback in names.items() if callback is not None}
    assert {(name,) for name in COMMANDS} - {("monitor",), ("demo",)} <= tried
    assert known - {("monitor", "demo")} <= tried
