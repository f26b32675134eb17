"""What a package of the Debian archive is for, by its summary and what it depends on: a graph, twelve classes.

    python docs/studies/families/dependencies.py --out DIR

Data: the package lists of Debian 11, 12 and 13 (main, amd64; the lists and summaries are free by Debian's guidelines).
Nodes are packages, features 128 components of the word frequencies (TF-IDF) of their summaries, edges what a package
depends on or recommends, taken both ways. Classes are groups of sections of the archive. All packages of one source
package fall on the same side of the split into training, source and targets. The whole graph of Debian 12, with its
63,000 packages, is there in training, with the classes of some 16,000.

Models: a graph convolutional network, GraphSAGE with means, a perceptron on the features alone, and logistic regression
on the features and their means over neighbours and neighbours' neighbours.
Shifts: packages in Debian 11 and 13, those gone since 11 and those new in 13; packages of four teams, of which training
and source hold none; few and many edges; edges lost, also all of them, or added at random; words lost, noise in the
features; a third of the classes; class frequencies drawn anew, also with edges or words lost.
Needs scikit-learn and torch; two minutes on one core.
"""

from __future__ import annotations

import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import arguments, write
from debian_lists import stanzas
from downloads import from_debian
from graphs import Features, Graph, Numbers, fitted, graph
from shifts import drop_words, label_shift, some_rows, third_of_classes
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

GROUPS = (
    "libs oldlibs introspection debug",
    "libdevel devel vcs embedded",
    "doc",
    "python",
    "perl php ruby javascript lisp interpreters",
    "haskell ocaml rust golang java cli-mono",
    "net mail web httpd comm news",
    "admin utils shells kernel otherosfs database metapackages tasks",
    "x11 gnome kde xfce gnustep",
    "sound video graphics games",
    "science math gnu-r electronics hamradio education",
    "text editors tex localization fonts",
)
CLASSES = {section: label for label, sections in enumerate(GROUPS) for section in sections.split()}
TEAMS = {
    "team_gnome": "Debian GNOME ",
    "team_openstack": "Debian OpenStack ",
    "team_med": "Debian Med ",
    "team_orphaned": "Debian QA Group",
}
TRAIN_SHARE, SOURCE_SHARE = 0.33, 0.12  # of the source packages
LARGEST_SOURCE_PACKAGE = 8
SOURCE_ROWS, ROWS = 3000, 1500
WORDS = 128
FEW_EDGES, MANY_EDGES = 2, 15

Target = tuple[str, Numbers, Numbers]  # the name of a graph; nodes of it, and their labels


class Package(NamedTuple):
    name: str
    origin: str
    """The source package that it is built from."""
    team: str
    """The team outside training and source that maintains it, if any."""
    label: int
    summary: str
    needs: list[str]


class Archive(NamedTuple):
    nodes: list[Package]
    labels: Numbers
    pairs: Numbers
    words: Features


def packages(release: str, cache: Path) -> list[Package]:
    """Return the packages of a release, in the archive's order, whose section is in one of the groups."""
    found: dict[str, Package] = {}
    list_of_release = from_debian(f"dists/{release}/main/binary-amd64/Packages.xz", cache)
    with lzma.open(list_of_release, "rt", encoding="utf-8") as lines:
        for s in stanzas(lines.read()):
            if s["Section"] in CLASSES:
                name, label = s["Package"], CLASSES[s["Section"]]
                relations = ", ".join(s[field] for field in ("Pre-Depends", "Depends", "Recommends") if field in s)
                needs = re.findall(r"(?:^|[,|]\s*)([a-z0-9][a-z0-9+.-]+)", relations)
                team = next((target for target, team in TEAMS.items() if s["Maintainer"].startswith(team)), "")
                origin = s.get("Source", name).split()[0]
                found.setdefault(name, Package(name, origin, team, label, s["Description"], needs))
    return list(found.values())


def archive(nodes: list[Package], features: Any) -> Archive:
    number = {node.name: i for i, node in enumerate(nodes)}
    found = {(i, number[need]) for i, node in enumerate(nodes) for need in node.needs if need in number}
    pairs = np.array(sorted(pair for pair in found if pair[0] != pair[1])).T
    words = features.transform([node.summary for node in nodes]).astype(np.float32)
    return Archive(nodes, np.array([node.label for node in nodes]), pairs, words)


def counted(nodes: list[Package], rng: np.random.Generator) -> Numbers:
    """Return the rows of all packages in random order, but at most eight of one source package."""
    seen: Counter[str] = Counter()
    rows = []
    for row in rng.permutation(len(nodes)):
        seen[nodes[row].origin] += 1
        if seen[nodes[row].origin] <= LARGEST_SOURCE_PACKAGE:
            rows.append(row)
    return np.array(rows)


