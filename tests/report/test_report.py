"""The report: its numbers are the library's, in every format, and nothing of a single sample is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leadline as ll
from command_line import Run
from leadline import InputError, Outputs, read_outputs
from leadline.report.assumptions import check_agreement, check_width, worst
from leadline.report.building import build_report
from leadline.report.lines import MOST_SEGMENTS
from leadline.report.page import MOST_BYTES, html_page, json_text, markdown
from leadline.report.pictures import MOST_TARGETS, detailed_targets, report_pictures
from leadline.results.gate import Gate
from leadline.results.render import percent

Make = Callable[..., Outputs]
FAST = ("alsa-g", "ac", "doc", "atc-mc")


class Text(HTMLParser):
    """The words of a page, and everything that it refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def built(make_outputs: Make) -> Any:
    """A report on three targets, one without labels, and its pictures."""
    source = make_outputs(n=400, c=4, classes=["ant", "bee", "<cat>", "dog"])
    channels = np.array(["web", "app"])[np.arange(300) % 2]
    targets = {
        "monday": make_outputs(c=4, seed=1, metadata={"channel": channels}),
        "tuesday": make_outputs(c=4, seed=2, signal=0.5, metadata={"channel": channels}),
        "<b>new</b>": Outputs(make_outputs(c=4, seed=3).logits, metadata={"channel": channels}),
    }
    report = build_report(source, targets, method="alsa-g", methods=FAST, by="channel")
    return report, source, targets, report_pictures(report, source, targets)


@pytest.fixture(scope="module")
def page(built: Any) -> str:
    """The page of that report; drawing its pictures takes longer than all else."""
    report, _, _, pictures = built
    return html_page(report, pictures)


# ---------------------------------------------------------------------------------------------------- content
def test_numbers_are_the_librarys(built: Any) -> None:
    report, source, targets, _ = built
    for target in report.targets:
        outputs = targets[target.name]
        alone = ll.make("alsa-g", seed=0).fit(source.logits, source.labels)
        expected = alone.estimate(outputs.logits)
        assert (target.estimate.accuracy, target.estimate.interval) == (expected.accuracy, expected.interval)
        assert target.truth == outputs.accuracy
        accuracies = [entry.accuracy for entry in expected.by_class]
        assert {line.name: line.accuracy for line in target.classes} == dict(
            zip(source.classes, accuracies, strict=True)
        )
        for line in target.segments:
            rows = outputs.groups("channel")[line.name]
            # Products of few rows are summed in another order than those of many.
            assert line.accuracy == pytest.approx(alone.estimate(outputs.logits[rows]).accuracy, rel=1e-9)
    wanted = ll.compare(source, targets, methods=FAST)
    assert [row.accuracy for row in report.comparison] == [row.accuracy for row in wanted]


def test_answer_is_one_sentence_with_the_interval(built: Any) -> None:
    target = built[0].targets[0]
    low, high = target.estimate.interval
    assert target.answer.count(". ") == 0
    for number in (target.estimate.accuracy, low, high):
        assert percent(number) in target.answer
    assert "90 % interval" in target.answer


def test_no_values_of_single_rows_are_kept(built: Any) -> None:
    report, _, targets, pictures = built
    assert all(target.estimate.correctness is None for target in report.targets)
    text = json_text(report, pictures)
    seen = [f"{value:.6g}" for value in next(iter(targets.values())).logits.ravel()]
    assert not any(value in text for value in seen if len(value) > 7)


