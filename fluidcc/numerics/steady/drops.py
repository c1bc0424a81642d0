"""Links that drop before their queue: what of their arrivals they drop, and how that changes with their unknowns."""

from __future__ import annotations

from typing import Any

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s

__all__ = ["change", "derivatives", "dropped"]

_jit: Any = njit(**UNCOUNTED)


@_jit
def derivatives(I: Any, link: int) -> int:
    """Where the derivatives of what a link gives begin in D: row by row those of its states, mark, price and drop."""
    return I[link + s.GIVES] + I[link + s.COUNT] + 2 + I[link + s.DROPS]


@_jit
def dropped(I: Any, D: Any, l: int) -> float:
    """The ratio of its arrivals that link `l` drops."""
    link = I[s.LINK] + l * s.LINK_SIZE
    return D[I[link + s.GIVES] + I[link + s.COUNT] + 2] if I[link + s.DROPS] else 0.0


@_jit
def change(I: Any, D: Any, l: int) -> float:
    """How that ratio changes by the moves of the link's unknowns."""
    link = I[s.LINK] + l * s.LINK_SIZE
    if not I[link + s.DROPS]:
        return 0.0
    F, L, n, move, first = I[s.FLOWS], I[s.LINKS], I[link + s.COUNT], I[s.MOVE], I[link + s.STATES]
    J = derivatives(I, link) + (n + 2) * (n + 2)
    value = D[J] * D[I[s.QUEUE_SLOPE] + l] * D[move + F + l]
    for i in range(n):
        value += D[J + 1 + i] * D[move + first + i]
    return value + (D[J + n + 1] * D[move + F + L + l] if I[link + s.HEARS] else 0.0)
