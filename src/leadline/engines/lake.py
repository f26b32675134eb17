"""Which files are meant by a path, a folder, a pattern or a URL, and how to open one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from leadline.data.footers import row_groups
from leadline.data.memory import MemoryLimit
from leadline.data.names import one_line
from leadline.data.sizes import dictionary_columns
from leadline.engines.ipc import ArrowFragment
from leadline.errors import InputError

SUFFIXES = (".parquet", ".arrow", ".feather")
_URL = re.compile(r"[a-zA-Z][\w+.-]+://")
_PARTITION = re.compile(r"([^/=]+)=([^/]*)")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class LakeFile:
    """A file of a table in many files.

    Attributes
    ----------
    name
        What people call it.
    path
        Where its filesystem has it.
    filesystem
        A ``pyarrow.fs.FileSystem``; None for the local one.
    partitions
        Values of columns that the folders state, such as ``country=de``.
    limit
        Of the memory that a part of it may take when it is read.
    """

    name: str
    path: str
    filesystem: Any = None
    partitions: Mapping[str, str | int | None] = field(default_factory=dict)
    limit: MemoryLimit = field(default_factory=lambda: MemoryLimit.of(None))

    def open(self) -> Any:
        """Return the file as a ``pyarrow.dataset.Fragment`` with its partitions as a guarantee, or an Arrow file."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds
        from pyarrow import fs

        filesystem = self.filesystem or fs.LocalFileSystem()
        if not self.path.lower().endswith(".parquet"):
            return ArrowFragment(self.path, filesystem, self.partitions, self.limit)
        guarantee = pc.scalar(True)
        for name, value in self.partitions.items():
            column = pc.field(name)
            guarantee = guarantee & (column.is_null() if value is None else column == pc.scalar(value))
        plain = ds.ParquetFileFormat().make_fragment(self.path, filesystem, guarantee)
        with plain.open() as stored:
            texts = dictionary_columns(row_groups(stored, plain.metadata), self.limit)
        if not texts:
            return plain
        return ds.ParquetFileFormat(dictionary_columns=texts).make_fragment(self.path, filesystem, guarantee)


def is_url(text: str) -> bool:
    """Say whether a text is a URL such as ``s3://bucket/logs``."""
    return _URL.match(text) is not None


def find_files(place: str, memory_limit: int | str | None = None) -> list[LakeFile]:
    """Return the files of a table.

    Parameters
    ----------
    place
        A file, a folder (all files in it and below, but those with names in ``.`` or ``_``), a pattern with ``*``,
        ``?`` and ``**``, or one of them as the URL of a filesystem that Arrow or fsspec knows.
    memory_limit
        Of the memory that a part of a file may take when it is read, as for ``read_outputs``.

    Returns
    -------
    list of LakeFile
        In the order of their names.
    """
    if not place.strip():
        raise InputError(f"the place of a table must be a file, a folder, a pattern or a URL; got {place!r}.")
    files = []
    for file in _in_filesystem(place) if is_url(place) else _in_folders(place):
        if not file.path.lower().endswith(SUFFIXES):
            raise InputError(
                f"{place} is a folder; give the files in it, such as {place.rstrip('/') + '/*.npz'!r}: as one table it "
                f"may hold {', '.join(SUFFIXES)} files only, and it has {file.name}."
                if not has_magic(place)
                else f"{place!r} must match {', '.join(SUFFIXES)} files only; it matches {file.name}."
            )
        files.append(file)
    if not files:
        raise InputError(f"no file matches {place!r}." if has_magic(place) else f"folder {place} has no files.")
    files.sort(key=lambda file: PurePosixPath(file.path))
    limit = MemoryLimit.of(memory_limit)
    return [replace(file, limit=limit) for file in _with_partitions(files)]


