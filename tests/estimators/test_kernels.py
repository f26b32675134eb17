"""Both backends against a float64 reference; test_gradients.py has what training needs of them.

The scale of a tolerance is the largest influence that could add up, sum_j |p_j|: float32 cannot promise more.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import leadline
from anchor_fields import ESTIMATING, POWERS, Array, batch_gradients, make_field, make_logits, placed, single_influences
from leadline.errors import InputError
from leadline.estimators.alsa.kernels import AnchorField, Kernel, get_kernel


@pytest.fixture(params=ESTIMATING)
def estimating(request: pytest.FixtureRequest) -> Kernel:
    return ESTIMATING[request.param]()


def check_influence(kernel: Kernel, logits: Array, field: AnchorField[Array], tolerance: float = 1e-5) -> None:
    singles = single_influences(logits, field)
    scale = np.abs(field.peaks).sum() + 1e-30
    total = kernel.influence(logits, placed(kernel, field))
    assert total.shape == (len(logits),)
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, singles.sum(axis=1), rtol=0, atol=tolerance * scale)
    strongest = kernel.strongest(logits, placed(kernel, field))
    largest = np.abs(field.peaks).max()
    np.testing.assert_allclose(strongest, np.abs(singles).max(axis=1), rtol=0, atol=3 * tolerance * largest + 1e-20)


@POWERS
@pytest.mark.parametrize(
    ("n", "k", "c"),
    [
        (1, 1, 2), (1, 300, 5), (300, 1, 5), (7, 13, 3), (513, 1001, 10),
        (50, 5000, 4),  # more anchors than a tile
        (3000, 129, 2), (600, 257, 77), (40, 33, 1000),
    ],
)  # fmt: skip
def test_influence_agrees_with_float64(estimating: Kernel, n: int, k: int, c: int, power: int) -> None:
    check_influence(estimating, make_logits(n, c), make_field(k, c, power))


@POWERS
def test_backends_agree(power: int) -> None:
    logits, field = make_logits(2000, 10), make_field(3000, 10, power, width=8.0)
    kernels = {name: make() for name, make in ESTIMATING.items()}
    found = {name: kernel.influence(logits, placed(kernel, field)) for name, kernel in kernels.items()}
    scale = np.abs(found["torch"]).max()
    np.testing.assert_allclose(found["numba"], found["torch"], rtol=0, atol=1e-4 * scale)
    np.testing.assert_allclose(found["plain"], found["numba"], rtol=0, atol=1e-6 * scale)


@POWERS
def test_float64_and_strided_inputs(estimating: Kernel, power: int) -> None:
    field = make_field(40, 6, power)
    logits = make_logits(90, 6).astype(np.float64)
    check_influence(estimating, logits, field)
    check_influence(estimating, logits[::3], field)
    check_influence(estimating, np.asfortranarray(logits), field)


@POWERS
def test_zero_rows_and_zero_anchors_are_at_distance_one(estimating: Kernel, power: int) -> None:
    logits, field = make_logits(5, 4), make_field(6, 4, power)
    logits[2] = 0.0
    field.anchors[3] = 0.0
    check_influence(estimating, logits, field)
    alone = AnchorField(field.anchors[:1], field.peaks[:1], field.widths[:1], power)
    expected = field.peaks[0] * np.exp(-(field.widths[0] ** 2))
    np.testing.assert_allclose(estimating.influence(logits[2:3], placed(estimating, alone)), expected, rtol=1e-5)


@POWERS
def test_a_duplicated_anchor_counts_twice(estimating: Kernel, power: int) -> None:
    logits, field = make_logits(30, 4), make_field(9, 4, power)
    twice = AnchorField(np.tile(field.anchors, (2, 1)), np.tile(field.peaks, 2), np.tile(field.widths, 2), power)
    once = estimating.influence(logits, placed(estimating, field))
    np.testing.assert_allclose(estimating.influence(logits, placed(estimating, twice)), 2 * once, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        estimating.strongest(logits, placed(estimating, twice)),
        estimating.strongest(logits, placed(estimating, field)),
        rtol=1e-6,
    )


def test_peaks_of_zero_give_nothing(estimating: Kernel) -> None:
    field = make_field(20, 3)
    field.peaks[:] = 0.0
    for result in (estimating.influence, estimating.strongest):
        assert not result(make_logits(10, 3), placed(estimating, field)).any()


@POWERS
@pytest.mark.parametrize("width", [0.0, 1e-20, 30.0, 1e4, 1e18, 3e38])
def test_extreme_widths(estimating: Kernel, width: float, power: int) -> None:
    logits, field = make_logits(20, 3), make_field(15, 3, power)
    field.widths[:] = width
    logits[0] = 2 * field.anchors[4]
    total = estimating.influence(logits, placed(estimating, field))
    assert np.isfinite(total).all()
    if width == 0.0:
        np.testing.assert_allclose(total, field.peaks.sum(dtype=np.float64), rtol=1e-5)
    if width >= 1e4:
        np.testing.assert_allclose(total[1:], 0.0, atol=1e-20)
    if width <= 1e4:
        check_influence(estimating, logits, field)


def test_the_exponential_is_accurate_to_float32(estimating: Kernel) -> None:
    # Zero rows are at distance 1 exactly: the influence of a width is exp(-v^2) with nothing else rounded.
    widths = np.sqrt(np.linspace(0.0, 49.0, 4001)).astype(np.float32)
    exact = np.exp(-np.square(widths).astype(np.float64))
    logits = np.array([[0.0, 0.0]])
    values = [
        estimating.influence(
            logits,
            placed(estimating, AnchorField(np.ones((1, 2)), np.ones(1), width[None], 2)),
        )[0]
        for width in widths[::10]
    ]
    # one unit in the last place of the argument 49 is 4e-6 of the result
    np.testing.assert_allclose(values, exact[::10], rtol=6e-6)
    np.testing.assert_allclose(values[:100], exact[:1000:10], rtol=1e-6)


@POWERS
def test_scaling_logits_changes_nothing_and_shifting_them_does(estimating: Kernel, power: int) -> None:
    logits, field = make_logits(50, 5), placed(estimating, make_field(60, 5, power))
    factors = np.random.default_rng(3).uniform(0.01, 100.0, size=(50, 1)).astype(np.float32)
    total = estimating.influence(logits, field)
    np.testing.assert_allclose(estimating.influence(logits * factors, field), total, rtol=0, atol=1e-4)
    np.testing.assert_allclose(estimating.influence(logits * np.float32(1e-30), field), total, rtol=0, atol=1e-4)
    np.testing.assert_allclose(estimating.influence(logits * np.float32(1e30), field), total, rtol=0, atol=1e-4)
    assert np.abs(estimating.influence(logits + 1.0, field) - total).max() > 0.1


@POWERS
def test_order_of_rows_anchors_and_classes(estimating: Kernel, power: int) -> None:
    rng = np.random.default_rng(4)
    logits, field = make_logits(200, 7), make_field(333, 7, power)
    rows, anchors, classes = rng.permutation(200), rng.permutation(333), rng.permutation(7)
    total = estimating.influence(logits, placed(estimating, field))
    shuffled = AnchorField(field.anchors[anchors][:, classes], field.peaks[anchors], field.widths[anchors], field.power)
    again = estimating.influence(logits[rows][:, classes], placed(estimating, shuffled))
    np.testing.assert_allclose(again, total[rows], rtol=0, atol=1e-4)


def test_inputs_stay_as_they_are(kernel: Kernel) -> None:
    logits, field = make_logits(100, 4), make_field(50, 4)
    copies = [array.copy() for array in (logits, field.anchors, field.peaks, field.widths)]
    on_device = placed(kernel, field)
    kernel.influence(logits, on_device)
    kernel.strongest(logits, on_device)
    batch_gradients(kernel, logits, np.ones(100), field)
    for array, copy in zip((logits, field.anchors, field.peaks, field.widths), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(kernel.to_numpy(on_device.anchors), field.anchors)


def test_several_threads_at_once(kernel: Kernel) -> None:
    fields = [make_field(700, 6, power, seed) for seed, power in enumerate((2, 1, 2, 1))]
    logits = make_logits(500, 6)
    correct = np.ones(500)
    alone = [kernel.influence(logits, placed(kernel, field)) for field in fields]
    slopes = [batch_gradients(kernel, logits, correct, field)[1]["peaks"] for field in fields]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(20):
            total = kernel.influence(logits, placed(kernel, fields[index]))
            slope = batch_gradients(kernel, logits, correct, fields[index])[1]["peaks"]
            if not np.allclose(total, alone[index], rtol=1e-9) or not np.allclose(
                slope, slopes[index], rtol=1e-3, atol=1e-7
            ):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_blas_threads_are_as_before() -> None:
    from threadpoolctl import ThreadpoolController

    blas = ThreadpoolController().select(user_api="blas")
    before = [pool["num_threads"] for pool in blas.info()]
    kernel = get_kernel("numba")
    kernel.influence(make_logits(3000, 4), make_field(500, 4))
    assert [pool["num_threads"] for pool in blas.info()] == before


FORK = """
import os, numpy as np
from leadline.estimators.alsa.kernels import AnchorField, get_kernel
rng = np.random.default_rng(0)
field = AnchorField(*(rng.normal(size=s).astype("f4") for s in ((500, 4), 500, 500)), power=2)
logits = rng.normal(size=(1000, 4))
kernel = get_kernel("numba")
first = kernel.influence(logits, field)
child = os.fork()
if child == 0:
    os._exit(0 if np.allclose(kernel.influence(logits, field), first) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_computes_too() -> None:
    import subprocess

    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def imported_by(path: Path) -> set[str]:
    """Return the packages that a file imports, the dots of a relative import included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            found.add("." * node.level or str(node.module).partition(".")[0])
    return found


def test_all_that_compiled_loops_are_made_of_stands_in_their_file() -> None:
    """Numba keeps compiled code until the file it comes from changes: a part from elsewhere could change unnoticed."""
    package = Path(leadline.__file__).parent
    compiled = sorted(path for path in package.rglob("*.py") if "njit" in path.read_text())
    names = [path.relative_to(package).as_posix() for path in compiled]
    assert names == [
        "estimators/alsa/kernels/loops.py", "rowwise/clusters.py", "rowwise/loops.py", "rowwise/overlaps.py",
    ]  # fmt: skip
    for path in compiled:
        assert imported_by(path) <= {"__future__", "typing", "numpy", "llvmlite", "numba"}


def test_torch_is_asked_for_by_name_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "leadline.estimators.alsa.kernels.torch", raising=False)
    with pytest.raises(InputError, match=r"pip install 'leadline\[torch\]'") as caught:
        get_kernel("torch")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_kernel("jax"), "backend must be one of numba, torch; got 'jax'"),
        (lambda: get_kernel("numba", "cuda"), "backend 'numba' runs on the CPU"),
        (lambda: get_kernel("torch", "abacus"), "device must be one that this installation"),
    ],
)
def test_wrong_names_are_refused(call: Callable[[], Kernel], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
