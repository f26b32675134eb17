"""Family `languages`: in which language a message of a program is written.

    python docs/studies/families/languages.py --out LOGITS [--cache FOLDER]

Needs scikit-learn, Babel, py3langid 0.4.0 and pip. Fetches some 60 MB from a Debian mirror and 8 MB from PyPI.

Data: translated messages. Source and training: VLC (package vlc-l10n of Debian 12, GPL-2+). Other projects: GTK 3
(LGPL-2+), GnuCash (GPL-2+), GNU coreutils (GPL-3+), Pidgin (GPL-2+), GIMP (GPL-3+), all from Debian 12; Django 5.2
(BSD, PyPI); translated package descriptions of Debian 12 (licence of each package); names of languages and currencies
in CLDR, as Babel has them (Unicode licence).

Classes are the languages that py3langid knows and that have at least 300 messages of VLC; English is what was
translated. A message counts if it has four letters and differs from its English original. Messages, with all of their
translations, fall on the same side of the split into training, source and targets.

Models: py3langid (BSD, model in the package) restricted to the classes, with its scores as they are (`py3langid`) and
with the log of its probabilities (`py3langid_norm`); logistic regression and naive Bayes on character n-grams, trained
on VLC.

Shifts: short and long messages, upper case, lost accents, typos, markup and numbers mixed in, half of the message in
English; Scandinavian, Slavic or Romance languages only; class frequencies drawn anew; a third of the classes; other
projects.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from babel import Locale
from common import arguments, write
from debian_lists import descriptions
from downloads import debian_packages, files_in, from_debian, from_pypi
from shifts import label_shift, some_rows, third_of_classes, typos
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

TRAIN, SOURCE, TARGET = 16_000, 4_000, 2_000
SMALLEST_CLASS, FEWEST_LETTERS = 300, 4
HOME = "vlc-l10n"
PROJECTS = {
    "gtk": "libgtk-3-common",
    "gnucash": "gnucash-common",
    "coreutils": "coreutils",
    "pidgin": "pidgin-data",
    "gimp": "gimp-data",
}
DESCRIBED = (
    "ca", "cs", "da", "de", "el", "eo", "es", "eu", "fi", "fr", "gl", "hr", "hu", "id", "it",
    "ja", "km", "ko", "ml", "nl", "pl", "pt", "ro", "ru", "sk", "sr", "sv", "tr", "uk", "vi",
)  # fmt: skip
RELATED = {
    "scandinavian": ("da", "fo", "is", "nn", "no", "sv"),
    "slavic": ("be", "bg", "bs", "cs", "hr", "mk", "pl", "ru", "sk", "sl", "sr", "uk"),
    "romance": ("an", "ca", "es", "fr", "gl", "it", "oc", "pt", "ro", "wa"),
}
MARKUP = (
    "<b>",
    "</b>",
    "<br/>",
    "%s",
    "%(count)d",
    "{0}",
    "&nbsp;",
    "https://example.org/?id=12",
    "2024-05-17",
    "1,024",
)


class Message(NamedTuple):
    english: str
    language: str
    text: str


def entries(catalog: bytes) -> Iterator[tuple[str, str]]:
    """Yield originals and translations of a compiled catalog (.mo), of plurals the first form."""
    order = "<" if catalog.startswith(b"\xde\x12\x04\x95") else ">"
    count, *tables = struct.unpack(f"{order}3I", catalog[8:20])
    for i in range(count):
        texts = []
        for table in tables:
            size, place = struct.unpack_from(f"{order}2I", catalog, table + 8 * i)
            texts.append(catalog[place : place + size].decode("utf-8", errors="replace"))
        original, translation = (text.split("\0")[0] for text in texts)
        if original:  # the translation of nothing is the catalog's header
            yield original.rpartition("\4")[2], translation


def language_of(locale: str) -> str:
    """Return the code that py3langid has for the language of a locale such as pt_BR or ca@valencia."""
    code = re.split("[_@]", locale)[0]
    return {"nb": "no"}.get(code, code)


def readable(text: str) -> str:
    """Return a message without the marks of shortcut keys, on one line."""
    return " ".join(re.sub(r"[_&](?=\w)", "", text).split())


def says_something(text: str) -> bool:
    """Whether a message has letters enough and no broken signs."""
    return sum(sign.isalpha() for sign in text) >= FEWEST_LETTERS and "\ufffd" not in text


def project(package: Path) -> list[Message]:
    """Return the distinct messages in the catalogs of a package, and their originals as English."""
    found: dict[Message, None] = {}
    for path, content in files_in(package):
        place = re.search(r"locale/([A-Za-z_@]+)/LC_MESSAGES/[^/]+\.mo$", path)
        if place and not place[1].startswith("en"):
            for original, translation in entries(content):
                english, text = readable(original), readable(translation)
                if says_something(text) and text != english:
                    found[Message(english, language_of(place[1]), text)] = None
                    if says_something(english):
                        found[Message(english, "en", english)] = None
    return list(found)


def described(cache: Path) -> list[Message]:
    """Return the summaries and first lines of Debian's translated package descriptions."""
    found = []
    for language in DESCRIBED:
        file = from_debian(f"dists/bookworm/main/i18n/Translation-{language}.bz2", cache)
        found += [Message("", language, text[:200]) for text in descriptions(file, language).values()]
    return found


