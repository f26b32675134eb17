"""Files of outputs: one table of formats, one place where a bad file becomes a clear error, atomic writes.

A file is read by its suffix. Whatever is wrong with it (missing, cut off, of another kind, hostile) is an
:class:`leadline.InputError` of one line that starts with the path; nothing in a file is ever unpickled.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from leadline.data import archives, tables
from leadline.data.columns import Columns, Kind, complete_labels, missing_labels, named_labels
from leadline.data.memory import MemoryLimit
from leadline.data.names import brief, one_line
from leadline.data.outputs import Outputs
from leadline.data.tables import Contents, Reading
from leadline.errors import InputError

_RESERVED = re.compile(r"logits|logit_\d+|labels?|classes")


@dataclass(frozen=True)
class Format:
    """How files of one suffix are read and written."""

    read: Callable[[Path, Columns, Reading], Contents]
    write: Callable[[Outputs, Path], None]


# ----------------------------------------------------------------------------------------- the contract
def read_outputs(
    path: str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    columns: Columns | None = None,
    late_labels: bool = False,
    skip_bad: bool = False,
    memory_limit: int | str | None = None,
) -> Outputs:
    """Read a classifier's outputs from a file.

    Parameters
    ----------
    path
        A file with one of the suffixes of :data:`FORMATS`.
        ``.npz``, ``.safetensors``: an array ``logits`` of shape (n, c), perhaps ``labels`` of shape (n,) and
        ``classes``; other arrays of shape (n,) become metadata.
        ``.npy``: the logits alone.
        ``.csv``, ``.parquet``, ``.arrow``, ``.feather``: a list column ``logits`` or columns ``logit_0``,
        ``logit_1``, ... in any order, perhaps ``label``; all other columns become metadata.
    classes
        Names of the classes in the order of the logits, for files whose labels are names. Must agree with the
        names stored in the file, if there are any.
    columns
        Which columns or arrays hold what, where they are not named so, or hold probabilities or a score; a model that
        is fitted on these outputs keeps it.
    late_labels
        Labels may be missing (null, NaN or -100); where one is, the outputs have none, and ``n_unlabelled`` says how
        many are. Without it, that is an error.
    skip_bad
        Leave out rows whose values are missing, not finite or no probabilities, and lines of CSV with another number of
        cells; ``n_left_out`` says how many. Without it, one of them is an error.

    memory_limit
        How much memory what is in the file may take, in bytes or as a text such as ``"8GB"``; None for half of the
        memory there is. A file that unpacks to more is refused before it is unpacked.

    Returns
    -------
    Outputs
        The validated outputs. Logits in ``.npy`` and uncompressed ``.arrow`` files stay on disk, mapped.

    Raises
    ------
    InputError
        The file cannot be read, or what it holds breaks a rule; the message starts with the path.
    """
    path = Path(path)
    with _one_clear_error(path, "read"):
        limit = MemoryLimit.of(memory_limit)
        _require_file(path)
        mapping = columns or Columns()
        contents = _format_of(path).read(path, mapping, Reading(limit, skip_bad))
        if skip_bad:
            contents = _without_bad_rows(contents, mapping)
        return outputs_of(contents, classes, columns, late_labels=late_labels)


def outputs_of(
    contents: Contents, classes: Sequence[str] | None, columns: Columns | None, *, late_labels: bool = False
) -> Outputs:
    """Return what was found in a file or table as outputs; the options as for :func:`read_outputs`."""
    mapping, n_unlabelled = columns or Columns(), 0
    if late_labels and contents.labels is not None:
        n_unlabelled = missing_labels(contents.labels)
        contents = replace(contents, labels=complete_labels(contents.labels))
    if mapping.kind == "score" and contents.classes is None and classes is None:
        contents = replace(contents, classes=mapping.score_classes(contents.labels))
    names = _choose_classes(contents, classes)
    labels, predictions = contents.labels, contents.predictions
    if labels is not None and columns is not None:
        labels = named_labels(labels, names)
    if predictions is not None:
        predictions = named_labels(predictions, names)
    make, decision = _MAKERS[mapping.kind], {"threshold": mapping.threshold, "predictions": predictions}
    made = make(contents.values, labels, contents.metadata, names, columns, **decision)
    object.__setattr__(made, "n_unlabelled", n_unlabelled if n_unlabelled < len(made) else 0)
    object.__setattr__(made, "n_left_out", contents.n_left_out)
    return made


def _without_bad_rows(contents: Contents, columns: Columns) -> Contents:
    """Return what was found without the rows whose values cannot be what they are said to be."""
    values = contents.values.reshape(-1, 1) if contents.values.ndim == 1 else contents.values
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        return contents  # wrong altogether
    good = columns.good_rows(values)
    n_bad = int(np.count_nonzero(~good))
    if not n_bad:
        return contents
    if n_bad == len(good):
        raise InputError(
            f"has no good row: the {columns.kind} of all {n_bad:,} are missing, not finite or out of range."
        )
    return replace(
        contents,
        values=contents.values[good],
        labels=None if contents.labels is None else contents.labels[good],
        metadata={name: column[good] for name, column in contents.metadata.items()},
        predictions=None if contents.predictions is None else contents.predictions[good],
        n_left_out=contents.n_left_out + n_bad,
    )


def write_outputs(outputs: Outputs, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a classifier's outputs to a file; :func:`read_outputs` gives the same values back.

    Parameters
    ----------
    outputs
        What to write.
    path
        The file, in the format of its suffix (see :data:`FORMATS`). ``.npy`` takes logits alone; ``.csv`` has
        no place for the names of the classes, so give them again when reading, and no types, so text that
        looks like numbers comes back as numbers.
    force
        Overwrite a file that exists.

    Raises
    ------
    InputError
        The file exists, cannot be written, or cannot hold what these outputs have.
    """
    path = Path(path)
    with _one_clear_error(path, "written"):
        write = _format_of(path).write
        for name in outputs.metadata:
            if _RESERVED.fullmatch(name):
                raise InputError(f"metadata column {name!r} has a name that means something else in a file; rename it.")
        with _replacing(path, force=force) as temporary:
            write(outputs, temporary)


