"""The campaign: every target for its share of the time, what was tried and found as a table, findings as files."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import leadline
from fuzz.targets import TARGETS
from fuzz.worker import COUNTS, CURRENT, current, keep

_MOST_DEATHS = 20  # of processes, by one target


@dataclass(frozen=True)
class Tried:
    """What a target went through: attempts by what became of them, and processes that did not survive."""

    target: str
    taken: int
    refused: int
    failed: int
    deaths: int
    seconds: float
    findings: tuple[str, ...]


def attack(name: str, seconds: float, seed: int, out: Path) -> Tried:
    """Attack one target: half of the time at random, half guided by coverage where there is atheris."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    np.zeros(3, np.int64).tofile(folder / COUNTS)
    ways = [["--guided"], []] if find_spec("atheris") else [[]]
    begin, started, deaths = time.monotonic(), time.time(), 0
    for number, way in enumerate(ways, 1):
        end = begin + seconds * number / len(ways)
        while (left := end - time.monotonic()) > 1 and deaths < _MOST_DEATHS:
            words = [name, "--seconds", str(left), "--seed", str(seed + deaths), "--out", str(folder), *way]
            with (folder / "log.txt").open("ab") as log:
                done = subprocess.run(
                    [sys.executable, "-m", "fuzz.worker", *words], stdout=log, stderr=log, check=False
                )
            if done.returncode:
                deaths += 1
                keep(folder, current(folder), f"the process ended with {done.returncode}; see log.txt\n")
            else:
                break
    taken, refused, failed = np.fromfile(folder / COUNTS, np.int64).tolist()
    for file in (COUNTS, CURRENT):
        (folder / file).unlink(missing_ok=True)
    kept = (path for path in folder.glob("crash-*") if path.suffix != ".txt" and path.stat().st_mtime >= started)
    found = tuple(sorted(map(str, kept)))
    return Tried(name, taken, refused, failed, deaths, round(time.monotonic() - begin, 1), found)


def reproduce(path: Path) -> int:
    """Make the attempt in a file again, with its traceback where it still fails."""
    with tempfile.TemporaryDirectory() as folder:
        taken = TARGETS[path.parent.name](Path(folder)).attempt(path.read_bytes())
    print(f"{path} is {'taken' if taken else 'refused in one line'}, as it should be.")
    return 0


def campaign(names: Sequence[str], minutes: float, seed: int, out: Path) -> int:
    """Attack targets one after the other; say what came of it, and return how many things were found."""
    print(f"Leadline {leadline.__version__}, seed {seed}, {minutes:g} minutes for {len(names)} targets")
    print(
        f"{'target':<14}{'attempts':>10}{'taken':>10}{'refused':>10}{'failed':>8}{'deaths':>8}{'seconds':>9}",
        flush=True,
    )
    tried = []
    for name in names:
        one = attack(name, 60 * minutes / len(names), seed, out)
        attempts = one.taken + one.refused + one.failed
        print(f"{name:<14}{attempts:>10,}{one.taken:>10,}{one.refused:>10,}{one.failed:>8,}{one.deaths:>8}"
              f"{one.seconds:>9.0f}", flush=True)  # fmt: skip
        tried.append(one)
    summary = {"version": leadline.__version__, "seed": seed, "minutes": minutes, "targets": [asdict(t) for t in tried]}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    found = [path for one in tried for path in one.findings]
    total = sum(one.taken + one.refused + one.failed for one in tried)
    print(f"{total:,} attempts, {len(found)} findings; {out / 'summary.json'} has the numbers.")
    for path in found:
        print(f"  python -m fuzz --reproduce {path}")
    return len(found)


def main() -> int:
    """Run the campaign, or one of its findings."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default=",".join(TARGETS), help="names with commas between them")
    parser.add_argument("--out", type=Path, default=Path("fuzz-results"))
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="make the attempt in a file again")
    given = parser.parse_args()
    if given.reproduce is not None:
        return reproduce(given.reproduce)
    names = given.targets.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    return min(campaign(names, given.minutes, given.seed, given.out), 1)


if __name__ == "__main__":
    sys.exit(main())