def test_labels_are_the_answer_and_stand_beside_the_estimate(make_outputs: Make) -> None:
    source, labelled = make_outputs(c=4), make_outputs(c=4, seed=1)
    assert labelled.labels is not None
    model, target = ll.make("ac").fit(source), Outputs(labelled.logits)
    plan = ll.plan_labels(model, target, budget=60)
    after = ll.estimate_with_labels(model, target, plan, (labelled.labels[plan.rows] + 1) % 4)  # confidently wrong
    report = build_report(
        source, {"monday": target}, model=model, methods=["ac"], gate=Gate(0.6), with_labels={"monday": after}
    )
    found = report.targets[0]
    assert found.final is after
    assert found.estimate.accuracy == model.estimate(target).accuracy > 0.6 > after.accuracy
    assert found.gate == "Below the 60.0 % asked for."
    assert [one.segment.estimate for one in found.failed] == [after]
    assert found.reliance == "reasonable"
    assert found.to_dict()["with_labels"]["interval"] == list(after.interval)
    text, page = markdown(report, []), html_page(report, [])
    assert f"| with 60 labels | {percent(after.accuracy)} |" in text
    assert f"| without labels, by ac | {percent(found.estimate.accuracy)} |" in text
    assert "they disagree, and the labels are right" in text
    assert f">{percent(after.accuracy)} <span>of 300 predictions are right, as 60 labels show<" in page


def test_segments_beyond_the_largest_are_counted(make_outputs: Make) -> None:
    names = np.array([f"user {i}" for i in np.minimum(np.arange(300), MOST_SEGMENTS + 9)])
    source, target = make_outputs(), make_outputs(seed=1, metadata={"user": names})
    report = build_report(source, {"t": target}, method="ac", methods=["ac"], by="user")
    assert len(report.targets[0].segments) == MOST_SEGMENTS
    assert report.targets[0].segments_left_out == 10
    pulls = [line.pull for line in report.targets[0].segments]
    assert pulls == sorted(pulls)
    assert pulls[0] < 0


def test_what_an_estimate_rests_on_is_said_once(built: Any) -> None:
    _, source, targets, _ = built
    report = build_report(source, {"a": targets["monday"]}, method="ac", methods=["ac"])
    estimate = ll.make("ac").fit(source).estimate(targets["monday"])
    told = estimate.explain()
    assert report.targets[0].verdict in told
    assert told.endswith(" ".join(report.targets[0].explanation))
    page = html_page(report, [])
    for sentence in (report.targets[0].verdict, *report.targets[0].explanation):
        assert page.count(escape(sentence)) == 1


def test_wrong_input(make_outputs: Make) -> None:
    source = make_outputs()
    with pytest.raises(InputError, match="targets must have at least one entry"):
        build_report(source, {})
    with pytest.raises(InputError, match="source must have labels"):
        build_report(Outputs(source.logits), {"a": source})
    with pytest.raises(InputError, match="target a: column 'x' is not in these outputs"):
        build_report(source, {"a": source}, method="ac", methods=["ac"], by="x")


# ----------------------------------------------------------------------------------------------------- checks
def test_check_of_agreement_names_the_extremes() -> None:
    check = check_agreement({"ac": 0.8, "cot": 0.55, "doc": 0.7})
    assert check.verdict == "poor"
    assert check.value == pytest.approx(0.25)
    assert "55.0 % (cot) to 80.0 % (ac), 25.0 points apart" in check.text


def test_worst_check_decides() -> None:
    good, poor = check_width((0.5, 0.52)), check_width((0.2, 0.8))
    assert (worst([good]), worst([good, poor]), worst([])) == ("good", "poor", "good")


# ------------------------------------------------------------------------------------------------------ formats
def test_page_needs_nothing_else(built: Any, page: str) -> None:
    pictures, text = built[3], Text(page)
    assert all(link.startswith("data:") for link in text.links)
    assert "script" not in text.tags
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert len(page.encode()) < MOST_BYTES
    assert page.count("<figure>") == len(pictures)


def test_every_number_is_in_every_format(built: Any, page: str) -> None:
    report, _, _, pictures = built
    data = json.loads(json_text(report, pictures))
    words, text = " ".join(Text(page).words), markdown(report, pictures)
    for target in data["targets"]:
        for number in [target["accuracy"], target["truth"], *(row["accuracy"] for row in target["methods"])]:
            assert percent(number) in words
            assert percent(number) in text
        for line in [*target["by_class"], *target["segments"]]:
            assert percent(line["accuracy"]) in words
            assert percent(line["accuracy"]) in text
        for sentence in (target["verdict"], *target["explanation"]):
            assert sentence in words
        for check in target["checks"]:
            assert check["text"] in words
            assert check["name"] in text
        assert target["reliance"] in words
    for name, value in data["versions"].items():
        assert name in words
        assert value in words
    assert data["headline"] in words


