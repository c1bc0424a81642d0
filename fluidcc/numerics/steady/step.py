"""One linearly implicit Euler step, projected: a complementarity problem by active sets.

In its linear system every flow's own unknowns are eliminated, so that the links' are left. Those of
flows that react to nothing but the integral of their signals stay, as their own equations alone are
singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit

from ..layout import Floats, at
from .evaluate import TOLERANCE, balanced, finite, slopes
from .state import ROUNDS, State

__all__ = ["projected_step"]


_jit: Any = njit(counted=False)
_making: Any = njit()


@_jit
def _solved(A: Any, B: Any, least: float) -> bool:
    """Solve A X = B in place by Gauss's elimination; False if a pivot is smaller than `least`."""
    n, m = B.shape
    for k in range(n):
        p, best = k, abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > best:
                p, best = i, abs(A[i, k])
        if not best > least:
            return False
        if p != k:
            for j in range(k, n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            for j in range(m):
                B[k, j], B[p, j] = B[p, j], B[k, j]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] / A[k, k]
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(m):
            total = B[k, j]
            for i in range(k + 1, n):
                total -= A[k, i] * B[i, j]
            B[k, j] = total / A[k, k]
    return True


@_jit
def _solved_scaled(A: Any, b: Any, columns: Any) -> bool:
    """Solve A x = b for unknowns in units of `columns`, rows scaled by their largest entry; x
    takes the place of b, a matrix of one column.
    """
    n = len(b)
    for i in range(n):
        largest = 0.0
        for j in range(n):
            A[i, j] *= columns[j]
            largest = max(largest, abs(A[i, j]))
        if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(b[i, 0])):
            return False
        for j in range(n):
            A[i, j] /= largest
        b[i, 0] /= largest
    if not _solved(A, b, 0.0):
        return False
    for i in range(n):
        b[i, 0] *= columns[i]
    return True


# --- every flow's own unknowns are eliminated -----------------------------------------------------


LEAST_PIVOT = 1e-6
"""A flow whose own equations, scaled, have a smaller pivot is not eliminated."""


@_making
def _reply(w: State, f: int, h: float) -> bool:
    """How a flow's unknowns move: a constant, and their derivatives by e, pi and price; False if
    that is singular.
    """
    k, first = w.count[f], w.first[f]
    K, R = np.zeros((k + 1, k + 1)), np.zeros((k + 1, 4))
    signals = (1.0, max(abs(w.e[f]), 1e-3), max(abs(w.pi[f]), 1e-3), max(abs(w.price[f]), 1e-3))
    for i in range(k + 1):
        own = first + i if i < k else f
        if w.fixed[own]:
            K[i, i], R[i, 0] = 1.0, w.move[own] / w.size[own]
            continue
        by, largest = slopes(w, f, i), 0.0
        for j in range(k + 1):
            unit = 0.0 if i != j else (1.0 / h if i < k else 1.0)
            K[i, j] = (unit - by[j]) * w.size[first + j if j < k else f]
            largest = max(largest, abs(K[i, j]))
        R[i, 0] = w.residual[own]
        for j in range(1, 4):
            R[i, j] = by[k + j]
            largest = max(largest, abs(R[i, j]) * signals[j])
        for j in range(k + 1):
            K[i, j] /= largest
        for j in range(4):
            R[i, j] /= largest
    if not _solved(K, R, LEAST_PIVOT):
        return False
    for i in range(k + 1):
        own = first + i if i < k else f
        for j in range(4):
            w.reply[4 * own + j] = R[i, j] * w.size[own]
    return True


@_making
def _places(w: State, h: float) -> int:
    """Eliminate what can be, and number the unknowns that are left and free; how many they are."""
    F, L, m = w.n_flows, w.n_links, 0
    for i in range(w.n_unknowns):
        shared = F <= i < F + L or i >= w.first_link_state
        if F + L <= i < F + 2 * L:
            shared = w.hears[i - F - L] == 1
        shared = shared and not w.fixed[i]
        w.place[i] = m if shared else -1
        m += shared
    for f in range(F):
        w.kept[f] = w.law[f] >= 0 and not _reply(w, f, h)
        if w.kept[f]:
            w.place[f] = m
            m += 1
            for i in range(w.first[f], w.first[f] + w.count[f]):
                if not w.fixed[i]:
                    w.place[i] = m
                    m += 1
    return m


