"""Everything that is read off the eigenloci of a return ratio. Compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.framing import outlook
from fluidcc.numerics.linear.compiled.lanes import LANES
from fluidcc.numerics.linear.compiled.loci import SMALL, WEAK, assign, reach, trace
from fluidcc.numerics.linear.compiled.points import abreast, at_point, loop_of, norm
from fluidcc.numerics.linear.compiled.small import BOTH, LARGEST, LEAST, NEITHER

__all__ = [
    "AXIS", "CIRCLE", "HIGHEST", "KINDS", "LOWEST", "MARGINS", "bracketed", "followed", "judge",
    "refine",
]  # fmt: skip


AXIS, CIRCLE, LOWEST, HIGHEST = range(4)
KINDS = 4
ROUNDS = 50
NOTHING = 1e-18  # crossings of the axis nearer to the origin are rounding
CANDIDATES = 1.3  # local extrema within this factor of the best on the grid are refined


class Brackets(NamedTuple):
    """Intervals with something in each, of one kind; frequencies in the system's unit of time.

    Crossings have the eigenvalues at the ends and at the last point, `value` (brackets, 3), and how
    far they are from it at the ends, `height` (brackets, 2). Of extrema these are the singular
    values and their derivatives.
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
                found.value[k, end], found.height[k, end] = (
                    grid.edge[i + end, column],
                    grid.edge[i + end, column + 1],
                )
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
    return (
        sign * grid.edge[i, column + 1] < 0 <= sign * grid.edge[i + 1, column + 1]
        and best <= limits[column // 2]
    )


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
    """Above which a least singular value, and a largest one with its sign changed, is no
    candidate.
    """
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
    values, rates = (
        np.empty(loop.basis.shape[1], np.complex128),
        np.empty(loop.basis.shape[1], np.complex128),
    )
    edge, left = np.empty(4), np.arange(len(found.kind))
    some, s = np.empty(LANES, np.int64), np.empty(LANES, np.complex128)
    _polish(loop, grid, found, values, rates, edge, left, some, s)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _polish(loop, grid, found, values, rates, edge, left, some, s):  # type: ignore[no-untyped-def]
    """The same with room for what is found at a point, the brackets that are left, and an octet
    of them.
    """
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
                    done = _peak(
                        found,
                        k,
                        edge[0 if kind == LOWEST else 2],
                        edge[1 if kind == LOWEST else 3],
                        turn,
                    )
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
    # where the tangent leads far out of a short bracket, two loci were taken for one, and none
    # crosses
    if outside and step > 100 * (high - low) and high - low < 1e-3 * width:
        return True
    if not outside and step <= 1e-9 * omega and step <= 1e-3 * found.last[k]:
        # Newton's steps square: the one after this is below rounding, and the value follows its
        # tangent
        found.omega[k], found.value[k, 2] = fresh, value + rate * (fresh - omega)
        return True
    found.last[k] = np.inf if outside else step
    found.omega[k] = 0.5 * (low + high) if outside else fresh
    return False


@njit(no_cpython_wrapper=True, **COUNTED)
def _followed(grid, i, locus, omega, values):  # type: ignore[no-untyped-def]
    """Which of the values at a frequency after point i belongs to a locus, by the cubics between
    the points.
    """
    rank = len(values)
    if rank == 1:
        return 0
    width = grid.omega[i + 1] - grid.omega[i]
    u = (omega - grid.omega[i]) / width
    foretold, order = np.empty(rank, np.complex128), np.empty(rank, np.int64)
    for j in range(rank):
        a, b = grid.value[i, j], grid.value[i + 1, j]
        da, db = 1j * width * grid.slope[i, j], 1j * width * grid.slope[i + 1, j]
        foretold[j] = (
            a + u * (b - a) + u * (1 - u) * ((1 - u) * (da - (b - a)) - u * (db - (b - a)))
        )
    assign(foretold, values, order)
    return order[locus]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _level(value, kind):  # type: ignore[no-untyped-def]
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative
    axis.
    """
    if kind == CIRCLE:
        return np.log(abs(value))
    return np.arctan2(-value.imag, -value.real)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _square(z):  # type: ignore[no-untyped-def]
    return z.real * z.real + z.imag * z.imag


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _peak(found, k, size, rise, turn):  # type: ignore[no-untyped-def]
    """One step to an extremum, with its value and its derivative at the last point; whether it
    was the last.
    """
    side = 0 if (rise < 0) == (found.height[k, 0] < 0) else 1  # which end moves here
    omega = found.omega[k]
    found.ends[k, side], found.value[k, side], found.height[k, side] = omega, size, rise
    found.value[k, 2] = size
    low, high = found.ends[k, 0], found.ends[k, 1]
    fresh = _bottom(found, k)
    if abs(rise) * abs(fresh - omega) < 1e-15 * (size + 1e-3) or high - low < 1e-9 * high:
        found.omega[k] = (
            fresh  # the value is stationary: what it changes by is half of that product
        )
        return True
    if (
        turn > 2 and turn % 2
    ):  # where two singular values cross there is a kink, where their tangents do
        a, b, da, db = (
            found.value[k, 0].real,
            found.value[k, 1].real,
            found.height[k, 0],
            found.height[k, 1],
        )
        fresh = (b - a + da * low - db * high) / (da - db)
    found.omega[k] = fresh if low < fresh < high else 0.5 * (low + high)
    return False


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _bottom(found, k):  # type: ignore[no-untyped-def]
    """Where the cubic with the values and derivatives of both ends has its extremum; else the
    middle.
    """
    low, width = found.ends[k, 0], found.ends[k, 1] - found.ends[k, 0]
    sign = -1.0 if found.height[k, 0] > 0 else 1.0
    da, db = sign * found.height[k, 0], sign * found.height[k, 1]
    mean = da + db - 3 * sign * (found.value[k, 1].real - found.value[k, 0].real) / width
    root = np.sqrt(mean * mean - da * db)
    part = 1 - (db + root - mean) / (db - da + 2 * root)
    return low + width * (part if 0 < part < 1 else 0.5)


# --- Everything that is read off the eigenloci of a return ratio. Compiled -----------------------


MARGINS = (
    14  # that are read off, in the order of the fields of `fluidcc.numerics.linear.margins.Margins`
)
FREQUENCIES = 8  # from this one on they are frequencies
DELAY = 4
ENDLESS = 1e12  # an L(0) as large as this is that of an integrator
STRONGER = 50.0  # times a loop is made stronger where a gain margin is beyond what is followed
STRONGEST = 1e18


@njit(**COUNTED)
def followed(address, whole, cut, real, frame, states, m, first, last, points):  # type: ignore[no-untyped-def]
    """Frequencies and eigenloci there: what these need, and `points` frequencies in equal ratios
    beside.
    """
    loop, ahead = loop_of(address, whole, cut, real, m), outlook(frame, states, m, real)
    least = ahead.low if np.isnan(first) else first
    most = reach(loop, ahead.high, 1.0, ahead.most) if np.isnan(last) else last
    if not 0 < least < most:
        return np.array([least, most]), np.empty((0, 0), np.complex128)
    even = least * (most / least) ** (np.arange(1, points - 1) / (points - 1))
    grid = trace(loop, least, most, np.sort(np.concatenate((ahead.swings, even))), 1.0)
    return grid.omega, grid.value


@njit(**COUNTED)
def judge(address, whole, cut, table, frame, states, m, times):  # type: ignore[no-untyped-def]
    """The margins of every system; of the last, all frequencies of a locus of modulus one.

    Parameters
    ----------
    address : int
        That of `fluidcc.numerics.linear.compiled.points.address`.
    whole, cut : array of int, int
        As `fluidcc.numerics.linear.pencil.Pencil.loop` has them.
    table, frame : array (systems, floats), array (systems, rows, columns)
        The floats of each pencil, and that before its sums are named.
    states, m : int
        Numbers of states and of inputs.
    times : array (systems)
        The unit of time of each [s].
    """
    out, every = np.empty((len(table), MARGINS)), np.empty(0)
    for k in range(len(table)):
        loop, ahead = (
            loop_of(address, whole, cut, table[k], m),
            outlook(frame[k], states, m, table[k]),
        )
        rank = loop.basis.shape[1]
        end = reach(loop, ahead.high, 1.0, ahead.most)
        grid = trace(loop, ahead.low, end, ahead.swings, 1.0)
        found = bracketed(grid, KINDS)
        refine(loop, grid, found)
        still, rates, edge = (
            np.zeros(rank, np.complex128),
            np.zeros(rank, np.complex128),
            np.empty(4),
        )
        at_point(loop, 0, 0j, BOTH, still, rates, edge)
        size = norm(loop)
        gain = _gains(found, still if size < ENDLESS else still[:0])
        phase = _phases(found)
        if k == len(table) - 1:
            every = found.omega[found.kind == CIRCLE]
        modulus, modulus_at, mt, mt_at = _best(grid, found)
        if np.isfinite(size) and edge[0] < modulus:
            modulus, modulus_at = edge[0], 0.0
        if np.isfinite(size) and edge[2] > mt:
            mt, mt_at = edge[2], 0.0
        if ahead.modulus < modulus:
            modulus, modulus_at = ahead.modulus, np.inf
        factor = 1.0
        while gain[0] * WEAK > factor and end < ahead.far and factor < STRONGEST:
            begin = _weak_from(grid, factor)
            factor *= STRONGER
            end = reach(loop, end, factor, ahead.far)
            grid = trace(loop, begin, end, ahead.swings, factor)
            found = bracketed(grid, AXIS + 1)
            refine(loop, grid, found)
            more = _gains(found, still[:0])
            if more[0] < gain[0]:
                gain = (more[0], more[1], gain[2], gain[3])
        nearest = gain[0] if gain[2] == 0 or gain[0] <= 1 / gain[2] else gain[2]
        ms = 1 / max(modulus, np.finfo(np.float64).tiny)
        best = (
            gain[0], gain[2], nearest, phase[0], phase[2], modulus, ms, mt,
            phase[1], gain[1], gain[3], phase[3], modulus_at, mt_at,
        )  # fmt: skip
        for i in range(len(best)):
            out[k, i] = best[i] / times[k] if i >= FREQUENCIES else best[i]
        out[k, DELAY] *= times[k]
    return out, every / times[len(times) - 1]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _weak_from(grid, factor):  # type: ignore[no-untyped-def]
    """Where a locus of `factor` times L begins to be too small to be refined; all crossings
    before are known.
    """
    for i in range(len(grid.omega)):
        for value in grid.value[i]:
            if not factor * abs(value) > SMALL:
                return grid.omega[max(i - 1, 0)]
    return grid.omega[-1]


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _best(grid, found):  # type: ignore[no-untyped-def]
    """The least and the largest singular value, each with its frequency, on the grid and between
    its points.
    """
    least, least_at, most, most_at = np.inf, np.nan, -np.inf, np.nan
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if grid.edge[i, 0] < least:
            least, least_at = grid.edge[i, 0], grid.omega[i]
        if grid.edge[i, 2] > most:
            most, most_at = grid.edge[i, 2], grid.omega[i]
    for k in range(len(found.kind)):
        size = found.value[k, 2].real
        if found.kind[k] == LOWEST and size < least:
            least, least_at = size, found.omega[k]
        if found.kind[k] == HIGHEST and size > most:
            most, most_at = size, found.omega[k]
    return least, least_at, most, most_at


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _gains(found, still):  # type: ignore[no-untyped-def]
    """The least factor above one and its frequency, the largest below one and its; `still` are
    the loci at rest.
    """
    up, up_at, down, down_at = np.inf, np.nan, 0.0, np.nan
    size = 0.0
    for value in still:
        size = max(size, abs(value))
    for k in range(len(found.kind) + len(still)):
        if k < len(found.kind):
            value, omega = found.value[k, 2], found.omega[k]
            if found.kind[k] != AXIS or not value.real < 0:
                continue
        else:  # a real eigenvalue of L(0) that is negative: a root passes through the origin
            value, omega = still[k - len(found.kind)], 0.0
            if not (value.real < -1e-12 * size and abs(value.imag) < 1e-9 * size):
                continue
        factor = -1 / value.real
        if 1 <= factor < up:
            up, up_at = factor, omega
        if down < factor <= 1:
            down, down_at = factor, omega
    return up, up_at, down, down_at


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _phases(found):  # type: ignore[no-untyped-def]
    """The least lag or lead [degrees] and its frequency, and the least extra delay and its
    frequency.
    """
    phase, phase_at, delay, delay_at = np.inf, np.nan, np.inf, np.nan
    for k in range(len(found.kind)):
        if found.kind[k] != CIRCLE:
            continue
        omega = found.omega[k]
        lag = np.angle(-found.value[k, 2])  # in (-pi, pi]: the lag that brings the locus to -1
        if abs(lag) < abs(phase):
            phase, phase_at = lag, omega
        wait = (lag + 2 * np.pi if lag < -1e-12 else max(lag, 0.0)) / omega
        if wait < delay:
            delay, delay_at = wait, omega
    return np.degrees(phase), phase_at, delay, delay_at
