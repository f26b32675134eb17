"""Figures: what is on the axes, not how it looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import leadline as ll
from leadline import InputError, Outputs
from leadline.report import curves, learned, style, surfaces
from leadline.report.plane import find_plane, most_confused
from leadline.report.scatter import method_intervals, predicted_vs_true
from leadline.report.workflow import workflow
from leadline.results.comparison import ComparisonRow

Make = Callable[..., Outputs]


@pytest.fixture(scope="module")
def fitted(make_outputs: Make) -> dict[int, tuple[Any, Any, ll.ALSA, ll.AverageThresholdedConfidence]]:
    """By number of classes: logits, labels, and both estimators fitted on them."""
    found = {}
    for c in (2, 3, 5):
        outputs = make_outputs(n=400, c=c)
        z, y = outputs.logits, outputs.labels
        alsa = ll.ALSA(n_anchors=40, max_epochs=5).fit(z, y)
        found[c] = (z, y, alsa, ll.AverageThresholdedConfidence().fit(z, y))
    return found


def row(method: str, accuracy: float, truth: float | None, target: str = "a") -> ComparisonRow:
    error = None if truth is None else accuracy - truth
    return ComparisonRow(method, target, None, accuracy, truth, error, (accuracy - 0.1, accuracy + 0.1), 10, 0.1, 0.2)


# ------------------------------------------------------------------------------------------------------ style
def test_correctness_colours_darken_all_the_way() -> None:
    colours = np.array([style.CORRECTNESS(x)[:3] for x in np.linspace(0, 1, 50)])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) < 0).all()
    assert luminance[0] / luminance[-1] > 5


def test_a_method_looks_the_same_in_every_figure() -> None:
    assert style.looks(ll.METHODS)["doc"] == style.looks(["doc"])["doc"] == style.looks(["doc-paper", "doc"])["doc"]
    looks = style.looks(["alsa-g-paper", *ll.METHODS])
    assert len({(look["color"], look["marker"]) for look in looks.values()}) == len(looks)


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_suffix_decides_the_kind(kind: str, start: bytes, tmp_path: Path) -> None:
    ax: Any = curves.error_against_time({"ac": (0.1, 0.02)})
    style.save(ax, tmp_path / f"a.{kind}")
    data = (tmp_path / f"a.{kind}").read_bytes()
    assert data.startswith(start)
    assert data == style.save_bytes(curves.error_against_time({"ac": (0.1, 0.02)}), kind)


def test_unknown_kind() -> None:
    with pytest.raises(InputError, match=r"must be a \.svg, \.png, \.pdf file; got 'a\.gif'"):
        style.check_kind("a.gif")


def test_settings_of_the_caller_stay() -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    curves.error_against_time({"ac": (0.1, 0.02)})
    assert matplotlib.rcParams["font.size"] == before


# ------------------------------------------------------------------------------------------------------ plane
def test_plane_of_two_classes_is_the_logits(fitted: Any) -> None:
    z = fitted[2][0]
    plane = find_plane(z)
    np.testing.assert_array_equal(plane.project(z), z.astype(np.float64))
    np.testing.assert_allclose(plane.lift(plane.project(z)), z, atol=1e-12)


def test_plane_of_three_classes_loses_least(fitted: Any) -> None:
    z = fitted[3][0].astype(np.float64)
    plane = find_plane(z)
    np.testing.assert_allclose(plane.directions @ plane.directions.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(plane.project(plane.lift(np.array([[1.0, -2.0]]))), [[1.0, -2.0]], atol=1e-12)
    lost = np.square(plane.lift(plane.project(z)) - z).sum()
    assert lost == pytest.approx(np.linalg.svd(z - z.mean(0), compute_uv=False)[-1] ** 2)


def test_plane_of_a_pair_expects_the_other_logits(rng: np.random.Generator) -> None:
    z = rng.normal(size=(300, 4))
    z[:, 2] = 1.0 + 2.0 * z[:, 0] - z[:, 3]
    plane = find_plane(z, pair=(0, 3))
    np.testing.assert_allclose(plane.lift(np.array([[0.5, 0.25]]))[0, [0, 2, 3]], [0.5, 1.75, 0.25], atol=1e-9)


def test_most_confused_counts_errors_both_ways() -> None:
    logits = np.eye(4)[[0, 0, 1, 2, 3, 3, 1]]
    assert most_confused(logits, np.array([0, 0, 3, 2, 1, 3, 2])) == (1, 3)


def test_most_confused_without_errors_goes_by_confidence() -> None:
    logits = np.array([[5.0, 0.0, 4.9], [0.0, 5.0, -3.0], [1.0, -2.0, 5.0]])
    assert most_confused(logits, np.array([0, 1, 2])) == most_confused(logits) == (0, 2)


@pytest.mark.parametrize("pair", [(0, 0), (0, 9), (1,), (-1, 2)])
def test_wrong_pair(pair: Any, fitted: Any) -> None:
    with pytest.raises(InputError, match="pair must be two different classes from 0 to 4"):
        find_plane(fitted[5][0], pair=pair)


# --------------------------------------------------------------------------------------------- logits on a plane
@pytest.mark.parametrize("c", [2, 3, 5])
def test_true_correctness_draws_every_row_on_the_plane(c: int, fitted: Any) -> None:
    z, y, _, _ = fitted[c]
    ax: Any = surfaces.true_correctness(z, y)
    right, wrong = (collection.get_offsets() for collection in ax.collections)
    plane = find_plane(z, y)
    shown, correct = plane.shows(z), z.argmax(1) == y
    np.testing.assert_allclose(right, plane.project(z[shown & correct]))
    np.testing.assert_allclose(wrong, plane.project(z[shown & ~correct]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == plane.labels
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["right", "wrong"]


def test_atc_accepts_what_its_estimate_counts(fitted: Any) -> None:
    z, _, _, atc = fitted[2]
    right, wrong = (len(np.asarray(dots.get_offsets())) for dots in surfaces.atc_decision(atc, z).collections)
    share = right / (right + wrong)
    assert share == pytest.approx(atc.estimate(z).accuracy)


def test_alsa_probability_has_the_estimates_values(fitted: Any) -> None:
    z, _, alsa, _ = fitted[3]
    ax: Any = surfaces.alsa_probability(alsa, z)
    np.testing.assert_allclose(np.sort(ax.collections[0].get_array()), np.sort(alsa.probabilities(z)[0]))
    assert (ax.collections[0].norm.vmin, ax.collections[0].norm.vmax) == (0, 1)


@pytest.mark.parametrize("c", [2, 3, 5])
def test_surface_is_the_model_at_each_place(c: int, fitted: Any) -> None:
    z, y, alsa, _ = fitted[c]
    plane = find_plane(z, y)
    ax: Any = surfaces.alsa_surface(alsa, z, plane=plane)
    mesh = ax.collections[0]
    grid = np.asarray(mesh.get_coordinates())
    centres = (grid[:-1, :-1] + grid[1:, 1:]) / 2
    values = np.asarray(mesh.get_array()).reshape(centres.shape[:2])
    place = centres[40, 70]
    expected = alsa.probabilities(plane.lift(place[None]))[0]
    assert values[40, 70] == pytest.approx(expected[0], abs=1e-6)
    shown = plane.project(z[plane.shows(z)])
    assert ax.get_xlim()[0] <= shown[:, 0].min()
    assert ax.get_xlim()[1] >= shown[:, 0].max()


def test_initialisation_surfaces_are_before_and_after_training(fitted: Any) -> None:
    z, y, _, _ = fitted[3]
    panels = [ax for ax in surfaces.initialisation_surfaces(z, y).axes if ax.get_title()]
    values = {ax.get_title(): np.asarray(ax.collections[0].get_array()).ravel() for ax in panels}
    assert list(values) == [
        f"{word} anchors, {when}" for word in ("sampled", "random") for when in ("at initialisation", "after training")
    ]
    grid = np.asarray(panels[3].collections[0].get_coordinates())  # type: ignore[attr-defined]
    centres = ((grid[:-1, :-1] + grid[1:, 1:]) / 2).reshape(-1, 2)
    for init, word in (("sample", "sampled"), ("random", "random")):
        for learn, when in (((), "at initialisation"), (("anchors", "peaks", "widths"), "after training")):
            alsa = ll.ALSA(init=init, learn=learn, seed=0, geometry="cosine", folds=1).fit(z, y)  # type: ignore[arg-type]
            expected = alsa.probabilities(find_plane(z, y).lift(centres[7000:7001]))[0]
            assert values[f"{word} anchors, {when}"][7000] == pytest.approx(expected[0], abs=1e-6)


def test_cells_hide_groups_of_fewer_than_three(rng: np.random.Generator) -> None:
    z = np.concatenate([rng.normal(size=(400, 2)), [[40.0, -40.0]]])
    cells: Any = surfaces.true_correctness(z, z.argmax(1), detail="cells").collections[0]
    drawn = np.asarray(cells.get_offsets())
    assert len(drawn) > 1
    assert drawn.max() < 20


def test_three_dimensions_are_for_three_classes(fitted: Any) -> None:
    z, y, alsa, atc = fitted[3]
    assert surfaces.logit_planes(z, y, alsa=alsa, atc=atc, three_d=True).axes[0].name == "3d"
    figure = Figure()
    ax: Any = figure.add_subplot(projection="3d")
    with pytest.raises(InputError, match="must have 3 classes to be drawn in three dimensions; got 5"):
        surfaces.true_correctness(fitted[5][0], fitted[5][1], ax)


def test_panels_share_one_plane(fitted: Any) -> None:
    z, y, alsa, atc = fitted[5]
    figure = surfaces.logit_planes(z, y, alsa=alsa, atc=atc, pair=(1, 4), names=list("abcde"))
    panels = [ax for ax in figure.axes if ax.get_title()]
    titles = ["true correctness", "ATC-MC's decision", "ALSA-G's probability", "ALSA-G's surface"]
    assert [ax.get_title() for ax in panels] == titles
    assert {ax.get_xlabel() for ax in panels} == {"logit of class b"}
    assert {ax.get_ylabel() for ax in panels} == {"logit of class e"}


def test_every_function_draws_where_it_is_told(fitted: Any) -> None:
    z, y, alsa, atc = fitted[2]
    draws: tuple[Callable[[Any], Any], ...] = (
        lambda ax: surfaces.true_correctness(z, y, ax),
        lambda ax: surfaces.atc_decision(atc, z, ax),
        lambda ax: surfaces.alsa_probability(alsa, z, ax),
        lambda ax: surfaces.alsa_surface(alsa, z, ax),
        lambda ax: learned.anchors(alsa, ax),
        workflow,
        lambda ax: learned.fit_history(alsa, ax),
        lambda ax: learned.reliability(z, y, ax),
        lambda ax: learned.band(z, ax),
        lambda ax: predicted_vs_true([row("ac", 0.5, 0.6)], ax),
        lambda ax: method_intervals([row("ac", 0.5, 0.6)], ax),
        lambda ax: curves.error_vs_alpha([{"alpha": 0.9, "error": 0.1}], ax),
        lambda ax: curves.error_vs_anchors([{"n_anchors": 9, "error": 0.1}], ax),
        lambda ax: curves.ablation([{"variant": "x", "error": 0.1}], ax),
        lambda ax: curves.time_vs_error([{"method": "ac", "seconds": 1.0, "error": 0.1}], ax),
    )
    for draw in draws:
        ax = Figure().add_subplot()
        assert draw(ax) is ax


def test_unknown_detail(fitted: Any) -> None:
    with pytest.raises(InputError, match="detail must be 'points' or 'cells'; got 'dots'"):
        surfaces.true_correctness(*fitted[2][:2], detail="dots")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- what was learned
def test_anchors_show_position_peak_and_reach(fitted: Any) -> None:
    alsa = fitted[5][2]
    dots: Any = learned.anchors(alsa, pair=(3, 1)).collections[0]
    order = np.argsort(alsa.peaks_)[::-1]
    np.testing.assert_allclose(dots.get_offsets(), alsa.anchors_[order][:, [3, 1]], rtol=1e-6)
    np.testing.assert_allclose(dots.get_array(), alsa.peaks_[order], rtol=1e-6)
    reach = learned.anchor_reach(alsa)
    np.testing.assert_allclose(np.exp(-np.square(alsa.widths_ * reach)), 0.5, rtol=1e-5)
    assert np.corrcoef(np.sqrt(dots.get_sizes()), reach[order])[0, 1] > 0.95


@pytest.mark.parametrize("c", [2, 3])
def test_anchors_lie_among_the_logits_of_two_and_three_classes(c: int, fitted: Any) -> None:
    z, y = fitted[c][:2]
    alsa = ll.ALSA(n_anchors=40, max_epochs=5, geometry="cosine", folds=1).fit(z, y)
    z = 10 * z  # the anchors were scaled to length 1, and the paper's cosine sees directions only
    ax: Any = learned.anchors(alsa, logits=z)
    assert (ax.name == "3d") == (c == 3)
    order = np.argsort(alsa.peaks_)[::-1]
    dots = ax.collections[0]
    places = np.column_stack(dots._offsets3d) if c == 3 else np.asarray(dots.get_offsets())
    z = z.astype(np.float64)
    units = alsa.anchors_[order].astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    lengths = np.linalg.norm(places, axis=1)
    np.testing.assert_allclose(places / lengths[:, None], units, atol=1e-5)
    nearest = (units @ (z / np.linalg.norm(z, axis=1, keepdims=True)).T).argmax(axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(z[nearest], axis=1), rtol=1e-5)
    assert ax.get_xlabel() == "logit of class 0"


def test_anchors_with_lengths_of_their_own_stay_where_they_are(fitted: Any) -> None:
    z, y, lifted, _ = fitted[2]
    paper = ll.ALSA(n_anchors=40, max_epochs=5, geometry="cosine", folds=1, unit_anchors=False).fit(z, y)
    for alsa in (lifted, paper):
        dots: Any = learned.anchors(alsa, logits=z).collections[0]
        np.testing.assert_allclose(dots.get_offsets(), alsa.anchors_[np.argsort(alsa.peaks_)[::-1]], rtol=1e-6)
    behind = np.asarray(learned.anchors(lifted, logits=z).collections[1].get_offsets())
    np.testing.assert_allclose(behind.sum(axis=1), 0, atol=1e-5)  # among centred logits


def test_space_has_room_for_three_classes_only(fitted: Any) -> None:
    ax: Any = Figure().add_subplot(projection="3d")
    with pytest.raises(InputError, match="must have 3 classes to be drawn in three dimensions; got 5"):
        learned.anchors(fitted[5][2], ax)


def test_anchor_sets_share_their_axes(fitted: Any) -> None:
    z, y, _, _ = fitted[2]
    figure = learned.anchor_sets(z, y, (30, 10))
    many, few = (ax for ax in figure.axes if ax.get_title())
    assert (many.get_title(), few.get_title()) == ("30 learnt anchors", "10 learnt anchors")
    assert [len(np.asarray(ax.collections[0].get_offsets())) for ax in (many, few)] == [30, 10]
    assert (many.get_xlim(), many.get_ylim()) == (few.get_xlim(), few.get_ylim())


@pytest.mark.parametrize(("c", "counts"), [(2, (500, 100)), (3, (2000, 500))])
def test_anchor_sets_have_the_papers_sizes(c: int, counts: tuple[int, int], fitted: Any) -> None:
    titles = [ax.get_title() for ax in learned.anchor_sets(*fitted[c][:2]).axes if ax.get_title()]
    assert titles == [f"{count} learnt anchors" for count in counts]


def test_reach_of_the_exponential_influence(fitted: Any) -> None:
    alsa = ll.ALSA(influence="exponential", n_anchors=10, max_epochs=1).fit(*fitted[3][:2])
    np.testing.assert_allclose(np.exp(-np.square(alsa.widths_) * learned.anchor_reach(alsa)), 0.5, rtol=1e-5)


def test_fit_history_is_the_models(fitted: Any) -> None:
    alsa = fitted[3][2]
    ax: Any = learned.fit_history(alsa)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [100 * step["accuracy"] for step in alsa.history_])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 100 * alsa.source_accuracy_)
    assert "max epochs" in ax.get_title()


def test_reliability_bins_by_hand() -> None:
    logits = np.log(np.array([[0.95, 0.05], [0.93, 0.07], [0.35, 0.65], [0.6, 0.4]]))
    correct = np.array([True, False, True, True])
    confidence, accuracy, share = learned.reliability_bins(logits, correct, 1.0)
    np.testing.assert_allclose(confidence, [0.625, 0.94])
    np.testing.assert_allclose(accuracy, [1.0, 0.5])
    np.testing.assert_allclose(share, [0.5, 0.5])


def test_reliability_improves_with_temperature(make_outputs: Make) -> None:
    outputs = make_outputs(n=4000, c=5)
    ax: Any = learned.reliability(4 * outputs.logits, outputs.labels)
    before, after = (float(text.get_text().split()[-2]) for text in ax.get_legend().get_texts())
    assert before > 10
    assert after < 3


def test_band_says_what_band_width_says(make_outputs: Make) -> None:
    z = make_outputs().logits
    ax: Any = learned.band({"source": z, "other": 2 * z})
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"source: band {ll.band_width(z):.3g} wide", f"other: band {ll.band_width(2 * z):.3g} wide"]


def test_band_of_centred_logits_draws() -> None:
    z = np.array([[1.0, -1.0], [2.0, -2.0], [-1.0, 1.0]])
    ax: Any = learned.band(z)
    assert "0 wide" in ax.get_legend().get_texts()[0].get_text()


# ------------------------------------------------------------------------------------------ rows of experiments
def test_predicted_vs_true_has_the_line_the_points_and_the_errors() -> None:
    rows = [row("ac", 0.5, 0.6), row("ac", 0.8, 0.7, "b"), row("doc", 0.6, 0.6), row("doc", 0.4, None, "c")]
    ax: Any = predicted_vs_true(rows)
    _, ac, doc = ax.lines
    np.testing.assert_allclose(ac.get_xydata(), [[60, 50], [70, 80]])
    np.testing.assert_allclose(doc.get_xydata(), [[60, 60]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ac (10.0)", "doc (0.0)"]
    assert ax.get_xlim() == ax.get_ylim()


def test_method_intervals_are_the_rows() -> None:
    ax: Any = method_intervals([row("ac", 0.5, 0.6), row("cot", 0.7, 0.6)], source_accuracy=0.9)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [40, 60])
    np.testing.assert_allclose(ax.lines[3].get_xdata(), [70])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ac", "cot"]
    assert sorted(line.get_xdata()[0] for line in ax.lines[4:]) == [60, 90]
    with pytest.raises(InputError, match="rows must be of one target"):
        method_intervals([row("ac", 0.5, None), row("ac", 0.5, None, "b")])
