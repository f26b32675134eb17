"""The monitor on real tables that drift with time, with labels that come seven windows late.

    python docs/studies/replay.py DATA OUT.json

Each stream begins with rows like the source ("clean") and goes on with the periods in their order, 500 rows a window;
the labels of all rows of a window come seven windows later. Intervals are taken as they stood when the window was the
latest, plain and adaptive. A period is bad if its accuracy is more than the tolerance below the source's. An alarm is
known in the window after whose arrival it was first there; it is false if neither the period of the window that it
names nor the one before is bad.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import leadline as ll
from leadline.monitor.monitor import Monitor

ROWS, LATE = 500, 7
KINDS = ("hgb", "mlp")
DAY, FIRST = np.timedelta64(1, "D"), np.datetime64("2026-01-01")


@dataclass(frozen=True)
class Window:
    """Rows of a window, and the place and name of its period."""

    logits: Any
    labels: Any
    period: int
    name: str

    @property
    def accuracy(self) -> float:
        return float((self.logits.argmax(axis=1) == self.labels).mean())


def in_time(path: Path) -> tuple[bool, list[int]]:
    """Return what sorts files in the order of time: clean rows first."""
    return not path.stem.endswith("clean"), [int(number) for number in re.findall(r"\d+", path.stem)]


def windows_of(folder: Path) -> Iterator[Window]:
    """Yield windows in the order of time; of a period with fewer rows than a window, one."""
    for place, path in enumerate(sorted(folder.glob("target_*.npz"), key=in_time)):
        period = ll.read_outputs(path)
        assert period.labels is not None
        for rows in np.array_split(np.arange(len(period)), max(1, round(len(period) / ROWS))):
            yield Window(period.logits[rows], period.labels[rows], place, path.stem.removeprefix("target_"))


def replay(folder: Path, place: Path) -> dict[str, Any]:
    """Return what the monitor said of one stream."""
    windows = list(windows_of(folder))
    known: dict[int, int] = {}
    plain, adaptive = [], []
    with Monitor(place) as monitor:
        monitor.register("x", ll.Auto().fit(ll.read_outputs(folder / "source.npz")))
        for step, window in enumerate(windows):
            n = len(window.labels)
            ids = [f"{step}-{row}" for row in range(n)]
            metadata = {"ts": np.full(n, FIRST + step * DAY), "id": np.array(ids)}
            monitor.add("x", ll.Outputs(window.logits, metadata=metadata))
            if step >= LATE:
                late = windows[step - LATE]
                monitor.add_labels("x", [f"{step - LATE}-{row}" for row in range(len(late.labels))], late.labels)
            plain.append(monitor.watched("x").points[-1])
            adaptive.append(monitor.watched("x", adaptive=True).points[-1].interval)
            for alarm in monitor.alarms("x"):
                known.setdefault(alarm.number, step)
        found = monitor.watched("x")
    series = found.series
    first_window = found.points[0].window.number
    alarms = [
        {"rule": alarm.rule, "at": alarm.first.number - first_window, "known": known[alarm.number]}
        for alarm in sorted(found.alarms, key=lambda alarm: known[alarm.number])
    ]
    truths = [window.accuracy for window in windows]
    return {
        "stream": folder.name, "reference": series.reference, "tolerance": series.tolerance,
        "periods": periods(windows, series.reference - series.tolerance), "truths": truths,
        "estimates": [point.accuracy for point in plain],
        "plain": [list(point.interval) for point in plain], "adaptive": [list(interval) for interval in adaptive],
        "alarms": alarms,
    }  # fmt: skip


def periods(windows: list[Window], level: float) -> list[dict[str, Any]]:
    """Return the periods: their windows, their accuracy, and whether they are bad."""
    found = []
    for place in sorted({window.period for window in windows}):
        mine = [step for step, window in enumerate(windows) if window.period == place]
        right = sum(windows[step].accuracy * len(windows[step].labels) for step in mine)
        accuracy = right / sum(len(windows[step].labels) for step in mine)
        found.append({
            "name": windows[mine[0]].name, "first": mine[0], "last": mine[-1], "accuracy": accuracy,
            "bad": bool(accuracy < level),
        })  # fmt: skip
    return found


def period_at(stream: dict[str, Any], step: int) -> int:
    return next(place for place, one in enumerate(stream["periods"]) if one["first"] <= step <= one["last"])


def is_false(stream: dict[str, Any], alarm: dict[str, Any]) -> bool:
    place = period_at(stream, alarm["at"])
    return not any(one["bad"] for one in stream["periods"][max(0, place - 1) : place + 1])


def summary(streams: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often truth lay inside, and alarms against true falls."""
    found: dict[str, Any] = {"streams": len(streams), "windows": sum(len(one["truths"]) for one in streams)}
    for kind in ("plain", "adaptive"):
        inside, widths = [], []
        for stream in streams:
            for truth, (low, high) in zip(stream["truths"], stream[kind], strict=True):
                inside.append(low <= truth <= high)
                widths.append(high - low)
        found[kind] = {"inside": float(np.mean(inside)), "mean_width": float(np.mean(widths))}
    errors = [abs(a - b) for one in streams for a, b in zip(one["truths"], one["estimates"], strict=True)]
    found["mean_error"] = float(np.mean(errors))
    falls = [
        (stream, next(one["first"] for one in stream["periods"] if one["bad"]))
        for stream in streams if any(one["bad"] for one in stream["periods"])
    ]  # fmt: skip
    found["streams_that_fall"] = len(falls)
    for rule in ("estimated-fall", "fall", "changed"):
        delays = []
        for stream, began in falls:
            mine = [one for one in stream["alarms"] if one["rule"] == rule and not is_false(stream, one)]
            after = [one["known"] for one in mine if one["known"] >= began]
            if after:
                delays.append(min(after) - began + 1)
        raised = [(stream, one) for stream in streams for one in stream["alarms"] if one["rule"] == rule]
        found[rule] = {
            "raised": len(raised), "false": sum(is_false(stream, one) for stream, one in raised),
            "falls_found": len(delays), "median_delay": float(np.median(delays)) if delays else None,
            "delays": sorted(delays),
        }  # fmt: skip
    return found


def main() -> None:
    data, out = Path(sys.argv[1]) / "logits" / "tabular_time", Path(sys.argv[2])
    streams = []
    with tempfile.TemporaryDirectory() as place:
        for folder in sorted(data.iterdir()):
            if folder.name.endswith(KINDS):
                streams.append(replay(folder, Path(place) / f"{folder.name}.db"))
                print(folder.name, json.dumps(summary(streams[-1:])), flush=True)
    by_data: dict[str, list[dict[str, Any]]] = {}
    for stream in streams:
        by_data.setdefault(stream["stream"].rsplit("_", 1)[0], []).append(stream)
    result = {
        "rows": ROWS, "late": LATE, "version": ll.__version__, "all": summary(streams),
        "by_data": {name: summary(mine) for name, mine in by_data.items()}, "streams": streams,
    }  # fmt: skip
    out.write_text(json.dumps(_rounded(result), indent=1) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
