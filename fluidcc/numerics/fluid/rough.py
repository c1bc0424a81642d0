"""Rates that no state smooths: those of sources that send what is acknowledged, say.

What such a source hears is in its rate at once. So a kink of a rate comes round for ever, and what a quartic misses of
a kink does too: where it swings, the next one swings more. The states hardly show that, since it is short. Therefore

- a kink is followed on wherever it is seen, as a jump is: see `repeat_kinks`;
- a step is taken again, shorter, where quartics cannot follow the rates in it: see `roughness`;
- what is then left is too short to matter, and its rates are straight lines, which never swing: see `straighten`.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .breaks import follow
from .records import place

__all__ = ["repeat_kinks", "roughness", "straighten", "unfollowed"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}

MISSED = 0.012  # of the fourth difference of five values is too much: a third of what their quartic misses of a kink
SMOOTH = 0.1  # fourth difference, over all that the values vary, below which the quartic follows them


@njit(**_CFG)
def _missed(F: Any, o: int, stride: int) -> float:
    """What the quartic through five values at F[o] misses between them, where they are rough; else 0."""
    a, b, c = F[o], F[o + stride], F[o + 2 * stride]
    d, e = F[o + 3 * stride], F[o + 4 * stride]
    fourth = abs((a + e) - 4.0 * (b + d) + 6.0 * c)
    varies = abs(b - a) + abs(c - b) + abs(d - c) + abs(e - d)
    return MISSED * fourth if fourth > SMOOTH * varies else 0.0


@njit(**_CFG)
def _negative(F: Any, o: int, stride: int) -> bool:
    """Whether the quartic through five values at F[o], none below 0, may be: by its Bernstein coefficients."""
    a, b, c = F[o], F[o + stride], F[o + 2 * stride]
    d, e = F[o + 3 * stride], F[o + 4 * stride]
    if min(a, b, c, d, e) < 0.0:
        return False
    first = -13.0 * a + 48.0 * b - 36.0 * c + 16.0 * d - 3.0 * e
    third = -13.0 * e + 48.0 * d - 36.0 * c + 16.0 * b - 3.0 * a
    return min(first, third, 13.0 * (a + e) - 64.0 * (b + d) + 120.0 * c) < 0.0


@njit(**_CFG)
def _worst(F: Any, I: Any) -> float:
    """The same for all that links tell in the step just taken, and rates looked back at, over the tolerance."""
    nl, nf, worst = I[s.NL], I[s.NF], 0.0
    for l in range(nl):
        worst = max(worst, _missed(F, I[s.OAN] + l, nl) / F[I[s.OCAP] + l])
        if I[s.MARKS]:
            worst = max(worst, _missed(F, I[s.OMN] + l, nl))
        if I[s.PRICES]:
            price = I[s.OPN] + l
            least = min(abs(F[price]), abs(F[price + 2 * nl]), abs(F[price + 4 * nl]))
            worst = max(worst, _missed(F, price, nl) / (F[s.RTOL] + least))
            if _negative(F, price, nl):
                worst = max(worst, 2.0 * F[s.RTOL])
    for i in range(nf):
        if I[I[s.JXT] + i] >= 0:
            worst = max(worst, _missed(F, I[s.ORN] + i, nf) / F[I[s.OCAP] + I[I[s.JFIRST] + i]])
    return worst / F[s.RTOL]


@njit(**_CFG)
def roughness(F: Any, I: Any) -> float:
    """By how much the step just taken is too long for rates that no state smooths: above 1, take a shorter one."""
    if not I[s.ECHO]:
        return 0.0
    F[s.ROUGH] = _worst(F, I)
    if F[s.H] <= 100.0 * F[s.TOLT] * max(1.0, abs(F[s.T])):
        return 0.0
    return F[s.ROUGH] * min(1.0, F[s.H] / F[s.BRIEF])


@njit(**_CFG)
def unfollowed(F: Any, I: Any) -> bool:
    """Whether quartics cannot follow the rates in the step just taken, however brief it is: `roughness` has seen it."""
    return I[s.ECHO] != 0 and F[s.ROUGH] > 1.0


@njit(**_CFG)
def straighten(F: Any, I: Any) -> None:
    """Let the rates, marks and prices in the step just taken be straight lines."""
    nl = I[s.NL]
    r = place(I, I[s.NREC])
    for l in range(nl):
        b = r + s.RLINKS + l * s.LSIZE
        _line(F, b + s.LY)
        if I[s.MARKS]:
            _line(F, b + s.LMARK)
        if I[s.PRICES]:
            _line(F, b + s.LPRICE)
    for g in range(I[s.NX] + I[s.NT]):
        _line(F, r + s.RLINKS + nl * s.LSIZE + 5 * g)


@njit(**_CFG)
def _line(F: Any, o: int) -> None:
    F[o + 1] = (F[o + 1] + F[o + 2]) + (F[o + 3] + F[o + 4])
    F[o + 2] = F[o + 3] = F[o + 4] = 0.0


@njit(**_CFG)
def repeat_kinks(F: Any, I: Any) -> None:
    """Send on the kinks of rates at the start of the step just taken, which began at a breaking point.

    That is for networks with I[ECHO] alone.
    """
    own = s.RLINKS + I[s.NL] * s.LSIZE + 5 * I[s.NX]
    before, after = place(I, I[s.NREC] - 1) + own, place(I, I[s.NREC]) + own
    told = -1
    for i in range(I[s.NF]):
        link, slot = I[I[s.JFIRST] + i], I[I[s.JXT] + i]
        if link == told or slot < 0:
            continue
        a, b = before + 5 * slot, after + 5 * slot
        slope = (F[a + 1] + 2.0 * F[a + 2] + 3.0 * F[a + 3] + 4.0 * F[a + 4]) / F[before - own + s.RH]
        kink = abs(F[b + 1] / F[s.H] - slope)
        if kink * F[s.BRIEF] > F[s.RTOL] * F[I[s.OCAP] + link]:
            follow(F, I, link)
            told = link
