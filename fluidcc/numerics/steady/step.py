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
from .state import HEARD, ROUNDS, UNION, SearchState

_jit: Any = njit(counted=False)
_making: Any = njit()


@_jit
def _solved(A: Any, least: float) -> bool:
    """Solve by Gauss's elimination in place; False if a pivot is smaller than `least`.

    The first columns of `A` are the matrix. The others are right-hand sides, which the solutions
    replace.
    """
    n, m = A.shape
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if not abs(A[p, k]) > least:
            return False
        if p != k:
            for j in range(k, m):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                factor = A[i, k] / A[k, k]
                for j in range(k + 1, m):
                    A[i, j] -= factor * A[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(n, m):
            for i in range(k + 1, n):
                A[k, j] -= A[k, i] * A[i, j]
            A[k, j] /= A[k, k]
    return True


# --- every flow's own unknowns are eliminated -----------------------------------------------------


LEAST_PIVOT = 1e-6
"""A flow whose own equations, scaled, have a smaller pivot is not eliminated."""


@_jit
def _own(w: SearchState, f: int, i: int) -> int:
    """Which unknown equation i of a flow is for: after its states comes its rate."""
    return w.first[f] + i if i < w.count[f] else f


@_making
def _reply(w: SearchState, f: int, h: float) -> bool:
    """How a flow's unknowns move: a constant, and their derivatives by what it hears; False if that
    is singular.
    """
    n, m = w.count[f] + 1, w.heard[f]
    K = np.zeros((n, n + 1 + m))
    offer = abs(w.offer[f]) if w.least[f] >= 0 else 0.0
    e, pi = max(abs(w.e[f]), 0.01 * w.times[0]), max(abs(w.pi[f]), 1e-3)
    signals = (e, pi, abs(w.price[f]), offer, pi, pi)
    for i in range(n):
        own = _own(w, f, i)
        if w.fixed[own]:
            K[i, i], K[i, n] = 1.0, w.move[own] / w.size[own]
            continue
        by, largest = slopes(w, f, i), abs(w.residual[own])
        for j in range(n):
            unit = 0.0 if i != j else (1.0 / h if i < n - 1 else 1.0)
            K[i, j] = (unit - by[j]) * w.size[_own(w, f, j)]
            largest = max(largest, abs(K[i, j]))
        K[i, n] = w.residual[own]
        for j in range(m):
            K[i, n + 1 + j] = by[n + j]
            largest = max(largest, abs(by[n + j]) * signals[j])
        for j in range(n + 1 + m):
            K[i, j] /= largest
    if not _solved(K, LEAST_PIVOT):
        return False
    for i in range(n):
        own = _own(w, f, i)
        for j in range(1 + m):
            w.reply[(1 + HEARD) * own + j] = K[i, n + j] * w.size[own]
    return True


@_making
def _places(w: SearchState, h: float) -> int:
    """Eliminate what can be, and number the unknowns that are left and free; how many they are."""
    F, L, m = w.n_flows, w.n_links, 0
    for i in range(w.n_unknowns):
        shared = F <= i < F + L or i >= w.first_link_state
        if F + L <= i < F + 2 * L:
            shared = w.hears[i - F - L] == 1
            w.move[i] = w.residual[i]  # the flows' moves come on top
        shared = shared and not w.fixed[i]
        w.place[i] = m if shared else -1
        m += shared
    for f in range(F):
        w.kept[f] = not _reply(w, f, h)
        for i in range(w.count[f] + 1 if w.kept[f] else 0):
            own = _own(w, f, i)
            if not w.fixed[own]:
                w.place[own] = m
                m += 1
    return m


# --- the rows of M/h - J that are left once the flows are eliminated ------------------------------

# A row of -1 is none of the matrix: there all moves are known, and what they change is added up.


@_jit
def _put(w: SearchState, i: int, value: float, row: int, M: Any) -> None:
    """Subtract from an entry of the matrix, whose unknowns are in units of their sizes, or add to
    its last column, the right-hand side, where the unknown's move is known.
    """
    place = w.place[i]
    if place >= 0 and row >= 0:
        M[row, place] -= value * w.size[i]
    else:
        M[row, -1] += value * w.move[i]


@_jit
def _put_told(w: SearchState, l: int, i: int, factor: float, row: int, M: Any) -> None:
    """Subtract from a row what a link's law gives as number i, by the link's unknowns."""
    o = w.n_flows + l
    n, by = w.count[o], slopes(w, o, i)
    _put(w, o, factor * by[0] * w.queue_slope[l], row, M)
    for j in range(n):
        _put(w, w.first[o] + j, factor * by[1 + j], row, M)
    _put(w, o + w.n_links, factor * by[n + 1], row, M)


@_jit
def _put_lost(w: SearchState, l: int, factor: float, row: int, M: Any) -> None:
    """Subtract from a row what a link passes less, relatively, by its unknowns."""
    o = w.n_flows + l
    _put(w, o, factor / (1.0 - w.loss[l]) * w.loss_slope[l], row, M)
    if w.drops[l]:
        _put_told(w, l, w.count[o] + 2, factor / max(1.0 - w.drop[l], 1e-300), row, M)


@_jit
def _put_marked(w: SearchState, l: int, factor: float, row: int, M: Any) -> None:
    """Subtract from a row what a link leaves unmarked less, relatively, by its unknowns."""
    o = w.n_flows + l
    _put_told(w, l, w.count[o], factor / max(1.0 - w.mark[l], 1e-300), row, M)


@_jit
def _put_passed(w: SearchState, f: int, h: int, factor: float, row: int, M: Any) -> None:
    """Subtract from a row what reaches the queue of hop `h` less, relatively, by the links'
    unknowns.
    """
    for g in range(w.hop_start[f], h + 1):
        if w.spared[g]:
            _put_marked(w, w.hop[g], factor, row, M)
        if g < h:
            _put_lost(w, w.hop[g], factor, row, M)


@_jit
def _put_heard(w: SearchState, f: int, weight: float, by: Floats, row: int, M: Any) -> None:
    """Subtract from a row what a flow's signals contribute, by the links' unknowns.

    `by` are the derivatives by what it hears.
    """
    by_loss = weight * by[1] * (1.0 - w.pi[f])
    by_mark = by_loss
    if w.heard[f] > UNION:
        by_loss += weight * by[4] * (1.0 - w.lost[f])
        by_mark += weight * by[5] * (1.0 - w.marked[f])
    for h in range(w.hop_start[f], w.hop_start[f + 1]):
        l = w.hop[h]
        o = w.n_flows + l
        _put(w, o, weight * by[0] * w.queue_slope[l], row, M)
        _put_lost(w, l, by_loss, row, M)
        _put_marked(w, l, by_loss if w.spared[h] else by_mark, row, M)
        _put_told(w, l, w.count[o] + 1, weight * by[2], row, M)
        if l == w.least[f]:
            _put_told(w, l, w.count[o] + 2 + w.drops[l], weight * by[3], row, M)


@_jit
def _let_in(w: SearchState, l: int) -> float:
    """The share of its arrivals that link `l` serves, over its capacity."""
    return (1.0 - w.drop[l]) * (1.0 - w.loss[l]) / w.c[l]


@_jit
def _put_equation(w: SearchState, i: int, row: int, M: Any) -> None:
    """Subtract from a row the derivatives of equation `i`; of an arrival's there are only those by
    flows, see `_put_arrivals`.
    """
    F, L, o = w.n_flows, w.n_links, w.owner[i]
    if F <= i < F + L:
        arrival = i + L
        _put_lost(w, i - F, -w.u[arrival] * _let_in(w, i - F), row, M)
        _put(w, arrival, _let_in(w, i - F), row, M)
    elif i >= w.first_link_state:
        _put_told(w, o - F, i - w.first[o], 1.0, row, M)
    elif o < F:
        n = w.count[o] + 1
        by = slopes(w, o, n - 1 if i < F else i - w.first[o])
        for j in range(n):
            _put(w, _own(w, o, j), by[j], row, M)
        _put_heard(w, o, 1.0, at(by, n), row, M)


@_jit
def _put_arrivals(w: SearchState, M: Any) -> None:
    """What the flows' moves do to the arrivals: in these' rows, or in the queues' where they are
    eliminated.
    """
    for f in range(w.n_flows):
        reply = at(w.reply, (1 + HEARD) * f)
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            l = w.hop[h]
            row = w.place[w.n_flows + l + (w.n_links if w.hears[l] else 0)]
            if row < 0:
                continue
            part = w.passing[h] * (1.0 if w.hears[l] else _let_in(w, l))
            if w.kept[f]:
                _put(w, f, part, row, M)
            else:
                M[row, -1] += part * reply[0]
                _put_heard(w, f, part, at(reply, 1), row, M)
            _put_passed(w, f, h, -part * w.u[f], row, M)


@_making
def _back(w: SearchState) -> None:
    """The moves of what was eliminated, from those of the links."""
    change = np.zeros((1, 1))
    for f in range(w.n_flows):
        for i in range(0 if w.kept[f] else w.count[f] + 1):
            own = _own(w, f, i)
            if not w.fixed[own]:
                reply = at(w.reply, (1 + HEARD) * own)
                change[0, 0] = reply[0]
                _put_heard(w, f, 1.0, at(reply, 1), -1, change)
                w.move[own] = change[0, 0]
        for h in range(w.hop_start[f], w.hop_start[f + 1]):
            if w.hears[w.hop[h]]:
                continue
            change[0, 0] = w.move[f]
            _put_passed(w, f, h, -w.u[f], -1, change)
            w.move[w.n_flows + w.n_links + w.hop[h]] += w.passing[h] * change[0, 0]


@_making
def _solve(w: SearchState, h: float) -> bool:
    """All moves, with those of the fixed unknowns given; False where the system is singular."""
    m, n = _places(w, h), w.n_unknowns
    M = np.zeros((m, m + 1))
    for i in range(n):
        row = w.place[i]
        if row >= 0:
            M[row, row] += w.size[i] * (1.0 / h if _has_flow(w, i) else 1.0)
            M[row, m] += w.residual[i]
            _put_equation(w, i, row, M)
    _put_arrivals(w, M)
    for row in range(m):
        largest = 0.0
        for j in range(m):
            largest = max(largest, abs(M[row, j]))
        if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(M[row, m])):
            return False
        for j in range(m + 1):
            M[row, j] /= largest
    if not _solved(M, 0.0):
        return False
    for i in range(n):
        if w.place[i] >= 0:
            w.move[i] = M[w.place[i], m] * w.size[i]
    _back(w)
    return finite(w.move, n)


