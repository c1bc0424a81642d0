"""Whether a point is an equilibrium: what is left of every equation, beside the sizes of what it balances."""

from __future__ import annotations

from typing import Any

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s
from .drops import derivatives

__all__ = ["TOLERANCE", "balanced", "rests"]

_jit: Any = njit(**UNCOUNTED)

TOLERANCE = 1e-8
"""What may be left of an equation, relative to what it balances.

A search ends within 1e-9 of each unknown, and goes on from there only where its equations are not singular.
"""


@_jit
def balanced(I: Any, P: Any, D: Any, i: int) -> float:
    """The size of what equation `i` balances: how its terms change as the unknowns change by their sizes."""
    F, L, size = I[s.FLOWS], I[s.LINKS], I[s.SIZE]
    if F <= i < F + L:
        return 1.0 + D[size + L + i] / P[I[s.C] + i - F]
    if F + L <= i < F + 2 * L:
        return D[size + i]
    j = I[I[s.OWNER] + i]
    total = 0.0
    if i < I[s.V_FIRST]:
        flow = I[s.FLOW] + j * s.FLOW_SIZE
        if I[flow + s.LAW] < 0:
            return D[size + j]
        k, first = I[flow + s.COUNT], I[flow + s.STATES]
        J = I[flow + s.GIVES] + (k + 1) + (k if i < F else i - first) * (k + 4)
        for other in range(k):
            total += abs(D[J + other]) * D[size + first + other]
        J += k
        total += abs(D[J]) * D[size + j] + abs(D[J + 1] * D[I[s.E] + j])
        total += abs(D[J + 2] * D[I[s.PI] + j]) + abs(D[J + 3] * D[I[s.PRICE] + j])
        return total + (D[size + j] if i < F else 0.0)
    link = I[s.LINK] + j * s.LINK_SIZE
    k, first = I[link + s.COUNT], I[link + s.STATES]
    J = derivatives(I, link) + (i - first) * (k + 2)
    total += abs(D[J] * D[I[s.QUEUE] + j])
    for other in range(k):
        total += abs(D[J + 1 + other]) * D[size + first + other]
    return total + abs(D[J + k + 1]) * D[size + F + L + j]


@_jit
def rests(I: Any, P: Any, D: Any, u: Any) -> bool:
    """Whether every equation holds at `u`: its residual vanishes, or pushes against a bound.

    `D` has what `evaluate` and `sizes` find there.
    """
    for i in range(I[s.UNKNOWNS]):
        left = D[I[s.G] + i]
        if (left > 0 and u[i] >= P[I[s.UPPER] + i]) or (left < 0 and u[i] <= P[I[s.LOWER] + i]):
            continue
        if not abs(left) <= TOLERANCE * balanced(I, P, D, i):
            return False
    return True
