"""Samples at given times, taken inside the step, so that no polynomial of a single flow is ever
stored.

A sample belongs to the step that begins at or before it: at a jump it shows the value after. Flows
are integrated at the clock of their first queue, so that a flow's sample at t is taken at t +
access delay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .breaking_points import finish
from .reads import find_time, find_work, invert, keep, lost, quartic, read_list, share, work
from .records import state_quartic
from .rhs import drop_place, drops

__all__ = ["add_totals", "rate_at", "sample_step"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}


@njit(**_CFG)
def sample_step(F: Any, I: Any, final: bool) -> None:
    """Take every sample inside the accepted step; `final` includes its end."""
    end = np.inf if final else F[s.T] + F[s.H]
    for k in range(I[s.NC]):
        shift, first = F[I[s.OACC] + I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]], I[I[s.JCSAMP] + k]
        j = _first_sample(F, I, first, end - shift)
        if j > first:
            if I[I[s.JPATH] + k + 1] - I[I[s.JPATH] + k] == 1:
                _path_of_one_link(F, I, k, first, j, shift)
            else:
                _path(F, I, k, first, j, shift)
            for m in range(I[I[s.JCFLOW] + k], I[I[s.JCFLOW] + k + 1]):
                _flow(F, I, I[I[s.JCFLOWV] + m], first, j, shift)
            I[I[s.JCSAMP] + k] = j
    first = I[I[s.JLSAMP]]
    j = _first_sample(F, I, first, end)
    if j > first:
        _links(F, I, first, j)
        I[I[s.JLSAMP]] = j


@njit(**_CFG)
def _first_sample(F: Any, I: Any, first: int, end: float) -> int:
    """Return the number of the first sample, from `first` on, that is at `end` or after it."""
    size, ts, j = I[s.NSAMP], I[s.OTS], first
    while j < size and F[ts + j] < end:
        j += 1
    return j


@njit(**_INLINE)
def _position(F: Any, time: int, start: float, inverse: float) -> float:
    """Return where the time at F[time] is in a step from `start`, of length one over `inverse`:
    between 0 and 1.
    """
    return min(max((F[time] - start) * inverse, 0.0), 1.0)


# --- flows ----------------------------------------------------------------------------------------


@njit(**_CFG)
def rate_at(F: Any, I: Any, i: int, u: float) -> float:
    """Return the rate of flow `i`, which is none of its states, at `u` of the step.

    Lagrange interpolation through values at u = 0, 1/4, 1/2, 3/4, 1, less the first, so that what
    is constant stays so to the last bit. Where that falls below 0, which only a quartic does
    between values that do not, the straight line between two of the values is taken.
    """
    o, stride = I[s.ORN] + i, I[s.NF]
    if not I[s.NODES]:
        return F[o]
    a, b, c, d, e, first = u, u - 0.25, u - 0.5, u - 0.75, u - 1.0, F[o]
    v = first - (F[o + stride] - first) * a * c * d * e * (128.0 / 3.0)
    v = v + (F[o + 2 * stride] - first) * a * b * d * e * 64.0
    v = v - (F[o + 3 * stride] - first) * a * b * c * e * (128.0 / 3.0)
    v = v + (F[o + 4 * stride] - first) * a * b * c * d * (32.0 / 3.0)
    if v >= 0.0:
        return v
    k = min(int(4.0 * u), 3)
    before, after = F[o + k * stride], F[o + (k + 1) * stride]
    return before + (4.0 * u - k) * (after - before)


@njit(**_CFG)
def _state(F: Any, I: Any, n: int, first: int, end: int, shift: float, target: int) -> None:
    """Put samples `first` to `end` of state `n` into the row at `target`."""
    a, b, c, d, e = state_quartic(F, I, n)
    ts, start, inverse = I[s.OTS], F[s.T] - shift, 1.0 / F[s.H]
    for j in range(first, end):
        u = _position(F, ts + j, start, inverse)
        F[target + j] = a + u * (b + u * (c + u * (d + u * e)))


@njit(**_CFG)
def _flow(F: Any, I: Any, i: int, first: int, end: int, shift: float) -> None:
    """Take samples `first` to `end` of a flow: its states and its rate."""
    nf, out, size = I[s.NF], I[s.OOUT], I[s.NSAMP]
    states = out + (nf + s.SCLASSROWS * I[s.NC] + s.SLINKROWS * I[s.NL]) * size
    off, step, rate = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i], I[I[s.JRATE] + i]
    target, on = out + i * size, I[I[s.JON] + i] != s.OFF
    for n in range(off, off + I[I[s.JFN] + i] * step, step):
        _state(F, I, n, first, end, shift, states + n * size)
    ts, start, inverse = I[s.OTS], F[s.T] - shift, 1.0 / F[s.H]
    for j in range(first, end):
        if not on:
            F[target + j] = 0.0
        elif rate >= 0:
            F[target + j] = F[states + rate * size + j]
        else:
            F[target + j] = rate_at(F, I, i, _position(F, ts + j, start, inverse))


# --- paths ----------------------------------------------------------------------------------------


@njit(**_CFG)
def _row(I: Any, k: int) -> tuple[int, int]:
    """Return where the first row of class `k` begins, and how far it is to the next."""
    return I[s.OOUT] + (I[s.NF] + k) * I[s.NSAMP], I[s.NC] * I[s.NSAMP]


@njit(**_CFG)
def _constant(F: Any, I: Any, k: int, shift: float) -> float:
    """Return the part of the delay of class `k` that its queues do not change."""
    return shift + (F[I[s.OCPROP] + k] if I[s.FROZEN] else -F[I[s.OCLAG] + k])


@njit(**_CFG)
def _path(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Take samples `first` to `end` of the delay, loss and price of class `k`, by the read nodes of
    its path.
    """
    path = I[I[s.JPATH] + k]
    count, nodes = I[I[s.JPATH] + k + 1] - path, I[s.JPATHV] + path
    leaf, ts = I[nodes + count - 1], I[s.OTS]
    row, step = _row(I, k)
    oth, ocq, ocs, ocp = I[s.OTH] + leaf, I[s.OCQ] + leaf, I[s.OCS] + leaf, I[s.OCP] + leaf
    constant, cursors = _constant(F, I, k, shift), I[s.JNCUR0]  # of the start of the step
    for j in range(first, end):
        now = F[ts + j] + shift
        read_list(F, I, nodes, count, cursors, now, 1, I[s.NREC])
        cursors = I[s.JNCUR]  # each sample goes on from the one before
        F[row + s.SDELAY * step + j] = constant + (F[ocq] if I[s.FROZEN] else now - F[oth])
        F[row + s.SLOSS * step + j] = lost(F[ocs])
        F[row + s.SPRICE * step + j] = F[ocp] if I[s.PRICES] else 0.0


