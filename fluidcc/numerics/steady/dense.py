"""Dense linear systems. A call of LAPACK would cost more than most of these, and compiling it more than all else."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

__all__ = ["eliminate", "solve_scaled"]

_jit: Any = njit(**UNCOUNTED)


@_jit
def eliminate(A: Any, B: Any, least: float) -> bool:
    """Solve A X = B in place by Gauss's elimination; False if a pivot is smaller than `least`."""
    n, m = B.shape
    for k in range(n):
        p, best = k, abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > best:
                p, best = i, abs(A[i, k])
        if not best > least:
            return False
        if p != k:
            for j in range(k, n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            for j in range(m):
                B[k, j], B[p, j] = B[p, j], B[k, j]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] / A[k, k]
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(m):
            total = B[k, j]
            for i in range(k + 1, n):
                total -= A[k, i] * B[i, j]
            B[k, j] = total / A[k, k]
    return True


@_jit
def solve_scaled(A: Any, b: Any, columns: Any) -> bool:
    """Solve A x = b for unknowns in units of `columns`, rows scaled by their largest entry; x takes the place of b."""
    n = len(b)
    for i in range(n):
        largest = 0.0
        for j in range(n):
            A[i, j] *= columns[j]
            largest = max(largest, abs(A[i, j]))
        if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(b[i])):
            return False
        for j in range(n):
            A[i, j] /= largest
        b[i] /= largest
    if not eliminate(A, b.reshape(n, 1), 0.0):
        return False
    for i in range(n):
        b[i] *= columns[i]
    return True
