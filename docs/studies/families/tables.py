"""What the families of tables share: four models, their logits, and the ways in which columns go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import write
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Sample = tuple[pd.DataFrame, NDArray[np.int64]]


def models() -> dict[str, Any]:
    """Return the classifiers, none of them fitted."""
    return {
        "lr": LogisticRegression(max_iter=500),
        "mlp": MLPClassifier((128,), max_iter=40, early_stopping=True, random_state=0),
        "rf": RandomForestClassifier(150, random_state=0),
        "hgb": HistGradientBoostingClassifier(max_iter=80, random_state=0),
    }


def encoder() -> Any:
    """Return what makes numbers of a table: medians for gaps, one column for each word of at least 1 % of the rows."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    words = OneHotEncoder(min_frequency=0.01, handle_unknown="infrequent_if_exist", sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (words, make_column_selector(dtype_exclude="number"))
    )


def logits_of(model: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores by class before the softmax; of a forest, the logarithms of its shares of votes, at least 0.001."""
    if isinstance(model, RandomForestClassifier):
        return np.log(model.predict_proba(rows).clip(min=0.001))
    if isinstance(model, MLPClassifier):
        scores = rows
        for weights, shifts in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
            scores = (scores @ weights + shifts).clip(min=0)
        scores = scores @ model.coefs_[-1] + model.intercepts_[-1]
    else:
        scores = model.decision_function(rows)
    if len(model.classes_) == 2:
        half = np.ravel(scores) / 2
        return np.stack([-half, half], axis=1)
    return scores


def write_models(out: Path, family: str, train: Sample, samples: dict[str, Sample]) -> None:
    """Fit every model and write its logits of all samples, whose names are "source" and "target_x"."""
    encode = encoder().fit(train[0])
    rows = {name: encode.transform(frame) for name, (frame, _) in samples.items()}
    for model_name, model in models().items():
        model.fit(encode.transform(train[0]), train[1])
        for name, (_, labels) in samples.items():
            write(out, family, model_name, name, logits_of(model, rows[name]), labels)


def label_shifted(sample: Sample, weights: NDArray[np.float64], size: int, rng: np.random.Generator) -> Sample:
    """Return ``size`` different rows of a sample, drawn one after the other with the weights of their classes."""
    chances = weights[sample[1]]
    return taken(sample, rng.choice(len(chances), size=size, replace=False, p=chances / chances.sum()))


def parts(sizes: tuple[int, ...], total: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Return disjoint random sets of rows of these sizes, and the rest."""
    return np.split(rng.permutation(total), np.cumsum(sizes))


def some(sample: Sample, size: int, rng: np.random.Generator) -> Sample:
    """Return ``size`` random rows of a sample."""
    return taken(sample, rng.permutation(len(sample[1]))[:size])


def taken(sample: Sample, rows: NDArray[Any]) -> Sample:
    """Return the rows with these numbers, or for which a mask is true."""
    return sample[0][rows] if rows.dtype == bool else sample[0].iloc[rows], sample[1][rows]


def noisy(sample: Sample, share: float, rng: np.random.Generator) -> Sample:
    """Add noise to every column of numbers, with this share of its deviation."""
    numbers = sample[0].select_dtypes("number")
    noise = rng.normal(size=numbers.shape) * share * numbers.std().to_numpy()
    return sample[0].assign(**(numbers + noise)), sample[1]


def holed(sample: Sample, chance: float, rng: np.random.Generator) -> Sample:
    """Lose each value with this chance."""
    return sample[0].mask(rng.random(sample[0].shape) < chance), sample[1]


def stuck(sample: Sample, column: str) -> Sample:
    """Give every row the mean of a column."""
    return sample[0].assign(**{column: sample[0][column].mean()}), sample[1]


def scaled(sample: Sample, columns: list[str], factor: float) -> Sample:
    """Measure some columns in another unit."""
    return sample[0].assign(**(sample[0][columns] * factor)), sample[1]
