"""A return ratio at one point: its eigenvalues, and the extreme singular values that come with it. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.factors import eigen, ready
from fluidcc.numerics.linear.compiled.lanes import slope, value
from fluidcc.numerics.linear.compiled.replay import CORNER, is_poor
from fluidcc.numerics.linear.compiled.singular import extremes, extremes_of_one, extremes_of_scalar

__all__ = ["at_point", "norm", "strength"]


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
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
    ready(loop, lane, s)
    eigen(loop, values, rates)
    extremes(loop, which, values[0], rates[0], edge)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def strength(loop, lane, s):  # type: ignore[no-untyped-def]
    """A bound on the norm of L at the point of one lane, which is s."""
    if _is_plain(loop, lane, s):
        return np.sqrt(_of_one(loop, lane)[2])
    ready(loop, lane, s)
    return norm(loop)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def norm(loop):  # type: ignore[no-untyped-def]
    """The same at the last point that was made `ready`."""
    left = right = 0.0
    for i in range(loop.left.shape[0]):
        for j in range(loop.left.shape[1]):
            x, y = loop.left[i, j], loop.right[j, i]
            left += x.real * x.real + x.imag * x.imag
            right += y.real * y.real + y.imag * y.imag
    return np.sqrt(left) * np.sqrt(right)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _is_plain(loop, lane, s):  # type: ignore[no-untyped-def]
    """Whether L is a column times a row that can be read off the octets: by far the most frequent case."""
    return loop.left.shape[1] == 1 and s != 0 and not is_poor(loop.whole, loop.work, lane)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _of_one(loop, lane):  # type: ignore[no-untyped-def]
    """Of such an L: the eigenvalue and its derivative, the square of the norm and its derivative along the axis."""
    whole, work, corner = loop.whole, loop.work, loop.whole[CORNER]
    if len(loop.left) == 1:
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
