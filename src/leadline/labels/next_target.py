"""Labels of this target for the estimate of the next one."""

from __future__ import annotations

from typing import Any

from leadline.estimators.base import Estimator
from leadline.estimators.recalibration import batch_of
from leadline.labels.evaluation import estimate_with_labels
from leadline.labels.plan import LabelPlan
from leadline.labels.target import opened
from leadline.numeric import normal_quantile

_LEVEL = 0.9


def recalibrate_with_labels(model: Estimator, outputs: Any, plan: LabelPlan, labels: Any) -> Estimator:
    """Return a model that knows what labels for the first rows of a plan showed.

    Parameters
    ----------
    model, outputs, plan, labels
        As for :func:`leadline.estimate_with_labels`.

    Returns
    -------
    Estimator
        Another one, whose estimates on targets that look like this one are moved by what the labels showed; see
        :meth:`leadline.Estimator.recalibrate`.
    """
    with opened(model, outputs) as target:
        found = estimate_with_labels(model, target, plan, labels, _LEVEL)
        low, high = found.interval
        deviation = (high - low) / (2.0 * normal_quantile(0.5 + _LEVEL / 2))
        return model._with_batch(batch_of(found.accuracy - target.unmoved(), deviation**2, target.confidences))
