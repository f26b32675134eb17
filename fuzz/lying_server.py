"""A server on this machine that answers with whatever bytes it is given, HTTP or not."""

from __future__ import annotations

import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from threading import Thread

#: From the start of the range that was asked for (None for the whole) to the bytes of the answer.
Answer = Callable[[int | None], bytes]


def raw(answer: bytes) -> Answer:
    """Answer with these bytes, whatever was asked for."""
    return lambda start: answer


def message(status: str, *headers: str, body: bytes = b"") -> Answer:
    """Answer with a status line, headers and a body, true or not."""
    return raw("\r\n".join((f"HTTP/1.1 {status}", *headers, "", "")).encode() + body)


def file(content: bytes, *, breaks_at: int | None = None) -> Answer:
    """Answer honestly, but hang up at some byte."""

    def answer(start: int | None) -> bytes:
        if start is not None and start >= len(content):
            return message("416 No More", f"Content-Range: bytes */{len(content)}", "Content-Length: 0")(start)
        first = start or 0
        status = "200 OK" if start is None else "206 Partial Content"
        place = f"Content-Range: bytes {first}-{len(content) - 1}/{len(content)}"
        length = f"Content-Length: {len(content) - first}"
        return message(status, place, length, body=content[first:breaks_at])(start)

    return answer


class LyingServer:
    """A server that gives its answers one after the other, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[str] = []
        self.answers = list(answers)
        lying = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    self.wfile.write(lying._answer(self.rfile))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/set"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def _answer(self, request: BufferedIOBase) -> bytes:
        lines = iter(request.readline, b"\r\n")
        headers = dict(line.decode().strip().split(": ") for line in lines if b": " in line)
        request.read(int(headers.get("Content-Length", 0)))
        self.asked.append(headers.get("Range", "all"))
        start = int(headers["Range"].removeprefix("bytes=").removesuffix("-")) if "Range" in headers else None
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(start)

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(*answers: Answer) -> Iterator[LyingServer]:
    """Give a server, for a while."""
    server = LyingServer(*answers)
    try:
        yield server
    finally:
        server.stop()
