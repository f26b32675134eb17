"""The tables of docs/studies that pages show: how far each method is off on real data, and how often intervals hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leadline.results.render import Table

STUDIES = Path(__file__).parents[1] / "docs" / "studies"
SUITES = {
    "amazon_blitzer": "reviews",
    "banking77": "intents (77 classes)",
    "cifar10c": "CIFAR-10 corrupted",
    "citation_domains": "citation graphs",
    "mnist": "digits",
    "tabular_time": "tables over time",
}
FAMILIES = SUITES | {
    "elec": "electricity prices",
    "flights_carrier": "flights by carrier",
    "flights_delay": "flight delays",
    "gas": "gas sensors",
}
#: What anyone can build, by docs/studies/families, in the order in which they were built.
NEW = {
    "glyphs": "glyphs",
    "languages": "languages",
    "sections": "packages",
    "filetypes": "files",
    "letters": "letters",
    "diamonds": "diamonds",
    "birdstrikes": "birds",
    "census": "incomes",
    "images": "clothes",
    "covertype": "forests",
    "landsat": "ground",
    "snippets": "sentences",
    "spam": "mail",
    "splice": "genes",
    "weather": "rain",
    "households": "households",
    "activities": "exercises",
    "dependencies": "dependencies",
    "digits": "digits of writers",
    "glosses": "definitions",
    "guests": "guests",
    "speech": "spoken words",
}
#: Tables of records, by the modules of docs/studies/families/records.py that have them.
RECORDS = {
    "first": "voters abortion crashes stops storms churn rodents union loans jobs happiness credit developers",
    "second": "insured health pensions deaths grants leaves leagues drama gender grades mothers tweets reviews",
    "third": "magic texture phoneme segment banana ring chess pets ratings married drivers wins",
}
IN_SHORT = ("auto", "alsa-g", "cot", "atc-mc", "ac")
DISTANCES = {
    0.0: ("below .01", "nothing moved: sampling error, and little else"),
    0.01: (".01 to .03", ""),
    0.03: (".03 to .08", "a few points"),
    0.08: (".08 to .2", ""),
    0.2: (".2 to .4", "believe the interval, not the number"),
    0.4: ("above .4", "a rough idea"),
}
Row = Mapping[str, Any]
_REAL = ("as is", "label shift")


def study_tables() -> dict[str, list[Table]]:
    """Return the tables by name."""
    trust, new, records, halves, nested = (
        json.loads((STUDIES / f"{name}.json").read_text())
        for name in ("trust", "new_families", "records", "halves", "nested")
    )
    of_records = {name: name for names in RECORDS.values() for name in names.split()}
    return {
        "records": [_transposed(_by_suite(records["rows"], "as is", _methods(records["rows"]), of_records))],
        "records, label-shifted": [
            _transposed(_by_suite(records["rows"], "label shift", _methods(records["rows"]), of_records))
        ],
        "records, intervals": [_transposed(_coverage(records["rows"], of_records))],
        "records in short": [_records_in_short(records["rows"])],
        "new families": [_transposed(_by_suite(new["rows"], "as is", _methods(new["rows"]), NEW))],
        "new families in short": [_in_short(_transposed(_by_suite(new["rows"], "as is", IN_SHORT, NEW)))],
        "new families, label-shifted": [_transposed(_by_suite(new["rows"], "label shift", _methods(new["rows"]), NEW))],
        "new families, intervals": [_transposed(_coverage(new["rows"], NEW))],
        "unseen families": [_unseen(trust["unseen"])],
        "by distance": [_by_distance(trust["by distance"])],
        "real suites": [_by_suite(trust["rows"], "as is", _methods(trust["rows"]), SUITES)],
        "label-shifted suites": [_by_suite(trust["rows"], "label shift", _methods(trust["rows"]), SUITES)],
        "coverage": [_coverage(trust["rows"], SUITES)],
        "two models": [_two_models(trust["two models"])],
        "halves": [_halves(halves["rows"])],
        "chosen on others": [_nested(nested)],
    }


def _points(value: float) -> str:
    return f"{100 * value:.1f}"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _methods(rows: Iterable[Row]) -> list[str]:
    """Return the methods of a study, in the order in which it has them."""
    return list(dict.fromkeys(row["method"] for row in rows))


def _unseen(rows: Sequence[Row]) -> Table:
    """Return what each family gets when the others choose."""
    lines = [
        [
            FAMILIES[row["family"]], str(row["pairs"]), _points(row["auto"]), _share(row["coverage"]),
            f"{row['width']:.2f}", f"{_points(row['single_mae'])} ({row['single']})",
            f"{_points(row['best_mae'])} ({row['best']})",
        ]
        for row in rows
    ]  # fmt: skip
    mean = {key: float(np.mean([row[key] for row in rows])) for key in ("auto", "coverage", "width", "single_mae")}
    lines.append(
        [
            "mean", str(sum(row["pairs"] for row in rows)), _points(mean["auto"]),
            _share(mean["coverage"]), f"{mean['width']:.2f}", _points(mean["single_mae"]),
            _points(float(np.mean([row["best_mae"] for row in rows]))),
        ]
    )  # fmt: skip
    head = ("family, left out", "targets", "auto", "its intervals cover", "mean width")
    return Table((*head, "the single method that is best on the others", "the best one by hindsight"), lines, left=(0,))


def _by_distance(rows: Iterable[Row]) -> Table:
    """Return how wrong estimates are, by how far the target is from the source."""
    by_method = {(row["method"], row["from"]): row for row in rows}
    lines = []
    for start, (name, words) in DISTANCES.items():
        auto, doc = (by_method[method, start] for method in ("auto", "doc"))
        errors = [f"{_points(row['mae'])} ({_points(row['ninth_tenth'])})" for row in (auto, doc)]
        held = f"{auto['width']:.2f}, {_share(auto['coverage'])}"
        lines.append([name, str(auto["pairs"]), errors[0], held, errors[1], words])
    head = ("distance", "targets", "auto", "its interval: width, coverage", "doc", "in words")
    return Table(head, lines, left=(0, 5))


def _by_suite(rows: Sequence[Row], kind: str, methods: Sequence[str], suites: Mapping[str, str]) -> Table:
    """Return the mean error of each method on each suite, and how much worse than the best single one it may be."""
    errors = {(row["method"], row["suite"]): row["mae"] for row in rows if row["kind"] == kind}
    best = {suite: min(errors[name, suite] for name in _methods(rows) if name != "auto") for suite in suites}
    lines = []
    for method in methods:
        mine = [errors[method, suite] for suite in suites]
        worst = max(errors[method, suite] / best[suite] for suite in suites)
        lines.append([method, _points(float(np.mean(mine))), f"{worst:.1f}", *map(_points, mine)])
    return Table(("method", "mean", "worst ratio", *suites.values()), lines, left=(0,))


def _transposed(table: Table) -> Table:
    """Return a table with a line for each column: of many families, and few methods."""
    head, *lines = zip(*(table.header, *table.rows), strict=True)
    return Table(("", *head[1:]), [list(line) for line in lines], left=(0,))


def _in_short(table: Table) -> Table:
    """Return the first two lines of a table of families: the mean, and the worst ratio."""
    return Table(table.header, table.rows[:2], left=table.left)


def _records_in_short(rows: Sequence[Row]) -> Table:
    """Return of each module of records what `auto` does beside the best single method, and how intervals hold."""
    at = {(row["kind"], row["method"], row["suite"]): row for row in rows}
    singles = [method for method in _methods(rows) if method != "auto"]
    lines = []
    for module, words in RECORDS.items():
        names, line = words.split(), [module]
        for kind in _REAL:
            means = {
                method: float(np.mean([at[kind, method, name]["mae"] for name in names])) for method in _methods(rows)
            }
            best = min(singles, key=lambda method: means[method])
            least = {name: min(at[kind, method, name]["mae"] for method in singles) for name in names}
            worst = max(at[kind, "auto", name]["mae"] / least[name] for name in names)
            held, width = (np.mean([at[kind, "auto", name][part] for name in names]) for part in ("coverage", "width"))
            line += [_points(means["auto"]), f"{_points(means[best])} ({best})"]
            line += [f"{worst:.1f}", f"{_share(float(held))}, {width:.2f}"]
        lines.append(line)
    head = ("auto", "best single method", "worst ratio", "intervals")
    told = [f"{kind}: {each}" for kind in ("as they are", "label-shifted") for each in head]
    return Table(("module", *told), lines, left=(0,))


def _coverage(rows: Iterable[Row], suites: Mapping[str, str]) -> Table:
    """Return how often intervals of `auto` held, and how wide they were."""
    mine = {(row["kind"], row["suite"]): row for row in rows if row["method"] == "auto"}
    lines = []
    for kind, name in (("as is", "as they are"), ("label shift", "label-shifted")):
        found = [mine[kind, suite] for suite in (*suites, "all")]
        lines.append([f"{name}: coverage", *(_share(row["coverage"]) for row in found)])
        lines.append([f"{name}: mean width", *(f"{row['width']:.2f}" for row in found)])
    return Table(("", *suites.values(), "all pairs"), lines, left=(0,))


def _two_models(rows: Iterable[Row]) -> Table:
    """Return how often the better of two models was found."""
    lines = []
    for row in rows:
        name = "all" if row["suite"] == "all" else SUITES[row["suite"]]
        far, apart = row["right of these"], row["right of those"]
        lines.append(
            [
                name, str(row["pairs"]), _points(row["mae"]), _points(row["mae of the difference"]),
                _share(row["right"]), "" if far is None else f"{_share(far)} of {row['more than 5 points apart']}",
                "" if apart is None else f"{_share(apart)} of {row['intervals apart']}",
            ]
        )  # fmt: skip
    head = ("", "pairs", "error of one", "error of the difference", "the better one found")
    return Table((*head, "of those more than 5 points apart", "of those whose intervals do not meet"), lines, left=(0,))


def _nested(found: Mapping[str, Any]) -> Table:
    """Return what `auto` does on each family with constants chosen on the others, beside what it does as it is."""
    shipped = found["shipped by family"]
    names = FAMILIES | NEW | {name: name for words in RECORDS.values() for name in words.split()}
    lines = []
    for row in sorted(found["families"], key=lambda row: list(names).index(row["family"])):
        errors = [error for kind in _REAL for error in (row[kind], shipped[kind][row["family"]])]
        held = [_share(row["coverage"]), f"{row['width']:.2f}"]
        lines.append([names[row["family"]], *map(_points, errors), *held])
    means = [_points(found[choice][kind]) for kind in _REAL for choice in ("nested", "shipped")]
    lines.append(["mean", *means, _share(found["coverage"]), f"{found['width']:.2f}"])
    head = ("as they are: chosen on the others", "shipped", "label-shifted: chosen on the others", "shipped")
    return Table(("family, left out", *head, "intervals cover", "mean width"), lines, left=(0,))


def _halves(rows: Sequence[Row]) -> Table:
    """Return the errors on random halves of the sources."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        lines.append([f"{kind}: mean error", *(_points(row["mae"]) for row in mine), _points(mine[0]["sampling"])])
        worst = [max(row["families"].values()) for row in mine]
        lines.append([f"{kind}: worst family", *map(_points, worst), ""])
        lines.append([f"{kind}: intervals held", *(_share(row["coverage"]) for row in mine), ""])
    return Table(("", *_methods(rows), "sampling alone"), lines, left=(0,))
