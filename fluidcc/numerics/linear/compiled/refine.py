"""Where loci cross the unit circle and the negative real axis, and where singular values have their extrema. Compiled.

All that a grid brackets is polished abreast, each by its own iteration that stays in its interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.assignment import assign
from fluidcc.numerics.linear.compiled.factors import abreast
from fluidcc.numerics.linear.compiled.lanes import LANES
from fluidcc.numerics.linear.compiled.points import at_point
from fluidcc.numerics.linear.compiled.singular import LARGEST, LEAST, NEITHER

__all__ = ["AXIS", "CIRCLE", "HIGHEST", "KINDS", "LOWEST", "bracketed", "refine"]

AXIS, CIRCLE, LOWEST, HIGHEST = range(4)
KINDS = 4
ROUNDS = 50
NOTHING = 1e-18  # crossings of the axis nearer to the origin are rounding
CANDIDATES = 1.3  # local extrema within this factor of the best on the grid are refined


class Brackets(NamedTuple):
    """Intervals with something in each, of one kind; frequencies in the system's unit of time.

    Crossings have the eigenvalues at the ends and at the last point, `value` (brackets, 3), and how far they are from
    it at the ends, `height` (brackets, 2). Of extrema these are the singular values and their derivatives.
    """

    kind: Any
    point: Any  # of the grid, after which it lies
    locus: Any
    ends: Any  # (brackets, 2), which move together
    first: Any  # the same as they were
    omega: Any  # where to look next; in the end, where it is
    value: Any
    height: Any
    last: Any  # the size of the step before


@njit(no_cpython_wrapper=True, **COUNTED)
def bracketed(grid, kinds):  # type: ignore[no-untyped-def]
    """What lies between the points of a grid, of the first so many kinds."""
    points, rank = grid.value.shape
    limits = _limits(grid)
    where = np.empty((4 * points * rank, 3), np.int64)
    count = _held(grid, kinds, limits, where)
    found = Brackets(
        where[:count, 2].copy(), where[:count, 0].copy(), where[:count, 1].copy(),
        np.empty((count, 2)), np.empty((count, 2)), np.empty(count),
        np.zeros((count, 3), np.complex128), np.zeros((count, 2)), np.full(count, np.inf),
    )  # fmt: skip
    _begin(grid, where, found)
    return found


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _held(grid, kinds, limits, where):  # type: ignore[no-untyped-def]
    """Put point, locus and kind of each into `where`; how many there are."""
    (points, rank), count = grid.value.shape, 0
    for i in range(points - 1):
        for kind in range(kinds):
            for j in range(rank if kind in (CIRCLE, AXIS) else 1):
                if _holds(grid, i, j, kind, limits):
                    where[count, 0], where[count, 1], where[count, 2] = i, j, kind
                    count += 1
    return count


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _begin(grid, where, found):  # type: ignore[no-untyped-def]
    """Fill in the ends of the brackets, and where to look first."""
    for k in range(len(found.kind)):
        i, j, kind = where[k, 0], where[k, 1], where[k, 2]
        for end in range(2):
            found.ends[k, end] = found.first[k, end] = grid.omega[i + end]
            if kind in (CIRCLE, AXIS):
                found.value[k, end] = grid.value[i + end, j]
                found.height[k, end] = _level(grid.value[i + end, j], kind)
            else:
                column = 0 if kind == LOWEST else 2
                found.value[k, end], found.height[k, end] = grid.edge[i + end, column], grid.edge[i + end, column + 1]
        if kind in (CIRCLE, AXIS):
            part = found.height[k, 0] / (found.height[k, 0] - found.height[k, 1])
            part = part if 0.02 < part < 0.98 else 0.5
            found.omega[k] = grid.omega[i] + (grid.omega[i + 1] - grid.omega[i]) * part
        else:
            found.omega[k] = _bottom(found, k)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _holds(grid, i, j, kind, limits):  # type: ignore[no-untyped-def]
    """Whether there is one of a kind after point i."""
    if kind in (CIRCLE, AXIS):
        return _crosses(grid.value[i, j], grid.value[i + 1, j], kind)
    column, sign = (0, 1.0) if kind == LOWEST else (2, -1.0)  # an extremum that may be the best one
    best = min(sign * grid.edge[i, column], sign * grid.edge[i + 1, column])
    return sign * grid.edge[i, column + 1] < 0 <= sign * grid.edge[i + 1, column + 1] and best <= limits[column // 2]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _crosses(a, b, kind):  # type: ignore[no-untyped-def]
    """Whether the locus between two points crosses the circle, or the negative axis."""
    if kind == CIRCLE:
        return (_square(a) >= 1) != (_square(b) >= 1)
    if (a.imag >= 0) == (b.imag >= 0) or not max(_square(a), _square(b)) > NOTHING**2:
        return False
    rise = a.imag - b.imag
    return a.real + (b.real - a.real) * (0.5 if rise == 0 else a.imag / rise) < 0


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _limits(grid):  # type: ignore[no-untyped-def]
    """Above which a least singular value, and a largest one with its sign changed, is no candidate."""
    lowest, highest = np.inf, -np.inf
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if grid.edge[i, 0] < lowest:
            lowest = grid.edge[i, 0]
        if grid.edge[i, 2] > highest:
            highest = grid.edge[i, 2]
    return lowest * CANDIDATES + 1e-12, -highest / CANDIDATES


@njit(no_cpython_wrapper=True, **COUNTED)
def refine(loop, grid, found):  # type: ignore[no-untyped-def]
    """Polish all that is `bracketed` on a grid to rounding."""
    values, rates = np.empty(loop.basis.shape[1], np.complex128), np.empty(loop.basis.shape[1], np.complex128)
    edge, left = np.empty(4), np.arange(len(found.kind))
    some, s = np.empty(LANES, np.int64), np.empty(LANES, np.complex128)
    _polish(loop, grid, found, values, rates, edge, left, some, s)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _polish(loop, grid, found, values, rates, edge, left, some, s):  # type: ignore[no-untyped-def]
    """The same with room for what is found at a point, the brackets that are left, and an octet of them."""
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
                kind = found.kind[k]
                wanted = LEAST if kind == LOWEST else LARGEST if kind == HIGHEST else NEITHER
                at_point(loop, lane, s[lane], wanted, values, rates, edge)
                if wanted == NEITHER:
                    done = _cross(grid, found, k, values, rates)
                else:
                    done = _peak(found, k, edge[0 if kind == LOWEST else 2], edge[1 if kind == LOWEST else 3], turn)
                if not done:
                    left[kept] = k
                    kept += 1
        left = left[:kept]
        if not kept:
            break


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _cross(grid, found, k, values, rates):  # type: ignore[no-untyped-def]
    """One step of Newton's iteration to a crossing; whether it was the last."""
    low, high, omega = found.ends[k, 0], found.ends[k, 1], found.omega[k]
    width = found.first[k, 1] - found.first[k, 0]
    pick = _followed(grid, found.point[k], found.locus[k], omega, values)
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


