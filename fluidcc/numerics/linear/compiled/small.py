"""Small complex matrices: products, equations, singular values. Compiled.

Plain loops: for matrices of three to twenty rows they are as fast as a call of LAPACK, and compile
in a tenth of the time, which every function that uses them pays again. Singular values of larger
ones are LAPACK's, many times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED

__all__ = [
    "BOTH", "LARGEST", "LEAST", "NEITHER", "address_of", "call", "extremes", "extremes_of_one",
    "extremes_of_scalar", "finite", "orthonormal", "singular_values", "solve", "times",
]  # fmt: skip


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


# --- the least singular value of I + L and the largest of L (I + L)^-1 ----------------------------


BOTH, LEAST, LARGEST, NEITHER = range(4)


@njit(no_cpython_wrapper=True, **COUNTED)
def extremes(loop, which, value, rate, out):  # type: ignore[no-untyped-def]
    """Put the least one and its derivative with respect to the frequency, the largest one and its,
    at the last point.

    `value` and `rate` are the eigenvalue of L and its derivative with respect to s, which matter if
    it is the only one. Where L has a small rank, I + L is the identity beside the range of L and
    that of its adjoint, and the decomposition is done in that space.
    """
    left, right = loop.left, loop.right
    m, inner = left.shape
    if loop.basis.shape[1] == 1:
        tall = tall_rise = wide = wide_rise = 0.0
        for i in range(m):
            for j in range(inner):
                x, dx, y, dy = left[i, j], loop.left_rate[i, j], right[j, i], loop.right_rate[j, i]
                tall += x.real * x.real + x.imag * x.imag
                tall_rise += 2 * (
                    x.imag * dx.real - x.real * dx.imag
                )  # of x* times 1j dx the real part
                wide += y.real * y.real + y.imag * y.imag
                wide_rise += 2 * (y.imag * dy.real - y.real * dy.imag)
        if m == 1:
            out[:] = extremes_of_scalar(value, 1j * rate)
        elif inner == 1:
            out[:] = extremes_of_one(
                value, 1j * rate, tall * wide, tall_rise * wide + tall * wide_rise
            )
        else:  # the other factor is the identity
            out[:] = extremes_of_one(value, 1j * rate, tall, tall_rise)
        return
    if not (finite(left) and finite(right)):
        out[:] = (np.inf, 0.0, 1.0, 0.0)
        return
    _decomposed(loop, which, out)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def extremes_of_scalar(value, rate):  # type: ignore[no-untyped-def]
    """The same for a return ratio of one channel, its derivative with respect to the frequency
    given.
    """
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

    With the eigenvalue a and the square f^2 of the Frobenius norm of L, and their derivatives, the
    singular values of I + L other than one have the product ``p = abs(1 + a)`` and the sum of
    squares ``p^2 + 1 + e`` with ``e = f^2 - abs(a)^2``; that of L (I + L)^-1 is f/p.
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
    change = times(loop.left_rate, times(right, b, False), False) + times(
        left, times(loop.right_rate, b, False), False
    )
    return size[k], (1j * times(a, change, True)[0, 0]).real


# --- A compiled function called by its address ---------------------------------------------------


def address_of(function: Any, signature: Any) -> int:
    """Where the code of a compiled function is that returns nothing, in this process."""
    if config.DISABLE_JIT:
        return 0
    function.compile(signature)
    made = function.overloads[signature.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def call(function: Any, signature: Any) -> Any:
    """What calls `function` from compiled code, of an address and seven arguments."""
    if config.DISABLE_JIT:
        return lambda address, *arguments: function(*arguments)

    @intrinsic
    def by_address(typingctx, address, a, b, c, d, e, f, g):  # type: ignore[no-untyped-def]
        if (a, b, c, d, e, f, g) != signature.args:
            raise TypingError(f"called with {(a, b, c, d, e, f, g)} and not with {signature.args}")

        def codegen(context, builder, _, arguments):  # type: ignore[no-untyped-def]
            kind = context.call_conv.get_function_type(types.none, signature.args)
            there = builder.inttoptr(arguments[0], kind.as_pointer())
            status, _ = context.call_conv.call_function(
                builder, there, types.none, signature.args, arguments[1:]
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(types.int64, *signature.args), codegen

    return by_address
