"""Where a monitor keeps what it knows: a SQLite file, or a PostgreSQL database.

Writing is serial: one transaction at a time, on either, so that nothing is added twice or lost between two writers. A
transaction is there whole or not at all, whenever the process ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from leadline.data.names import one_line
from leadline.errors import InputError
from leadline.monitor import schema

_WAIT_SECONDS = 120  # for another writer
_LOCK = 0x6C656164  # the advisory lock of PostgreSQL: "lead"
_HINT = "Give sqlite:///monitor.db, the path of a file, or postgresql://user@host/name."


def _create(connection: Connection) -> None:
    """Make the tables of version 1."""
    schema.METADATA.create_all(connection)
    connection.execute(schema.STORE.insert().values(version=0, salt=secrets.token_bytes(16)))


#: What makes tables of one version into those of the next, from none at all on.
MIGRATIONS: Sequence[Callable[[Connection], None]] = (_create,)


class Store:
    """A database with the tables of :mod:`leadline.monitor.schema`.

    Parameters
    ----------
    url
        ``sqlite:///path``, ``postgresql://...``, or the path of a SQLite file.
    create
        Whether to make a new store where there is none.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.engine = _engine(url, create=create)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        with _clear_errors(url), self.writing() as connection:
            self._migrate(connection, create=create)
        with self.reading() as connection:
            self.salt: bytes = connection.execute(sa.select(schema.STORE.c.salt)).scalar_one()

    @property
    def name(self) -> str:
        """What people call the store, without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the store."""
        with _clear_errors(self.name), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection that nobody else writes beside; what is done with it is there at the end, or not at all."""
        connect = self.engine.execution_options(writes=True).connect
        with _clear_errors(self.name), connect() as connection, connection.begin():
            if not self._is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            yield connection

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Turn what the database says into one clear line, for those who use its engine."""
        with _clear_errors(self.name):
            yield

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def size(self) -> int:
        """Return how many bytes the store takes."""
        with self.reading() as connection:
            if self._is_sqlite:
                pages, page = (
                    connection.exec_driver_sql(f"PRAGMA {n}").scalar_one() for n in ("page_count", "page_size")
                )
                return int(pages) * int(page)
            names = [table.name for table in schema.METADATA.sorted_tables]
            sizes = [connection.execute(sa.select(sa.func.pg_total_relation_size(name))).scalar_one() for name in names]
            return int(sum(sizes))

    def compact(self) -> None:
        """Give back the room of what was deleted."""
        with _clear_errors(self.name), self.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")

    def faults(self) -> list[str]:
        """Return what the database itself finds wrong with its file; nothing for one that is sound."""
        if not self._is_sqlite:
            return []
        with self.reading() as connection:
            found = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
            found += [
                f"row without its {row[2]}: {row[0]}" for row in connection.exec_driver_sql("PRAGMA foreign_key_check")
            ]
        return [text for text in found if text != "ok"]

    def _migrate(self, connection: Connection, *, create: bool) -> None:
        """Bring the tables to the newest version."""
        names = set(sa.inspect(connection).get_table_names())
        version = 0
        if "store" in names and {"series", "batches", "cells"} <= names:
            version = int(connection.execute(sa.select(schema.STORE.c.version)).scalar_one())
        elif self._is_sqlite and names:
            raise InputError(f"{self.name} is a database of something else; it has a table {sorted(names)[0]!r}.")
        elif not create:
            raise InputError(f"{self.name} is not a store yet; register a model first.")
        if version > len(MIGRATIONS):
            raise InputError(
                f"{self.name} has version {version}, newer than {len(MIGRATIONS)}, the newest that this Leadline knows."
            )
        for migrate in MIGRATIONS[version:]:
            migrate(connection)
        if version < len(MIGRATIONS):
            connection.execute(schema.STORE.update().values(version=len(MIGRATIONS)))


def inserted(connection: Connection, statement: sa.Insert) -> int:
    """Insert a row, and return its number."""
    key = connection.execute(statement).inserted_primary_key
    assert key is not None
    return int(key[0])


def _engine(url: str, *, create: bool) -> Engine:
    """Return what opens connections."""
    text = str(url)
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        parsed = make_url(text)
    except ArgumentError as error:
        raise InputError(f"a store must be a database; got {text!r}. {_HINT}") from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    kind = parsed.get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise InputError(f"a store must be in SQLite or PostgreSQL; got {kind!r}. {_HINT}")
    if kind == "sqlite":
        return _sqlite(parsed, create=create)
    try:
        return sa.create_engine(parsed, pool_pre_ping=True)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError("PostgreSQL needs its driver; run pip install 'leadline[postgres]'.") from error


def _sqlite(url: Any, *, create: bool) -> Engine:
    """Return an engine for a SQLite file: writers take turns from their first statement on."""
    path = Path(url.database or "")
    if not url.database or url.database == ":memory:":
        raise InputError(f"a store must be a file; got {url.render_as_string()!r}. {_HINT}")
    if not path.parent.is_dir():
        raise InputError(f"folder {path.parent} of the store does not exist.")
    if not path.exists() and not create:
        raise InputError(f"store {path} does not exist; register a model first.")
    if path.is_dir():
        raise InputError(f"store {path} is a folder; give the path of a file in it.")
    engine = sa.create_engine(url, connect_args={"timeout": _WAIT_SECONDS})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        del record
        connection.isolation_level = None  # transactions begin where SQLAlchemy says
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")

    return engine


@contextmanager
def _clear_errors(name: str) -> Iterator[None]:
    """Turn what a database says into one clear line."""
    try:
        yield
    except DBAPIError as error:
        raise InputError(f"store {_hidden(name)} cannot be used ({one_line(error.orig or error)}).") from error


def _hidden(name: str) -> str:
    """Return the name of a store without its password."""
    try:
        return make_url(name).render_as_string(hide_password=True)
    except ArgumentError:
        return name
