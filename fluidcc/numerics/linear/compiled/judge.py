"""Everything that is read off the eigenloci of a return ratio. Compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.linear.compiled.elimination import outlook
from fluidcc.numerics.linear.compiled.loci import (
    DECADES,
    FAR,
    SMALL,
    WEAK,
    assign,
    beginning,
    reach,
    trace,
)
from fluidcc.numerics.linear.compiled.points import (
    BOTH,
    LARGEST,
    LEAST,
    NEITHER,
    at_point,
    loop_of,
    norm,
    square,
)  # fmt: skip

AXIS, CIRCLE, LOWEST, HIGHEST = range(4)
KINDS = 4
ROUNDS = 50
NOTHING = 1e-18  # crossings of the axis nearer to the origin are rounding


class Features(NamedTuple):
    """What lies between the points of a grid: crossings and extrema, polished to rounding."""

    kind: Any
    omega: Any
    value: Any  # the eigenvalue there, or the singular value


@njit()
def search(loop, grid, kinds):  # type: ignore[no-untyped-def]
    """All of the first so many kinds."""
    points, rank = grid.value.shape
    room = 4 * points * rank
    found = Features(np.empty(room, np.int64), np.empty(room), np.empty(room, np.complex128))
    values, rates = np.empty(rank, np.complex128), np.empty(rank, np.complex128)
    count = _fill(loop, grid, kinds, values, rates, np.empty(4), found)
    return Features(found.kind[:count], found.omega[:count], found.value[:count])


@njit(counted=False)
def _fill(loop, grid, kinds, values, rates, edge, found):  # type: ignore[no-untyped-def]
    """The same with room for what is found at a point; how many there are."""
    (points, rank), count = grid.value.shape, 0
    for i in range(points - 1):
        for kind in range(kinds):
            crossing = kind in (CIRCLE, AXIS)
            for j in range(rank if crossing else 1):
                if not _holds(grid, i, j, kind):
                    continue
                if crossing:
                    omega, value = _crossing(loop, grid, i, j, kind, values, rates, edge)
                else:
                    omega, size = _extremum(loop, grid, i, kind, values, rates, edge)
                    value = complex(size, 0.0)
                found.kind[count], found.omega[count], found.value[count] = kind, omega, value
                count += 1
    return count


@njit(counted=False)
def _holds(grid, i, j, kind):  # type: ignore[no-untyped-def]
    """Whether there is one of a kind after point i."""
    if kind in (CIRCLE, AXIS):
        return _crosses(grid.value[i, j], grid.value[i + 1, j], kind)
    column, sign = (1, 1.0) if kind == LOWEST else (3, -1.0)
    return sign * grid.edge[i, column] < 0 <= sign * grid.edge[i + 1, column]


@njit(counted=False)
def _crosses(a, b, kind):  # type: ignore[no-untyped-def]
    """Whether the locus between two points crosses the circle, or the negative axis."""
    if kind == CIRCLE:
        return (square(a) >= 1) != (square(b) >= 1)
    if (a.imag >= 0) == (b.imag >= 0) or not max(square(a), square(b)) > NOTHING**2:
        return False
    rise = a.imag - b.imag
    return a.real + (b.real - a.real) * (0.5 if rise == 0 else a.imag / rise) < 0


@njit(counted=False)
def _crossing(loop, grid, i, locus, kind, values, rates, edge):  # type: ignore[no-untyped-def]
    """Where a locus crosses after point i, and its value there: Newton's iteration in a bracket."""
    low, high = grid.omega[i], grid.omega[i + 1]
    width, last = high - low, np.inf
    first, end = _level(grid.value[i, locus], kind), _level(grid.value[i + 1, locus], kind)
    part = first / (first - end)
    omega, value = low + width * (part if 0.02 < part < 0.98 else 0.5), 0j
    for _ in range(ROUNDS):
        at_point(loop, complex(0.0, omega), NEITHER, values, rates, edge)
        pick = _followed(grid, i, locus, omega, values)
        value, rate = values[pick], 1j * rates[pick]
        height, turn = _level(value, kind), rate / value if value != 0 else 0j
        pace = turn.real if kind == CIRCLE else turn.imag
        fresh = omega - height / pace if pace != 0 else np.inf
        if (height >= 0) == (first >= 0):
            low = omega
        else:
            high = omega
        outside, step = not (low < fresh < high), abs(fresh - omega)
        if abs(height) < 4e-16 or step <= 4e-16 * omega or high - low <= 4e-16 * omega:
            break
        # where the tangent leads far out of a short bracket, two loci were taken for one, and none
        # crosses
        if outside and step > 100 * (high - low) and high - low < 1e-3 * width:
            break
        if not outside and step <= 1e-9 * omega and step <= 1e-3 * last:
            # Newton's steps square: the one after this is below rounding, and the value follows
            # its tangent
            return fresh, value + rate * (fresh - omega)
        last = np.inf if outside else step
        omega = 0.5 * (low + high) if outside else fresh
    return omega, value


