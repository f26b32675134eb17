"""How the cost of every method grows with rows, classes and groups, beside the machine's limits and other packages.

Run ``make bench-growth``, some hours, or with ``--quick``, a quarter of an hour. Every point is a process of its own
with a time limit; where a method does not keep it, larger points are left out. Writes
``benchmarks/results/growth.json``, and the tables and the figure of ``docs/speed.md``; with ``--quick`` only where
``--out`` says.

NannyML and QuaPy are measured in environments of their own, whose interpreters ``--nannyml`` and ``--quapy`` name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import leadline as ll
from growth_page import Point, draw, write_page
from speed import ROOT, machine

RESULTS = ROOT / "benchmarks" / "results" / "growth.json"
POINTS = Path(__file__).with_name("growth_points.py")
_LEAST_LIMIT = 90.0  # seconds for a fit, and for other packages, which take longer to load than for many an estimate


@dataclass(frozen=True)
class Sweep:
    """One size that grows while the others stay.

    Attributes
    ----------
    by
        "n", "c" or "groups".
    task
        Of ``growth_points.py``.
    sizes
        The values, rising.
    fixed
        The other sizes.
    """

    by: str
    task: str
    sizes: tuple[int, ...]
    fixed: dict[str, int]


def sweeps(*, quick: bool) -> list[Sweep]:
    """Return what grows, and how far."""
    far, wide, many = (6, 1_000, 4) if quick else (7, 10_000, 5)
    classes = tuple(c for c in (2, 10, 100, 1_000, 10_000) if c <= wide)
    return [
        Sweep("n", "memory", tuple(10**power for power in range(3, far + 1)), {"c": 10}),
        Sweep("c", "memory", classes, {"n": 10_000}),
        Sweep(
            "groups",
            "groups",
            tuple(10**power for power in range(many + 1)),
            {"n": 100_000 if quick else 10**6, "c": 10},
        ),
    ]


def run(task: str, limit: float, python: str = sys.executable, **arguments: Any) -> dict[str, float] | str:
    """Make one measurement in a process of its own; return what it took, or why there is nothing to return."""
    quiet = os.environ | {"NML_DISABLE_USAGE_LOGGING": "1"}
    try:
        done = subprocess.run(
            [python, str(POINTS), task, json.dumps(arguments)],
            capture_output=True, text=True, check=False, timeout=limit, env=quiet,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"more than {limit:g} s"
    if done.returncode != 0:
        errors = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .*", done.stderr, flags=re.MULTILINE)
        ended = f"exit code {done.returncode}" if done.returncode > 0 else f"killed by signal {-done.returncode}"
        return str(errors[-1]) if errors else ended
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


class Models:
    """Fitted models in files, each made when it is first asked for."""

    def __init__(self, folder: Path, limit: float) -> None:
        self._folder, self._limit = folder, limit
        self.fits: dict[tuple[str, int], dict[str, float] | str] = {}

    def of(self, method: str, c: int) -> Path | str:
        """Return the file of a method on so many classes, or why there is none."""
        path = self._folder / f"{method}-{c}.leadline"
        if (method, c) not in self.fits:
            self.fits[method, c] = run("fit", self._limit, method=method, c=c, model=str(path))
        fit = self.fits[method, c]
        return path if isinstance(fit, dict) else f"fit: {fit}"


def grown(sweep: Sweep, method: str, models: Models, limit: float) -> Iterator[Point]:
    """Measure a method at the sizes of a sweep, until one takes too long."""
    for size in sweep.sizes:
        sizes: dict[str, Any] = {**sweep.fixed, sweep.by: size}
        model = models.of(method, sizes["c"])
        found = model if isinstance(model, str) else run(sweep.task, limit, model=str(model), **sizes)
        yield _point(sweep, method, size, found)
        if isinstance(found, str):
            return


def peers(sweep: Sweep, limit: float, interpreters: dict[str, str | None]) -> Iterator[Point]:
    """Measure other packages on the same rows, where there are no groups."""
    if sweep.by == "groups":
        return
    for name, python in interpreters.items():
        if python is None:
            continue
        for size in sweep.sizes:
            arguments: dict[str, Any] = {**sweep.fixed, sweep.by: size}
            found = run(name, max(limit, _LEAST_LIMIT), python, **arguments)
            yield _point(sweep, name, size, found)
            if isinstance(found, str):
                break


def _point(sweep: Sweep, what: str, size: int, found: dict[str, float] | str) -> Point:
    point = {"by": sweep.by, "what": what, "size": size}
    return point | (found if isinstance(found, dict) else {"missing": found})


def from_files(rows: int, methods: list[str], models: Models, folder: Path, limit: float) -> Iterator[Point]:
    """Measure methods on a log of ten classes that is larger than memory should be asked to hold."""
    sweep = Sweep("n", "files", (rows,), {"c": 10})
    log = folder / "log"
    log.mkdir()
    written = run("write", 100 * limit, folder=str(log), n=rows, c=10)
    for method in methods:
        model = models.of(method, 10)
        reasons = [reason for reason in (written, model) if isinstance(reason, str)]
        found = reasons[0] if reasons else run("files", limit, model=str(model), folder=str(log))
        yield _point(sweep, method, rows, found) | {"from": "files"}


def show(point: Point) -> None:
    """Print one line."""
    missing = point.get("missing")
    cost = missing or f"{point['seconds']:10.4f} s {point.get('megabytes', float('nan')):8.0f} MB"
    print(f"{point['by']:7} {point['size']:>12,}  {point['what']:8} {cost}", flush=True)


def main() -> None:
    """Measure everything, print it, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sizes; leaves the page alone")
    parser.add_argument("--limit", type=float, default=None, help="seconds for one point; 300, or 15 with --quick")
    parser.add_argument("--methods", default=",".join(ll.METHODS), help="separated by commas")
    parser.add_argument(
        "--files", type=int, default=0, metavar="ROWS", help="also a log of so many rows, e.g. 100000000"
    )
    parser.add_argument("--nannyml", default=None, metavar="PYTHON", help="of an environment that has NannyML")
    parser.add_argument("--quapy", default=None, metavar="PYTHON", help="of an environment that has QuaPy")
    parser.add_argument(
        "--out", type=Path, default=None, help="a folder for the results in place of their usual places"
    )
    options = parser.parse_args()
    limit = options.limit or (15.0 if options.quick else 300.0)
    interpreters = {"pot": sys.executable, "nannyml": options.nannyml, "quapy": options.quapy}
    methods, about, points = options.methods.split(","), machine(), []
    with tempfile.TemporaryDirectory() as work:
        models = Models(Path(work), max(2 * limit, _LEAST_LIMIT))
        (readable := Path(work) / "read").mkdir()
        bounds = run("limits", 600.0, folder=str(readable), n=10**6, c=10)
        if isinstance(bounds, str):
            raise SystemExit(f"the limits of the machine cannot be measured: {bounds}")
        parts: list[Iterator[Point]] = []
        for sweep in sweeps(quick=options.quick):
            parts += [grown(sweep, method, models, limit) for method in methods]
            parts.append(peers(sweep, limit, interpreters))
        if options.files:
            parts.append(from_files(options.files, methods, models, Path(work), limit))
        for part in parts:
            for point in part:
                show(point)
                points.append(point)
        fits = [{"method": method, "c": c, "fit": fit} for (method, c), fit in models.fits.items()]
    absent = [name for name, python in interpreters.items() if python is None]
    result = {
        "machine": about, "limit": limit, "limits": bounds, "absent": absent, "points": points, "fits": fits,
        "sweeps": {sweep.by: sweep.fixed for sweep in sweeps(quick=options.quick)},
    }  # fmt: skip
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "growth.json").write_text(json.dumps(result, indent=2) + "\n")
        draw(result, options.out / "growth.png")
    elif not options.quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
        write_page(result)


if __name__ == "__main__":
    main()
