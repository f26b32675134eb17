"""What was learned: ALSA's anchors and how their fit went, calibration, and the band that logits lie in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from leadline.data.outputs import FloatArray, as_labels, as_logits
from leadline.errors import InputError
from leadline.estimators.alsa.band import band_width
from leadline.estimators.alsa.geometry import centre
from leadline.numeric import log_softmax, normal_quantile
from leadline.report.plane import checked_pair
from leadline.report.style import COLOURS, SIGNED, axes_or_new, look_across, new_figure, short, styled, tidy
from leadline.shift.calibration import fit_temperature

if TYPE_CHECKING:
    from leadline.estimators import ALSA

_BINS = 10
_LEAST_PER_BIN = 5  # the accuracy of fewer rows says nothing
_LARGEST_DOT = 160.0
_MANY = 200  # anchors beyond which dots shrink, so that they do not cover each other
_MOST_BEHIND = 5_000


@styled
def anchors(
    estimator: ALSA,
    ax: Axes | None = None,
    *,
    logits: Any = None,
    pair: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw the learned anchors: position, peak as colour, reach as size.

    Parameters
    ----------
    estimator
        A fitted ``ALSA``.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned. Three-dimensional axes take
        three classes.
    logits
        Shape (n, c): the source, drawn faintly behind the anchors, which are placed among it; None for the anchors'
        own entries.
    pair
        The two classes whose logits are the axes; None for all of two or three classes, and for the pair that most
        negative anchors lie between of more.
    names
        The names of the classes.

    Notes
    -----
    The reach is the cosine distance at which an influence falls to half its peak: ``sqrt(log 2) / |v|`` for the
    Gaussian influence, ``log 2 / v^2`` for the exponential one. A large dot reaches far by angle, not by the
    distance that the eye sees.
    """
    estimator._check_fitted()
    in_space = ax.name == "3d" if ax is not None else pair is None and estimator.n_classes_ == 3
    if in_space and estimator.n_classes_ != 3:
        raise InputError(f"logits must have 3 classes to be drawn in three dimensions; got {estimator.n_classes_}.")
    shown: tuple[int, ...] = (0, 1, 2)
    if not in_space:
        shown = _mistaken(estimator) if pair is None else checked_pair(pair, estimator.n_classes_)
    source = None if logits is None else as_logits(logits)
    if source is not None and estimator.lift_:
        source = centre(source)
    positions = np.asarray(estimator.anchors_, dtype=np.float64)
    if source is not None and not estimator.lift_:  # lifted anchors have lengths of their own
        positions = _among(positions, source)
    reach = anchor_reach(estimator)
    peaks = np.asarray(estimator.peaks_, dtype=np.float64)
    drawn: Any = axes_or_new(ax, size=(4.4, 3.4), three_d=in_space)
    limit = float(np.quantile(np.abs(peaks), 0.99)) or 1.0  # one strong anchor would leave the others without colour
    order = np.argsort(peaks)[::-1]  # the negative ones are fewer, and in front
    largest = _LARGEST_DOT * min(1.0, (_MANY / len(peaks)) ** 0.5)
    scale = largest / float(np.quantile(reach, 0.99)) ** 2
    depth: dict[str, Any] = {"depthshade": False} if in_space else {}
    dots = drawn.scatter(
        *positions[order][:, shown].T,
        c=peaks[order],
        s=np.clip(scale * reach[order] ** 2, 4.0, 1.5 * largest),
        cmap=SIGNED,
        vmin=-limit,
        vmax=limit,
        edgecolors="0.35",
        linewidths=0.4,
        alpha=0.9,
        **depth,
    )
    if source is not None and not in_space:  # in space they would hide what lies behind them
        behind = source[np.linspace(0, len(source) - 1, min(len(source), _MOST_BEHIND)).astype(int)]
        drawn.scatter(*behind[:, shown].T, s=2.0, c="0.85", linewidths=0, zorder=0, rasterized=True)
    below = {"location": "bottom", "shrink": 0.6, "pad": 0.1} if in_space else {}  # beside it, the next panel begins
    label = "peak (positive: right, negative: wrong)"
    drawn.figure.colorbar(dots, ax=drawn, label=label, extend="both", **below)
    keys = [float(f"{value:.2g}") for value in np.quantile(reach, [0.05, 0.5, 0.95])]
    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=np.sqrt(scale) * key, markerfacecolor="none",
               markeredgecolor="0.35", label=f"{key:g}")
        for key in dict.fromkeys(keys)
    ]  # fmt: skip
    place = "upper left" if in_space else "best"
    drawn.legend(handles=handles, title="reach", framealpha=0.85, edgecolor="none", loc=place)
    entry = "anchor's entry for class" if source is None else "logit of class"
    labels = [f"{entry} {short(names[i] if names else i)}" for i in shown]
    drawn.set(**dict(zip(("xlabel", "ylabel", "zlabel"), labels, strict=False)))
    drawn.set_title(f"{len(peaks)} learnt anchors")
    if in_space:
        look_across(drawn)
    else:
        tidy(drawn)
    return drawn  # type: ignore[no-any-return]


