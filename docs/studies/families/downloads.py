"""Files from the Debian archive, from PyPI and from npm, kept in a folder so that each is fetched once."""

from __future__ import annotations

import io
import lzma
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

DEBIAN = "http://deb.debian.org/debian"
NPM = "https://registry.npmjs.org"


def from_debian(path: str, cache: Path) -> Path:
    """Return the file of the Debian archive at `path`, relative to its root."""
    return _fetched(f"{DEBIAN}/{path}", cache / "debian" / path.replace("/", "_"))


def debian_packages(names: tuple[str, ...], cache: Path) -> dict[str, Path]:
    """Return the package files of Debian 12 (main, amd64) of these names."""
    index = from_debian("dists/bookworm/main/binary-amd64/Packages.xz", cache)
    stanza = re.compile(r"^Package: (\S+)$.*?^Filename: (\S+)$", flags=re.MULTILINE | re.DOTALL)
    with lzma.open(index, "rt", encoding="utf-8") as lines:
        paths = dict(stanza.findall(lines.read()))
    return {name: from_debian(paths[name], cache) for name in names}


def debian_sources(names: tuple[str, ...], cache: Path) -> dict[str, Path]:
    """Return the upstream archives of the source packages of Debian 12 (main) of these names."""
    index = from_debian("dists/bookworm/main/source/Sources.xz", cache)
    found = {}
    with lzma.open(index, "rt", encoding="utf-8") as lines:
        for stanza in lines.read().split("\n\n"):
            name = stanza.removeprefix("Package: ").partition("\n")[0]
            if name in names and "\nExtra-Source-Only: yes" not in stanza:
                folder = re.search(r"^Directory: (\S+)$", stanza, flags=re.MULTILINE)
                archive = re.search(r" (\S+\.orig\.tar\.\w+)$", stanza, flags=re.MULTILINE)
                if folder and archive:
                    found[name] = from_debian(f"{folder[1]}/{archive[1]}", cache)
    if missing := set(names) - set(found):
        raise ValueError(f"Debian 12 has no source package {', '.join(sorted(missing))}.")
    return found


def from_npm(name: str, version: str, cache: Path) -> Path:
    """Return the archive of a package on npm."""
    file = f"{name.rpartition('/')[2]}-{version}.tgz"
    return _fetched(f"{NPM}/{name}/-/{file}", cache / "npm" / file)


def from_pypi(name: str, version: str, cache: Path) -> Path:
    """Return the wheel of a package on PyPI, or its source where there is none, fetched by pip as it is set up here."""
    folder = cache / "pypi" / f"{name}-{version}"
    if not folder.is_dir():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", str(folder), f"{name}=={version}"], check=True)
    return next(folder.iterdir())


def files_in(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of every file in a wheel, a source archive, an archive of npm or a Debian package."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if not name.endswith("/"))
        return
    content = package.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(_data_of_deb(content) if package.suffix == ".deb" else content)) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield member.name, file.read()


def file_in(package: Path, name: str) -> io.BytesIO:
    """Return the one file in a package whose path ends in `name`."""
    (content,) = (content for path, content in files_in(package) if path.endswith(f"/{name}"))
    return io.BytesIO(content)


def _data_of_deb(content: bytes) -> bytes:
    """Return the archive of files in a Debian package: in `ar` format, headers of 60 bytes before each member."""
    place = len(b"!<arch>\n")
    while place < len(content):
        header = content[place : place + 60]
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            return content[place + 60 : place + 60 + size]
        place += 60 + size + size % 2
    raise ValueError("The Debian package holds no data.tar.")


def _fetched(address: str, file: Path) -> Path:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(file.suffix + ".part")
        with urllib.request.urlopen(address, timeout=180) as answer:
            part.write_bytes(answer.read())
        part.rename(file)
    return file
