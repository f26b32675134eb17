"""The table of methods: Leadline's own, and those that installed packages add to it.

A package adds a method by an entry point of the group ``leadline.methods``; CONTRIBUTING.md shows one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leadline.data.names import one_line
from leadline.errors import InputError, PluginWarning
from leadline.estimators.alsa.model import ALSA
from leadline.estimators.auto import Auto
from leadline.estimators.base import Estimator
from leadline.estimators.calibrated import CalibratedConfidence
from leadline.estimators.confidence import (
    AverageConfidence,
    AverageThresholdedConfidence,
    DifferenceOfConfidence,
)
from leadline.estimators.importance import ImportanceReweighting
from leadline.estimators.transport import ConfidenceTransport, ThresholdedTransport

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "leadline.methods"
# A name stands in lists separated by commas and in file names.
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Method:
    """A line of the table of methods: how to make the estimator, and what to tell people about it.

    Attributes
    ----------
    cls
        The estimator class.
    summary
        What it computes, in a few words.
    assumption
        When it is right.
    reference
        Who published it.
    options
        Options that make it this method and no other.

    Examples
    --------
    >>> Method(AverageConfidence, options={"temperature_scaling": False})()
    AverageConfidence(temperature_scaling=False)
    """

    cls: type[Estimator]
    summary: str = ""
    assumption: str = ""
    reference: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **params: Any) -> Estimator:
        """Make an estimator of this method."""
        self.cls._require_options(params)
        return self.cls(**{**self.options, **params})


_BUILT_IN: Mapping[str, Method] = MappingProxyType({
    "auto": Method(
        Auto, "the readings whose assumptions hold on the target, combined",
        "the target is a reweighted, flattened or drifted source", "Leadline",
    ),
    "alsa-g": Method(
        ALSA, "learned anchors in logit space, Gaussian influence",
        "predictions near each other in logit direction are right equally often", "Liu et al. 2025",
    ),
    "alsa-e": Method(
        ALSA, "learned anchors in logit space, exponential influence",
        "predictions near each other in logit direction are right equally often", "Liu et al. 2025",
        {"influence": "exponential"},
    ),
    "ac": Method(
        AverageConfidence, "mean confidence",
        "confidence is calibrated on the target", "Hendrycks & Gimpel 2017",
    ),
    "cbpe": Method(
        CalibratedConfidence,
        "mean confidence, calibrated for each predicted class",
        "calibration, class by class, is the source's",
        "after NannyML",
    ),
    "doc": Method(
        DifferenceOfConfidence, "source accuracy plus the change of mean confidence",
        "the target is miscalibrated by as much as the source", "Guillory et al. 2021",
    ),
    "im": Method(
        ImportanceReweighting, "source accuracy reweighted to the target's confidences",
        "equal confidence means equal accuracy on source and target", "Chen et al. 2021",
    ),
    "atc-mc": Method(
        AverageThresholdedConfidence, "share above the source's confidence threshold",
        "errors are what falls below one fixed confidence", "Garg et al. 2022",
    ),
    "atc-ne": Method(
        AverageThresholdedConfidence, "share below the source's entropy threshold",
        "errors are what rises above one fixed entropy", "Garg et al. 2022", {"score": "entropy"},
    ),
    "cot": Method(
        ConfidenceTransport, "cost of moving the confidences onto the source's labels",
        "the target's classes are as frequent as the source's", "Lu et al. 2023",
    ),
    "cott": Method(
        ThresholdedTransport, "share of rows moved at less than the source's threshold cost",
        "the target's classes are as frequent as the source's", "Lu et al. 2023",
    ),
})  # fmt: skip

#: Methods that need more than logits: what to say to those who ask for them here.
_ELSEWHERE: Mapping[str, str] = MappingProxyType({
    "gnn-evaluator": "gnn-evaluator needs graphs and the trained network, not logits alone; "
    "use leadline.bench.graphs.evaluator.GNNEvaluator or `leadline bench run citation-graphs`.",
})  # fmt: skip


class Methods(Mapping[str, Method]):
    """All methods by name, Leadline's own first; cannot be changed.

    Packages are looked through when the table is listed or asked for a name that is not Leadline's own, once.
    """

    __slots__ = ()

    def __getitem__(self, name: str) -> Method:
        """Return a method by its name."""
        return _BUILT_IN[name] if name in _BUILT_IN else _plugins()[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        yield from _BUILT_IN
        yield from _plugins()

    def __len__(self) -> int:
        """Return the number of methods."""
        return len(_BUILT_IN) + len(_plugins())

    def __repr__(self) -> str:
        """Return the names."""
        return f"<methods {', '.join(self)}>"


METHODS = Methods()


def make(name: str, **params: Any) -> Estimator:
    """Make an estimator by the name of its method.

    Examples
    --------
    >>> make("ac").method
    'ac'
    """
    if name not in METHODS:
        raise InputError(_ELSEWHERE.get(name, f"method must be one of {', '.join(METHODS)}; got {name!r}."))
    return METHODS[name](**params)


@cache
def _plugins() -> Mapping[str, Method]:
    """Return the methods of other packages by name; one that cannot be used is left out with a warning."""
    from importlib.metadata import entry_points  # loads what reads e-mail: not for Leadline's own methods

    found: dict[str, Method] = {}
    # In an order that does not depend on where packages are installed.
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            if point.name in found or point.name in _BUILT_IN or point.name in _ELSEWHERE:
                owner = "another package" if point.name in found else "Leadline"
                raise InputError(f"{owner} has a method of this name, which cannot be replaced; choose another.")
            found[point.name] = _method_of(point)
        except (Exception, SystemExit) as error:  # the code of others may fail in any way
            package = "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
            reason = one_line(error) if isinstance(error, InputError) else f"{type(error).__name__}: {one_line(error)}"
            warnings.warn(
                f"method {point.name!r} ({point.value}) of {package} is left out: {reason}", PluginWarning, stacklevel=2
            )
    return MappingProxyType(found)


def _method_of(point: EntryPoint) -> Method:
    """Return the method that an entry point names, after checking that all of Leadline can work with it."""
    if not _NAME.fullmatch(point.name):
        raise InputError("a name must be of letters, digits, '.', '_' and '-', and begin with a letter or a digit.")
    loaded = point.load()
    if isinstance(loaded, Method):
        method = loaded
    elif isinstance(loaded, type) and issubclass(loaded, Estimator):
        method = Method(loaded, summary=next(iter((loaded.__doc__ or "").strip().splitlines()), ""))
    else:
        raise InputError(
            "an entry point must name a subclass of leadline.Estimator or a leadline.Method; "
            f"got {getattr(loaded, '__name__', type(loaded).__name__)}."
        )
    # A constructor only stores, so that making one costs nothing and shows that every option has a default.
    if (own := method().method) != point.name:
        raise InputError(f"its estimators must have this name as `method`, by which files know them; got {own!r}.")
    return method
