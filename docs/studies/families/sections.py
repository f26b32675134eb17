"""Family `sections`: which section of the Debian archive a package belongs to, from its description.

    python docs/studies/families/sections.py --out LOGITS [--cache FOLDER]

Needs scikit-learn. Fetches some 35 MB from a Debian mirror.

Data: the package lists of Debian 12 and 13 (main, amd64) with their English and German descriptions. A description has
the licence of its package; all are free by Debian's guidelines.

Rows are packages; the text is the summary and the long description, without the package's name. Classes are the
sections with at least 50 packages. All packages of one source package fall on the same side of the split into training,
source and targets, and at most eight of them count.

Models: logistic regression, naive Bayes and a support vector machine on word frequencies (TF-IDF), and a network on
200 components of them.

Shifts: parts of the text only, typos, lost words and spaces, German in place of English; class frequencies drawn anew;
a third of the classes. Domains that neither training nor source holds: packages of five teams, packages whose names
begin with node-, python3- or ruby-, and packages that are new in Debian 13.
"""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import arguments, write
from debian_lists import descriptions, stanzas
from downloads import from_debian
from shifts import drop_words, first_words, join_words, label_shift, some_rows, third_of_classes, typos
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

TRAIN, SOURCE, POOL, TARGET = 20_000, 4_000, 12_000, 2_000
SMALLEST_CLASS, LARGEST_SOURCE_PACKAGE = 50, 8
TEAMS = {
    "team_med": "Debian Med ",
    "team_science": "Debian Science ",
    "team_multimedia": "Debian Multimedia ",
    "team_kde": "Debian Qt/KDE ",
    "team_orphaned": "Debian QA Group",
}
PREFIXES = {"names_node": "node-", "names_python3": "python3-", "names_ruby": "ruby-"}

Part = tuple[list[str], np.ndarray]  # texts and labels


class Package(NamedTuple):
    name: str
    origin: str
    """The source package that it is built from."""
    maintainer: str
    section: str
    text: str
    key: str
    """What its translations are found by."""

    @property
    def domain(self) -> str | None:
        """The domain outside training and source that it belongs to, or None."""
        for target, team in TEAMS.items():
            if self.maintainer.startswith(team):
                return target
        return next((target for target, prefix in PREFIXES.items() if self.name.startswith(prefix)), None)


def packages(release: str, cache: Path) -> list[Package]:
    """Return the packages of a release, in the archive's order, one for each distinct text."""
    folder = f"dists/{release}/main"
    texts = descriptions(from_debian(f"{folder}/i18n/Translation-en.xz", cache), "en")
    found: dict[str, Package] = {}
    with lzma.open(from_debian(f"{folder}/binary-amd64/Packages.xz", cache), "rt", encoding="utf-8") as lines:
        for s in stanzas(lines.read()):
            name, key = s["Package"], s["Description-md5"]
            if key in texts:
                origin = s.get("Source", name).split()[0]
                package = Package(name, origin, s["Maintainer"], s["Section"], texts[key], key)
                found.setdefault(package.text, package)
    return list(found.values())


def split_by_origin(rows: list[Package], sizes: tuple[int, ...], rng: np.random.Generator) -> list[list[Package]]:
    """Deal whole source packages, in random order, to parts of about the given sizes."""
    by_origin: dict[str, list[Package]] = {}
    for row in rows:
        by_origin.setdefault(row.origin, []).append(row)
    parts: list[list[Package]] = [[] for _ in sizes]
    place = 0
    for origin in rng.permutation(sorted(by_origin)):
        group = by_origin[origin]
        chosen = some_rows(len(group), LARGEST_SOURCE_PACKAGE, rng)
        while place < len(sizes) and len(parts[place]) >= sizes[place]:
            place += 1
        if place == len(sizes):
            break
        parts[place].extend(group[i] for i in chosen)
    return parts


def without_stop_words(text: str) -> str:
    """Leave out the commonest English words, unless nothing else is there."""
    return " ".join(word for word in text.split() if word.lower() not in ENGLISH_STOP_WORDS) or text


def summary(text: str) -> str:
    """Keep the first sentence, which is the description's first line."""
    return text.partition(". ")[0]


def changes(rng: np.random.Generator) -> dict[str, Callable[[str], str]]:
    """Return what is done to texts, by the name of the target."""
    return {
        "clean": str,
        "summary": summary,
        "typos_05": partial(typos, rate=0.05, rng=rng),
        "typos_15": partial(typos, rate=0.15, rng=rng),
        "dropped_30": partial(drop_words, rate=0.3, rng=rng),
        "dropped_70": partial(drop_words, rate=0.7, rng=rng),
        "first_12_words": partial(first_words, count=12),
        "no_stop_words": without_stop_words,
        "joined_30": partial(join_words, rate=0.3, rng=rng),
    }