@njit(**_CFG)
def _path_of_one_link(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Do the same for a path of one link, much quicker."""
    leaf = I[I[s.JPATHV] + I[I[s.JPATH] + k]]
    link, cursor, nrec, frozen = (
        I[I[s.JNLINK] + leaf],
        I[I[s.JNCUR0] + leaf],
        I[s.NREC],
        I[s.FROZEN] > 0,
    )
    thins = I[s.MARKS] > 0 or I[s.PRICES] > 0 or I[s.LOSSY] > 0
    scheduled = I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1
    row, step = _row(I, k)
    constant, off, c = _constant(F, I, k, shift), F[I[s.OOFF] + leaf], F[I[s.OCAP] + link]
    r, low, high = 0, 0.0, -np.inf
    for j in range(first, end):
        now = F[I[s.OTS] + j] + shift
        at, tol = now - off, F[s.TOLT] * max(1.0, abs(now))  # a time, or an amount of work
        if not frozen:
            if scheduled:
                at, c = work(F, I, link, at)
            else:
                at *= c
            tol *= c
        if at + tol >= high or at + tol < low:  # of two records that meet here, the later one
            if frozen:
                cursor, low, high = find_time(F, I, cursor, at + tol, 0.0, nrec)
            else:
                cursor, low, high = find_work(F, I, link, cursor, at + tol, 0.0, nrec)
            r = I[s.OHIST] + (cursor & I[s.MASK]) * I[s.STRIDE]
        b = r + s.RLINKS + link * s.LSIZE
        if frozen:
            u = (at - F[r + s.RT0]) * F[r + s.RINVH]
            delay = quartic(F, b, u) / F[b + s.LC]
        else:
            u = invert(F, b, at)
            delay = now - (F[r + s.RT0] + u * F[r + s.RH])
        F[row + s.SDELAY * step + j] = constant + delay
        F[row + s.SLOSS * step + j] = 0.0
        if thins:
            kept = keep(F, b, quartic(F, b + s.LY, u), c, F[I[s.OBUF] + link])
            F[row + s.SLOSS * step + j] = 1.0 - kept * (1.0 - quartic(F, b + s.LMARK, u))
            F[row + s.SPRICE * step + j] = quartic(F, b + s.LPRICE, u)


# --- links ----------------------------------------------------------------------------------------


@njit(**_CFG)
def _links(F: Any, I: Any, first: int, end: int) -> None:
    """Take samples `first` to `end` of all links, and of the states of their laws."""
    size, nl, ts, start, inverse = I[s.NSAMP], I[s.NL], I[s.OTS], F[s.T], 1.0 / F[s.H]
    rows = I[s.OOUT] + (I[s.NF] + s.SCLASSROWS * I[s.NC]) * size
    states = rows + s.SLINKROWS * nl * size
    for link in range(nl):
        for j in range(first, end):
            _link(
                F, I, link, _position(F, ts + j, start, inverse), rows + link * size + j, nl * size
            )
    for n in range(I[s.OB] + nl, I[s.NS]):
        _state(F, I, n, first, end, 0.0, states + n * size)


@njit(**_INLINE)
def _link(F: Any, I: Any, link: int, u: float, o: int, step: int) -> None:
    """Take one sample of a link, at `u` of the step: into F[o], and the next kinds `step` apart."""
    block, h = _block(I, link), F[s.H]
    c, mode = F[block + s.LC], F[block + s.LMODE]
    backlog, arrived = quartic(F, block, u), quartic(F, block + s.LY, u)
    backlog = backlog if backlog > 0.0 else 0.0
    wait = backlog / c
    if backlog > 0.0 and I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1:
        wait = finish(F, I, link, F[block + s.LS0] + u * F[block + s.LCH] + backlog) - (
            F[s.T] + u * h
        )
    F[o + s.SBACKLOG * step] = backlog
    F[o + s.SQDELAY * step] = wait
    F[o + s.SDEPART * step] = arrived if mode == s.EMPTY else c
    if I[s.PRICES]:
        F[o + s.SLPRICE * step] = quartic(F, block + s.LPRICE, u)
    entered, gone, ratio = h * _area(F, block + s.LY, u), 0.0, 0.0
    if mode == s.FULL:
        gone, ratio = entered - u * h * c, 1.0 - c / arrived if arrived > c else 0.0
    if drops(I, link):
        place = drop_place(I, link)
        rate, total = quartic(F, place, u), h * _area(F, place, u)
        ratio = 1.0 - share(arrived, rate) * (1.0 - ratio)
        arrived, entered, gone = arrived + rate, entered + total, gone + total
    F[o + s.SARRIVAL * step] = arrived
    F[o + s.SENTERED * step] = F[I[s.OINT] + link] + entered
    F[o + s.SLLOSS * step] = ratio
    F[o + s.SLOST * step] = F[I[s.OINT] + I[s.NL] + link] + gone


@njit(**_INLINE)
def _block(I: Any, link: int) -> int:
    """Return where the newest record has what the link did."""
    return I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE


@njit(**_INLINE)
def _area(F: Any, o: int, u: float) -> float:
    """Return the integral from 0 to `u` of the quartic whose coefficients stand at `o`."""
    c, d, e = F[o + 2] * (1.0 / 3.0), F[o + 3] * 0.25, F[o + 4] * 0.2
    return u * (F[o] + u * (F[o + 1] * 0.5 + u * (c + u * (d + u * e))))


@njit(**_CFG)
def add_totals(F: Any, I: Any) -> None:
    """Add the accepted step to what each link has taken in and lost."""
    taken, gone, h = I[s.OINT], I[s.OINT] + I[s.NL], F[s.H]
    for link in range(I[s.NL]):
        block = _block(I, link)
        entered = h * _area(F, block + s.LY, 1.0)
        F[taken + link] += entered
        if F[block + s.LMODE] == s.FULL:
            F[gone + link] += entered - F[block + s.LCH]
        if drops(I, link):
            dropped = h * _area(F, drop_place(I, link), 1.0)
            F[taken + link] += dropped
            F[gone + link] += dropped
