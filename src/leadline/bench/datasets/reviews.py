"""Reviews: Amazon-WILDS for DistilBERT, and 8,000 reviews of Blitzer et al. across domains and time.

Official layout of Amazon-WILDS, below the data folder::

    amazon_v2.1/reviews.csv        (columns reviewText, overall and others, quoted; or amazon_v2.0/...)
    amazon_v2.1/splits/user.csv    (column split: -1 unused, 0 train, 1 val, 2 id_val, 3 test, 4 id_test)
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.bench.datasets.suite import Suite
from leadline.bench.download import Download
from leadline.bench.inputs import Features, Options, Rows, Split, Task, Texts, locate, require
from leadline.bench.optional import need
from leadline.errors import InputError

WILDS_REVIEWS, WILDS_SPLITS = (
    "|".join(f"{folder}/{file}" for folder in ("amazon_v2.1", "amazon_v2.0"))
    for file in ("reviews.csv", "splits/user.csv")
)
REVIEWS, EMBEDDINGS = (f"raw/amazon_reviews/{file}" for file in ("reviews.parquet", "minilm_l6_v2_128tok.npz"))
DOMAINS = ("books", "dvd", "electronics", "kitchen")
STARS = (1, 2, 4, 5)
KINDS = ("tfidf-lr", "tfidf-mlp", "minilm-lr", "minilm-mlp")
DOMAIN_MODELS = tuple(f"{domain}-{kind}" for domain in DOMAINS for kind in KINDS)
_LAST_SOURCE_YEAR = 2005


def load_amazon_wilds(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return Amazon-WILDS: train, id_val as source, val (Subpop1) and test (Subpop2) as targets."""
    del model, seed
    reviews = _read_columns(locate(data, WILDS_REVIEWS), ["reviewText", "overall"])
    splits = _read_columns(locate(data, WILDS_SPLITS), ["split"])["split"].to_numpy()
    if len(splits) != len(reviews):
        raise InputError(
            f"splits/user.csv must have a row for each of the {len(reviews)} reviews; got {len(splits)}. "
            "Unpack the archive again."
        )

    def part(number: int) -> Split:
        rows = np.flatnonzero(splits == number)
        chosen = reviews.take(rows)
        texts = tuple(text or "" for text in chosen["reviewText"].to_pylist())
        return options.limited(Split(Texts(texts), chosen["overall"].to_numpy().astype(np.int64) - 1))

    return Task(part(2), {"subpop1": partial(part, 1), "subpop2": partial(part, 3)}, part(0))


def _read_columns(path: Path, names: list[str]) -> Any:
    """Return some columns of a table whose texts may have several lines."""
    import pyarrow as pa
    from pyarrow import csv

    multiline, wanted = csv.ParseOptions(newlines_in_values=True), csv.ConvertOptions(include_columns=names)
    try:
        return csv.read_csv(require(path), parse_options=multiline, convert_options=wanted)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} must be a table with {', '.join(names)}; it is not ({reason}). Unpack the archive again."
        ) from error


