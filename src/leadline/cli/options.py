"""Options that several commands share, defined once, and how their text becomes values."""

from __future__ import annotations

import logging
import math
import types
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer

from leadline.cli import completion
from leadline.data.columns import Columns, Kind
from leadline.data.outputs import Outputs
from leadline.errors import InputError, PluginWarning
from leadline.results.export import SUFFIXES, file_format
from leadline.results.render import RENDERERS


def _check_format(value: str | None) -> str | None:
    if value is not None and value not in RENDERERS:
        raise typer.BadParameter(f"must be one of {', '.join(RENDERERS)}; got {value!r}.")
    return value


def _hush(quiet: bool) -> bool:
    """Silence warnings and the log too, until the command ends."""
    if quiet:
        warnings.simplefilter("ignore", PluginWarning)
        logging.getLogger("leadline").setLevel(logging.ERROR)
    return quiet


FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="|".join(RENDERERS), callback=_check_format, autocompletion=completion.format,
        help="How to print the result: a table for people, or data for programs.",
    ),
]  # fmt: skip
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_hush, help="Print nothing but results and errors.")
]
FileFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="|".join(RENDERERS), callback=_check_format, autocompletion=completion.format,
        help="How to print the result, a table by default; with --output, that of the file's ending.",
    ),
]  # fmt: skip
ResultOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE",
        help=f"Write the result to a file instead of printing it: {', '.join(SUFFIXES)}.",
    ),
]  # fmt: skip
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
ClassesOption = Annotated[
    str | None,
    typer.Option(
        "--classes", metavar="A,B,...",
        help="The names of the logit columns in their order, for files whose labels are names.",
    ),
]  # fmt: skip
LogitsOption = Annotated[
    str | None,
    typer.Option(
        "--logits", metavar="PATTERN",
        help="The columns of logits, such as `'logit_*'`; what `*` stands for names the classes.",
    ),
]  # fmt: skip
ProbabilitiesOption = Annotated[
    str | None,
    typer.Option("--probabilities", metavar="PATTERN", help="The columns of probabilities, such as `'proba_*'`."),
]
ScoreOption = Annotated[
    str | None,
    typer.Option("--score", metavar="COLUMN", help="The column of a binary model's score, the probability of a class."),
]
PositiveOption = Annotated[
    str | None, typer.Option("--positive", metavar="NAME", help="The class that --score is the probability of.")
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="The column of true classes; label by default."),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold", metavar="FRACTION",
        help="Of two classes: the score from which the model predicts its class; one half by default.",
    ),
]  # fmt: skip
PredictionOption = Annotated[
    str | None,
    typer.Option(
        "--prediction", metavar="COLUMN",
        help="The column of classes that the model predicted, to find a threshold of its own.",
    ),
]  # fmt: skip
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE",
        help="How much memory what is read from a file may take, such as 8GB; half of the memory there is by default.",
    ),
]  # fmt: skip
LevelOption = Annotated[float, typer.Option("--level", help="Nominal coverage of the intervals.")]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="Labelled outputs: an .npz, .npy, .safetensors, .csv, .parquet or .arrow file."
    ),
]
TargetsArgument = Annotated[
    list[str],
    typer.Argument(metavar="TARGET", help="Files of outputs, or quoted patterns such as `'week_*.npz'`."),
]


def columns_of(
    logits: str | None,
    probabilities: str | None,
    score: str | None,
    positive: str | None,
    label: str | None,
    threshold: float | None = None,
    prediction: str | None = None,
) -> Columns | None:
    """Return which columns hold what, as the options say; None where they say nothing."""
    given: dict[Kind, str] = {}
    for name, value in zip(get_args(Kind), (logits, probabilities, score), strict=True):
        if value is not None:
            given[name] = value
    if len(given) > 1:
        raise InputError(f"outputs must be of one kind; got --{' and --'.join(given)}.")
    if positive is not None and score is None:
        raise InputError("--positive is the class of a score; give --score with it.")
    if threshold is not None and prediction is not None:
        raise InputError("--threshold is found from --prediction; give one of them.")
    kind: Kind = next(iter(given), "logits")
    columns = Columns(kind, given.get(kind), label, positive, threshold, prediction)
    return None if columns == Columns() else columns


def split(text: str | None, what: str) -> list[str] | None:
    """Return the parts of a comma-separated option; None stays None."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(f"{what} must be names separated by commas; got {text!r}.")
    return parts


def split_integers(text: str, what: str) -> list[int]:
    """Return the integers of a comma-separated option."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{what} must be integers separated by commas; got {text!r}.") from error


def find_targets(patterns: Sequence[str]) -> dict[str, Path]:
    """Return the files that are meant, by name: the path as given without its ending, if that is unique.

    A pattern that the shell did not expand is expanded here; a file that was given twice counts once.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if Path(pattern).exists() or not has_magic(pattern):
            matches = [pattern]
        else:
            matches = sorted(glob(pattern, recursive=True))
            if not matches:
                raise InputError(f"no file matches {pattern!r}.")
        found |= dict.fromkeys(matches)
    for path in found:
        require_file(path)
    stems = [str(Path(path).with_suffix("")) for path in found]
    return {(stem if stems.count(stem) == 1 else path): Path(path) for stem, path in zip(stems, found, strict=True)}


def without_folder(names: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the folder that all targets share, as a title for their table, and their names without it.

    Data keeps the whole names; a table for people has better uses for its width.
    """
    distinct = list(dict.fromkeys(names))
    folders = {str(Path(name).parent) for name in distinct}
    if len(folders) > 1 or folders == {"."}:
        return "", {name: name for name in distinct}
    return f"in {folders.pop()}", {name: Path(name).name for name in distinct}


