"""What every kind of channel has: settings that are checked early, and messages that arrive or fail with a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, ClassVar
from urllib.error import URLError

from leadline.data.names import one_line
from leadline.errors import InputError
from leadline.monitor.notifications.kinds.errors import DeliveryError
from leadline.monitor.notifications.kinds.secrets import SUFFIX, Secrets
from leadline.monitor.notifications.kinds.settings import Rule, flag, seconds

Settings = Mapping[str, Any]
Message = Mapping[str, Any]

#: How long an answer is waited for, unless the settings say otherwise.
SECONDS = 10.0
_COMMON: Mapping[str, Rule] = {"timeout": seconds, "harmful_only": flag}


class Kind(ABC):
    """A kind of channel.

    Attributes
    ----------
    name
        In the table of kinds.
    rules
        What each setting must be, by name; those ending in ``_env`` name environment variables that hold secrets.
        Settings of every kind are ``timeout``, in seconds, and ``harmful_only``, to leave out mere information.
    required
        Settings that must be there.
    """

    name: ClassVar[str]
    rules: ClassVar[Mapping[str, Rule]]
    required: ClassVar[tuple[str, ...]] = ()

    def check(self, settings: Settings) -> None:
        """Refuse settings that cannot work; the environment is not looked at, as others may deliver."""
        rules = {**self.rules, **_COMMON}
        for setting, value in settings.items():
            if setting not in rules:
                hint = f" Give {setting}{SUFFIX} instead." if f"{setting}{SUFFIX}" in rules else ""
                raise InputError(f"{self.name} has no setting {one_line(setting)!r}; it has {', '.join(rules)}.{hint}")
            rules[setting](setting, value)
        missing = [setting for setting in self.required if setting not in settings]
        if missing:
            raise InputError(f"{self.name} needs the setting {missing[0]}.")
        self._check_together(settings)

    def send(self, message: Message, settings: Settings, secrets: Secrets) -> str:
        """Send a message.

        Parameters
        ----------
        message
            See :mod:`leadline.monitor.notifications.messages`.
        settings
            As checked.
        secrets
            What the settings name.

        Returns
        -------
        A remark on a message that has arrived, such as that one address of several was refused; mostly empty.

        Raises
        ------
        DeliveryError
            For any reason: one message must not stop the others. The reason is made of our own words and those of the
            system, and never of what the other side says, which may repeat what it was sent.
        """
        wait = float(settings.get("timeout", SECONDS))
        try:
            return _within(2 * wait, lambda: self._send(message, settings, secrets, wait))
        except DeliveryError as error:
            reason = str(error)
        except Exception as error:
            reason = _words(error, wait)
        raise DeliveryError(one_line(secrets.scrub(reason)))

    def _check_together(self, settings: Settings) -> None:  # noqa: B027 - most kinds have no such rule
        """Refuse settings that are right one by one and wrong together."""

    @abstractmethod
    def _send(self, message: Message, settings: Settings, secrets: Secrets, wait: float) -> str:
        """Send a message, waiting at most ``wait`` seconds for each answer; errors of the system may pass."""


def _within(limit: float, work: Callable[[], str]) -> str:
    """Return what a function returns, if it takes no longer than some seconds in all.

    Timeouts of sockets are for one answer: names that are looked up, and servers that send a byte now and then, have
    none.
    """
    outcome: Future[str] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True, name="leadline-notification").start()
    return outcome.result(timeout=limit)


def _words(error: Exception, wait: float) -> str:
    """Return what the system says of an error; errors that may repeat what was sent give their name only."""
    found = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    if isinstance(found, TimeoutError):
        return f"no answer within {wait:g} seconds"
    return (found.strerror if isinstance(found, OSError) else None) or type(found).__name__