def load_domains(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return one domain of reviews to train on and estimate from, and the other three as targets."""
    reviews = _Reviews(data)
    domain, features = model.split("-", maxsplit=1)
    inside = np.flatnonzero(reviews.domains == domain)
    targets = {name: np.flatnonzero(reviews.domains == name) for name in DOMAINS if name != domain}
    return reviews.task(inside, targets, features, options, seed)


def load_time(data: Path, options: Options, model: str, seed: int) -> Task:
    """Return the reviews until 2005 to train on and estimate from, and the quarters of 2006 as targets."""
    reviews = _Reviews(data)
    targets = {
        f"2006-q{quarter}": np.flatnonzero(
            (reviews.years == _LAST_SOURCE_YEAR + 1) & ((reviews.months + 2) // 3 == quarter)
        )
        for quarter in (1, 2, 3, 4)
    }
    inside = np.flatnonzero((reviews.years > 0) & (reviews.years <= _LAST_SOURCE_YEAR))
    return reviews.task(inside, targets, model, options, seed)


class _Reviews:
    """The reviews at hand: texts, stars, domains, dates and sentence embeddings."""

    def __init__(self, data: Path) -> None:
        import pyarrow.parquet as pq

        table = pq.read_table(data / REVIEWS, columns=["domain", "rating", "text", "title", "date"])
        self.domains = np.array(table["domain"].to_pylist())
        self.labels = np.searchsorted(STARS, table["rating"].to_numpy())
        titles, texts = table["title"].to_pylist(), table["text"].to_pylist()
        self.texts = [f"{title or ''} {text or ''}" for title, text in zip(titles, texts, strict=True)]
        dates = [_parse_date(text) for text in table["date"].to_pylist()]
        self.years = np.array([date.year if date else 0 for date in dates])
        self.months = np.array([date.month if date else 0 for date in dates])
        with np.load(data / EMBEDDINGS, allow_pickle=False) as file:
            self.embeddings: NDArray[np.float32] = file["emb"].astype(np.float32)

    def task(self, inside: Rows, targets: dict[str, Rows], model: str, options: Options, seed: int) -> Task:
        """Divide the source 3 : 1 : 1 into training, labelled source and the target ``same``."""
        order = np.random.default_rng(seed).permutation(inside)
        first, second = int(0.6 * len(order)), int(0.8 * len(order))
        train = order[:first]
        features = self._features(model, train)

        def part(rows: Rows) -> Split:
            return Split(Features(features[rows]), self.labels[rows])

        everything = {"same": order[second:]} | targets
        readers: dict[str, Callable[[], Split]] = {
            name: partial(lambda rows: options.limited(part(rows)), rows) for name, rows in everything.items()
        }
        return Task(part(order[first:second]), readers, part(train))

    def _features(self, model: str, train: Rows) -> Any:
        """Return the features of all reviews; word weights are learned from the training reviews only."""
        if model.startswith("minilm"):
            return self.embeddings
        vectors = need("sklearn.feature_extraction.text", "the word weights of reviews")
        words = vectors.TfidfVectorizer(min_df=2, ngram_range=(1, 2), max_features=20_000, sublinear_tf=True)
        words.fit([self.texts[row] for row in train])
        return words.transform(self.texts).tocsr()


def _parse_date(text: str | None) -> datetime | None:
    """Read a date such as "July 1, 2006"; None where there is none."""
    try:
        return datetime.strptime((text or "").strip(), "%B %d, %Y")
    except ValueError:
        return None


SUITES = (
    Suite(
        name="amazon-wilds",
        shift="subpopulation",
        source="Amazon-WILDS id_val",
        targets="Subpop1 (val), Subpop2 (test): other reviewers",
        models=("distilbert",),
        n_classes=5,
        size="2.0 GB",
        licence="research use",
        kind="trained",
        needs=(WILDS_REVIEWS, WILDS_SPLITS),
        load=load_amazon_wilds,
        downloads=(
            Download(
                url="https://worksheets.codalab.org/rest/bundles/0xe3ed909786d34ee79d430d065582aa29/contents/blob/",
                path="amazon_v2.1.tar.gz",
                makes=WILDS_REVIEWS,
                also=(WILDS_SPLITS,),
                unpack="amazon_v2.1",
            ),
        ),
        recipe="amazon-wilds",
        paper={"Amazon-WILD/Subpop1": "subpop1", "Amazon-WILD/Subpop2": "subpop2"},
        same_setting=True,
    ),
    Suite(
        name="amazon-reviews-domains",
        shift="domain",
        source="reviews of one domain",
        targets="the other three domains",
        models=DOMAIN_MODELS,
        n_classes=4,
        size="with the data",
        licence="research use",
        kind="sklearn",
        needs=(REVIEWS, EMBEDDINGS),
        load=load_domains,
    ),
    Suite(
        name="amazon-reviews-time",
        shift="temporal",
        source="reviews until 2005",
        targets="the quarters of 2006",
        models=KINDS,
        n_classes=4,
        size="with the data",
        licence="research use",
        kind="sklearn",
        needs=(REVIEWS, EMBEDDINGS),
        load=load_time,
    ),
)