@njit()
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


@njit(counted=False)
def _level(value, kind):  # type: ignore[no-untyped-def]
    """What vanishes at a crossing: the logarithm of the modulus, or the angle to the negative
    axis.
    """
    if kind == CIRCLE:
        return np.log(abs(value))
    return np.arctan2(-value.imag, -value.real)


@njit(counted=False)
def _extremum(loop, grid, i, kind, values, rates, edge):  # type: ignore[no-untyped-def]
    """Where a singular value is least or largest after point i, and how large it is there."""
    at, wanted = (0, LEAST) if kind == LOWEST else (2, LARGEST)
    low, high, size = grid.omega[i], grid.omega[i + 1], 0.0
    a, da = grid.edge[i, at], grid.edge[i, at + 1]
    b, db = grid.edge[i + 1, at], grid.edge[i + 1, at + 1]
    omega = _bottom(low, high, a, b, da, db)
    for turn in range(ROUNDS):
        at_point(loop, complex(0.0, omega), wanted, values, rates, edge)
        size, rise = edge[at], edge[at + 1]
        if (rise < 0) == (da < 0):
            low, a, da = omega, size, rise
        else:
            high, b, db = omega, size, rise
        fresh = _bottom(low, high, a, b, da, db)
        # the value is stationary: what it changes by is half of that product
        if abs(rise) * abs(fresh - omega) < 1e-15 * (size + 1e-3) or high - low < 1e-9 * high:
            return fresh, size
        if turn > 2 and turn % 2:
            # where two singular values cross there is a kink, where their tangents do
            fresh = (b - a + da * low - db * high) / (da - db)
        omega = fresh if low < fresh < high else 0.5 * (low + high)
    return omega, size


@njit(counted=False)
def _bottom(low, high, a, b, da, db):  # type: ignore[no-untyped-def]
    """Where the cubic with these values and derivatives at both ends has its extremum; else the
    middle.
    """
    width, sign = high - low, -1.0 if da > 0 else 1.0
    da, db = sign * da, sign * db
    mean = da + db - 3 * sign * (b - a) / width
    root = np.sqrt(mean * mean - da * db)
    part = 1 - (db + root - mean) / (db - da + 2 * root)
    return low + width * (part if 0 < part < 1 else 0.5)


# --- the margins ----------------------------------------------------------------------------------


# that are read off, in the order of `fluidcc.numerics.linear.margins.READ`
MARGINS = 16
FREQUENCIES = 10  # from this one on they are frequencies
DELAY = 4
ENDLESS = 1e12  # an L(0) as large as this is that of an integrator
STRONG, SETTLED = 1e7, 1e-5  # loops beyond which, and changes by a decade up to which, are at rest
STRONGER = 50.0  # times a loop is made stronger where a gain margin is beyond what is followed
STRONGEST = 1e18
TURNS = 3e4  # radians of all loci up to which those of a loop that never is weak are followed
VAST = 1e12  # factors above this are one over the rounding of parts that cancel
CLOSE = 1e-6  # to -1, where a locus begins that is there but for rounding


@njit(entry=True)
def followed(whole, real, poles, proper, m, low, high, points):  # type: ignore[no-untyped-def]
    """Frequencies and eigenloci there: what these need, and `points` frequencies in equal ratios
    beside.
    """
    loop, ahead = loop_of(whole, real, m), outlook(poles, proper, whole, real)
    least = beginning(loop, ahead.low) if np.isnan(low) else low
    most = reach(loop, ahead.high, 1.0, ahead.most) if np.isnan(high) else high
    if not 0 < least < most:
        return np.array([least, most]), np.empty((0, 0), np.complex128)
    even = least * (most / least) ** (np.arange(1, points - 1) / (points - 1))
    grid = trace(loop, least, most, np.sort(np.concatenate((ahead.swings, even))), 1.0)
    return grid.omega, grid.value


