"""How fast Leadline is: ALSA beside plain PyTorch, the other methods beside SciPy and POT (``methods.py``).

Run ``make bench-speed``. Both sides run in one process, in turns, on all cores; each time is the least of several.
Writes ``benchmarks/results/speed.json``, and the table and the figure of ``docs/speed.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import leadline as ll
from leadline.estimators.alsa import training
from leadline.estimators.alsa.kernels import AnchorField, get_kernel
from methods import method_rows
from reference import PlainALSA, train
from timing import Row, least_times

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "speed.json"
FIGURE = ROOT / "docs" / "images" / "speed_growth.png"
PAGE = ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"

#: The paper's form: plain PyTorch has no more than that.
ONE_FIT: dict[str, Any] = {"geometry": "cosine", "folds": 1}


def make_field(k: int, c: int, power: int = 2) -> AnchorField[NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    anchors = rng.normal(size=(k, c)).astype(np.float32)
    peaks = rng.normal(scale=0.1, size=k).astype(np.float32)
    return AnchorField(anchors, peaks, rng.normal(3.0, 0.6, size=k).astype(np.float32), power)


def make_logits(n: int, c: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(n, c)).astype(np.float32)


def make_source(n: int, c: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Logits of a classifier that is right four times in five, less often where two classes are near each other."""
    rng = np.random.default_rng(2)
    labels = rng.integers(c, size=n)
    logits = rng.normal(size=(n, c)) + 3.0 * np.eye(c)[labels]
    logits += rng.uniform(0.0, 3.0, size=(n, 1)) * np.eye(c)[(labels + 1) % c]
    return logits.astype(np.float32), labels


def influence_tasks(n: int, c: int, k: int) -> dict[str, Callable[[], Any]]:
    """Total influence on n rows: Leadline, and plain PyTorch without recording gradients."""
    logits, field, kernel = make_logits(n, c), make_field(k, c), get_kernel("numba")
    plain, tensor = PlainALSA(field.anchors, field.peaks, field.widths), torch.from_numpy(logits)

    def in_torch() -> None:
        with torch.no_grad():
            plain(tensor)

    return {"leadline": lambda: kernel.influence(logits, field), "plain": in_torch}


def influence_rows(repeats: int) -> Iterable[Row]:
    """Compare influence, the whole cost of an estimate."""
    for c, target in ((10, 10.0), (100, 3.0)):
        least = least_times(influence_tasks(20_000, c, 3_000), repeats)
        yield Row(
            f"influence, n = 20,000, c = {c}, k = 3,000: times faster than plain PyTorch",
            least["leadline"], least["plain"], "s", least["plain"] / least["leadline"], target, at_least=True,
        )  # fmt: skip
    n, c, k = 20_000, 1_000, 2_000
    logits, columns = make_logits(n, c), np.ascontiguousarray(make_field(k, c).anchors.T)
    product = np.empty((n, k), dtype=np.float32)
    tasks = influence_tasks(n, c, k)
    tasks["plain"] = lambda: np.matmul(logits, columns, out=product)
    least = least_times(tasks, repeats)
    yield Row(
        "influence, n = 20,000, c = 1,000, k = 2,000: times the bare matrix product",
        least["leadline"], least["plain"], "s", least["leadline"] / least["plain"], 1.5, at_least=False,
    )  # fmt: skip


