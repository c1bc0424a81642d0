"""Sparse elimination of one matrix pattern at many frequencies.

A pencil of a network is sparse, and its pattern does not depend on the frequency. So the order of
the pivots and every multiply-and-subtract of the elimination are written down once (`plan`), and
replayed at each frequency (`replay`). Pivots are chosen for one sample matrix; where the same order
meets a small pivot, the point is flagged and the caller solves it with pivoting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED
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
    "CORNER", "SLOTS", "Index", "Plan", "eliminate", "is_poor", "pack", "pivoted", "plan",
    "put", "replay", "room", "scalars",
]  # fmt: skip


Index = NDArray[np.int64]

THRESHOLD = 0.1  # a pivot is at least this fraction of the largest entry in its column


class Plan(NamedTuple):
    """The operations of one elimination.

    `slot` numbers the entries, -1 where an entry is never touched, those of the pattern before
    those that are filled in: there are `slots`, and `entries` of the pattern. Step k has the pivot
    `pivot[k]` and the multipliers `multiplier[at[k]:at[k + 1]]`, from `border[k]` on those of rows
    that are no pivots; multiplier q subtracts from `target[to[q]:to[q + 1]]` its multiple of
    `source`.
    """

    slot: Index
    slots: int
    entries: int
    pivot: Index
    at: Index
    border: Index
    multiplier: Index
    to: Index
    target: Index
    source: Index
    parity: int


@njit(cache=True, error_model="numpy")
def _order(pattern, value, size):  # type: ignore[no-untyped-def]
    """Pivot rows and columns, least filling first, and the pattern with its fill. `value` is
    destroyed.
    """
    rows, columns = value.shape
    open_row, open_column = np.ones(rows, np.bool_), np.ones(columns, np.bool_)
    in_row, in_column = np.zeros(rows, np.int64), np.zeros(columns, np.int64)
    for i in range(size):
        for j in range(size):
            if pattern[i, j]:
                in_row[i] += 1
                in_column[j] += 1
    chosen = np.empty((size, 2), np.int64)
    for k in range(size):
        best_cost, best_i, best_j = np.int64(1) << 60, -1, -1
        least_c, least_r, j0, i0 = rows + 1, columns + 1, -1, -1
        for j in range(size):
            if open_column[j] and in_column[j] < least_c:
                least_c, j0 = in_column[j], j
            if open_row[j] and in_row[j] < least_r:
                least_r, i0 = in_row[j], j
        for turn in range(2):  # the emptiest column, and every column of the emptiest row
            for j in range(size):
                if (
                    not open_column[j]
                    or (turn == 0 and j != j0)
                    or (turn == 1 and not pattern[i0, j])
                ):
                    continue
                top = 0.0
                for i in range(size):
                    if open_row[i] and pattern[i, j]:
                        top = max(top, abs(value[i, j]))
                for i in range(size):
                    if not open_row[i] or not pattern[i, j] or (turn == 1 and i != i0):
                        continue
                    if abs(value[i, j]) >= THRESHOLD * top and top > 0:
                        cost = (in_row[i] - 1) * (in_column[j] - 1)
                        if cost < best_cost:
                            best_cost, best_i, best_j = cost, i, j
        if best_i < 0:  # singular at the sample: take what is left in order
            for i in range(size):
                if open_row[i]:
                    best_i = i
                if open_column[i]:
                    best_j = i
            pattern[best_i, best_j] = True
        chosen[k] = best_i, best_j
        open_row[best_i], open_column[best_j] = False, False
        for j in range(size):
            in_column[j] -= open_column[j] and pattern[best_i, j]
        for i in range(rows):
            if not open_row[i] or not pattern[i, best_j]:
                continue
            in_row[i] -= 1
            factor = value[i, best_j] / value[best_i, best_j] if value[best_i, best_j] != 0 else 0j
            for j in range(columns):
                if open_column[j] and pattern[best_i, j]:
                    value[i, j] -= factor * value[best_i, j]
                    if not pattern[i, j]:
                        pattern[i, j] = True
                        if i < size and j < size:
                            in_row[i] += 1
                            in_column[j] += 1
    return chosen


@njit(cache=True)
def _operations(pattern, slot, chosen):  # type: ignore[no-untyped-def]
    """The elimination written down: counted in a first pass, stored in a second."""
    rows, columns = pattern.shape
    size = len(chosen)
    at, border = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
    multiplier = to = target = source = np.empty(0, np.int64)
    for store in range(2):
        open_row, open_column = np.ones(rows, np.bool_), np.ones(columns, np.bool_)
        q, o = 0, 0
        for k in range(size):
            r, c = chosen[k]
            open_row[r], open_column[c] = False, False
            for i in range(rows):
                if i == size:
                    border[k] = q
                if open_row[i] and pattern[i, c]:
                    if store:
                        multiplier[q] = slot[i, c]
                    q += 1
                    for j in range(columns):
                        if open_column[j] and pattern[r, j]:
                            if store:
                                target[o], source[o] = slot[i, j], slot[r, j]
                            o += 1
                    if store:
                        to[q] = o
            at[k + 1] = q
            if rows == size:
                border[k] = q
        if not store:
            multiplier, to = np.empty(q, np.int64), np.zeros(q + 1, np.int64)
            target, source = np.empty(o, np.int64), np.empty(o, np.int64)
    return at, border, multiplier, to, target, source


def plan(sample: NDArray[np.complex128], pattern: NDArray[np.bool_], size: int) -> Plan:
    """The plan for eliminating the first `size` rows and columns of a matrix of that pattern.

    Parameters
    ----------
    sample : array of complex
        The matrix at a typical frequency.
    pattern : array of bool
        Entries that are not zero at every frequency.
    size : int
        How many leading rows and columns are eliminated; the rest becomes the Schur complement.
    """
    filled = pattern.copy()
    chosen = _order(filled, sample.copy(), size)
    slot, entries = np.full(pattern.shape, -1), int(pattern.sum())
    slot[pattern] = np.arange(entries)
    slot[filled & ~pattern] = np.arange(entries, filled.sum())
    parity = _sign(chosen[:, 0]) * _sign(chosen[:, 1])
    at, border, multiplier, to, target, source = _operations(filled, slot, chosen)
    pivot = slot[chosen[:, 0], chosen[:, 1]]
    return Plan(
        slot, int(filled.sum()), entries, pivot, at, border, multiplier, to, target, source, parity
    )


@njit(cache=True)
def _sign(order):  # type: ignore[no-untyped-def]
    """Sign of a permutation."""
    left, sign = order.copy(), 1
    for i in range(len(left)):
        while left[i] != i:
            j = left[i]
            left[i], left[j] = left[j], left[i]
            sign = -sign
    return sign


# --- a planned elimination replayed at many frequencies, with its derivative ----------------


LIMIT = 1e4  # a multiplier above this flags the point
TINY = 1e250  # and so does the inverse of a pivot above this
OFTEN = 16  # pivots after which the size of their product is put away


SLOTS, ENTRIES, ROWS, COLUMNS, PARITY = range(5)
WHERE, LAG_OF, DENSE, PIVOT, AT, BORDER, MULTIPLIER, TO, TARGET, SOURCE, CORNER, END = range(5, 17)
"""What stands at the head of the integers: sizes, and where each part starts.

