"""Outputs in files of the layouts that serving tools write."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from served_models import captured, cloud_event, monitored, write_lines

P = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]


def shares(outputs: ll.Outputs) -> Any:
    return np.exp(outputs.logits)


CSV = "0.7,0.2,0.1\n0.1,0.3,0.6\n"


@pytest.mark.parametrize(
    "record",
    [
        captured(json.dumps({"predictions": P}), "JSON"),
        captured(json.dumps(P), "JSON"),
        captured(CSV, "CSV", "text/csv; charset=utf-8"),
        captured(base64.b64encode(CSV.encode()).decode(), "BASE64", "text/csv"),
        captured(base64.b64encode(json.dumps({"predictions": P}).encode()).decode(), "BASE64"),
    ],
    ids=["json", "bare list", "csv", "base64 of csv", "base64 of json"],
)
def test_sagemaker(record: Any, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "10-15.jsonl", record)
    outputs = ll.read_payloads(path, "sagemaker", kind="probabilities", classes=["a", "b", "c"])
    np.testing.assert_allclose(shares(outputs), P)
    assert outputs.classes == ("a", "b", "c")
    assert list(outputs.metadata["id"]) == ["e1", "e1"]
    assert list(outputs.metadata["row"]) == [0, 1]
    assert list(outputs.metadata["time"]) == [np.datetime64("2026-03-02T10:15:20", "us")] * 2


def test_sagemaker_other_shapes(tmp_path: Path) -> None:
    nested = {"predictions": [{"label": 0, "probabilities": P[0]}, {"label": 2, "probabilities": P[1]}]}
    path = write_lines(tmp_path / "nested.jsonl", captured(json.dumps(nested), "JSON"))
    outputs = ll.read_payloads(path, "sagemaker", kind="probabilities", field="probabilities")
    np.testing.assert_allclose(shares(outputs), P)
    path = write_lines(tmp_path / "one.jsonl", captured(json.dumps(P[0]), "JSON"), captured(json.dumps(P[1]), "JSON"))
    np.testing.assert_allclose(shares(ll.read_payloads(path, "sagemaker", kind="probabilities")), P)
    path = write_lines(tmp_path / "scores.jsonl", captured("0.9", "CSV"), captured("0.2\n0.4", "CSV"))
    outputs = ll.read_payloads(path, "sagemaker", kind="scores", classes=["ham", "spam"])
    np.testing.assert_allclose(shares(outputs)[:, 1], [0.9, 0.2, 0.4])


def test_folders_and_patterns_in_the_order_of_names(tmp_path: Path) -> None:
    for hour, row in zip(("10", "11"), P, strict=True):
        write_lines(
            tmp_path / "capture" / "AllTraffic" / hour / "a.jsonl", captured(json.dumps([row]), "JSON", event=hour)
        )
    for place in (tmp_path / "capture", f"{tmp_path}/capture/**/*.jsonl"):
        outputs = ll.read_payloads(place, "sagemaker", kind="probabilities")
        np.testing.assert_allclose(shares(outputs), P)
        assert list(outputs.metadata["id"]) == ["10", "11"]


V2 = {"name": "probabilities", "datatype": "FP32", "shape": [2, 3], "data": [value for row in P for value in row]}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"predictions": P}, None),
        ({"model_name": "flowers", "outputs": [V2]}, None),
        ({"outputs": [{"name": "label", "datatype": "INT64", "shape": [2], "data": [0, 2]}, V2]}, "probabilities"),
        (json.dumps({"predictions": P}), None),
    ],
    ids=["v1", "v2", "v2 with two outputs", "text"],
)
def test_kserve(data: Any, field: str | None, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "events.jsonl", cloud_event({"instances": [[1, 2]]}, "request"), cloud_event(data))
    outputs = ll.read_payloads(path, "kserve", kind="probabilities", field=field)
    np.testing.assert_allclose(shares(outputs), P)
    assert outputs.metadata["time"][0] == np.datetime64("2026-03-02T10:15:20.505997", "us")
    assert list(outputs.metadata["id"]) == ["689b15e7"] * 2


def test_kserve_in_base64(tmp_path: Path) -> None:
    record = cloud_event(None) | {"data_base64": base64.b64encode(json.dumps({"predictions": P}).encode()).decode()}
    del record["data"]
    outputs = ll.read_payloads(write_lines(tmp_path / "events.jsonl", record), "kserve", kind="probabilities")
    np.testing.assert_allclose(shares(outputs), P)


def test_bentoml(tmp_path: Path) -> None:
    records = [
        monitored("logits", np.log(row).tolist(), str(number), country=country)
        for number, (row, country) in enumerate(zip(P, ["de", "fr"], strict=True))
    ]
    path = write_lines(tmp_path / "flowers" / "data" / "data.0.log", *records)
    outputs = ll.read_payloads(path, "bentoml", kind="logits", field="logits")
    np.testing.assert_allclose(shares(outputs), P)
    assert sorted(outputs.metadata) == ["country", "id", "row", "time"]
    assert list(outputs.metadata["country"]) == ["de", "fr"]
    assert list(outputs.metadata["id"]) == ["0", "1"]


@pytest.mark.parametrize(
    ("layout", "records", "options", "match"),
    [
        ("seldon", [{}], {}, "layout must be one of 'sagemaker', 'kserve', 'bentoml'; got 'seldon'"),
        ("kserve", [{}], {"kind": "odds"}, "kind must be one of"),
        ("bentoml", [{}], {}, "field must be the name"),
        ("bentoml", [{"a": 1}], {"field": "p"}, "line 1, must be a response in the layout 'bentoml': it has no 'p'"),
        ("sagemaker", [{"x": 1}], {}, "line 1, must be .*it has no 'captureData'"),
        ("sagemaker", [captured("{", "JSON")], {}, "line 1, must be a response"),
        ("sagemaker", [captured("?", "BASE64")], {}, "line 1, must be a response"),
        ("sagemaker", [captured("[]", "PROTOBUF")], {}, "encoding must be JSON, CSV or BASE64, got PROTOBUF"),
        ("sagemaker", [captured("setosa", "CSV")], {}, "could not convert string to float"),
        ("kserve", [cloud_event({"instances": [1]}, "request")], {}, "has requests only"),
        (
            "kserve",
            [cloud_event({"predictions": [1, 1]})],
            {},
            r"probabilities must have shape \(rows, classes\), got \(2,\)",
        ),
        (
            "kserve",
            [cloud_event({"predictions": P}), cloud_event({"predictions": [[0.5, 0.5]]})],
            {},
            "rows have '2', '3' values",
        ),
        ("kserve", [cloud_event({"outputs": [V2, V2]})], {}, "give `field`, one of 'probabilities'"),
        ("kserve", [cloud_event({"outputs": [V2]})], {"field": "p"}, "it has no 'p'"),
        ("kserve", [cloud_event({"predictions": P}, time="noon")], {}, "must be in ISO 8601; got 'noon'"),
        ("kserve", [cloud_event({"predictions": P})], {"field": "proba"}, "it has no 'proba'"),
        ("sagemaker", [captured("[[1]]", "JSON") | {"eventMetadata": []}], {}, "line 1, must be a response"),
        ("kserve", [[1]], {}, "must be one JSON object; got a list"),
        ("kserve", [], {}, "path must hold at least one line"),
    ],
)
def test_wrong_input(layout: Any, records: list[Any], options: dict[str, Any], match: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", *records)
    with pytest.raises(ll.InputError, match=match) as caught:
        ll.read_payloads(path, layout, **({"kind": "probabilities"} | options))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(ll.InputError, match="line 1, must be one JSON object"):
        ll.read_payloads(tmp_path / "log.jsonl", "kserve", kind="logits")


def test_own_columns_win(tmp_path: Path) -> None:
    lines = [monitored("p", row, id=name) for row, name in zip(P, "ab", strict=True)]
    path = write_lines(tmp_path / "data.0.log", *lines)
    outputs = ll.read_payloads(path, "bentoml", kind="probabilities", field="p")
    assert list(outputs.metadata["id"]) == ["a", "b"]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ll.InputError, match="path must be a file, a folder with files or a pattern"):
        ll.read_payloads(tmp_path / "nowhere.jsonl", "kserve", kind="logits")
