"""Outputs in what serving tools log: SageMaker data capture, KServe's CloudEvents, BentoML's monitoring files."""

from __future__ import annotations

import base64
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from leadline.data.names import brief, one_line
from leadline.data.outputs import Outputs
from leadline.data.texts import parse_json
from leadline.errors import InputError
from leadline.integrations.kinds import Kind, check_kind, outputs_of_kind

Layout = Literal["sagemaker", "kserve", "bentoml"]
_PREDICTIONS = "predictions"  # where TensorFlow Serving, KServe v1 and most containers of SageMaker put them


def read_payloads(
    path: str | PathLike[str],
    layout: Layout,
    *,
    kind: Kind,
    field: str | None = None,
    classes: Sequence[str] | None = None,
) -> Outputs:
    """Read a model's outputs from what a serving tool has logged, one JSON object on each line.

    Parameters
    ----------
    path
        A file, a folder with all files in it, or a pattern such as ``"capture/**/*.jsonl"``.
    layout
        ``"sagemaker"``: data capture, the response in ``captureData.endpointOutput`` as JSON, CSV or base64 of either.
        ``"kserve"``: CloudEvents of the logger, ``data`` with ``predictions`` (v1) or ``outputs`` (v2); requests are
        left out. ``"bentoml"``: files of ``bentoml.monitor``, one object of logged values for each prediction.
    kind
        What the model gives out: ``"logits"``, ``"probabilities"``, or ``"scores"`` of the second of two classes.
    field
        Where they are: a key of the response's JSON (``"predictions"`` if not given) or of each prediction, the name of
        an output of v2 (not needed for one), the name of the logged value of BentoML (always needed).
    classes
        Names of the classes in the order of the values.

    Returns
    -------
    Outputs
        Without labels, as nobody knows them at serving time. Metadata columns are ``id`` of the request, ``row`` in the
        request, ``time`` (UTC) where all requests have one, and the single values that BentoML logged.

    Examples
    --------
    Not run, as it needs captured files; docs/your-model.md is run with some.

    >>> read_payloads("capture/**/*.jsonl", "sagemaker", kind="probabilities")  # doctest: +SKIP
    """
    check_kind(kind)
    readers: dict[str, Callable[[Any, str | None], _Response | None]] = {
        "sagemaker": _sagemaker,
        "kserve": _kserve,
        "bentoml": _bentoml,
    }
    if layout not in readers:
        raise InputError(f"layout must be one of {brief(get_args(Layout))}; got {layout!r}.")
    if layout == "bentoml" and field is None:
        raise InputError("field must be the name under which BentoML's monitor logged the outputs; got None.")
    responses: list[_Response] = []
    for place, record in _records(fspath(path)):
        try:
            response = readers[layout](record, field)
            if response is not None:
                responses.append(response.checked(kind))
        except (KeyError, TypeError, AttributeError, ValueError, csv.Error) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else one_line(error)
            raise InputError(f"{place} must be a response in the layout {layout!r}: {reason}.") from error
    if not responses:
        raise InputError(f"path must hold responses; {fspath(path)} has requests only.")
    widths = {response.values.shape[1:] for response in responses}
    if len(widths) > 1:
        raise InputError(
            f"path must hold outputs of one model; rows have {brief(sorted(width[0] for width in widths))} values."
        )
    return outputs_of_kind(
        kind, np.concatenate([response.values for response in responses]), None, _metadata(responses), classes
    )


@dataclass(frozen=True)
class _Response:
    """The outputs of one request, shape (rows, c) or (rows,), and what is known about it."""

    values: Any
    id: str | None
    time: str | None
    more: Mapping[str, Any] = field(default_factory=dict)

    def checked(self, kind: Kind) -> _Response:
        """Return the same with values that are a regular array of the shape that their kind has."""
        values = np.asarray(self.values, dtype=np.float64)
        if kind == "scores" and values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        wanted = 1 if kind == "scores" else 2
        if values.ndim != wanted:
            shape = "(rows,)" if kind == "scores" else "(rows, classes)"
            raise ValueError(f"{kind} must have shape {shape}, got {values.shape}")
        return _Response(values, self.id, self.time, self.more)


