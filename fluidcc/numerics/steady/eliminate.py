"""Every flow's own unknowns are eliminated, so that the links' are left.

Those of flows that react to nothing but the integral of their signals stay, as their own equations alone are singular.
"""

from __future__ import annotations

from typing import Any

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s
from .dense import eliminate
from .drops import change, derivatives, dropped

__all__ = ["back", "places"]

_jit: Any = njit(**UNCOUNTED)

LEAST_PIVOT = 1e-6
"""A flow whose own equations, scaled, have a smaller pivot is not eliminated."""


@_jit
def _reply(I: Any, D: Any, f: int, h: float) -> bool:
    """How a flow's unknowns move: a constant, and their derivatives by e, pi and price; False if that is singular."""
    flow, size = I[s.FLOW] + f * s.FLOW_SIZE, I[s.SIZE]
    k, first = I[flow + s.COUNT], I[flow + s.STATES]
    n, J, at = k + 1, I[flow + s.GIVES] + k + 1, I[s.OWN]
    middle, end = at + n * n, at + n * (n + 4)
    D[at:end] = 0.0
    K, R = D[at:middle].reshape(n, n), D[middle:end].reshape(n, 4)
    sizes = max(abs(D[I[s.E] + f]), 1e-3), max(abs(D[I[s.PI] + f]), 1e-3), max(abs(D[I[s.PRICE] + f]), 1e-3)
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
        dp += dm / max(1.0 - D[told + n], 1e-300) + D[I[s.LOSS_SLOPE] + l] * D[move + F + l] / (1.0 - D[I[s.LOSS] + l])
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
