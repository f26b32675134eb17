"""Every constant that ALSA's training was given, and where it comes from.

"Study" is ``docs/alsa-defaults.md``: what was measured on the real logits of five suites, and what came after. "Paper"
is the ALSA paper. What names neither was set for the reason beside it, and not tuned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Defaults:
    """What suits one kind of influence; all four from the study.

    Attributes
    ----------
    reach
        Initial width: the average pair of anchor and sample decays to this share of 1/c. With c equally frequent
        classes an anchor then feels this share of its own class and next to nothing of the others, however far cosine
        distances concentrate. The exponential influence has the longer tail and needs the shorter reach.
    steps
        Steps of Adam. More lower the loss on the source and raise the error on targets.
    alpha
        Where alpha starts.
    tolerance
        How much rectification may change the estimate on the source itself: alpha rises until it changes no more. A
        fixed alpha that suits confident models takes the honest doubt of less accurate ones for ignorance.
    """

    reach: float
    steps: int
    alpha: float
    tolerance: float


#: By the power of the distance: 2 for Gaussian influence, 1 for exponential.
DEFAULTS: Mapping[int, Defaults] = MappingProxyType(
    {
        2: Defaults(reach=0.22, steps=200, alpha=0.98, tolerance=0.02),
        1: Defaults(reach=0.12, steps=400, alpha=0.9, tolerance=0.02),
    }
)


@dataclass(frozen=True)
class Constants:
    """What both kinds of influence share."""

    unified_peak: float = 6.0  # paper, appendix on the threshold: a probability of 99.75 %; also the largest at first
    epsilon: float = 1e-5  # paper, on the stop rule
    learning_rate: float = 0.02  # study: as accurate as 0.01 throughout, and a lower loss in fewer epochs
    rate_fall: float = 0.95  # study: the rate falls linearly to a twentieth, fast at first and precise at last
    batch_size: int = 256  # study: the one size that it ran with
    fewest_epochs: int = 3  # every row is seen a few times, however few steps a large source would need
    anchors: int = 300  # study: more (1,500 for ten classes) gain nothing
    anchors_per_class: int = 10  # study: some for each class
    folds: int = 3  # geometry study: five fits gain a tenth of a point
    lift_fall: float = 2.0  # geometry study: the lift is the typical length times (2/c) to this power
    width_spread: float = 0.2  # paper: widths start normally distributed; how widely, relative to their mean, is ours
    log_widths: tuple[float, float] = (-2.5, 7.0)  # where initial widths are sought: all within reach, to nothing
    least_influence: float = 0.1  # initial mean |total influence| at an accuracy near 1/2: peaks of 0 learn nothing
    fewest_others: int = 50  # rows that are no anchors; fewer could not judge what the anchors reach, and all rows do
    sample: int = 1024  # source rows that set the initial widths and peaks: a mean over them is steady enough to start
    anchor_sample: int = 1024  # anchors that set the initial widths: likewise


CONSTANTS = Constants()


@dataclass(frozen=True)
class PaperChoices:
    """What the paper leaves open for one kind of influence, with one setting for all data (docs/studies/alsa_paper.py).

    Attributes
    ----------
    peak
        The constant initial peak, positive at right and negative at wrong samples.
    width
        Mean and standard deviation of the normal distribution of the initial widths.
    alpha
        The fixed share of the area within reach.
    learning_rate, max_epochs
        Of the training.
    """

    peak: float
    width: tuple[float, float]
    alpha: float
    learning_rate: float
    max_epochs: int


PAPER: Mapping[str, PaperChoices] = MappingProxyType(
    {
        "gaussian": PaperChoices(peak=0.05, width=(10.0, 2.0), alpha=0.98, learning_rate=0.02, max_epochs=100),
        "exponential": PaperChoices(peak=0.05, width=(10.0, 2.0), alpha=0.9, learning_rate=0.02, max_epochs=100),
    }
)

#: The paper's numbers of anchors, by dataset; it gives none for ogbn-arxiv.
PAPER_ANCHORS: Mapping[str, int] = MappingProxyType(
    {
        "cifar10": 3000,
        "cifar100": 3000,
        "imagenet": 20_000,
        "amazon": 5000,
        "waterbirds": 500,
        "mnist": 3000,
        "office31": 300,
    }
)
