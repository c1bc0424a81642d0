"""Statistics of a run's samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit

MEAN, STD, MIN, MAX, FINAL = range(5)


@njit(entry=True)
def statistic(kind: int, F: Any, row: int, times: int, count: int) -> float:
    """A statistic of the piecewise-linear curve through `count` samples from F[row] on, at times
    from F[times] on.
    """
    if kind == FINAL:
        return F[row + count - 1]
    if kind == MIN or kind == MAX:  # noqa: SIM109 - two comparisons are what numba makes best
        best = F[row]
        for j in range(1, count):
            if best != best or F[row + j] != F[row + j]:
                return np.nan
            best = max(best, F[row + j]) if kind == MAX else min(best, F[row + j])
        return best
    span = F[times + count - 1] - F[times]
    total = 0.0
    for j in range(1, count):
        total += 0.5 * (F[times + j] - F[times + j - 1]) * (F[row + j] + F[row + j - 1])
    mean = total / span
    if kind == MEAN:
        return mean
    total = 0.0
    for j in range(1, count):  # the square of a straight line, integrated
        a, b = F[row + j - 1] - mean, F[row + j] - mean
        total += (F[times + j] - F[times + j - 1]) * (a * a + a * b + b * b) / 3.0
    return np.sqrt(total / span)
