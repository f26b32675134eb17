"""Servers on this machine that notifications are sent to: they record what comes, and fail as servers do."""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


@dataclass
class Received:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[BaseHTTPRequestHandler], None]


def status(code: int, **headers: str) -> Answer:
    """Answer with a status."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def close(handler: BaseHTTPRequestHandler) -> None:
    """Hang up without an answer."""
    handler.close_connection = True


def trickle(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, for ever."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 ")
        for _ in range(200):
            handler.wfile.write(b"x")
            time.sleep(0.02)
    except OSError:
        handler.close_connection = True


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Answer with a body that never ends."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            handler.wfile.write(b"x" * 65536)
    except OSError:
        handler.close_connection = True


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Repeat in status line, headers and body what was sent."""
    told = f"{handler.path} {handler.headers['Authorization']}"
    handler.send_response(500, told)
    handler.send_header("X-Sent", told)
    handler.end_headers()
    handler.wfile.write(told.encode())


class Web:
    """A web server, with TLS where it has a certificate."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Received] = []
        self.answer: Answer = status(204)
        self.arrived = Event()
        self._released = Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                web._take(self)

            def do_GET(self) -> None:
                web._take(self)

            def log_message(self, *args: Any) -> None:
                del args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def hang(self, handler: BaseHTTPRequestHandler) -> None:
        """Say nothing until the end of the test."""
        self._released.wait(20)
        handler.close_connection = True

    def stop(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests.append(Received(handler.command, handler.path, dict(handler.headers.items()), body))
        self.arrived.set()
        self.answer(handler)


@dataclass
class Mail:
    """A mail as the server got it."""

    sender: str
    to: list[str]
    message: EmailMessage
    user: str | None
    encrypted: bool


class MailServer:
    """An SMTP server with STARTTLS, or with TLS from the beginning, where it has a certificate."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, implicit: bool = False) -> None:
        self.mails: list[Mail] = []
        self.commands: list[str] = []
        self.password = "right"
        self.refused: set[str] = set()
        self.answers: dict[str, str] = {}
        self.tls, self.implicit = tls, implicit
        mail_server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    _Dialogue(mail_server, self).run()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class _Dialogue:
    """One connection to a mail server."""

    server: MailServer
    handler: socketserver.StreamRequestHandler
    encrypted: bool = False
    user: str | None = None
    sender: str = ""
    to: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.connection, self.lines = self.handler.connection, self.handler.rfile
        if self.server.implicit:
            self.encrypt()
        self.say(self.server.answers.get("CONNECT", "220 ready"))
        while line := self.lines.readline().decode().strip():
            self.server.commands.append(line)
            word = line.split()[0].upper()
            if word in self.server.answers:
                answer = self.server.answers[word]
                if not answer:  # hangs up
                    break
                self.say(answer)
            elif word == "QUIT":
                self.say("221 bye")
                break
            else:
                getattr(self, word.lower())(line)
        self.connection.close()

    def say(self, text: str) -> None:
        self.connection.sendall(f"{text}\r\n".encode())

    def encrypt(self) -> None:
        assert self.server.tls is not None
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.lines = self.connection.makefile("rb")
        self.encrypted = True

    def ehlo(self, line: str) -> None:
        del line
        offers = ["here"]
        if self.server.tls is not None:
            offers += ["AUTH PLAIN"] if self.encrypted else ["STARTTLS"]
        self.say("\r\n".join(f"250-{offer}" for offer in offers))
        self.say("250 SIZE")

    def starttls(self, line: str) -> None:
        del line
        self.say("220 go on")
        self.encrypt()

    def auth(self, line: str) -> None:
        _, user, password = base64.b64decode(line.removeprefix("AUTH PLAIN ")).decode().split("\0")
        self.user = user
        self.say("235 welcome" if password == self.server.password else f"535 not with {password}, {user}")

    def mail(self, line: str) -> None:
        self.sender = _address(line)
        self.say("250 fine")

    def rcpt(self, line: str) -> None:
        address = _address(line)
        if address in self.server.refused:
            self.say("550 nobody of that name")
        else:
            self.to.append(address)
            self.say("250 fine")

    def rset(self, line: str) -> None:
        del line
        self.say("250 fine")

    def data(self, line: str) -> None:
        del line
        self.say("354 go on")
        lines = []
        while (part := self.lines.readline()) != b".\r\n":
            lines.append(part)
        message = message_from_bytes(b"".join(lines), policy=default)
        self.server.mails.append(Mail(self.sender, self.to, message, self.user, self.encrypted))
        self.say("250 taken")


def _address(line: str) -> str:
    return line.partition("<")[2].partition(">")[0]
