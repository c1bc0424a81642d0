"""Where loci cross the unit circle and the negative real axis, and where singular values have their extrema. Compiled.

All that a grid brackets is polished abreast, each by its own iteration that stays in its interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.factors import abreast, eigen, ready
from fluidcc.numerics.linear.compiled.lanes import LANES
from fluidcc.numerics.linear.compiled.singular import LARGEST, LEAST, extremes

__all__ = ["AXIS", "CIRCLE", "HIGHEST", "LOWEST", "bracketed", "refine"]

CIRCLE, AXIS, LOWEST, HIGHEST = range(4)
ROUNDS = 50
CANDIDATES = 1.3  # local extrema within this factor of the best on the grid are refined


class Brackets(NamedTuple):
    """Intervals with something in each, of one kind; frequencies in the system's unit of time.

    Crossings have the eigenvalues at the ends, `value` (brackets, 3), and at the last point; extrema the derivatives at
    the ends and the last value, `height` (brackets, 3). `last` is the size of the step before, or which end was kept.
    """

    kind: Any
    ends: Any  # (brackets, 2), which move together
    first: Any  # the same as they were
    omega: Any  # where to look next; in the end, where it is
    value: Any
    height: Any
    last: Any


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def bracketed(grid):  # type: ignore[no-untyped-def]
    """What lies between the points of a grid."""
    points, rank = grid.value.shape
    count = 0
    for i in range(points - 1):
        for j in range(rank):
            for kind in (CIRCLE, AXIS):
                count += _crosses(grid.value[i, j], grid.value[i + 1, j], kind)
    limits = _limits(grid)
    for i in range(points - 1):
        for kind in (LOWEST, HIGHEST):
            count += _turns(grid.edge[i], grid.edge[i + 1], kind, limits)
    found = Brackets(
        np.empty(count, np.int64), np.empty((count, 2)), np.empty((count, 2)), np.empty(count),
        np.zeros((count, 3), np.complex128), np.zeros((count, 3)), np.full(count, np.inf),
    )  # fmt: skip
    k = 0
    for i in range(points - 1):
        for kind in range(4):
            for j in range(rank if kind in (CIRCLE, AXIS) else 1):
                a, b = grid.value[i, j], grid.value[i + 1, j]
                if kind in (CIRCLE, AXIS):
                    if not _crosses(a, b, kind):
                        continue
                    found.value[k, 0], found.value[k, 1] = a, b
                    found.height[k, 0], found.height[k, 1] = _level(a, kind), _level(b, kind)
                else:
                    if not _turns(grid.edge[i], grid.edge[i + 1], kind, limits):
                        continue
                    column = 1 if kind == LOWEST else 3
                    found.height[k, 0], found.height[k, 1] = grid.edge[i, column], grid.edge[i + 1, column]
                    found.last[k] = 0.0
                found.kind[k] = kind
                found.ends[k, 0], found.ends[k, 1] = grid.omega[i], grid.omega[i + 1]
                found.first[k] = found.ends[k]
                part = found.height[k, 0] / (found.height[k, 0] - found.height[k, 1])
                edge = 0.02 if kind in (CIRCLE, AXIS) else 0.0
                found.omega[k] = grid.omega[i] + (grid.omega[i + 1] - grid.omega[i]) * (
                    part if edge < part < 1 - edge else 0.5
                )
                k += 1
    return found


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _crosses(a, b, kind):  # type: ignore[no-untyped-def]
    """Whether the locus between two points crosses the circle, or the negative axis."""
    if kind == CIRCLE:
        return (abs(a) >= 1) != (abs(b) >= 1)
    if (a.imag >= 0) == (b.imag >= 0) or not max(abs(a), abs(b)) > 1e-9:
        return False
    rise = a.imag - b.imag
    return a.real + (b.real - a.real) * (0.5 if rise == 0 else a.imag / rise) < 0


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _limits(grid):  # type: ignore[no-untyped-def]
    """Above which a least singular value, and below which a largest one, is no candidate."""
    lowest, highest = np.inf, -np.inf
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if grid.edge[i, 0] < lowest:
            lowest = grid.edge[i, 0]
        if grid.edge[i, 2] > highest:
            highest = grid.edge[i, 2]
    return lowest * CANDIDATES + 1e-12, highest / CANDIDATES


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _turns(a, b, kind, limits):  # type: ignore[no-untyped-def]
    """Whether a singular value has an extremum between two points that may be the best one."""
    if kind == LOWEST:
        return a[1] < 0 <= b[1] and min(a[0], b[0]) <= limits[0]
    return -a[3] < 0 <= -b[3] and max(a[2], b[2]) >= limits[1]


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def refine(loop, found):  # type: ignore[no-untyped-def]
    """Polish all of them to rounding."""
    values, rates = np.empty(loop.basis.shape[1], np.complex128), np.empty(loop.basis.shape[1], np.complex128)
    edge, left = np.empty(4), np.arange(len(found.kind))
    some, s = np.empty(LANES, np.int64), np.empty(LANES, np.complex128)
    for turn in range(ROUNDS):
        kept = 0
        for first in range(0, len(left), LANES):
            count = min(LANES, len(left) - first)
            for lane in range(count):
                some[lane] = left[first + lane]
                s[lane] = complex(0.0, found.omega[some[lane]])
            abreast(loop, s[:count])
            for lane in range(count):
                k = some[lane]
                ready(loop, lane, s[lane])
                eigen(loop, values, rates)
                if found.kind[k] in (CIRCLE, AXIS):
                    done = _cross(found, k, values, rates)
                else:
                    lowest = found.kind[k] == LOWEST
                    extremes(loop, LEAST if lowest else LARGEST, values[0], rates[0], edge)
                    done = _peak(found, k, edge[0 if lowest else 2], edge[1 if lowest else 3], turn)
                if not done:
                    left[kept] = k
                    kept += 1
        left = left[:kept]
        if not kept:
            break


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _cross(found, k, values, rates):  # type: ignore[no-untyped-def]
    """One step of Newton's iteration to a crossing; whether it was the last."""
    low, high = found.ends[k, 0], found.ends[k, 1]
    omega, begin, width = found.omega[k], found.first[k, 0], found.first[k, 1] - found.first[k, 0]
    guess = found.value[k, 0] + (found.value[k, 1] - found.value[k, 0]) * ((omega - begin) / width)
    pick = 0
    for j in range(1, len(values)):
        if abs(values[j] - guess) < abs(values[pick] - guess):
            pick = j
    value, rate = values[pick], 1j * rates[pick]
    circle = found.kind[k] == CIRCLE
    height, turn = _level(value, found.kind[k]), rate / value if value != 0 else 0j
    pace = turn.real if circle else turn.imag
    fresh = omega - height / pace if pace != 0 else np.inf
    if (height >= 0) == (found.height[k, 0] >= 0):
        low = omega
    else:
        high = omega
    found.ends[k, 0], found.ends[k, 1], found.value[k, 2] = low, high, value
    outside = not (low < fresh < high)
    step = abs(fresh - omega)
    if abs(height) < 4e-16 or step <= 4e-16 * omega or high - low <= 4e-16 * omega:
        return True
    # where the tangent leads far out of a short bracket, two loci were taken for one, and none crosses
    if outside and step > 100 * (high - low) and high - low < 1e-3 * width:
        return True
    if not outside and step <= 1e-9 * omega and step <= 1e-3 * found.last[k]:
        # Newton's steps square: the one after this is below rounding, and the value follows its tangent
        found.omega[k], found.value[k, 2] = fresh, value + rate * (fresh - omega)
        return True
    found.last[k] = np.inf if outside else step
    found.omega[k] = 0.5 * (low + high) if outside else fresh
    return False


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _level(value, kind):  # type: ignore[no-untyped-def]
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative axis."""
    if kind == CIRCLE:
        return np.log(abs(value))
    return np.arctan2(-value.imag, -value.real)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _peak(found, k, size, rise, turn):  # type: ignore[no-untyped-def]
    """One step to the zero of the derivative, by false position with Illinois' correction; whether it was the last."""
    side = 1 if (rise < 0) == (found.height[k, 0] < 0) else 0  # whose end is kept
    omega = found.omega[k]
    found.ends[k, 1 - side], found.height[k, 1 - side] = omega, rise
    found.height[k, side] *= 0.5 if found.last[k] == 1 + side else 1.0
    found.last[k], found.height[k, 2] = 1 + side, size
    low, high, left, right = found.ends[k, 0], found.ends[k, 1], found.height[k, 0], found.height[k, 1]
    if abs(rise) * (high - low) < 1e-14 * (size + 1e-3) or high - low < 1e-9 * high:
        return True
    fresh = (low * right - high * left) / (right - left)
    found.omega[k] = fresh if low < fresh < high and turn % 8 != 6 else 0.5 * (low + high)
    return False