# --- what the moves of the links' unknowns change -------------------------------------------------


@_jit
def _told(w: State, l: int, i: int) -> float:
    """How what a link's law gives as number i changes."""
    o = w.n_flows + l
    n, by, moves = w.count[o], slopes(w, o, i), at(w.move, w.first[o])
    value = by[0] * w.queue_slope[l] * w.move[o] + by[n + 1] * w.move[o + w.n_links]
    for j in range(n):
        value += by[1 + j] * moves[j]
    return value


@_jit
def _lost(w: State, l: int) -> float:
    """How much less of what comes to a link passes it, relatively."""
    o = w.n_flows + l
    value = w.loss_slope[l] * w.move[o] / (1.0 - w.loss[l])
    if w.drops[l]:
        value += _told(w, l, w.count[o] + 2) / max(1.0 - w.drop[l], 1e-300)
    return value


@_jit
def _hear(w: State, f: int) -> None:
    """Find the changes of a flow's signals."""
    de = dp = dr = 0.0
    for h in range(w.hop_start[f], w.hop_start[f + 1]):
        l = w.hop[h]
        o = w.n_flows + l
        de += w.queue_slope[l] * w.move[o]
        dp += _lost(w, l) + _told(w, l, w.count[o]) / max(1.0 - w.mark[l], 1e-300)
        dr += _told(w, l, w.count[o] + 1)
    w.de[f], w.dpi[f], w.dprice[f] = de, dp * (1.0 - w.pi[f]), dr


@_jit
def _back(w: State) -> None:
    """The moves of what was eliminated, from those of the links."""
    arrival = w.n_flows + w.n_links
    for l in range(w.n_links):
        if not w.hears[l]:
            w.move[arrival + l] = w.residual[arrival + l]
    for f in range(w.n_flows):
        _hear(w, f)
        if w.law[f] < 0:
            w.move[f] = w.residual[f]
        elif not w.kept[f]:
            k = w.count[f]
            for i in range(k + 1):
                own = w.first[f] + i if i < k else f
                if not w.fixed[own]:
                    by = at(w.reply, 4 * own)
                    value = by[0] + by[1] * w.de[f] + by[2] * w.dpi[f]
                    w.move[own] = value + by[3] * w.dprice[f]
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            if w.hears[w.hop[h]]:
                continue
            more = w.move[f]
            for g in range(w.hop_start[f], h):
                more -= w.u[f] * _lost(w, w.hop[g])
            w.move[arrival + w.hop[h]] += w.passing[h] * more


# --- the rows of M/h - J that are left once the flows are eliminated ------------------------------


@_jit
def _put(w: State, i: int, value: float, row: int, M: Any, b: Any) -> None:
    """Subtract from an entry of the matrix, or add to the right-hand side where the unknown's
    move is known.
    """
    place = w.place[i]
    if place >= 0:
        M[row, place] -= value
    else:
        b[row, 0] += value * w.move[i]


@_jit
def _put_told(w: State, l: int, i: int, factor: float, row: int, M: Any, b: Any) -> None:
    """Subtract from a row what a link's law gives as number i, by the link's unknowns."""
    o = w.n_flows + l
    n, by = w.count[o], slopes(w, o, i)
    _put(w, o, factor * by[0] * w.queue_slope[l], row, M, b)
    for j in range(n):
        _put(w, w.first[o] + j, factor * by[1 + j], row, M, b)
    _put(w, o + w.n_links, factor * by[n + 1], row, M, b)


@_jit
def _put_lost(w: State, l: int, factor: float, row: int, M: Any, b: Any) -> None:
    """Subtract from a row what a link passes less, relatively, by its unknowns."""
    o = w.n_flows + l
    _put(w, o, factor / (1.0 - w.loss[l]) * w.loss_slope[l], row, M, b)
    if w.drops[l]:
        _put_told(w, l, w.count[o] + 2, factor / max(1.0 - w.drop[l], 1e-300), row, M, b)


