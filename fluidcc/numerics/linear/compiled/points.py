"""A return ratio at one point: its eigenvalues, and the extreme singular values that come with
it. Compiled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.elimination import (
    CORNER,
    eliminate,
    is_poor,
    pivoted,
    put,
    room,
)
from fluidcc.numerics.linear.compiled.framing import balanced
from fluidcc.numerics.linear.compiled.lanes import slope, value
from fluidcc.numerics.linear.compiled.small import (
    NEITHER,
    address_of,
    call,
    extremes,
    extremes_of_one,
    extremes_of_scalar,
    finite,
    orthonormal,
    singular_values,
    solve,
    times,
)

__all__ = [
    "HERE", "Loop", "abreast", "address", "at_point", "eigen", "loop_of", "norm", "ready",
    "strength",
]  # fmt: skip


class Loop(NamedTuple):
    """A return ratio L = left right ready to be evaluated, with room for what is evaluated.

    The inner dimension of the product is that of the cut, if there is one and L has its rank; else
    `left` is L.
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
    address: (
        int  # of what evaluates any L at one point, see `fluidcc.numerics.linear.compiled.points`
    )


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def abreast(loop, s):  # type: ignore[no-untyped-def]
    """Evaluate L at as many points as there are lanes, or fewer; `ready` then gives one after
    the other.
    """
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
                    loop.corner[i, j], loop.corner_rate[i, j] = (
                        value(work, slot, lane),
                        slope(work, slot, lane),
                    )
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
        loop.left[:], loop.left_rate[:], loop.right[:], loop.right_rate[:] = (
            left,
            left_rate,
            right,
            rate,
        )
    else:
        loop.left[:] = times(left, right, False)
        loop.left_rate[:] = times(left_rate, right, False) + times(left, rate, False)


@njit(no_cpython_wrapper=True, **COUNTED)
def eigen(loop, value, rate):  # type: ignore[no-untyped-def]
    """Eigenvalues of L other than the zeros of a deficient rank, and their derivatives, in no
    order.
    """
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
        ahead, ahead_rate = (
            times(left, X, True),
            times(loop.left_rate, X, True),
        )  # Z* and its change
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
        rate[j] = (
            (2 * turn * value[j] - cross) / gap if abs(gap) > 1e-12 * (abs(far) + 1e-300) else turn
        )


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


# --- A return ratio at one point ------------------------------------------------------------------


HERE = {**UNCOUNTED, "no_cpython_wrapper": True, "forceinline": True}
"""A call passes a loop array by array, a hundred words, which takes longer than what these do."""

RANK = 1e-11  # singular values below this fraction of the largest are none

_INTEGERS, _FLOATS, _ROW, _MATRIX = (
    types.int64[::1], types.float64[::1], types.complex128[::1], types.complex128[:, ::1]
)  # fmt: skip
_LOOP = types.NamedTuple(
    [_INTEGERS, _FLOATS, _FLOATS, types.int64, *[_MATRIX] * 7, types.int64], Loop
)
_GENERAL = types.void(_LOOP, types.int64, types.complex128, types.int64, _ROW, _ROW, _FLOATS)


@njit(no_cpython_wrapper=True, **COUNTED)
def _general(loop, lane, s, which, values, rates, edge):  # type: ignore[no-untyped-def]
    """Any L at the point of one lane, which is s: its factors, and what `eigen` and `extremes`
    say if there is room.
    """
    ready(loop, lane, s)
    if len(values):
        eigen(loop, values, rates)
        extremes(loop, which, values[0], rates[0], edge)


general = call(_general, _GENERAL)


@lru_cache(maxsize=1)
def address() -> int:
    """Where compiled code finds what is long and, for most loops, not needed."""
    return address_of(_general, _GENERAL)


@njit(no_cpython_wrapper=True, **COUNTED)
def loop_of(address, whole, cut, real, m):  # type: ignore[no-untyped-def]
    """The loop of a pencil's integers, their cut, and the floats of one system with m ports."""
    trial = _empty(address, whole, cut, real, m, cut if cut else m, max(cut, 1))
    if m == 1 or cut == 1:
        return trial
    rank, s = 1, np.array([0.03 + 0.4j, 0.1 + 1.3j, 0.2 + 4.1j])
    nothing, edge = np.empty(0, np.complex128), np.empty(4)
    abreast(trial, s)
    for k in range(len(s)):
        general(address, trial, k, s[k], NEITHER, nothing, nothing, edge)
        if finite(trial.left) and finite(trial.right):
            rank = max(rank, _rank(trial.left, trial.right))
    if cut and rank == cut:
        return trial
    return _empty(address, whole, cut, real, m, m, rank)