def test_names_cannot_become_markup(built: Any, page: str) -> None:
    report, _, _, pictures = built
    assert "<b>new</b>" not in page
    assert "&lt;b&gt;new&lt;/b&gt;" in page
    assert "<cat>" not in page
    assert "<b>" not in markdown(report, pictures).replace("\\<b\\>", "")


def test_many_targets_and_classes_fit(make_outputs: Make) -> None:
    source = make_outputs(n=300, c=100, signal=4.0)
    targets = {f"target {i}": make_outputs(n=200, c=100, seed=i, signal=3.0) for i in range(60)}
    report = build_report(source, targets, method="ac", methods=["ac"])
    pictures = report_pictures(report, source, targets)
    assert len(detailed_targets(report)) == MOST_TARGETS
    page = html_page(report, pictures)
    assert len(page.encode()) < MOST_BYTES
    assert "the 10 of 100 that pull the accuracy down most" in page
    assert len(json.loads(json_text(report, pictures))["targets"][0]["by_class"]) == 100


# ------------------------------------------------------------------------------------------------ the commands
def test_command_writes_each_format(folder: Path, run: Run) -> None:
    words = ["report", "source.npz", "traffic.parquet", "--by", "channel", "--methods", "ac,doc", "--method", "ac"]
    assert run(*words, "-o", "report.html").code == 0
    data = run(*words, "--format", "json").data
    expected = ll.load("ac.leadline").estimate(read_outputs("traffic.parquet").logits).accuracy
    assert data["targets"][0]["accuracy"] == expected
    assert {line["name"] for line in data["targets"][0]["segments"]} == {"app", "mail", "web"}
    assert percent(expected) in Path("report.html").read_text()
    assert percent(expected) in run(*words, "--format", "md").out
    assert run(*words, "-o", "report.md").code == 0
    assert Path("report.md").read_text().startswith("# Estimated accuracy on traffic")
    assert data["settings"]["command"].startswith("leadline report source.npz traffic.parquet")
    assert len(data["settings"]["sha256"]["source.npz"]) == 64


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a page needs a file: use -o report.html"),
        (["-o", "report.docx"], "the report must be one of html, md, json; got 'docx'."),
        (["-o", "source.npz", "--format", "json", "--force"], "must not replace one of its inputs"),
        (["-o", "ac.leadline", "--format", "json"], "file ac.leadline exists; use --force"),
        (["-o", "no/report.html"], "folder no does not exist"),
        (["--format", "json", "--by", "nothing"], "column 'nothing' is not in these outputs"),
        (["--format", "json", "--method", "magic"], "method must be one of"),
        (
            ["--format", "json", "--labelled", "source.npz"],
            "--labelled needs the MODEL that the rows were planned with",
        ),
        (["--format", "json", "--level", "7"], "--level must be a fraction between 0 and 1; got 7."),
    ],
)
def test_wrong_report_options(words: list[str], message: str, folder: Path, run: Run) -> None:
    assert message in run("report", "source.npz", "plain.npz", "--methods", "ac", *words).error


