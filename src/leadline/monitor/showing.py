"""What a monitor knows: the part that reads the store and shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from leadline.data.files import write_bytes
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.monitor import adding, alarmbook, catalogue, merging, reading
from leadline.monitor.history import History, adapted, by_segment, to_history, track_record, windows_document
from leadline.monitor.intake import segment_key
from leadline.monitor.label_files import class_numbers
from leadline.monitor.page import render_page
from leadline.monitor.records import Alarm, Series, Watched
from leadline.monitor.store import Store
from leadline.results.export import file_format, to_bytes

#: Ask a history for all segments.
EVERY_SEGMENT = "*"


class Showing:
    """Series, histories, alarms, pages and files of a store."""

    store: Store
    _clock: Callable[[], datetime]
    _models: dict[str, Estimator]

    def series(self) -> list[Series]:
        """Return what is watched, in the order in which it was registered."""
        with self.store.reading() as connection:
            return [catalogue.get(connection, name).series for name in catalogue.names(connection)]

    def get(self, name: str) -> Series:
        """Return what is watched under a name."""
        return self._entry(name)[0].series

    def classes(self, name: str, labels: Sequence[str]) -> Any:
        """Return labels that are texts as the model of a series takes them: names of classes, or numbers."""
        return list(labels) if self._entry(name)[1].class_names is not None else class_numbers(labels)

    def find_segment(self, name: str, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the segment whose values, as texts, are these."""
        entry, _ = self._entry(name)
        with self.store.reading() as connection:
            known = catalogue.segment_values(catalogue.known_segments(connection, entry.id).items())
        by = entry.series.by
        for values in known.values():
            if values and {column: str(value) for column, value in zip(by, values, strict=True)} == dict(texts):
                return dict(zip(by, values, strict=True))
        raise InputError(f"series {name!r} has no segment {dict(texts)!r}; it is cut by {', '.join(by) or 'nothing'}.")

    def _entry(self, name: str) -> tuple[catalogue.Entry, Estimator]:
        """Return a series and its model, which stays in memory."""
        with self.store.reading() as connection:
            entry = catalogue.get(connection, name)
            if entry.checksum not in self._models:
                self._models[entry.checksum] = catalogue.model_of(connection, entry.checksum)
        return entry, self._models[entry.checksum]

    def refresh(self, name: str) -> None:
        """Estimate windows that have changed. Adding does that by itself; so does whoever reads after a crash."""
        entry, model = self._entry(name)
        adding.refresh(self.store, entry, model)
        with self.store.writing() as connection:
            alarmbook.reconcile(connection, entry, self._clock())

    def history(
        self,
        name: str,
        segment: Any = None,
        *,
        every: str | None = None,
        adaptive: bool = False,
    ) -> History:
        """Return the estimates over time, with ``realised`` where labels came.

        Parameters
        ----------
        name
            Of the series.
        segment
            The value of each column that the series is cut by, by name or in their order; the value itself where there
            is one column; ``"*"`` for all segments; None for all rows together.
        every
            Merge windows to longer ones: ``1d``, ``1w`` or ``1mo``.
        adaptive
            Widen or narrow the intervals by what labels showed of earlier windows.
        """
        watched = self.watched(name, every=every, adaptive=adaptive, segments=segment is not None)
        if segment is None:
            return to_history(watched.series, watched.points, watched.record, ())
        by = watched.series.by
        if isinstance(segment, str) and segment == EVERY_SEGMENT:
            points = (point for of_segment in watched.segments.values() for point in of_segment)
            chosen = sorted(points, key=lambda point: point.window)
        else:
            key = segment_key(_values(segment, by))
            found = [points for values, points in watched.segments.items() if segment_key(values) == key]
            if not found:
                raise InputError(f"series {name!r} has no rows of segment {segment!r}.")
            chosen = list(found[0])
        return to_history(watched.series, chosen, track_record(chosen, watched.series.confidence_level), by)

    def watched(self, name: str, *, every: str | None = None, adaptive: bool = False, segments: bool = True) -> Watched:
        """Return all that is known of a series, or all but its segments; the rest as for :meth:`history`."""
        entry, model = self._entry(name)
        self.refresh(name)
        with self.store.reading() as connection:
            points = merging.read_points(connection, entry, model, every, segments=segments)
            alarms = reading.read_alarms(connection, entry)
        series, level = entry.series, entry.series.confidence_level
        whole = [point for point in points if not point.segment]
        parts = by_segment([point for point in points if point.segment], series.by)
        if adaptive:
            whole = adapted(whole, level)
            parts = {values: adapted(of_segment, level) for values, of_segment in parts.items()}
        return Watched(
            series, tuple(whole), track_record(whole, level),
            {values: tuple(found) for values, found in parts.items()}, tuple(alarms),
        )  # fmt: skip

    def alarms(self, name: str) -> list[Alarm]:
        """Return the alarms of a series, the latest first."""
        entry, _ = self._entry(name)
        self.refresh(name)
        with self.store.reading() as connection:
            return reading.read_alarms(connection, entry)

    def page(
        self, path: str | Path, *, names: Sequence[str] | None = None, adaptive: bool = False, force: bool = False
    ) -> None:
        """Write a self-contained page of HTML on some series, or on all.

        Parameters
        ----------
        path
            The file to write.
        names
            Of the series; None for all.
        adaptive
            Widen or narrow the intervals by what labels showed of earlier windows.
        force
            Overwrite a file that exists.
        """
        chosen = names or [series.name for series in self.series()]
        watched = [self.watched(name, adaptive=adaptive) for name in chosen]
        write_bytes(path, render_page(watched, made_at=self._clock()).encode(), force=force)

    def export(
        self,
        name: str,
        path: str | Path,
        *,
        every: str | None = None,
        adaptive: bool = False,
        format: str | None = None,
        force: bool = False,
    ) -> None:
        """Write all windows, of all rows and of every segment, to a file.

        Parameters
        ----------
        name
            Of the series.
        path
            The file: .parquet, .csv, .json, .md or .txt.
        every, adaptive
            As for :meth:`history`.
        format
            That of the file; None for that of its suffix.
        force
            Overwrite a file that exists.
        """
        watched = self.watched(name, every=every, adaptive=adaptive)
        write_bytes(path, to_bytes(windows_document(watched), file_format(str(path), format)), force=force)


def _values(segment: Any, by: Sequence[str]) -> list[Any]:
    """Return the value of each column of a segment."""
    if isinstance(segment, Mapping) and set(segment) == set(by):
        return [segment[column] for column in by]
    if not isinstance(segment, Mapping):
        values = list(segment) if isinstance(segment, tuple | list) else [segment]
        if len(values) == len(by):
            return values
    raise InputError(f"segment must give a value for each of {', '.join(by) or 'no columns'}; got {segment!r}.")
