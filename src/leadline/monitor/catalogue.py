"""What is watched, in the store: series, their models, their segments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.estimators.persistence import checksum, from_bytes, to_bytes
from leadline.monitor.intake import segment_key
from leadline.monitor.records import Series
from leadline.monitor.schema import MODELS, SEGMENTS, SERIES
from leadline.monitor.windows import from_microseconds, microseconds

ALL_ROWS = segment_key(())
_SETTINGS = (
    "method", "classes", "n_source", "every", "by", "time", "id", "reference", "floor", "tolerance",
    "false_alarm_every", "confidence_level",
)  # fmt: skip
#: Settings that may change; others say what the windows are made of.
_FREE = ("reference", "floor", "tolerance", "false_alarm_every", "confidence_level")


@dataclass(frozen=True, eq=False)
class Entry:
    """A series as the store has it."""

    id: int
    series: Series
    checksum: str
    n_rows: int


def register(connection: Connection, series: Series, model: Estimator) -> None:
    """Add a series, or change the settings of one that has the same model."""
    digest = checksum(model)
    if connection.execute(sa.select(MODELS.c.id).where(MODELS.c.id == digest)).first() is None:
        connection.execute(MODELS.insert().values(id=digest, data=to_bytes(model)))
    known = find(connection, series.name)
    settings = {name: asdict(series)[name] for name in _SETTINGS}
    if known is None:
        connection.execute(
            SERIES.insert().values(
                name=series.name, model=digest, settings=json.dumps(settings), n_rows=0,
                registered_at=microseconds(series.registered_at),
            )
        )  # fmt: skip
        return
    if known.checksum != digest:
        raise InputError(
            f"series {series.name!r} has model {known.checksum[:16]}, and this is {digest[:16]}; "
            "register another model under a name of its own."
        )
    fixed = [name for name in _SETTINGS if name not in _FREE and getattr(known.series, name) != getattr(series, name)]
    if fixed and known.n_rows:
        old, new = (getattr(one, fixed[0]) for one in (known.series, series))
        raise InputError(
            f"{fixed[0]} of series {series.name!r} is {old!r} and cannot become {new!r}, as it has rows; "
            "register another series."
        )
    connection.execute(SERIES.update().where(SERIES.c.id == known.id).values(settings=json.dumps(settings)))


def find(connection: Connection, name: str) -> Entry | None:
    """Return a series by its name; None where there is none."""
    row = connection.execute(sa.select(SERIES).where(SERIES.c.name == name)).mappings().first()
    return None if row is None else _entry(row)


def get(connection: Connection, name: str) -> Entry:
    """Return a series by its name."""
    found = find(connection, name)
    if found is None:
        known = ", ".join(names(connection)) or "none"
        raise InputError(f"series {name!r} is not registered; registered: {known}.")
    return found


def names(connection: Connection) -> list[str]:
    """Return the names of all series, in the order in which they were registered."""
    return list(connection.execute(sa.select(SERIES.c.name).order_by(SERIES.c.id)).scalars())


def model_of(connection: Connection, digest: str) -> Estimator:
    """Return a model by its checksum."""
    data = connection.execute(sa.select(MODELS.c.data).where(MODELS.c.id == digest)).scalar_one()
    return from_bytes(data, "the model in the store")


def _entry(row: Any) -> Entry:
    """Return a row of the table of series."""
    try:
        given = json.loads(row["settings"]).items()
        settings = {name: tuple(value) if isinstance(value, list) else value for name, value in given}
        registered = from_microseconds(row["registered_at"])
        series = Series(name=row["name"], model_id=row["model"][:16], registered_at=registered, **settings)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the store is damaged: settings of series {row['name']!r} cannot be read ({error})."
        ) from error
    return Entry(row["id"], series, row["model"], row["n_rows"])


def segment_numbers(connection: Connection, series: int, segments: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the numbers of segments in the store; new ones get one."""
    keys = [segment_key(values) for values in segments]
    known = known_segments(connection, series)
    new = [key for key in dict.fromkeys(keys) if key not in known]
    if new:
        connection.execute(SEGMENTS.insert(), [{"series": series, "segment_values": key} for key in new])
        known = known_segments(connection, series)
    return [known[key] for key in keys]


def known_segments(connection: Connection, series: int) -> dict[str, int]:
    """Return the numbers of the segments of a series, by their values as the store has them."""
    rows = connection.execute(sa.select(SEGMENTS.c.segment_values, SEGMENTS.c.id).where(SEGMENTS.c.series == series))
    return {key: int(number) for key, number in rows}


def segment_values(known: Iterable[tuple[str, int]]) -> dict[int, tuple[Any, ...]]:
    """Return the values of segments by their numbers."""
    return {number: tuple(json.loads(key)) for key, number in known}


def make_series(
    name: str, model: Estimator, *, every: str, by: Sequence[str], time: str, id: str, reference: float | None,
    floor: float | None, tolerance: float, false_alarm_every: float, confidence_level: float, now: datetime,
) -> Series:  # fmt: skip
    """Return a series whose settings make sense."""
    model._check_fitted()
    if not isinstance(name, str) or not name.strip() or len(name) > 200 or not name.isprintable():
        raise InputError(f"name must be a printable text of at most 200 characters; got {name!r}.")
    source = model.source_accuracy_ if reference is None else float(reference)
    for label, value in (("reference", source), ("floor", floor), ("confidence_level", confidence_level)):
        if value is not None and not 0.0 < value < 1.0 and not (label == "reference" and value == 1.0):
            raise InputError(f"{label} must be between 0 and 1; got {value}.")
    if not 0.0 <= tolerance < source:
        raise InputError(f"tolerance must be at least 0 and below the reference, {source:.3f}; got {tolerance}.")
    if not false_alarm_every > 1.0:
        raise InputError(f"false_alarm_every must be a number of windows above 1; got {false_alarm_every}.")
    columns = [by] if isinstance(by, str) else list(by)
    if len(set(columns)) < len(columns):
        raise InputError(f"by must be distinct columns; got {', '.join(columns)}.")
    return Series(
        name, str(model.model_id), model.method, model.classes_, every, tuple(columns), time, id, source,
        model.n_source_, floor,
        float(tolerance), float(false_alarm_every), float(confidence_level), now,
    )  # fmt: skip
