"""Outputs of real scikit-learn and LightGBM classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import leadline as ll

Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def named(bunch: Any, seed: int = 0) -> Split:
    """Return rows to train on and rows to judge by, with the names of the classes as labels."""
    names = np.array([str(name) for name in bunch.target_names])
    split = train_test_split(bunch.data, names[bunch.target], test_size=0.5, random_state=seed)
    return split[0], split[1], split[2], split[3]


@pytest.fixture(scope="module")
def wine() -> Split:
    return named(load_wine())


@pytest.fixture(scope="module")
def cancer() -> Split:
    return named(load_breast_cancer())


def predictions(outputs: ll.Outputs) -> Any:
    assert outputs.classes is not None
    return np.array(outputs.classes)[outputs.logits.argmax(axis=1)]


CLASSIFIERS = [
    HistGradientBoostingClassifier(max_iter=20),
    RandomForestClassifier(n_estimators=20, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), LinearSVC()),
    make_pipeline(StandardScaler(), RidgeClassifier()),
    make_pipeline(StandardScaler(), SVC(break_ties=True)),
]


@pytest.mark.parametrize("table", ["wine", "cancer"])
@pytest.mark.parametrize(
    "classifier", CLASSIFIERS, ids=lambda made: type(getattr(made, "steps", [[0, made]])[-1][1]).__name__
)
def test_predictions_and_accuracy_are_those_of_the_classifier(
    table: str, classifier: Any, request: pytest.FixtureRequest
) -> None:
    X, X_new, y, y_new = request.getfixturevalue(table)  # noqa: N806
    classifier.fit(X, y)
    outputs = ll.from_sklearn(classifier, X_new, y_new)
    assert outputs.classes == tuple(classifier.classes_)
    np.testing.assert_array_equal(predictions(outputs), classifier.predict(X_new))
    assert outputs.accuracy == pytest.approx(classifier.score(X_new, y_new))
    assert ll.from_sklearn(classifier, X_new).labels is None


def test_lightgbm(cancer: Split) -> None:
    from lightgbm import LGBMClassifier

    X, X_new, y, y_new = cancer  # noqa: N806
    classifier = LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(X, y)
    outputs = ll.from_sklearn(classifier, X_new, y_new)
    np.testing.assert_array_equal(predictions(outputs), classifier.predict(X_new))
    assert outputs.accuracy == pytest.approx(np.mean(classifier.predict(X_new) == y_new))
    with pytest.raises(ll.InputError, match="LGBMClassifier has no classes_"):
        ll.from_sklearn(LGBMClassifier(), X_new)


@pytest.mark.parametrize("seed", range(3))
def test_from_a_gradient_boosting_model_to_an_estimate(seed: int) -> None:
    X, rest, y, y_rest = named(load_breast_cancer(), seed)  # noqa: N806
    classifier = HistGradientBoostingClassifier(max_iter=50).fit(X, y)
    validation, new, y_validation, y_new = train_test_split(rest, y_rest, test_size=0.5, random_state=seed)
    estimate = (
        ll.Auto().fit(ll.from_sklearn(classifier, validation, y_validation)).estimate(ll.from_sklearn(classifier, new))
    )
    low, high = estimate.interval
    assert low <= float(np.mean(classifier.predict(new) == y_new)) <= high
    assert high - low < 0.3
    assert [entry.label for entry in estimate.by_class] == ["benign", "malignant"]


def test_probabilities_come_back_from_softmax(wine: Split) -> None:
    X, X_new, y, _ = wine  # noqa: N806
    classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    shares = np.exp(ll.from_sklearn(classifier, X_new).logits)
    np.testing.assert_allclose(
        shares / shares.sum(axis=1, keepdims=True), classifier.predict_proba(X_new), rtol=1e-9, atol=1e-5
    )


def test_the_margin_of_two_classes_becomes_the_difference_of_logits(cancer: Split) -> None:
    X, X_new, y, _ = cancer  # noqa: N806
    classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    logits = ll.from_sklearn(classifier, X_new, use="decision").logits
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], classifier.decision_function(X_new), rtol=1e-12)
    np.testing.assert_allclose(logits.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("values", [[3, 5], [False, True], [1.0, 2.0]], ids=str)
def test_labels_go_through_the_classes_of_the_model(values: list[Any], cancer: Split) -> None:
    X, X_new, y, y_new = cancer  # noqa: N806
    meaning = np.array(values)
    classifier = LogisticRegression(max_iter=10_000).fit(X[:, :2], meaning[(y == "benign").astype(int)])
    truth = meaning[(y_new == "benign").astype(int)]
    outputs = ll.from_sklearn(classifier, X_new[:, :2], truth)
    assert outputs.classes == tuple(str(value) for value in values)
    assert outputs.accuracy == pytest.approx(classifier.score(X_new[:, :2], truth))


def test_frames_series_and_metadata(cancer: Split) -> None:
    import pandas as pd

    X, X_new, y, y_new = cancer  # noqa: N806
    names = [f"x{i}" for i in range(X.shape[1])]
    classifier = HistGradientBoostingClassifier(max_iter=5).fit(pd.DataFrame(X, columns=names), pd.Series(y))
    frame, truth = pd.DataFrame(X_new, columns=names), pd.Series(y_new, dtype="category")
    outputs = ll.from_sklearn(classifier, frame, truth, {"size": frame["x0"]})
    assert outputs.accuracy == pytest.approx(classifier.score(frame, y_new))
    np.testing.assert_array_equal(outputs.metadata["size"], X_new[:, 0])
    with pytest.raises(ll.InputError, match="X must be what the HistGradientBoostingClassifier was fitted on"):
        ll.from_sklearn(classifier, frame[names[:3]])


def refuse(match: str, *arguments: Any, **options: Any) -> None:
    with pytest.raises(ll.InputError, match=match) as caught:
        ll.from_sklearn(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_what_is_no_fitted_classifier_is_refused(cancer: Split) -> None:
    X, X_new, y, _ = cancer  # noqa: N806
    refuse("LinearRegression has neither", LinearRegression().fit(X, y == "benign"), X_new)
    refuse("LogisticRegression has no classes_. Call its fit", LogisticRegression(), X_new)
    refuse("Pipeline has no classes_", make_pipeline(StandardScaler(), LogisticRegression()), X_new)
    refuse("IsolationForest has no classes_", IsolationForest(n_estimators=5).fit(X), X_new)
    refuse("use must be 'probabilities' or 'decision'; got 'margins'", LogisticRegression(), X_new, use="margins")
    refuse("LinearSVC has no predict_proba", LinearSVC().fit(X, y), X_new, use="probabilities")


def test_several_outputs_are_refused(cancer: Split) -> None:
    X, X_new, y, _ = cancer  # noqa: N806
    two = np.stack([y == "benign", X[:, 0] > X[:, 0].mean()], axis=1).astype(int)
    forest = RandomForestClassifier(n_estimators=5)
    refuse("the RandomForestClassifier predicts several", forest.fit(X, two), X_new)
    refuse("the MultiOutputClassifier predicts several", MultiOutputClassifier(forest).fit(X, two), X_new)
    refuse("the OneVsRestClassifier predicts several", OneVsRestClassifier(forest).fit(X, two), X_new)


def test_wrong_rows_and_labels_are_refused(cancer: Split) -> None:
    X, X_new, y, y_new = cancer  # noqa: N806
    classifier = LogisticRegression(max_iter=10_000).fit(X[:, :2], y)
    refuse("X must be what the LogisticRegression was fitted on; it says: X has 30 features", classifier, X_new)
    refuse("X must be what .* Expected 2D array", classifier, X_new[0, :2])
    refuse("y must be among the classes of the model, 'benign', 'malignant'; got 'neither' at row 0",
           classifier, X_new[:, :2], np.array(["neither", *y_new[1:]]))  # fmt: skip
    refuse("got None at row 0", classifier, X_new[:, :2], [None, *y_new[1:]])
    refuse("labels must have shape", classifier, X_new[:, :2], y_new[1:])
    refuse("y must have one label for each row", classifier, X_new[:, :2], np.stack([y_new, y_new], axis=1))


@pytest.mark.parametrize("use", ["probabilities", "decision"])
def test_a_threshold_of_its_own_is_found(cancer: Split, use: Any) -> None:
    X, X_new, y, y_new = cancer  # noqa: N806
    base = make_pipeline(StandardScaler(), LogisticRegression())
    fixed = FixedThresholdClassifier(base, threshold=0.9, pos_label="malignant", response_method="predict_proba")
    tuned = TunedThresholdClassifierCV(base, scoring=make_scorer(recall_score, pos_label="malignant"), cv=3)
    for classifier in (fixed.fit(X, y), tuned.fit(X, y)):
        source, target = (ll.from_sklearn(classifier, *rows, use=use) for rows in ((X, y), (X_new, y_new)))
        assert target.accuracy == pytest.approx(classifier.score(X_new, y_new), abs=0.01)
        model = ll.make("ac").fit(source)
        assert model.source_accuracy_ == pytest.approx(classifier.score(X, y), abs=0.01)
        assert abs(model.estimate(target).accuracy - classifier.score(X_new, y_new)) < 0.06
    assert ll.from_sklearn(fixed, X, y).threshold == pytest.approx(0.9, abs=0.05)


def test_outputs_that_disagree_with_predict_are_refused(cancer: Split) -> None:
    X, X_new, y, _ = cancer  # noqa: N806
    two_ways = LogisticRegression(max_iter=10_000).fit(X, y)
    two_ways.predict = lambda rows: np.where(rows[:, 0] > np.median(rows[:, 0]), *two_ways.classes_)
    refuse("predict_proba of the LogisticRegression disagrees with predict in", two_ways, X_new)
    digits = load_digits()
    pairs = SVC(decision_function_shape="ovo").fit(digits.data[:500], digits.target[:500])
    refuse("gives shape .*decision_function_shape='ovr'", pairs, digits.data[500:])
