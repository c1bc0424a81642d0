"""A return ratio at one point: its eigenvalues, and the extreme singular values that come with
it. Compiled.

Small complex matrices are met by plain loops: those of three to twenty rows are as fast as a call
of LAPACK, and compile in a tenth of the time, which every function that uses them pays again.
Singular values of larger ones are LAPACK's, many times faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.linear.compiled.elimination import (
    CUT,
    balanced,
    eliminate,
    inverted,
    room,
)

LARGE = 20  # rows


@njit(counted=False)
def finite(A):  # type: ignore[no-untyped-def]
    """Whether every entry is."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if not np.isfinite(A[i, j].real + A[i, j].imag):
                return False
    return True


@njit()
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


@njit(counted=False)
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


@njit()
def spanned(A, rank):  # type: ignore[no-untyped-def]
    """Orthonormal columns that span those of a matrix of that rank, what is largest first: small
    eigenvalues of the matrix in that space are as good as its small columns.
    """
    rest, found = A.copy(), np.zeros((len(A), rank), np.complex128)
    for j in range(rank):
        k = np.argmax((np.abs(rest) ** 2).sum(axis=0))
        one = rest[:, k : k + 1].copy()
        one -= times(found, times(found, one, True), False)
        size = np.sqrt((np.abs(one) ** 2).sum())
        if size > 0:
            one /= size
            found[:, j] = one[:, 0]
            rest -= times(one, times(one, rest, True), False)
    return found


@njit()
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


# --- a return ratio at one point ------------------------------------------------------------------


class Loop(NamedTuple):
    """A return ratio L = left right ready to be evaluated, with room for what is evaluated.

    The inner dimension of the product is that of the cut, if there is one and L has its rank; else
    `left` is L.
    """

    whole: Any  # the plan of its pencil
    real: Any  # floats
    work: Any
    left: Any  # (m, inner)
    left_rate: Any
    right: Any  # (inner, m)
    right_rate: Any
    rank: Any  # there are as many loci


@njit(counted=False)
def at_point(loop, s, which, values, rates, edge):  # type: ignore[no-untyped-def]
    """Evaluate L at s: its eigenvalues, their derivatives, and what `extremes` says."""
    _factor(loop, s)
    _eigen(loop, values, rates)
    extremes(loop, which, values[0], rates[0], edge)


@njit(counted=False)
def strength(loop, s):  # type: ignore[no-untyped-def]
    """A bound on the norm of L at s."""
    _factor(loop, s)
    return norm(loop)


@njit(counted=False)
def norm(loop):  # type: ignore[no-untyped-def]
    """The same at the last point."""
    left = right = 0.0
    for i in range(loop.left.shape[0]):
        for j in range(loop.left.shape[1]):
            left += square(loop.left[i, j])
            right += square(loop.right[j, i])
    return np.sqrt(left) * np.sqrt(right)


@njit(counted=False)
def square(z):  # type: ignore[no-untyped-def]
    """Of the modulus."""
    return z.real * z.real + z.imag * z.imag


# --- its factors ----------------------------------------------------------------------------------


@njit(counted=False)
def _factor(loop, s):  # type: ignore[no-untyped-def]
    """Factor L at s: L = -U K^-1 V with (K, U) in `down` and V in `across`; without a cut
    `across` is L.
    """
    eliminate(s, loop.whole, loop.real, loop.work)
    c, across = loop.whole[CUT], loop.work.across
    if c == 1:
        _of_one(loop)
    elif c:
        _of_several(loop, c)
    else:
        for i in range(len(loop.left)):
            for j in range(len(loop.left)):
                loop.left[i, j], loop.left_rate[i, j] = across[0, i, j], across[1, i, j]


@njit(counted=False)
def _of_one(loop):  # type: ignore[no-untyped-def]
    """A column times a row, which most loops are."""
    down, across = loop.work.down, loop.work.across
    inverse, turn = inverted(down[0, 0, 0], down[1, 0, 0])
    for j in range(len(loop.left)):
        right, rate = across[0, 0, j], across[1, 0, j]
        loop.right[0, j], loop.right_rate[0, j] = -inverse * right, -inverse * rate - turn * right
        loop.left[j, 0], loop.left_rate[j, 0] = down[0, 1 + j, 0], down[1, 1 + j, 0]