@njit(entry=True)
def judge(whole, table, poles, proper, m, times, drifts):  # type: ignore[no-untyped-def]
    """The margins of every system; of the last, all frequencies of a locus of modulus one.

    Parameters
    ----------
    whole : array of int
        As `fluidcc.numerics.linear.pencil.Pencil.loop` has it.
    table : array (systems, floats)
        The floats of each pencil.
    poles, proper : array (systems, states), bool
        As `Pencil.outlook` has them.
    m : int
        Number of inputs.
    times : array (systems)
        The unit of time of each [s].
    drifts : bool
        Whether roots of the closed loops at zero are left out, and with them what leads to zero.
    """
    out, every = np.empty((len(table), MARGINS)), np.empty(0)
    for k in range(len(table)):
        loop = loop_of(whole, table[k], m)
        ahead = outlook(poles[k], proper, whole, table[k])
        if not proper and reach(loop, ahead.high, 1.0, ahead.most) * loop.rank > TURNS:
            out[k] = np.nan
            continue
        best, every = _margins(loop, ahead, drifts)
        for i in range(len(best)):
            out[k, i] = best[i] / times[k] if i >= FREQUENCIES else best[i]
        out[k, DELAY] *= times[k]
    return out, every / times[len(times) - 1]


@njit()
def _margins(loop, ahead, drifts):  # type: ignore[no-untyped-def]
    """The margins of one system in its unit of time, and the frequencies of a modulus of one."""
    end = reach(loop, ahead.high, 1.0, ahead.most)
    grid = trace(loop, beginning(loop, ahead.low), end, ahead.swings, 1.0)
    begin = (_turned(grid, 0, 1.0), _turned(grid, 2, -1.0)) if drifts else (0, 0)
    found, rank = search(loop, grid, KINDS), grid.value.shape[1]
    still, rates, edge = np.zeros(rank, np.complex128), np.zeros(rank, np.complex128), np.empty(4)
    best = _best(grid, found, begin)
    begun = grid.omega[begin[0]] if begin[0] < len(grid.omega) else np.inf
    for k in range(len(found.kind)):  # a distance to -1 that is read there is no less
        if found.kind[k] in (CIRCLE, AXIS) and abs(1 + found.value[k]) < best[0]:
            at_point(loop, complex(0.0, found.omega[k]), LEAST, still, rates, edge)
            if found.omega[k] >= begun:
                best = edge[0], found.omega[k], best[2], best[3]
    at, rests = _towards_rest(loop, grid, still, rates, edge), begin[0] == 0 == begin[1]
    if rests:
        best = _worse(best, edge, at)
    at_point(loop, 0j, BOTH, still, rates, edge)
    size = norm(loop)
    if np.isfinite(size) and rests:
        best = _worse(best, edge, 0.0)
    modulus, modulus_at, mt, mt_at = best
    if ahead.modulus < modulus:
        modulus, modulus_at = ahead.modulus, np.inf
    if drifts:  # loci that begin at -1
        still = still[np.abs(1 + still) > CLOSE]
    gain = _gains(found, still if size < ENDLESS else still[:0])
    up, up_at, down, down_at = _if_stronger(loop, ahead, grid, end, gain)
    if up > VAST:
        up, up_at = np.inf, np.nan
    if down < 1 / VAST:
        down, down_at = 0.0, np.nan
    nearest = up if down == 0 or up <= 1 / down else down
    lag, lead, phase, phase_at, delay, delay_at = _phases(found)
    if _lost(grid):
        up = down = nearest = phase = delay = lag = lead = np.nan
    ms = 1 / max(modulus, np.finfo(np.float64).tiny)
    if not np.isfinite(mt):
        mt = np.nan
    read = (
        up, down, nearest, phase, delay, modulus, ms, mt, lag, lead,
        phase_at, up_at, down_at, delay_at, modulus_at, mt_at,
    )  # fmt: skip
    return read, found.omega[found.kind == CIRCLE]


@njit(counted=False)
def _lost(grid):  # type: ignore[no-untyped-def]
    """Whether a locus turns faster than it is followed, near the unit circle."""
    for i in range(len(grid.omega) - 1):
        for j in range(grid.value.shape[1]):
            a, b = grid.value[i, j], grid.value[i + 1, j]
            size = max(square(a), square(b))
            if SMALL**2 < size < FAR**2 and square(b - a) > size:
                return True
    return False


