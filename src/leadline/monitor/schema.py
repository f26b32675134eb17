"""The tables of the store, as they are in the newest version.

Times are whole microseconds since 1970 in UTC. Arrays are tensors in the safetensors format, compressed with zlib.

========  ==============================================================================================================
Table     What it holds
========  ==============================================================================================================
store     One row: the version of the tables, and the salt of the hashes of row ids.
models    Model files, by checksum.
series    What is watched: a name, a model, and settings as JSON.
batches   What was added: once, by name. ``stamp`` is the size and time of a file, so that it need not be read again.
segments  Values of the columns that a series is cut by, as JSON; ``[]`` is all rows together.
windows   Stretches of time or of rows. ``version`` counts changes of rows and labels, ``estimated`` is the version that
          the estimates are of. ``sample`` is a bounded sample of the rows, ``words`` an explanation.
cells     A window of a segment: exact sums of its rows, its estimate, what labels say.
ledger    Of each batch, what late labels need: hashes of row ids, window, segment, predicted class, correctness, label.
labels    Labels that came before their rows.
plans     Cuts between the strata of planned labels.
alarms    What was raised, and what became of it.
channels  Where to tell; no secrets, only the names of the environment variables that hold them.
outbox    What to tell where, and whether it arrived.
========  ==============================================================================================================
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()


def _series() -> Column[int]:
    return Column("series", Integer, ForeignKey("series.id"), nullable=False)


STORE = Table(
    "store", METADATA,
    Column("version", Integer, nullable=False),
    Column("salt", LargeBinary, nullable=False),
)  # fmt: skip

MODELS = Table(
    "models", METADATA,
    Column("id", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip

SERIES = Table(
    "series", METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("model", String(64), ForeignKey("models.id"), nullable=False),
    Column("settings", Text, nullable=False),
    Column("n_rows", BigInteger, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
)  # fmt: skip

BATCHES = Table(
    "batches", METADATA,
    Column("id", Integer, primary_key=True),
    _series(),
    Column("name", Text, nullable=False),
    Column("checksum", String(32), nullable=False),
    Column("stamp", String(64)),
    Column("n_rows", BigInteger, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    UniqueConstraint("series", "name"),
)  # fmt: skip

SEGMENTS = Table(
    "segments", METADATA,
    Column("id", Integer, primary_key=True),
    _series(),
    Column("segment_values", Text, nullable=False),
    UniqueConstraint("series", "segment_values"),
)  # fmt: skip

WINDOWS = Table(
    "windows", METADATA,
    Column("id", Integer, primary_key=True),
    _series(),
    Column("number", BigInteger, nullable=False),
    Column("starts", BigInteger, nullable=False),
    Column("ends", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("estimated", Integer, nullable=False),
    Column("sample", LargeBinary),
    Column("words", Text),
    UniqueConstraint("series", "number"),
)  # fmt: skip

CELLS = Table(
    "cells", METADATA,
    Column("window_id", Integer, ForeignKey("windows.id"), primary_key=True),
    Column("segment", Integer, ForeignKey("segments.id"), primary_key=True),
    Column("n_rows", BigInteger, nullable=False),
    Column("sums", LargeBinary, nullable=False),
    Column("accuracy", Float),
    Column("low", Float),
    Column("high", Float),
    Column("shift", String(32)),
    Column("distance", Float),
    Column("noise", Float),
    Column("by_class", LargeBinary),
    Column("labelled", BigInteger, nullable=False),
    Column("right", BigInteger, nullable=False),
    Column("realised", Float),
    Column("realised_low", Float),
    Column("realised_high", Float),
    Column("chosen", String(16)),
)  # fmt: skip

LEDGER = Table(
    "ledger", METADATA,
    Column("batch", Integer, ForeignKey("batches.id"), primary_key=True),
    _series(),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("ends", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("ledger_windows", "series", "first", "last"),
)  # fmt: skip

LABELS = Table(
    "labels", METADATA,
    Column("series", Integer, ForeignKey("series.id"), primary_key=True),
    Column("id", BigInteger, primary_key=True),
    Column("label", Integer, nullable=False),
    Column("plan", Integer, nullable=False),
    Column("added_at", BigInteger, nullable=False),
)  # fmt: skip

PLANS = Table(
    "plans", METADATA,
    Column("id", Integer, primary_key=True),
    _series(),
    Column("cuts", Text, nullable=False),
    UniqueConstraint("series", "cuts"),
)  # fmt: skip

ALARMS = Table(
    "alarms", METADATA,
    Column("id", Integer, primary_key=True),
    _series(),
    Column("rule", String(32), nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("harmful", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("segments", Text, nullable=False),
    Column("evidence", Float),
    Column("note", Text, nullable=False),
    Column("reset", BigInteger),
    Column("raised_at", BigInteger, nullable=False),
    Column("closed_at", BigInteger),
    UniqueConstraint("series", "rule", "first"),
)  # fmt: skip

CHANNELS = Table(
    "channels", METADATA,
    Column("id", Integer, primary_key=True),
    Column("series", Integer, ForeignKey("series.id")),
    Column("kind", String(16), nullable=False),
    Column("settings", Text, nullable=False),
    UniqueConstraint("series", "kind", "settings"),
)  # fmt: skip

OUTBOX = Table(
    "outbox", METADATA,
    Column("id", Integer, primary_key=True),
    Column("alarm", Integer, ForeignKey("alarms.id")),
    Column("channel", Integer, ForeignKey("channels.id"), nullable=False),
    Column("event", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    UniqueConstraint("alarm", "channel", "event"),
    Index("outbox_due", "state", "next_at"),
)  # fmt: skip
