"""The least singular value of I + L and the largest of L (I + L)^-1, with their derivatives. Compiled."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.small import finite, orthonormal, singular_values, solve, times

__all__ = ["BOTH", "LARGEST", "LEAST", "NEITHER", "extremes", "extremes_of_one", "extremes_of_scalar"]

BOTH, LEAST, LARGEST, NEITHER = range(4)


@njit(no_cpython_wrapper=True, **COUNTED)
def extremes(loop, which, value, rate, out):  # type: ignore[no-untyped-def]
    """Put the least one and its derivative with respect to the frequency, the largest one and its, at the last point.

    `value` and `rate` are the eigenvalue of L and its derivative with respect to s, which matter if it is the only one.
    Where L has a small rank, I + L is the identity beside the range of L and that of its adjoint, and the decomposition
    is done in that space.
    """
    left, right = loop.left, loop.right
    m, inner = left.shape
    if loop.basis.shape[1] == 1:
        tall = tall_rise = wide = wide_rise = 0.0
        for i in range(m):
            for j in range(inner):
                x, dx, y, dy = left[i, j], loop.left_rate[i, j], right[j, i], loop.right_rate[j, i]
                tall += x.real * x.real + x.imag * x.imag
                tall_rise += 2 * (x.imag * dx.real - x.real * dx.imag)  # of x* times 1j dx the real part
                wide += y.real * y.real + y.imag * y.imag
                wide_rise += 2 * (y.imag * dy.real - y.real * dy.imag)
        if m == 1:
            out[:] = extremes_of_scalar(value, 1j * rate)
        elif inner == 1:
            out[:] = extremes_of_one(value, 1j * rate, tall * wide, tall_rise * wide + tall * wide_rise)
        else:  # the other factor is the identity
            out[:] = extremes_of_one(value, 1j * rate, tall, tall_rise)
        return
    if not (finite(left) and finite(right)):
        out[:] = (np.inf, 0.0, 1.0, 0.0)
        return
    _decomposed(loop, which, out)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def extremes_of_scalar(value, rate):  # type: ignore[no-untyped-def]
    """The same for a return ratio of one channel, its derivative with respect to the frequency given."""
    back = 1 + value
    square = back.real * back.real + back.imag * back.imag
    if square < 1e-300:
        back, square = complex(1e-150, 0.0), 1e-300
    size, top = np.sqrt(square), value * back.conjugate() / square
    height = np.sqrt(top.real * top.real + top.imag * top.imag)
    rise = (back.real * rate.real + back.imag * rate.imag) / size
    turn = rate * (back.conjugate() / square) ** 2
    return size, rise, height, (top.real * turn.real + top.imag * turn.imag) / max(height, 1e-300)


@njit(**UNCOUNTED)
def extremes_of_one(value, rate, norm, norm_rise):  # type: ignore[no-untyped-def]
    """The same for a return ratio of rank one and two channels or more, in closed form.

    With the eigenvalue a and the square f^2 of the Frobenius norm of L, and their derivatives, the singular values of
    I + L other than one have the product ``p = abs(1 + a)`` and the sum of squares ``p^2 + 1 + e`` with
    ``e = f^2 - abs(a)^2``; that of L (I + L)^-1 is f/p.
    """
    back = 1 + value
    product = max(np.sqrt(back.real * back.real + back.imag * back.imag), 1e-300)
    product_rise = (back.real * rate.real + back.imag * rate.imag) / product
    height = np.sqrt(norm) / product
    height_rise = height * (0.5 * norm_rise / max(norm, 1e-300) - product_rise / product)
    excess = max(norm - (value.real * value.real + value.imag * value.imag), 0.0)
    excess_rise = norm_rise - 2 * (value.real * rate.real + value.imag * rate.imag)
    total, gap = np.sqrt((1 + product) ** 2 + excess), np.sqrt((1 - product) ** 2 + excess)
    total_rise = ((1 + product) * product_rise + 0.5 * excess_rise) / total
    gap_rise = ((product - 1) * product_rise + 0.5 * excess_rise) / max(gap, 1e-300)
    top = 0.5 * (total + gap)
    size = product / top
    return size, (product_rise - size * 0.5 * (total_rise + gap_rise)) / top, height, height_rise


@njit(no_cpython_wrapper=True, **COUNTED)
def _decomposed(loop, which, out):  # type: ignore[no-untyped-def]
    left, right = loop.left, loop.right
    m, inner = left.shape
    small = 2 * inner < m and m > 6
    frame = np.zeros((m, 2 * inner) if small else (0, 0), np.complex128)
    if small:
        frame[:, :inner] = left
        frame[:, inner:] = right.conjugate().T
        orthonormal(frame)
        back = times(times(frame, left, True), times(right, frame, False), False)
    else:
        back = left.copy() if inner == m else times(left, right, False)
    for i in range(len(back)):
        back[i, i] += 1.0
    for k in range(2):  # a literal True or False would be compiled apart
        if which in (BOTH, 1 + k):
            out[2 * k], out[2 * k + 1] = _extreme(loop, back.copy(), frame, k == 1)


@njit(no_cpython_wrapper=True, **COUNTED)
def _extreme(loop, back, frame, largest):  # type: ignore[no-untyped-def]
    """Of I + L, which is `back` in the space that the columns of `frame` span, if it has any."""
    left, right, n, small = loop.left, loop.right, len(back), len(frame) > 0
    V, sensitivity = np.zeros((n, n), np.complex128), np.zeros((n, n), np.complex128)
    for i in range(n):
        V[i, i] = sensitivity[i, i] = 1.0
    if largest:
        solve(back, sensitivity)
        back = -sensitivity
        for i in range(n):
            back[i, i] += 1.0
    size = singular_values(back, V)
    k = np.argmax(size) if largest else np.argmin(size)
    if small and not largest and size[k] > 1:
        return 1.0, 0.0
    a, b = np.zeros((n, 1), np.complex128), np.zeros((n, 1), np.complex128)
    for i in range(n):
        a[i, 0], b[i, 0] = back[i, k] / max(size[k], 1e-300), V[i, k]
    if largest:  # T = I - S changes by S dL S
        a, b = times(sensitivity, a, True), times(sensitivity, b, False)
    if small:
        a, b = times(frame, a, False), times(frame, b, False)
    if left.shape[0] == left.shape[1]:
        return size[k], (1j * times(a, times(loop.left_rate, b, False), True)[0, 0]).real
    change = times(loop.left_rate, times(right, b, False), False) + times(left, times(loop.right_rate, b, False), False)
    return size[k], (1j * times(a, change, True)[0, 0]).real
