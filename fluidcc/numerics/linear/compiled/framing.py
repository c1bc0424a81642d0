"""Bordered pencils in their own unit of time with balanced unknowns, their floats, and where to
look. Compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED

__all__ = ["Outlook", "balanced", "evened", "framed", "outlook", "sound", "tabled"]

POLES = 24  # states up to which the poles of A tell where the loci have to be followed
FAR = 100.0  # times the fastest that is in a loop, beyond which no crossing is looked for


class Outlook(NamedTuple):
    """Frequencies between which loci have to be followed, and the modulus far out."""

    low: Any
    high: Any  # at least up to here
    most: Any  # at most up to here, if the loop does not become weak before
    far: Any  # up to here for a gain margin of a weak loop
    swings: Any  # where poles may make peaks, however narrow, and half way down these
    modulus: Any  # one of a strictly proper loop; nothing is claimed otherwise


@njit(**COUNTED)
def sound(A, B, C, D, delays):  # type: ignore[no-untyped-def]
    """Whether the arrays fit each other, every number is finite and every delay positive."""
    n, (rows, columns), k = len(A), D.shape, len(delays)
    if (
        A.shape != (n, n)
        or B.shape != (n, columns)
        or C.shape != (rows, n)
        or k > min(rows, columns)
    ):
        return False
    for part in (A, B, C, D):
        for number in part.flat:
            if not np.isfinite(number):
                return False
    return k == 0 or (delays.min() > 0 and delays.max() < np.inf)


@njit(**COUNTED)
def framed(A, B, C, D, delays, times):  # type: ignore[no-untyped-def]
    """The bordered pencils of a stack but for s and the ones, the factors of the lags in the
    columns of the channels.

    Time is in units of `times`; zeros there are replaced by the longest delay, or the time scale of
    A without delays. A diagonal similarity on (x, z) evens out rows and columns. Returns the
    pencils, and the factors (powers of two) by which balanced unknowns are multiplied to give the
    unknowns.
    """
    systems, n, k = A.shape[0], A.shape[1], delays.shape[1]
    m, p = B.shape[2] - k, C.shape[1] - k
    inner = n + k
    frame, scale = np.empty((systems, inner + p, inner + m)), np.ones((systems, inner))
    for system in range(systems):
        if times[system] == 0:
            times[system] = _unit(A[system], delays[system])
        time, out = times[system], frame[system]
        for i in range(inner + p):
            row = i - n if i < inner else i - inner  # of C and D: outputs come first there
            row += p if n <= i < inner else 0
            for j in range(inner + m):
                column = m + j - n if j < inner else j - inner
                if i < n:
                    number = -time * (A[system, i, j] if j < n else B[system, i, column])
                else:
                    number = C[system, row, j] if j < n else D[system, row, column]
                    number = -number if i < inner else number
                out[i, j] = number
        evened(out, inner, scale[system])
    return frame, scale


@njit(no_cpython_wrapper=True, **COUNTED)
def _unit(A, delays):  # type: ignore[no-untyped-def]
    """The longest delay; without delays from the largest row of A^2."""
    if len(delays):
        return delays.max()
    most, n = 0.0, len(A)
    for i in range(n):
        row = 0.0
        for j in range(n):
            total = 0.0
            for l in range(n):
                total += A[i, l] * A[l, j]
            row += abs(total)
        most = max(most, row)
    return 1 / np.sqrt(most) if most > 0 else 1.0


@njit(**COUNTED)
def evened(matrix, size, scale):  # type: ignore[no-untyped-def]
    """Osborne's iteration, all rows at once and by powers of two, on the first rows and columns;
    the rest goes along.

    The factors are put into `scale`, which is all ones.
    """
    step = np.ones(size)
    for _ in range(8):
        still = True
        for i in range(size):
            row = column = 0.0
            for j in range(size):
                if j != i:
                    row += abs(matrix[i, j])
                    column += abs(matrix[j, i])
            step[i] = (
                np.exp2(np.round(0.25 * np.log2(row / column))) if row > 0 and column > 0 else 1.0
            )
            still &= step[i] == 1.0
        if still:
            break
        for i in range(size):
            scale[i] *= step[i]
            for j in range(size):
                matrix[i, j] *= step[j] / step[i]
    for i in range(size):
        for j in range(size, matrix.shape[1]):
            matrix[i, j] /= scale[i]
        for j in range(size, matrix.shape[0]):
            matrix[j, i] *= scale[i]


@njit(no_cpython_wrapper=True, **COUNTED)
def balanced(matrix, scale):  # type: ignore[no-untyped-def]
    """A square matrix evened out, without entries of rows that no other hears or that hear no
    other.

    These are in no cycle, so that they make no eigenvalue, and no scaling would even them out.
    """
    for _ in range(len(matrix)):
        for i in range(len(matrix)):
            hears = told = False
            for j in range(len(matrix)):
                hears |= j != i and matrix[i, j] != 0
                told |= j != i and matrix[j, i] != 0
            if hears != told:
                own = matrix[i, i]
                matrix[i], matrix[:, i] = 0, 0
                matrix[i, i] = own
    evened(matrix, len(matrix), scale)


@njit(**COUNTED)
def tabled(frame, states, channels, size, delays, times):  # type: ignore[no-untyped-def]
    """Where bordered pencils have entries, and of each the floats: constants, leads, lagged parts,
    and the delays.

    Unknowns are `states` x, then `channels` z, then sums up to `size`; delays are given in seconds.
    """
    systems, rows, columns = frame.shape
    pattern = np.zeros((rows, columns), np.bool_)
    for i in range(size):
        pattern[i, i] = True
    for system in range(systems):
        for i in range(rows):
            for j in range(columns):
                if frame[system, i, j] != 0:
                    pattern[i, j] = True
    entries = pattern.sum()
    table = np.zeros((systems, 3 * entries + channels))
    for system in range(systems):
        e, out = 0, table[system]
        for i in range(rows):
            for j in range(columns):
                if pattern[i, j]:
                    late = states <= j < states + channels
                    out[2 * entries + e if late else e] = frame[system, i, j]
                    if i == j and i < size:
                        if i < states:
                            out[entries + e] = 1.0
                        else:
                            out[e] += 1.0
                    e += 1
        for k in range(channels):
            out[3 * entries + k] = delays[system, k] / times[system]
    return pattern, table


@njit(no_cpython_wrapper=True, **COUNTED)
def outlook(frame, states, m, real):  # type: ignore[no-untyped-def]
    """Where to look, by the poles of A, in the unit of time; `real` are the floats of the
    pencil, delays last.
    """
    inner = frame.shape[1] - m
    poles = _poles(frame, states)
    sizes = np.abs(poles)
    fast = sizes.max() if states else 1.0
    slow = fast
    for size in sizes:
        slow = min(slow, size) if size > 1e-9 * fast else slow
    lag = real[len(real) - (inner - states) :].min() if inner > states else 1.0
    proper = not frame[inner:, inner:].any()
    proper &= not (frame[inner:, states:inner].any() and frame[states:inner, inner:].any())
    low, high = 3e-3 * min(1.0, slow if slow > 0 else 1.0), max(12.0, 2 * fast)
    swings, count = np.empty(3 * states), 0
    for pole in poles:
        for side in (-1, 0, 1):
            if pole.imag > low and (
                side == 0 or 1e-9 * pole.imag < abs(pole.real) < 0.1 * pole.imag
            ):
                swings[count] = pole.imag + side * abs(pole.real)
                count += 1
    swings = swings[:count]
    if proper:
        return Outlook(low, high, 1e8 * high, FAR * max(12 / lag, 2 * fast), swings, 1.0)
    return Outlook(low, high, FAR * high, FAR * high, swings, np.inf)


@njit(no_cpython_wrapper=True, **COUNTED)
def _poles(frame, states):  # type: ignore[no-untyped-def]
    """Eigenvalues of A, which stands with another sign in the first rows and columns; of a large
    one, its diagonal.
    """
    poles, single = np.zeros(states, np.complex128), True
    for i in range(states):
        poles[i] = -frame[i, i]
        for j in range(states):
            single &= i == j or frame[i, j] == 0
    if single or states > POLES:
        return poles
    return np.linalg.eigvals(-frame[:states, :states].astype(np.complex128))
