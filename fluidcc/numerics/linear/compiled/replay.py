"""A planned elimination replayed at eight frequencies at a time, with the derivative with respect to s carried along.

The integers of a plan come in one array, and the floats of a system in another: constants, leads and lagged parts of
the entries, then the delays. Compiled calls and their compilation cost by what is passed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
from fluidcc.numerics.linear.compiled.elimination import Plan
from fluidcc.numerics.linear.compiled.lanes import (
    LANES,
    TURNED,
    WIDE,
    delay,
    enter,
    invert,
    large,
    lead,
    multiply,
    normalise,
    slope,
    subtract,
    value,
)

__all__ = [
    "CORNER",
    "SLOTS",
    "Index",
    "eliminate",
    "is_poor",
    "pack",
    "pivoted",
    "put",
    "replay",
    "room",
    "scalars",
]

Index = NDArray[np.int64]

LIMIT = 1e4  # a multiplier above this flags the point
TINY = 1e250  # and so does the inverse of a pivot above this
OFTEN = 16  # pivots after which the size of their product is put away


SLOTS, ENTRIES, ROWS, COLUMNS, PARITY = range(5)
WHERE, LAG_OF, DENSE, PIVOT, AT, BORDER, MULTIPLIER, TO, TARGET, SOURCE, CORNER, END = range(5, 17)
"""What stands at the head of the integers: sizes, and where each part starts.

