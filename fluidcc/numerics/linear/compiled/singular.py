"""The least singular value of I + L and the largest of L (I + L)^-1, with their derivatives. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from fluidcc.numerics.linear.compiled.small import finite, orthonormal, singular_values, solve, times

__all__ = ["singular", "singular_of_one"]


@njit(cache=True, error_model="numpy", nogil=True)
def singular(ratio, slope, basis, largest):  # type: ignore[no-untyped-def]
    """One of the two, and its derivative with respect to the frequency.

    `basis` has as many columns as L has rank. Where that is small, I + L is the identity beside the range of L and that
    of its adjoint, and the decomposition is done in that space.
    """
    m, rank = basis.shape
    if m == 1:
        back, rate = 1 + ratio[0, 0], 1j * slope[0, 0]
        if largest:
            if back == 0:
                back = complex(1e-150, 0.0)
            top = ratio[0, 0] / back
            size = abs(top)
            return size, (top.conjugate() * rate / back**2).real / max(size, 1e-300)
        size = abs(back)
        return size, (back.conjugate() * rate).real / max(size, 1e-300)
    if rank == 1:
        return singular_of_one(ratio, slope, largest)
    return _decomposed(ratio, slope, basis, largest)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def _decomposed(ratio, slope, basis, largest):  # type: ignore[no-untyped-def]
    m, rank = basis.shape
    if not finite(ratio):
        return (1.0 if largest else np.inf), 0.0
    small = 2 * rank < m and m > 6
    frame = np.zeros((m, 2 * rank if small else m), np.complex128)
    if small:
        frame[:, :rank] = times(ratio, basis, False)
        frame[:, rank:] = times(ratio, basis, True)
        orthonormal(frame)
        back = times(frame, times(ratio, frame, False), True)
    else:
        back = ratio.copy()
        for i in range(m):
            frame[i, i] = 1.0
    n = len(back)
    V, sensitivity = np.zeros((n, n), np.complex128), np.zeros((n, n), np.complex128)
    for i in range(n):
        back[i, i] += 1.0
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
    a, b = times(frame, a, False), times(frame, b, False)
    return size[k], (1j * times(a, times(slope, b, False), True)[0, 0]).real


@njit(cache=True, error_model="numpy", nogil=True)
def singular_of_one(ratio, slope, largest):  # type: ignore[no-untyped-def]
    """The same for a return ratio of rank one and two channels or more, in closed form.

    With the eigenvalue a and the Frobenius norm f of L, the singular values of I + L other than one have the product
    ``p = abs(1 + a)`` and the sum of squares ``p^2 + 1 + e`` with ``e = f^2 - abs(a)^2``; that of L (I + L)^-1 is f/p.
    """
    value, rate = np.trace(ratio), 1j * np.trace(slope)
    norm = norm_rise = 0.0
    m = len(ratio)
    for i in range(m):
        for j in range(m):
            x, dx = ratio[i, j], 1j * slope[i, j]
            norm += x.real**2 + x.imag**2
            norm_rise += 2 * (x.real * dx.real + x.imag * dx.imag)
    product = max(abs(1 + value), np.finfo(np.float64).tiny)
    product_rise = ((1 + value).conjugate() * rate).real / product
    if largest:
        size = np.sqrt(norm) / product
        return size, size * (0.5 * norm_rise / max(norm, 1e-300) - product_rise / product)
    excess = max(norm - abs(value) ** 2, 0.0)
    excess_rise = norm_rise - 2 * (value.conjugate() * rate).real
    total, gap = np.sqrt((1 + product) ** 2 + excess), np.sqrt((1 - product) ** 2 + excess)
    total_rise = ((1 + product) * product_rise + 0.5 * excess_rise) / total
    gap_rise = ((product - 1) * product_rise + 0.5 * excess_rise) / max(gap, 1e-300)
    top = 0.5 * (total + gap)
    size = product / top
    return size, (product_rise - size * 0.5 * (total_rise + gap_rise)) / top