@njit()
def _of_several(loop, c):  # type: ignore[no-untyped-def]
    """The same of more columns and rows, which are multiplied where L has not their rank."""
    down, across = loop.work.down, loop.work.across
    right, rate = -across[0], -across[1]
    solve(down[0, :c].copy(), right)
    rate -= times(down[1, :c], right, False)
    solve(down[0, :c].copy(), rate)
    left, left_rate = down[0, c:].copy(), down[1, c:].copy()
    if loop.left.shape[1] == c:
        loop.left[:], loop.left_rate[:] = left, left_rate
        loop.right[:], loop.right_rate[:] = right, rate
    else:
        loop.left[:] = times(left, right, False)
        loop.left_rate[:] = times(left_rate, right, False) + times(left, rate, False)


# --- its eigenvalues ------------------------------------------------------------------------------


@njit(counted=False)
def _eigen(loop, value, rate):  # type: ignore[no-untyped-def]
    """Eigenvalues of L other than the zeros of a deficient rank, and their derivatives, in no
    order.
    """
    if len(value) > 1:
        _eigen_of_several(loop, value, rate)
        return
    trace = turn = 0j  # the only eigenvalue is the trace
    for i in range(loop.left.shape[0]):
        for j in range(loop.left.shape[1]):
            x, dx, y, dy = _entries(loop, i, j)
            trace += x * y
            turn += x * dy + dx * y
    value[0], rate[0] = trace, turn


@njit(counted=False)
def _entries(loop, i, j):  # type: ignore[no-untyped-def]
    """An entry of the left factor and the one of the right that it meets, with derivatives."""
    return loop.left[i, j], loop.left_rate[i, j], loop.right[j, i], loop.right_rate[j, i]


@njit()
def _eigen_of_several(loop, value, rate):  # type: ignore[no-untyped-def]
    left, right, m, inner = loop.left, loop.right, len(loop.left), loop.left.shape[1]
    if not (finite(left) and finite(right)):
        value[:], rate[:] = np.inf, 0.0
        return
    if inner < m:
        matrix = times(right, left, False)
        change = times(loop.right_rate, left, False) + times(right, loop.left_rate, False)
    elif len(value) == m:
        matrix, change = left, loop.left_rate
    else:  # of L Q = Q (Q* L Q), with left eigenvectors in the rows of L, those of its adjoint
        back, ahead = spanned(left, len(value)), spanned(left.conjugate().T.copy(), len(value))
        matrix = times(back, times(left, back, False), True)
        change = times(ahead, times(loop.left_rate, back, False), True)
        solve(times(ahead, back, True), change)
    if len(value) == 2:
        _eigen_of_two(matrix, change, value, rate)
    else:
        _eigen_of_many(matrix, change, value, rate)


@njit()
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


@njit()
def _eigen_of_many(matrix, change, value, rate):  # type: ignore[no-untyped-def]
    """The same by decomposition."""
    n = len(matrix)
    matrix, scale = balanced(matrix)
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


# --- the least singular value of I + L and the largest of L (I + L)^-1 ----------------------------


BOTH, LEAST, LARGEST, NEITHER = range(4)


@njit(counted=False)
def extremes(loop, which, value, rate, out):  # type: ignore[no-untyped-def]
    """Put the least one and its derivative with respect to the frequency, the largest one and its,
    at the last point.

    `value` and `rate` are the eigenvalue of L and its derivative with respect to s, which matter if
    it is the only one. Where L has a small rank, I + L is the identity beside the range of L and
    that of its adjoint, and the decomposition is done in that space.
    """
    m, inner = loop.left.shape
    if loop.rank > 1:
        _extremes_of_several(loop, which, out)
        return
    tall = tall_rise = wide = wide_rise = 0.0
    for i in range(m):
        for j in range(inner):
            x, dx, y, dy = _entries(loop, i, j)
            tall += square(x)
            tall_rise += 2 * (x.imag * dx.real - x.real * dx.imag)  # Re of x* times 1j dx
            wide += square(y)
            wide_rise += 2 * (y.imag * dy.real - y.real * dy.imag)
    if inner > 1:  # the right factor is the identity
        wide, wide_rise = 1.0, 0.0
    _extremes_of_one(m, value, 1j * rate, tall * wide, tall_rise * wide + tall * wide_rise, out)


