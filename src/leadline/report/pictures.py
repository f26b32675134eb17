"""The figures of a report: which there are, what each shows, and how to draw it when it is wanted."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.data.outputs import Outputs

if TYPE_CHECKING:
    from leadline.report.content import Report

#: Targets that get figures of their own: those with the lowest estimates. More would not fit on one page.
MOST_TARGETS = 4


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of a report.

    Attributes
    ----------
    name
        A short name, for file names.
    title, caption
        What it is called and what it shows.
    draw
        Draws it; returns axes.
    target
        The target it belongs to; None for the source and the method.
    raster
        Store pixels and not shapes, where shapes would carry positions of single samples or anchors.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Any]
    target: str | None = None
    raster: bool = False

    def image(self) -> tuple[str, bytes]:
        """Draw it and return the media type and the bytes."""
        from leadline.report.style import save_bytes

        kind = "png" if self.raster else "svg"
        return ("image/png" if self.raster else "image/svg+xml"), save_bytes(self.draw(), kind)

    def data_uri(self) -> str:
        """Draw it and return it as text that a page can hold."""
        media, data = self.image()
        return f"data:{media};base64,{base64.b64encode(data).decode('ascii')}"


def detailed_targets(report: Report) -> list[str]:
    """Return the names of the targets that get figures, in the order of the report."""
    lowest = sorted(report.targets, key=lambda target: target.estimate.accuracy)[:MOST_TARGETS]
    chosen = {target.name for target in lowest}
    return [target.name for target in report.targets if target.name in chosen]


def report_pictures(report: Report, source: Outputs, targets: Mapping[str, Outputs]) -> list[Picture]:
    """Return the figures of a report, not yet drawn.

    Parameters
    ----------
    report
        What :func:`leadline.report.building.build_report` returned.
    source, targets
        The outputs it was built from; only aggregates of them are drawn.
    """
    from leadline.report import learned, surfaces
    from leadline.report.plane import find_plane
    from leadline.report.scatter import predicted_vs_true

    names = source.classes
    plane = find_plane(source.logits, source.labels, names=names)
    shown = " and ".join(names[k] if names else str(k) for k in plane.classes[:2])
    where = f"samples predicted as {shown}, the most confused classes" if len(plane.classes) == 2 else "all samples"
    if source.n_classes == 2:
        where = "all samples"
    alsa = next((report.fitted[name] for name in ("alsa-g", "alsa-e") if name in report.fitted), None)
    pictures: list[Picture] = []
    for part in report.targets:
        if part.name not in detailed_targets(report):
            continue
        if alsa is not None:
            pictures.append(
                Picture(
                    f"target-{len(pictures)}", "Where ALSA expects errors",
                    f"Mean probability of being right, {where}; cells with fewer than "
                    f"{surfaces.LEAST_PER_CELL} samples are blank.",
                    _later(_target_plane, alsa, targets, part.name, plane), part.name,
                )
            )  # fmt: skip
    if len([row for row in report.comparison if row.truth is not None]) > len(report.comparison.methods):
        pictures.append(
            Picture(
                "scatter", "Estimated against true accuracy",
                "One mark per labelled target and method; on the line, estimates are right.",
                _later(predicted_vs_true, report.comparison),
            )
        )  # fmt: skip
    pictures.append(
        Picture(
            "source", "Where the classifier was right on the source",
            f"Share that was right, {where}; cells with fewer than {surfaces.LEAST_PER_CELL} samples are blank.",
            _later(surfaces.true_correctness, source.logits, source.labels, plane=plane, detail="cells"),
        )
    )  # fmt: skip
    if alsa is not None:
        pictures += [
            Picture(
                "surface", "What ALSA learned from that",
                "Probability of being right at every place of the same plane; hatched places are unlike anything in "
                "the source and count as a guess among the classes.",
                _later(surfaces.alsa_surface, alsa, source.logits, plane=plane), raster=True,
            ),
            Picture(
                "anchors", "ALSA's anchors",
                "Places in the space of outputs that ALSA learned from: orange where predictions are wrong, purple "
                "where they are right; a larger one speaks for a wider neighbourhood.",
                _later(learned.anchors, alsa, pair=plane.classes[:2], names=names), raster=True,
            ),
            Picture(
                "history", "How the fit went",
                "Estimated and true accuracy on the source, and the loss, after each pass over the source.",
                _later(learned.fit_history, alsa),
            ),
        ]  # fmt: skip
    pictures += [
        Picture(
            "reliability", "Is the confidence calibrated on the source?",
            "On the line, a prediction made with 80 % confidence is right 80 % of the time.",
            _later(learned.reliability, source.logits, source.labels),
        ),
        Picture(
            "band", "Are the outputs of one size?",
            "The sum of a sample's logits, scaled: source and target should lie in the same narrow band.",
            _later(_band, source, targets, detailed_targets(report)[:2]),
        ),
    ]  # fmt: skip
    return pictures


def _later(function: Callable[..., Any], *args: Any, **keywords: Any) -> Callable[[], Any]:
    """Return a call that waits until the figure is wanted."""
    return lambda: function(*args, **keywords)


def _target_plane(alsa: Any, targets: Mapping[str, Outputs], name: str, plane: Any) -> Any:
    """Draw a target, which is read only now."""
    from leadline.report.surfaces import alsa_probability

    return alsa_probability(alsa, targets[name].logits, plane=plane, detail="cells")


def _band(source: Outputs, targets: Mapping[str, Outputs], chosen: list[str]) -> Any:
    """Draw the band of the source and of some targets."""
    from leadline.report.learned import band

    return band({"source": source.logits} | {name: targets[name].logits for name in chosen})
