"""What each figure of ``leadline figure`` is drawn from, and by what."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.options import is_model, require_file
from leadline.data.memory import JSON_GROWTH, MemoryLimit
from leadline.data.texts import parse_json
from leadline.errors import InputError

if TYPE_CHECKING:
    from leadline.data.outputs import Outputs
    from leadline.estimators import ALSA

PANELS = ("all", "truth", "atc", "alsa", "surface")


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line.

    Attributes
    ----------
    files
        Paths by name.
    pair
        Two classes, or None.
    panel
        One of :data:`PANELS`.
    three_d
        Draw three classes in three dimensions.
    methods
        Names of methods, or None.
    seed
        Of what has to be fitted.
    classes
        Names of the classes, or None.
    by
        What lines and groups of bars are told apart by.
    anchors
        Numbers of anchors, or None.
    memory_limit
        How much memory a file may take, or None.
    """

    files: Mapping[str, Path]
    pair: Sequence[int] | None
    panel: str
    three_d: bool
    methods: list[str] | None
    seed: int
    classes: list[str] | None
    by: str
    anchors: list[int] | None
    memory_limit: str | None

    def read(self, path: Path) -> Outputs:
        """Read outputs."""
        from leadline.data.files import read_outputs

        return read_outputs(path, classes=self.classes, memory_limit=self.memory_limit)


@dataclass(frozen=True)
class Drawing:
    """A line of the table of figures: what it takes, and what draws it."""

    takes: str
    shows: str
    draw: Callable[[Request], Any]


def _only_file(request: Request) -> Path:
    """Return the one file of a figure that takes one."""
    if len(request.files) != 1:
        raise InputError(f"this figure takes one file; got {len(request.files)}.")
    return require_file(str(next(iter(request.files.values()))))


def _labelled(path: Path, request: Request) -> Outputs:
    """Read labelled outputs."""
    outputs = request.read(path)
    if outputs.labels is None:
        raise InputError(f"{path} must have labels for this figure; got logits only.")
    return outputs


def _alsa(request: Request) -> ALSA:
    """Load the model given, or fit ALSA on the source given."""
    from leadline.estimators import ALSA, load

    path = _only_file(request)
    if is_model(path):
        model = load(path)
        if not isinstance(model, ALSA):
            raise InputError(f"{path} must be a model of alsa-g or alsa-e for this figure; got {model.method}.")
        return model
    outputs = _labelled(path, request)
    return ALSA(seed=request.seed).fit(outputs.logits, outputs.labels)


def _plane(request: Request) -> Any:
    from leadline.estimators import ALSA, AverageThresholdedConfidence
    from leadline.report import surfaces
    from leadline.report.plane import find_plane
    from leadline.report.style import new_figure

    outputs = _labelled(_only_file(request), request)
    z, labels = outputs.logits, outputs.labels
    if request.panel == "all":
        return surfaces.logit_planes(
            z, labels, alsa=ALSA(seed=request.seed).fit(z, labels), pair=request.pair, names=outputs.classes,
            three_d=request.three_d,
        )  # fmt: skip
    plane = find_plane(z, labels, pair=request.pair, names=outputs.classes)
    ax = new_figure(size=surfaces.PANEL_SIZE, three_d=request.three_d)[1][0]
    if request.panel == "truth":
        return surfaces.true_correctness(z, labels, ax, plane=plane)
    if request.panel == "atc":
        return surfaces.atc_decision(AverageThresholdedConfidence().fit(z, labels), z, ax, plane=plane)
    draw = surfaces.alsa_probability if request.panel == "alsa" else surfaces.alsa_surface
    return draw(ALSA(seed=request.seed).fit(z, labels), z, ax, plane=plane)


def _anchors(request: Request) -> Any:
    from leadline.report.learned import anchors

    model = _alsa(request)
    path = _only_file(request)
    logits = None if is_model(path) else _labelled(path, request).logits
    return anchors(model, logits=logits, pair=request.pair, names=request.classes)


def _anchor_sets(request: Request) -> Any:
    from leadline.report.learned import anchor_sets

    outputs = _labelled(_only_file(request), request)
    return anchor_sets(
        outputs.logits, outputs.labels, request.anchors, pair=request.pair, names=outputs.classes, seed=request.seed
    )


def _init_surfaces(request: Request) -> Any:
    from leadline.report.surfaces import initialisation_surfaces

    outputs = _labelled(_only_file(request), request)
    return initialisation_surfaces(
        outputs.logits, outputs.labels, pair=request.pair, names=outputs.classes, seed=request.seed
    )


def _workflow(request: Request) -> Any:
    from leadline.report.workflow import workflow

    del request
    return workflow()


def _history(request: Request) -> Any:
    from leadline.report.learned import fit_history

    return fit_history(_alsa(request))


def _reliability(request: Request) -> Any:
    from leadline.report.learned import reliability

    outputs = _labelled(_only_file(request), request)
    return reliability(outputs.logits, outputs.labels)