# --- active sets ----------------------------------------------------------------------------------


@_jit
def _has_flow(w: SearchState, i: int) -> bool:
    """Whether an unknown moves by a flow of its own, and may have bounds: it is a state or a
    queue.
    """
    F, L = w.n_flows, w.n_links
    return F <= i < F + L or i >= F + 2 * L


@_jit
def _drift(w: SearchState, i: int, h: float, change: Any) -> float:
    """G - (M/h - J) move of a state or queue, which says whether a bound holds it; `change` is a
    matrix of one number to reckon in.
    """
    change[0, 0] = w.residual[i] - w.move[i] / h
    _put_equation(w, i, -1, change)
    return change[0, 0]


@_jit
def _complementary(w: SearchState, h: float, change: Any) -> bool:
    """Whether the last moves keep all bounds, and no state at one drifts off it by more than
    rounding.
    """
    for i in range(w.n_unknowns):
        end, lower, upper = w.u[i] + w.move[i], w.lower[i], w.upper[i]
        if w.fixed[i]:
            drift = _drift(w, i, h, change)
            off = (drift > 0 and end < upper) or (drift < 0 and end > lower)
            if off and abs(drift) > TOLERANCE * balanced(w, i):
                return False
        elif max(lower - end, end - upper) > TOLERANCE * w.size[i]:
            return False
    return True


