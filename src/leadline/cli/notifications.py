"""``leadline monitor notify`` and its kin: who is told of alarms, and what has been told."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.cli.options import FormatOption, QuietOption
from leadline.cli.terminal import show, tell
from leadline.errors import InputError
from leadline.results.render import Document, Table

if TYPE_CHECKING:
    from leadline.monitor.notifications.outbox import Delivered

StoreArgument = Annotated[
    str,
    typer.Argument(metavar="STORE", help="A SQLite file, sqlite:///FILE, or postgresql://user@host/name."),
]


def notify(
    store: StoreArgument,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The series; all of them by default.")] = None,
    *,
    slack_env: Annotated[
        str | None, typer.Option("--slack-env", metavar="VARIABLE", help="The variable with Slack's webhook address.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="An address without secrets that takes JSON.")
    ] = None,
    webhook_env: Annotated[
        str | None, typer.Option("--webhook-env", metavar="VARIABLE", help="The variable with such an address.")
    ] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="VARIABLE", help="The variable with a webhook's bearer token.")
    ] = None,
    email: Annotated[
        list[str] | None, typer.Option("--email", metavar="ADDRESS", help="Whom to write; may be repeated.")
    ] = None,
    smtp_host: Annotated[str | None, typer.Option("--smtp-host", metavar="HOST", help="The mail server.")] = None,
    smtp_port: Annotated[int | None, typer.Option("--smtp-port", help="Its port.")] = None,
    security: Annotated[
        str | None, typer.Option("--security", metavar="starttls|ssl|none", help="How to speak to it.")
    ] = None,
    sender: Annotated[str | None, typer.Option("--sender", metavar="ADDRESS", help="Whom mail comes from.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Who logs in to the mail server.")] = None,
    password_env: Annotated[
        str | None, typer.Option("--password-env", metavar="VARIABLE", help="The variable with the password.")
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="PROGRAM", help="A program that gets the message as JSON.")
    ] = None,
    harmful_only: Annotated[bool, typer.Option("--harmful-only", help="Leave out what is information only.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", help="Seconds to wait for the channel.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Send a test message now.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Tell a channel of alarms: Slack, a webhook, e-mail or a program. Secrets stay in environment variables.

    Example: `leadline monitor notify monitor.db fraud --slack-env SLACK_URL --test`
    """
    from leadline.monitor.monitor import Monitor

    kinds: dict[str, dict[str, Any]] = {
        "slack": {"url_env": slack_env} if slack_env else {},
        "webhook": {"url": webhook, "url_env": webhook_env, "token_env": token_env} if webhook or webhook_env else {},
        "email": {
            "to": email, "host": smtp_host, "port": smtp_port, "security": security, "sender": sender, "user": user,
            "password_env": password_env,
        } if email else {},
        "command": {"command": shlex.split(command)} if command else {},
    }  # fmt: skip
    wanted = {kind: settings for kind, settings in kinds.items() if settings}
    if len(wanted) != 1:
        raise InputError("give one of --slack-env, --webhook, --webhook-env, --email and --command.")
    ((kind, settings),) = wanted.items()
    settings |= {"timeout": timeout, "harmful_only": harmful_only or None}
    given = {key: value for key, value in settings.items() if value is not None}
    with Monitor(store, create=False) as monitor:
        number = monitor.notify(name, kind, **given)
        remark = monitor.try_channel(number) if test else ""
    tell(f"Channel {number} ({kind}) is told of alarms.{' A test message was sent.' if test else ''} {remark}".strip(),
         quiet=quiet)  # fmt: skip


def channels(
    store: StoreArgument,
    *,
    remove: Annotated[int | None, typer.Option("--remove", metavar="N", help="Tell this channel no more.")] = None,
    test: Annotated[int | None, typer.Option("--test", metavar="N", help="Send this channel a test message.")] = None,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """List who is told of alarms, remove one, or send one a test message."""
    from leadline.monitor.monitor import Monitor

    del quiet  # it silences warnings of methods that cannot be used
    with Monitor(store, create=False) as monitor:
        if remove is not None:
            monitor.remove_channel(remove)
        if test is not None:
            monitor.try_channel(test)
        rows = [channel.to_dict() for channel in monitor.channels()]
    show(_document(rows, "Nobody is told of alarms."), format)


def deliver(store: StoreArgument, *, quiet: QuietOption = False) -> None:
    """Send what is due in the outbox. Adding does that too; this is for a job that runs more often."""
    from leadline.monitor.monitor import Monitor

    with Monitor(store, create=False) as monitor:
        found = monitor.deliver()
    tell_problems(found)
    tell(
        f"{found.delivered} delivered, {found.postponed} postponed, {found.given_up} given up; {found.waiting} wait.",
        quiet=quiet,
    )


def outbox(
    store: StoreArgument,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only messages that were given up.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try those again.")] = False,
    format: FormatOption = "table",
    quiet: QuietOption = False,
) -> None:
    """List messages, the latest first, and whether they have arrived."""
    from leadline.monitor.monitor import Monitor

    del quiet  # it silences warnings of methods that cannot be used
    with Monitor(store, create=False) as monitor:
        if retry:
            monitor.retry_failed()
        rows = [message.to_dict() for message in monitor.outbox(state="failed" if failed else None)]
    show(_document(rows, "No message."), format)


def tell_problems(found: Delivered) -> None:
    """Say on standard error what could not be delivered."""
    for problem in found.problems:
        tell(problem, quiet=False)


def _document(rows: list[dict[str, Any]], nothing: str) -> Document:
    """Return rows as a table, or that there are none."""
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    tables = [Table(list(rows[0]), cells, left=tuple(range(len(rows[0]))))] if rows else []
    records = [{key: str(value) if isinstance(value, dict) else value for key, value in row.items()} for row in rows]
    return Document(rows, records, tables, [] if rows else [nothing])
