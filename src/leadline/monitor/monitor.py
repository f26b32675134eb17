"""The monitor: accuracy over time, late labels, alarms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from leadline.data.outputs import as_labels
from leadline.errors import InputError
from leadline.estimators.base import Estimator
from leadline.labels.plan import LabelPlan
from leadline.monitor import alarmbook, catalogue, labelling, upkeep
from leadline.monitor.adding import Added, add_outputs
from leadline.monitor.intake import find_batches
from leadline.monitor.labelling import LabelsAdded
from leadline.monitor.ledger import hash_ids
from leadline.monitor.records import AlarmState
from leadline.monitor.showing import Showing
from leadline.monitor.store import Store
from leadline.monitor.telling import Telling
from leadline.monitor.upkeep import Pruned
from leadline.monitor.windows import Every, as_time


def _now() -> datetime:
    return datetime.now(UTC)


class Monitor(Showing, Telling):
    """Watches classifiers: takes batches of unlabelled outputs and late labels, and says how accurate they are.

    Parameters
    ----------
    store
        ``sqlite:///monitor.db`` or the path of a SQLite file, which is made if it is not there, or
        ``postgresql://user@host/name``.
    create
        Whether to make a new store where there is none.
    clock
        What tells the time, for replays.

    Examples
    --------
    >>> import tempfile
    >>> import leadline as ll
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 3000)
    >>> logits = rng.normal(size=(3000, 3)) + 2 * np.eye(3)[labels]
    >>> model = ll.Auto().fit(logits[:2000], labels[:2000])
    >>> watch = Monitor(tempfile.mkdtemp() + "/monitor.db")
    >>> watch.register("digits", model, every="1d")
    >>> times = np.datetime64("2026-11-01") + np.arange(1000) // 500 * np.timedelta64(1, "D")
    >>> added = watch.add("digits", ll.Outputs(logits[2000:], metadata={"ts": times}))
    >>> [row.estimate.n_samples for row in watch.history("digits")]
    [500, 500]
    """

    def __init__(self, store: str | Path, *, create: bool = True, clock: Callable[[], datetime] | None = None) -> None:
        self.store = Store(str(store), create=create)
        self._clock = clock or _now
        self._models: dict[str, Estimator] = {}

    def __enter__(self) -> Self:
        """Return the monitor, to be closed at the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of the store."""
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    # ------------------------------------------------------------------------------------------------- what is watched
    def register(
        self,
        name: str,
        model: Estimator | str | Path,
        every: str | int = "1d",
        by: Sequence[str] = (),
        floor: float | None = None,
        tolerance: float = 0.02,
        false_alarm_every: float = 1000,
        *,
        time: str = "ts",
        id: str = "id",
        reference: float | None = None,
        confidence_level: float = 0.9,
    ) -> None:
        """Begin to watch a classifier, or change its settings.

        Parameters
        ----------
        name
            What to call the series.
        model
            A fitted estimator, or its file.
        every
            How long windows are: ``1h``, ``1d``, ``1w``, ``1mo``, in UTC, or a number of rows.
        by
            Metadata columns; each combination of their values is a segment.
        floor
            Raise an alarm where accuracy is below this.
        tolerance
            How far accuracy may be below the reference before that is a fall.
        false_alarm_every
            Windows, on average, to at most one false alarm.
        time, id
            The metadata columns of times and of row ids, where batches do not say otherwise.
        reference
            The accuracy that a fall is measured against; None for that on the source.
        confidence_level
            Nominal coverage of the intervals.
        """
        if isinstance(model, str | Path):
            from leadline.estimators.persistence import load

            model = load(model)
        series = catalogue.make_series(
            name, model, every=Every.parse(every).name, by=by, time=time, id=id, reference=reference, floor=floor,
            tolerance=tolerance, false_alarm_every=false_alarm_every, confidence_level=confidence_level,
            now=self._clock(),
        )  # fmt: skip
        with self.store.writing() as connection:
            catalogue.register(connection, series, model)

    # ---------------------------------------------------------------------------------------------------- what comes in
    def add(
        self,
        name: str,
        outputs: Any,
        time: str | datetime | np.datetime64 | None = None,
        id: str | None = None,
        batch: str | None = None,
        *,
        memory_limit: int | str | None = None,
    ) -> Added:
        """Add unlabelled outputs, each row to the window and segment that it belongs to.

        Parameters
        ----------
        name
            Of the series.
        outputs
            ``Outputs`` with metadata, a table of pandas, polars or Arrow, a file, or an ``Accumulator``. Labels that
            come along are late labels that came early.
        time
            The column of times, or one time for all rows; None for the column of the series.
        id
            The column that late labels will name rows by; None for the column of the series, if it is there.
        batch
            The name of these rows: a batch that was added is not added again, however often that is tried. None for the
            checksum of the rows.
        memory_limit
            How much memory a file may take, as for ``read_outputs``.

        Returns
        -------
        Added
            Whether it was new, and the windows it went to.
        """
        found = self._add(name, outputs, time, id, batch, memory_limit)
        if found.new:
            self.refresh(name)
        return found

    def add_files(
        self,
        name: str,
        *places: str | Path,
        time: str | datetime | None = None,
        id: str | None = None,
        memory_limit: int | str | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> list[Added]:
        """Add the files that paths, folders or patterns mean, a batch each, called by its path.

        Files that were added before are known by their names and not added again. A file that cannot be added keeps no
        other from it, and is told of at the end. Estimates and alarms are made when all are there. ``progress`` is
        called before each file with files done, files in all, and what is done next.
        """
        self._entry(name)
        paths = list(dict.fromkeys(path for place in places for path in find_batches(place)))
        found, wrong = [], []
        for done, path in enumerate(paths):
            if progress is not None:
                progress(done, len(paths), f"add {path}")
            try:
                found.append(self._add(name, path, time, id, path, memory_limit))
            except InputError as error:
                wrong.append(f"{path}: {str(error).removeprefix(f'{path}: ')}")
        if any(one.new for one in found):
            self.refresh(name)
        if wrong:
            others = f" {len(wrong):,} of {len(paths):,} files were left out; the others are added."
            raise InputError(wrong[0] + (others if len(paths) > 1 else ""))
        return found

    def _add(
        self, name: str, outputs: Any, time: Any, id: str | None, batch: str | None, memory_limit: int | str | None
    ) -> Added:
        """Add a batch, and leave its windows to be estimated."""
        entry, model = self._entry(name)
        return add_outputs(
            self.store, entry, model, outputs, time=time, id=id, batch=batch, now=self._clock(),
            memory_limit=memory_limit,
        )  # fmt: skip

    def add_labels(
        self, name: str, ids: Any, labels: Any, *, plan: LabelPlan | None = None, cuts: Any = None
    ) -> LabelsAdded:
        """Add labels of rows, which may have come, or may come later.

        Parameters
        ----------
        name
            Of the series.
        ids
            Shape (k,): the ids of the rows.
        labels
            Shape (k,): their true classes, as indices or names. A label of a row that has one replaces it.
        plan
            The plan by which these rows were chosen. Without one, nobody knows whether they are a random sample, and
            what they say of rows that are not labelled is said with that reserve.
        cuts
            In place of the plan, the values of the correctness between its strata (``plan.cuts``).
        """
        entry, model = self._entry(name)
        hashes = hash_ids(ids, self.store.salt)
        true = as_labels(labels, np.empty((len(hashes), model.n_classes_)), classes=model.class_names)
        hashes, true = labelling.once(hashes, true)
        with self.store.writing() as connection:
            plans = labelling.no_plans(len(hashes))
            if plan is not None or cuts is not None:
                between = cuts if plan is None else plan.cuts
                plans[:] = labelling.plan_number(connection, entry.id, between)
            found = labelling.add_labels(connection, entry, hashes, true, plans, self._clock())
        self.refresh(name)
        return found

    # ----------------------------------------------------------------------------------------------------- what is said
    def acknowledge(self, name: str, number: int, note: str = "") -> None:
        """Say that somebody knows of an alarm: it stays until it ends, but no longer asks for attention."""
        self._answer(name, number, AlarmState.ACKNOWLEDGED, note)

    def close_alarm(self, name: str, number: int, note: str = "") -> None:
        """Close an alarm that is dealt with: its rule starts anew after the latest window."""
        self._answer(name, number, AlarmState.CLOSED, note)

    def _answer(self, name: str, number: int, state: AlarmState, note: str) -> None:
        entry, _ = self._entry(name)
        with self.store.writing() as connection:
            alarmbook.answer(connection, entry, number, state, note, self._clock())

    # ----------------------------------------------------------------------------------------------------------- upkeep
    def prune(self, name: str, before: datetime | np.datetime64) -> Pruned:
        """Drop what windows that ended before a time need to take more rows and labels; what is known of them stays."""
        entry, _ = self._entry(name)
        self.refresh(name)
        with self.store.writing() as connection:
            found = upkeep.prune(connection, entry, as_time(before))
        self.store.compact()
        return found

    def verify(self) -> list[str]:
        """Check the store; return what is wrong with it, nothing if it is sound."""
        found = self.store.faults()
        if found:
            return found
        with self.store.reading() as connection:
            entries = [catalogue.get(connection, name) for name in catalogue.names(connection)]
            return [fault for entry in entries for fault in upkeep.faults(connection, entry)]
