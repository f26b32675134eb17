"""What several tests of estimators start from."""

from __future__ import annotations

import pytest

from leadline.estimators.alsa.kernels import BACKENDS, Kernel, get_kernel


@pytest.fixture(params=BACKENDS)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return get_kernel(request.param)
