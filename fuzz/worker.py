"""One target attacked in a process of its own, which a crash may end: ``python -m fuzz.worker``."""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fuzz.mutation import mutations

if TYPE_CHECKING:  # whatever imports Leadline waits until atheris watches
    from fuzz.target import Target

TAKEN, REFUSED, FOUND = range(3)
_ROWWISE = Path(__file__).parents[1] / "src/leadline/rowwise"
COUNTS, CURRENT = "counts", "current"  # files by which the campaign knows what a process did before it died


@dataclass
class Log:
    """What became of attempts, kept in files.

    Attributes
    ----------
    folder
        Where findings go, each with its traceback beside it.
    """

    folder: Path
    _seen: set[tuple[str, str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Open the counts."""
        self.counts: NDArray[np.int64] = np.memmap(self.folder / COUNTS, dtype=np.int64, mode="r+", shape=(3,))
        self.current: NDArray[np.uint8] = np.memmap(self.folder / CURRENT, dtype=np.uint8, mode="w+", shape=(1 << 20,))

    def attempt(self, target: Target, data: bytes) -> None:
        """Make one attempt and note what became of it."""
        self.current[:8] = np.frombuffer(len(data).to_bytes(8, "little"), dtype=np.uint8)
        self.current[8 : 8 + len(data)] = np.frombuffer(data, dtype=np.uint8)
        try:
            self.counts[TAKEN if target.attempt(data) else REFUSED] += 1
        except Exception as error:
            self.counts[FOUND] += 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = (type(error).__name__, last.filename, last.lineno or 0)
            if place not in self._seen:  # one file for each place where something gives way
                self._seen.add(place)
                keep(self.folder, data, traceback.format_exc())


def keep(folder: Path, data: bytes, why: str) -> Path:
    """Keep bytes that broke a promise."""
    path = folder / f"crash-{hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]}"
    path.write_bytes(data)
    path.with_name(path.name + ".txt").write_text(why)
    return path


def current(folder: Path) -> bytes:
    """Return the bytes that a process was attacking with when it died; none if it had not begun."""
    path = folder / CURRENT
    kept = path.read_bytes() if path.exists() else b""
    return kept[8 : 8 + int.from_bytes(kept[:8], "little")]


def main() -> None:
    """Attack one target for some seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--guided", action="store_true", help="by coverage, with atheris")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder:
        run = _guided if given.guided else _plain
        run(given.target, Path(folder), Log(given.out), end, given.seed)


def _plain(name: str, folder: Path, log: Log, end: float, seed: int) -> None:
    """Attack with changes made at random."""
    from fuzz.targets import TARGETS

    target = TARGETS[name](folder)
    for data in mutations(target.seeds, seed):
        log.attempt(target, data)
        if time.monotonic() > end:
            return


def _guided(name: str, folder: Path, log: Log, end: float, seed: int) -> None:
    """Attack with changes that reach code which none reached before."""
    import atheris

    # Numba compiles the kernels from their bytecode, in which there must be nothing else.
    compiled = ["leadline.estimators.alsa.kernels.loops"]
    compiled += [f"leadline.rowwise.{file.stem}" for file in _ROWWISE.glob("[a-z]*.py")]
    with atheris.instrument_imports(include=["leadline"], exclude=compiled):
        from fuzz.targets import TARGETS

        target = TARGETS[name](folder)
        for data in target.seeds[:4]:
            log.attempt(target, data)  # imports what is imported late
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(data)
    options: dict[str, Any] = {
        "max_total_time": max(1, round(end - time.monotonic())), "seed": seed + 1, "verbosity": 0,
        "timeout": 60, "rss_limit_mb": 3000, "max_len": 1 << 16, "len_control": 0, "mutate_depth": 2,
        "exact_artifact_path": "/dev/null",  # the log has what a process dies of
    }  # fmt: skip
    words = [sys.argv[0], str(corpus), *(f"-{option}={value}" for option, value in options.items())]
    atheris.Setup(words, lambda data: log.attempt(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
