"""Options of estimators, their names, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from leadline import METHODS, Estimator, InputError, make
from leadline.data.outputs import FloatArray, IntArray
from leadline.estimators.base import Reduced, State

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def data() -> Data:
    """Return logits and labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=400)
    return 2 * np.eye(5)[labels] + rng.normal(size=(400, 5)), labels


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m, z, y: m.fit(z, y[:-1]),
            r"labels must have shape \(400,\), one for each row of logits; got \(399,\)\.",
        ),
        (
            lambda m, z, y: m.fit(z, y + 1),
            r"labels must be from 0 to 4, as the logits have 5 classes; got 5 at row \d+\.",
        ),
        (lambda m, z, y: m.fit(z, y * 1.0), r"labels must be integers from 0 to 4, .*; got dtype float64\."),
        (lambda m, z, y: m.fit(z[:, :1], y), r"logits must have at least 2 classes \(columns\); got 1\."),
        (lambda m, z, y: m.fit(z * 0, y), r"logits must tell the classes apart; all 400 x 5 values are 0\.0\."),
        (lambda m, z, y: m.estimate(z), r"this \w+ is not fitted yet; call fit\(logits, labels\) first\."),
        (lambda m, z, y: m.fit(z, y).estimate(z[:, :4]), r"logits must have 5 classes, as in fit; got 4\."),
        (lambda m, z, y: m.fit(z, y).estimate(z[0]), r"logits must have shape \(samples, classes\); got 1 dimension"),
        (lambda m, z, y: m.fit(z, y).estimate(z[:0]), r"logits must have at least one row; got none\."),
        (
            lambda m, z, y: m.fit(z, y).estimate(z / [[1, 1, 1, 1, np.nan]]),
            r"must be finite; got nan at row 0, class 4\.",
        ),
        (
            lambda m, z, y: m.fit(z, y).estimate(z, confidence_level=90),
            r"confidence_level must be between 0 and 1; got 90\.",
        ),
    ],
)
def test_messages(call: Callable[..., Any], message: str, data: Data) -> None:
    with pytest.raises(InputError, match=message):
        call(make("ac"), *data)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("im", {"n_bins": 0}, r"n_bins must be from 1 to 1000000; got 0\."),
        ("im", {"weights": "tree"}, r"weights must be one of bins, renormalised, kliep; got 'tree'\."),
        ("atc-mc", {"score": "margin"}, r"score must be one of confidence, entropy; got 'margin'\."),
        ("cot", {"solver": "fast"}, r"solver must be one of auto, exact; got 'fast'\."),
    ],
)
def test_wrong_options_are_refused_by_fit_which_then_leaves_nothing(
    method: str, params: dict[str, Any], message: str, data: Data
) -> None:
    model = make(method).fit(*data).set_params(**params)
    with pytest.raises(InputError, match=message):
        model.fit(*data)
    assert not model.is_fitted
    with pytest.raises(InputError, match="not fitted yet"):
        model.estimate(data[0])


def test_unknown_names() -> None:
    with pytest.raises(InputError, match=r"method must be one of .*alsa-g, .*, cott; got 'oracle'\."):
        make("oracle")
    with pytest.raises(InputError, match=r"AverageConfidence has no option 'bins'; it has temperature_scaling\."):
        make("ac", bins=3)
    with pytest.raises(InputError, match=r"AverageConfidence has no option 'bins'; it has temperature_scaling\."):
        make("ac").set_params(bins=3)


def test_a_wrong_name_changes_no_option() -> None:
    model = make("ac")
    with pytest.raises(InputError, match="no option 'bins'"):
        model.set_params(temperature_scaling=False, bins=3)
    assert model.get_params() == {"temperature_scaling": True}


class Half(Estimator):
    """Half of the predictions are right, without an ``__init__``."""

    method = "half"

    def _fit(self, logits: FloatArray, labels: IntArray) -> None:
        """Learn nothing."""

    def reduce(self, logits: FloatArray, state: State) -> Reduced:
        return Reduced.from_values(logits, np.full(len(logits), 0.5))


def test_a_class_without_a_constructor_has_no_options(data: Data) -> None:
    model = Half()
    assert (model.get_params(), repr(model)) == ({}, "Half()")
    assert model.set_params() is model
    assert model.fit(*data).estimate(data[0]).accuracy == 0.5
    without: list[Estimator] = [Half(), make("auto")]  # the constructor of auto is there, and takes nothing
    for one in without:
        with pytest.raises(InputError, match=rf"^{type(one).__name__} has no option 'bins'; it has none\.$"):
            one.set_params(bins=3)


@pytest.mark.parametrize("method", METHODS)
def test_names_and_representations_lead_back(method: str) -> None:
    model = make(method)
    assert model.method == method
    again: Estimator = eval(repr(model), {type(model).__name__: type(model)})
    assert (type(again), again.get_params()) == (type(model), model.get_params())


@pytest.mark.parametrize("method", METHODS)
def test_scikit_learn_clones_every_method(method: str) -> None:
    model = make(method)
    copy = clone(model)
    assert copy is not model
    assert (type(copy), copy.get_params()) == (type(model), model.get_params())