@njit(counted=False)
def _extremes_of_one(m, value, rate, norm, norm_rise, out):  # type: ignore[no-untyped-def]
    """The same for a return ratio of m channels and rank one, in closed form; derivatives are by
    the frequency.

    With the eigenvalue a and the square f^2 of the Frobenius norm of L, the singular values of I +
    L other than one have the product ``p = abs(1 + a)`` and the sum of squares ``p^2 + 1 + e`` with
    ``e = f^2 - abs(a)^2``; that of L (I + L)^-1 is f/p.
    """
    back = 1 + value
    p = max(np.sqrt(square(back)), 1e-300)
    rise = (back.real * rate.real + back.imag * rate.imag) / p
    out[0], out[1], out[2] = p, rise, np.sqrt(norm) / p
    out[3] = out[2] * (0.5 * norm_rise / max(norm, 1e-300) - rise / p)
    if m > 1:
        excess = max(norm - square(value), 0.0)
        excess_rise = norm_rise - 2 * (value.real * rate.real + value.imag * rate.imag)
        total, gap = np.sqrt((1 + p) ** 2 + excess), np.sqrt((1 - p) ** 2 + excess)
        total_rise = ((1 + p) * rise + 0.5 * excess_rise) / total
        gap_rise = ((p - 1) * rise + 0.5 * excess_rise) / max(gap, 1e-300)
        top = 0.5 * (total + gap)
        out[0], out[1] = p / top, (rise - p / top * 0.5 * (total_rise + gap_rise)) / top


@njit()
def _extremes_of_several(loop, which, out):  # type: ignore[no-untyped-def]
    left, right = loop.left, loop.right
    m, inner = left.shape
    if not (finite(left) and finite(right)):
        out[:] = (np.inf, 0.0, 1.0, 0.0)
        return
    small = 2 * inner < m and m > 6
    frame = np.zeros((m, 2 * inner) if small else (0, 0), np.complex128)
    if small:
        frame[:, :inner] = left
        frame[:, inner:] = right.conjugate().T
        frame[:] = np.linalg.qr(frame)[0]
        back = times(times(frame, left, True), times(right, frame, False), False)
    else:
        back = left.copy() if inner == m else times(left, right, False)
    for i in range(len(back)):
        back[i, i] += 1.0
    for k in range(2):  # a literal True or False would be compiled apart
        if which in (BOTH, 1 + k):
            out[2 * k], out[2 * k + 1] = _extreme(loop, back.copy(), frame, k == 1)


@njit()
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
    change = times(loop.left_rate, times(right, b, False), False) + times(
        left, times(loop.right_rate, b, False), False
    )
    return size[k], (1j * times(a, change, True)[0, 0]).real


# --- the rank of a loop ---------------------------------------------------------------------------


RANK = 1e-11  # singular values below this fraction of the largest are none
ALONE = 1e-12  # a column of which less than this is no sum of others is one


@njit()
def loop_of(whole, real, m):  # type: ignore[no-untyped-def]
    """The loop of a pencil's plan and the floats of one system with m ports."""
    cut = whole[CUT]
    trial = _empty(whole, real, m, cut if cut else m, max(cut, 1))
    if m == 1 or cut == 1:
        return trial
    rank = 1
    for s in (0.03 + 0.4j, 0.1 + 1.3j, 0.2 + 4.1j):
        _factor(trial, s)
        if finite(trial.left) and finite(trial.right):
            rank = max(rank, _rank(trial.left, trial.right))
    if cut and rank == cut:
        return trial
    return _empty(whole, real, m, m, rank)


@njit()
def _rank(left, right):  # type: ignore[no-untyped-def]
    """Of the product, without what is in no cycle of channels and whatever their units: neither
    makes an eigenvalue.
    """
    inner = left.shape[1]
    if inner < len(left):
        full = True
        for factor in (left, right.conjugate().T.copy()):
            upper = np.linalg.qr(factor)[1]
            for j in range(inner):
                full &= abs(upper[j, j]) > ALONE * np.sqrt((np.abs(upper[:, j]) ** 2).sum())
        if full:
            return inner
    whole, _ = balanced(times(left, right, False))
    size = singular_values(whole, np.zeros((0, len(left)), np.complex128))
    return (size > RANK * size.max()).sum()


@njit()
def _empty(whole, real, m, inner, rank):  # type: ignore[no-untyped-def]
    right = np.zeros((inner, m), np.complex128)
    for i in range(m if inner == m else 0):
        right[i, i] = 1.0
    return Loop(
        whole, real, room(whole, real),
        np.zeros((m, inner), np.complex128), np.zeros((m, inner), np.complex128),
        right, np.zeros((inner, m), np.complex128), rank,
    )  # fmt: skip
