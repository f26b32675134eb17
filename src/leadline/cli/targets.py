"""What `leadline estimate` is asked about: files in memory, or tables that an engine goes through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.options import find_targets
from leadline.errors import InputError

if TYPE_CHECKING:
    from leadline.data.outputs import Outputs
    from leadline.engines.arrow import LeftOut
    from leadline.engines.groups import GroupEstimate
    from leadline.estimators import Estimator

ENGINES = ("arrow", "spark")
#: The value of a column where there is none; null is the group of all rows.
MISSING = "(missing)"
_STREAM_FROM = 64 << 20  # bytes of a single file, above which it is streamed rather than read whole
_TOLD = 5  # bad files that are named

Advance = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Target:
    """Something to estimate on.

    Attributes
    ----------
    name
        What to call it.
    place
        A path, pattern or URL.
    engine
        One of :data:`ENGINES`, or None to read it into memory.
    """

    name: str
    place: str
    engine: str | None = None


@dataclass(frozen=True)
class Request:
    """What to estimate: options of the command that all engines understand."""

    by: tuple[str, ...]
    where: str | None
    skip_bad: bool
    level: float
    together: bool
    classes: list[str] | None
    master: str | None = None


def find_requests(words: Sequence[str], engine: str | None, request: Request) -> list[Target]:
    """Return the targets that are meant.

    A folder, a URL and a pattern with ``**`` for Parquet or Arrow files are one table each; so is every word if an
    engine is asked for. Other words are files, a target each.
    """
    from leadline.engines.lake import SUFFIXES, is_url

    if engine is not None:
        return [Target(word, word, engine) for word in dict.fromkeys(words)]

    def is_table(word: str) -> bool:
        deep = "**" in word and word.lower().endswith(SUFFIXES) and not Path(word).exists()
        return is_url(word) or Path(word).is_dir() or (deep and has_magic(word))

    tables = [word for word in dict.fromkeys(words) if is_table(word)]
    files = find_targets([word for word in words if word not in tables])
    targets = []
    for name, path in files.items():
        can_stream = path.suffix.lower() in SUFFIXES
        if (request.where is not None or request.skip_bad) and not can_stream:
            raise InputError(f"--where and --skip-bad work on {', '.join(SUFFIXES)} files; got {path}.")
        must_stream = request.where is not None or request.skip_bad or path.stat().st_size > _STREAM_FROM
        targets.append(Target(name, str(path), "arrow" if can_stream and must_stream else None))
    return targets + [Target(word, word, "arrow") for word in tables]


def rows_of(
    estimator: Estimator, target: Target, request: Request, advance: Advance
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the estimates for a target and its segments as rows, and remarks on what was left out of them."""
    from leadline.engines.arrow import BadFileError

    try:
        if target.engine == "arrow":
            return _streamed(estimator, target, request, advance)
        if target.engine == "spark":
            from leadline.engines.sparkfiles import estimate_place

            found, left_out = estimate_place(
                estimator, target.place, master=request.master, by=request.by, where=request.where,
                level=request.level, together=request.together, skip_bad=request.skip_bad,
            )  # fmt: skip
            return _rows(target, request, found, left_out)
    except BadFileError:
        raise  # names its file
    except InputError as error:
        raise InputError(f"target {target.name}: {error}") from error
    from leadline.data.files import read_outputs

    outputs = read_outputs(target.place, classes=request.classes)
    try:
        return _rows(target, request, _in_memory(estimator, outputs, request), [])
    except InputError as error:
        raise InputError(f"target {target.name}: {error}") from error


def group_texts(group: Any, by: Sequence[str]) -> list[str]:
    """Return the group of a row as texts, one for each column grouped by."""
    if group is None:
        return ["(all)", *[""] * (len(by) - 1)] if by else []
    return [str(value) for value in group.values()] if len(by) > 1 else [str(group)]


def _streamed(
    estimator: Estimator, target: Target, request: Request, advance: Advance
) -> tuple[list[dict[str, Any]], list[str]]:
    """Stream a table through this machine."""
    from leadline.engines.arrow import estimate_files

    def report(done: int, total: int, rows: int, rate: float) -> None:
        advance(done, total, f"estimate {target.name}: {rows:,} rows, {rate:,.0f} rows/s")

    found = estimate_files(
        estimator, target.place, by=request.by, where=request.where, level=request.level,
        together=request.together, skip_bad=request.skip_bad, classes=request.classes, progress=report,
    )  # fmt: skip
    return _rows(target, request, found.estimates, found.left_out)


def _in_memory(estimator: Estimator, outputs: Outputs, request: Request) -> list[GroupEstimate]:
    """Estimate on outputs in memory and on each of their segments."""
    import numpy as np

    from leadline.data.outputs import Outputs as Checked
    from leadline.data.segments import segments
    from leadline.engines.groups import GroupEstimate
    from leadline.shift.intervals import each_of

    found = []
    groups = segments(outputs, request.by)
    own = each_of(len(groups) - 1, request.level) if request.together else request.level
    for group, chosen in groups:
        logits = outputs.logits[chosen]
        truth = None if outputs.labels is None else Checked(logits, np.asarray(outputs.labels)[chosen]).accuracy
        level = request.level if group is None else own
        found.append(GroupEstimate(group, estimator.estimate(logits, confidence_level=level), truth))
    return found


def _rows(
    target: Target, request: Request, found: Sequence[GroupEstimate], left_out: Sequence[LeftOut]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return estimates as rows of plain values, and remarks on what was left out."""
    rows = []
    for item in found:
        group: Any = None
        if item.group is not None:
            values = [MISSING if value is None else value for value in item.group]
            group = values[0] if len(values) == 1 else dict(zip(request.by, values, strict=True))
        error = None if item.truth is None else item.estimate.accuracy - item.truth
        rows.append(
            {"target": target.name, "group": group, **item.estimate.to_dict(), "truth": item.truth, "error": error}
        )
    if not left_out:
        return rows, []
    files = sum(item.rows is None for item in left_out)
    bad_rows = sum(item.rows or 0 for item in left_out)
    rows[0]["diagnostics"]["left_out"] = {"files": files, "rows": bad_rows}
    remarks = [f"left out {item.reason}" for item in left_out[:_TOLD]]
    if len(left_out) > _TOLD:
        remarks.append(f"left out {len(left_out) - _TOLD} more such files.")
    return rows, remarks
