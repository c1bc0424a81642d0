"""One linearly implicit Euler step of the steady state, projected: a linear complementarity problem by active sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import COUNTED, UNCOUNTED

from ..steady import slots as s
from .dense import solve_scaled
from .drops import change, derivatives, dropped
from .eliminate import back, places
from .residual import TOLERANCE, balanced
from .rows import arrival_rows, kept_rows, link_rows

__all__ = ["projected_step"]

_jit: Any = njit(**UNCOUNTED)
_making: Any = njit(**COUNTED)


@_making
def _solve(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """All moves, with those of the fixed unknowns given; False where the system is singular."""
    m = places(I, D, h)
    work = np.zeros(m * (m + 2))
    return _solve_in(I, P, D, u, h, work[: m * m].reshape(m, m), work[m * m : m * (m + 1)], work[m * (m + 1) :])


@_jit
def _solve_in(I: Any, P: Any, D: Any, u: Any, h: float, M: Any, b: Any, columns: Any) -> bool:
    """The same in a matrix and vectors for as many unknowns as are left."""
    n = I[s.UNKNOWNS]
    for i in range(n):
        if I[I[s.PLACE] + i] >= 0:
            columns[I[I[s.PLACE] + i]] = D[I[s.SIZE] + i]
    arrival_rows(I, P, D, u, M, b)
    link_rows(I, P, D, u, h, M, b)
    kept_rows(I, D, h, M, b)
    if not solve_scaled(M, b, columns):
        return False
    for i in range(n):
        if I[I[s.PLACE] + i] >= 0:
            D[I[s.MOVE] + i] = b[I[I[s.PLACE] + i]]
    back(I, D, u)
    for i in range(I[s.MOVE], I[s.MOVE] + n):  # noqa: SIM110 - numba has no generators
        if not np.isfinite(D[i]):
            return False
    return True


@_jit
def _drift(I: Any, P: Any, D: Any, i: int, u: Any, h: float) -> float:
    """G - (M/h - J) move of a state or queue, which says whether a bound holds it."""
    F, L, move = I[s.FLOWS], I[s.LINKS], I[s.MOVE]
    value = D[I[s.G] + i] - D[move + i] / h
    if i < F + L:
        l = i - F
        c = P[I[s.C] + l]
        let_in, through, y = 1.0 - dropped(I, D, l), 1.0 - D[I[s.LOSS] + l], u[L + i]
        value += let_in * through / c * D[move + L + i] - y * through / c * change(I, D, l)
        return value - y * let_in * D[I[s.LOSS_SLOPE] + l] / c * D[move + i]
    j = I[I[s.OWNER] + i]
    if i < I[s.V_FIRST]:
        flow = I[s.FLOW] + j * s.FLOW_SIZE
        k, first = I[flow + s.COUNT], I[flow + s.STATES]
        J = I[flow + s.GIVES] + (k + 1) + (i - first) * (k + 4)
        for other in range(k):
            value += D[J + other] * D[move + first + other]
        J += k
        value += D[J] * D[move + j] + D[J + 1] * D[I[s.DE] + j]
        return value + D[J + 2] * D[I[s.DPI] + j] + D[J + 3] * D[I[s.DPRICE] + j]
    link = I[s.LINK] + j * s.LINK_SIZE
    k, first = I[link + s.COUNT], I[link + s.STATES]
    J = derivatives(I, link) + (i - first) * (k + 2)
    value += D[J] * D[I[s.QUEUE_SLOPE] + j] * D[move + F + j]
    for other in range(k):
        value += D[J + 1 + other] * D[move + first + other]
    return value + D[J + k + 1] * D[move + F + L + j]


@_jit
def _solved(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """Whether the last moves keep all bounds, and no state at one drifts off it by more than rounding."""
    F, L, fixed = I[s.FLOWS], I[s.LINKS], I[s.FIXED]
    for i in range(F, I[s.UNKNOWNS]):
        if F + L <= i < F + 2 * L:
            continue
        end, lower, upper = u[i] + D[I[s.MOVE] + i], P[I[s.LOWER] + i], P[I[s.UPPER] + i]
        if I[fixed + i]:
            drift = _drift(I, P, D, i, u, h)
            off = (drift > 0 and end < upper) or (drift < 0 and end > lower)
            if off and abs(drift) > TOLERANCE * balanced(I, P, D, i):
                return False
        elif max(lower - end, end - upper) > TOLERANCE * D[I[s.SIZE] + i]:
            return False
    return True


@_jit
def projected_step(I: Any, P: Any, D: Any, u: Any, h: float) -> bool:
    """Put the move of one step of length `h` into `D`; False where it has none.

    Too long a step may have none: that of a state which grows away from a bound leads to beyond it, where the bound
    does not hold it.
    """
    F, L, n = I[s.FLOWS], I[s.LINKS], I[s.UNKNOWNS]
    low, high, fixed, seen = I[s.LOW], I[s.HIGH], I[s.FIXED], I[s.SEEN]
    move, lower, upper = I[s.MOVE], I[s.LOWER], I[s.UPPER]
    for i in range(n):
        I[low + i] = u[i] <= P[lower + i] and D[I[s.G] + i] < 0
        I[high + i] = u[i] >= P[upper + i] and D[I[s.G] + i] > 0
    for turn in range(s.ROUNDS):
        for i in range(n):
            I[fixed + i] = I[low + i] + I[high + i]
            D[move + i] = P[lower + i] - u[i] if I[low + i] else (P[upper + i] - u[i] if I[high + i] else 0.0)
        if not _solve(I, P, D, u, h):
            return False
        same, mark = True, 1
        for i in range(F, n):
            if F + L <= i < F + 2 * L:
                continue
            if I[fixed + i]:
                drift = _drift(I, P, D, i, u, h)
                I[low + i] = I[low + i] and drift <= 0
                I[high + i] = I[high + i] and drift >= 0
            else:
                I[low + i] = u[i] + D[move + i] < P[lower + i]
                I[high + i] = u[i] + D[move + i] > P[upper + i]
            same = same and I[fixed + i] == I[low + i] + I[high + i]
            mark = (mark * 1000003 + 1 + I[low + i] + 2 * I[high + i]) % 1099511627689  # a hash that fits 64 bits
        for before in range(seen, seen + turn):
            if I[before] == mark and not _solved(I, P, D, u, h):
                return False
            same = same or I[before] == mark
        if same:
            break
        I[seen + turn] = mark
    for i in range(n):
        D[move + i] = min(max(u[i] + D[move + i], P[lower + i]), P[upper + i]) - u[i]
    return True
