"""What ``leadline monitor`` shows: documents of series, windows and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leadline.results.render import Cell, Document, Table, interval, percent

if TYPE_CHECKING:
    from leadline.monitor.adding import Added
    from leadline.monitor.history import History
    from leadline.monitor.records import Alarm, TrackRecord, Watched


def added_document(added: Sequence[Added], watched: Watched) -> Document:
    """Return what became of files."""
    rows = [{"batch": one.batch, "new": one.new, "rows": one.n_rows, "windows": len(one.windows)} for one in added]
    new = [[one.batch, f"{one.n_rows:,}", str(len(one.windows))] for one in added if one.new]
    known = len(added) - len(new)
    tables = [Table(["added", "rows", "windows"], new)] if new else []
    notes = [f"{known:,} of {len(added):,} files were known and not added again."] if known else []
    notes += [*_open_sentences(watched), record_sentence(watched)]
    return Document(rows, rows, [*tables, _status_table([watched])], notes)


def history_document(found: History, last: int | None) -> Document:
    """Return accuracy over time."""
    rows = found.windows if last is None else found.windows[-last:]
    by = [name for name in found.by if name != "window"]
    cells = []
    for row in rows:
        low, high = row.estimate.interval
        plain = row.to_dict()
        values = [str((plain["group"] or {}).get(name, "")) for name in by]
        shown = Cell(percent(row.estimate.accuracy), row.estimate.accuracy, interval=(low, high))
        realised = "" if plain["realised"] is None else f"{percent(plain['realised'])} of {plain['n_labels']:,}"
        cells.append([
            plain["window"][:16].replace("T", " "), *values, shown, interval((low, high)),
            f"{row.estimate.n_samples:,}", plain["shift"] or "", realised,
        ])  # fmt: skip
    header = [
        "window",
        *by,
        "accuracy",
        f"{found.overall.estimate.confidence_level:.0%} interval",
        "rows",
        "shift",
        "labels",
    ]
    table = Table(header, cells, left=tuple(range(1 + len(by))))
    record = found.record
    data = {
        "record": None if record is None else vars(record),
        "windows": [row.to_dict() for row in rows],
        "model_id": found.model_id,
    }
    return Document(
        data, [row.to_record(by) for row in rows], [table], [] if record is None else [record_words(record)]
    )


def alarms_document(found: Sequence[Alarm]) -> Document:
    """Return alarms."""
    rows = [
        {
            "number": one.number, "series": one.series, "rule": one.rule, "state": one.state.value,
            "harmful": one.harmful, "since": one.first.start.isoformat(), "until": one.last.end.isoformat(),
            "reason": one.reason, "segments": [dict(segment) for segment in one.segments], "evidence": one.evidence,
            "note": one.note,
        }
        for one in found
    ]  # fmt: skip
    cells = [
        [str(one.number), one.series, one.rule, one.state.value, f"{one.first.start:%Y-%m-%d %H:%M}", one.reason]
        for one in found
    ]
    table = Table(["alarm", "series", "rule", "state", "since", "reason"], cells, left=(1, 2, 3, 4, 5))
    records = [{**row, "segments": str(row["segments"])} for row in rows]
    return Document(rows, records, [table] if cells else [], [] if cells else ["No alarm."])


def _status_table(watched: Sequence[Watched]) -> Table:
    """Return one line for each series."""
    from leadline.monitor.alarmbook import open_alarms

    cells: list[list[Cell | str]] = []
    for one in watched:
        latest = one.points[-1] if one.points else None
        alarms = open_alarms(one.alarms)
        state = f"{len(alarms)} open: {', '.join(sorted({alarm.rule for alarm in alarms}))}" if alarms else "fine"
        cells.append([
            one.series.name,
            state if latest else "no data yet",
            "" if latest is None else f"{latest.window.start:%Y-%m-%d %H:%M}",
            "" if latest is None else Cell(percent(latest.accuracy), latest.accuracy, interval=latest.interval),
            "" if latest is None else interval(latest.interval),
            percent(one.series.reference),
        ])  # fmt: skip
    return Table(["series", "alarms", "latest window", "accuracy", "interval", "reference"], cells, left=(0, 1, 2))


def status_document(watched: Sequence[Watched]) -> Document:
    """Return which models are fine."""
    from leadline.monitor.alarmbook import open_alarms

    rows = [
        {
            "series": one.series.name,
            "open_alarms": len(open_alarms(one.alarms)),
            "window": one.points[-1].window.start.isoformat() if one.points else None,
            "accuracy": one.points[-1].accuracy if one.points else None,
            "interval": list(one.points[-1].interval) if one.points else None,
            "reference": one.series.reference,
            "labelled_windows": one.record.windows,
            "inside": one.record.inside,
        }
        for one in watched
    ]
    notes = [sentence for one in watched for sentence in _open_sentences(one)]
    return Document(rows, rows, [_status_table(watched)], notes)


def _open_sentences(watched: Watched) -> list[str]:
    """Return why alarms are open."""
    from leadline.monitor.alarmbook import open_alarms

    return [f"{one.series}: {one.reason}" for one in open_alarms(watched.alarms)]


def record_sentence(watched: Watched) -> str:
    """Return the track record of a series in words."""
    return record_words(watched.record)


def record_words(record: TrackRecord) -> str:
    """Return the track record in words."""
    if not record.windows:
        return "No window has enough labels yet to check the intervals against."
    return (
        f"Realised accuracy lay inside the interval in {record.inside} of {record.windows} labelled windows "
        f"(nominal {record.confidence_level:.0%})."
    )