@styled
def anchor_sets(
    logits: Any,
    labels: Any,
    counts: Sequence[int] | None = None,
    *,
    pair: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
) -> Figure:
    """Draw the anchors that ALSA-G learns with more and with fewer of them, side by side and on the same axes.

    Parameters
    ----------
    logits
        Shape (n, c): the source.
    labels
        Shape (n,): the true classes.
    counts
        How many anchors; None for the paper's 500 and 100 with two classes, 2000 and 500 with more.
    pair, names
        As in :func:`anchors`.
    seed
        Of the fits.
    """
    from leadline.estimators import ALSA

    logits = as_logits(logits)
    n_classes = logits.shape[1]
    chosen = counts or ((500, 100) if n_classes == 2 else (2000, 500))
    in_space = n_classes == 3 and pair is None
    paper: dict[str, Any] = {"init": "sample", "geometry": "cosine", "folds": 1}
    fits = [ALSA(n_anchors=count, seed=seed, **paper).fit(logits, labels) for count in chosen]
    pair = pair if pair is not None or in_space else _mistaken(fits[0])
    figure, panels = new_figure(len(fits), size=(4.6, 4.4 if in_space else 3.8), three_d=in_space)
    for ax, fit in zip(panels, fits, strict=True):
        anchors(fit, ax, logits=logits, pair=pair, names=names)
    for axis in ("xlim", "ylim", *(("zlim",) if in_space else ())):
        limits = [getattr(ax, f"get_{axis}")() for ax in panels]
        for ax in panels:
            ax.set(**{axis: (min(low for low, _ in limits), max(high for _, high in limits))})
    return figure


def _among(positions: FloatArray, logits: FloatArray) -> NDArray[np.float64]:
    """Return where anchors (k, c) lie among logits (n, c).

    The cosine distance does not see an anchor's length. Anchors that were scaled to length 1 before training are
    drawn as long as the logit nearest to them in direction; others where they are.
    """
    points, others = (np.asarray(values, dtype=np.float64) for values in (positions, logits))
    own, lengths = (np.linalg.norm(values, axis=1, keepdims=True) for values in (points, others))
    if np.median(own) > 0.5 * np.median(lengths):
        return points
    units = points / np.maximum(own, np.finfo(float).tiny)
    nearest = (units @ (others / np.maximum(lengths, np.finfo(float).tiny)).T).argmax(axis=1)
    return np.asarray(units * lengths[nearest])


def _mistaken(estimator: ALSA) -> tuple[int, int]:
    """Return the pair of classes that most anchors of wrong predictions lie between."""
    positions = np.asarray(estimator.anchors_)
    wrong = positions[estimator.peaks_ < 0]
    top = np.sort(np.argpartition(wrong if len(wrong) else positions, -2, axis=1)[:, -2:], axis=1)
    pairs, counts = np.unique(top, axis=0, return_counts=True)
    first, second = pairs[counts.argmax()]
    return int(first), int(second)