def require_file(path: str) -> Path:
    """Return the path of a file that exists; checked before any work, or a misspelt name costs time."""
    if not path.strip():
        raise InputError(f"a file must be named; got {path!r}.")
    if not Path(path).exists():
        raise InputError(f"file {path} does not exist.")
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder; give the files in it, such as {str(Path(path) / '*.npz')!r}.")
    if not Path(path).is_file():
        raise InputError(f"{path} is no file but a device, a pipe or a socket; write what it gives to a file first.")
    return Path(path)


def is_model(path: Path) -> bool:
    """Say whether a file is a model, where outputs could stand too: by its ending."""
    return path.suffix.lower() == ".leadline"


def require_new(output: str, inputs: Sequence[Path], what: str, *, force: bool) -> None:
    """Refuse to write over something, before the work rather than after it."""
    path = Path(output)
    if path.exists() and not force:
        raise InputError(f"file {output} exists; use --force to overwrite it.")
    if path.exists() and any(path.samefile(one) for one in inputs):
        raise InputError(f"{what} must not replace one of its inputs, {output}.")
    if not path.parent.is_dir():
        raise InputError(f"folder {path.parent} does not exist; make it first.")


def require_result(output: str | None, format: str | None, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse a file for the result that cannot be written, or has no format, before the work."""
    if output is not None:
        file_format(output, format)
        require_new(output, inputs, "the result", force=force)


class Files(Mapping[str, Outputs]):
    """Outputs by name that are read when they are looked up; the last ones are kept, as they are often wanted twice.

    Parameters
    ----------
    paths
        The files.
    classes
        Names of the classes, for files that have none.
    columns
        Which columns hold what.
    memory_limit
        How much memory a file may take.
    """

    def __init__(
        self,
        paths: Mapping[str, Path],
        classes: Sequence[str] | None,
        columns: Columns | None = None,
        memory_limit: str | None = None,
    ) -> None:
        self._paths, self._classes, self._columns, self._memory_limit = paths, classes, columns, memory_limit
        self._last: tuple[str, Outputs] | None = None
        self._remarks: dict[str, str] = {}

    def __getitem__(self, name: str) -> Outputs:
        """Read a file."""
        from leadline.data.files import read_outputs

        if self._last is None or self._last[0] != name:
            self._last = (
                name,
                read_outputs(
                    self._paths[name],
                    classes=self._classes,
                    columns=self._columns,
                    late_labels=True,
                    memory_limit=self._memory_limit,
                ),
            )
            if missing := self._last[1].n_unlabelled:
                told = f"{missing:,} of {len(self._last[1]):,} labels are missing"
                self._remarks[name] = f"{name}: {told}: its true accuracy is not shown."
        return self._last[1]

    @property
    def remarks(self) -> list[str]:
        """Lines on files whose labels are incomplete, of those that have been read."""
        return list(self._remarks.values())

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._paths)


def parse_method_options(method: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` pairs as the options of a method, each in the type that its signature states."""
    from leadline.estimators import METHODS, make
    from leadline.estimators.hints import describe, option_types

    known = make(method).get_params()  # an unknown method is an error with the list of methods
    hints = option_types(METHODS[method].cls, known)
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"--option must be key=value; got {pair!r}.")
        if key not in known:
            raise InputError(f"method {method} has no option {key!r}; it has {', '.join(known) or 'none'}.")
        if key in options:
            raise InputError(f"--option {key} must be given once; got it again as {text!r}.")
        if key not in hints:
            raise InputError(f"option {key} of method {method} has no stated type to read text as; set it in Python.")
        try:
            options[key] = _convert(text, hints[key])
        except ValueError as error:
            raise InputError(f"option {key} must be {describe(hints[key])}; got {text!r}.") from error
    return options


def _convert(text: str, hint: Any) -> Any:
    """Return text as a value of the type hinted at, or raise ValueError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PARSERS:
        return _PARSERS[hint](text)
    if origin in (Union, types.UnionType):
        return _first_that_fits(text, arguments)
    if origin is Literal:
        return _lookup({str(value): value for value in arguments}, text)
    if isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping):
        return [_convert(part, arguments[0]) for part in text.split(",") if part]
    raise ValueError(text)


def _first_that_fits(text: str, hints: Sequence[Any]) -> Any:
    """Return text in the first type that takes it; None before the others, as text takes everything."""
    for hint in sorted(hints, key=lambda hint: hint is not types.NoneType):
        try:
            return _convert(text, hint)
        except ValueError:
            continue
    raise ValueError(text)


def _lookup(values: Mapping[str, Any], text: str) -> Any:
    """Return the value that a word stands for."""
    if text not in values:
        raise ValueError(text)
    return values[text]


def _finite(text: str) -> float:
    """Return a number that is neither infinite nor NaN."""
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


_PARSERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: _finite,
    str: str,
    bool: lambda text: _lookup({"true": True, "false": False}, text.lower()),
    types.NoneType: lambda text: _lookup({"none": None}, text.lower()),
}