def write_bytes(path: str | os.PathLike[str], data: bytes, *, force: bool = False) -> None:
    """Write bytes to a file, all of them or none.

    Parameters
    ----------
    path
        The file. Its folder must exist.
    data
        What to write.
    force
        Overwrite a file that exists; without it, that is an ``InputError``.
    """
    path = Path(path)
    with _one_clear_error(path, "written"), _replacing(path, force=force) as temporary:
        temporary.write_bytes(data)


# ----------------------------------------------------------------------------------------- the boundary
@contextmanager
def _one_clear_error(path: Path, done: str) -> Iterator[None]:
    """Turn whatever goes wrong with a file into an ``InputError`` of one line that starts with the path."""
    place = one_line(path, most=1000)
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {one_line(error, most=600)}") from error
    except Exception as error:  # five libraries parse what may be anything, and each fails in its own way
        refusal = error.strerror if isinstance(error, OSError) else None  # of the system, not of a parser
        if refusal:
            raise InputError(f"{place}: cannot be {done} ({refusal}).") from error
        reason = one_line(error) or type(error).__name__
        remedy = " Check that it is complete and of the kind that its suffix says." if done == "read" else ""
        raise InputError(f"{place}: cannot be {done} as {path.suffix or 'a file'} ({reason}).{remedy}") from error


def _require_file(path: Path) -> None:
    """Refuse what is not a regular file with something in it."""
    if path.is_dir():
        raise InputError("is a folder; give one file.")
    if not path.exists():
        raise InputError("does not exist.")
    if not path.is_file():
        raise InputError("is not a regular file.")
    if path.stat().st_size == 0:
        raise InputError("is empty.")


def _format_of(path: Path) -> Format:
    """Look the suffix up."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise InputError(f"has the suffix {path.suffix!r}; outputs are kept in {', '.join(FORMATS)} files.") from None


@contextmanager
def _replacing(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary path in the same folder, and put it in place of ``path`` once it is complete."""
    target = Path(os.path.realpath(path))  # write through a link instead of replacing it
    if target.is_dir():
        raise InputError("is a folder; give the name of a file.")
    if target.exists():
        if not target.is_file():
            raise InputError("is not a regular file; give another name.")
        if not force:
            raise InputError("exists; use force=True to overwrite it.")
    if not target.parent.is_dir():
        raise InputError(f"cannot be written; the folder {one_line(target.parent)} does not exist.")
    temporary = target.parent / f".leadline-{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _choose_classes(contents: Contents, given: Sequence[str] | None) -> Sequence[str] | None:
    """Return the class names; refuse ones that contradict the file or leave open what its labels mean."""
    if given is None:
        return contents.classes
    names = [str(item) for item in given]
    if contents.classes is not None:
        if names != list(contents.classes):
            raise InputError(
                f"classes must be as stored in the file, {brief(contents.classes)}; got {brief(names)}. Leave them out."
            )
        return names
    labels_are_integers = contents.labels is not None and contents.labels.dtype.kind in "iu"
    if labels_are_integers and any(name.isdecimal() and name != str(i) for i, name in enumerate(names)):
        raise InputError(
            f"labels are integers, and the classes {brief(names)} are other integers, so that a label could "
            "be a name or a column. Store labels as columns (0, 1, ...) and leave classes out."
        )
    return names


def _from_scores(values: Any, *rest: Any, **decision: Any) -> Outputs:
    """Take a score, as an array or as the one column of a table."""
    column = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    return Outputs.from_scores(column, *rest, **decision)


_MAKERS: Mapping[Kind, Callable[..., Outputs]] = {
    "logits": Outputs,
    "probabilities": Outputs.from_probabilities,
    "score": _from_scores,
}

#: Suffix to format: the one place to add another.
FORMATS: dict[str, Format] = {
    ".npz": Format(archives.read_npz, archives.write_npz),
    ".npy": Format(archives.read_npy, archives.write_npy),
    ".safetensors": Format(archives.read_safetensors, archives.write_safetensors),
    ".csv": Format(tables.read_csv, tables.write_csv),
    ".parquet": Format(tables.read_parquet, tables.write_parquet),
    ".arrow": Format(tables.read_arrow, tables.write_arrow),
    ".feather": Format(tables.read_arrow, tables.write_arrow),
}