def anchor_reach(estimator: ALSA) -> NDArray[np.float64]:
    """Return the cosine distance at which each anchor's influence is half its peak, shape (k,)."""
    rate = np.square(np.asarray(estimator.widths_, dtype=np.float64))
    reach = np.log(2.0) / np.maximum(rate, np.finfo(np.float32).tiny)
    return np.asarray(np.sqrt(reach) if estimator.influence_kind == "gaussian" else reach)


@styled
def fit_history(estimator: ALSA, ax: Axes | None = None) -> Axes:
    """Draw how training went: the estimated accuracy on the source against the true one, and the loss.

    Parameters
    ----------
    estimator
        A fitted ``ALSA``.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    """
    estimator._check_fitted()
    drawn = axes_or_new(ax)
    epochs = [step["epoch"] for step in estimator.history_]
    accuracy = [100 * step["accuracy"] for step in estimator.history_]
    few = len(epochs) < 40
    (estimated,) = drawn.plot(
        epochs, accuracy, color=COLOURS[0], marker="o" if few else None, markersize=3, label="estimated accuracy"
    )
    true = drawn.axhline(
        100 * estimator.source_accuracy_, color="0.3", linestyle="--", linewidth=1.0, label="true accuracy"
    )
    low, high = (f(*accuracy, 100 * estimator.source_accuracy_) for f in (min, max))
    room = max(0.25 * (high - low), 0.5)
    drawn.set(xlabel="epoch", ylabel="accuracy on the source (%)", ylim=(low - room, high + 2.5 * room))
    losses = drawn.twinx()
    (loss,) = losses.plot(
        epochs,
        [step["loss"] for step in estimator.history_],
        color=COLOURS[1],
        linestyle=":",
        marker="s" if few else None,
        markersize=3,
        label="loss",
    )
    losses.set_ylabel("loss (binary cross-entropy)")
    bottom, top = losses.get_ylim()
    losses.set_ylim(bottom, top + 0.35 * (top - bottom))  # room for the legend
    losses.spines["top"].set_visible(False)
    drawn.spines["top"].set_visible(False)
    drawn.set_title(f"{estimator.method.upper()}: {len(epochs)} epochs, {estimator.stop_reason_.replace('_', ' ')}")
    drawn.legend(
        handles=[estimated, true, loss], frameon=False, ncols=3, loc="upper center", columnspacing=0.8, fontsize=7
    )
    return drawn


@styled
def reliability(logits: Any, labels: Any, ax: Axes | None = None) -> Axes:
    """Draw accuracy against confidence before and after temperature scaling.

    Parameters
    ----------
    logits
        Shape (n, c).
    labels
        Shape (n,): the true classes, on which the temperature is fitted.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.

    Notes
    -----
    Ten bins of equal width; the expected calibration error in the legend is the mean distance of a bin's accuracy
    from its confidence, weighted by its rows. Bins of fewer than five rows are not drawn.
    """
    logits = as_logits(logits)
    labels = as_labels(labels, logits)
    temperature = fit_temperature(logits, labels)
    drawn = axes_or_new(ax)
    drawn.axline((50.0, 50.0), slope=1.0, color="0.6", linewidth=1.0, zorder=0)
    correct = logits.argmax(axis=1) == labels
    cases = (("before scaling", 1.0, COLOURS[1], "s", "--"), (f"after, T = {temperature:.2f}", temperature,
             COLOURS[0], "o", "-"))  # fmt: skip
    for name, value, colour, marker, line in cases:
        confidence, accuracy, share = reliability_bins(logits, correct, value)
        error = float(share @ np.abs(accuracy - confidence))
        enough = share * len(correct) >= _LEAST_PER_BIN
        drawn.plot(
            100 * confidence[enough], 100 * accuracy[enough], line, color=colour, marker=marker, clip_on=False,
            label=f"{name}: off by {100 * error:.1f} points",
        )  # fmt: skip
    low = 100.0 * np.floor(10.0 / logits.shape[1]) / 10.0
    drawn.set(xlabel="confidence (%)", ylabel="accuracy (%)", xlim=(low, 100), ylim=(0, 100))
    drawn.legend(frameon=False, loc="best")
    tidy(drawn)
    return drawn