def names(languages: Iterable[str]) -> list[Message]:
    """Return what languages and currencies are called in each language."""
    found = []
    for language in languages:
        locale = Locale.parse({"no": "nb"}.get(language, language))
        called = {*locale.languages.values(), *locale.currencies.values()}
        found += [Message("", language, name) for name in sorted(called) if says_something(name)]
    return found


def without_accents(text: str) -> str:
    """Take the marks off the letters, as writers without the right keyboard do."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def with_markup(text: str, rate: float, rng: np.random.Generator) -> str:
    """Put markup, placeholders, addresses and numbers at the start and after a share of the words."""
    words = [MARKUP[rng.integers(len(MARKUP))]]
    for word in text.split():
        words.append(word)
        if rng.random() < rate:
            words.append(MARKUP[rng.integers(len(MARKUP))])
    return " ".join(words)


def half_english(message: Message) -> str:
    """Keep the first half of the translation, then go on with the second half of the original."""
    return f"{message.text[: len(message.text) // 2]} {message.english[len(message.english) // 2 :]}"


def make_targets(pool: list[Message], others: dict[str, list[Message]]) -> dict[str, tuple[list[Message], list[str]]]:
    """Return the messages of each target and the texts that stand for them."""
    rng = np.random.default_rng(1)
    labels = np.array([row.language for row in pool])
    targets = {}

    def add(name: str, rows: list[Message], text: Callable[[Message], str] = lambda row: row.text) -> None:
        chosen = [rows[i] for i in some_rows(len(rows), TARGET, rng)]
        targets[name] = chosen, [text(row) for row in chosen]

    add("clean", pool)
    add("short", [row for row in pool if len(row.text) <= 12])
    add("long", [row for row in pool if len(row.text) >= 80])
    add("upper", pool, lambda row: row.text.upper())
    add("no_accents", pool, lambda row: without_accents(row.text))
    add("typos_05", pool, lambda row: typos(row.text, 0.05, rng))
    add("typos_20", pool, lambda row: typos(row.text, 0.2, rng))
    add("markup", pool, lambda row: with_markup(row.text, 0.5, rng))
    add("half_english", [row for row in pool if row.language != "en"], half_english)
    for name, languages in RELATED.items():
        add(name, [row for row in pool if row.language in languages])
    for name in ("labelshift_a", "labelshift_b"):
        add(name, [pool[i] for i in label_shift(labels, TARGET, rng)])
    add(
        "labelshift_typos_20",
        [pool[i] for i in label_shift(labels, TARGET, rng)],
        lambda row: typos(row.text, 0.2, rng),
    )
    add("third", [pool[i] for i in third_of_classes(labels, TARGET, rng)])
    for name, rows in others.items():
        add(name, rows)
    return targets


def split(rows: list[Message], rng: np.random.Generator) -> tuple[list[Message], list[Message], list[Message]]:
    """Return the messages of training, source and targets: two fifths, a fifth and two fifths of the originals."""
    originals = rng.permutation(sorted({row.english for row in rows}))
    side = dict(zip(originals, np.arange(len(originals)) * 5 // len(originals), strict=True))
    train, source, pool = ([row for row in rows if side[row.english] in part] for part in ((0, 1), (2,), (3, 4)))
    return _drawn(train, TRAIN, rng), _drawn(source, SOURCE, rng), pool


def _drawn(rows: list[Message], size: int, rng: np.random.Generator) -> list[Message]:
    return [rows[i] for i in some_rows(len(rows), size, rng)]


def identifier(languages: list[str] | None = None, **options: bool) -> LanguageIdentifier:
    """Return py3langid, which chooses among these languages or among all that it knows."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    found = LanguageIdentifier.from_model_file(MODEL_FILE, **options)
    found.set_languages(languages)
    return found


