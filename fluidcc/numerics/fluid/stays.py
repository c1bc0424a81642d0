"""Whether no mode changes in a step, seen at a glance: it does so for nearly every step."""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s

__all__ = ["SLACK", "SURPLUS", "all_stay", "below", "link_stays", "switch_stays", "switches_stay"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_INLINE = {**_CFG, "forceinline": True}

SURPLUS = 1e-12  # relative surplus of arrivals over capacity that is rounding, not a queue
SLACK = 1e-14  # backlog below zero that is rounding, relative to a second's work


@njit(**_INLINE)
def below(F: Any, o: int, level: float, sign: float, slack: float) -> bool:
    """Whether the Bernstein coefficients of sign * (quartic - level) show that it is below `slack`.

    It lies within their hull. The quartic's own coefficients stand at F[o].
    """
    a, b, c, d = F[o] - level, F[o + 1], F[o + 2], F[o + 3]
    first, second, third = a + 0.25 * b, a + 0.5 * b + c / 6.0, a + 0.75 * b + 0.5 * c + 0.25 * d
    last = a + b + c + d + F[o + 4]
    top = max(max(sign * a, sign * first), max(sign * second, max(sign * third, sign * last)))
    return top <= slack


@njit(**_INLINE)
def link_stays(F: Any, I: Any, link: int, mode: int, c: float, buffer: float) -> bool:
    """Whether the link, of capacity `c`, stays in its mode in the step just taken."""
    if not I[I[s.JQUEUE] + link]:
        return True
    block = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE
    if mode == s.EMPTY:
        return below(F, block + s.LY, c, 1.0, SURPLUS * c)
    if mode == s.FULL:
        return below(F, block + s.LY, c, -1.0, SURPLUS * c)
    drained = below(F, block, 0.0, -1.0, SLACK * c)
    return drained and (buffer >= 1e300 or below(F, block, buffer, 1.0, SLACK * c))


@njit(**_INLINE)
def switch_stays(mode: float, value: float, on: bool) -> bool:
    """Whether a switch has no other sign at the end of the step, or a source that does not send."""
    return (mode > 0.5) == (value > 0.0) or value == 0.0 or not on  # first the sign, which nearly always decides


@njit(**_CFG)
def switches_stay(F: Any, I: Any) -> bool:
    """Whether every switch has the sign of its mode at the end of the step, or none is located."""
    owners, on, modes, values = I[s.JSWOWN], I[s.JON], I[s.OSW], I[s.OGS]
    for k in range(I[s.NSW] if I[s.LOCATE] else 0):
        if not switch_stays(F[modes + k], F[values + k], I[owners + k] < 0 or I[on + I[owners + k]] == s.ON):
            return False
    return True


@njit(**_CFG)
def all_stay(F: Any, I: Any) -> bool:
    """Whether no mode changes in the step just taken."""
    for link in range(I[s.NL]):
        if not link_stays(F, I, link, I[I[s.JMODE] + link], F[I[s.OCAP] + link], F[I[s.OBUF] + link]):
            return False
    return switches_stay(F, I)
