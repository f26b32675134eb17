"""What is kept between runs: model files, and the arrays in the store of the monitor."""

from __future__ import annotations

import json
import zlib
from functools import partial

import numpy as np

import leadline
from fuzz.target import BrokenPromiseError, MakeTarget, Target, model, sample, unless_refused
from leadline import InputError
from leadline.estimators import persistence
from leadline.estimators.kept import reduce_for_keeping
from leadline.estimators.samples import Sample
from leadline.monitor import blobs
from leadline.monitor.ledger import Entry, realise


def _model(data: bytes) -> bool:
    """Load a model whose checksum is right, whatever else is wrong with it, and estimate with it."""
    loaded = unless_refused(lambda: persistence.from_bytes(sealed(data)))
    if loaded is None:
        return False
    target = np.zeros((8, loaded.n_classes_), np.float32)
    target[np.arange(8), np.arange(8) % loaded.n_classes_] = np.arange(1, 9)
    estimate = unless_refused(lambda: loaded.estimate(target))
    if estimate is not None:
        json.dumps(estimate.to_dict(), allow_nan=False)
        if not 0 <= estimate.interval[0] <= estimate.accuracy <= estimate.interval[1] <= 1:
            raise BrokenPromiseError(f"accuracy {estimate.accuracy} and interval {estimate.interval}")
    persistence.to_bytes(loaded)
    return True


def sealed(data: bytes) -> bytes:
    """Return a model file with the checksum of what it holds; bytes that are no such file as they are."""
    from safetensors.numpy import save

    try:
        metadata, tensors = persistence._read(data, "model")
        metadata.pop("checksum", None)
        return bytes(save(tensors, {**metadata, "checksum": persistence._checksum(metadata, tensors)}))
    except (InputError, TypeError, ValueError, AttributeError):  # metadata that are no texts by name
        return data


def _store(data: bytes) -> bool:
    """Read arrays of the store, as each of the things that it keeps in them, and use those."""
    packed = zlib.compress(data, 1)
    sums = unless_refused(lambda: blobs.unpack_sums(packed))
    kept = unless_refused(lambda: blobs.unpack_sample(packed))
    entry = unless_refused(lambda: Entry.from_bytes(packed))
    if sums is not None:
        blobs.pack_sums(sums + sums)
    if kept is not None:
        (kept + kept).draw(100)
    if entry is not None:
        for _, rows in entry.by_segment():
            unless_refused(partial(realise, rows, {}, 0.9))
    return any(found is not None for found in (sums, kept, entry))


def _stored() -> list[bytes]:
    """Return what the monitor stores of a few rows, as it is before it is compressed."""
    logits, numbers = sample(8).logits, np.arange(8)
    entry = Entry.of_rows(numbers, numbers, numbers % 2, logits.argmax(axis=1), np.full(8, 0.5))
    sums = blobs.pack_sums(reduce_for_keeping(model(), logits))
    return [zlib.decompress(packed) for packed in (sums, blobs.pack_sample(Sample.of(logits, 5)), entry.to_bytes())]


TARGETS: dict[str, MakeTarget] = {
    "model": lambda folder: Target(_model, [persistence.to_bytes(model(method)) for method in leadline.METHODS]),
    "store": lambda folder: Target(_store, _stored()),
}
