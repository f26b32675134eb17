"""What comes from the network: archives, and the answers of servers to downloads and to notifications."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fuzz.lying_server import LyingServer, file, message, raw
from fuzz.target import BrokenPromiseError, MakeTarget, Target, unless_refused, write_afresh
from leadline.bench.download import Download, fetch
from leadline.bench.unpacking import unpack
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.webhook import Webhook

MEMBER, CONTENT = "set/a.txt", b"hello"


def _unpack(folder: Path, data: bytes) -> bool:
    archive, place = folder / "archive", folder / "unpacked"
    shutil.rmtree(place, ignore_errors=True)
    write_afresh(archive, data)

    def work() -> bool:
        unpack(archive, place)
        return True

    done = unless_refused(work)
    left = [path.name for path in place.iterdir()] if place.is_dir() else []
    if left and (done is None or ".archive.unpacking" in left):
        raise BrokenPromiseError(f"an archive that was refused leaves {left[0]!r}")
    return done is not None


def _download(folder: Path, server: LyingServer, data: bytes) -> bool:
    """Fetch from a server that answers with these bytes, whatever it is asked."""
    place = folder / "downloads"
    shutil.rmtree(place, ignore_errors=True)
    server.answers = [raw(data)]
    item = Download(server.url, "set.tar.gz", MEMBER, unpack=".")
    made = unless_refused(lambda: fetch(item, place, wait=0.0))
    if made is not None and made.read_bytes() != CONTENT:
        raise BrokenPromiseError(f"a download has {made.read_bytes()!r} in place of what was sent")
    return made is not None


def _notify(folder: Path, server: LyingServer, data: bytes) -> bool:
    """Send a notification to a server that answers with these bytes."""
    del folder
    server.answers = [raw(data)]
    try:
        Webhook().send({"text": "fell"}, {"url": server.url, "timeout": 2}, Secrets({}))
    except DeliveryError as error:
        if not str(error).isprintable():
            raise BrokenPromiseError(f"a reason must be one readable line; got {str(error)!r}") from error
        return False
    return True


def _answers(content: bytes) -> list[bytes]:
    """Return answers of good servers."""
    chunks = b"5\r\n" + content[:5] + b"\r\n%x\r\n" % len(content[5:]) + content[5:] + b"\r\n0\r\n\r\n"
    chunked = message("200 OK", "Transfer-Encoding: chunked", body=chunks)
    return [file(content)(None), chunked(None), message("404 Gone", "Content-Length: 0")(None)]


def _tar(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        entry = tarfile.TarInfo(MEMBER)
        entry.size = len(CONTENT)
        tar.addfile(entry, io.BytesIO(CONTENT))
    return buffer.getvalue()


def _zip(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(MEMBER, CONTENT)
    return buffer.getvalue()


def _served(attempt: Callable[[Path, LyingServer, bytes], bool], folder: Path) -> Target:
    return Target(partial(attempt, folder, LyingServer(raw(b""))), _answers(_tar("w:gz")))


TARGETS: dict[str, MakeTarget] = {
    "archive": lambda folder: Target(
        partial(_unpack, folder), [_tar("w"), _tar("w:gz"), _zip(zipfile.ZIP_DEFLATED), _zip(zipfile.ZIP_LZMA)]
    ),
    "download": partial(_served, _download),
    "webhook": partial(_served, _notify),
}
