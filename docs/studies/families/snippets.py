"""Whether a sentence is positive or negative: another kind of text, shorter and damaged ones, label shift.

    python docs/studies/families/snippets.py --out DIR

Data: sentences that people rated from -4 to 4 (Hutto and Gilbert, 2014): of movie reviews (Pang and Lee, 2004), of
customers' reviews of electronics (Hu and Liu, 2004), of New York Times editorials, and tweets, as the source archive of
vaderSentiment 0.5 on PyPI has them (MIT for package and ratings, the texts are their authors'; unpacked, not
installed). The label is the sign of the mean rating; those between -0.5 and 0.5 are left out, as is a text that was
there before. Trained on 5,000 sentences of movie reviews; the source has 2,000 others, and the targets of movie reviews
are drawn from the 3,000 that are left.

Models: logistic regression, naive Bayes and a network on frequencies of words and pairs of words (TF-IDF), and a
support vector machine on those of pieces of words with their punctuation and capitals.
Shifts: the three other kinds of text; short and long sentences, sentences with a negation, strong and mild ratings;
typos, lost words, the first eight words only, no punctuation or capitals; four fifths negative or positive, also with
typos or lost words, and customers' reviews four fifths of which are negative.
Needs scikit-learn; about a minute on one core.
"""

from __future__ import annotations

import html
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import arguments, write
from downloads import from_pypi
from numpy.typing import NDArray
from shifts import drop_words, first_words, some_rows, typos
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from tables import logits_of

TRAIN, SOURCE, TARGET, WEIGHTED = 5000, 2000, 2000, 1200
NEUTRAL = 0.5
FILES = {
    "movies": "movieReviewSnippets",
    "customers": "amazonReviewSnippets",
    "editorials": "nytEditorialSnippets",
    "tweets": "tweets",
}
NEGATION = re.compile(r"\b(no|not|nor|never|nothing|neither|without|cannot|\w+n't)\b", re.IGNORECASE)


class Sentence(NamedTuple):
    text: str
    rating: float

    @property
    def length(self) -> int:
        """The number of its words."""
        return len(self.text.split())


def sentences(cache: Path) -> dict[str, list[Sentence]]:
    """Return the sentences of each kind of text that are not neutral, each text once."""
    with zipfile.ZipFile(from_pypi("vaderSentiment", "0.5", cache)) as package:
        inner = package.read("vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz")
    found: dict[str, list[Sentence]] = {}
    seen: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        for kind, file in FILES.items():
            content = archive.extractfile(f"hutto_ICWSM_2014/{file}_GroundTruth.txt")
            assert content is not None
            found[kind] = []
            for line in content.read().decode("utf-8-sig").splitlines():
                _, rating, written = line.split("\t")
                text = " ".join(html.unescape(written).split())
                if abs(float(rating)) >= NEUTRAL and text not in seen:
                    seen.add(text)
                    found[kind].append(Sentence(text, float(rating)))
    return found


def labels_of(rows: list[Sentence]) -> NDArray[np.int64]:
    """Return 1 for positive sentences and 0 for negative ones."""
    return np.array([row.rating > 0 for row in rows], dtype=np.int64)


def plain(text: str) -> str:
    """Leave out punctuation and capitals, unless nothing else is there."""
    return " ".join(re.sub(r"[^\w\s]", "", text.lower()).split()) or text


def make_targets(
    pool: list[Sentence], others: dict[str, list[Sentence]]
) -> dict[str, tuple[list[str], NDArray[np.int64]]]:
    """Return the texts and labels of each target."""
    rng = np.random.default_rng(1)
    typos_10, dropped_40 = partial(typos, rate=0.1, rng=rng), partial(drop_words, rate=0.4, rng=rng)
    found: dict[str, tuple[list[str], NDArray[np.int64]]] = {}

    def add(name: str, rows: list[Sentence], change: Callable[[str], str] = str, size: int = TARGET) -> None:
        chosen = [rows[i] for i in some_rows(len(rows), size, rng)]
        found[name] = [change(row.text) for row in chosen], labels_of(chosen)

    def with_positives(rows: list[Sentence], share: float) -> list[Sentence]:
        labels, positives = labels_of(rows), round(share * WEIGHTED)
        parts = [rng.permutation(np.flatnonzero(labels == label)) for label in (0, 1)]
        return [rows[i] for i in (*parts[0][: WEIGHTED - positives], *parts[1][:positives])]

    add("clean", pool)
    for name, rows in others.items():
        add(name, rows)
    add("short", [row for row in pool if row.length <= 10])
    add("long", [row for row in pool if row.length >= 28])
    add("negation", [row for row in pool if NEGATION.search(row.text)])
    add("strong", [row for row in pool if abs(row.rating) >= 2])
    add("mild", [row for row in pool if abs(row.rating) < 1.5])
    add("typos_10", pool, typos_10)
    add("dropped_40", pool, dropped_40)
    add("first_8_words", pool, partial(first_words, count=8))
    add("plain", pool, plain)
    add("negative_80", with_positives(pool, 0.2))
    add("positive_80", with_positives(pool, 0.8))
    add("negative_80_typos_10", with_positives(pool, 0.2), typos_10)
    add("positive_80_dropped_40", with_positives(pool, 0.8), dropped_40)
    add("customers_negative_80", with_positives(others["customers"], 0.2))
    return found


def models(
    texts: list[str], labels: NDArray[np.int64]
) -> Iterator[tuple[str, Callable[[list[str]], NDArray[np.float64]]]]:
    """Yield each model as a function from texts to logits."""
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    features = words.fit_transform(texts)
    regression = LogisticRegression(C=3, max_iter=500).fit(features, labels)
    yield "word_lr", lambda rows: logits_of(regression, words.transform(rows))
    bayes = MultinomialNB(alpha=0.3).fit(features, labels)
    yield "word_nb", lambda rows: bayes.predict_joint_log_proba(words.transform(rows))
    network = MLPClassifier((64,), early_stopping=True, max_iter=40, random_state=0).fit(features, labels)
    yield "word_mlp", lambda rows: logits_of(network, words.transform(rows))
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), lowercase=False, sublinear_tf=True, min_df=3)
    margins = LinearSVC(C=0.3, random_state=0).fit(pieces.fit_transform(texts), labels)
    yield "piece_svm", lambda rows: logits_of(margins, pieces.transform(rows))


def main() -> None:
    options = arguments(__doc__)
    others = sentences(options.cache)
    movies = others.pop("movies")
    order = np.random.default_rng(0).permutation(len(movies))
    train, source, pool = ([movies[i] for i in rows] for rows in np.split(order, [TRAIN, TRAIN + SOURCE]))
    parts = {"source": ([row.text for row in source], labels_of(source))}
    parts |= {f"target_{name}": target for name, target in make_targets(pool, others).items()}
    for model, scores in models([row.text for row in train], labels_of(train)):
        for name, (texts, labels) in parts.items():
            write(options.out, "snippets", model, name, scores(texts), labels)


if __name__ == "__main__":
    main()
