"""Wrong, damaged and hostile files: each is one clear line that starts with the path."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file

from leadline.data.files import FORMATS, read_outputs, write_outputs
from leadline.data.outputs import Outputs
from leadline.errors import InputError

EYE = np.eye(3)
PAIR = [[1.0, 2.0]] * 2
HUGE = {"descr": "<f4", "fortran_order": False, "shape": (10**15, 10)}

Make = Callable[[Path], Any]
MakeOutputs = Callable[..., Outputs]


def content(data: str | bytes) -> Make:
    return lambda path: path.write_bytes(data.encode() if isinstance(data, str) else data)


def npz(**arrays: Any) -> Make:
    return lambda path: np.savez(path, allow_pickle=True, **arrays)


def tensors(**metadata: str) -> Make:
    named = {f"leadline.{key}": value for key, value in metadata.items()}
    return lambda path: save_file({"logits": EYE}, path, named)


def table(**columns: Any) -> Make:
    return lambda path: parquet.write_table(pa.table(columns), path)


def npy_header(**changes: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, HUGE | changes)
    return stream.getvalue()


def zipped(**members: bytes) -> Make:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return content(stream.getvalue())


def arrow_with_wrong_offsets(path: Path) -> None:
    """Write two lists, of which the second ends far behind the end of the values."""
    stored = pa.table({"logits": PAIR})
    with pa.ipc.new_file(path, stored.schema) as writer:
        writer.write_table(stored)
    offsets = struct.pack("<3i", 0, 2, 4)
    data = path.read_bytes()
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, struct.pack("<3i", 0, 2, 10**8)))


CASES: dict[str, dict[str, tuple[Make, str]]] = {
    ".npz": {
        "missing": (lambda path: None, r"does not exist\."),
        "folder": (Path.mkdir, "is a folder; give one file"),
        "npy": (content(npy_header()), "not a zip file"),
        "empty archive": (zipped(), "has no logits; .* none"),
        "no logits": (npz(arr_0=EYE), "has no logits; an array `logits`.* 'arr_0'"),
        "probabilities": (npz(probs=EYE), "'probs' says it holds probabilities. Give them as probabilities"),
        "objects": (npz(logits=EYE, x=np.array([None])), "'x' holds pickled objects, which are never loaded"),
        "labels twice": (npz(logits=EYE, label=[0], labels=[0]), "got both 'label' and 'labels'"),
        "few labels": (npz(logits=EYE, labels=[0]), r"labels must have shape \(3,\)"),
        "float labels": (npz(logits=EYE, labels=np.ones(3)), "labels must be integers .* dtype float64"),
        "NaN labels": (npz(logits=EYE, labels=[0, np.nan, 1]), "labels must be integers .* dtype float64"),
        "bool labels": (npz(logits=EYE, labels=[True] * 3), "labels must be integers .* dtype bool"),
        "label out of range": (npz(logits=EYE, labels=[0, 3, 1]), "from 0 to 2, .* got 3 at row 1"),
        "named labels": (npz(logits=EYE, labels=list("abc")), "got 'a'. To use class names, give `classes`"),
        "few classes": (npz(logits=EYE, classes=["a"]), "must name each of the 3 logit columns"),
        "no rows": (npz(logits=np.empty((0, 3))), "must have at least one row"),
        "3 dimensions": (npz(logits=np.ones((2, 2, 2))), "got 3 dimension"),
        "NaN": (npz(logits=EYE * np.nan), "must be finite; got nan at row 0"),
        "constant": (npz(logits=np.ones((3, 2))), "must tell the classes apart"),
        "huge shape": (zipped(logits=npy_header()), r"'logits' claims the shape \(1000000000000000, 10\)"),
        "negative shape": (zipped(logits=npy_header(shape=(-2, -2))), r"claims the shape \(-2, -2\)"),
        "hostile header": (zipped(logits=b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16), "cannot be read as .npz"),
        "strange version": (zipped(logits=b"\x93NUMPY\x09\x00" + npy_header()[8:]), "cannot be read as .npz"),
    },
    ".npy": {
        "huge shape": (content(npy_header()), "cannot be read as .npy"),
        "absurd shape": (content(npy_header(shape=(10**30, 10))), "cannot be read as .npy"),
        "structured": (lambda path: np.save(path, np.zeros(3, "f4,f4")), r"must have shape \(samples, class"),
        "no rows": (lambda path: np.save(path, np.empty((0, 3))), "cannot be read|at least one row"),
        "pickle": (content(pickle.dumps(EYE)), "cannot be read as .npy"),
        "labels": (lambda path: np.save(path, np.arange(5)), "got 1 dimension"),
    },
    ".safetensors": {
        "no logits": (lambda path: save_file({"weight": EYE}, path), "has no logits; .*: 'weight'"),
        "short column": (tensors(metadata=json.dumps({"city": ["a"]})), "column 'city' must have one value"),
        "classes no list": (tensors(classes="7"), "a JSON list of texts"),
        "time without tensor": (tensors(times='{"a": "M8[s]"}'), "cannot be read as .safetensors"),
        "huge header": (content(struct.pack("<Q", 2**62) + b"{}"), "cannot be read as .safetensors"),
    },
    ".csv": {
        "empty": (content(""), "is empty"),
        "pipe": (os.mkfifo, "is not a regular file"),
        "no rows": (content("logit_0,logit_1\n"), "must have at least one row"),
        "no logits": (content("a,b\n1,2\n"), "has no logits; .*: 'a', 'b'"),
        "semicolons": (content("logit_0;logit_1\n1;2\n"), "has no logits; .*: 'logit_0;logit_1'"),
        "probabilities": (content("prob_0,prob_1\n.1,.9\n"), "'prob_0' says it holds probabilities"),
        "hole": (content("logit_0,logit_1\n1,2\n3,\n"), "missing value at row 1, column 'logit_1'"),
        "NaN": (content("logit_0,logit_1\n1,2\n3,nan\n"), "must be finite; got nan at row 1, class 1"),
        "text": (content("logit_0,logit_1\n1,2\n3,abc\n"), "invalid value 'abc'"),
        "gap": (content("logit_0,logit_2\n1,2\n"), "without a gap; got 'logit_2' and no 'logit_1'"),
        "column twice": (content("logit_0,logit_0\n1,2\n"), "got 'logit_0' 2 times"),
        "long row": (content("logit_0,logit_1\n1,2\n1,2,3\n"), "Expected 2 columns, got 3"),
        "float label": (content("logit_0,logit_1,label\n1,2,1.0\n"), "labels must be .* dtype float64"),
        "bool label": (content("logit_0,logit_1,logit_2,label\n1,2,3,true\n"), "labels must be .* dtype bool"),
        "label missing": (content("logit_0,logit_1,label\n1,2,0\n2,1,\n"), "got None at row 1. Leave out"),
        "no label": (content("logit_0,logit_1,label\n1,2,\n"), "got None at row 0. Leave out"),
        "broken list": (content('logits\n"[1, 2]"\n"[1,, 2]"\n'), r"got '\[1,, 2\]' at row 1"),
        "no list": (content("logits\nabc\n"), "must be lists of numbers such as .* got 'abc' at row 0"),
        "ragged lists": (content('logits\n"[1, 2]"\n"[1]"\n'), "got 1 at row 1 and 2 at row 0"),
        "Latin-1": (
            content("logit_0,logit_1,city\n1,2,Zürich\n".encode("latin-1")),
            "cannot be read as .csv",
        ),
        "Latin-1, late": (
            content(b"logit_0,logit_1,city\n" + b"1,2,Bern\n" * 9999 + b"1,2,Z\xfcrich\n"),
            "column 'city' is not text in UTF-8",
        ),
        "UTF-16": (content("logit_0,logit_1\n1,2\n".encode("utf-16")), "cannot be read as .csv"),
    },
    ".parquet": {
        "numbers": (table(logits=[1.0]), "must be lists of numbers; column 'logits' holds double"),
        "bools": (table(logit_0=[True], logit_1=[False]), "must be numbers; column 'logit_0' holds bool"),
        "ragged": (table(logits=[[1.0, 2.0], [1.0]]), "got 1 at row 1 and 2 at row 0"),
        "null row": (table(logits=[[1.0, 2.0], None]), "missing value at row 1"),
        "null inside": (table(logits=[[1.0, 2.0], [None, 1.0]]), "missing value at row 1"),
        "null label": (table(logits=PAIR, label=[1, None]), "got None at row 1"),
        "bytes as label": (table(logits=PAIR, label=[b"a", b"b"]), "got b'a' at row 0"),
        "no rows": (table(logits=pa.array([], pa.list_(pa.float32()))), "at least one row"),
    },
    ".arrow": {"wrong offsets": (arrow_with_wrong_offsets, "cannot be read as .arrow")},
    ".pkl": {"unknown suffix": (content("x"), r"has the suffix '.pkl'; outputs are kept in \.npz, \.npy,")},
    "": {"no suffix": (content("x"), "has the suffix ''")},
}


@pytest.mark.parametrize(("suffix", "case"), [(suffix, case) for suffix in CASES for case in CASES[suffix]])
def test_a_bad_file_is_one_clear_line(suffix: str, case: str, tmp_path: Path) -> None:
    make, message = CASES[suffix][case]
    path = tmp_path / f"some outputs{suffix}"
    make(path)
    with pytest.raises(InputError, match=message) as caught:
        read_outputs(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.isprintable()
    assert len(text) < len(str(path)) + 500


@pytest.mark.parametrize("suffix", FORMATS)
def test_garbage_is_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(b"\x93garbage\xff\x00" * 50)
    with pytest.raises(InputError, match=rf"a\{suffix}: cannot be read as \{suffix} .* Check that it is complete"):
        read_outputs(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(
    suffix: str, share: float, tmp_path: Path, make_outputs: MakeOutputs
) -> None:
    path = tmp_path / f"a{suffix}"
    write_outputs(Outputs(make_outputs(200, 4).logits), path)
    data = path.read_bytes()
    cut = data[: int(len(data) * share)]
    path.write_bytes(cut[: cut.rindex(b",")] if suffix == ".csv" else cut)  # a number cut short is a number
    with pytest.raises(InputError) as caught:
        read_outputs(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_with_wrong_bytes_is_read_or_refused(
    suffix: str, tmp_path: Path, make_outputs: MakeOutputs, rng: np.random.Generator
) -> None:
    path = tmp_path / f"a{suffix}"
    made = make_outputs(20, 3, metadata={"city": np.array(["a", "b"] * 10)})
    write_outputs(Outputs(made.logits) if suffix == ".npy" else made, path)
    data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    messages = []
    for attempt in range(100):
        wrong = data.copy()
        start = rng.integers(len(data) - 4)
        wrong[start : start + 4] = rng.integers(256, size=4)
        other = tmp_path / f"{attempt}{suffix}"
        other.write_bytes(wrong.tobytes())
        try:
            read_outputs(other)
        except InputError as error:
            messages.append(str(error).removeprefix(f"{other}: "))
    assert len(messages) > 10
    assert all(message.isprintable() and not message.startswith("/") for message in messages)


@pytest.mark.parametrize("name", ["logits", "labels", "city", "classes"])
def test_nothing_is_ever_unpickled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, ("sprung",)

    monkeypatch.chdir(tmp_path)
    npz(**{"logits": EYE, name: np.array([Trap()] * 3, dtype=object)})(Path("a.npz"))
    with pytest.raises(InputError, match="holds pickled objects"):
        read_outputs("a.npz")
    np.save("a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"^a\.npy: cannot be read"):
        read_outputs("a.npy")
    assert not Path("sprung").exists()


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    np.savez(tmp_path / "a.npz", logits=EYE)
    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(InputError, match=r"a\.npz: cannot be read \(Permission denied\)\.$"):
        read_outputs(tmp_path / "a.npz")


def test_strange_characters_stay_out_of_messages(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\x1b[2Ja,b\x07\n1,2\n")
    with pytest.raises(InputError, match="has no logits") as caught:
        read_outputs(tmp_path / "a.csv")
    assert str(caught.value).isprintable()
