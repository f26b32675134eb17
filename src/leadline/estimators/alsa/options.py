"""Which options of ALSA make sense."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from leadline.errors import InputError
from leadline.estimators.alsa.training import PARTS

if TYPE_CHECKING:
    from leadline.estimators.alsa.model import ALSA

_FASTEST = 1e6  # a learning rate; far beyond what any fit needs, and where steps still have a direction
_LARGEST = 1e6  # of peaks and widths; influences beyond leave single precision
_MOST_ANCHORS = 10**6  # the paper has 20,000 at most


def check_ranges(alsa: ALSA) -> None:
    """Refuse options that make no sense."""
    if set(alsa.learn) - set(PARTS):
        raise InputError(f"learn must be a collection of {', '.join(PARTS)}; got {alsa.learn!r}.")
    if alsa.alpha is not None and not 0.0 < alsa.alpha < 1.0:
        raise InputError(f"alpha must be between 0 and 1; got {alsa.alpha}.")
    positive = {
        "n_anchors": alsa.n_anchors, "epsilon": alsa.epsilon, "max_epochs": alsa.max_epochs,
        "learning_rate": alsa.learning_rate, "batch_size": alsa.batch_size, "peak": alsa.peak,
        "folds": alsa.folds,
    }  # fmt: skip
    for name, amount in positive.items():
        if amount is not None and not 0 < amount < math.inf:
            raise InputError(f"{name} must be positive and finite; got {amount}.")
    if alsa.seed < 0:
        raise InputError(f"seed must not be negative; got {alsa.seed}.")
    for name, amounts in {"peak": (alsa.peak or 0.0,), "width": alsa.width or ()}.items():
        if any(abs(amount) > _LARGEST for amount in amounts):
            raise InputError(f"{name} must be at most {_LARGEST:g} in size; got {getattr(alsa, name)}.")
    if alsa.n_anchors is not None and alsa.n_anchors > _MOST_ANCHORS:
        raise InputError(f"n_anchors must be at most {_MOST_ANCHORS:,}; got {alsa.n_anchors:,}.")
    if alsa.learning_rate > _FASTEST:
        raise InputError(
            f"learning_rate must be at most {_FASTEST:g}, or steps miss everything; got {alsa.learning_rate}."
        )
