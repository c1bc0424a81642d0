"""A planned elimination replayed at many frequencies, with the derivative with respect to s carried along.

The integers of a plan come in one array, and the floats of a system in another: constants, leads and lagged parts of
the entries, then the delays. Compiled calls and their compilation cost by what is passed.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.elimination import Plan

__all__ = ["CORNER", "SLOTS", "Index", "eliminate", "evened", "iterate", "pack", "pivoted", "replay", "room"]

Index = NDArray[np.int64]

LIMIT = 1e4  # a multiplier above this flags the point


SLOTS, ROWS, COLUMNS, PARITY = range(4)
WHERE, LAG_OF, DENSE, PIVOT, AT, BORDER, MULTIPLIER, TO, TARGET, SOURCE, CORNER, END = range(4, 16)
"""What stands at the head of the integers: sizes, and where each part starts.

Entry e stands in slot ``where[e]``, which is place ``dense[e]`` of the bordered matrix, and is ``constant + lead s +
lagged exp(-s delays[lag_of[e]])``; ``corner`` are the slots of the Schur complement; the others are those of `Plan`.
"""


def pack(made: Plan, row: Index, column: Index, lag_of: Index) -> Index:
    """The integers of a plan for entries at these rows and columns."""
    size = len(made.pivot)
    rows, columns = made.slot.shape
    parts = (
        made.slot[row, column], lag_of, row * columns + column, made.pivot, made.at, made.border, made.multiplier,
        made.to, made.target, made.source, made.slot[size:, size:].ravel(),
    )  # fmt: skip
    head = np.array([made.slots, rows, columns, made.parity])
    starts = np.cumsum([END + 1, *(len(part) for part in parts)])
    return np.concatenate([head, starts, *parts])


@njit(cache=True, nogil=True, no_cpython_wrapper=True)
def room(whole, real):  # type: ignore[no-untyped-def]
    """Where `eliminate` puts its numbers: entries, their derivatives, and the factors of the lags."""
    return np.empty(2 * whole[SLOTS] + len(real) - 3 * (whole[LAG_OF] - whole[WHERE]), np.complex128)


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def eliminate(s, whole, real, work, slope, determinant):  # type: ignore[no-untyped-def]
    """Eliminate one system, `real` its floats, at one s; entries are left in `work`, then their derivatives.

    Returns phase and logarithm of the product of the pivots and the derivative of its logarithm, if `determinant`, and
    whether a multiplier between pivots was large, so that the point has to be solved with pivoting.
    """
    slots, where, lag_of, pivot = whole[SLOTS], whole[WHERE], whole[LAG_OF], whole[PIVOT]
    at, border, multiplier = whole[AT], whole[BORDER], whole[MULTIPLIER]
    to, target, source = whole[TO], whole[TARGET], whole[SOURCE]
    entries, shift = lag_of - where, 2 * slots
    for k in range(len(real) - 3 * entries):
        work[shift + k] = np.exp(-s * real[3 * entries + k])
    for k in range(shift):
        work[k] = 0
    for e in range(entries):
        lead = real[entries + e]
        x, dx = real[e] + lead * s, lead + 0j
        lag = whole[lag_of + e]
        if lag >= 0:
            y = real[2 * entries + e] * work[shift + lag]
            x += y
            dx -= real[3 * entries + lag] * y
        work[whole[where + e]] = x
        work[slots + whole[where + e]] = dx
    turn, log, total, poor = whole[PARITY] + 0j, 0.0, 0j, False
    for k in range(at - pivot):
        p, dp = work[whole[pivot + k]], work[slots + whole[pivot + k]]
        scale = max(abs(p.real), abs(p.imag))
        if scale > 0:
            a, b = p.real / scale, p.imag / scale
            norm = a * a + b * b
            inverse = complex(a / norm / scale, -b / norm / scale)
        else:  # the caller pivots
            inverse, poor = 0j, True
        if determinant:
            size = abs(p)
            log += np.log(size)
            turn *= p / size if size > 0 else 0j
            total += dp * inverse
        for q in range(whole[at + k], whole[at + k + 1]):
            f = work[whole[multiplier + q]] * inverse
            # rows of outputs are of any size, which spoils nothing
            if q < whole[border + k] and not abs(f.real) + abs(f.imag) < LIMIT:
                poor = True
            if slope:
                df = (work[slots + whole[multiplier + q]] - f * dp) * inverse
                for o in range(whole[to + q], whole[to + q + 1]):
                    i, j = whole[target + o], whole[source + o]
                    work[i] -= f * work[j]
                    work[slots + i] -= f * work[slots + j] + df * work[j]
            else:
                for o in range(whole[to + q], whole[to + q + 1]):
                    work[whole[target + o]] -= f * work[whole[source + o]]
    return turn, log, total, poor


@njit(cache=True, error_model="numpy", nogil=True, no_cpython_wrapper=True)
def pivoted(s, whole, real, ratio, rate):  # type: ignore[no-untyped-def]
    """The same with partial pivoting: phase, logarithm and slope of the determinant, and whether it is singular.

    The Schur complement and its derivative come in `ratio` and `rate`, infinite where it is.
    """
    turn, log, total = 1.0 + 0j, 0.0, 0j
    rows, columns = whole[ROWS], whole[COLUMNS]
    size, entries = whole[AT] - whole[PIVOT], whole[LAG_OF] - whole[WHERE]
    V = np.zeros((rows, columns), np.complex128)
    D = np.zeros((rows, columns), np.complex128)
    for e in range(entries):
        place, lag_of = whole[whole[DENSE] + e], whole[whole[LAG_OF] + e]
        i, j = place // columns, place % columns
        V[i, j] = real[e] + real[entries + e] * s
        D[i, j] = real[entries + e]
        if lag_of >= 0:
            lag = real[3 * entries + lag_of]
            late = real[2 * entries + e] * np.exp(-s * lag)
            V[i, j] += late
            D[i, j] -= lag * late
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(V[i, k]) > abs(V[best, k]):
                best = i
        if V[best, k] == 0:
            ratio[:] = rate[:] = complex(np.inf, np.inf)
            return 0j, -np.inf, complex(np.inf, 0.0), True
        if best != k:
            turn = -turn
            for j in range(columns):
                V[k, j], V[best, j] = V[best, j], V[k, j]
                D[k, j], D[best, j] = D[best, j], D[k, j]
        turn *= V[k, k] / abs(V[k, k])
        log += np.log(abs(V[k, k]))
        total += D[k, k] / V[k, k]
        for i in range(k + 1, rows):
            if V[i, k] == 0 and D[i, k] == 0:
                continue
            f = V[i, k] / V[k, k]
            df = (D[i, k] - f * D[k, k]) / V[k, k]
            for j in range(k + 1, columns):
                V[i, j] -= f * V[k, j]
                D[i, j] -= f * D[k, j] + df * V[k, j]
    for i in range(rows - size):
        for j in range(columns - size):
            ratio[i, j], rate[i, j] = V[size + i, size + j], D[size + i, size + j]
    return turn, log, total, False


@njit(cache=True, error_model="numpy", nogil=True)
def replay(s, which, whole, table, slope):  # type: ignore[no-untyped-def]
    """Eliminate at every s the system of number `which`, all systems having one pattern.

    Returns phase and logarithm of the product of the pivots, the derivative of its logarithm, the entries of the Schur
    complement and their derivatives, and a flag where a multiplier between pivots was large.
    """
    points, slots, corner = len(s), whole[SLOTS], whole[whole[CORNER] : whole[END]]
    phase, size_log = np.empty(points, np.complex128), np.empty(points)
    rate = np.zeros(points, np.complex128)
    block = np.empty((points, len(corner)), np.complex128)
    block_rate = np.zeros((points, len(corner) if slope else 0), np.complex128)
    poor = np.zeros(points, np.bool_)
    work = room(whole, table[0])
    for w in range(points):
        phase[w], size_log[w], rate[w], poor[w] = eliminate(s[w], whole, table[which[w]], work, slope, True)
        for e in range(len(corner)):
            block[w, e] = work[corner[e]]
            if slope:
                block_rate[w, e] = work[slots + corner[e]]
    return phase, size_log, rate, block, block_rate, poor


@njit(cache=True, error_model="numpy", nogil=True)
def iterate(start, whole, table, known, rounds):  # type: ignore[no-untyped-def]
    """Newton's iteration from every start, away from the `known` roots (Maehly), for the first system.

    Returns the last points, the relative size of the last steps, and a flag where a pivot was small.
    """
    end, size = start.copy(), np.full(len(start), np.inf)
    poor = np.zeros(len(start), np.bool_)
    real = table[0]
    work = room(whole, real)
    for i in range(len(start)):
        s = start[i]
        for _ in range(rounds):
            _, _, slope, bad = eliminate(s, whole, real, work, True, True)
            if bad:
                poor[i] = True
                break
            for j in range(len(known)):
                gap = s - known[j]
                if gap != 0:
                    slope -= 1 / gap
            reach = 1 + abs(s)
            step = 1 / slope if slope != 0 else 0.5 + 0j
            if not np.isfinite(step.real + step.imag):
                step = 0.5 + 0j
            length = abs(step)
            if length > 0.5 * reach:  # far from any root: no leap
                step *= 0.5 * reach / length
                length = 0.5 * reach
            s -= step
            size[i] = length / reach
            if size[i] <= 1e-13:
                break
        end[i] = s
    return end, size, poor


@njit(cache=True, error_model="numpy", nogil=True)
def evened(stack):  # type: ignore[no-untyped-def]
    """Osborne's iteration, all rows at once and by powers of two, on each matrix in place; the factors."""
    systems, size = stack.shape[0], stack.shape[1]
    scale, step = np.ones((systems, size)), np.ones(size)
    for system in range(systems):
        inner = stack[system]
        for _ in range(8):
            still = True
            for i in range(size):
                row = column = 0.0
                for j in range(size):
                    if j != i:
                        row += abs(inner[i, j])
                        column += abs(inner[j, i])
                step[i] = np.exp2(np.round(0.25 * np.log2(row / column))) if row > 0 and column > 0 else 1.0
                still &= step[i] == 1.0
            if still:
                break
            for i in range(size):
                scale[system, i] *= step[i]
                for j in range(size):
                    inner[i, j] *= step[j] / step[i]
    return scale