def make_targets(
    pool: list[Package], held_out: list[Package], new: list[Package], german: dict[str, str], classes: list[str]
) -> dict[str, Part]:
    """Return the texts and labels of each target."""
    rng = np.random.default_rng(1)
    number = {section: i for i, section in enumerate(classes)}
    labels = np.array([number[row.section] for row in pool])
    change = changes(rng)
    targets = {}

    def add(name: str, rows: list[Package], texts: list[str]) -> None:
        targets[name] = texts, np.array([number[row.section] for row in rows])

    for name, changed in change.items():
        rows = [pool[i] for i in some_rows(len(pool), TARGET, rng)]
        add(name, rows, [changed(row.text) for row in rows])
    for name, drawn, changed in (
        ("labelshift_a", label_shift, str),
        ("labelshift_b", label_shift, str),
        ("labelshift_typos_05", label_shift, change["typos_05"]),
        ("labelshift_summary", label_shift, summary),
        ("third", third_of_classes, str),
        ("third_dropped_70", third_of_classes, change["dropped_70"]),
    ):
        rows = [pool[i] for i in drawn(labels, TARGET, rng)]
        add(name, rows, [changed(row.text) for row in rows])
    translated = [row for row in pool if row.key in german]
    rows = [translated[i] for i in some_rows(len(translated), TARGET, rng)]
    add("german", rows, [german[row.key] for row in rows])
    domains = {name: [row for row in held_out if row.domain == name] for name in (*TEAMS, *PREFIXES)}
    for name, domain in {**domains, "debian13": new}.items():
        rows = [domain[i] for i in some_rows(len(domain), TARGET, rng)]
        add(name, rows, [row.text for row in rows])
    return targets


def linear_models(texts: list[str], labels: np.ndarray) -> Iterator[tuple[str, Callable[[list[str]], np.ndarray]]]:
    """Yield models on word frequencies, each a function from texts to logits."""
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=40_000, ngram_range=(1, 2))
    features = words.fit_transform(texts)
    regression = LogisticRegression(C=10, max_iter=200).fit(features, labels)
    yield "tfidf_lr", lambda texts: regression.decision_function(words.transform(texts))
    bayes = MultinomialNB(alpha=0.05).fit(features, labels)
    yield "tfidf_nb", lambda texts: bayes.predict_joint_log_proba(words.transform(texts))
    margins = LinearSVC(C=0.5, random_state=0).fit(features, labels)
    yield "tfidf_svm", lambda texts: margins.decision_function(words.transform(texts))
    reduced = make_pipeline(TruncatedSVD(200, random_state=0), StandardScaler())
    network = MLPClassifier((256,), alpha=1e-3, early_stopping=True, max_iter=40, random_state=0)
    network.fit(reduced.fit_transform(features), labels)
    yield "svd_mlp", lambda texts: network.predict_log_proba(reduced.transform(words.transform(texts)))


def split(cache: Path) -> tuple[Part, Part, dict[str, Part]]:
    """Return the texts and labels of training and source, and those of each target."""
    every = packages("bookworm", cache)
    counts = Counter(row.section for row in every if row.domain is None)
    classes = sorted(section for section, count in counts.items() if count >= SMALLEST_CLASS)
    known = [row for row in every if row.section in classes]
    home = [row for row in known if row.domain is None]
    source, pool, train = split_by_origin(home, (SOURCE, POOL, TRAIN), np.random.default_rng(0))
    origins = {row.origin for row in every}
    new = [row for row in packages("trixie", cache) if row.section in classes and row.origin not in origins]
    german = descriptions(from_debian("dists/bookworm/main/i18n/Translation-de.bz2", cache), "de")
    held_out = [row for row in known if row.domain is not None]
    training, kept = (
        ([row.text for row in rows], np.array([classes.index(row.section) for row in rows])) for rows in (train, source)
    )
    return training, kept, make_targets(pool, held_out, new, german, classes)


def main() -> None:
    options = arguments(__doc__)
    train, source, targets = split(options.cache)
    for model, logits_of in linear_models(*train):
        for name, (texts, labels) in {"source": source, **{f"target_{k}": v for k, v in targets.items()}}.items():
            write(options.out, "sections", model, name, logits_of(texts), labels)


if __name__ == "__main__":
    main()
