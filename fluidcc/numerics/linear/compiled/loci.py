"""Eigenloci: the eigenvalues of a return ratio along the imaginary axis, each followed
continuously. Compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.lanes import LANES
from fluidcc.numerics.linear.compiled.points import HERE, abreast, at_point, strength
from fluidcc.numerics.linear.compiled.small import BOTH

__all__ = ["SMALL", "WEAK", "Grid", "assign", "reach", "trace"]


HUGE = 1e300  # the cost of what is no number


@njit(no_cpython_wrapper=True, **COUNTED)
def assign(foretold, found, order):  # type: ignore[no-untyped-def]
    """`order[j]` is the number in `found` of what was `foretold` as number j."""
    rank = len(order)
    if rank == 1:
        order[0] = 0
        return
    cost, taken, clear = np.empty((rank, rank)), np.zeros(rank, np.bool_), True
    for j in range(rank):
        best = 0
        for k in range(rank):
            gap = foretold[j] - found[k]
            square = gap.real * gap.real + gap.imag * gap.imag
            cost[j, k] = square if square < HUGE else HUGE
            if cost[j, k] < cost[j, best]:
                best = k
        clear = clear and not taken[best]
        taken[best], order[j] = True, best
    if not clear:  # otherwise no sum can be less than that of the least of each row
        _shortest_paths(cost, order)


@njit(no_cpython_wrapper=True, **COUNTED)
def _shortest_paths(cost, order):  # type: ignore[no-untyped-def]
    """The assignment of least cost: row after row enters by the shortest path of exchanges [1]_."""
    n = len(order)
    rows, columns = (
        np.zeros(n),
        np.zeros(n + 1),
    )  # what each is worth; column n is where a row enters
    owner, came = np.full(n + 1, -1), np.empty(n, np.int64)
    for row in range(n):
        owner[n], at = row, n
        ahead, reached = np.full(n, np.inf), np.zeros(n + 1, np.bool_)
        while owner[at] >= 0:
            reached[at] = True
            i, least, following = owner[at], np.inf, -1
            for k in range(n):
                if not reached[k]:
                    reduced = cost[i, k] - rows[i] - columns[k]
                    if reduced < ahead[k]:
                        ahead[k], came[k] = reduced, at
                    if following < 0 or ahead[k] < least:
                        least, following = ahead[k], k
            for k in range(n + 1):
                if reached[k]:
                    rows[owner[k]] += least
                    columns[k] -= least
                elif k < n:
                    ahead[k] -= least
            at = following
        while at != n:
            owner[at] = owner[came[at]]
            at = came[at]
    for k in range(n):
        order[owner[k]] = k


# --- eigenloci ------------------------------------------------------------------------------------


PER_DECADE = 5
WEAK = 0.1  # a loop is followed until it is below this
TURN = 0.5  # radians that a locus may turn over an interval
SMALL = 0.02  # loci below this are not refined
FAR = 30.0  # loci beyond this are followed in proportion to their size
ROUNDS = 14


class Grid(NamedTuple):
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


@njit(no_cpython_wrapper=True, **COUNTED)
def reach(loop, high, factor, most):  # type: ignore[no-untyped-def]
    """From which frequency on `factor` times L is weak: `high` or higher, up to `most`."""
    s, nothing, none = 1j * high * 3.0 ** np.arange(LANES), np.empty(0, np.complex128), np.empty(0)
    while s[0].imag < most:
        abreast(loop, s)
        for k in range(LANES):
            if not factor * strength(loop, k, s[k], nothing, none) > WEAK:
                return min(s[k].imag, most)
        s *= 3.0**LANES
    return most


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _evaluate(loop, grid, first, last, s):  # type: ignore[no-untyped-def]
    """Fill in the points of a grid that have these numbers; `s` has room for an octet."""
    for start in range(first, last, LANES):
        count = min(LANES, last - start)
        for k in range(count):
            s[k] = complex(0.0, grid.omega[start + k])
        abreast(loop, s[:count])
        for k in range(count):
            i = start + k
            at_point(loop, k, s[k], BOTH, grid.value[i], grid.slope[i], grid.edge[i])


@njit(no_cpython_wrapper=True, **COUNTED)
def trace(loop, low, high, swings, factor):  # type: ignore[no-untyped-def]
    """Follow the loci from the lowest to the highest frequency, as finely as `factor` times L asks
    for.

    The grid starts with equal ratios, and with the frequencies `swings` among them; intervals are
    halved where a locus that matters turns by more than half a radian, or changes its modulus by
    more than a factor, or may touch the unit circle.
    """
    even, rank = int(PER_DECADE * np.log10(high / low)) + 2, loop.basis.shape[1]
    room = 8 * (even + len(swings))
    grid = _room(room, rank)
    after, order = np.empty(room, np.int64), np.empty(rank, np.int64)  # which point is the next one
    ratio, omega, count = (high / low) ** (1 / (even - 1)), low, 0
    for i in range(even):
        before, omega = omega, low * ratio**i if i < even - 1 else high
        for swing in swings:
            if before < swing < omega:
                grid.omega[count], after[count] = swing, count + 1
                count += 1
        grid.omega[count], after[count] = omega, count + 1
        count += 1
    after[count - 1] = -1
    s = np.empty(LANES, np.complex128)
    _evaluate(loop, grid, 0, count, s)
    waiting = np.arange(count - 1)  # where an interval begins that is to be looked at
    for _ in range(ROUNDS):
        begun = count
        if count + len(waiting) > len(after):
            grid, after = _longer(grid, after)
        again = np.empty(2 * len(waiting), np.int64)
        count = _halved(grid, after, waiting, again, order, count, factor)
        if count == begun:
            break
        _evaluate(loop, grid, begun, count, s)
        waiting = again[: 2 * (count - begun)]
    return _sorted(grid, after, count, order)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _halved(grid, after, waiting, again, order, count, factor):  # type: ignore[no-untyped-def]
    """Put points into the intervals that are too long, and these into `again`; how many points
    there are then.
    """
    begun = count
    for i in waiting:
        _match(grid, i, after[i], order)
        if _coarse(grid, i, after[i], order, factor):
            grid.omega[count] = 0.5 * (grid.omega[i] + grid.omega[after[i]])
            after[count], after[i] = after[i], count
            again[2 * (count - begun)], again[2 * (count - begun) + 1] = i, count
            count += 1
    return count


@njit(no_cpython_wrapper=True, **COUNTED)
def _room(count, rank):  # type: ignore[no-untyped-def]
    return Grid(
        np.empty(count),
        np.empty((count, rank), np.complex128),
        np.empty((count, rank), np.complex128),
        np.empty((count, 4)),
    )


@njit(no_cpython_wrapper=True, **COUNTED)
def _longer(grid, after):  # type: ignore[no-untyped-def]
    """The same with three times the room."""
    count = len(after)
    longer, following = _room(3 * count, grid.value.shape[1]), np.empty(3 * count, np.int64)
    longer.omega[:count], longer.value[:count], longer.slope[:count] = (
        grid.omega,
        grid.value,
        grid.slope,
    )
    longer.edge[:count], following[:count] = grid.edge, after
    return longer, following


@njit(no_cpython_wrapper=True, **COUNTED)
def _sorted(grid, after, count, order):  # type: ignore[no-untyped-def]
    """By rising frequency, the eigenvalues of each point numbered like those of the point
    before.
    """
    rank = len(order)
    out = _room(count, rank)
    _sort(grid, after, count, order, np.arange(rank), np.arange(rank), out)
    return out


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _sort(grid, after, count, order, own, fresh, out):  # type: ignore[no-untyped-def]
    """Put that into `out`; `own` says which eigenvalue of a point has which number."""
    rank, i, before = len(order), 0, -1
    for k in range(count):
        if before >= 0 and rank > 1:
            _match(grid, before, i, order)
            for j in range(rank):
                fresh[j] = order[own[j]]
            for j in range(rank):
                own[j] = fresh[j]
        out.omega[k] = grid.omega[i]
        for j in range(rank):
            out.value[k, j], out.slope[k, j] = grid.value[i, own[j]], grid.slope[i, own[j]]
        for j in range(4):
            out.edge[k, j] = grid.edge[i, j]
        before, i = i, after[i]


@njit(**HERE)
def _coarse(grid, i, k, order, factor):  # type: ignore[no-untyped-def]
    """Whether the interval from point i to point k is too long for `factor` times L."""
    width = grid.omega[k] - grid.omega[i]
    if not width > 1e-9 * grid.omega[k]:
        return False
    for j in range(len(order)):
        a, b = factor * grid.value[i, j], factor * grid.value[k, order[j]]
        da, db = factor * grid.slope[i, j], factor * grid.slope[k, order[j]]
        size = max(_size(a), _size(b))
        if size <= SMALL:  # what is no number is too long until it is short
            continue
        jump, to_a, to_b = _size(b - a), _size(a + 1), _size(b + 1)
        if not jump <= 0.6 * min(to_a, to_b) + 0.03:  # the least distance to -1 is a margin
            return True
        far = (
            size > FAR
            # no margin is read there but a crossing of the axis, which a chord of a few per cent
            # shows
        )
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


@njit(**HERE)
def _size(z):  # type: ignore[no-untyped-def]
    """Modulus of what is neither huge nor tiny."""
    return np.sqrt(z.real * z.real + z.imag * z.imag)


@njit(**HERE)
def _match(grid, i, n, order):  # type: ignore[no-untyped-def]
    """Which eigenvalues of point n continue those of point i, by where their tangents meet
    half-way.
    """
    if len(order) == 1:
        order[0] = 0
        return
    _matched(grid, i, n, order)


@njit(no_cpython_wrapper=True, **COUNTED)
def _matched(grid, i, n, order):  # type: ignore[no-untyped-def]
    """The same of more than one."""
    half = 0.5j * (grid.omega[n] - grid.omega[i])
    assign(grid.value[i] + half * grid.slope[i], grid.value[n] - half * grid.slope[n], order)
