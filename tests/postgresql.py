"""A PostgreSQL server for the tests, started from the machine's own programs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where there are none, or nobody to run them as."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders = [folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()]
    return folders[-1] if folders and _user() is not None else None


def _user() -> str | None:
    """Return who runs the server: not root, which it refuses."""
    if os.getuid():
        return pwd.getpwuid(os.getuid()).pw_name
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server with its data in a folder; give the URL of its database."""
    found, user = programs(), _user()
    assert found is not None
    assert user is not None
    folder.mkdir(exist_ok=True)
    identity = pwd.getpwnam(user)
    for place in (folder, *folder.parents):
        if place.stat().st_uid == os.getuid() and place.is_relative_to("/tmp") and place != Path("/tmp"):
            place.chmod(0o755)
    os.chown(folder, identity.pw_uid, identity.pw_gid)

    def run(*words: str) -> None:
        as_user = {} if os.getuid() else {"user": identity.pw_uid, "group": identity.pw_gid, "extra_groups": []}
        subprocess.run(
            words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **as_user,  # type: ignore[call-overload]
        )  # fmt: skip

    data, port = folder / "data", _free_port()
    run(str(found / "initdb"), "-D", str(data), "-U", "leadline", "-A", "trust", "--no-sync", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    run(str(found / "pg_ctl"), "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://leadline@127.0.0.1:{port}/postgres"
    finally:
        # Quits at once; pg_ctl would wait for a process that is nobody's to wait for, and fail on a busy machine.
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
