"""Statistics of the samples of lanes, from the nodes of their histories: all rows and lanes together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, types

from fluidcc.numerics.compiling import njit

from ..fluid.many import FINAL, MAX, MIN, STD

__all__ = ["statistics"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_A, _AA, _I = float64[::1], float64[:, ::1], int64[::1]


@njit(**_CFG)
def _sample(H: Any, steps: Any, ends: Any, age: Any, times: Any, first: int, columns: Any) -> None:
    """Samples from number `first` on; the cubics of all lanes at once where their nodes are at the same times."""
    width, size = len(steps), H.shape[1] // 3
    alike = np.all(steps == steps[0]) and np.all(ends == ends[0]) and np.all(age == age[0])
    for j in range(first, len(times)):
        for l in range(1 if alike else width):
            u = max((times[j] - age[l]) / steps[l], 0.0)  # before the start, what was at the start
            i = min(int(u), ends[l] - 1)
            u -= i
            a, b, out = H[i + 1], H[i + 2], columns[j]
            if alike:
                for c in range(size):
                    out[c] = _cubic(a[c], a[c + 2 * size], b[c], b[c + size], u)
            else:
                for c in range(l, size, width):
                    out[c] = _cubic(a[c], a[c + 2 * size], b[c], b[c + size], u)


@njit(**_CFG, forceinline=True)
def _cubic(a: float, p: float, b: float, q: float, u: float) -> float:
    """The cubic with these values and slopes (times the step) at its ends."""
    return a + u * (p + u * (3.0 * (b - a) - 2.0 * p - q + u * (2.0 * (a - b) + p + q)))


@njit(**_CFG)
def _statistic(kind: int, columns: Any, times: Any, out: Any) -> None:
    """`fluidcc.numerics.fluid.many.statistic` of every column."""
    count = len(columns)
    out[:] = columns[count - 1]
    if kind == MAX:
        for j in range(count - 1):
            now = columns[j]
            for c in range(len(out)):
                out[c] = now[c] if now[c] > out[c] else out[c]
    elif kind == MIN:
        for j in range(count - 1):
            now = columns[j]
            for c in range(len(out)):
                out[c] = now[c] if now[c] < out[c] else out[c]
    elif kind != FINAL:
        _mean(columns, times, out)
        if kind == STD:
            _spread(columns, times, out)


@njit(**_CFG)
def _mean(columns: Any, times: Any, out: Any) -> None:
    """Of the broken line through the samples."""
    out[:] = 0.0
    for j in range(1, len(columns)):
        share, before, now = 0.5 * (times[j] - times[j - 1]) / (times[-1] - times[0]), columns[j - 1], columns[j]
        for c in range(len(out)):
            out[c] += share * (before[c] + now[c])


@njit(**_CFG)
def _spread(columns: Any, times: Any, out: Any) -> None:
    """The standard deviation of the broken line, of which `out` holds the mean."""
    mean = out.copy()
    out[:] = 0.0
    for j in range(1, len(columns)):
        share, before, now = (times[j] - times[j - 1]) / (times[-1] - times[0]) / 3.0, columns[j - 1], columns[j]
        for c in range(len(out)):
            a, b = before[c] - mean[c], now[c] - mean[c]
            out[c] += share * (a * a + a * b + b * b)
    out[:] = np.sqrt(out)


@njit(types.void(_AA, _A, _I, _AA, _A, _I, _I, _I, _AA, _AA, _AA), **_CFG)
def statistics(
    H: Any, steps: Any, ends: Any, ages: Any, times: Any, which: Any, kinds: Any, rows: Any, factor: Any, term: Any,
    out: Any,
) -> None:  # fmt: skip
    """Put the statistics of the first lanes into `out` (lanes, statistics), of all where it has as many.

    Parameters
    ----------
    H : array (nodes, 3 x rows x width)
        Values at the nodes, from the second on, and slopes times the step before and after them.
    steps, ends : arrays (width,)
        Step sizes [s], and how many there are.
    ages : array (width, ages)
        How long ago that was which a sample shows [s].
    times : array
        Sample times [s].
    which, kinds, rows : arrays of int (statistics,)
        Number of the age, the statistic, and the row.
    factor, term : arrays (width, statistics)
        What samples are multiplied by, and what is added.
    """
    count, width = len(times), len(steps)
    columns, found = np.empty((count, H.shape[1] // 3)), np.empty(H.shape[1] // 3)
    for g in range(ages.shape[1]):
        first = count - 1
        for k in range(len(rows)):
            if which[k] == g and kinds[k] != FINAL:
                first = 0
        _sample(H, steps, ends, ages[:, g].copy(), times, first, columns)
        for kind in range(FINAL + 1):
            new = True
            for k in range(len(rows)):
                if which[k] == g and kinds[k] == kind:
                    if new:
                        _statistic(kind, columns, times, found)
                        new = False
                    for l in range(len(out)):
                        added = 0.0 if kind == STD else term[l, k]
                        out[l, k] = found[rows[k] * width + l] * factor[l, k] + added