def fit_rows(repeats: int) -> Iterable[Row]:
    """Compare training: per epoch at equal batches, and to the loss that plain Adam reaches."""
    n, c, k, batch_size = 10_000, 10, 3_000, 256
    logits, labels = make_source(n, c)

    def fit(epochs: int, **options: Any) -> ll.ALSA:
        # an epsilon that training cannot meet: the number of epochs decides
        return ll.ALSA(n_anchors=k, max_epochs=epochs, epsilon=1e-300, **ONE_FIT, **options).fit(logits, labels)

    start = fit(1, learn=())
    tensor = torch.from_numpy(logits)
    correct = torch.from_numpy((logits.argmax(axis=1) == labels).astype(np.float32))

    def fit_plain(epochs: int) -> list[float]:
        plain = PlainALSA(start.anchors_, start.peaks_, start.widths_)
        rate = start.learning_rate
        return train(plain, tensor, correct, epochs=epochs, batch_size=batch_size, learning_rate=rate)

    kernel, right, some = get_kernel("numba"), correct.numpy() > 0, 3
    field = AnchorField(start.anchors_, start.peaks_, start.widths_, power=2)
    options = training.Training(frozenset(training.PARTS), 1e-300, some, start.learning_rate, batch_size)
    least = least_times(
        {
            "leadline": lambda: training.train(kernel, logits, right, field, options, np.random.default_rng(0)),
            "plain": lambda: fit_plain(some),
        },
        repeats,
    )
    ours, plain = least["leadline"] / some, least["plain"] / some
    yield Row(
        "an epoch of fit, n = 10,000, c = 10, k = 3,000, batches of 256: times faster than plain PyTorch",
        ours, plain, "s", plain / ours, 3.0, at_least=True,
    )  # fmt: skip

    epochs = len(ll.ALSA(n_anchors=k, epsilon=1e-300, **ONE_FIT).fit(logits, labels).history_)
    loss = fit_plain(epochs)[-1]
    enough = next((e for e in range(1, 2 * epochs) if fit(e).history_[-1]["loss"] <= loss), None)
    if enough is None:
        raise SystemExit(f"ALSA did not reach the loss {loss:.4f} of plain Adam within {2 * epochs} epochs.")
    least = least_times({"leadline": lambda: fit(enough), "plain": lambda: fit_plain(epochs)}, repeats)
    yield Row(
        f"the same fit with defaults, to the loss of plain Adam after {epochs} epochs ({loss:.4f}, here after "
        f"{enough}): times faster",
        least["leadline"], least["plain"], "s", least["plain"] / least["leadline"], 6.0, at_least=True,
    )  # fmt: skip


# Linux's own high-water mark: that of getrusage starts from the size of the process that started this one.
MEMORY = """
import sys
from pathlib import Path
import numpy as np
import leadline as ll
def megabytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 2**10
model = ll.load(sys.argv[1])
logits = np.random.default_rng(0).standard_normal(size=(int(sys.argv[2]), 10), dtype=np.float32)
before = megabytes("VmRSS")
model.estimate(logits)
peak = megabytes("VmHWM")
print(peak - before, peak - logits.nbytes / 2**20)
"""


def memory_rows(*, quick: bool) -> Iterable[Row]:
    """Measure the memory of a large estimate, in a process of its own."""
    logits, labels = make_source(5_000, 10)
    n = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model.leadline")
        ll.ALSA(n_anchors=3_000, max_epochs=1, **ONE_FIT).fit(logits, labels).save(model)
        if sys.platform == "linux":
            command = [sys.executable, "-c", MEMORY, model, str(n)]
            above, whole = map(float, subprocess.run(command, check=True, capture_output=True).stdout.split())
            yield Row(
                f"memory of estimate above its inputs, n = {n:,}, c = 10, k = 3,000 (with Python, NumPy, Numba and "
                f"the model: {whole:.0f} MB)",
                above, None, "MB", above, 300.0, at_least=False,
            )  # fmt: skip


