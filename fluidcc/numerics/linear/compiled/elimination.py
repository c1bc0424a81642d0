"""Sparse elimination of one matrix pattern at many frequencies.

A pencil of a network is sparse, and its pattern does not depend on the frequency. So the order of the pivots and every
multiply-and-subtract of the elimination are written down once (`plan`), and replayed at each frequency (`replay`).
Pivots are chosen for one sample matrix; where the same order meets a small pivot, the point is flagged and the caller
solves it with pivoting.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit

__all__ = ["Plan", "plan"]

Index = NDArray[np.int64]

THRESHOLD = 0.1  # a pivot is at least this fraction of the largest entry in its column


class Plan(NamedTuple):
    """The operations of one elimination.

    `slot` numbers the entries, -1 where an entry is never touched, those of the pattern before those that are filled
    in: there are `slots`, and `entries` of the pattern. Step k has the pivot `pivot[k]` and the multipliers
    `multiplier[at[k]:at[k + 1]]`, from `border[k]` on those of rows that are no pivots; multiplier q subtracts from
    `target[to[q]:to[q + 1]]` its multiple of `source`.
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
    """Pivot rows and columns, least filling first, and the pattern with its fill. `value` is destroyed."""
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
                if not open_column[j] or (turn == 0 and j != j0) or (turn == 1 and not pattern[i0, j]):
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
    return Plan(slot, int(filled.sum()), entries, pivot, at, border, multiplier, to, target, source, parity)


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
