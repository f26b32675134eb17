"""How often the monitor's alarms are false, and how soon they come, beside the usual rule of three standard deviations.

Run ``make bench-alarms``. Simulated years of daily windows, and real outputs estimated by ``auto`` window by window,
unchanged at first and then really shifted. Writes ``benchmarks/results/alarms.json`` and the tables of
``docs/monitor-alarms.md``; ``--tables`` writes the tables only.

The usual rule: mean and standard deviation of the first 10 or 30 windows; an alarm where the estimate of a window is
more than three of these standard deviations below that mean.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import leadline as ll
from leadline.monitor.alarms import RULES, Track, WholeTrack, judge
from leadline.monitor.alarms.detector import spans
from leadline.monitor.alarms.falls import fall_evidence
from leadline.monitor.alarms.tracks import Coins, estimated_coins, labelled_coins
from leadline.monitor.records import Series
from leadline.monitor.windows import Every
from leadline.results.render import Document, Table, render
from pages import filled

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "alarms.json"
PAGE = ROOT / "docs" / "monitor-alarms.md"
DATA = Path(os.environ.get("LEADLINE_DATA", ROOT.parent / "shared" / "data")) / "logits"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAYS, CHANGE = 365, 200
SIZES = (100, 1_000, 10_000, 100_000)
FALLS = (0.0, 0.01, 0.02, 0.05, 0.1)
REFERENCE, ROW_SD, WINDOW_SD = 0.9, 0.17, 0.003  # of estimated correctness; what the rows of a window err together
SEGMENT_ACCURACY = np.linspace(0.84, 0.96, 10)
STREAMS = (
    ("tabular_time/flights_delay_hgb", "month12", 200),
    ("tabular_time/flights_delay_hgb", "month12", 1_000),
    ("cifar10c/resnet20", "gaussian_noise_2", 1_000),
    ("tabular_time/elec_a_hgb", "t10", 1_000),
    ("mnist/cnn_bal_s0", "mnist_m", 1_000),
    ("tabular_time/gas12_mlp", "batch8", 1_000),
    ("tabular_time/flights_carrier_hgb", "month12", 1_000),
)
REAL_WINDOWS, REAL_CHANGE = 150, 120
RULED = ("estimated-fall", "fall", "changed")


def series(tolerance: float = 0.02, **settings: Any) -> Series:
    """Return a watched series with the defaults of the monitor."""
    return Series(
        **{
            "name": "benchmark", "model_id": "", "method": "auto", "classes": (), "every": "1d", "by": ("segment",),
            "time": "time", "id": "id", "reference": REFERENCE, "n_source": 50_000, "floor": None,
            "tolerance": tolerance, "false_alarm_every": 1000.0, "confidence_level": 0.9,
            "registered_at": datetime(2026, 1, 1, tzinfo=UTC), **settings,
        }
    )  # fmt: skip


def steady(n: int) -> tuple[Ints, Floats]:
    """Return rows and accuracies, shapes (t, k), of the parts of a year in which every day is like the other."""
    return np.full((DAYS, 1), n), np.full((DAYS, 1), REFERENCE)


def quiet_week_ends(n: int) -> tuple[Ints, Floats]:
    """Return a year with a tenth of the rows on two days of each week."""
    rows, accuracy = steady(n)
    rows[np.arange(DAYS) % 7 >= 5] //= 10
    return rows, accuracy


def seasonal_mix(n: int) -> tuple[Ints, Floats]:
    """Return a year in which ten segments, 84 to 96 % accurate, are more and less frequent by week and by season."""
    day = np.arange(DAYS)[:, None]
    tilt = 0.25 * np.sin(2 * np.pi * day / 365) + 0.25 * (day % 7 >= 5)
    shares = np.exp(-tilt * np.linspace(-1, 1, 10))
    rows = np.maximum(np.rint(n * shares / shares.sum(axis=1, keepdims=True)), 1).astype(np.int64)
    return rows, np.tile(SEGMENT_ACCURACY, (DAYS, 1))


SCENARIOS: Mapping[str, Callable[[int], tuple[Ints, Floats]]] = {
    "steady": steady,
    "quiet week-ends": quiet_week_ends,
    "seasonal mix of segments": seasonal_mix,
}


def simulated(
    rows: Ints, accuracy: Floats, fall: float, rng: np.random.Generator
) -> tuple[Track, dict[tuple[Any, ...], Track]]:
    """Return all rows and, if there is more than one part, the parts of one simulated year."""
    level = accuracy - fall * (np.arange(DAYS)[:, None] >= CHANGE)
    noise = rng.normal(size=rows.shape) * ROW_SD / np.sqrt(rows) + rng.normal(scale=WINDOW_SD, size=(DAYS, 1))
    estimate, right = np.clip(level + noise, 0.0, 1.0), rng.binomial(rows, level).astype(float)
    numbers, total = np.arange(DAYS), rows.sum(axis=1)
    parts = {
        (column,): Track(numbers, rows[:, column], estimate[:, column], rows[:, column], right[:, column])
        for column in range(rows.shape[1])
    }
    whole = Track(numbers, total, (rows * estimate).sum(axis=1) / total, total, right.sum(axis=1))
    return whole, parts if len(parts) > 1 else {}


def three_sigma(accuracy: Floats, chunks: int) -> list[int]:
    """Return the windows at which the usual rule alarms."""
    usual = accuracy[:chunks]
    below = accuracy < usual.mean() - 3 * usual.std(ddof=1)
    below[:chunks] = False
    return [int(place) for place in np.flatnonzero(below)]


def count(places: Iterable[int]) -> int:
    """Return the number of alarms: windows in a row are one."""
    known = set(places)
    return sum(place - 1 not in known for place in known)


def raised(coins: Coins, watched: Series) -> list[int]:
    """Return the windows at which the detector alarms."""
    return [span.raised for span in spans(fall_evidence(coins, watched), watched.false_alarm_every)]


def methods(whole: Track, parts: Mapping[tuple[Any, ...], Track]) -> dict[str, list[int]]:
    """Return the alarms of every rule in one year."""
    return {
        "estimated-fall": raised(estimated_coins(whole, parts), series()),
        "estimated-fall, tolerance 0.5": raised(estimated_coins(whole, parts), series(0.005)),
        "fall": raised(labelled_coins(whole, parts), series()),
        "three sigma, 10 windows": three_sigma(whole.accuracy, 10),
        "three sigma, 30 windows": three_sigma(whole.accuracy, 30),
    }


def simulate(years: int) -> Iterable[dict[str, Any]]:
    """Yield false alarms a year, or share found and delay, by scenario, size, fall and rule."""
    for scenario, build in SCENARIOS.items():
        for n in SIZES:
            for fall in FALLS:
                rng = np.random.default_rng([n, round(1000 * fall), len(scenario)])
                alarms: dict[str, list[list[int]]] = {}
                for _ in range(years):
                    for name, found in methods(*simulated(*build(n), fall, rng)).items():
                        alarms.setdefault(name, []).append(found)
                for name, by_year in alarms.items():
                    row = {"scenario": scenario, "rows": n, "fall": fall, "rule": name, "years": years}
                    yield row | (
                        outcome(by_year) if fall else {"false_alarms": float(np.mean([count(one) for one in by_year]))}
                    )
                print(scenario, n, fall, flush=True)


def outcome(by_year: list[list[int]]) -> dict[str, float | None]:
    """Return the share of falls that were found, and the mean number of windows until then."""
    first = [next((place for place in found if place >= CHANGE), None) for found in by_year]
    delays = [place - CHANGE + 1 for place in first if place is not None]
    return {"found": len(delays) / len(first), "delay": float(np.mean(delays)) if delays else None}


def estimated(name: str, target: str, n: int) -> dict[str, Any]:
    """Return the windows of a real stream, resampled: unchanged at first, then shifted; estimated one by one."""
    rng = np.random.default_rng(n)
    source, unchanged, shifted = (load(name, part) for part in ("source", "target_clean", f"target_{target}"))
    model = ll.make("auto").fit(*source)
    windows: dict[str, list[float]] = {"accuracy": [], "distance": [], "noise": [], "right": []}
    for window in range(REAL_WINDOWS):
        logits, labels = unchanged if window < REAL_CHANGE else shifted
        rows = rng.integers(len(labels), size=n)
        estimate = model.estimate(logits[rows])
        shift = estimate.shift
        assert shift is not None
        windows["accuracy"].append(estimate.accuracy)
        windows["distance"].append(shift.distance)
        windows["noise"].append(shift.noise)
        windows["right"].append(float((logits[rows].argmax(axis=1) == labels[rows]).sum()))
    truth = [float((logits.argmax(axis=1) == labels).mean()) for logits, labels in (source, unchanged, shifted)]
    print(name, n, flush=True)
    return {
        "model": name, "target": target, "rows": n, "source_rows": len(source[1]), "truth": truth,
        "windows": {what: [round(value, 5) for value in values] for what, values in windows.items()},
    }  # fmt: skip


def load(name: str, part: str) -> tuple[NDArray[np.float32], Ints]:
    """Return logits and labels."""
    file = np.load(DATA / name / f"{part}.npz")
    return file["logits"].astype(np.float32), file["labels"]


def judged(stream: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the windows at which each rule alarms in a real stream."""
    found = {name: np.asarray(values) for name, values in stream["windows"].items()}
    rows, numbers = np.full(REAL_WINDOWS, stream["rows"]), np.arange(REAL_WINDOWS)
    none = np.zeros((REAL_WINDOWS, 0))
    whole = WholeTrack(
        numbers, rows, found["accuracy"], rows, found["right"], found["distance"], found["noise"], none, none
    )  # fmt: skip
    watched = series(reference=stream["truth"][0], n_source=stream["source_rows"])
    windows = [Every("1d").window(int(number)) for number in numbers]
    episodes = judge(watched, whole, {}, now=windows[-1].end, windows=windows, resets={})
    places = {rule: [one.first for one in episodes if one.rule == rule] for rule in RULED}
    return places | {f"three sigma, {chunks} windows": three_sigma(found["accuracy"], chunks) for chunks in (10, 30)}


