"""The accumulator: the estimate of all rows, however they came."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import leadline
from leadline import Accumulator, InputError, Outputs

Maker = Callable[..., Outputs]
ONE_PASS = [name for name, method in leadline.METHODS.items() if method.cls.passes == "one"]


def fitted(method: str, make_outputs: Maker) -> leadline.Estimator:
    source = make_outputs(400, seed=0)
    return leadline.make(method).fit(source.logits, source.labels)


@pytest.mark.parametrize("method", ONE_PASS)
def test_updates_and_merges_are_the_estimate_of_all_rows(method: str, make_outputs: Maker) -> None:
    model, logits = fitted(method, make_outputs), make_outputs(1_000, seed=1).logits
    first, second = Accumulator(model), Accumulator(model)
    for block in np.array_split(logits[:600], 7):
        first.update(block)
    for row in logits[600:610]:
        second.update(row)
    second.update(logits[610:])
    second.update(logits[:0])
    first.merge(second)
    found, expected = first.estimate(confidence_level=0.8), model.estimate(logits, confidence_level=0.8)
    assert first.exact
    assert (first.n_samples, second.n_samples, found.n_samples) == (1_000, 400, 1_000)
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=1e-12)
    np.testing.assert_allclose(found.interval, expected.interval, atol=1e-12)
    assert [entry.count for entry in found.by_class] == [entry.count for entry in expected.by_class]


@pytest.mark.parametrize("method", sorted({*leadline.METHODS} - {*ONE_PASS}))
def test_several_passes_rest_on_a_sample(method: str, make_outputs: Maker) -> None:
    model, logits = fitted(method, make_outputs), make_outputs(6_000, seed=1).logits
    small = Accumulator(model, sample_size=1_000)
    for block in np.array_split(logits, 5):
        small.update(block)
    found, expected = small.estimate(), model.estimate(logits)
    assert not small.exact
    # What auto says beyond confidence comes from the sample, confidence from all rows; transport knows the sample only.
    of_all_rows = model.passes == "two"
    assert (small.n_samples, found.n_samples) == (6_000, 6_000 if of_all_rows else 1_000)
    # Three standard errors of a share on 1,000 rows; what is left of it beside confidence is a fifth.
    atol = 3 * 0.5 / np.sqrt(1_000) * (0.2 if of_all_rows else 1.0)
    np.testing.assert_allclose(found.accuracy, expected.accuracy, atol=atol)
    assert of_all_rows or found.interval[0] < expected.interval[0]
    whole = Accumulator(model)
    whole.update(logits)
    np.testing.assert_allclose(whole.estimate().accuracy, expected.accuracy, atol=1e-9)
    backwards = Accumulator(model, sample_size=1_000)
    backwards.update(logits[::-1])
    np.testing.assert_allclose(backwards.estimate().accuracy, found.accuracy, rtol=1e-12)


def test_reset_and_errors(make_outputs: Maker) -> None:
    model, logits = fitted("ac", make_outputs), make_outputs(50, seed=1).logits
    running = Accumulator(model)
    running.update(logits)
    before = running.estimate().accuracy
    bad = logits.copy()
    bad[3, 1] = np.nan
    with pytest.raises(InputError, match="must be finite; got nan at row 3"):
        running.update(bad)
    with pytest.raises(InputError, match="must have 5 classes, as in fit; got 4"):
        running.update(logits[:, :4])
    assert running.estimate().accuracy == before
    running.reset()
    with pytest.raises(InputError, match="nothing to estimate yet"):
        running.estimate()
    with pytest.raises(InputError, match="the same model"):
        running.merge(Accumulator(fitted("doc", make_outputs)))
    with pytest.raises(InputError, match="sample_size must be at least 1"):
        Accumulator(model, sample_size=0)
    with pytest.raises(InputError, match="not fitted"):
        Accumulator(leadline.make("ac"))
    with pytest.raises(InputError, match="must be a fitted estimator; got str"):
        Accumulator("ac.leadline")  # type: ignore[arg-type]


def test_equal_models_merge(make_outputs: Maker) -> None:
    logits = make_outputs(50, seed=1).logits
    one, other = (Accumulator(fitted("alsa-g", make_outputs)) for _ in range(2))
    one.update(logits)
    other.update(logits)
    one.merge(other)
    assert one.n_samples == 100
