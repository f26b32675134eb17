"""The store: killed while adding, two writers at once, damaged, foreign, of another version; SQLite and PostgreSQL."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import leadline as ll
from leadline.errors import InputError
from leadline.estimators import Estimator
from leadline.monitor import store as stores
from leadline.monitor.monitor import Monitor
from leadline.monitor.schema import BATCHES, METADATA, STORE
from postgresql import programs, server
from streams import stream

# Adds batches of a folder one after the other; says of each when it is done.
_ADD = """
import sys
import leadline as ll
from leadline.monitor.monitor import Monitor
store, *files = sys.argv[1:]
with Monitor(store) as monitor:
    print("ready", flush=True)
    for file in files:
        monitor.add("x", file, batch=file)
        print(file, flush=True)
"""


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if programs() is None:
        pytest.skip("PostgreSQL is not on this machine")
    with server(tmp_path_factory.mktemp("postgresql") / "server") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'monitor.db'}"
    found: str = request.getfixturevalue("postgresql")
    engine = sa.create_engine(found.replace("postgresql:", "postgresql+psycopg:"))
    METADATA.drop_all(engine)
    engine.dispose()
    return found


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{number:02}.npz" for number in range(12)]
    for number, path in enumerate(paths):
        ll.write_outputs(stream(120, number, days=3), path)
    return list(map(str, paths))


def start(url: str, files: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _ADD, url, *files], stdout=subprocess.PIPE, text=True)


def found_in(monitor: Monitor) -> list[float]:
    return [row.estimate.accuracy for row in (*monitor.history("x"), *monitor.history("x", "*"))]


def expected_from(files: list[str], tmp_path: Path, model: Estimator) -> list[float]:
    """What one process, never interrupted, would have found."""
    monitor = Monitor(tmp_path / "expected.db")
    monitor.register("x", model, by=["channel"])
    for file in files:
        monitor.add("x", file, batch=file)
    return found_in(monitor)


def test_everything_works_on_both(url: str, plain_model: Estimator, files: list[str], tmp_path: Path) -> None:
    with Monitor(url) as monitor:
        monitor.register("x", plain_model, by=["channel"])
        for file in files:
            monitor.add("x", file, batch=file)
        batch = stream(120, 0, days=3)
        monitor.add_labels("x", batch.metadata["id"], batch.metadata["truth"])
        assert monitor.add_labels("x", ["later"], [1]).waiting == 1
        assert monitor.verify() == []
        assert monitor.store.size() > 0
        np.testing.assert_allclose(found_in(monitor), expected_from(files, tmp_path, plain_model), rtol=1e-9)
        assert sum(row.n_labels for row in monitor.history("x").rows) == 120  # type: ignore[attr-defined]
        monitor.notify("x", "webhook", url="http://127.0.0.1:9/")
        assert len(monitor.channels()) == 1
        assert monitor.prune("x", np.datetime64("2027-01-01")).windows == 3
        assert monitor.verify() == []


def test_killed_at_any_moment(url: str, plain_model: Estimator, files: list[str], tmp_path: Path) -> None:
    """What was acknowledged is there; what is tried again is there once."""
    with Monitor(url) as monitor:
        monitor.register("x", plain_model, by=["channel"])
    rng = np.random.default_rng(0)
    acknowledged: set[str] = set()
    for _ in range(3):
        process = start(url, files)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(float(rng.uniform(0.0, 0.4)))
        process.send_signal(signal.SIGKILL)
        acknowledged |= set(process.communicate()[0].split())
        with Monitor(url) as monitor:
            with monitor.store.reading() as connection:
                stored = set(connection.execute(sa.select(BATCHES.c.name)).scalars())
            assert acknowledged <= stored
            assert monitor.verify() == []
    process = start(url, files)
    assert process.communicate()[0].split() == ["ready", *files]
    with Monitor(url) as monitor:
        assert monitor.verify() == []
        np.testing.assert_allclose(found_in(monitor), expected_from(files, tmp_path, plain_model), rtol=1e-9)


def test_two_writers_at_once(url: str, plain_model: Estimator, files: list[str], tmp_path: Path) -> None:
    """They add the same batches in other orders: each is there once, and nobody fails."""
    with Monitor(url) as monitor:
        monitor.register("x", plain_model, by=["channel"])
    writers = [start(url, files), start(url, files[::-1])]
    assert [set(writer.communicate()[0].split()) - {"ready"} for writer in writers] == [set(files)] * 2
    assert [writer.returncode for writer in writers] == [0, 0]
    with Monitor(url) as monitor:
        assert monitor.verify() == []
        np.testing.assert_allclose(found_in(monitor), expected_from(files, tmp_path, plain_model), rtol=1e-9)


def test_a_window_left_stale_is_estimated_by_whoever_reads(watch: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Monitor, "refresh", lambda self, name: None)
        watch.add("x", stream(100, 1))
        assert len(watch.history("x")) == 0
    assert [row.estimate.n_samples for row in watch.history("x")] == [25] * 4


@pytest.mark.parametrize("place", ["rows", "header", "half", "empty arrays"])
def test_a_damaged_store_is_said_to_be_one(place: str, watch: Monitor, tmp_path: Path) -> None:
    watch.add("x", stream(2_000, 1))
    watch.close()
    path = tmp_path / "monitor.db"
    data = bytearray(path.read_bytes())
    if place == "empty arrays":
        with sqlite3.connect(path) as database:
            database.execute("UPDATE windows SET sample = x'00'")
    else:
        where = {"rows": slice(20_000, 60_000), "header": slice(0, 64), "half": slice(len(data) // 2, None)}[place]
        data[where] = b"" if place == "half" else bytes(len(data[where]))
        path.write_bytes(data)
    try:
        with Monitor(path) as monitor:
            assert monitor.verify(), "nothing was found"
    except InputError as error:
        assert "cannot be used" in str(error) or "damaged" in str(error)  # noqa: PT017 - either way of saying it


def test_stores_that_are_none(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE store (version INTEGER)")
        database.execute("CREATE TABLE customers (id INTEGER)")
    wrong = {
        str(tmp_path / "other.db"): "is a database of something else; it has a table 'customers'",
        str(tmp_path / "no" / "m.db"): "folder .* of the store does not exist",
        str(tmp_path): "is a folder",
        "sqlite://": "a store must be a file",
        "mysql://somebody@somewhere/x": "a store must be in SQLite or PostgreSQL",
        "postgresql://a:secret@127.0.0.1:1/x": "cannot be used",
    }
    for url, message in wrong.items():
        with pytest.raises(InputError, match=message) as caught:
            Monitor(url)
        assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="does not exist; register a model first"):
        Monitor(tmp_path / "new.db", create=False)
    assert not (tmp_path / "new.db").exists()


def test_versions(watch: Monitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is brought to the newest version step by step, keeps what it has, and is refused if it is newer."""
    watch.add("x", stream(100, 1))
    before = found_in(watch)
    watch.close()

    def add_column(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE series ADD COLUMN owner TEXT"))

    with monkeypatch.context() as patched:
        patched.setattr(stores, "MIGRATIONS", (*stores.MIGRATIONS, add_column))
        with Monitor(tmp_path / "monitor.db") as monitor:
            assert found_in(monitor) == before
            with monitor.store.reading() as connection:
                assert connection.execute(sa.select(STORE.c.version)).scalar_one() == 2
                assert connection.execute(sa.text("SELECT owner FROM series")).scalar_one() is None
        Monitor(tmp_path / "monitor.db").close()
    with pytest.raises(InputError, match="has version 2, newer than 1"):
        Monitor(tmp_path / "monitor.db")
