"""Archives from the network: unpacked completely and inside their folder, or not at all."""

from __future__ import annotations

import errno
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Self

from leadline.data.names import one_line
from leadline.errors import InputError

_BLOCK = tarfile.BLOCKSIZE
#: An archive that would grow beyond both, in bytes and as a multiple of its size, holds no real data set.
_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO = 1 << 30, 200
#: Headers of a tar archive that are read into memory whole: long names and extended attributes.
_IN_MEMORY = frozenset(
    {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
)
_LARGEST_HEADER = 1 << 20
#: Refusals of the system; every other failure is the archive's.
_SYSTEM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO}


class ArchiveError(InputError):
    """An archive is damaged, or holds what is not unpacked; the message goes on from the archive's name."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar or zip archive.

    Everything goes to a folder beside it first and moves into place when it is complete.

    Parameters
    ----------
    archive
        The file; what is in it says which kind it is.
    folder
        Where its entries go.

    Raises
    ------
    ArchiveError
        It is damaged, cut off or encrypted, an entry would leave the folder, is a link or comes twice, or it would grow
        beyond reason.
    InputError
        The folder cannot be written.
    """
    staging = folder / f".{archive.name}.unpacking"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        with archive.open("rb") as file:
            is_zip = file.read(2) == b"PK"
        (_unpack_zip if is_zip else _unpack_tar)(archive, staging)
        _move(staging, folder)
    except InputError:
        raise
    except Exception as error:  # five decompressors parse what may be anything, and each fails in its own way
        if isinstance(error, OSError) and error.errno in _SYSTEM:
            raise InputError(f"{folder} cannot be written ({error.strerror}).") from error
        first = next(iter(str(error).splitlines()), "") or type(error).__name__  # of many lines
        raise ArchiveError(f"cannot be unpacked ({one_line(first).rstrip(':')}).") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack a zip archive whose entries are files and folders."""
    with zipfile.ZipFile(archive) as file:
        entries = file.infolist()
        seen: set[PurePosixPath] = set()
        for entry in entries:
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts:
                raise _refused(entry.filename, "would leave its folder")
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise _refused(entry.filename, "is a link")
            if path in seen:
                raise _refused(entry.filename, "comes twice")
            if entry.flag_bits & 1:
                raise _refused(entry.filename, "is encrypted")
            seen.add(path)
        _bounded(archive)(sum(entry.file_size for entry in entries))
        file.extractall(folder)


def _unpack_tar(archive: Path, folder: Path) -> None:
    """Unpack a tar archive, compressed or not; the last of entries of one name counts."""
    bounded = _bounded(archive)
    with tarfile.open(archive, tarinfo=_Entry) as file:
        tar: Any = file  # the type of entries given above is lost in its signature
        total = 0
        for entry in tar:
            if entry.issym():
                raise _refused(entry.name, "is a link")
            total += entry.size
            bounded(total)
            tar.extract(entry, folder, filter="data")  # tarfile's own protection against what leaves, and devices
        # A damaged header ends the loop as the end does; only the end is followed by a block of zeros.
        tar.fileobj.seek(tar.offset)
        if tar.fileobj.read(_BLOCK) != bytes(_BLOCK):
            raise ArchiveError(f"cannot be unpacked (it is damaged or cut off after {tar.offset} bytes).")
        while tar.fileobj.read(1 << 20):
            pass  # to the checksum at the very end, which tells of a wrong byte anywhere before


class _Entry(tarfile.TarInfo):
    """An entry of a tar archive whose name and attributes do not fill the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header."""
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _IN_MEMORY and entry.size > _LARGEST_HEADER:
            raise ArchiveError(f"cannot be unpacked (a header claims {entry.size} bytes).")
        return entry


def _refused(name: str, reason: str) -> ArchiveError:
    return ArchiveError(f"cannot be unpacked (its entry {one_line(name)!r} {reason}).")


def _bounded(archive: Path) -> Callable[[int], None]:
    """Return a check that an archive has not grown beyond reason."""
    size = archive.stat().st_size
    most = max(_SUSPICIOUS_BYTES, _SUSPICIOUS_RATIO * size)

    def check(total: int) -> None:
        if total > most:
            raise ArchiveError(f"cannot be unpacked (it would grow from {size} to {total} bytes or more).")

    return check


def _move(source: Path, target: Path) -> None:
    """Move everything in a folder into another, file by file where a folder is there already."""
    for entry in list(source.iterdir()):
        place = target / entry.name
        if place.is_dir() and entry.is_dir():
            _move(entry, place)
        else:
            entry.replace(place)