def scores(model: LanguageIdentifier, texts: list[str], languages: list[str]) -> np.ndarray:
    """Return py3langid's score of each language for each text."""
    rows = [dict(model.rank(text)) for text in texts]
    return np.array([[row[language] for language in languages] for row in rows])


def less_largest(table: np.ndarray) -> np.ndarray:
    """Move each row so that its largest entry is 0: texts without any known n-gram score -3e38 throughout."""
    return table - table.max(axis=1, keepdims=True)


def models(train: list[Message], languages: list[str]) -> Iterator[tuple[str, Callable[[list[str]], np.ndarray]]]:
    """Yield each model as a function from texts to logits."""
    raw = identifier(languages)
    yield "py3langid", lambda texts: less_largest(scores(raw, texts, languages))
    sure = identifier(languages, norm_probs=True)
    yield "py3langid_norm", lambda texts: np.log(np.maximum(scores(sure, texts, languages), 1e-6))
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 3), lowercase=False, sublinear_tf=True, max_features=20_000
    )
    features = letters.fit_transform([row.text for row in train])
    labels = np.array([languages.index(row.language) for row in train])
    bayes = MultinomialNB(alpha=0.02).fit(features, labels)
    yield "ngram_nb", lambda texts: bayes.predict_joint_log_proba(letters.transform(texts))
    regression = LogisticRegression(C=30, max_iter=100).fit(features, labels)
    yield "ngram_lr", lambda texts: regression.decision_function(letters.transform(texts))


def main() -> None:
    options = arguments(__doc__)
    debian = debian_packages((HOME, *PROJECTS.values()), options.cache)
    home = project(debian[HOME])
    counts = Counter(row.language for row in home)
    known = set(identifier().labels)
    languages = sorted(language for language in known if counts[language] >= SMALLEST_CLASS)
    others = {name: project(debian[package]) for name, package in PROJECTS.items()}
    others["django"] = project(from_pypi("Django", "5.2.19", options.cache))
    others["descriptions"] = described(options.cache)
    others["names"] = names(languages)
    others = {name: [row for row in rows if row.language in languages] for name, rows in others.items()}
    train, source, pool = split([row for row in home if row.language in languages], np.random.default_rng(0))
    parts = {"source": (source, [row.text for row in source])}
    parts |= {f"target_{name}": target for name, target in make_targets(pool, others).items()}
    print(f"{len(languages)} languages: {' '.join(languages)}", flush=True)
    for model, logits_of in models(train, languages):
        for name, (rows, texts) in parts.items():
            labels = [languages.index(row.language) for row in rows]
            write(options.out, "languages", model, name, logits_of(texts), labels)


if __name__ == "__main__":
    main()