@njit(no_cpython_wrapper=True, **COUNTED)
def _rank(left, right):  # type: ignore[no-untyped-def]
    """Of the product, without what is in no cycle of channels and whatever their units: neither
    makes an eigenvalue.
    """
    inner = left.shape[1]
    if inner < len(left):
        found = inner
        for factor in (left.copy(), right.conjugate().T.copy()):
            orthonormal(factor)
            full = 0
            for j in range(inner):
                full += np.abs(factor[:, j]).max() > 0
            found = min(found, full)
        if found == inner:
            return found
    whole = times(left, right, False)
    balanced(whole, np.ones(len(whole)))
    size = singular_values(whole, np.zeros((0, len(left)), np.complex128))
    return (size > RANK * size.max()).sum()


@njit(no_cpython_wrapper=True, **COUNTED)
def _empty(address, whole, cut, real, m, inner, rank):  # type: ignore[no-untyped-def]
    size = cut + m
    right = np.zeros((inner, m), np.complex128)
    basis = np.zeros((m, rank), np.complex128)
    for i in range(m):
        if inner == m:
            right[i, i] = 1.0
        for j in range(rank):
            basis[i, j] = (np.sin(12.9898 * (i + 1) + 78.233 * (j + 1)) * 43758.5453) % 1.0 - 0.5
    return Loop(
        whole, real, room(whole, real), cut,
        np.zeros((size, size), np.complex128), np.zeros((size, size), np.complex128),
        np.zeros((m, inner), np.complex128), np.zeros((m, inner), np.complex128),
        right, np.zeros((inner, m), np.complex128), basis, address,
    )  # fmt: skip


@njit(**HERE)
def at_point(loop, lane, s, which, values, rates, edge):  # type: ignore[no-untyped-def]
    """At the point of one lane, which is s: what `eigen` and `extremes` say."""
    if _is_plain(loop, lane, s):
        a, rate, norm, rise = _of_one(loop, lane)
        values[0], rates[0] = a, rate
        if len(loop.left) == 1:
            edge[0], edge[1], edge[2], edge[3] = extremes_of_scalar(a, 1j * rate)
        else:
            edge[0], edge[1], edge[2], edge[3] = extremes_of_one(a, 1j * rate, norm, rise)
        return
    general(loop.address, loop, lane, s, which, values, rates, edge)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def strength(loop, lane, s, nothing, none):  # type: ignore[no-untyped-def]
    """A bound on the norm of L at the point of one lane, which is s; an empty row and an empty
    edge for `general`.
    """
    if _is_plain(loop, lane, s):
        return np.sqrt(_of_one(loop, lane)[2])
    general(loop.address, loop, lane, s, NEITHER, nothing, nothing, none)
    return norm(loop)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def norm(loop):  # type: ignore[no-untyped-def]
    """The same at the last point that was made `ready`."""
    left = right = 0.0
    for i in range(loop.left.shape[0]):
        for j in range(loop.left.shape[1]):
            x, y = loop.left[i, j], loop.right[j, i]
            left += x.real * x.real + x.imag * x.imag
            right += y.real * y.real + y.imag * y.imag
    return np.sqrt(left) * np.sqrt(right)


@njit(**HERE)
def _is_plain(loop, lane, s):  # type: ignore[no-untyped-def]
    """Whether L is a column times a row that can be read off the octets: by far the most
    frequent case.
    """
    return loop.left.shape[1] == 1 and s != 0 and not is_poor(loop.whole, loop.work, lane)


@njit(**HERE)
def _of_one(loop, lane):  # type: ignore[no-untyped-def]
    """Of such an L: the eigenvalue and its derivative, the square of the norm and its derivative
    along the axis.
    """
    whole, work, corner = loop.whole, loop.work, loop.whole[CORNER]
    if len(loop.left) == 1:
        if whole[corner] < 0:  # no way leads from the input to the output
            return 0j, 0j, 0.0, 0.0
        a, rate = value(work, whole[corner], lane), slope(work, whole[corner], lane)
        return a, rate, a.real * a.real + a.imag * a.imag, 0.0
    # Schur complement ((K, V), (U, 0)), L = -U V / K
    size = len(loop.corner)
    between, turn = value(work, whole[corner], lane), slope(work, whole[corner], lane)
    inverse = -between.conjugate() / (between.real * between.real + between.imag * between.imag)
    a, rate = 0j, 0j
    tall = tall_rise = wide = wide_rise = 0.0
    for j in range(1, size):
        below, beside = whole[corner + j * size], whole[corner + j]
        if below >= 0:
            x, dx = value(work, below, lane), slope(work, below, lane)
            tall += x.real * x.real + x.imag * x.imag
            tall_rise += 2 * (
                x.imag * dx.real - x.real * dx.imag
            )  # of x* times 1j dx the real part
        if beside >= 0:
            y = value(work, beside, lane) * inverse
            dy = (slope(work, beside, lane) + turn * y) * inverse
            wide += y.real * y.real + y.imag * y.imag
            wide_rise += 2 * (y.imag * dy.real - y.real * dy.imag)
            if below >= 0:
                a += x * y
                rate += x * dy + dx * y
    return a, rate, tall * wide, tall_rise * wide + tall * wide_rise
