"""Modes instead of max(): queue empty, busy or full, and the switches of the laws, found on the
dense output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .reads import quartic
from .rhs import evaluate
from .step import dense

__all__ = ["all_stay", "first_event", "settle_links"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_INLINE = {**_CFG, "forceinline": True}

# relative difference of arrivals and capacity that only the coming step can tell from none
TIE = 1e-9
FINE = 1e-3  # of the resolution of time, to which the change of a switch is located
SURPLUS = 1e-12  # relative surplus of arrivals over capacity that is rounding, not a queue
SLACK = 1e-14  # backlog below zero that is rounding, relative to a second's work


# --- whether any mode changes at all, seen at a glance --------------------------------------------


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
    return (
        (mode > 0.5) == (value > 0.0) or value == 0.0 or not on
    )  # first the sign, which nearly always decides


@njit(**_CFG)
def switches_stay(F: Any, I: Any) -> bool:
    """Whether every switch has the sign of its mode at the end of the step, or none is located."""
    owners, on, modes, values = I[s.JSWOWN], I[s.JON], I[s.OSW], I[s.OGS]
    for k in range(I[s.NSW] if I[s.LOCATE] else 0):
        if not switch_stays(
            F[modes + k], F[values + k], I[owners + k] < 0 or I[on + I[owners + k]] == s.ON
        ):
            return False
    return True


@njit(**_CFG)
def all_stay(F: Any, I: Any) -> bool:
    """Whether no mode changes in the step just taken."""
    for link in range(I[s.NL]):
        if not link_stays(
            F, I, link, I[I[s.JMODE] + link], F[I[s.OCAP] + link], F[I[s.OBUF] + link]
        ):
            return False
    return switches_stay(F, I)


# --- where one does -------------------------------------------------------------------------------


@njit(**_CFG)
def _root(F: Any, o: int, level: float, low: float, high: float) -> float:
    """Where the quartic at `o` passes `level` between `low` and `high`, to the last bits: bisection
    and secants.
    """
    a, b = low, high
    fa, fb = quartic(F, o, a) - level, quartic(F, o, b) - level
    for k in range(100):
        if b - a <= 1e-15 * max(1.0, abs(b)):
            break
        m = a - fa * (b - a) / (fb - fa) if k % 3 < 2 and fb != fa else 0.5 * (a + b)
        if not a < m < b:
            m = 0.5 * (a + b)
        fm = quartic(F, o, m) - level
        if fm == 0.0:
            return m
        if (fm > 0.0) == (fb > 0.0):
            b, fb = m, fm
        else:
            a, fa = m, fm
    return b


@njit(**_CFG)
def _passes(F: Any, o: int, level: float, sign: float, slack: float) -> float:
    """First u in (0, 1] where sign * (quartic - level) exceeds `slack`; 2 if nowhere.

    Eight nodes, and where the quartic turns between two of them its extreme, so that a short dip is
    not missed.
    """
    if below(F, o, level, sign, slack):
        return 2.0
    before = 0.0
    for k in range(1, 9):
        u = 0.125 * k
        if sign * (quartic(F, o, u) - level) > slack:
            return _root_from(F, o, level, before, u, sign)
        turn = _extreme(F, o, before, u, sign)
        if turn > 0.0 and sign * (quartic(F, o, turn) - level) > slack:
            return _root_from(F, o, level, before, turn, sign)
        before = u
    return 2.0


@njit(**_CFG)
def _root_from(F: Any, o: int, level: float, low: float, high: float, sign: float) -> float:
    if sign * (quartic(F, o, low) - level) > 0.0:
        return low
    return _root(F, o, level, low, high)


@njit(**_CFG)
def _extreme(F: Any, o: int, low: float, high: float, sign: float) -> float:
    """A maximum of sign * quartic inside the interval, or -1."""
    a, b = low, high
    if sign * _slope(F, o, a) <= 0.0 or sign * _slope(F, o, b) >= 0.0:
        return -1.0
    for _ in range(30):
        m = 0.5 * (a + b)
        if sign * _slope(F, o, m) > 0.0:
            a = m
        else:
            b = m
    return 0.5 * (a + b)


@njit(**_CFG)
def _slope(F: Any, o: int, u: float) -> float:
    return F[o + 1] + u * (2.0 * F[o + 2] + u * (3.0 * F[o + 3] + u * 4.0 * F[o + 4]))


@njit(**_CFG)
def _link_event(F: Any, I: Any, link: int) -> tuple[float, int]:
    """When the link leaves its mode in the step just taken (2: not), and for which mode."""
    block = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE
    mode = I[I[s.JMODE] + link]
    c = F[I[s.OCAP] + link]
    if mode == s.EMPTY:
        return _passes(F, block + s.LY, c, 1.0, SURPLUS * c), s.BUSY
    if mode == s.FULL:
        return _passes(F, block + s.LY, c, -1.0, SURPLUS * c), s.BUSY
    drained = _passes(F, block, 0.0, -1.0, SLACK * c)
    filled = 2.0
    if F[I[s.OBUF] + link] < 1e300:
        filled = _passes(F, block, F[I[s.OBUF] + link], 1.0, SLACK * c)
    if filled < drained:
        return filled, s.FULL
    return drained, s.EMPTY


@njit(**_CFG)
def _switch_event(F: Any, I: Any, k: int, h: float, tol: float, enough: float) -> float:
    """Where switch `k` changes sign in the step just taken: the Illinois method on the dense
    output.

    What a switch looks at counts as 0 within rounding, and leaves 0 at once. How far that is from
    where it was first found to be 0 is searched by its order of magnitude. From `enough` on any
    place will do.
    """
    g = I[s.OGS] + k
    oz, scratch, last = I[s.OZ], I[s.OSCRATCH], I[s.NREC]
    a, b = 0.0, 1.0
    fb = F[g]
    dense(F, I, 0.0, oz, h)
    evaluate(F, I, F[s.T], oz, scratch, -1, 1, last, 1)
    fa = F[g]
    if (fa > 0.0) == (fb > 0.0):
        return 0.0
    fine, zero = FINE * tol / h, 2.0
    for k2 in range(60):
        if b - a <= fine or fa == fb or a >= enough:
            break
        if fa == 0.0:
            zero = min(a, zero)
            near, far = a - zero + fine, b - zero
            m = zero + np.sqrt(near * far) if far > 1e4 * near else 0.5 * (a + b)
        else:
            m = b - fb * (b - a) / (fb - fa) if k2 % 4 < 3 else 0.5 * (a + b)
            m = min(max(m, a + 0.5 * fine), b - 0.5 * fine)
        if not a < m < b:
            m = 0.5 * (a + b)
        dense(F, I, m, oz, h)
        evaluate(F, I, F[s.T] + m * h, oz, scratch, -1, 0, last, 1)
        fm = F[g]
        if (fm > 0.0) == (
            fb > 0.0
        ):  # not where it is 0: so it may be for long, as of states held at a bound
            if k2 % 4 < 3:
                fa *= 0.5
            b, fb = m, fm
        else:
            if k2 % 4 < 3:
                fb *= 0.5
            a, fa = m, fm
    return b


@njit(**_CFG)
def first_event(F: Any, I: Any, enough: float) -> tuple[float, int, int]:
    """The earliest change of mode in the step just taken.

    Parameters
    ----------
    enough : float
        From where on in the step it does not matter when exactly.

    Returns
    -------
    u : float
        Where in the step; 2 if there is none.
    index : int
        Link l, or number of links + k for switch k.
    mode : int
        The mode after it.
    """
    best, index, mode = 2.0, -1, 0
    nl = I[s.NL]
    for link in range(nl):
        if I[I[s.JQUEUE] + link]:
            u, new = _link_event(F, I, link)
            if u < best:
                best, index, mode = u, link, new
    if not switches_stay(F, I):
        u, k = _first_switch(F, I, enough)
        if u < best:
            return u, nl + k, 0 if F[I[s.OSW] + k] > 0.5 else 1
    if best < 2.0:
        for k in range(I[s.NSW]):
            I[I[s.JTOGETHER] + k] = 0
    return best, index, mode


@njit(**_CFG)
def _crossed(F: Any, I: Any, k: int) -> bool:
    """Whether switch `k` has the other sign at the end of the step."""
    owner = I[I[s.JSWOWN] + k]
    if owner >= 0 and I[I[s.JON] + owner] != s.ON:
        return False
    g = F[I[s.OGS] + k]
    return g != 0.0 and (F[I[s.OSW] + k] > 0.5) != (g > 0.0)


@njit(**_CFG)
def _switches_at(F: Any, I: Any, u: float, values: int) -> None:
    """Values of every switch at `u` of the step just taken, into F[values]; nothing has changed
    before its start.
    """
    if u <= 0.0:
        for k in range(I[s.NSW]):
            F[values + k] = 0.0
        return
    dense(F, I, u, I[s.OZ], F[s.H])
    evaluate(F, I, F[s.T] + u * F[s.H], I[s.OZ], I[s.OSCRATCH], -1, 0, I[s.NREC], 1)
    for k in range(I[s.NSW]):
        F[values + k] = F[I[s.OGS] + k]


@njit(**_CFG)
def _first_switch(F: Any, I: Any, enough: float) -> tuple[float, int]:
    """The switch that changes first in the step; those that change with it are marked in JTOGETHER.

    Only those are located that have changed a hair before the first one so far: of many switches, a
    few.
    """
    nsw, h = I[s.NSW], F[s.H]
    tol = F[s.TOLT] * max(1.0, abs(F[s.T]))
    hair = 10.0 * tol / h
    ends, found = I[s.OSWITCHED], I[s.JCROSSED]
    before, after = ends + nsw, ends + 2 * nsw
    count = 0
    for k in range(nsw):
        F[ends + k] = F[I[s.OGS] + k]
        I[I[s.JTOGETHER] + k] = 0
        if _crossed(F, I, k):
            I[found + count] = k
            count += 1
    best, index, n = 2.0, -1, 0
    while n < count:  # those up to n are located, or come later than the best
        k = I[found + n]
        n += 1
        if k < 0 or (index >= 0 and not _changed(F, I, k, F[before + k])):
            continue
        I[found + n - 1] = -1 - k
        F[I[s.OGS] + k] = F[ends + k]
        u = _switch_event(F, I, k, h, tol, enough)
        if u < best:
            best, index = u, k
            if count > 1:
                _switches_at(F, I, best - hair, before)
                _switches_at(F, I, min(1.0, best + hair), after)
            n = 0
    for k in range(nsw):
        F[I[s.OGS] + k] = F[ends + k]
    for n in range(count):
        k = I[found + n] if I[found + n] >= 0 else -1 - I[found + n]
        if k != index and _changed(F, I, k, F[after + k]):
            I[I[s.JTOGETHER] + k] = 1
    return best, index


@njit(**_CFG)
def _changed(F: Any, I: Any, k: int, value: float) -> bool:
    return value != 0.0 and (F[I[s.OSW] + k] > 0.5) != (value > 0.0)


@njit(**_CFG)
def settle_links(F: Any, I: Any, skip: int) -> int:
    """Decide every link's mode afresh from its backlog and arrivals; return how many changed.

    Where arrivals equal the capacity the mode stays: the step to come decides it. So does that of
    link `skip`, which has just changed at an event.
    """
    changed = 0
    for link in range(I[s.NL]):
        old = I[I[s.JMODE] + link]
        if not I[I[s.JQUEUE] + link]:
            I[I[s.JMODE] + link] = s.EMPTY
            continue
        if link == skip:
            continue
        b = F[I[s.OY] + I[s.OB] + link]
        y = F[I[s.OARR] + link]
        c = F[I[s.OCAP] + link]
        tie = abs(y - c) <= TIE * c
        mode = s.BUSY
        if b <= SLACK * c:
            mode = s.EMPTY if y < c else s.BUSY
            if tie:
                mode = old if old != s.HELD and old != s.FULL else s.EMPTY
        elif b >= F[I[s.OBUF] + link] - SLACK * c:
            mode = s.FULL if y > c else s.BUSY
            if tie:
                mode = old if old == s.FULL else s.BUSY
        if mode != old:
            I[I[s.JMODE] + link] = mode
            changed += 1
    return changed