def reliability_bins(
    logits: FloatArray, correct: NDArray[np.bool_], temperature: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean confidence, accuracy and share of the rows of each bin of confidence that has any."""
    confidence = np.exp(log_softmax(logits, temperature).max(axis=1))
    bins = np.minimum((_BINS * confidence).astype(int), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    used = count > 0
    sums = (np.bincount(bins, weights=values, minlength=_BINS)[used] for values in (confidence, correct))
    mean_confidence, accuracy = (total / count[used] for total in sums)
    return mean_confidence, accuracy, count[used] / len(correct)


@styled
def band(logits: Any | Mapping[str, Any], ax: Axes | None = None, *, confidence: float = 0.999) -> Axes:
    """Draw the band that logits lie in: how they spread along (1, ..., 1), and how narrow that is.

    Parameters
    ----------
    logits
        Shape (n, c); or several such arrays by name, of which the first has its band shaded.
    ax
        Where to draw; None for a new figure, found at ``.figure`` of what is returned.
    confidence
        Share of a normal distribution that the band of :func:`leadline.band_width` is to hold.

    Notes
    -----
    The title compares the band with the same measure across it, in the direction in which the first logits vary
    most.
    """
    given = logits if isinstance(logits, Mapping) else {"": logits}
    if not given:
        raise InputError("logits must have at least one entry; got none.")
    drawn = axes_or_new(ax)
    arrays = {name: as_logits(value) for name, value in given.items()}
    first = next(iter(arrays.values()))
    along = {name: array.sum(axis=1, dtype=np.float64) / np.sqrt(array.shape[1]) for name, array in arrays.items()}
    widths = {name: band_width(array, confidence) for name, array in arrays.items()}
    low, high = (f(np.quantile(values, q) for values in along.values()) for f, q in ((min, 0.001), (max, 0.999)))
    centre, width = float(next(iter(along.values())).mean()), next(iter(widths.values()))
    low, high = min(low, centre - 0.6 * width), max(high, centre + 0.6 * width)
    if high <= low:  # centred logits, such as those of a model with one score
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, 61).tolist()
    drawn.axvspan(centre - width / 2, centre + width / 2, color=COLOURS[0], alpha=0.12, linewidth=0)
    for position, (name, values) in enumerate(along.items()):
        drawn.hist(
            np.clip(values, low, high), edges, weights=np.full(len(values), 100 / len(values)), histtype="step",
            linewidth=1.5, color=COLOURS[position % len(COLOURS)], linestyle=("-", "--", ":", "-.")[position % 4],
            label=f"{short(name) + ': ' if name else ''}band {widths[name]:.3g} wide",
        )  # fmt: skip
    drawn.set(xlabel="sum of a sample's logits / √(number of classes)", ylabel="share of the samples (%)")
    across = 2 * normal_quantile(0.5 + confidence / 2) * _deviation_across(first)
    drawn.set_title(f"across the band the logits are {across:.3g} wide")
    drawn.set_ylim(0, 1.4 * drawn.get_ylim()[1])
    drawn.legend(frameon=False, loc="upper right")
    tidy(drawn)
    return drawn


def _deviation_across(logits: FloatArray) -> float:
    """Return the largest standard deviation of logits in any direction orthogonal to (1, ..., 1)."""
    across = np.asarray(logits, dtype=np.float64)
    across = across - across.mean(axis=1, keepdims=True)
    return float(np.sqrt(np.linalg.eigvalsh(np.cov(across.T, bias=True))[-1]))
