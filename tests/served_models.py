"""Models and logs as other tools write them, for tests of what reads them and for the examples on pages."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


def linear_onnx(weights: NDArray[np.float32], *kinds: str, rows: int | str = "n", **zipmap: Any) -> bytes:
    """Return a linear model with some of the outputs logits, probabilities, maps and label, as an ONNX file."""
    from onnx import TensorProto, helper

    inputs, classes = weights.shape
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0),
    ]
    made = {
        "logits": helper.make_tensor_value_info("logits", TensorProto.FLOAT, [rows, classes]),
        "probabilities": helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [rows, classes]),
        "label": helper.make_tensor_value_info("label", TensorProto.INT64, [rows]),
    }
    if "maps" in kinds:
        nodes.append(helper.make_node("ZipMap", ["probabilities"], ["maps"], domain="ai.onnx.ml", **zipmap))
        key = TensorProto.INT64 if "classlabels_int64s" in zipmap else TensorProto.STRING
        value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        of_maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))
        made["maps"] = helper.make_value_info("maps", of_maps)
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, inputs])],
        [made[kind] for kind in kinds],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel())],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def write_lines(path: Path, *records: Any) -> Path:
    """Write JSON lines, into folders that need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def captured(data: str, encoding: str, content: str = "application/json", event: str = "e1") -> dict[str, Any]:
    """Return a line of SageMaker's data capture."""
    return {
        "captureData": {
            "endpointInput": {"observedContentType": "text/csv", "mode": "INPUT", "data": "1,2", "encoding": "CSV"},
            "endpointOutput": {"observedContentType": content, "mode": "OUTPUT", "data": data, "encoding": encoding},
        },
        "eventMetadata": {"eventId": event, "inferenceTime": "2026-03-02T10:15:20Z"},
        "eventVersion": "0",
    }


def cloud_event(data: Any, kind: str = "response", **more: Any) -> dict[str, Any]:
    """Return a CloudEvent of KServe's logger."""
    return {
        "specversion": "1.0",
        "type": f"org.kubeflow.serving.inference.{kind}",
        "source": "http://localhost:9081/",
        "id": "689b15e7",
        "time": "2026-03-02T12:15:20.505997782+02:00",
        "datacontenttype": "application/json",
        "inferenceservicename": "flowers",
        "namespace": "default",
        "data": data,
    } | more


def monitored(name: str, values: list[float], request: str = "1", **more: Any) -> dict[str, Any]:
    """Return a line of a data file of BentoML's monitor."""
    stamp = {"timestamp": "2026-03-02T10:15:20.123456", "request_id": request, "trace_id": "7"}
    return {name: values} | more | stamp


def for_the_page(folder: Path) -> dict[str, Any]:
    """Write what docs/your-model.md takes for granted, and return the names that it does: outputs of two classes."""
    from transformers.trainer_utils import PredictionOutput

    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    logits = rng.normal(size=(300, 2)) + 2.0 * np.eye(2)[labels]
    probabilities = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).tolist()
    (folder / "model.onnx").write_bytes(linear_onnx((rng.normal(size=(30, 2)) / 100).astype(np.float32), "logits"))
    answer = {"predictions": probabilities}
    write_lines(folder / "capture" / "10" / "15.jsonl", captured(json.dumps(answer), "JSON"))
    write_lines(folder / "events.jsonl", cloud_event({"instances": [[1.0]]}, "request"), cloud_event(answer))
    write_lines(folder / "monitoring" / "data.0.log", *(monitored("proba", row) for row in probabilities))
    predicted = PredictionOutput(predictions=logits, label_ids=labels, metrics={})
    network = SimpleNamespace(config=SimpleNamespace(id2label={0: "benign", 1: "malignant"}))
    return {"trainer": SimpleNamespace(predict=lambda data: predicted, model=network), "validation_texts": []}
