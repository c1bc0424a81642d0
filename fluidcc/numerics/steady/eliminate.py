"""Every flow's own unknowns are eliminated, so that the links' are left.

Those of flows that react to nothing but the integral of their signals stay, as their own equations
alone are singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s
from .evaluate import change, derivatives, dropped

__all__ = ["arrival_rows", "back", "eliminate", "kept_rows", "link_rows", "places", "solve_scaled"]


_jit: Any = njit(**UNCOUNTED)


@_jit
def eliminate(A: Any, B: Any, least: float) -> bool:
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
def solve_scaled(A: Any, b: Any, columns: Any) -> bool:
    """Solve A x = b for unknowns in units of `columns`, rows scaled by their largest entry; x
    takes the place of b.
    """
    n = len(b)
    for i in range(n):
        largest = 0.0
        for j in range(n):
            A[i, j] *= columns[j]
            largest = max(largest, abs(A[i, j]))
        if not (largest > 0.0 and np.isfinite(largest) and np.isfinite(b[i])):
            return False
        for j in range(n):
            A[i, j] /= largest
        b[i] /= largest
    if not eliminate(A, b.reshape(n, 1), 0.0):
        return False
    for i in range(n):
        b[i] *= columns[i]
    return True


# --- Every flow's own unknowns are eliminated, so that the links' are left -----------------------


LEAST_PIVOT = 1e-6
"""A flow whose own equations, scaled, have a smaller pivot is not eliminated."""


@_jit
def _reply(I: Any, D: Any, f: int, h: float) -> bool:
    """How a flow's unknowns move: a constant, and their derivatives by e, pi and price; False if
    that is singular.
    """
    flow, size = I[s.FLOW] + f * s.FLOW_SIZE, I[s.SIZE]
    k, first = I[flow + s.COUNT], I[flow + s.STATES]
    n, J, at = k + 1, I[flow + s.GIVES] + k + 1, I[s.OWN]
    middle, end = at + n * n, at + n * (n + 4)
    D[at:end] = 0.0
    K, R = D[at:middle].reshape(n, n), D[middle:end].reshape(n, 4)
    e, pi, price = abs(D[I[s.E] + f]), abs(D[I[s.PI] + f]), abs(D[I[s.PRICE] + f])
    sizes = max(e, 1e-3), max(pi, 1e-3), max(price, 1e-3)
    for i in range(n):
        own = first + i if i < k else f
        if I[I[s.FIXED] + own]:
            K[i, i], R[i, 0] = 1.0, D[I[s.MOVE] + own] / D[size + own]
            continue
        largest = 0.0
        for j in range(n):
            unit = 0.0 if i != j else (1.0 / h if i < k else 1.0)
            K[i, j] = (unit - D[J + i * (k + 4) + j]) * D[size + (first + j if j < k else f)]
            largest = max(largest, abs(K[i, j]))
        R[i, 0] = D[I[s.G] + own]
        for j in range(1, 4):
            R[i, j] = D[J + i * (k + 4) + k + j]
            largest = max(largest, abs(R[i, j]) * sizes[j - 1])
        for j in range(n):
            K[i, j] /= largest
        for j in range(4):
            R[i, j] /= largest
    if not eliminate(K, R, LEAST_PIVOT):
        return False
    for i in range(n):
        for j in range(4):
            D[I[flow + s.REPLY] + 4 * i + j] = R[i, j] * D[size + (first + i if i < k else f)]
    return True


@_jit
def places(I: Any, D: Any, h: float) -> int:
    """Eliminate what can be, and number the unknowns that are left and free; how many they are."""
    F, L, place, fixed = I[s.FLOWS], I[s.LINKS], I[s.PLACE], I[s.FIXED]
    m = 0
    for i in range(I[s.UNKNOWNS]):
        shared = F <= i < F + L or i >= I[s.V_FIRST]
        if F + L <= i < F + 2 * L:
            shared = I[I[s.LINK] + (i - F - L) * s.LINK_SIZE + s.HEARS] == 1
        shared = shared and not I[fixed + i]
        I[place + i] = m if shared else -1
        m += shared
    for f in range(F):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        I[flow + s.KEPT] = I[flow + s.LAW] >= 0 and not _reply(I, D, f, h)
        if I[flow + s.KEPT]:
            I[place + f] = m
            m += 1
            for i in range(I[flow + s.STATES], I[flow + s.STATES] + I[flow + s.COUNT]):
                if not I[fixed + i]:
                    I[place + i] = m
                    m += 1
    return m


@_jit
def _signals(I: Any, D: Any, f: int, flow: int) -> None:
    """Changes of a flow's signals that follow from the links' moves."""
    F, L, move = I[s.FLOWS], I[s.LINKS], I[s.MOVE]
    de = dp = dr = 0.0
    for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
        l = I[I[s.HOP] + h]
        link = I[s.LINK] + l * s.LINK_SIZE
        n, first, told = I[link + s.COUNT], I[link + s.STATES], I[link + s.GIVES]
        mark = derivatives(I, link) + n * (n + 2)
        dq = D[I[s.QUEUE_SLOPE] + l] * D[move + F + l]
        dm, dprice = D[mark] * dq, D[mark + n + 2] * dq
        for i in range(n):
            dm += D[mark + 1 + i] * D[move + first + i]
            dprice += D[mark + n + 3 + i] * D[move + first + i]
        if I[link + s.HEARS]:
            dm += D[mark + n + 1] * D[move + F + L + l]
            dprice += D[mark + 2 * n + 3] * D[move + F + L + l]
        if I[link + s.DROPS]:
            dp += change(I, D, l) / max(1.0 - dropped(I, D, l), 1e-300)
        de += dq
        dp += dm / max(1.0 - D[told + n], 1e-300) + D[I[s.LOSS_SLOPE] + l] * D[move + F + l] / (
            1.0 - D[I[s.LOSS] + l]
        )
        dr += dprice
    D[I[s.DE] + f], D[I[s.DPI] + f], D[I[s.DPRICE] + f] = de, dp * (1.0 - D[I[s.PI] + f]), dr


@_jit
def back(I: Any, D: Any, u: Any) -> None:
    """The moves of what was eliminated, from those of the links."""
    F, L, move = I[s.FLOWS], I[s.LINKS], I[s.MOVE]
    for l in range(L):
        if not I[I[s.LINK] + l * s.LINK_SIZE + s.HEARS]:
            D[move + F + L + l] = D[I[s.G] + F + L + l]
    for f in range(F):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        _signals(I, D, f, flow)
        if I[flow + s.LAW] < 0:
            D[move + f] = D[I[s.G] + f]
        elif not I[flow + s.KEPT]:
            k = I[flow + s.COUNT]
            for i in range(k + 1):
                own, R = (I[flow + s.STATES] + i if i < k else f), I[flow + s.REPLY] + 4 * i
                if not I[I[s.FIXED] + own]:
                    value = D[R] + D[R + 1] * D[I[s.DE] + f] + D[R + 2] * D[I[s.DPI] + f]
                    D[move + own] = value + D[R + 3] * D[I[s.DPRICE] + f]
        first = I[flow + s.HOPS]
        for h in range(first, I[flow + s.HOPS_END]):
            l = I[I[s.HOP] + h]
            if I[I[s.LINK] + l * s.LINK_SIZE + s.HEARS]:
                continue
            more = D[move + f]
            for g in range(first, h):
                o = I[I[s.HOP] + g]
                more -= u[f] / (1.0 - D[I[s.LOSS] + o]) * D[I[s.LOSS_SLOPE] + o] * D[move + F + o]
                if I[I[s.LINK] + o * s.LINK_SIZE + s.DROPS]:
                    more -= u[f] / max(1.0 - dropped(I, D, o), 1e-300) * change(I, D, o)
            D[move + F + L + l] += D[I[s.PASSING] + h] * more


# --- the rows of M/h - J that are left once the flows are eliminated ------------------------------


@_jit
def _put(I: Any, D: Any, unknown: int, value: float, row: int, M: Any, b: Any) -> None:
    """Subtract from an entry of the matrix, or add to the right-hand side where the unknown's
    move is known.
    """
    place = I[I[s.PLACE] + unknown]
    if place >= 0:
        M[row, place] -= value
    else:
        b[row] += value * D[I[s.MOVE] + unknown]


@_jit
def _spread(I: Any, D: Any, f: int, weight: float, by: int, row: int, M: Any, b: Any) -> None:
    """Subtract from a row what a flow's signals contribute, by the links' unknowns.

    Derivatives by e, pi and price stand in D from `by` on.
    """
    F, L, flow = I[s.FLOWS], I[s.LINKS], I[s.FLOW] + f * s.FLOW_SIZE
    ce, cp, cr = weight * D[by], weight * D[by + 1] * (1.0 - D[I[s.PI] + f]), weight * D[by + 2]
    for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
        l = I[I[s.HOP] + h]
        link = I[s.LINK] + l * s.LINK_SIZE
        n, told = I[link + s.COUNT], I[link + s.GIVES]
        mark = derivatives(I, link) + n * (n + 2)
        price = mark + n + 2
        cm = cp / max(1.0 - D[told + n], 1e-300)
        value = (ce + cm * D[mark] + cr * D[price]) * D[I[s.QUEUE_SLOPE] + l]
        value += cp / (1.0 - D[I[s.LOSS] + l]) * D[I[s.LOSS_SLOPE] + l]
        _put(I, D, F + l, value, row, M, b)
        for i in range(n):
            value = cm * D[mark + 1 + i] + cr * D[price + 1 + i]
            _put(I, D, I[link + s.STATES] + i, value, row, M, b)
        if I[link + s.HEARS]:
            _put(I, D, F + L + l, cm * D[mark + n + 1] + cr * D[price + n + 1], row, M, b)
        if I[link + s.DROPS]:
            _put_drop(I, D, l, cp / max(1.0 - dropped(I, D, l), 1e-300), row, M, b)


@_jit
def _put_drop(I: Any, D: Any, l: int, factor: float, row: int, M: Any, b: Any) -> None:
    """Subtract from a row what a link drops, by its unknowns."""
    F, link = I[s.FLOWS], I[s.LINK] + l * s.LINK_SIZE
    n = I[link + s.COUNT]
    J = derivatives(I, link) + (n + 2) * (n + 2)
    _put(I, D, F + l, factor * D[J] * D[I[s.QUEUE_SLOPE] + l], row, M, b)
    for i in range(n):
        _put(I, D, I[link + s.STATES] + i, factor * D[J + 1 + i], row, M, b)
    if I[link + s.HEARS]:
        _put(I, D, F + I[s.LINKS] + l, factor * D[J + n + 1], row, M, b)


@_jit
def arrival_rows(I: Any, P: Any, D: Any, u: Any, M: Any, b: Any) -> None:
    """What the flows' moves do to the arrivals: in these' rows, or in the queues' where they are
    eliminated.
    """
    F, L = I[s.FLOWS], I[s.LINKS]
    for f in range(F):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        reply, first = I[flow + s.REPLY] + 4 * I[flow + s.COUNT], I[flow + s.HOPS]
        for h in range(first, I[flow + s.HOPS_END]):
            l = I[I[s.HOP] + h]
            hears = I[I[s.LINK] + l * s.LINK_SIZE + s.HEARS]
            row = I[I[s.PLACE] + F + l + (L if hears else 0)]
            if row < 0:
                continue
            part = D[I[s.PASSING] + h] * (1.0 if hears else _let_in(I, D, l) / P[I[s.C] + l])
            if I[flow + s.LAW] < 0:
                b[row] += part * D[I[s.G] + f]
            elif I[flow + s.KEPT]:
                _put(I, D, f, part, row, M, b)
            else:
                b[row] += part * D[reply]
                _spread(I, D, f, part, reply + 1, row, M, b)
            for g in range(first, h):
                o = I[I[s.HOP] + g]
                if D[I[s.LOSS_SLOPE] + o] != 0.0:
                    value = -part * u[f] / (1.0 - D[I[s.LOSS] + o]) * D[I[s.LOSS_SLOPE] + o]
                    _put(I, D, F + o, value, row, M, b)
                if I[I[s.LINK] + o * s.LINK_SIZE + s.DROPS]:
                    value = -part * u[f] / max(1.0 - dropped(I, D, o), 1e-300)
                    _put_drop(I, D, o, value, row, M, b)


@_jit
def _let_in(I: Any, D: Any, l: int) -> float:
    """The share of its arrivals that link `l` serves."""
    return (1.0 - dropped(I, D, l)) * (1.0 - D[I[s.LOSS] + l])


@_jit
def link_rows(I: Any, P: Any, D: Any, u: Any, h: float, M: Any, b: Any) -> None:
    """The links' own parts of their rows."""
    F, L, G = I[s.FLOWS], I[s.LINKS], I[s.G]
    for l in range(L):
        link, row, c = I[s.LINK] + l * s.LINK_SIZE, I[I[s.PLACE] + F + l], P[I[s.C] + l]
        n, first, hears = I[link + s.COUNT], I[link + s.STATES], I[link + s.HEARS]
        if row >= 0:
            M[row, row] += (
                1.0 / h + u[F + L + l] * (1.0 - dropped(I, D, l)) * D[I[s.LOSS_SLOPE] + l] / c
            )
            b[row] += D[G + F + l]
            admitted = _let_in(I, D, l) / c
            if I[link + s.DROPS]:
                _put_drop(I, D, l, -u[F + L + l] * (1.0 - D[I[s.LOSS] + l]) / c, row, M, b)
            if hears:
                _put(I, D, F + L + l, admitted, row, M, b)
            else:
                b[row] += admitted * D[G + F + L + l]
        if hears:
            row = I[I[s.PLACE] + F + L + l]
            M[row, row] += 1.0
            b[row] += D[G + F + L + l]
        for i in range(n):
            row, J = I[I[s.PLACE] + first + i], derivatives(I, link) + i * (n + 2)
            if row < 0:
                continue
            M[row, row] += 1.0 / h
            b[row] += D[G + first + i]
            _put(I, D, F + l, D[J] * D[I[s.QUEUE_SLOPE] + l], row, M, b)
            for j in range(n):
                _put(I, D, first + j, D[J + 1 + j], row, M, b)
            if hears:
                _put(I, D, F + L + l, D[J + n + 1], row, M, b)


@_jit
def kept_rows(I: Any, D: Any, h: float, M: Any, b: Any) -> None:
    """The rows of flows that were not eliminated."""
    for f in range(I[s.FLOWS]):
        flow = I[s.FLOW] + f * s.FLOW_SIZE
        if not I[flow + s.KEPT]:
            continue
        k, first = I[flow + s.COUNT], I[flow + s.STATES]
        for i in range(k + 1):
            own, J = (first + i if i < k else f), I[flow + s.GIVES] + (k + 1) + i * (k + 4)
            row = I[I[s.PLACE] + own]
            if row < 0:
                continue
            M[row, row] += 1.0 / h if i < k else 1.0
            b[row] += D[I[s.G] + own]
            for j in range(k + 1):
                _put(I, D, first + j if j < k else f, D[J + j], row, M, b)
            _spread(I, D, f, 1.0, J + k + 1, row, M, b)