def changed(known: Archive, features: Any, rng: np.random.Generator) -> dict[str, Graph]:
    """Return the graph with other edges or features, by the name of the target."""
    words, pairs = known.words, known.pairs
    chance = rng.random(pairs.shape[1])
    added = rng.integers(len(words), size=(2, pairs.shape[1] // 2))
    texts = [drop_words(node.summary, 0.5, rng) for node in known.nodes]
    return {
        "edges_lost_1": graph(words, pairs[:, chance >= 0.3]),
        "edges_lost_2": graph(words, pairs[:, chance >= 0.7]),
        "no_edges": graph(words, pairs[:, :0]),
        "edges_added": graph(words, np.concatenate([pairs, added[:, added[0] != added[1]]], axis=1)),
        "words_lost": graph(features.transform(texts).astype(np.float32), pairs),
        "noise": graph(words + rng.normal(size=words.shape).astype(np.float32), pairs),
    }


def targets(known: Archive, pool: Numbers, names: list[str], rng: np.random.Generator) -> dict[str, Target]:
    """Return the targets in Debian 12; `names` are the graphs in which packages of the pool are looked at."""
    labels = known.labels[pool]
    degrees = np.bincount(known.pairs.ravel(), minlength=len(known.nodes))

    def of(rows: Numbers, name: str = "clean") -> Target:
        chosen = rows[some_rows(len(rows), ROWS, rng)]
        return name, chosen, known.labels[chosen]

    found = {name: of(pool, name) for name in ("clean", *names)}
    found["few_edges"] = of(pool[degrees[pool] <= FEW_EDGES])
    found["many_edges"] = of(pool[degrees[pool] >= MANY_EDGES])
    found["third"] = of(pool[third_of_classes(labels, ROWS, rng)])
    found["third_edges_lost"] = of(pool[third_of_classes(labels, ROWS, rng)], "edges_lost_2")
    for name, change in (("", "clean"), ("_edges_lost", "edges_lost_2"), ("_words_lost", "words_lost")):
        found[f"weighted{name}"] = of(pool[label_shift(labels, ROWS, rng)], change)
    rows = counted(known.nodes, rng)
    teams = np.array([known.nodes[row].team for row in rows])
    return found | {team: of(rows[teams == team]) for team in TEAMS}


def other_release(name: str, other: Archive, known: Archive, pool: Numbers, rng: np.random.Generator) -> list[Target]:
    """Return packages of the pool as they are in another release, and packages whose source is in that one only."""
    names, origins = {known.nodes[row].name for row in pool}, {node.origin for node in known.nodes}
    rows = counted(other.nodes, rng)
    both = np.array([other.nodes[row].name in names for row in rows])
    only = np.array([other.nodes[row].origin not in origins for row in rows])
    return [(name, rows[part][:ROWS], other.labels[rows[part][:ROWS]]) for part in (both, only)]


def main() -> None:
    options = arguments(__doc__)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    nodes = packages("bookworm", options.cache)
    words = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=3), TruncatedSVD(WORDS, random_state=0))
    features = make_pipeline(words, StandardScaler()).fit([node.summary for node in nodes])
    known = archive(nodes, features)
    rows = np.array([row for row in counted(nodes, rng) if not nodes[row].team])
    origins, origin_of = np.unique([nodes[row].origin for row in rows], return_inverse=True)
    place = np.digitize(rng.random(len(origins))[origin_of], np.cumsum([TRAIN_SHARE, SOURCE_SHARE]))
    train, source, pool = (rows[place == part] for part in range(3))
    graphs = changed(known, features, rng)
    samples = {f"target_{k}": target for k, target in targets(known, pool, list(graphs), rng).items()}
    samples["source"] = ("clean", source[:SOURCE_ROWS], known.labels[source[:SOURCE_ROWS]])
    graphs["clean"] = graph(known.words, known.pairs)
    for release, both, only in (("bullseye", "debian11", "gone_since_11"), ("trixie", "debian13", "new_in_13")):
        other = archive(packages(release, options.cache), features)
        graphs[release] = graph(other.words, other.pairs)
        found = other_release(release, other, known, pool, rng)
        samples |= {f"target_{name}": target for name, target in zip((both, only), found, strict=True)}
    for model_name, model in fitted(graphs["clean"], train, known.labels[train]).items():
        with torch.no_grad():
            logits = {name: model(each) for name, each in graphs.items()}
        for name, (graph_name, chosen, labels) in samples.items():
            write(options.out, "dependencies", model_name, name, logits[graph_name][torch.from_numpy(chosen)], labels)


if __name__ == "__main__":
    main()