@njit(no_cpython_wrapper=True, **COUNTED)
def _followed(grid, i, locus, omega, values):  # type: ignore[no-untyped-def]
    """Which of the values at a frequency after point i belongs to a locus, by the cubics between the points."""
    rank = len(values)
    if rank == 1:
        return 0
    width = grid.omega[i + 1] - grid.omega[i]
    u = (omega - grid.omega[i]) / width
    foretold, order = np.empty(rank, np.complex128), np.empty(rank, np.int64)
    for j in range(rank):
        a, b = grid.value[i, j], grid.value[i + 1, j]
        da, db = 1j * width * grid.slope[i, j], 1j * width * grid.slope[i + 1, j]
        foretold[j] = a + u * (b - a) + u * (1 - u) * ((1 - u) * (da - (b - a)) - u * (db - (b - a)))
    assign(foretold, values, order)
    return order[locus]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _level(value, kind):  # type: ignore[no-untyped-def]
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative axis."""
    if kind == CIRCLE:
        return np.log(abs(value))
    return np.arctan2(-value.imag, -value.real)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _square(z):  # type: ignore[no-untyped-def]
    return z.real * z.real + z.imag * z.imag


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _peak(found, k, size, rise, turn):  # type: ignore[no-untyped-def]
    """One step to an extremum, with its value and its derivative at the last point; whether it was the last."""
    side = 0 if (rise < 0) == (found.height[k, 0] < 0) else 1  # which end moves here
    omega = found.omega[k]
    found.ends[k, side], found.value[k, side], found.height[k, side] = omega, size, rise
    found.value[k, 2] = size
    low, high = found.ends[k, 0], found.ends[k, 1]
    fresh = _bottom(found, k)
    if abs(rise) * abs(fresh - omega) < 1e-15 * (size + 1e-3) or high - low < 1e-9 * high:
        found.omega[k] = fresh  # the value is stationary: what it changes by is half of that product
        return True
    if turn > 2 and turn % 2:  # where two singular values cross there is a kink, where their tangents do
        a, b, da, db = found.value[k, 0].real, found.value[k, 1].real, found.height[k, 0], found.height[k, 1]
        fresh = (b - a + da * low - db * high) / (da - db)
    found.omega[k] = fresh if low < fresh < high else 0.5 * (low + high)
    return False


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _bottom(found, k):  # type: ignore[no-untyped-def]
    """Where the cubic with the values and derivatives of both ends has its extremum; else the middle."""
    low, width = found.ends[k, 0], found.ends[k, 1] - found.ends[k, 0]
    sign = -1.0 if found.height[k, 0] > 0 else 1.0
    da, db = sign * found.height[k, 0], sign * found.height[k, 1]
    mean = da + db - 3 * sign * (found.value[k, 1].real - found.value[k, 0].real) / width
    root = np.sqrt(mean * mean - da * db)
    part = 1 - (db + root - mean) / (db - da + 2 * root)
    return low + width * (part if 0 < part < 1 else 0.5)
