"""Eigenloci: the eigenvalues of a return ratio along the imaginary axis, each followed
continuously. Compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.linear.compiled.elimination import ENTRIES
from fluidcc.numerics.linear.compiled.points import (
    BOTH,
    NEITHER,
    Loop,
    at_point,
    square,
    strength,
)


@njit()
def assign(foretold, found, order):  # type: ignore[no-untyped-def]
    """`order[j]` is the number in `found` of what was `foretold` as number j: one after the other
    the nearest that is left. Where that is not clear an interval is too long, and is halved.
    """
    taken = np.zeros(len(order), np.bool_)
    for j in range(len(order)):
        least, order[j] = np.inf, -1
        for k in range(len(order)):
            gap = square(foretold[j] - found[k])
            if not taken[k] and (order[j] < 0 or gap < least):
                least, order[j] = gap if gap < np.inf else np.inf, k
        taken[order[j]] = True


# --- eigenloci ------------------------------------------------------------------------------------


PER_DECADE = 5
WEAK = 0.1  # a loop is followed until it is below this
TURN = 0.5  # radians that a locus may turn over an interval
SMALL = 0.02  # loci below this are not refined
FAR = 30.0  # loci beyond this are followed in proportion to their size
ROUNDS = 14  # times that an interval is halved


class FrequencyGrid(NamedTuple):
    """Points by rising frequency.

    `value` and `slope` are the eigenvalues of L other than zeros of a deficient rank, (points,
    rank), followed continuously, and their derivatives with respect to s; `edge` are the least
    singular value of I + L, its derivative with respect to the frequency, and the same for the
    largest of L (I + L)^-1, (points, 4).
    """

    omega: Any
    value: Any
    slope: Any
    edge: Any


@njit()
def reach(loop, high, factor, most):  # type: ignore[no-untyped-def]
    """From which frequency on `factor` times L is weak: `high` or higher, up to `most`."""
    omega = high
    while omega < most and factor * strength(loop, complex(0.0, omega)) > WEAK:
        omega *= 3.0
    return min(omega, most)


BENT = 1e-11  # of entries: what changes by as much as itself with it is rounding
KNOWN = 1e-4  # of a locus that may change with it
LOWER, DECADES = 0.1, 20  # steps down at most until all that is slow is passed
POINTS = 8  # of half a circle
CLEAR = 0.25  # least power of s by which a locus is said to rise or to fall


@njit()
def beginning(loop, low):  # type: ignore[no-untyped-def]
    """Where the loci begin: `low`, or below poles and zeros that are slower, and the crossovers of
    the powers of s that the loci are from there on, as far as these are more than rounding.

    The product of the loci has its poles and zeros within a circle at zero alone if the sums of
    their powers vanish there.
    """
    rank = loop.rank
    values, rates, edge = np.empty(rank, np.complex128), np.empty(rank, np.complex128), np.empty(4)
    known, start = np.empty(rank), low
    for _ in range(DECADES):
        _sure(loop, low, values, rates, edge, known)
        worst = known.max()
        if not worst < KNOWN:
            low = min(low / LOWER, start)
            break
        sums = np.zeros(4, np.complex128)
        for k in range(POINTS):
            turn = np.exp(1j * np.pi * (k + 0.5) / POINTS)
            at_point(loop, low * turn, NEITHER, values, rates, edge)
            for j in range(rank):
                for power in range(4 if values[j] != 0 else 0):
                    sums[power] += turn ** (power + 2) * low * rates[j] / values[j]
        if not np.abs(sums.real).max() / POINTS > 10 * worst:
            break
        low *= LOWER
    _sure(loop, low, values, rates, edge, known)
    begin, here, turns = low, values.copy(), rates.copy()
    for i in range(rank):
        size = abs(here[i])
        power = (1j * low * turns[i] / here[i]).real if size != 0 else 0.0
        if abs(power) > CLEAR and (size < 1) == (power < 0):
            omega = low * size ** (-1 / power)
            _sure(loop, omega, values, rates, edge, known)
            for j in range(rank):
                if known[j] < KNOWN and 0.5 < abs(values[j]) < 2:
                    begin = min(begin, 0.3 * omega)
    return begin


@njit()
def _sure(loop, omega, values, rates, edge, known):  # type: ignore[no-untyped-def]
    """The loci at a frequency, and by how much of itself each and its slope change if entries are
    off by `BENT`.
    """
    rank, s = len(values), complex(0.0, omega)
    bent, order = loop.real.copy(), np.zeros(rank, np.int64)
    for k in range(3 * loop.whole[ENTRIES]):
        bent[k] *= 1 + BENT * np.sin(1.0 + 2.3 * k)
    other = Loop(
        loop.whole, bent, loop.work, loop.left, loop.left_rate, loop.right, loop.right_rate,
        loop.rank,
    )  # fmt: skip
    at_point(other, s, NEITHER, values, rates, edge)
    moved, turned = values.copy(), rates.copy()
    at_point(loop, s, NEITHER, values, rates, edge)
    assign(values, moved, order)
    for j in range(rank):
        off = abs(moved[order[j]] - values[j]) + omega * abs(turned[order[j]] - rates[j])
        known[j] = off / abs(values[j]) if values[j] != 0 else np.inf


@njit()
def trace(loop, low, high, swings, factor):  # type: ignore[no-untyped-def]
    """Follow the loci from the lowest to the highest frequency, as finely as `factor` times L asks
    for.

    The grid starts with equal ratios, and with the frequencies `swings` among them; intervals are
    halved where a locus that matters turns by more than half a radian, or changes its modulus by
    more than a factor, or may touch the unit circle.
    """
    first, rank = _first(low, high, swings), loop.rank
    grid, ahead = _room(4 * len(first), rank), _room(ROUNDS + 1, rank)
    order, halved = np.empty(rank, np.int64), np.zeros(ROUNDS + 1, np.int64)
    _evaluate(loop, grid, 0, first[0])
    count = 1
    for k in range(1, len(first)):
        _evaluate(loop, ahead, 0, first[k])
        depth = halved[0] = 0
        while depth >= 0:  # the next point to reach is the last of those ahead
            if count == len(grid.omega):
                grid = _longer(grid)
            _match(grid, count - 1, ahead, depth, order)
            coarse = _coarse(grid, count - 1, ahead, depth, order, factor)
            if coarse and halved[depth] < ROUNDS:
                middle = 0.5 * (grid.omega[count - 1] + ahead.omega[depth])
                halved[depth] += 1
                depth += 1
                halved[depth] = halved[depth - 1]
                _evaluate(loop, ahead, depth, middle)
            else:
                _append(grid, count, ahead, depth, order)
                count += 1
                depth -= 1
    return FrequencyGrid(
        grid.omega[:count], grid.value[:count], grid.slope[:count], grid.edge[:count]
    )


@njit()
def _first(low, high, swings):  # type: ignore[no-untyped-def]
    """Frequencies in equal ratios, with the swings that lie between them."""
    even = int(PER_DECADE * np.log10(high / low)) + 2
    grid = low * (high / low) ** (np.arange(even) / (even - 1))
    grid[-1] = high
    return np.sort(np.concatenate((grid, swings[(swings > low) & (swings < high)])))


@njit()
def _room(count, rank):  # type: ignore[no-untyped-def]
    return FrequencyGrid(
        np.empty(count),
        np.empty((count, rank), np.complex128),
        np.empty((count, rank), np.complex128),
        np.empty((count, 4)),
    )


@njit()
def _longer(grid):  # type: ignore[no-untyped-def]
    """The same with twice the room."""
    count = len(grid.omega)
    longer = _room(2 * count, grid.value.shape[1])
    longer.omega[:count], longer.value[:count] = grid.omega, grid.value
    longer.slope[:count], longer.edge[:count] = grid.slope, grid.edge
    return longer


@njit(counted=False)
def _evaluate(loop, grid, i, omega):  # type: ignore[no-untyped-def]
    """Put a frequency and what is found there at place i."""
    grid.omega[i] = omega
    s = complex(0.0, omega)
    at_point(loop, s, BOTH, grid.value[i], grid.slope[i], grid.edge[i])


@njit(counted=False)
def _append(grid, i, ahead, k, order):  # type: ignore[no-untyped-def]
    """Put point k of those ahead at place i, its eigenvalues in that order."""
    grid.omega[i] = ahead.omega[k]
    for j in range(len(order)):
        grid.value[i, j], grid.slope[i, j] = ahead.value[k, order[j]], ahead.slope[k, order[j]]
    for j in range(4):
        grid.edge[i, j] = ahead.edge[k, j]


@njit(counted=False)
def _coarse(grid, i, ahead, k, order, factor):  # type: ignore[no-untyped-def]
    """Whether the interval from point i to point k of those ahead is too long for `factor` times
    L.
    """
    width = ahead.omega[k] - grid.omega[i]
    if not width > 1e-9 * ahead.omega[k]:
        return False
    for j in range(len(order)):
        a, b = factor * grid.value[i, j], factor * ahead.value[k, order[j]]
        da, db = factor * grid.slope[i, j], factor * ahead.slope[k, order[j]]
        size = max(_size(a), _size(b))
        if size <= SMALL:  # what is no number is too long until it is short
            continue
        jump, to_a, to_b = _size(b - a), _size(a + 1), _size(b + 1)
        if not jump <= 0.6 * min(to_a, to_b) + 0.03:  # the least distance to -1 is a margin
            return True
        # no margin is read there but a crossing of the axis, which a chord of a few per cent shows
        far = size > FAR
        if jump > TURN * size and not far:
            return True
        # the chord against what the two tangents foretell: both the turn and a wrong assignment
        # show in it
        allowed = 0.05 * (0.2 if min(to_a, to_b) < 1.0 else 1.0) * (size if far else min(size, 2.0))
        if not _size(b - a - 0.5j * (da + db) * width) <= allowed:
            return True
        if a == 0 or b == 0:
            return True
        if jump > 0.02 and 0.74 < size < 1.35 and (1j * da / a).real * (1j * db / b).real < 0:
            return True
    return False


@njit(counted=False)
def _size(z):  # type: ignore[no-untyped-def]
    """Modulus of what is neither huge nor tiny."""
    return np.sqrt(square(z))


@njit()
def _match(grid, i, ahead, k, order):  # type: ignore[no-untyped-def]
    """Which eigenvalues of point k of those ahead continue those of point i, by where their
    tangents meet half-way.
    """
    half = 0.5j * (ahead.omega[k] - grid.omega[i])
    assign(grid.value[i] + half * grid.slope[i], ahead.value[k] - half * ahead.slope[k], order)
