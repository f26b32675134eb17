"""Files from the network: whole and verified, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from leadline.bench.inputs import find
from leadline.comparison import Progress
from leadline.errors import InputError

_CHUNK = 1 << 20
#: Kinds of checksum by their length.
_KINDS = {32: "md5", 40: "sha1", 64: "sha256"}

#: What reading a damaged archive may raise; some of it depends on which byte is wrong.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile)


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
        MD5, SHA-1 or SHA-256 in hexadecimal, as published; None where nobody published one.
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

    def made(self, data: Path) -> Path | None:
        """Return what it makes if all of that is there."""
        found = [find(data, paths) for paths in (self.makes, *self.also)]
        return found[0] if all(found) else None


def fetch(item: Download, data: Path, progress: Progress | None = None) -> Path:
    """Bring a file into the data folder, unless what it makes is there already.

    The bytes go to ``<path>.part``; a later call continues there. Only a complete file of the right checksum
    gets its real name, and only a completely unpacked archive its folder.

    Parameters
    ----------
    item
        What to fetch.
    data
        The data folder.
    progress
        Called while bytes arrive, with bytes done, bytes in all (0 if unknown), and what is being fetched.

    Returns
    -------
    Path
        What the item makes.
    """
    if made := item.made(data):
        return made
    file = data / item.path
    if not file.exists():
        part = file.with_name(file.name + ".part")
        _receive(item.url, part, progress or (lambda *_: None))
        if wrong := _mismatch(part, item.checksum):
            part.unlink()  # so that the next attempt starts afresh
            raise InputError(f"{item.url} {wrong} It was removed.")
        part.replace(file)
    elif wrong := _mismatch(file, item.checksum):  # put there by hand
        raise InputError(f"{file} {wrong} Delete it and prepare again.")
    if item.unpack is not None:
        unpack(file, data / item.unpack)
    if made := item.made(data):
        return made
    raise InputError(
        f"{file} must contain {', '.join((item.makes, *item.also))}; it does not. Delete it and prepare again."
    )


def _receive(url: str, part: Path, progress: Progress) -> None:
    """Append to ``part`` what is missing of the file at ``url``."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "leadline"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            if done and answer.status != 206:  # the server starts again from the beginning
                done = 0
            part.parent.mkdir(parents=True, exist_ok=True)
            total = done + int(answer.headers.get("Content-Length") or 0)
            with part.open("ab" if done else "wb") as file:
                while block := answer.read(_CHUNK):
                    file.write(block)
                    done += len(block)
                    progress(done, total, part.name.removesuffix(".part"))
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # nothing is missing; the checksum decides
            return
        raise InputError(f"{url} could not be fetched ({error.code} {error.reason}).") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{url} could not be fetched ({reason}); run the command again to continue.") from error
    if total and done < total:
        raise InputError(f"{url} broke off after {done} of {total} bytes; run the command again to continue.")


def _mismatch(path: Path, checksum: str | None) -> str:
    """Return what is wrong with the checksum of a file; nothing where it is right or nobody published one."""
    if checksum is None:
        return ""
    kind = _KINDS[len(checksum)]
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
    return "" if found == checksum else f"must have the {kind} checksum {checksum}; got {found}."


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip archive; entries that would leave the folder are refused.

    Everything goes to a folder beside it first and moves into place when it is complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staging = folder / f".{archive.name}.unpacking"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                for name in file.namelist():
                    _require_inside(name)
                file.extractall(staging)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(staging, **_safe())
                while tar.fileobj is not None and tar.fileobj.read(_CHUNK):
                    pass  # to the checksum at the very end, which tells of a wrong byte anywhere before
        for entry in staging.iterdir():
            target = folder / entry.name
            if target.is_dir() and entry.is_dir():
                shutil.copytree(entry, target, dirs_exist_ok=True)
            else:
                entry.replace(target)
    except _DAMAGE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(":")  # the first of many lines
        raise InputError(f"{archive} could not be unpacked ({reason}); delete it and prepare again.") from error
    finally:
        shutil.rmtree(staging)


def _safe() -> dict[str, Any]:
    """Return tarfile's own protection against entries outside the folder, links and devices."""
    return {"filter": "data"}


def _require_inside(name: str) -> None:
    """Refuse an absolute path and one that climbs out."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"archive entries must stay inside their folder; got {name!r}.")