def seconds_to_judge(segments: int = 100) -> float:
    """Return the processor time that a year of days with many segments and labels takes, the least of five."""
    rng, windows = np.random.default_rng(0), [Every("1d").window(number) for number in range(DAYS)]
    whole, parts = simulated(np.full((DAYS, segments), 100), np.full((DAYS, segments), REFERENCE), 0.05, rng)
    flat, none = np.full(DAYS, 0.01), np.zeros((DAYS, 0))
    all_rows = WholeTrack(**vars(whole), distance=flat, noise=flat, class_counts=none, class_accuracy=none)
    times = []
    for _ in range(5):
        start = time.process_time()
        judge(series(), all_rows, parts, now=windows[-1].end, windows=windows, resets={})
        times.append(time.process_time() - start)
    return min(times)


def false_alarm_table(simulations: list[dict[str, Any]]) -> Table:
    """Return false alarms a year: scenarios and rules by rows a day."""
    still = {(one["scenario"], one["rule"], one["rows"]): one["false_alarms"] for one in simulations if not one["fall"]}
    pairs = list(dict.fromkeys((scenario, rule) for scenario, rule, _ in still))
    rows = [[scenario, rule, *(f"{still[scenario, rule, n]:.2f}" for n in SIZES)] for scenario, rule in pairs]
    return Table(("year", "rule", *(f"{n:,} rows a day" for n in SIZES)), rows, left=(0, 1))


