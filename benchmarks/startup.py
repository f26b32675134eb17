"""How long a process takes that does little: the version, a small estimate, the first one after an installation.

Run ``make bench-speed``. Every line is a process of its own, several times over; the least seconds count, and the least
seconds of processor time. Writes ``benchmarks/results/startup.json`` and the table of ``docs/speed.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import leadline as ll
from containers import as_stranger, environment, read_only_package, runs_here
from speed import ONE_FIT, PAGE, ROOT, machine, make_source, write_between

RESULTS = ROOT / "benchmarks" / "results" / "startup.json"
MARKS = ("<!-- start-up: begin -->\n", "<!-- start-up: end -->\n")

ESTIMATE = """
import sys
import numpy as np
import leadline as ll
ll.load(sys.argv[1]).estimate(np.random.default_rng(0).normal(size=(int(sys.argv[2]), 10)))
"""


@dataclass(frozen=True)
class Start:
    """What a process took, in seconds, and what it should take at most."""

    what: str
    wall: float
    processor: float
    target: float | None = None


def measure(words: list[str], repeats: int, folder: str = ".", **variables: str) -> tuple[float, float]:
    """Run a command in processes of its own; return the least seconds, and the least of processor time."""
    # Bytecode is kept, as an installation keeps it.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    walls, processors = [], []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(words, check=True, cwd=folder, env=kept | variables, capture_output=True)
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(walls), min(processors)


def usual_starts(models: Path, repeats: int) -> Iterator[Start]:
    """Measure processes where everything is in its place."""
    python = sys.executable
    repeats += 1  # the first one writes bytecode, and perhaps kernels
    yield Start("Python alone", *measure([python, "-c", "pass"], repeats))
    yield Start("`import numpy`", *measure([python, "-c", "import numpy"], repeats))
    yield Start("`import leadline`", *measure([python, "-c", "import leadline"], repeats))
    yield Start("`leadline --version`", *measure([python, "-m", "leadline", "--version"], repeats), 0.12)
    for name in ("ac", "auto", "alsa"):
        words = [python, "-c", ESTIMATE, str(models / f"{name}.leadline"), "100"]
        yield Start(f"import, load a model of {name}, estimate 100 rows", *measure(words, repeats), 0.5)
    words = [python, "-m", "leadline", "estimate", str(models / "auto.leadline"), str(models / "target.npz")]
    yield Start("`leadline estimate` with auto on a file of 100 rows", *measure(words, repeats))
    words = [python, "-c", ESTIMATE, str(models / "alsa.leadline"), "10000"]
    yield Start("alsa on 10,000 rows, with compiled kernels", *measure(words, repeats))


def first_starts(models: Path) -> Iterator[Start]:
    """Measure the first process after an installation, and in a container that may write nothing."""
    python, model = sys.executable, str(models / "alsa.leadline")
    for n in ("100", "10000"):
        with tempfile.TemporaryDirectory() as empty:
            found = measure([python, "-c", ESTIMATE, model, n], 1, NUMBA_CACHE_DIR=empty)
            yield Start(f"alsa on {int(n):,} rows, the first process after an installation", *found)
    if not runs_here():
        return
    for kernels, state in ((False, "nothing compiled in the image"), (True, "kernels compiled in the image")):
        with read_only_package({}, kernels=kernels) as root:
            words = as_stranger([python, "-c", ESTIMATE, model])
            for n, which in (("100", "first"), ("10000", "first"), ("10000", "second")):
                found = measure([*words, n], 1, "/", **environment(root))
                yield Start(f"read-only container, {state}: alsa on {int(n):,} rows, {which} process", *found)


def write_table(starts: list[Start], date: str, load: float) -> None:
    """Put the table into the page of the docs."""
    lines = ["| one process | seconds | of processor time | at most |", "|---|--:|--:|--:|"]
    for start in starts:
        target = "" if start.target is None else f"{start.target:g}"
        lines.append(f"| {start.what} | {start.wall:.2f} | {start.processor:.2f} | {target} |")
    caption = f"Measured on {date} on the same machine; load before the run {load:.1f}."
    write_between(PAGE, *MARKS, [caption, "", *lines])


def main() -> None:
    """Measure everything, print the table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one run of each; writes nothing")
    parser.add_argument("--repeats", type=int, default=9, help="runs of each measurement, of which the least counts")
    options = parser.parse_args()
    about = machine()
    print(" seconds  processor  at most")
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder)
        models.chmod(0o755)
        logits, labels = make_source(5_000, 10)
        for name, estimator in {
            "ac": ll.AverageConfidence(), "auto": ll.Auto(), "alsa": ll.ALSA(n_anchors=3_000, max_epochs=1, **ONE_FIT),
        }.items():  # fmt: skip
            estimator.fit(logits, labels).save(models / f"{name}.leadline")
        ll.write_outputs(ll.Outputs(logits[:100]), models / "target.npz")
        starts = []
        for part in (usual_starts(models, 1 if options.quick else options.repeats), first_starts(models)):
            for start in part:
                target = "" if start.target is None else f"{start.target:g}"
                print(f"{start.wall:8.3f} {start.processor:10.3f} {target:>8}  {start.what}", flush=True)
                starts.append(start)
    if options.quick:
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": about, "starts": [asdict(start) for start in starts]}, indent=2) + "\n")
    write_table(starts, about["date"], about["load_average"])
    print("written:", *(path.relative_to(ROOT) for path in (RESULTS, PAGE)))


if __name__ == "__main__":
    main()