def measure_growth(repeats: int, *, quick: bool) -> dict[str, list[dict[str, float]]]:
    """Time the influence while one of n, k and c grows from (10,000, 1,000, 10)."""
    scale = 10 if quick else 1
    sweeps = {
        "n": [(n // scale, 1_000, 10) for n in (1_000, 3_000, 10_000, 30_000, 100_000)],
        "k": [(10_000 // scale, k, 10) for k in (100, 300, 1_000, 3_000, 10_000)],
        "c": [(10_000 // scale, 1_000, c) for c in (2, 5, 10, 30, 100, 300, 1_000)],
    }
    growth: dict[str, list[dict[str, float]]] = {}
    for name, sizes in sweeps.items():
        growth[name] = [{"n": n, "k": k, "c": c, **least_times(influence_tasks(n, c, k), repeats)} for n, k, c in sizes]
    return growth


def draw_growth(growth: dict[str, list[dict[str, float]]]) -> None:
    """Draw the growth of the cost on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    meaning = {"n": "rows n", "k": "anchors k", "c": "classes c"}
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6), sharey=True, layout="constrained")
    for axis, (name, points) in zip(axes, growth.items(), strict=True):
        x = [point[name] for point in points]
        axis.loglog(x, [point["plain"] for point in points], "s--", color="0.45", label="plain PyTorch")
        axis.loglog(x, [point["leadline"] for point in points], "o-", color="#1f6f8b", label="Leadline")
        fixed = ", ".join(f"{other} = {points[0][other]:,}" for other in meaning if other != name)
        axis.set(xlabel=meaning[name], title=fixed)
        axis.title.set_size("medium")
        axis.grid(visible=True, which="major", color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("seconds for the influence on all rows")
    axes[0].legend(frameon=False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150)
    plt.close(figure)


def write_table(rows: list[Row], about: dict[str, Any]) -> None:
    """Put the table into the page of the docs."""
    lines = ["| | figure | target | Leadline | alternative |", "|---|---|---|---|---|"]
    for row in rows:
        sides = [row.leadline, row.other]
        cells = ["" if side is None else f"{side:.3g} {row.unit}" for side in sides]
        target = f"{'at least' if row.at_least else 'at most'} {row.target:g}"
        lines.append(f"| {row.what} | {row.figure:.2f} | {target} | {' | '.join(cells)} |")
    place = f"{about['processor']}, {about['cores']} cores, NumPy {about['numpy']}, PyTorch {about['torch']}"
    caption = f"Measured on {about['date']}: {place}; load of the machine before the run {about['load_average']:.1f}."
    write_between(PAGE, BEGIN, END, [caption, "", *lines])


def write_between(page: Path, begin: str, end: str, lines: list[str]) -> None:
    """Replace what a page has between two marks."""
    text = page.read_text()
    head, tail = text.split(begin)[0], text.split(end)[1]
    page.write_text(head + begin + "\n".join(lines) + "\n" + end + tail)


def machine() -> dict[str, Any]:
    """Say where the numbers come from."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("leadline", "numpy", "numba", "torch")},
        "date": datetime.now(UTC).date().isoformat(),
    }


def show(row: Row) -> None:
    """Print one line of the table."""
    sign = "at least" if row.at_least else "at most"
    sides = f"{row.leadline:.4g} {row.unit}" + ("" if row.other is None else f" against {row.other:.4g} {row.unit}")
    verdict = "met" if row.met else "MISSED"
    print(f"{row.figure:8.2f}  {sign} {row.target:<5g} {verdict:<7} {row.what}  [{sides}]", flush=True)


def main() -> None:
    """Measure everything, print the table, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two runs of each and smaller sizes; writes nothing")
    parser.add_argument("--repeats", type=int, default=7, help="runs of each measurement, of which the least counts")
    options = parser.parse_args()
    quick = options.quick
    repeats = 2 if quick else options.repeats
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, torch {about['torch']}, load {about['load_average']:.1f}")
    print("  figure  target         verdict")
    rows = []
    parts = (
        influence_rows(repeats), fit_rows(min(repeats, 4)), method_rows(repeats, quick=quick),
        memory_rows(quick=quick),
    )  # fmt: skip
    for part in parts:
        for row in part:
            show(row)
            rows.append(row)
    growth = measure_growth(min(repeats, 4), quick=quick)
    if quick:
        return
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": about, "rows": [asdict(row) | {"met": row.met} for row in rows], "growth": growth}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    draw_growth(growth)
    write_table(rows, about)
    print("written:", *(path.relative_to(ROOT) for path in (RESULTS, FIGURE, PAGE)))


if __name__ == "__main__":
    main()
