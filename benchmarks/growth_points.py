"""One point of ``growth.py``, in a process of its own: what it took, as JSON on standard output.

python benchmarks/growth_points.py memory '{"model": "ac.leadline", "n": 1000, "c": 10}'
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rows import make_target, softmax, source_size

_WARM_VALUES = 1 << 21  # logits of the call that does not count: it loads what the one that counts needs
_ROWS_PER_FILE = 2_000_000


_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Return the seconds of some work, those of processor time, and the most memory of this process meanwhile."""
    if _FORGET.exists():
        _FORGET.write_text("5")  # begins the record of the most memory anew
    wall, processor = time.perf_counter(), time.process_time()
    work()
    found = {"seconds": time.perf_counter() - wall, "processor": time.process_time() - processor}
    if not _STATUS.exists():
        return found
    lines = _STATUS.read_text().splitlines()
    return found | {"megabytes": next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10}


def fit(method: str, c: int, model: str) -> dict[str, float]:
    """Fit a method, and save it."""
    import leadline as ll

    source = make_target(source_size(c), c, 0)
    found = timed(lambda: ll.make(method).fit(*source).save(model))
    return found | {"anchors": float(len(getattr(ll.load(model), "peaks_", ())))}


def memory(model: str, n: int, c: int) -> dict[str, float]:
    """Estimate rows in memory."""
    import leadline as ll

    estimator, target = ll.load(model), make_target(n, c, 1)[0]
    estimator.estimate(make_target(max(2, min(n, _WARM_VALUES // c)), c, 2)[0])
    return timed(lambda: estimator.estimate(target))


def groups(model: str, n: int, c: int, groups: int) -> dict[str, float]:
    """Estimate rows in memory, and each of so many segments of them."""
    import leadline as ll

    segments = np.random.default_rng(0).integers(groups, size=n)
    outputs = ll.Outputs(make_target(n, c, 1)[0], metadata={"segment": segments})
    estimator = ll.load(model)
    estimator.estimate(make_target(min(n, _WARM_VALUES // c), c, 2)[0])
    return timed(lambda: estimator.estimate_by(outputs, "segment"))


def write(folder: str, n: int, c: int) -> dict[str, float]:
    """Write a log of Parquet files."""
    import leadline as ll

    def write_files() -> None:
        for number, start in enumerate(range(0, n, _ROWS_PER_FILE)):
            logits = make_target(min(_ROWS_PER_FILE, n - start), c, number + 1)[0]
            ll.write_outputs(ll.Outputs(logits), Path(folder) / f"part-{number:05}.parquet")

    return timed(write_files)


def files(model: str, folder: str) -> dict[str, float]:
    """Estimate a log of Parquet files."""
    import leadline as ll

    estimator = ll.load(model)
    estimator.estimate(make_target(_WARM_VALUES // estimator.n_classes_, estimator.n_classes_, 0)[0])
    return timed(lambda: ll.estimate_files(estimator, folder))


def limits(folder: str, n: int, c: int) -> dict[str, float]:
    """Measure what bounds every method: bytes a second from memory, products of matrices, rows of a log."""
    import pyarrow.dataset as ds

    values, square = np.ones(1 << 25, dtype=np.float32), np.ones((2_000, 2_000), dtype=np.float32)
    passes = [timed(values.sum)["seconds"] for _ in range(5)]
    products = [timed(lambda: square @ square)["seconds"] for _ in range(5)]
    write(folder, n, c)
    readings = [timed(lambda: ds.dataset(folder).to_table())["seconds"] for _ in range(3)]
    return {
        "bytes_a_second": values.nbytes / min(passes),
        "flops_a_second": 2.0 * len(square) ** 3 / min(products),
        "rows_read_a_second": n / min(readings),
    }


def pot(n: int, c: int) -> dict[str, float]:
    """Solve COT's transport by the network simplex of POT, without Leadline."""
    import ot

    target, (_, labels) = softmax(make_target(n, c, 1)[0]), make_target(source_size(c), c, 0)
    share = np.bincount(labels, minlength=c) / len(labels)
    return timed(lambda: ot.emd2(np.full(n, 1 / n), share, 1.0 - target, numItermax=10**8))


def nannyml(n: int, c: int) -> dict[str, float]:
    """Estimate the accuracy by NannyML's CBPE, all rows as one chunk."""
    import nannyml as nml
    import pandas as pd

    def frame(n: int, seed: int) -> Any:
        logits, labels = make_target(n, c, seed)
        columns = {f"p{i}": column for i, column in enumerate(softmax(logits).T)}
        return pd.DataFrame({**columns, "predicted": logits.argmax(axis=1), "label": labels})

    two = c == 2
    estimator = nml.CBPE(
        problem_type="classification_binary" if two else "classification_multiclass",
        y_pred_proba="p1" if two else {i: f"p{i}" for i in range(c)},
        y_pred="predicted", y_true="label", metrics=["accuracy"], chunk_number=1,
    )  # fmt: skip
    target = frame(n, 1).drop(columns="label")
    estimator.fit(frame(source_size(c), 0))
    return timed(lambda: estimator.estimate(target))


def quapy(n: int, c: int) -> dict[str, float]:
    """Estimate the class shares by QuaPy's EM (EMQ): what Leadline does on the way to an accuracy."""
    from quapy.method.aggregative import EMQ

    target, (_, labels) = softmax(make_target(n, c, 1)[0]), make_target(source_size(c), c, 0)
    share = np.bincount(labels, minlength=c) / len(labels)
    return timed(lambda: EMQ.EM(share, target))


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    task.__name__: task for task in (fit, memory, groups, write, files, limits, pot, nannyml, quapy)
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