def test_missing_matplotlib_is_said(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.report.find_spec", lambda name: None)
    for words in (["report", "source.npz", "plain.npz"], ["figure", "band", "plain.npz"]):
        assert "pip install 'leadline[report]'" in run(*words, "-o", "a.svg").error


ROWS = [
    {
        "method": "alsa-g",
        "target": "t",
        "variant": "alsa-g 0.9",
        "estimate": 0.8,
        "truth": 0.7,
        "seconds": 0.1,
        "alpha": 0.9,
    },
    {
        "method": "alsa-g",
        "target": "u",
        "variant": "alsa-g 100",
        "estimate": 0.8,
        "truth": 0.9,
        "seconds": 0.2,
        "alpha": 0.5,
    },
]


@pytest.mark.parametrize(
    "words",
    [
        ["plane", "source.npz", "--pair", "1,3"],
        ["plane", "source.npz", "--panel", "truth"],
        ["plane", "source.npz", "--panel", "atc"],
        ["plane", "source.npz", "--panel", "surface"],
        ["anchors", "source.npz"],
        ["anchors", "alsa.leadline", "--pair", "0,4"],
        ["history", "alsa.leadline"],
        ["scatter", "source.npz", "labelled.npz", "--methods", "ac,doc"],
        ["scatter", "rows.json"],
        ["scatter", "rows.csv"],
        ["methods", "source.npz", "plain.npz", "--methods", "ac,doc"],
        ["reliability", "source.npz"],
        ["band", "source.npz", "plain.npz"],
        ["alpha", "rows.json"],
        ["anchor-count", "rows.csv"],
        ["ablation", "rows.json"],
        ["time", "rows.json"],
        ["anchor-sets", "source.npz", "--anchors", "20,10"],
        ["init-surfaces", "source.npz", "--pair", "0,4"],
        ["alpha", "rows.json", "--by", "target"],
        ["workflow"],
    ],
)
def test_figure_command(words: list[str], folder: Path, run: Run) -> None:
    source = read_outputs("source.npz")
    ll.ALSA(n_anchors=20, max_epochs=2).fit(source.logits, source.labels).save("alsa.leadline")
    Path("rows.json").write_text(json.dumps(ROWS))
    lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    result = run("figure", *words, "-o", "figure.svg", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert "<svg" in Path("figure.svg").read_text()


@pytest.mark.parametrize(("words", "shown"), [([], 3), (["--methods", "alsa-g-paper,ac"], 2)])
def test_scatter_of_rows_tells_variants_apart(words: list[str], shown: int, folder: Path, run: Run) -> None:
    variants = {"alsa-g-paper": ("alsa-g", 0.9), "ac": ("ac", 0.75), "alsa-g": ("alsa-g", 0.71)}
    rows = [
        {"method": method, "variant": variant, "target": "t", "estimate": estimate, "truth": 0.7}
        for variant, (method, estimate) in variants.items()
    ]
    Path("rows.json").write_text(json.dumps(rows))
    assert run("figure", "scatter", "rows.json", *words, "-o", "figure.svg", "--quiet").code == 0
    drawn = Path("figure.svg").read_text()
    legend = ["alsa-g-paper (20.0)", "ac (5.0)", "alsa-g (1.0)"]
    assert [name for name in legend if f">{name}<" in drawn or f"<!-- {name} -->" in drawn] == legend[:shown]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["portrait", "source.npz", "-o", "a.svg"], "the figure must be one of plane, anchors, anchor-sets"),
        (["band", "source.npz", "-o", "a.gif"], "the figure must be a .svg, .png, .pdf file"),
        (["plane", "plain.npz", "-o", "a.svg"], "plain.npz must have labels for this figure"),
        (["plane", "source.npz", "-o", "a.svg", "--panel", "x"], "--panel must be one of all, truth"),
        (["plane", "source.npz", "-o", "a.svg", "--pair", "1,99"], "pair must be two different classes from 0 to 4"),
        (["anchors", "ac.leadline", "-o", "a.svg"], "must be a model of alsa-g or alsa-e for this figure; got ac."),
        (["history", "source.npz", "plain.npz", "-o", "a.svg"], "this figure takes one file; got 2."),
        (["time", "source.npz", "-o", "a.svg"], "must be a .json or .csv file of rows"),
        (["scatter", "bad.json", "-o", "a.svg"], "must hold a list of rows"),
        (["scatter", "rows.json", "-o", "a.svg", "--methods", "ac,doc"], "among those of the rows, ac; got doc."),
        (["band", "source.npz", "-o", "ac.leadline"], "the figure must be a .svg"),
        (["band", "-o", "a.svg"], "band takes OUTPUTS...; got no file."),
        (["workflow", "source.npz", "-o", "a.svg"], "workflow takes no file; got source.npz."),
    ],
)
def test_wrong_figures(words: list[str], message: str, folder: Path, run: Run) -> None:
    Path("bad.json").write_text('{"rows": 3}')
    Path("rows.json").write_text('[{"method": "ac", "target": "t", "estimate": 0.8, "truth": 0.7}]')
    assert message in run("figure", *words).error
    assert not Path("a.svg").exists()
