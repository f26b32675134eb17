"""A store with two series, two alarms of each and no channels; alarms; servers."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from leadline.monitor import schema
from leadline.monitor.records import Alarm, AlarmState, Window
from leadline.monitor.windows import microseconds
from notification_servers import MailServer, Web

NOW = datetime(2026, 3, 5, 2, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def make_alarm() -> Callable[..., Alarm]:
    """Return a maker of alarms."""
    first = Window(1, datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))
    last = Window(3, datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC))
    alarm = Alarm(
        1, "fraud", "estimated-fall", AlarmState.OPEN, True, first, last, NOW, None,
        "Estimated accuracy fell from 92% to 85%.", ({"country": "de"}, {"country": "fr"}), 1234.5,
    )  # fmt: skip

    def make(**changes: Any) -> Alarm:
        return replace(alarm, **changes)

    return make


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "monitor.db"


@pytest.fixture
def engine(database: Path) -> Iterator[Engine]:
    engine = sa.create_engine(f"sqlite:///{database}")
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
    schema.METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(schema.MODELS.insert().values(id="m", data=b""))
        for series in ("fraud", "churn"):
            connection.execute(
                schema.SERIES.insert().values(name=series, model="m", settings="{}", n_rows=0, registered_at=0)
            )
        same = {"rule": "floor", "state": "open", "harmful": True, "reason": "", "segments": "[]", "note": ""}
        for number in range(4):
            times = {"first": number, "last": number, "raised_at": microseconds(NOW)}
            connection.execute(schema.ALARMS.insert().values(series=1 + number // 2, **times, **same))
    yield engine
    engine.dispose()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate of this machine, with its key."""
    if which("openssl") is None:
        pytest.skip("openssl is not installed; it makes the certificate of the servers")
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", path, "-out", f"{path}.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """Return what servers with that certificate need."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def make_mail_server(request: pytest.FixtureRequest) -> Iterator[Callable[..., MailServer]]:
    """Return a maker of mail servers: with TLS or without."""
    servers: list[MailServer] = []

    def make(*, tls: bool = False, implicit: bool = False) -> MailServer:
        servers.append(MailServer(request.getfixturevalue("tls") if tls else None, implicit=implicit))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust that certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