def delay_table(simulations: list[dict[str, Any]], scenario: str) -> Table:
    """Return the delay of each rule by fall and by rows a day, and the share found where some were not."""
    found = {
        (one["rule"], one["fall"], one["rows"]): one
        for one in simulations
        if one["fall"] and one["scenario"] == scenario
    }
    pairs = list(dict.fromkeys((fall, rule) for rule, fall, _ in found))

    def cell(one: Mapping[str, Any]) -> str:
        if one["delay"] is None:
            return "none found"
        return f"{one['delay']:.1f}" + ("" if one["found"] == 1 else f" ({one['found']:.0%} found)")

    rows = [
        [f"{100 * fall:g}", rule, *(cell(found[rule, fall, n]) for n in SIZES)]
        for fall, rule in sorted(pairs, key=lambda pair: pair[0])
    ]
    return Table(("fall, points", "rule", *(f"{n:,} rows a day" for n in SIZES)), rows, left=(0, 1))


def real_table(streams: list[dict[str, Any]]) -> Table:
    """Return what happened on real outputs: false alarms while nothing changed, windows until the first after that."""
    rows = []
    for one in streams:
        estimates, truth = np.asarray(one["windows"]["accuracy"]), one["truth"]
        spreads = estimates[:REAL_CHANGE].std(ddof=1), (truth[1] * (1 - truth[1]) / one["rows"]) ** 0.5
        means = estimates[:REAL_CHANGE].mean(), estimates[REAL_CHANGE:].mean()
        cells = []
        for found in judged(one).values():
            delay = next((str(place - REAL_CHANGE + 1) for place in found if place >= REAL_CHANGE), "not")
            cells.append(f"{count(place for place in found if place < REAL_CHANGE)} / {delay}")
        rows.append(
            [
                f"{one['model'].split('/')[1]}, {one['target']}", f"{one['rows']:,}",
                f"{100 * truth[1]:.1f} to {100 * truth[2]:.1f} %", f"{100 * means[0]:.1f} to {100 * means[1]:.1f} %",
                f"{100 * spreads[0]:.1f} ({100 * spreads[1]:.1f})",
                *cells,
            ]
        )  # fmt: skip
    return Table(("model, shift", "rows", "accuracy", "estimate", "deviation", *judged(streams[0])), rows, left=(0,))