@njit(entry=True)
def projected_step(w: SearchState, h: float) -> bool:
    """Find the move of one step of length `h`; False where it has none.

    Too long a step may have none: that of a state which grows away from a bound leads to beyond it,
    where the bound does not hold it.
    """
    n, change = w.n_unknowns, np.zeros((1, 1))
    for i in range(n):
        held = w.lower[i] == w.upper[i]  # as a queue that there is none of, whatever it would do
        w.low[i] = held or (w.u[i] <= w.lower[i] and w.residual[i] < 0)
        w.high[i] = not held and w.u[i] >= w.upper[i] and w.residual[i] > 0
    for turn in range(ROUNDS):
        for i in range(n):
            w.fixed[i] = w.low[i] + w.high[i]
            w.move[i] = (w.lower[i] if w.low[i] else w.upper[i]) - w.u[i] if w.fixed[i] else 0.0
        if not _solve(w, h):
            return False
        same, mark = True, 1
        for i in range(n):
            if w.fixed[i]:
                drift = _drift(w, i, h, change)
                w.low[i] = w.low[i] and (drift <= 0 or w.lower[i] == w.upper[i])
                w.high[i] = w.high[i] and drift >= 0
            else:
                end = w.u[i] + w.move[i]
                w.low[i], w.high[i] = end < w.lower[i], end > w.upper[i]
            same = same and w.fixed[i] == w.low[i] + w.high[i]
            # a hash that fits 64 bits
            mark = (mark * 1000003 + 1 + w.low[i] + 2 * w.high[i]) % 1099511627689
        for before in range(turn):
            if w.seen[before] == mark and not _complementary(w, h, change):
                return False
            same = same or w.seen[before] == mark
        if same:
            break
        w.seen[turn] = mark
    for i in range(n):
        w.move[i] = min(max(w.u[i] + w.move[i], w.lower[i]), w.upper[i]) - w.u[i]
    return True