Entry e stands in slot ``where[e]``, which is place ``dense[e]`` of the bordered matrix, and is ``constant + lead s +
lagged exp(-s delays[lag_of[e]])``; slots from `ENTRIES` on are filled by the elimination; ``corner`` are those of the
Schur complement, -1 where it has none; the others are those of `Plan`.
"""

S, PRODUCT, SIZE, POOR, INVERSE, FACTOR, LATE = range(7)
"""Octets behind the slots: s, the product of the pivots, its size and the logarithm of that, how often a multiplier was
large, the inverse of a pivot, a multiplier, and from there on the factors of the lags."""


def pack(made: Plan, row: Index, column: Index, lag_of: Index) -> Index:
    """The integers of a plan for entries at these rows and columns."""
    size = len(made.pivot)
    rows, columns = made.slot.shape
    parts = (
        made.slot[row, column], lag_of, row * columns + column, made.pivot, made.at, made.border, made.multiplier,
        made.to, made.target, made.source, made.slot[size:, size:].ravel(),
    )  # fmt: skip
    head = np.array([made.slots, made.entries, rows, columns, made.parity])
    starts = np.cumsum([END + 1, *(len(part) for part in parts)])
    return np.concatenate([head, starts, *parts])


@njit(no_cpython_wrapper=True, **COUNTED)
def room(whole, real):  # type: ignore[no-untyped-def]
    """Where `eliminate` puts its numbers."""
    lags = len(real) - 3 * (whole[LAG_OF] - whole[WHERE])
    return np.zeros((whole[SLOTS] + LATE + lags) * WIDE)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def put(s, whole, work):  # type: ignore[no-untyped-def]
    """Set the frequencies; where there are fewer than lanes, the last one again."""
    for w in range(LANES):
        lead(work, whole[SLOTS] + S, w, s[min(w, len(s) - 1)], 1.0 + 0j)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def _enter_all(whole, real, work):  # type: ignore[no-untyped-def]
    """The factors of the lags, and all entries."""
    slots, where, lag_of = whole[SLOTS], whole[WHERE], whole[LAG_OF]
    entries, at, first = lag_of - where, slots + S, slots + LATE
    top, off = 0.0, False
    for w in range(LANES):
        s = value(work, at, w)
        top, off = max(top, abs(s.imag)), off or s.real != 0
    for k in range(len(real) - 3 * entries):
        lag = real[3 * entries + k]
        delay(work, first + k, at, lag)
        if not off and lag * top < TURNED:
            continue
        for w in range(LANES):
            s = value(work, at, w)
            if s.real != 0 or not lag * abs(s.imag) < TURNED:
                size = np.exp(-lag * s.real) if s.real != 0 else 1.0
                late = complex(size * np.cos(lag * s.imag), -size * np.sin(lag * s.imag))
                lead(work, first + k, w, late, -lag * late)
    for k in range(whole[ENTRIES] * WIDE, slots * WIDE):
        work[k] = 0.0
    for e in range(entries):
        lag = whole[lag_of + e]
        if lag >= 0:
            enter(work, whole[where + e], real[e], real[entries + e], at, real[2 * entries + e], first + lag)
        else:
            enter(work, whole[where + e], real[e], real[entries + e], at, 0.0, at)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def eliminate(whole, real, work, determinant):  # type: ignore[no-untyped-def]
    """Eliminate one system, `real` its floats, at the frequencies that were `put`; entries are left in `work`.

    What else is of use stands behind them, see `scalars`; the product of the pivots only with `determinant`.
    """
    slots, pivot, at, border = whole[SLOTS], whole[PIVOT], whole[AT], whole[BORDER]
    multiplier, to, target, source = whole[MULTIPLIER], whole[TO], whole[TARGET], whole[SOURCE]
    product, size, poor, inverse, factor = slots + PRODUCT, slots + SIZE, slots + POOR, slots + INVERSE, slots + FACTOR
    _enter_all(whole, real, work)
    for w in range(LANES):
        lead(work, product, w, complex(whole[PARITY], 0.0), 0j)
        lead(work, size, w, 1.0 + 0j, 0j)
        lead(work, poor, w, 0j, 0j)
    pivots = at - pivot
    for k in range(pivots):
        invert(work, inverse, whole[pivot + k])
        large(work, poor, inverse, TINY)
        if determinant:
            multiply(work, product, product, whole[pivot + k])
            normalise(work, product, size)
            if k % OFTEN == OFTEN - 1 or k == pivots - 1:
                for w in range(LANES):
                    log = value(work, size, w)
                    lead(work, size, w, complex(1.0, log.imag + np.log(log.real)), 0j)
        for q in range(whole[at + k], whole[at + k + 1]):
            multiply(work, factor, whole[multiplier + q], inverse)
            if q < whole[border + k]:  # rows of outputs are of any size, which spoils nothing
                large(work, poor, factor, LIMIT)
            for o in range(whole[to + q], whole[to + q + 1]):
                subtract(work, whole[target + o], factor, whole[source + o])


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def scalars(whole, work, lane):  # type: ignore[no-untyped-def]
    """Phase and logarithm of the product of the pivots, the derivative of that, and whether a multiplier was large.

    Then the point has to be solved with pivoting.
    """
    slots = whole[SLOTS]
    product, rate = value(work, slots + PRODUCT, lane), slope(work, slots + PRODUCT, lane)
    length, log = abs(product), value(work, slots + SIZE, lane).imag
    return product / length, log + np.log(length), rate / product, is_poor(whole, work, lane)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def is_poor(whole, work, lane):  # type: ignore[no-untyped-def]
    """Whether a multiplier was large."""
    return value(work, whole[SLOTS] + POOR, lane).real > 0


@njit(no_cpython_wrapper=True, **COUNTED)
def pivoted(s, whole, real, ratio, rate):  # type: ignore[no-untyped-def]
    """The same with partial pivoting: phase, logarithm and slope of the determinant, and whether it is singular.

    Entries are compared in units of the largest of their row: far to the left rows of lagged terms are huge, and as
    pivots they would leave nothing of the others.
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
    weight = np.zeros(size)
    for i in range(size):
        top = np.abs(V[i, :size]).max()
        weight[i] = 1 / top if top > 0 else 0.0
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(V[i, k]) * weight[i] > abs(V[best, k]) * weight[best]:
                best = i
        if V[best, k] == 0:
            ratio[:] = rate[:] = complex(np.inf, np.inf)
            return 0j, -np.inf, complex(np.inf, 0.0), True
        if best != k:
            turn = -turn
            weight[k], weight[best] = weight[best], weight[k]
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


@njit(**COUNTED)
def replay(s, which, whole, table):  # type: ignore[no-untyped-def]
    """Eliminate at every s the system of number `which`, all systems having one pattern.

    Returns phase and logarithm of the product of the pivots, the derivative of its logarithm, the entries of the Schur
    complement and their derivatives, and a flag where a multiplier between pivots was large.
    """
    points, corner = len(s), whole[whole[CORNER] : whole[END]]
    phase, size_log = np.empty(points, np.complex128), np.empty(points)
    rate, poor = np.empty(points, np.complex128), np.empty(points, np.bool_)
    block = np.zeros((points, len(corner)), np.complex128)
    block_rate = np.zeros((points, len(corner)), np.complex128)
    work = room(whole, table[0])
    first = 0
    while first < points:
        last = first + 1
        while last < points and last < first + LANES and which[last] == which[first]:
            last += 1
        put(s[first:last], whole, work)
        eliminate(whole, table[which[first]], work, True)
        for i in range(first, last):
            phase[i], size_log[i], rate[i], poor[i] = scalars(whole, work, i - first)
            for e in range(len(corner)):
                if corner[e] >= 0:
                    block[i, e], block_rate[i, e] = value(work, corner[e], i - first), slope(work, corner[e], i - first)
        first = last
    return phase, size_log, rate, block, block_rate, poor