@_jit
def _put_heard(w: State, f: int, weight: float, by: Floats, row: int, M: Any, b: Any) -> None:
    """Subtract from a row what a flow's signals contribute, by the links' unknowns.

    `by` are the derivatives by e, pi and price.
    """
    by_loss = weight * by[1] * (1.0 - w.pi[f])
    for h in range(w.hop_start[f], w.hop_start[f + 1]):
        l = w.hop[h]
        o = w.n_flows + l
        _put(w, o, weight * by[0] * w.queue_slope[l], row, M, b)
        _put_lost(w, l, by_loss, row, M, b)
        _put_told(w, l, w.count[o], by_loss / max(1.0 - w.mark[l], 1e-300), row, M, b)
        _put_told(w, l, w.count[o] + 1, weight * by[2], row, M, b)


@_jit
def _let_in(w: State, l: int) -> float:
    """The share of its arrivals that link `l` serves, over its capacity."""
    return (1.0 - w.drop[l]) * (1.0 - w.loss[l]) / w.c[l]


@_jit
def _arrival_rows(w: State, M: Any, b: Any) -> None:
    """What the flows' moves do to the arrivals: in these' rows, or in the queues' where they are
    eliminated.
    """
    for f in range(w.n_flows):
        reply = at(w.reply, 4 * f)
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            l = w.hop[h]
            row = w.place[w.n_flows + l + (w.n_links if w.hears[l] else 0)]
            if row < 0:
                continue
            part = w.passing[h] * (1.0 if w.hears[l] else _let_in(w, l))
            if w.law[f] < 0:
                b[row, 0] += part * w.residual[f]
            elif w.kept[f]:
                _put(w, f, part, row, M, b)
            else:
                b[row, 0] += part * reply[0]
                _put_heard(w, f, part, at(reply, 1), row, M, b)
            for g in range(w.hop_start[f], h):
                _put_lost(w, w.hop[g], -part * w.u[f], row, M, b)


@_jit
def _link_rows(w: State, h: float, M: Any, b: Any) -> None:
    """The links' own parts of their rows."""
    for l in range(w.n_links):
        o = w.n_flows + l
        arrival, row = o + w.n_links, w.place[o]
        if row >= 0:
            M[row, row] += 1.0 / h
            b[row, 0] += w.residual[o]
            _put_lost(w, l, -w.u[arrival] * _let_in(w, l), row, M, b)
            if w.hears[l]:
                _put(w, arrival, _let_in(w, l), row, M, b)
            else:
                b[row, 0] += _let_in(w, l) * w.residual[arrival]
        if w.hears[l]:
            row = w.place[arrival]
            M[row, row] += 1.0
            b[row, 0] += w.residual[arrival]
        for i in range(w.count[o]):
            row = w.place[w.first[o] + i]
            if row >= 0:
                M[row, row] += 1.0 / h
                b[row, 0] += w.residual[w.first[o] + i]
                _put_told(w, l, i, 1.0, row, M, b)


@_jit
def _kept_rows(w: State, h: float, M: Any, b: Any) -> None:
    """The rows of flows that were not eliminated."""
    for f in range(w.n_flows):
        if not w.kept[f]:
            continue
        k, first = w.count[f], w.first[f]
        for i in range(k + 1):
            own, by = (first + i if i < k else f), slopes(w, f, i)
            row = w.place[own]
            if row < 0:
                continue
            M[row, row] += 1.0 / h if i < k else 1.0
            b[row, 0] += w.residual[own]
            for j in range(k + 1):
                _put(w, first + j if j < k else f, by[j], row, M, b)
            _put_heard(w, f, 1.0, at(by, k + 1), row, M, b)


