"""Small complex matrices: products, equations, singular values. Compiled.

Plain loops: for matrices of three to twenty rows they are as fast as a call of LAPACK, and compile
in a tenth of the time, which every function that uses them pays again. Singular values of larger
ones are LAPACK's, many times faster.
"""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED

__all__ = ["finite", "orthonormal", "singular_values", "solve", "times"]

LARGE = 20  # rows


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def finite(A):  # type: ignore[no-untyped-def]
    """Whether every entry is."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if not np.isfinite(A[i, j].real + A[i, j].imag):
                return False
    return True


@njit(no_cpython_wrapper=True, **COUNTED)
def times(A, B, adjoint):  # type: ignore[no-untyped-def]
    """A B, or A* B with `adjoint`."""
    rows, inner = (A.shape[1], A.shape[0]) if adjoint else (A.shape[0], A.shape[1])
    out = np.zeros((rows, B.shape[1]), np.complex128)
    for i in range(rows):
        for k in range(inner):
            a = A[k, i].conjugate() if adjoint else A[i, k]
            if a != 0:
                for j in range(B.shape[1]):
                    out[i, j] += a * B[k, j]
    return out


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def solve(A, B):  # type: ignore[no-untyped-def]
    """Overwrite B with A^-1 B and A with what is left; the least pivot over the largest."""
    n, columns = A.shape[0], B.shape[1]
    least, most = np.inf, 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            for j in range(columns):
                B[k, j], B[best, j] = B[best, j], B[k, j]
        size = abs(A[k, k])
        least, most = min(least, size), max(most, size)
        if size == 0:
            B[:] = complex(np.inf, 0.0)
            return 0.0
        inverse = 1 / A[k, k]
        for i in range(n):
            if i == k:
                continue
            f = A[i, k] * inverse
            if f != 0:
                for j in range(k + 1, n):
                    A[i, j] -= f * A[k, j]
                for j in range(columns):
                    B[i, j] -= f * B[k, j]
    for k in range(n):
        for j in range(columns):
            B[k, j] /= A[k, k]
    return least / most if most > 0 else 0.0


@njit(no_cpython_wrapper=True, **COUNTED)
def orthonormal(A):  # type: ignore[no-untyped-def]
    """Make the columns orthonormal (Gram and Schmidt, twice); those that depend on others become
    zero.
    """
    m, n = A.shape
    for j in range(n):
        before = 0.0
        for i in range(m):
            before += A[i, j].real ** 2 + A[i, j].imag ** 2
        for _ in range(2):
            for k in range(j):
                part = 0j
                for i in range(m):
                    part += A[i, k].conjugate() * A[i, j]
                for i in range(m):
                    A[i, j] -= part * A[i, k]
        after = 0.0
        for i in range(m):
            after += A[i, j].real ** 2 + A[i, j].imag ** 2
        factor = 1 / np.sqrt(after) if after > 1e-24 * before else 0.0
        for i in range(m):
            A[i, j] *= factor


@njit(no_cpython_wrapper=True, **COUNTED)
def singular_values(U, V):  # type: ignore[no-untyped-def]
    """Singular values of U = A, which becomes A V with orthogonal columns; V is given as the
    identity, or without rows.

    Jacobi's rotations of pairs of columns (Hestenes, Journal of SIAM 6, 1958): small singular
    values come out with as many digits as large ones. Of a large matrix they come from LAPACK, good
    to rounding of the largest.
    """
    rows, n = U.shape
    if n > LARGE and rows == n:
        left, size, right = np.linalg.svd(U)
        for j in range(n):
            for i in range(rows):
                U[i, j] = left[i, j] * size[j]
            for i in range(len(V)):
                V[i, j] = right[j, i].conjugate()
        return size
    for _ in range(40):
        worst = 0.0
        for j in range(n - 1):
            for k in range(j + 1, n):
                a = b = 0.0
                c = 0j
                for i in range(rows):
                    x, y = U[i, j], U[i, k]
                    a += x.real * x.real + x.imag * x.imag
                    b += y.real * y.real + y.imag * y.imag
                    c += x.conjugate() * y
                size = abs(c)
                if not size > 1e-15 * np.sqrt(a * b):
                    continue
                worst = max(worst, size / np.sqrt(a * b))
                ratio = (b - a) / (2 * size)
                t = (1.0 if ratio >= 0 else -1.0) / (abs(ratio) + np.sqrt(1 + ratio * ratio))
                cosine = 1 / np.sqrt(1 + t * t)
                sine = cosine * t * (c / size)
                back = sine.conjugate()
                for i in range(rows):
                    x, y = U[i, j], U[i, k]
                    U[i, j], U[i, k] = cosine * x - back * y, sine * x + cosine * y
                for i in range(len(V)):
                    x, y = V[i, j], V[i, k]
                    V[i, j], V[i, k] = cosine * x - back * y, sine * x + cosine * y
        if worst < 1e-14:
            break
    value = np.zeros(n)
    for j in range(n):
        for i in range(rows):
            value[j] += U[i, j].real ** 2 + U[i, j].imag ** 2
        value[j] = np.sqrt(value[j])
    return value
