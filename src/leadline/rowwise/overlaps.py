"""Compiled loops over matrices of overlaps between labels, of which the half below the diagonal is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def add_products(products: Any, apart: Any, levels: Any, level: Any, overlap: Any) -> None:
    """Put together, below the diagonal, what ``add_shares`` found of w w' in several parts of the rows."""
    for k in range(level.shape[0]):
        line, above, own = overlap[k], apart[k] + levels * level[k], level[k]
        for j in range(k):
            line[j] = above * level[j] + own * apart[j]
        for part in range(products.shape[0]):
            more = products[part, k]
            for j in range(k):
                line[j] += more[j]


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def scaled_laplacian(overlap: Any, root: Any, result: Any) -> None:
    """Store, up to the diagonal, the curvature that overlaps below it make over both roots, plus these two."""
    c = root.shape[0]
    total, inverse = np.zeros(c), 1.0 / root
    for k in range(c):
        line, found, own = overlap[k], result[k], 0.0
        for j in range(k):
            own += line[j]
            total[j] += line[j]
            found[j] = root[k] * root[j] - line[j] * inverse[k] * inverse[j]
        total[k] += own
    for k in range(c):
        result[k, k] = root[k] * root[k] + total[k] * inverse[k] * inverse[k]
