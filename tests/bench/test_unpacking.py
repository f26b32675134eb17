"""Archives that are damaged, incomplete, exotic or hostile: one line, and nothing left behind."""

from __future__ import annotations

import io
import resource
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.bench.unpacking import ArchiveError, unpack
from leadline.errors import InputError

CONTENT = b"hello"


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in entries:
            file.writestr(name, content)
    return buffer.getvalue()


def tarred(*entries: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    return tar_of(*((tarfile.TarInfo(name), content) for name, content in entries), mode=mode)


def tar_of(*entries: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for info, content in entries:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def patched(archive: bytes, offset: int, value: int) -> bytes:
    """Return a zip archive of one entry with a field of both of its headers changed; the offset is of the first."""
    local, central = archive.index(b"PK\x03\x04") + offset, archive.index(b"PK\x01\x02") + offset + 2
    changed = bytearray(archive)
    changed[local : local + 2] = changed[central : central + 2] = struct.pack("<H", value)
    return bytes(changed)


def zip_link() -> bytes:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zipped((info, b"/etc/passwd"))


def zip_names_twice() -> bytes:
    return zipped(("a.txt", CONTENT), ("b.txt", CONTENT)).replace(b"b.txt", b"a.txt")


def zip_overlapping(times: int = 40) -> bytes:
    """Write one entry, to which many names in the directory at the end lead."""
    plain = zipped(("a00.txt", bytes(1 << 20)))
    start, end = plain.index(b"PK\x01\x02"), plain.index(b"PK\x05\x06")
    entries = b"".join(plain[start:end].replace(b"a00.txt", b"a%02d.txt" % i) for i in range(times))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, times, times, len(entries), start, 0)
    return plain[:start] + entries + tail


def tar_typed(kind: bytes, target: str = "") -> bytes:
    info = tarfile.TarInfo("odd")
    info.type, info.linkname = kind, target
    return tar_of((info, b""))


def tar_header(kind: bytes, size: int) -> bytes:
    info = tarfile.TarInfo("long")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def damaged_header() -> bytes:
    """Return an uncompressed archive whose second header has a wrong byte: tarfile takes it for the end."""
    whole = bytearray(tarred(("a.txt", CONTENT), ("b.txt", CONTENT), mode="w"))
    whole[1024] ^= 1
    return bytes(whole)


PLAIN_ZIP = zipped(("a.txt", CONTENT))
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "no archive": (lambda: b"Dear Sir", "cannot be unpacked"),
    "empty": (lambda: b"", "cannot be unpacked"),
    "zip: encrypted": (lambda: patched(PLAIN_ZIP, 6, 1), "'a.txt' is encrypted"),
    "zip: unknown compression": (lambda: patched(PLAIN_ZIP, 8, 97), "not supported"),
    "zip: compression that is not there": (lambda: patched(PLAIN_ZIP, 8, 14), "cannot be unpacked"),
    "zip: unknown version": (lambda: patched(PLAIN_ZIP, 4, 99), "zip file version"),
    "zip: absolute path": (lambda: zipped(("/etc/x", CONTENT)), "'/etc/x' would leave its folder"),
    "zip: climbs": (lambda: zipped(("a/../../x", CONTENT)), "'a/../../x' would leave its folder"),
    "zip: link": (zip_link, "'link' is a link"),
    "zip: name twice": (zip_names_twice, r"'a\.txt' comes twice"),
    "zip: name twice, spelt otherwise": (lambda: zipped(("a/b", b"x"), ("a/./b", b"y")), "comes twice"),
    "zip: file and folder": (lambda: zipped(("a", b"x"), ("a/b", b"y")), "cannot be unpacked"),
    "zip: long name": (lambda: zipped(("a" * 5000, b"x")), "cannot be unpacked"),
    "zip: escape in the name": (lambda: zipped(("../\x1b[2J", b"x")), "would leave"),
    "zip: bomb": (lambda: zipped(("zeros", bytes(30 << 20))), r"would grow from \d+ to 31457280 bytes"),
    "zip: overlapping entries": (zip_overlapping, "would grow"),
    "tar: climbs": (lambda: tarred(("../x", CONTENT)), "cannot be unpacked"),
    "tar: link out": (lambda: tar_typed(tarfile.SYMTYPE, "/etc"), "'odd' is a link"),
    "tar: link in": (lambda: tar_typed(tarfile.SYMTYPE, "a.txt"), "'odd' is a link"),
    "tar: hard link out": (lambda: tar_typed(tarfile.LNKTYPE, "../../x"), "cannot be unpacked"),
    "tar: hard link to nothing": (lambda: tar_typed(tarfile.LNKTYPE, "nothing"), "cannot be unpacked"),
    "tar: device": (lambda: tar_typed(tarfile.CHRTYPE), "cannot be unpacked"),
    "tar: pipe": (lambda: tar_typed(tarfile.FIFOTYPE), "cannot be unpacked"),
    "tar: bomb": (lambda: tarred(("zeros", bytes(30 << 20))), "would grow"),
    "tar: name of 9 GB": (lambda: tar_header(tarfile.GNUTYPE_LONGNAME, 8 << 30), "a header claims 8589934592 bytes"),
    "tar: attributes of 9 GB": (lambda: tar_header(tarfile.XHDTYPE, 8 << 30), "a header claims"),
    "tar: damaged header": (damaged_header, "damaged or cut off after 1024 bytes"),
    "tar: cut between entries": (lambda: tarred(("a.txt", CONTENT), mode="w")[:1024], "damaged or cut off"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_archive_is_one_line_and_leaves_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.bench.unpacking._SUSPICIOUS_BYTES", 20 << 20)
    make, pattern = REFUSED[case]
    (tmp_path / "set").write_bytes(make())
    with pytest.raises(ArchiveError, match=pattern) as caught:
        unpack(tmp_path / "set", tmp_path / "in")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "set"]


@pytest.mark.parametrize(
    "whole",
    [
        zipped(("set/a.txt", CONTENT)),
        zipped(("set/a.txt", CONTENT), method=zipfile.ZIP_STORED),
        zipped(("set/a.txt", CONTENT), method=zipfile.ZIP_LZMA),
        tarred(("set/a.txt", CONTENT)),
        tarred(("set/a.txt", CONTENT), mode="w:xz"),
        tarred(("set/a.txt", CONTENT), mode="w"),
        tarred(("set/a.txt", b"old"), ("set/a.txt", CONTENT)),
        tarred(("long/" * 40 + "a.txt", CONTENT)),
    ],
    ids=["zip", "stored zip", "LZMA zip", "gzip", "xz", "tar", "tar that was added to", "long name"],
)
def test_what_is_in_order_is_unpacked_beside_what_is_there(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "in/set").mkdir(parents=True)
    (tmp_path / "in/set/kept.txt").write_text("kept")
    (tmp_path / "archive").write_bytes(whole)
    unpack(tmp_path / "archive", tmp_path / "in")
    (found,) = (tmp_path / "in").rglob("a.txt")
    assert found.read_bytes() == CONTENT
    assert (tmp_path / "in/set/kept.txt").read_text() == "kept"
    assert not [path for path in (tmp_path / "in").iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("make", [tarred, zipped], ids=["tar", "zip"])
def test_any_damage_gets_one_line_and_leaves_nothing(make: Callable[..., bytes], tmp_path: Path) -> None:
    whole = make(("set/values.txt", CONTENT))
    contents = [whole[:length] for length in range(0, len(whole), 7)]
    contents += [whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in range(10, len(whole))]
    refused: list[str] = []
    for content in contents:
        (tmp_path / "set").write_bytes(content)
        try:
            unpack(tmp_path / "set", tmp_path / "in")
        except InputError as error:
            refused.append(str(error))
            assert [*(tmp_path / "in").rglob("*.txt")] == []
        else:  # a zip has bytes that say nothing, such as the time of an entry
            (found,) = (tmp_path / "in").rglob("*.*")
            assert found.read_bytes() == CONTENT
            found.unlink()
    assert len(refused) == len(contents) if make is tarred else len(refused) > len(contents) / 2
    assert all(message.isprintable() for message in refused)


def test_a_full_disk_is_not_the_fault_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "set").write_bytes(zipped(("zeros", bytes(300000))))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, before[1]))
    try:
        with pytest.raises(InputError, match=r"in cannot be written \(File too large\)\.$") as caught:
            unpack(tmp_path / "set", tmp_path / "in")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not isinstance(caught.value, ArchiveError)
    assert [*(tmp_path / "in").iterdir()] == []
