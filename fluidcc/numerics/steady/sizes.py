"""What counts as small in a step of a search for an equilibrium, and how far a step may go."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

from ..steady import slots as s

__all__ = ["SMALL_QUEUE", "changes", "guarded", "largest_capacity", "scales", "sizes", "to_kink"]

_jit: Any = njit(**UNCOUNTED)

SMALL_QUEUE = 0.02
"""Changes of a queueing delay [s] are small relative to at least this."""


@_jit
def largest_capacity(I: Any, P: Any) -> float:
    largest = 0.0
    for l in range(I[s.LINKS]):
        largest = max(largest, P[I[s.C] + l])
    return largest


@_jit
def scales(I: Any, P: Any, D: Any, u: Any) -> None:
    """Sizes below which a change is small (0 where none is known), and the largest so far."""
    F, L, scale = I[s.FLOWS], I[s.LINKS], I[s.SCALE]
    largest = largest_capacity(I, P)
    for i in range(I[s.UNKNOWNS]):
        D[scale + i] = 1e-6 * largest if i < F else 0.0
    for l in range(L):
        D[scale + F + l], D[scale + F + L + l] = SMALL_QUEUE, 1e-6 * P[I[s.C] + l]
    for i in range(I[s.UNKNOWNS]):
        D[I[s.REFERENCE] + i] = max(abs(u[i]), D[scale + i])


@_jit
def sizes(I: Any, P: Any, D: Any, u: Any, least: float, exact: bool) -> None:
    """What changes are measured by; if `exact`, those of losses by the losses alone."""
    for i in range(I[s.UNKNOWNS]):
        size = max(max(abs(u[i]), least * D[I[s.REFERENCE] + i]), D[I[s.SCALE] + i])
        D[I[s.SIZE] + i] = size if size > 0 else 1.0
    for l in range(I[s.LINKS]):
        if I[I[s.BEYOND] + l]:
            i = I[s.FLOWS] + l
            D[I[s.SIZE] + i] = max(u[i], 1e-9) if exact else max(u[i] + P[I[s.Q_MAX] + l], SMALL_QUEUE)


@_jit
def guarded(I: Any, P: Any, D: Any, u: Any) -> bool:
    """Approach a bound of zero by factors of ten: a rate equation in proportion to x would never leave x = 0.

    A move there against a rising G is what too long a step makes of an unstable zero; it is refused.
    """
    move = I[s.MOVE]
    for i in range(I[s.Z_FIRST], I[s.UNKNOWNS]):
        reference = D[I[s.REFERENCE] + i]
        if P[I[s.LOWER] + i] == 0 and reference > 0 and u[i] > 1e-9 * reference and u[i] + D[move + i] < 0.1 * u[i]:
            if D[I[s.G] + i] > 0:
                return False
            D[move + i] = -0.9 * u[i]
    return True


@_jit
def changes(I: Any, D: Any) -> tuple[float, float]:
    """Largest relative change of a state or queue, and of any unknown."""
    F, L = I[s.FLOWS], I[s.LINKS]
    change = error = 0.0
    for i in range(I[s.UNKNOWNS]):
        relative = abs(D[I[s.MOVE] + i]) / D[I[s.SIZE] + i]
        known = D[I[s.REFERENCE] + i] > 0 or D[I[s.MOVE] + i] == 0
        if known and not (i < F or F + L <= i < F + 2 * L):
            change = max(change, relative)
        error = max(error, relative if known else 1.0)
    return change, error


@_jit
def to_kink(I: Any, P: Any, D: Any, u: Any, end: Any) -> None:
    """The end of a move, cut short at the first buffer that fills: beyond, derivatives are wrong, and steps cycle."""
    F, move = I[s.FLOWS], I[s.MOVE]
    first, at = 1.0, -1
    for l in range(I[s.LINKS]):
        if D[move + F + l] != 0 and 0 < P[I[s.Q_MAX] + l] < np.inf:
            kink = 0.0 if I[I[s.BEYOND] + l] else P[I[s.Q_MAX] + l]
            share = (kink - u[F + l]) / D[move + F + l]
            if 1e-9 < share < first:
                first, at = share, l
    for i in range(I[s.UNKNOWNS]):
        end[i] = u[i] + first * D[move + i]
    if at >= 0:
        end[F + at] = 0.0 if I[I[s.BEYOND] + at] else P[I[s.Q_MAX] + at]
