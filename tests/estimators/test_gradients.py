"""Training's share of the kernels: gradients against autograd, finite differences and themselves, and steps of Adam."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from anchor_fields import POWERS, Array, autograd, batch_gradients, make_field, make_logits, placed, single_influences
from leadline.estimators.alsa.kernels import AnchorField, Kernel
from leadline.estimators.alsa.kernels.base import unit_rows


@POWERS
@pytest.mark.parametrize(
    ("n", "k", "c"),
    [
        (1, 1, 2), (1, 40, 3), (64, 1, 10), (33, 70, 5), (256, 900, 10),
        (20_000, 60, 3), (20_000, 60, 30),  # more rows than a block of training
        (257, 700, 20), (257, 700, 21),  # by one compiled loop, and by BLAS
        (3, 9000, 4), (50, 40, 300),
    ],
)  # fmt: skip
def test_gradients_agree_with_autograd(kernel: Kernel, n: int, k: int, c: int, power: int) -> None:
    logits, field = make_logits(n, c), make_field(k, c, power)
    correct = (np.random.default_rng(5).random(n) < 0.7).astype(np.float64)
    loss, gradients = batch_gradients(kernel, logits, correct, field)
    expected_loss, expected = autograd(logits, correct, field)
    assert loss == pytest.approx(expected_loss, rel=1e-4, abs=1e-6)
    for name, values in expected.items():
        assert gradients[name].shape == values.shape
        np.testing.assert_allclose(
            gradients[name], values, rtol=1e-3, atol=1e-4 * np.abs(values).max() + 1e-9, err_msg=name
        )


@pytest.mark.parametrize("c", [10, 30])
def test_gradients_are_the_same_each_time(kernel: Kernel, c: int) -> None:
    """Whichever thread took which part."""
    logits, field = make_logits(256, c), make_field(1000, c, 2)
    correct = (np.random.default_rng(5).random(256) < 0.7).astype(np.float64)
    first = batch_gradients(kernel, logits, correct, field)
    for _ in range(20):
        again = batch_gradients(kernel, logits, correct, field)
        assert again[0] == first[0]
        for name, values in first[1].items():
            np.testing.assert_array_equal(again[1][name], values)


@POWERS
@pytest.mark.parametrize("n", [1, 300])
def test_a_batch_tells_how_likely_its_rows_are_right(kernel: Kernel, n: int, power: int) -> None:
    logits, field = make_logits(n, 4), make_field(5000, 4, power)
    units, correct = kernel.asarray(unit_rows(logits)), kernel.asarray(np.ones(n))
    expected = expit(single_influences(logits, field).sum(axis=1)).mean()
    assert kernel.gradients(units, correct, placed(kernel, field)).accuracy == pytest.approx(expected, abs=1e-4)


@POWERS
def test_gradients_agree_with_finite_differences(kernel: Kernel, power: int) -> None:
    logits, field = make_logits(40, 4), make_field(6, 4, power, width=1.0)
    correct = (np.random.default_rng(6).random(40) < 0.5).astype(np.float64)

    def loss(**changed: Array) -> float:
        parts = {"anchors": field.anchors, "peaks": field.peaks, "widths": field.widths} | changed
        total = single_influences(logits, AnchorField(**parts, power=power)).sum(axis=1)
        return float(np.mean(np.logaddexp(0.0, total) - correct * total))

    _, gradients = batch_gradients(kernel, logits, correct, field)
    for name, values in gradients.items():
        for index in np.ndindex(values.shape):
            step = 1e-5
            up, down = (getattr(field, name).astype(np.float64) for _ in range(2))
            up[index] += step
            down[index] -= step
            slope = (loss(**{name: up}) - loss(**{name: down})) / (2 * step)
            assert values[index] == pytest.approx(slope, rel=1e-3, abs=1e-5), (name, index)


def test_gradients_of_saturated_batches_are_finite(kernel: Kernel) -> None:
    field = make_field(50, 3)
    field.peaks[:] = np.where(np.arange(50) % 2, 1e4, -1e4)
    loss, gradients = batch_gradients(kernel, make_logits(80, 3), np.zeros(80), field)
    assert np.isfinite(loss)
    assert all(np.isfinite(values).all() for values in gradients.values())


def test_gradients_of_zero_vectors_are_finite(kernel: Kernel) -> None:
    logits, field = make_logits(10, 3), make_field(8, 3)
    logits[0] = 0.0
    field.anchors[0] = 0.0
    _, gradients = batch_gradients(kernel, logits, np.ones(10), field)
    assert all(np.isfinite(values).all() for values in gradients.values())


@pytest.mark.parametrize("size", [7, 200_000])  # one thread, and several
def test_descent_is_adam(kernel: Kernel, size: int) -> None:
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=size), rng.normal(size=(5, size))
    parameter = torch.nn.Parameter(torch.tensor(start))
    optimiser = torch.optim.Adam([parameter], lr=0.02)
    value, mean, square = (kernel.asarray(array) for array in (start, np.zeros(size), np.zeros(size)))
    for step, gradient in enumerate(gradients, start=1):
        parameter.grad = torch.tensor(gradient)
        optimiser.step()
        rates = (0.02 / (1 - 0.9**step), 1 / (1 - 0.999**step))
        kernel.descend(value, kernel.asarray(gradient), mean, square, rates)
    np.testing.assert_allclose(kernel.to_numpy(value), parameter.detach().numpy(), atol=2e-6)
