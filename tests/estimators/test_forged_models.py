"""Model files that somebody has changed and sealed again with a right checksum."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as serialise

from leadline import METHODS, InputError, make
from leadline.data.outputs import Outputs
from leadline.estimators.persistence import _checksum, _contents, from_bytes
from leadline.results.render import plain

FAST: dict[str, dict[str, Any]] = {name: {"n_anchors": 20, "max_epochs": 2} for name in ("alsa-g", "alsa-e")}


def sealed(metadata: dict[str, str], tensors: dict[str, Any]) -> bytes:
    """Return a model file whose checksum is right, whatever it holds."""
    metadata = {name: text for name, text in metadata.items() if name != "checksum"}
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return serialise(arrays, metadata | {"checksum": _checksum(metadata, arrays)})


def never_right(array: Any) -> dict[str, Any]:
    """Return forgeries of an array that no fit can have learned."""
    other = np.float32 if array.dtype.kind in "iu" else np.int64
    found = {
        "type": array.astype(other),
        "bool": array.astype(bool),
        "empty": array[:0],
        "scalar": array.reshape(-1)[:1].reshape(()),
        "deeper": array[None],
        "flat": array.reshape(-1) if array.ndim > 1 else array[:, None],
    }
    wrong = {"nan": np.nan, "inf": np.inf, "large": 1e35} if array.dtype.kind == "f" else {"beyond": 10**6, "below": -1}
    for name, value in wrong.items():
        found[name] = array.copy()
        found[name].flat[0] = value
    return found


def sometimes_right(array: Any) -> dict[str, Any]:
    """Return forgeries of an array that a fit may have learned."""
    return {
        "transposed": array.T, "negative": -array, "zero": np.zeros_like(array), "reversed": array[::-1],
        "shorter": array[:-1], "longer": np.concatenate([array, array[:1]]), "half": array.astype(np.float16),
        "double": array.astype(np.float64),
    }  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_forged_models_are_refused_or_answer(method: str, make_outputs: Callable[..., Outputs]) -> None:
    """No file with a right checksum crashes, or makes an estimate that is no number."""
    source, target = make_outputs(n=80, c=3), make_outputs(n=40, c=3, seed=1, signal=1.0)
    model = make(method, **FAST.get(method, {})).fit(source.logits, source.labels)
    model = model.recalibrate(target.logits, target.labels)
    metadata, tensors = _contents(model)

    def answers(forged: bytes) -> bool:
        try:
            found = from_bytes(forged).estimate(target.logits)
        except InputError:
            return False
        low, high = found.interval
        assert 0.0 <= low <= found.accuracy <= high <= 1.0
        assert all(one.accuracy is None or 0.0 <= one.accuracy <= 1.0 for one in found.by_class)
        json.dumps(plain(found.to_dict()))  # thresholds of a source without errors lie beyond all scores
        return True

    assert answers(sealed(metadata, tensors))
    with np.errstate(all="ignore"):
        for name, array in tensors.items():
            for what, forged in never_right(array).items():
                if name == "source.gap_edges" and what == "empty":
                    continue  # a small source has no edges, but then one gap
                assert not answers(sealed(metadata, tensors | {name: forged})), (name, what)
            for forged in sometimes_right(array).values():
                answers(sealed(metadata, tensors | {name: forged}))
    values: tuple[Any, ...] = (None, True, -1, 10**30, 1e300, float("nan"), float("inf"), "x", [], ["a"], {"a": 1})
    for part in ("params", "state", "source"):
        known = json.loads(metadata[part])
        for name in known:
            for value in values:
                answers(sealed(metadata | {part: json.dumps(known | {name: value})}, tensors))


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("ac", {"temperature_scaling": "yes"}, "temperature_scaling must be true or false; got 'yes'"),
        ("im", {"n_bins": 2.5}, r"n_bins must be an integer; got 2\.5"),
        ("im", {"n_bins": 10**9}, "n_bins must be from 1 to 1000000; got 1000000000"),
        ("alsa-g", {"seed": -1}, "seed must not be negative; got -1"),
        ("alsa-g", {"width": (1.0,)}, r"width must be 2 numbers or none; got \(1\.0,\)"),
        ("alsa-g", {"max_epochs": True}, "max_epochs must be an integer or none; got True"),
    ],
)
def test_options_of_another_type_or_range_are_refused(
    method: str, options: dict[str, Any], message: str, make_outputs: Callable[..., Outputs]
) -> None:
    with pytest.raises(InputError, match=message):
        make(method, **options).fit(make_outputs(n=40, c=3))