@_making
def _solve(w: State, h: float) -> bool:
    """All moves, with those of the fixed unknowns given; False where the system is singular."""
    m, n = _places(w, h), w.n_unknowns
    M, b, columns = np.zeros((m, m)), np.zeros((m, 1)), np.empty(m)
    for i in range(n):
        if w.place[i] >= 0:
            columns[w.place[i]] = w.size[i]
    _arrival_rows(w, M, b)
    _link_rows(w, h, M, b)
    _kept_rows(w, h, M, b)
    if not _solved_scaled(M, b, columns):
        return False
    for i in range(n):
        if w.place[i] >= 0:
            w.move[i] = b[w.place[i], 0]
    _back(w)
    return finite(w.move, n)


# --- active sets ----------------------------------------------------------------------------------


@_jit
def _drift(w: State, i: int, h: float) -> float:
    """G - (M/h - J) move of a state or queue, which says whether a bound holds it."""
    F, o = w.n_flows, w.owner[i]
    value = w.residual[i] - w.move[i] / h
    if i < F + w.n_links:
        arrival = i + w.n_links
        return value + _let_in(w, i - F) * (w.move[arrival] - w.u[arrival] * _lost(w, i - F))
    if o >= F:
        return value + _told(w, o - F, i - w.first[o])
    n, by, moves = w.count[o], slopes(w, o, i - w.first[o]), at(w.move, w.first[o])
    for j in range(n):
        value += by[j] * moves[j]
    value += by[n] * w.move[o] + by[n + 1] * w.de[o]
    return value + by[n + 2] * w.dpi[o] + by[n + 3] * w.dprice[o]


@_jit
def _bounded(w: State, i: int) -> bool:
    """Whether an unknown may be at a bound: it is a state or a queue."""
    F, L = w.n_flows, w.n_links
    return F <= i < F + L or i >= F + 2 * L


@_jit
def _complementary(w: State, h: float) -> bool:
    """Whether the last moves keep all bounds, and no state at one drifts off it by more than
    rounding.
    """
    for i in range(w.n_unknowns):
        if not _bounded(w, i):
            continue
        end, lower, upper = w.u[i] + w.move[i], w.lower[i], w.upper[i]
        if w.fixed[i]:
            drift = _drift(w, i, h)
            off = (drift > 0 and end < upper) or (drift < 0 and end > lower)
            if off and abs(drift) > TOLERANCE * balanced(w, i):
                return False
        elif max(lower - end, end - upper) > TOLERANCE * w.size[i]:
            return False
    return True


@njit(entry=True)
def projected_step(w: State, h: float) -> bool:
    """Find the move of one step of length `h`; False where it has none.

    Too long a step may have none: that of a state which grows away from a bound leads to beyond it,
    where the bound does not hold it.
    """
    n = w.n_unknowns
    for i in range(n):
        w.low[i] = w.u[i] <= w.lower[i] and w.residual[i] < 0
        w.high[i] = w.u[i] >= w.upper[i] and w.residual[i] > 0
    for turn in range(ROUNDS):
        for i in range(n):
            w.fixed[i] = w.low[i] + w.high[i]
            w.move[i] = (w.lower[i] if w.low[i] else w.upper[i]) - w.u[i] if w.fixed[i] else 0.0
        if not _solve(w, h):
            return False
        same, mark = True, 1
        for i in range(n):
            if not _bounded(w, i):
                continue
            if w.fixed[i]:
                drift = _drift(w, i, h)
                w.low[i] = w.low[i] and drift <= 0
                w.high[i] = w.high[i] and drift >= 0
            else:
                end = w.u[i] + w.move[i]
                w.low[i], w.high[i] = end < w.lower[i], end > w.upper[i]
            same = same and w.fixed[i] == w.low[i] + w.high[i]
            # a hash that fits 64 bits
            mark = (mark * 1000003 + 1 + w.low[i] + 2 * w.high[i]) % 1099511627689
        for before in range(turn):
            if w.seen[before] == mark and not _complementary(w, h):
                return False
            same = same or w.seen[before] == mark
        if same:
            break
        w.seen[turn] = mark
    for i in range(n):
        w.move[i] = min(max(w.u[i] + w.move[i], w.lower[i]), w.upper[i]) - w.u[i]
    return True
