"""E-mail through an SMTP server."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from types import MappingProxyType

from leadline.errors import InputError
from leadline.monitor.notifications.kinds.base import Kind, Message, Settings
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import Secrets
from leadline.monitor.notifications.kinds.settings import address, addresses, host, one_of, port, text, variable
from leadline.monitor.notifications.messages import as_text, headline

# Lines that every server passes on as they are.
_POLICY = SMTP.clone(cte_type="7bit")
_PORTS = {"starttls": 587, "ssl": 465, "none": 25}


class Email(Kind):
    """The message as a mail from ``sender`` to the addresses in ``to``, through the server at ``host``.

    ``security`` is ``starttls`` (the default), ``ssl`` or ``none``; ``port`` is the usual one of it, unless given. With
    ``user``, the password in ``password_env`` is used to log in, never without encryption.
    """

    name = "email"
    rules = MappingProxyType({
        "host": host, "port": port, "security": one_of(*_PORTS), "user": text, "password_env": variable,
        "sender": address, "to": addresses,
    })  # fmt: skip
    required = ("host", "sender", "to")

    def _check_together(self, settings: Settings) -> None:
        if ("user" in settings) != ("password_env" in settings):
            raise InputError("email needs both user and password_env to log in, or neither.")
        if "user" in settings and settings.get("security") == "none":
            raise InputError("security must be starttls or ssl to log in, as the password would be sent in clear.")

    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        mail, to = _mail(message, settings).as_bytes(), list(settings["to"])
        try:
            server = _connect(settings, wait)
            try:
                if "user" in settings:
                    server.login(settings["user"], secrets["password"])
                refused = server.sendmail(settings["sender"], to, mail)
                with suppress(OSError):  # it has arrived, however the server takes its leave
                    server.quit()
            finally:
                server.close()
        except smtplib.SMTPException as error:
            raise DeliveryError(_words(error)) from None
        return f"{len(refused)} of {len(to)} addresses were refused by the server" if refused else ""


def _connect(settings: Settings, wait: float) -> smtplib.SMTP:
    security = settings.get("security", "starttls")
    place = settings["host"], settings.get("port", _PORTS[security])
    if security == "ssl":
        return smtplib.SMTP_SSL(*place, timeout=wait, context=ssl.create_default_context())
    server = smtplib.SMTP(*place, timeout=wait)
    if security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _mail(message: Message, settings: Settings) -> EmailMessage:
    """Return a mail; sent twice, it has the same id, and what comes later of an alarm is an answer to its beginning."""
    own, first = _id(message, message["event"], message["at"]), _id(message, "raised", message["raised_at"])
    mail = EmailMessage(_POLICY)
    mail["Subject"] = f"[Leadline] {headline(message)}"
    mail["From"] = settings["sender"]
    mail["To"] = ", ".join(settings["to"])
    mail["Date"] = format_datetime(datetime.fromisoformat(message["at"]))
    mail["Message-ID"] = own
    if message["event"] != "test" and own != first:
        mail["In-Reply-To"] = mail["References"] = first
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(as_text(message))
    return mail


def _id(message: Message, event: str, at: str) -> str:
    key = (message["series"], message["alarm"], event, at)
    return f"<{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}@leadline.invalid>"


def _words(error: smtplib.SMTPException) -> str:
    """Return what went wrong, without what the server said."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "the server refused all addresses"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return "the server does not offer what the settings ask for (STARTTLS, or to log in)"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return "the server closed the connection"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the server refused user and password ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the server answered {error.smtp_code}"
    return type(error).__name__
