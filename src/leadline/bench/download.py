"""Files from the network: whole and verified, or not at all."""

from __future__ import annotations

import hashlib
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Literal

from leadline.bench.inputs import find
from leadline.bench.unpacking import ArchiveError, unpack
from leadline.comparison import Progress
from leadline.data.names import one_line
from leadline.errors import InputError

_CHUNK = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte
_ATTEMPTS = 4
#: Kinds of checksum by their length.
_KINDS = {32: "md5", 40: "sha1", 64: "sha256"}
#: Answers of a server that may be better the next time.
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", re.ASCII)


class _InterruptedError(Exception):
    """A transfer failed, and may succeed when it is tried again."""


@dataclass(frozen=True)
class Download:
    """A file that a suite needs and whose licence allows fetching it.

    Attributes
    ----------
    url
        Where it is.
    path
        Where it goes, below the data folder.
    checksum
        MD5, SHA-1 or SHA-256 in hexadecimal, as published; None where nobody published one, which is allowed for
        archives: their own structure tells of damage.
    unpack
        For an archive: the folder, below the data folder, into which it is unpacked; None to keep it as it
        is.
    makes
        What must exist afterwards, below the data folder; ``a|b`` where either will do.
    also
        More that must exist afterwards: an archive that was unpacked in part may have made the first only.
    """

    url: str
    path: str
    makes: str
    checksum: str | None = None
    unpack: str | None = None
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a file of which nothing could be verified."""
        if self.checksum is None and self.unpack is None:
            raise InputError(f"a download must have a checksum or be an archive; {self.path} is neither.")

    def made(self, data: Path) -> Path | None:
        """Return what it makes if all of that is there."""
        found = [find(data, paths) for paths in (self.makes, *self.also)]
        return found[0] if all(found) else None


def fetch(item: Download, data: Path, progress: Progress | None = None, *, wait: float = 1.0) -> Path:
    """Bring a file into the data folder, unless what it makes is there already.

    The bytes go to ``<path>.part``, and what breaks off continues there, a few times now and at a later call. Only a
    complete file of the right checksum whose archive, if it is one, was unpacked completely gets its real name; one
    that was put together of pieces and is wrong is fetched once more, from the beginning.

    Parameters
    ----------
    item
        What to fetch.
    data
        The data folder.
    progress
        Called while bytes arrive, with bytes done, bytes in all (0 if unknown), and what is being fetched.
    wait
        Seconds before the second attempt; twice as long before each further one.

    Returns
    -------
    Path
        What the item makes.
    """
    if made := item.made(data):
        return made
    file = data / item.path
    if not file.exists():
        _bring(item, file, data, progress or (lambda *_: None), wait)
    elif wrong := _problem(file, item, data):  # put there by hand
        raise InputError(f"{file} {wrong} Delete it and prepare again.")
    if made := item.made(data):
        return made
    raise InputError(
        f"{file} must contain {', '.join((item.makes, *item.also))}; it does not. Delete it and prepare again."
    )


def _bring(item: Download, file: Path, data: Path, progress: Progress, wait: float) -> None:
    """Receive a file, and give it its name when nothing is wrong with it."""
    part = file.with_name(file.name + ".part")
    for last in (False, True):
        in_pieces = _receive(item.url, part, progress, wait)
        wrong = _problem(part, item, data)
        if not wrong:
            break
        part.unlink()  # so that the next attempt starts afresh
        if last or not in_pieces:
            raise InputError(f"{item.url} {wrong} It was removed.")
    part.replace(file)


def _problem(file: Path, item: Download, data: Path) -> str:
    """Return what is wrong with a file; nothing where it is right, and then its archive is unpacked."""
    if item.checksum is not None:
        kind = _KINDS[len(item.checksum)]
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
        if found != item.checksum:
            return f"must have the {kind} checksum {item.checksum}; got {found}."
    if item.unpack is not None:
        try:
            unpack(file, data / item.unpack)
        except ArchiveError as error:
            return str(error)
    return ""


def _receive(url: str, part: Path, progress: Progress, wait: float) -> bool:
    """Append to ``part`` what is missing of the file at ``url``; return whether it came in pieces."""
    in_pieces, reason = False, ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        with _writing(part):
            part.parent.mkdir(parents=True, exist_ok=True)
            done = part.stat().st_size if part.exists() else 0
        in_pieces = in_pieces or done > 0
        try:
            _append(url, part, done, progress)
        except _InterruptedError as error:
            reason = one_line(error)
        else:
            return in_pieces
    raise InputError(f"{url} {reason}; run the command again to continue.")


def _append(url: str, part: Path, done: int, progress: Progress) -> None:
    """Ask once for what is missing of a file after ``done`` bytes, and append it."""
    request = urllib.request.Request(url, headers={"User-Agent": "leadline"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and done:
            found = _RANGE.fullmatch(error.headers.get("Content-Range") or "")
            if found and found[2] == str(done):
                return  # nothing is missing
            raise _afresh(part) from error
        fault = f"could not be fetched ({error.code} {one_line(error.reason)})"
        raise (_InterruptedError(fault) if error.code in _PASSING else InputError(f"{url} {fault}.")) from error
    except urllib.error.URLError as error:
        raise InputError(f"{url} could not be fetched ({one_line(error.reason)}); run the command again.") from error
    except (HTTPException, OSError, ValueError) as error:  # hung up, or an answer that is not HTTP
        raise _InterruptedError(f"could not be fetched ({one_line(error) or type(error).__name__})") from error
    with answer:
        mode, total = _plan(answer, done, part)
        done = done if mode == "ab" else 0
        with _writing(part), part.open(mode) as stream:
            for block in _blocks(answer):
                stream.write(block)
                done += len(block)
                progress(done, total, part.name.removesuffix(".part"))
    if done < total:
        raise _InterruptedError(f"broke off after {done} of {total} bytes")


def _blocks(answer: HTTPResponse) -> Iterator[bytes]:
    """Yield the body of an answer."""
    try:
        while block := answer.read(_CHUNK):
            yield block
    except (HTTPException, OSError, ValueError) as error:
        raise _InterruptedError(f"broke off ({one_line(error) or type(error).__name__})") from error


def _length(answer: HTTPResponse) -> int | None:
    """Return how many bytes a server says that it sends; None where it leaves that open."""
    if answer.chunked:
        return None
    said = set(answer.headers.get_all("Content-Length", []))
    if not said:
        return None
    if len(said) > 1 or not all(map(_LENGTH.fullmatch, said)):
        raise _InterruptedError(f"could not be fetched (its length is {', '.join(map(repr, sorted(said)))})")
    return int(said.pop())


def _plan(answer: HTTPResponse, done: int, part: Path) -> tuple[Literal["ab", "wb"], int]:
    """Return how to open a file for an answer, to append or to write from the beginning, and its size; 0 if unknown."""
    missing = _length(answer) or 0
    if answer.status == 200:
        return "wb", missing
    found = _RANGE.fullmatch(answer.headers.get("Content-Range") or "")
    if answer.status == 206 and found and found[1] == str(done):
        return "ab", done + missing
    if answer.status == 206 and done:  # another part than the one asked for
        raise _afresh(part)
    raise InputError(f"{answer.url} could not be fetched (answered with {answer.status}, which was not asked for).")


def _afresh(part: Path) -> _InterruptedError:
    """Remove what was received, which does not fit what the server has, and return why."""
    with _writing(part):
        part.unlink()
    return _InterruptedError("could not be continued (the server has something else)")


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    """Turn a refusal of the system into one line."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{part} cannot be written ({error.strerror or error}).") from error