def _in_folders(place: str) -> Iterator[LakeFile]:
    """Yield local files."""
    path = Path(place)
    if path.is_file():
        yield LakeFile(place, place)
    elif path.is_dir():
        yield from _below(path)
    elif has_magic(place):
        for match in glob(place, recursive=True):
            if Path(match).is_file():
                yield LakeFile(match, match)
    else:
        raise InputError(f"file {place} does not exist.")


def _below(root: Path) -> Iterator[LakeFile]:
    """Yield the files in a folder and below as they are found, without what other programs leave for themselves.

    A folder that is no table, such as that of the whole machine, is known by its first file.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"folder {error.filename} cannot be read: {(error.strerror or 'unknown error').lower()}.")

    for folder, below, names in os.walk(root, onerror=refuse):
        below[:] = sorted(name for name in below if name[0] not in "._")
        for name in sorted(names):
            path = Path(folder, name)
            if name[0] not in "._" and path.is_file():
                yield LakeFile(str(path), str(path))


def _in_filesystem(url: str) -> list[LakeFile]:
    """Return files behind a URL."""
    import pyarrow as pa
    from pyarrow import fs

    scheme = url.partition("://")[0]
    base, pattern = _split_pattern(url)
    try:
        filesystem, path = _open_filesystem(base)
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            infos = [info]
        elif info.type == fs.FileType.Directory:
            infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        else:
            raise InputError(f"{base} does not exist.")
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        raise InputError(f"{url} cannot be read ({one_line(error)}).") from error
    root, files = PurePosixPath(path), []
    for info in sorted((info for info in infos if info.type == fs.FileType.File), key=lambda info: str(info.path)):
        below = PurePosixPath(info.path).relative_to(root).as_posix() if info.path != path else ""
        hidden = any(part[0] in "._" for part in PurePosixPath(below).parts)
        if (pattern is None and not hidden) or (pattern is not None and pattern.fullmatch(below)):
            files.append(LakeFile(f"{scheme}://{info.path.lstrip('/') if scheme != 'file' else info.path}", info.path,
                                  filesystem))  # fmt: skip
    return files


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the filesystem of a URL and the path in it: Arrow's own, else fsspec's."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(url)
    except pa.ArrowInvalid:  # a scheme that Arrow does not have
        try:
            import fsspec
        except ModuleNotFoundError as error:
            raise InputError(f"{url} needs fsspec, which is not installed; run pip install fsspec.") from error
        other, path = fsspec.core.url_to_fs(url)
        filesystem = fs.PyFileSystem(fs.FSSpecHandler(other))
    return filesystem, path


def _split_pattern(url: str) -> tuple[str, re.Pattern[str] | None]:
    """Return the part of a URL before its first wildcard, and the rest as a regular expression."""
    if not has_magic(url):
        return url, None
    parts = url.split("/")
    first = next(i for i, part in enumerate(parts) if has_magic(part))
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = re.split(r"(\*\*/|\*\*|\*|\?)", "/".join(parts[first:]))
    return "/".join(parts[:first]), re.compile("".join(signs.get(token, re.escape(token)) for token in tokens))


def _with_partitions(files: Sequence[LakeFile]) -> list[LakeFile]:
    """Return files with the columns that their folders state; integers if all values of a column are."""
    texts: list[dict[str, str]] = []
    for file in files:
        stated = map(_PARTITION.fullmatch, PurePosixPath(file.path).parts[:-1])
        texts.append({match[1]: match[2] for match in stated if match})
    names = {name for text in texts for name in text}
    whole = {
        name: all(_INTEGER.fullmatch(text[name]) or text[name] == _NO_VALUE for text in texts if name in text)
        for name in names
    }

    def value(name: str, text: str) -> str | int | None:
        if text == _NO_VALUE:
            return None
        return int(text) if whole[name] else unquote(text)

    return [
        LakeFile(file.name, file.path, file.filesystem, {name: value(name, found) for name, found in text.items()})
        for file, text in zip(files, texts, strict=True)
    ]