@njit()
def _towards_rest(loop, grid, values, rates, edge):  # type: ignore[no-untyped-def]
    """A frequency below all others, and put into `edge` the singular values there, if these have a
    limit other than 0 and infinity: channels beside those that integrate have.
    """
    omega, before = grid.omega[0], grid.edge[0]
    for _ in range(DECADES):
        omega *= 0.1
        at_point(loop, complex(0.0, omega), BOTH, values, rates, edge)
        if not (norm(loop) < STRONG and STRONG * edge[0] > 1):
            break
        if (np.abs(edge - before) <= SETTLED * np.abs(before))[::2].all():
            return omega
        before = edge.copy()
    edge[:] = (np.inf, 0.0, 0.0, 0.0)
    return omega


@njit()
def _if_stronger(loop, ahead, grid, end, gain):  # type: ignore[no-untyped-def]
    """The gains with the least above one, where it is beyond what is followed to `end`."""
    factor, none = 1.0, np.empty(0, np.complex128)
    while gain[0] * WEAK > factor and end < ahead.far and factor < STRONGEST:
        begin = _weak_from(grid, factor)
        factor *= STRONGER
        end = reach(loop, end, factor, ahead.far)
        grid = trace(loop, begin, end, ahead.swings, factor)
        more = _gains(search(loop, grid, AXIS + 1), none)
        if more[0] < gain[0]:
            gain = (more[0], more[1], gain[2], gain[3])
    return gain


@njit(counted=False)
def _weak_from(grid, factor):  # type: ignore[no-untyped-def]
    """Where a locus of `factor` times L begins to be too small to be refined; all crossings
    before are known.
    """
    for i in range(len(grid.omega)):
        for value in grid.value[i]:
            if not factor * abs(value) > SMALL:
                return grid.omega[max(i - 1, 0)]
    return grid.omega[-1]


@njit(counted=False)
def _turned(grid, column, power):  # type: ignore[no-untyped-def]
    """The point from which on a singular value counts: where it first turns, if before that it is
    as that power of the frequency.
    """
    size, rise = grid.edge[:, column], grid.edge[:, column + 1]
    if not abs(grid.omega[0] * rise[0] - power * size[0]) < 0.5 * size[0]:
        return 0
    for i in range(len(size)):
        if power * rise[i] < 0:
            return i
    return len(size)


@njit(counted=False)
def _best(grid, found, begin):  # type: ignore[no-untyped-def]
    """The least and the largest singular value, each with its frequency, from two points on, and
    between these.
    """
    least, least_at, most, most_at = np.inf, np.nan, -np.inf, np.nan
    for i in range(len(grid.omega)):  # not so where a pole on the axis leaves no number
        if i >= begin[0] and grid.edge[i, 0] < least:
            least, least_at = grid.edge[i, 0], grid.omega[i]
        if i >= begin[1] and grid.edge[i, 2] > most:
            most, most_at = grid.edge[i, 2], grid.omega[i]
    for k in range(len(found.kind)):
        size = found.value[k].real
        if found.kind[k] == LOWEST and size < least:
            least, least_at = size, found.omega[k]
        if found.kind[k] == HIGHEST and size > most:
            most, most_at = size, found.omega[k]
    return least, least_at, most, most_at


@njit(counted=False)
def _worse(best, edge, omega):  # type: ignore[no-untyped-def]
    """The same with the singular values at one frequency."""
    least, least_at, most, most_at = best
    if edge[0] < least:
        least, least_at = edge[0], omega
    if edge[2] > most:
        most, most_at = edge[2], omega
    return least, least_at, most, most_at


@njit(counted=False)
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
            value, omega = found.value[k], found.omega[k]
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


@njit(counted=False)
def _phases(found):  # type: ignore[no-untyped-def]
    """The least lag, the least lead, that of both which is less, negative for a lead [degrees], and
    its frequency; the least extra delay and its frequency.
    """
    most_lag, most_lead = np.inf, np.inf
    phase, phase_at, delay, delay_at = np.inf, np.nan, np.inf, np.nan
    for k in range(len(found.kind)):
        if found.kind[k] != CIRCLE:
            continue
        omega = found.omega[k]
        lag = np.angle(-found.value[k])  # in (-pi, pi]: the lag that brings the locus to -1
        if abs(lag) < abs(phase):
            phase, phase_at = lag, omega
        most_lag = min(most_lag, lag if lag >= 0 else lag + 2 * np.pi)
        most_lead = min(most_lead, -lag if lag <= 0 else 2 * np.pi - lag)
        wait = (lag + 2 * np.pi if lag < -1e-12 else max(lag, 0.0)) / omega
        if wait < delay:
            delay, delay_at = wait, omega
    turns = np.degrees(most_lag), np.degrees(most_lead), np.degrees(phase)
    return turns[0], turns[1], turns[2], phase_at, delay, delay_at