def _band(request: Request) -> Any:
    from leadline.report.learned import band

    logits = {path.stem: request.read(path).logits for path in request.files.values()}
    return band(logits if len(logits) > 1 else next(iter(logits.values())))


def _comparison(request: Request) -> list[Any]:
    """Return rows of a comparison: stored ones, or those of a source and its targets."""
    from leadline.comparison import compare

    paths = list(request.files.items())
    if len(paths) == 1:
        return _chosen([_as_row(row) for row in _rows(request)], request.methods)
    source, *targets = paths
    outputs = {Path(name).name: request.read(path) for name, path in targets}
    return list(compare(_labelled(source[1], request), outputs, methods=request.methods, seeds=(request.seed,)))


def _chosen(rows: list[Any], methods: list[str] | None) -> list[Any]:
    """Return the rows of some methods."""
    known = dict.fromkeys(row.method for row in rows)
    if unknown := [name for name in methods or () if name not in known]:
        raise InputError(f"--methods must be among those of the rows, {', '.join(known)}; got {', '.join(unknown)}.")
    return [row for row in rows if methods is None or row.method in methods]


def _as_row(row: Mapping[str, Any]) -> Any:
    """Return a stored row in the form that figures of comparisons take; a variant is a method of its own."""
    from leadline.report.curves import name_of
    from leadline.results.comparison import ComparisonRow

    try:
        accuracy = float(row["estimate"] if "estimate" in row else row["accuracy"])
        truth = float(row["truth"]) if row.get("truth") is not None else None
        low, high = row.get("interval") or (row.get("interval_low", accuracy), row.get("interval_high", accuracy))
        return ComparisonRow(
            method=name_of(row), target=str(row["target"]), seed=None, accuracy=accuracy, truth=truth,
            error=None if truth is None else accuracy - truth, interval=(float(low), float(high)),
            n_samples=int(row.get("n_samples", 0)), seconds=0.0, fit_seconds=0.0,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"each row must have method, target, truth and estimate or accuracy; got {row}.") from error


def _scatter(request: Request) -> Any:
    from leadline.report.scatter import predicted_vs_true

    return predicted_vs_true(_comparison(request))


def _methods(request: Request) -> Any:
    from leadline.report.scatter import method_intervals

    return method_intervals(_comparison(request))


def _rows(request: Request) -> list[Mapping[str, Any]]:
    """Read rows from a JSON or CSV file."""
    path = _only_file(request)
    MemoryLimit.of(request.memory_limit).require(JSON_GROWTH * path.stat().st_size, str(path))
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".csv":
            lines = list(csv.DictReader(text.splitlines(), restkey=""))
            if any("" in line for line in lines):
                raise ValueError("a line has more cells than there are names of columns")
            return [{key: value or None for key, value in line.items()} for line in lines]
        found = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path} must be a .json or .csv file of rows; it cannot be read: {error}.") from error
    rows = found.get("rows") if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} must hold a list of rows, or an object with the list 'rows'.")
    return rows


def _from_rows(name: str, *, grouped: bool = True) -> Callable[[Request], Any]:
    """Return what draws a figure of the benchmark from stored rows, in groups or not."""

    def draw(request: Request) -> Any:
        from leadline.report import curves

        return getattr(curves, name)(_rows(request), **({"by": request.by} if grouped else {}))

    return draw


#: What `leadline figure` can draw.
FIGURES: dict[str, Drawing] = {
    "plane": Drawing("SOURCE", "logits: the truth, ATC's decision, ALSA's probability and its surface", _plane),
    "anchors": Drawing("SOURCE or MODEL", "ALSA's learnt anchors", _anchors),
    "anchor-sets": Drawing("SOURCE", "learnt anchors in logit space, many beside few", _anchor_sets),
    "init-surfaces": Drawing(
        "SOURCE", "ALSA's surface with sampled and random anchors, before and after training", _init_surfaces
    ),
    "scatter": Drawing("SOURCE TARGET... or ROWS", "estimated against true accuracy", _scatter),
    "methods": Drawing("SOURCE TARGET", "estimates of all methods with their intervals", _methods),
    "history": Drawing("SOURCE or MODEL", "how ALSA's fit went", _history),
    "reliability": Drawing("SOURCE", "accuracy against confidence, before and after temperature scaling", _reliability),
    "band": Drawing("OUTPUTS...", "the band that logits lie in", _band),
    "alpha": Drawing("ROWS", "mean absolute error against alpha", _from_rows("error_vs_alpha")),
    "anchor-count": Drawing(
        "ROWS", "mean absolute error against the number of anchors", _from_rows("error_vs_anchors")
    ),
    "ablation": Drawing("ROWS", "mean absolute error of variants, as bars", _from_rows("ablation")),
    "time": Drawing(
        "ROWS", "time of an estimate against mean absolute error", _from_rows("time_vs_error", grouped=False)
    ),
    "workflow": Drawing("", "how ALSA works, as a drawing", _workflow),
}
