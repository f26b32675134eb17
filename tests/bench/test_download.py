"""Downloads from a server of the test's own, and archives that are damaged, incomplete or hostile."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from leadline.bench.datasets import SUITES
from leadline.bench.download import Download, fetch, unpack
from leadline.errors import InputError
from official_files import write_amazon_wilds


class Server(BaseHTTPRequestHandler):
    def __init__(self, content: bytes, breaks_at: list[int], asked: list[str], *rest: Any) -> None:
        self.content, self.breaks_at, self.asked = content, breaks_at, asked
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Range") or "all")
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        end = self.breaks_at.pop() if self.breaks_at else len(self.content)
        self.wfile.write(self.content[start:end])

    def log_message(self, *_: Any) -> None:
        pass


def archive_bytes() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("set/values.txt")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"hello"))
    return buffer.getvalue()


@pytest.fixture
def serve() -> Iterator[Any]:
    servers = []

    def start(content: bytes, breaks_at: list[int] | None = None, asked: list[str] | None = None) -> str:
        handler = partial(Server, content, breaks_at or [], [] if asked is None else asked)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/set.tar.gz"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_download_that_breaks_off_continues_and_is_verified(tmp_path: Path, serve: Any) -> None:
    content = archive_bytes()
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    asked: list[str] = []
    item = Download(serve(content, [40], asked), "set.tar.gz", "set/values.txt", md5, ".")
    with pytest.raises(InputError, match="run the command again"):
        fetch(item, tmp_path)
    assert (tmp_path / "set.tar.gz.part").stat().st_size == 40
    assert not (tmp_path / "set.tar.gz").exists()
    seen: list[tuple[int, int, str]] = []
    assert fetch(item, tmp_path, lambda *step: seen.append(step)).read_text() == "hello"
    assert seen[-1] == (len(content), len(content), "set.tar.gz")
    assert fetch(item, tmp_path).read_text() == "hello"
    assert asked == ["all", "bytes=40-"]  # the third time there was nothing to ask for


def test_what_a_broken_archive_leaves_behind_is_not_taken_for_data(tmp_path: Path, serve: Any) -> None:
    item = Download(serve(b"not an archive"), "set.tar.gz", "set|other", None, "set")
    for _ in range(2):
        with pytest.raises(InputError, match="could not be unpacked"):
            fetch(item, tmp_path)
    (tmp_path / "cifar-10.1").mkdir()
    assert "cifar-10.1 or CIFAR-10.1/datasets" in SUITES["cifar10"].left_out(tmp_path)


def test_half_of_an_archive_is_not_present(tmp_path: Path, serve: Any) -> None:
    asked: list[str] = []
    item = replace(SUITES["amazon-wilds"].downloads[0], url=serve(amazon_bytes(), asked=asked))
    write_amazon_wilds(tmp_path, ["good"], [0])
    (tmp_path / "amazon_v2.1/splits/user.csv").unlink()  # as an interrupted tar leaves it
    assert SUITES["amazon-wilds"].missing(tmp_path) == ["amazon_v2.1/splits/user.csv or amazon_v2.0/splits/user.csv"]
    fetch(item, tmp_path)
    assert asked == ["all"]
    assert SUITES["amazon-wilds"].missing(tmp_path) == []
    assert (tmp_path / "amazon_v2.1/splits/user.csv").read_text() == "split\n3\n"


def amazon_bytes() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in (("reviews.csv", b"overall,reviewText\n1,a\n"), ("splits/user.csv", b"split\n3\n")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_any_damage_to_an_archive_gets_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    whole = archive_bytes()
    contents = [whole[:length] for length in range(0, len(whole), 7)]
    contents += [whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in range(10, len(whole))]
    refused: list[str] = []
    left: list[Path] = []
    for content in contents:
        (tmp_path / "set.tar.gz").write_bytes(content)
        try:
            unpack(tmp_path / "set.tar.gz", tmp_path / "in")
        except InputError as error:
            refused.append(str(error))
            left += [*(tmp_path / "in").iterdir()]
    assert len(refused) == len(contents)
    assert not any("\n" in message for message in refused)
    assert left == []


def test_an_archive_put_there_by_hand_is_verified_too(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz").write_bytes(archive_bytes())
    item = Download("http://127.0.0.1:1/never", "set.tar.gz", "set", "0" * 32, ".")
    with pytest.raises(
        InputError, match=r"set.tar.gz must have the md5 checksum 0+; got .*Delete it and prepare again"
    ):
        fetch(item, tmp_path)
    assert (tmp_path / "set.tar.gz").exists()  # not ours to remove
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(("kind", "length"), [("md5", 32), ("sha1", 40), ("sha256", 64)])
def test_a_wrong_checksum_is_refused_and_removed(tmp_path: Path, serve: Any, kind: str, length: int) -> None:
    item = Download(serve(b"something else"), "a.bin", "a.bin", "0" * length)
    with pytest.raises(InputError, match=f"must have the {kind} checksum 000"):
        fetch(item, tmp_path)
    assert list(tmp_path.iterdir()) == []


def write_archive(path: Path, name: str) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, "x")
        return
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archives_cannot_leave_their_folder(tmp_path: Path, kind: str) -> None:
    write_archive(tmp_path / f"good.{kind}", "inside/a.txt")
    unpack(tmp_path / f"good.{kind}", tmp_path / "in")
    assert (tmp_path / "in/inside/a.txt").read_text() == "x"
    for place in ("../outside.txt", "../../outside.txt"):  # beside the folder, and beside where it is unpacked first
        write_archive(tmp_path / f"evil.{kind}", place)
        with pytest.raises(InputError, match=r"could not be unpacked|must stay inside"):
            unpack(tmp_path / f"evil.{kind}", tmp_path / "in")
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["a.txt"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["inside"]  # nor leave anything half unpacked
