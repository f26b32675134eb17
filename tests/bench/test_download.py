"""Downloads from a server of the test's own, which breaks off, lies and speaks nonsense."""

from __future__ import annotations

import hashlib
import io
import resource
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fuzz.lying_server import Answer, file, message, raw, serving
from leadline.bench.datasets import SUITES
from leadline.bench.download import Download
from leadline.bench.download import fetch as patient_fetch
from leadline.errors import InputError
from official_files import write_amazon_wilds


def archive_bytes(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in (members or {"set/values.txt": b"hello"}).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


WHOLE = archive_bytes()
MD5 = hashlib.md5(WHOLE, usedforsecurity=False).hexdigest()


# urllib leaves the connection of an answer that it cannot parse to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
fetch = partial(patient_fetch, wait=0.0)


def archive_at(url: str, checksum: str | None = MD5) -> Download:
    return Download(url, "set.tar.gz", "set/values.txt", checksum, ".")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_download_that_breaks_off_continues_and_is_verified(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    with serving(file(WHOLE, breaks_at=40), file(WHOLE)) as server:
        assert fetch(archive_at(server.url), tmp_path, lambda *step: seen.append(step)).read_text() == "hello"
        assert seen[-1] == (len(WHOLE), len(WHOLE), "set.tar.gz")
        assert fetch(archive_at(server.url), tmp_path).read_text() == "hello"
    assert server.asked == ["all", "bytes=40-"]  # the second time there was nothing to ask for


def test_a_download_that_breaks_off_again_and_again_continues_with_the_next_command(tmp_path: Path) -> None:
    with serving(file(WHOLE, breaks_at=40)) as server:
        with pytest.raises(InputError, match=rf"broke off after 40 of {len(WHOLE)} bytes; run the command again"):
            fetch(archive_at(server.url), tmp_path)
        assert len(server.asked) == 4
    assert names(tmp_path) == ["set.tar.gz.part"]
    with serving(file(WHOLE)) as server:
        fetch(archive_at(server.url), tmp_path)
    assert server.asked == ["bytes=40-"]


CHUNKED = "Transfer-Encoding: chunked"
NONSENSE: dict[str, tuple[Answer, str]] = {
    "nothing": (raw(b""), "closed connection without response"),
    "not HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "could not be fetched"),
    "status in words": (message("fine"), "could not be fetched"),
    "status of five digits": (message("20000 OK"), "could not be fetched"),
    "no content": (message("204 No Content"), "answered with 204, which was not asked for"),
    "unasked part": (message("206 Part", "Content-Range: bytes 5-6/9", "Content-Length: 2", body=b"xy"), "with 206"),
    "many headers": (message("200 OK", *(f"X-{i}: x" for i in range(200))), "more than 100 headers"),
    "long header": (message("200 OK", "X: " + "x" * 70000), "more than 65536 bytes"),
    "length in words": (message("200 OK", "Content-Length: many", body=WHOLE), "its length is 'many'"),
    "negative length": (message("200 OK", "Content-Length: -5", body=WHOLE), "its length is '-5'"),
    "endless length": (message("200 OK", f"Content-Length: {'9' * 5000}", body=WHOLE), "its length is '999"),
    "two lengths": (message("200 OK", "Content-Length: 3", "Content-Length: 5", body=b"abcde"), "length is '3', '5'"),
    "length too long": (message("200 OK", "Content-Length: 10000", body=WHOLE), f"broke off after {len(WHOLE)} of"),
    "chunk in words": (message("200 OK", CHUNKED, body=b"many\r\nxx"), "broke off"),
    "negative chunk": (message("200 OK", CHUNKED, body=b"-5\r\nabcde"), "broke off"),
    "chunk too short": (message("200 OK", CHUNKED, body=b"ff\r\nxx"), "broke off"),
    "chunks without end": (message("200 OK", CHUNKED, body=b"2\r\nxx\r\n"), "broke off"),
    "no such place": (message("302 Found", "Location: http://[::1"), "could not be fetched"),
    "a place of files": (message("302 Found", "Location: file:///etc/passwd"), "could not be fetched"),
    "in circles": (message("302 Found", "Location: /set"), "could not be fetched"),
    "gone": (message("404 \x1b[2JGone"), r"could not be fetched \(404 \[2JGone\)\.$"),
    "overloaded": (message("503 Later"), r"could not be fetched \(503 Later\); run the command again"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_an_answer_that_makes_no_sense_is_one_line(case: str, tmp_path: Path) -> None:
    answer, pattern = NONSENSE[case]
    with serving(answer) as server, pytest.raises(InputError, match=pattern) as caught:
        fetch(archive_at(server.url), tmp_path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert set(names(tmp_path)) <= {"set.tar.gz.part"}


#: Answers of a server that understood, and of one that has no more to say.
FINAL = {"no content", "unasked part", "gone", "no such place", "a place of files", "in circles"}


@pytest.mark.parametrize("case", sorted(NONSENSE.keys() - FINAL))
def test_nonsense_that_passes_is_asked_again(case: str, tmp_path: Path) -> None:
    with serving(NONSENSE[case][0], file(WHOLE)) as server:
        assert fetch(archive_at(server.url), tmp_path).read_text() == "hello"


def test_a_server_that_ignores_the_range_is_read_from_the_beginning(tmp_path: Path) -> None:
    again = message("200 OK", f"Content-Length: {len(WHOLE)}", body=WHOLE)
    other = message("206 Part", f"Content-Range: bytes 0-{len(WHOLE) - 1}/{len(WHOLE)}", body=WHOLE)
    silent = message("206 Part", f"Content-Length: {len(WHOLE)}", body=WHOLE)
    for place, answer in enumerate((again, other, silent)):
        folder = tmp_path / str(place)
        with serving(file(WHOLE, breaks_at=40), answer, file(WHOLE)) as server:
            assert fetch(archive_at(server.url, None), folder).read_text() == "hello"


@pytest.mark.parametrize("checksum", [MD5, None], ids=["checksum", "none"])
def test_a_206_that_lies_about_its_place_is_found_out(checksum: str | None, tmp_path: Path) -> None:
    lie = message("206 Part", f"Content-Range: bytes 40-{len(WHOLE) - 1}/{len(WHOLE)}", body=WHOLE)
    with serving(file(WHOLE, breaks_at=40), lie, file(WHOLE)) as server:
        assert fetch(archive_at(server.url, checksum), tmp_path).read_text() == "hello"
    assert server.asked == ["all", "bytes=40-", "all"]


@pytest.mark.parametrize("checksum", [MD5, None], ids=["checksum", "none"])
@pytest.mark.parametrize("foreign", [b"Dear Sir", WHOLE + b"more", WHOLE[:-1] + b"?"], ids=["short", "long", "equal"])
def test_the_part_of_another_file_is_not_continued(foreign: bytes, checksum: str | None, tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz.part").write_bytes(foreign)
    with serving(file(WHOLE)) as server:
        assert fetch(archive_at(server.url, checksum), tmp_path).read_text() == "hello"
    assert server.asked[0] == f"bytes={len(foreign)}-"
    assert names(tmp_path) == ["set", "set.tar.gz"]


def test_a_complete_part_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz.part").write_bytes(WHOLE)
    with serving(file(WHOLE)) as server:
        assert fetch(archive_at(server.url), tmp_path).read_text() == "hello"
    assert len(server.asked) == 1


def test_a_folder_in_place_of_a_part_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz.part").mkdir()
    with serving(file(WHOLE)) as server, pytest.raises(InputError, match=r"set\.tar\.gz\.part cannot be written"):
        fetch(archive_at(server.url), tmp_path)


def test_a_full_disk_is_one_line_and_not_asked_again(tmp_path: Path) -> None:
    with serving(message("200 OK", "Content-Length: 300000", body=bytes(300000))) as server:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, before[1]))
        try:
            with pytest.raises(InputError, match=r"set.tar.gz.part cannot be written \(File too large\)\.$"):
                fetch(archive_at(server.url), tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(server.asked) == 1


def test_what_is_no_archive_is_removed(tmp_path: Path) -> None:
    for content in (b"<html>Please log in</html>", b"", WHOLE[:-9], WHOLE[:60] + b"\xff" + WHOLE[61:]):
        with serving(file(content)) as server, pytest.raises(InputError, match=r"cannot be unpacked .* was removed\.$"):
            fetch(archive_at(server.url, None), tmp_path)
        assert names(tmp_path) == []
    (tmp_path / "cifar-10.1").mkdir()
    assert "cifar-10.1 or CIFAR-10.1/datasets" in SUITES["cifar10"].left_out(tmp_path)


def test_a_download_has_a_checksum_or_is_an_archive() -> None:
    with pytest.raises(InputError, match=r"must have a checksum or be an archive; a\.bin is neither"):
        Download("http://127.0.0.1:1/never", "a.bin", "a.bin")


def test_half_of_an_archive_is_not_present(tmp_path: Path) -> None:
    content = archive_bytes(**{"reviews.csv": b"overall,reviewText\n1,a\n", "splits/user.csv": b"split\n3\n"})
    write_amazon_wilds(tmp_path, ["good"], [0])
    (tmp_path / "amazon_v2.1/splits/user.csv").unlink()  # as an interrupted tar leaves it
    assert SUITES["amazon-wilds"].missing(tmp_path) == ["amazon_v2.1/splits/user.csv or amazon_v2.0/splits/user.csv"]
    with serving(file(content)) as server:
        fetch(replace(SUITES["amazon-wilds"].downloads[0], url=server.url), tmp_path)
    assert server.asked == ["all"]
    assert SUITES["amazon-wilds"].missing(tmp_path) == []
    assert (tmp_path / "amazon_v2.1/splits/user.csv").read_text() == "split\n3\n"


def test_an_archive_put_there_by_hand_is_verified_too(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz").write_bytes(WHOLE)
    with pytest.raises(
        InputError, match=r"set.tar.gz must have the md5 checksum 0+; got .*Delete it and prepare again"
    ):
        fetch(archive_at("http://127.0.0.1:1/never", "0" * 32), tmp_path)
    assert names(tmp_path) == ["set.tar.gz"]  # not ours to remove


@pytest.mark.parametrize(("kind", "length"), [("md5", 32), ("sha1", 40), ("sha256", 64)])
def test_a_wrong_checksum_is_refused_and_removed(tmp_path: Path, kind: str, length: int) -> None:
    with (
        serving(file(b"something else")) as server,
        pytest.raises(InputError, match=f"must have the {kind} checksum 000"),
    ):
        fetch(Download(server.url, "a.bin", "a.bin", "0" * length), tmp_path)
    assert names(tmp_path) == []