Entry e stands in slot ``where[e]``, which is place ``dense[e]`` of the bordered matrix, and is
``constant + lead s + lagged exp(-s delays[lag_of[e]])``; slots from `ENTRIES` on are filled by the
elimination; ``corner`` are those of the Schur complement, -1 where it has none; the others are
those of `Plan`.
"""

S, PRODUCT, SIZE, POOR, INVERSE, FACTOR, LATE = range(7)
"""Octets behind the slots: s, the product of the pivots, its size and the logarithm of that, how
often a multiplier was
large, the inverse of a pivot, a multiplier, and from there on the factors of the lags."""


def pack(made: Plan, row: Index, column: Index, lag_of: Index) -> Index:
    """The integers of a plan for entries at these rows and columns."""
    size = len(made.pivot)
    rows, columns = made.slot.shape
    parts = (
        made.slot[row, column], lag_of, row * columns + column, made.pivot, made.at, made.border,
        made.multiplier,
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
            enter(
                work,
                whole[where + e],
                real[e],
                real[entries + e],
                at,
                real[2 * entries + e],
                first + lag,
            )
        else:
            enter(work, whole[where + e], real[e], real[entries + e], at, 0.0, at)


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def eliminate(whole, real, work, determinant):  # type: ignore[no-untyped-def]
    """Eliminate one system, `real` its floats, at the frequencies that were `put`; entries are left
    in `work`.

    What else is of use stands behind them, see `scalars`; the product of the pivots only with
    `determinant`.
    """
    slots, pivot, at, border = whole[SLOTS], whole[PIVOT], whole[AT], whole[BORDER]
    multiplier, to, target, source = whole[MULTIPLIER], whole[TO], whole[TARGET], whole[SOURCE]
    product, size, poor, inverse, factor = (
        slots + PRODUCT,
        slots + SIZE,
        slots + POOR,
        slots + INVERSE,
        slots + FACTOR,
    )
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
    """Phase and logarithm of the product of the pivots, the derivative of that, and whether a
    multiplier was large.

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
    """The same with partial pivoting: phase, logarithm and slope of the determinant, and whether it
    is singular.

    Entries are compared in units of the largest of their row: far to the left rows of lagged terms
    are huge, and as pivots they would leave nothing of the others. The Schur complement and its
    derivative come in `ratio` and `rate`, infinite where it is.
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

    Returns phase and logarithm of the product of the pivots, the derivative of its logarithm, the
    entries of the Schur complement and their derivatives, and a flag where a multiplier between
    pivots was large.
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
                    block[i, e], block_rate[i, e] = (
                        value(work, corner[e], i - first),
                        slope(work, corner[e], i - first),
                    )
        first = last
    return phase, size_log, rate, block, block_rate, poor
