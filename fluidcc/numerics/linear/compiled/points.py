"""A return ratio at one point: its eigenvalues, and the extreme singular values that come with it. Compiled."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.apart import address_of, call
from fluidcc.numerics.linear.compiled.factors import Loop, abreast, eigen, ready
from fluidcc.numerics.linear.compiled.framing import balanced
from fluidcc.numerics.linear.compiled.lanes import slope, value
from fluidcc.numerics.linear.compiled.replay import CORNER, is_poor, room
from fluidcc.numerics.linear.compiled.singular import NEITHER, extremes, extremes_of_one, extremes_of_scalar
from fluidcc.numerics.linear.compiled.small import finite, orthonormal, singular_values, times

__all__ = ["HERE", "address", "at_point", "loop_of", "norm", "strength"]

HERE = {**UNCOUNTED, "no_cpython_wrapper": True, "forceinline": True}
"""A call passes a loop array by array, a hundred words, which takes longer than what these do."""

RANK = 1e-11  # singular values below this fraction of the largest are none

_INTEGERS, _FLOATS, _ROW, _MATRIX = (
    types.int64[::1], types.float64[::1], types.complex128[::1], types.complex128[:, ::1]
)  # fmt: skip
_LOOP = types.NamedTuple([_INTEGERS, _FLOATS, _FLOATS, types.int64, *[_MATRIX] * 7, types.int64], Loop)
_GENERAL = types.void(_LOOP, types.int64, types.complex128, types.int64, _ROW, _ROW, _FLOATS)


@njit(no_cpython_wrapper=True, **COUNTED)
def _general(loop, lane, s, which, values, rates, edge):  # type: ignore[no-untyped-def]
    """Any L at the point of one lane, which is s: its factors, and what `eigen` and `extremes` say if there is room."""
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
    """Of the product, without what is in no cycle of channels and whatever their units: neither makes an eigenvalue."""
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
    """A bound on the norm of L at the point of one lane, which is s; an empty row and an empty edge for `general`."""
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
    """Whether L is a column times a row that can be read off the octets: by far the most frequent case."""
    return loop.left.shape[1] == 1 and s != 0 and not is_poor(loop.whole, loop.work, lane)


@njit(**HERE)
def _of_one(loop, lane):  # type: ignore[no-untyped-def]
    """Of such an L: the eigenvalue and its derivative, the square of the norm and its derivative along the axis."""
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
            tall_rise += 2 * (x.imag * dx.real - x.real * dx.imag)  # of x* times 1j dx the real part
        if beside >= 0:
            y = value(work, beside, lane) * inverse
            dy = (slope(work, beside, lane) + turn * y) * inverse
            wide += y.real * y.real + y.imag * y.imag
            wide_rise += 2 * (y.imag * dy.real - y.real * dy.imag)
            if below >= 0:
                a += x * y
                rate += x * dy + dx * y
    return a, rate, tall * wide, tall_rise * wide + tall * wide_rise
