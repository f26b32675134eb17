"""What a container gives Leadline at its strictest, without one: a read-only package, another user, no home.

The same calls fail, so that the start of a process costs the same; only the layers of an image are missing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import leadline

#: Somebody without rights here; who is not root has none, and needs nobody else.
STRANGER = 54_321 if os.getuid() == 0 else os.getuid()
# May read everything, such as a Python in the home of root, and write nothing of others.
_AS_STRANGER = (
    f"setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups --inh-caps +dac_read_search "
    "--ambient-caps +dac_read_search"
)


def runs_here() -> bool:
    """Say whether there is a way to be somebody without rights."""
    return os.getuid() != 0 or shutil.which("setpriv") is not None


@contextmanager
def read_only_package(files: Mapping[str, str], *, kernels: bool = True) -> Iterator[Path]:
    """Give a folder with a copy of the package that nobody can write, and a folder ``tmp`` of the stranger's.

    Parameters
    ----------
    files
        More modules of the package, by name.
    kernels
        Whether what was compiled beside the package is part of the copy.
    """
    root = Path(tempfile.mkdtemp())
    package = root / "leadline"
    try:
        root.chmod(0o755)
        left_out = None if kernels else shutil.ignore_patterns("*.nb[ic]")
        shutil.copytree(Path(leadline.__file__).parent, package, ignore=left_out)
        for name, text in files.items():
            (package / name).write_text(text)
        (root / "tmp").mkdir()
        os.chown(root / "tmp", STRANGER, STRANGER)
        for path in [package, *package.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield root
    finally:
        for path in [package, *package.rglob("*/")]:
            path.chmod(0o755)
        shutil.rmtree(root)


def as_stranger(words: list[str]) -> list[str]:
    """Return the command that runs a command as somebody without rights."""
    return [*(_AS_STRANGER.split() if os.getuid() == 0 else []), *words]


def environment(root: Path) -> dict[str, str]:
    """Return the variables of a process that is to use the package of a folder, and has no home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    return kept | {"PYTHONPATH": str(root), "HOME": "/nonexistent", "TMPDIR": str(root / "tmp")}