def _records(path: str) -> Iterator[tuple[str, Any]]:
    """Go through the lines of files as objects, each with its place for an error."""
    if Path(path).is_dir():
        files = sorted(str(file) for file in Path(path).rglob("*") if file.is_file() and file.name[0] not in "._")
    else:
        files = [path] if Path(path).is_file() else sorted(file for file in glob(path, recursive=True))
    if not files:
        raise InputError(f"path must be a file, a folder with files or a pattern that matches some; got {path!r}.")
    empty = True
    for file in files:
        with open(file, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                empty = False
                place = f"{file}, line {number},"
                try:
                    record = parse_json(line)
                except ValueError as error:
                    raise InputError(f"{place} must be one JSON object: {one_line(error)}.") from error
                if not isinstance(record, dict):
                    raise InputError(f"{place} must be one JSON object; got a {type(record).__name__}.")
                yield place, record
    if empty:
        raise InputError(f"path must hold at least one line; {path} has none.")


def _sagemaker(record: Any, name: str | None) -> _Response:
    """Read a line of data capture."""
    output, event = record["captureData"]["endpointOutput"], record["eventMetadata"]
    text, encoding = output["data"], str(output["encoding"]).upper()
    if encoding == "BASE64":
        text = base64.b64decode(text, validate=True).decode()
        encoding = "CSV" if "csv" in str(output.get("observedContentType")).lower() else "JSON"
    if encoding not in ("CSV", "JSON"):
        raise ValueError(f"encoding must be JSON, CSV or BASE64, got {encoding}")
    if encoding == "CSV":
        values: Any = [[float(cell) for cell in row] for row in csv.reader(text.splitlines()) if row]
    else:
        values = _predictions(parse_json(text), name)
    return _Response(values, event.get("inferenceId") or event.get("eventId"), event.get("inferenceTime"))


def _kserve(record: Any, name: str | None) -> _Response | None:
    """Read a CloudEvent; None for a request."""
    if str(record.get("type", "")).endswith(".request"):
        return None
    if "data_base64" in record:
        data = parse_json(base64.b64decode(record["data_base64"], validate=True))
    else:
        data = parse_json(record["data"]) if isinstance(record["data"], str) else record["data"]
    values = _tensor(data["outputs"], name) if "outputs" in data else _predictions(data, name)
    return _Response(values, record.get("id"), record.get("time"))


def _bentoml(record: Any, name: str | None) -> _Response:
    """Read a line of a monitor's data file."""
    known = {name, "timestamp", "request_id", "trace_id"}
    more = {key: value for key, value in record.items() if key not in known and not isinstance(value, list | dict)}
    return _Response([record[name]], record.get("request_id"), record.get("timestamp"), more)


def _predictions(data: Any, name: str | None) -> Any:
    """Return the rows of a response: a list, or a dict that holds one; each a list, a number or a dict in turn."""
    named = isinstance(data, dict) and name in data
    rows = data[name if named else _PREDICTIONS] if isinstance(data, dict) else data
    if not isinstance(rows, list):
        raise ValueError(f"predictions must be a list, got a {type(rows).__name__}")
    if rows and isinstance(rows[0], dict):
        if name is None:
            raise ValueError(f"give `field`, one of {brief(rows[0])}")
        return [row[name] for row in rows]
    if name is not None and not named:
        raise KeyError(name)
    # A response to a single row may be the row itself.
    return [rows] if not isinstance(data, dict) and rows and not isinstance(rows[0], list) else rows


def _tensor(outputs: Sequence[Mapping[str, Any]], name: str | None) -> Any:
    """Return an output of the open inference protocol (v2), whose numbers may lie in one flat list."""
    names = [output["name"] for output in outputs]
    if name is None and len(names) != 1:
        raise ValueError(f"give `field`, one of {brief(names)}")
    if name is not None and name not in names:
        raise KeyError(name)
    output = outputs[0 if name is None else names.index(name)]
    return np.asarray(output["data"], dtype=np.float64).reshape(output["shape"])


def _metadata(responses: Sequence[_Response]) -> dict[str, Any]:
    """Return what is known about each row: id and place in the request, time, and what was logged along."""
    counts = [len(response.values) for response in responses]
    columns: dict[str, Any] = {"id": [response.id for response in responses]}
    if all(response.time for response in responses):
        columns["time"] = np.array([_moment(str(response.time)) for response in responses], dtype="datetime64[us]")
    # A column that was logged under one of these names is what its owner looks for there.
    for key in dict.fromkeys(key for response in responses for key in response.more):
        columns[key] = [response.more.get(key) for response in responses]
    metadata = {key: np.repeat(np.asarray(column), counts) for key, column in columns.items()}
    return {"row": np.concatenate([np.arange(count) for count in counts])} | metadata


def _moment(text: str) -> datetime:
    """Return a moment in UTC without its zone, as NumPy has none; without a zone it is taken as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"time of a response must be in ISO 8601; got {text!r}.") from error
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
