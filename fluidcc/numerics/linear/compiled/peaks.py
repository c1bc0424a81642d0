"""The least singular value of I + L and the largest of L (I + L)^-1 over all frequencies. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.loci import at
from fluidcc.numerics.linear.compiled.singular import singular

__all__ = ["peak"]

ROUNDS = 40
CANDIDATES = 1.3  # local extrema within this factor of the best on the grid are refined


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def peak(loop, grid, largest):  # type: ignore[no-untyped-def]
    """The extremum over the grid and between its points, and where it is, in the system's unit of time."""
    sign, column = (-1.0, 2) if largest else (1.0, 0)
    points = len(grid.omega)
    score, rise = np.empty(points), np.empty(points)
    best, where = np.inf, np.nan
    for i in range(points):
        score[i], rise[i] = sign * grid.edge[i, column], sign * grid.edge[i, column + 1]
        if score[i] < best:  # not so where a pole on the axis leaves no number
            best, where = score[i], grid.omega[i]
    limit = best
    for i in range(points - 1):
        if not (rise[i] < 0 <= rise[i + 1]):
            continue
        lowest = min(score[i], score[i + 1])
        if -lowest * CANDIDATES >= -limit if largest else lowest <= limit * CANDIDATES + 1e-12:
            omega, exact = _refine(loop, grid.omega[i], grid.omega[i + 1], rise[i], rise[i + 1], largest)
            if sign * exact < best:
                best, where = sign * exact, omega
    return sign * best, where


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _refine(loop, low, high, left, right, largest):  # type: ignore[no-untyped-def]
    """The zero of the derivative between two points, by false position with Illinois' correction."""
    sign, kept = -1.0 if largest else 1.0, 0
    omega = value = 0.0
    for turn in range(ROUNDS):
        fresh = (low * right - high * left) / (right - left)
        omega = fresh if low < fresh < high and turn % 8 != 7 else 0.5 * (low + high)
        at(loop, 1j * omega)
        value, rise = singular(loop.ratio, loop.slope, loop.basis, largest)
        rise *= sign
        if rise < 0:
            low, left = omega, rise
            right *= 0.5 if kept == -1 else 1.0
            kept = -1
        else:
            high, right = omega, rise
            left *= 0.5 if kept == 1 else 1.0
            kept = 1
        if abs(rise) * (high - low) < 1e-14 * (value + 1e-3) or high - low < 1e-9 * high:
            break
    return omega, value
