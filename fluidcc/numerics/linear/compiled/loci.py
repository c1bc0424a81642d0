"""Eigenloci: the eigenvalues of a return ratio along the imaginary axis, each followed continuously.

Compiled, and one system at a time: what is found of a system does not depend on those beside it in a stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.replay import CORNER, SLOTS, eliminate, pivoted, room
from fluidcc.numerics.linear.compiled.singular import singular
from fluidcc.numerics.linear.compiled.small import finite, singular_values, solve, times

__all__ = ["Grid", "Loop", "at", "eigen", "loop_of", "point", "span", "trace"]

Floats = NDArray[np.float64]

PER_DECADE = 8
TURN = 0.5  # radians that a locus may turn over an interval
SMALL = 0.02  # loci below this are not refined: they change no margin below 1/SMALL
FAR = 30.0  # loci beyond this are followed in proportion to their size
ROUNDS = 14
RANK = 1e-11  # singular values below this fraction of the largest are none


class Loop(NamedTuple):
    """A return ratio L ready to be evaluated, with room for what is evaluated."""

    whole: Any  # integers of its pencil
    real: Any  # floats
    work: Any
    ratio: Any  # L at the last point, (m, m)
    slope: Any  # its derivative with respect to s
    basis: Any  # (m, rank), into which a deficient rank is projected


class Grid(NamedTuple):
    """Points by rising frequency.

    `value` and `slope` are the eigenvalues of L other than zeros of a deficient rank, (points, rank), followed
    continuously, and their derivatives with respect to s; `edge` are the least singular value of I + L, its derivative
    with respect to the frequency, and the same for the largest of L (I + L)^-1, (points, 4).
    """

    omega: Any
    value: Any
    slope: Any
    edge: Any


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def at(loop, s):  # type: ignore[no-untyped-def]
    """Evaluate L and its slope at s, into the loop."""
    whole, work = loop.whole, loop.work
    _, _, _, poor = eliminate(s, whole, loop.real, work, True, False)
    m = len(loop.ratio)
    if poor or s == 0:  # at the origin the pencil may be singular
        pivoted(s, whole, loop.real, loop.ratio, loop.slope)
        return
    for i in range(m):
        for j in range(m):
            slot = whole[whole[CORNER] + i * m + j]
            loop.ratio[i, j], loop.slope[i, j] = work[slot], work[whole[SLOTS] + slot]


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def loop_of(whole, real, m):  # type: ignore[no-untyped-def]
    """The loop of a pencil's integers and the floats of one system with m ports."""
    work = room(whole, real)
    ratio, slope = np.zeros((m, m), np.complex128), np.zeros((m, m), np.complex128)
    loop = Loop(whole, real, work, ratio, slope, np.zeros((m, 1), np.complex128))
    rank = 1
    for k in range(3 if m > 1 else 0):
        at(loop, (0.03 + 0.4j, 0.1 + 1.3j, 0.2 + 4.1j)[k])
        if finite(ratio):
            size = singular_values(ratio.copy(), np.zeros((0, m), np.complex128))
            rank = max(rank, (size > RANK * size.max()).sum())
    basis = np.zeros((m, rank), np.complex128)
    for i in range(m):
        for j in range(rank):
            basis[i, j] = (np.sin(12.9898 * (i + 1) + 78.233 * (j + 1)) * 43758.5453) % 1.0 - 0.5
    return Loop(whole, real, work, ratio, slope, basis)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def span(loop, low, high):  # type: ignore[no-untyped-def]
    """The least and the highest frequency at which the loci matter, from a guess."""
    m = len(loop.ratio)
    for _ in range(12):  # until the loop is weak
        at(loop, 1j * high)
        size = 0.0
        for i in range(m):
            total = 0.0
            for j in range(m):
                total += abs(loop.ratio[i, j])
            size = max(size, total)
        if not size > 0.1:
            break
        high *= 3
    return low, high


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def eigen(loop, value, rate):  # type: ignore[no-untyped-def]
    """Eigenvalues of L other than the zeros of a deficient rank, and their derivatives, in no order."""
    m, rank = loop.basis.shape
    if rank == 1:  # the only eigenvalue is the trace
        value[0], rate[0] = np.trace(loop.ratio), np.trace(loop.slope)
        return
    matrix, change = loop.ratio, loop.slope
    if not finite(matrix):
        value[:], rate[:] = np.inf, 0.0
        return
    if rank < m:  # L = Y (Z X)^-1 Z with Y = L X, Z = X' L; its eigenvalues are those of (Z X)^-1 Z Y
        X = loop.basis  # real
        left, left_rate = times(loop.ratio, X, True), times(loop.slope, X, True)  # Z* and its change
        right, right_rate = times(loop.ratio, X, False), times(loop.slope, X, False)
        matrix, inner = times(left, right, True), times(left, X, True)
        solve(inner.copy(), matrix)
        change = times(left_rate, right, True) + times(left, right_rate, True)
        change -= times(times(left_rate, X, True), matrix, False)
        solve(inner, change)
    if rank == 2:
        half = 0.5 * (matrix[0, 0] + matrix[1, 1])
        det = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
        root = np.sqrt(half * half - det)
        far = half + root if (half * root.conjugate()).real >= 0 else half - root
        value[0], value[1] = far, det / far if far != 0 else 0j
        turn = 0.5 * (change[0, 0] + change[1, 1])
        # from the characteristic polynomial: 2 (v - half) v' = 2 half' v - det'
        cross = matrix[0, 0] * change[1, 1] + change[0, 0] * matrix[1, 1]
        cross -= matrix[0, 1] * change[1, 0] + change[0, 1] * matrix[1, 0]
        for j in range(2):
            gap = 2 * (value[j] - half)
            rate[j] = (2 * turn * value[j] - cross) / gap if abs(gap) > 1e-12 * (abs(far) + 1e-300) else turn
        return
    _eigen_of_many(matrix, change, value, rate)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _eigen_of_many(matrix, change, value, rate):  # type: ignore[no-untyped-def]
    """The same by decomposition."""
    n, size = len(matrix), np.abs(matrix).max()
    turned = change
    for attempt in range(2):
        if attempt:  # a Jordan block: off by a hair it has eigenvectors
            bent = matrix.copy()
            for i in range(n):
                for j in range(n):
                    bent[i, j] += 1e-12 * size * np.sin(1.0 + 3.7 * i + 1.9 * j + i * j)
            matrix = bent
        values, vectors = np.linalg.eig(matrix)
        value[:], rate[:] = values, 0.0
        turned = times(change, vectors, False)
        if solve(vectors, turned) > 1e-13:
            break
    for j in range(n):
        if np.isfinite(abs(turned[j, j])):
            rate[j] = turned[j, j]


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def point(loop, omega, value, rate, edge):  # type: ignore[no-untyped-def]
    """All that a `Grid` holds of one frequency."""
    at(loop, 1j * omega)
    eigen(loop, value, rate)
    for k in range(2):  # a literal True or False would be compiled apart
        edge[2 * k], edge[2 * k + 1] = singular(loop.ratio, loop.slope, loop.basis, k == 1)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def trace(loop, low, high):  # type: ignore[no-untyped-def]
    """Follow the loci from the lowest to the highest frequency.

    The grid starts with equal ratios; intervals are halved where a locus that matters turns by more than half a
    radian, or changes its modulus by more than a factor, or may touch the unit circle.
    """
    rank = loop.basis.shape[1]
    count = int(PER_DECADE * np.log10(high / low)) + 2
    grid = _room(count, rank)
    for i in range(count):
        grid.omega[i] = np.exp(np.log(low) + (np.log(high) - np.log(low)) * i / (count - 1))
        point(loop, grid.omega[i], grid.value[i], grid.slope[i], grid.edge[i])
    _follow(grid)
    for _ in range(ROUNDS):
        coarse = np.zeros(count, np.bool_)
        for i in range(count - 1):
            coarse[i] = _coarse(grid, i)
        more = coarse.sum()
        if not more:
            break
        finer, k = _room(count + more, rank), 0
        for i in range(count):
            finer.omega[k], finer.value[k], finer.slope[k] = grid.omega[i], grid.value[i], grid.slope[i]
            finer.edge[k] = grid.edge[i]
            k += 1
            if coarse[i]:
                finer.omega[k] = 0.5 * (grid.omega[i] + grid.omega[i + 1])
                point(loop, finer.omega[k], finer.value[k], finer.slope[k], finer.edge[k])
                k += 1
        grid, count = finer, k
        _follow(grid)
    return grid


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def _room(count, rank):  # type: ignore[no-untyped-def]
    return Grid(
        np.empty(count),
        np.empty((count, rank), np.complex128),
        np.empty((count, rank), np.complex128),
        np.empty((count, 4)),
    )


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _coarse(grid, i):  # type: ignore[no-untyped-def]
    """Whether the interval from point i to the next is too long."""
    width = grid.omega[i + 1] - grid.omega[i]
    if not width > 1e-9 * grid.omega[i + 1]:
        return False
    for j in range(grid.value.shape[1]):
        a, b, da, db = grid.value[i, j], grid.value[i + 1, j], grid.slope[i, j], grid.slope[i + 1, j]
        size = max(abs(a), abs(b))
        if not size > SMALL:
            continue
        jump, to_a, to_b = abs(b - a), abs(a + 1), abs(b + 1)
        if jump > 0.6 * min(to_a, to_b) + 0.03:  # the least distance to -1 is a margin
            return True
        far = size > FAR  # no margin is read there but a crossing of the axis, which a chord of a few per cent shows
        if jump > TURN * size and not far:
            return True
        # the chord against what the two tangents foretell: both the turn and a wrong assignment show in it
        allowed = 0.05 * (0.2 if min(to_a, to_b) < 1.0 else 1.0) * (size if far else min(size, 2.0))
        if abs(b - a - 0.5j * (da + db) * width) > allowed:
            return True
        if a == 0 or b == 0:
            return True
        if (1j * da / a).real * (1j * db / b).real < 0 and abs(np.log(size)) < 0.3 and jump > 0.02:
            return True
    return False


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _follow(grid):  # type: ignore[no-untyped-def]
    """Number the eigenvalues of each point like those of the point before, by nearness to the tangents."""
    points, rank = grid.value.shape
    if rank == 1:
        return
    cost = np.empty((rank, rank))
    order = np.empty(rank, np.int64)
    for i in range(points - 1):
        half = 0.5j * (grid.omega[i + 1] - grid.omega[i])
        for j in range(rank):
            ahead = grid.value[i, j] + half * grid.slope[i, j]
            for k in range(rank):
                cost[j, k] = abs(ahead - (grid.value[i + 1, k] - half * grid.slope[i + 1, k]))
        if rank == 2:
            flip = cost[0, 1] + cost[1, 0] < cost[0, 0] + cost[1, 1]
            order[0], order[1] = (1, 0) if flip else (0, 1)
        else:
            for _ in range(rank):  # the nearest pair first; where that is wrong the chords show it
                best = np.argmin(cost)
                j, k = best // rank, best % rank
                order[j] = k
                cost[j, :] = np.inf
                cost[:, k] = np.inf
        value, slope = grid.value[i + 1].copy(), grid.slope[i + 1].copy()
        for j in range(rank):
            grid.value[i + 1, j], grid.slope[i + 1, j] = value[order[j]], slope[order[j]]
