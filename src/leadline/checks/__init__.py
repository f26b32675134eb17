"""Checks that any estimator can run: what Leadline promises of its own, and what its other parts rely on.

>>> import leadline as ll
>>> check_estimator(ll.make("ac"))

With pytest, one test per check::

    @pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
    def test_contract(check):
        check(MyEstimator())

An estimator need not be a subclass of :class:`leadline.Estimator`; ``get_params``, ``fit`` and ``estimate`` are enough.
``save``, ``estimate_blocks`` and ``set_params`` are checked where they exist. One with a parameter ``seed`` counts as
random: where the order of rows or classes changes what is drawn, the mean of a few seeds is compared, and may differ by
``RANDOM`` or three standard errors, whichever is more.
"""

from __future__ import annotations

from leadline.checks import edges, general
from leadline.checks.contract import RANDOM, Check, CheckFailure, EstimatorLike

__all__ = ["CHECKS", "RANDOM", "Check", "CheckFailure", "EstimatorLike", "check_estimator"]

#: All checks by name, in the order in which :func:`check_estimator` runs them.
CHECKS: dict[str, Check] = general.CHECKS | edges.CHECKS


def check_estimator(estimator: EstimatorLike) -> None:
    """Run all checks on copies of an estimator.

    Parameters
    ----------
    estimator
        With the options to check; it stays as it is. Options that make fitting fast make the checks fast.

    Raises
    ------
    CheckFailure
        Names the first check that fails, and what was found.
    """
    for check in CHECKS.values():
        check(estimator)