def write_tables(result: Mapping[str, Any]) -> None:
    """Put the tables into the page of the docs."""
    PAGE.write_text(filled(PAGE.read_text(), parts_of(result)))


def parts_of(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of the page by name, in Markdown."""
    promises = Table(("rule", "what it promises"), [[rule.name, rule.promise] for rule in RULES.values()], left=(0, 1))
    tables = {
        "promises": promises,
        "false alarms": false_alarm_table(result["simulated"]),
        **{
            f"delays, {name}": delay_table(result["simulated"], name) for name in ("steady", "seasonal mix of segments")
        },
        "real streams": real_table(result["real"]),
    }
    found = {name: render(Document([], [], [table]), "md", Console()) for name, table in tables.items()}
    taken = f"{result['seconds_to_judge']:.1f} seconds of processor time"
    return found | {"speed": f"A year of days with 100 segments and labels is judged in {taken}."}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--years", type=int, default=100, help="simulated years of each kind")
    parser.add_argument("--tables", action="store_true", help="write the tables of the results that are there")
    options = parser.parse_args()
    if not options.tables:
        result = {
            "leadline": version("leadline"), "date": datetime.now(UTC).date().isoformat(),
            "settings": {"days": DAYS, "change": CHANGE, "row_sd": ROW_SD, "window_sd": WINDOW_SD},
            "seconds_to_judge": seconds_to_judge(),
            "real": [estimated(*stream) for stream in STREAMS],
            "simulated": list(simulate(options.years)),
        }  # fmt: skip
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    write_tables(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
