"""The rows of M/h - J that are left once the flows are eliminated: of queues, arrivals, and links' states."""

from __future__ import annotations

from typing import Any

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s
from .drops import derivatives, dropped

__all__ = ["arrival_rows", "kept_rows", "link_rows"]

_jit: Any = njit(**UNCOUNTED)


@_jit
def _put(I: Any, D: Any, unknown: int, value: float, row: int, M: Any, b: Any) -> None:
    """Subtract from an entry of the matrix, or add to the right-hand side where the unknown's move is known."""
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
        by_queue = (ce + cm * D[mark] + cr * D[price]) * D[I[s.QUEUE_SLOPE] + l]
        _put(I, D, F + l, by_queue + cp / (1.0 - D[I[s.LOSS] + l]) * D[I[s.LOSS_SLOPE] + l], row, M, b)
        for i in range(n):
            _put(I, D, I[link + s.STATES] + i, cm * D[mark + 1 + i] + cr * D[price + 1 + i], row, M, b)
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
    """What the flows' moves do to the arrivals: in these' rows, or in the queues' where they are eliminated."""
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
                    _put_drop(I, D, o, -part * u[f] / max(1.0 - dropped(I, D, o), 1e-300), row, M, b)


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
            M[row, row] += 1.0 / h + u[F + L + l] * (1.0 - dropped(I, D, l)) * D[I[s.LOSS_SLOPE] + l] / c
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
