"""A return ratio as a product of a tall and a wide matrix, at eight frequencies at a time, and its eigenvalues.

Compiled, and one system at a time: what is found of a system does not depend on those beside it in a stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.framing import balanced
from fluidcc.numerics.linear.compiled.lanes import slope, value
from fluidcc.numerics.linear.compiled.replay import CORNER, eliminate, is_poor, pivoted, put
from fluidcc.numerics.linear.compiled.small import finite, solve, times

__all__ = ["Loop", "abreast", "eigen", "ready"]


class Loop(NamedTuple):
    """A return ratio L = left right ready to be evaluated, with room for what is evaluated.

    The inner dimension of the product is that of the cut, if there is one and L has its rank; else `left` is L.
    """

    whole: Any  # integers of its pencil
    real: Any  # floats
    work: Any
    cut: int  # unknowns between the factors
    corner: Any  # Schur complement at one point, (cut + m, cut + m)
    corner_rate: Any  # its derivative with respect to s
    left: Any  # (m, inner)
    left_rate: Any
    right: Any  # (inner, m)
    right_rate: Any
    basis: Any  # (m, rank), into which a deficient rank is projected; there are as many loci
    address: int  # of what evaluates any L at one point, see `fluidcc.numerics.linear.compiled.points`


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def abreast(loop, s):  # type: ignore[no-untyped-def]
    """Evaluate L at as many points as there are lanes, or fewer; `ready` then gives one after the other."""
    put(s, loop.whole, loop.work)
    eliminate(loop.whole, loop.real, loop.work, False)


@njit(no_cpython_wrapper=True, **COUNTED)
def ready(loop, lane, s):  # type: ignore[no-untyped-def]
    """Factor L at the point of one lane, which is s."""
    whole, work, size = loop.whole, loop.work, len(loop.corner)
    if s == 0 or is_poor(whole, work, lane):  # at the origin the pencil may be singular
        pivoted(s, whole, loop.real, loop.corner, loop.corner_rate)
    else:
        for i in range(size):
            for j in range(size if i < loop.cut or not loop.cut else loop.cut):
                slot = whole[whole[CORNER] + i * size + j]
                loop.corner[i, j] = loop.corner_rate[i, j] = 0j
                if slot >= 0:
                    loop.corner[i, j], loop.corner_rate[i, j] = value(work, slot, lane), slope(work, slot, lane)
    c = loop.cut
    if c == 0:
        loop.left[:], loop.left_rate[:] = loop.corner, loop.corner_rate
    else:
        _factor(loop, c)


@njit(no_cpython_wrapper=True, **COUNTED)
def _factor(loop, c):  # type: ignore[no-untyped-def]
    """From the Schur complement ((K, V), (U, 0)), of which L = -U K^-1 V."""
    right, rate = -loop.corner[:c, c:], -loop.corner_rate[:c, c:]
    solve(loop.corner[:c, :c].copy(), right)
    rate -= times(loop.corner_rate[:c, :c], right, False)
    solve(loop.corner[:c, :c].copy(), rate)
    left, left_rate = loop.corner[c:, :c].copy(), loop.corner_rate[c:, :c].copy()
    if loop.left.shape[1] == c:
        loop.left[:], loop.left_rate[:], loop.right[:], loop.right_rate[:] = left, left_rate, right, rate
    else:
        loop.left[:] = times(left, right, False)
        loop.left_rate[:] = times(left_rate, right, False) + times(left, rate, False)


@njit(no_cpython_wrapper=True, **COUNTED)
def eigen(loop, value, rate):  # type: ignore[no-untyped-def]
    """Eigenvalues of L other than the zeros of a deficient rank, and their derivatives, in no order."""
    left, right, m, inner = loop.left, loop.right, len(loop.left), loop.left.shape[1]
    if len(value) == 1:  # the only eigenvalue is the trace
        trace = turn = 0j
        for i in range(m):
            for j in range(inner):
                trace += right[j, i] * left[i, j]
                turn += loop.right_rate[j, i] * left[i, j] + right[j, i] * loop.left_rate[i, j]
        value[0], rate[0] = trace, turn
        return
    if not (finite(left) and finite(right)):
        value[:], rate[:] = np.inf, 0.0
        return
    if inner < m:
        matrix = times(right, left, False)
        change = times(loop.right_rate, left, False) + times(right, loop.left_rate, False)
    elif len(value) == m:
        matrix, change = left, loop.left_rate
    else:  # L = Y (Z X)^-1 Z with Y = L X, Z = X' L; its eigenvalues are those of (Z X)^-1 Z Y
        X = loop.basis  # real
        ahead, ahead_rate = times(left, X, True), times(loop.left_rate, X, True)  # Z* and its change
        back, back_rate = times(left, X, False), times(loop.left_rate, X, False)
        matrix, among = times(ahead, back, True), times(ahead, X, True)
        solve(among.copy(), matrix)
        change = times(ahead_rate, back, True) + times(ahead, back_rate, True)
        change -= times(times(ahead_rate, X, True), matrix, False)
        solve(among, change)
    if len(value) == 2:
        _eigen_of_two(matrix, change, value, rate)
    else:
        _eigen_of_many(matrix, change, value, rate)


@njit(no_cpython_wrapper=True, **COUNTED)
def _eigen_of_two(matrix, change, value, rate):  # type: ignore[no-untyped-def]
    """The same in closed form."""
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


@njit(no_cpython_wrapper=True, **COUNTED)
def _eigen_of_many(matrix, change, value, rate):  # type: ignore[no-untyped-def]
    """The same by decomposition."""
    n, scale = len(matrix), np.ones(len(matrix))
    matrix = matrix.copy()
    balanced(matrix, scale)
    size, change = np.abs(matrix).max(), change * (np.ones((n, 1)) * scale) / scale.reshape((n, 1))
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
