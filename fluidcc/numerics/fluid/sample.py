"""Samples at given times, taken inside the step, so that no polynomial of a single flow is ever stored.

A sample belongs to the step that begins at or before it: at a jump it shows the value after. Flows are integrated
at the clock of their first queue, so that a flow's sample at t is taken at t + access delay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ..tableaus import TSIT5
from . import slots as s
from .breaks import finish
from .pieces import find_time, find_work, keep, quartic
from .reads import invert, read_list, work

__all__ = ["add_totals", "sample_step"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_P = np.ascontiguousarray(TSIT5.P)


@njit(**_CFG)
def _quartics(F: Any, I: Any) -> None:
    """The dense output of every state in the accepted step, as quartics, variable by power."""
    ns, h, q, ok = I[s.NS], F[s.H], I[s.OQ], I[s.OK]
    for j in range(4):
        a, b, c, d = h * _P[0, j], h * _P[1, j], h * _P[2, j], h * _P[3, j]
        e, f, g = h * _P[4, j], h * _P[5, j], h * _P[6, j]
        o = q + j * ns
        for n in range(ns):
            k = ok + n
            F[o + n] = (a * F[k] + b * F[k + ns] + c * F[k + 2 * ns] + d * F[k + 3 * ns]) + (
                e * F[k + 4 * ns] + f * F[k + 5 * ns] + g * F[k + 6 * ns]
            )


@njit(**_CFG)
def _fill_state(F: Any, I: Any, n: int, target: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of state `n`, into F[target + number]."""
    ns, o, ts = I[s.NS], I[s.OQ] + n, I[s.OTS]
    t, inverse = F[s.T], 1.0 / F[s.H]
    a, b, c, d, e = F[I[s.OY] + n], F[o], F[o + ns], F[o + 2 * ns], F[o + 3 * ns]
    for j in range(first, end):
        u = _place(F[ts + j] + shift, t, inverse)
        F[target + j] = a + u * (b + u * (c + u * (d + u * e)))


@njit(**_CFG)
def _fill_nodes(F: Any, I: Any, i: int, target: int, first: int, end: int, shift: float) -> None:
    """Samples of a rate that is not a state, through its values at the nodes."""
    nf, ts, o = I[s.NF], I[s.OTS], I[s.ORN] + i
    t, inverse = F[s.T], 1.0 / F[s.H]
    for j in range(first, end):
        F[target + j] = _node_quartic(F, o, nf, _place(F[ts + j] + shift, t, inverse))


@njit(**_CFG)
def _place(time: float, t: float, inverse: float) -> float:
    return min(1.0, max(0.0, (time - t) * inverse))


@njit(**_CFG)
def _copy(F: Any, source: int, target: int, first: int, end: int) -> None:
    for j in range(first, end):
        F[target + j] = F[source + j]


@njit(**_CFG)
def _constant(F: Any, value: float, target: int, first: int, end: int) -> None:
    for j in range(first, end):
        F[target + j] = value


@njit(**_CFG)
def _node_quartic(F: Any, o: int, stride: int, u: float) -> float:
    """Lagrange interpolation through values at u = 0, 1/4, 1/2, 3/4, 1."""
    a, b, c, d, e = u, u - 0.25, u - 0.5, u - 0.75, u - 1.0
    v = F[o] * b * c * d * e * (32.0 / 3.0) - F[o + stride] * a * c * d * e * (128.0 / 3.0)
    v += F[o + 2 * stride] * a * b * d * e * 64.0 - F[o + 3 * stride] * a * b * c * e * (128.0 / 3.0)
    return v + F[o + 4 * stride] * a * b * c * d * (32.0 / 3.0)


@njit(**_CFG)
def _path_samples(F: Any, I: Any, k: int, first: int, end: int, shift: float, row: int) -> None:
    """Delay, loss and price of class `k`, into the rows of its first flow, of which `row` is that of the rate."""
    path = I[I[s.JPATH] + k]
    count, nodes = I[I[s.JPATH] + k + 1] - path, I[s.JPATHV] + path
    leaf, ts, step = I[nodes + count - 1], I[s.OTS], I[s.NF] * I[s.NSAMP]
    oth, ocq, ocs, ocp = I[s.OTH] + leaf, I[s.OCQ] + leaf, I[s.OCS] + leaf, I[s.OCP] + leaf
    frozen, prices, nrec = I[s.FROZEN], I[s.PRICES], I[s.NREC]
    constant = shift + (F[I[s.OCPROP] + k] if frozen else -F[I[s.OCLAG] + k])
    cursors = I[s.JNCUR0]  # of the start of the step; then each sample goes on from the one before
    for j in range(first, end):
        now = F[ts + j] + shift
        read_list(F, I, nodes, count, cursors, now, 1, nrec)
        cursors = I[s.JNCUR]
        F[row + s.SDELAY * step + j] = constant + (F[ocq] if frozen else now - F[oth])
        F[row + s.SLOSS * step + j] = 1.0 - F[ocs]
        F[row + s.SPRICE * step + j] = F[ocp] if prices else 0.0


@njit(**_CFG)
def _hop_samples(F: Any, I: Any, k: int, first: int, end: int, shift: float, row: int) -> None:
    """The same for a class with one link, much quicker."""
    leaf, ts, step = I[I[s.JPATHV] + I[I[s.JPATH] + k]], I[s.OTS], I[s.NF] * I[s.NSAMP]
    link, cursor, nrec = I[I[s.JNLINK] + leaf], I[I[s.JNCUR0] + leaf], I[s.NREC]
    frozen, prices, marks, lossy = I[s.FROZEN], I[s.PRICES], I[s.MARKS], I[s.LOSSY] or I[s.MARKS]
    constant = shift + (F[I[s.OCPROP] + k] if frozen else -F[I[s.OCLAG] + k])
    off, c, buffer, skip = F[I[s.OOFF] + leaf], F[I[s.OCAP] + link], F[I[s.OBUF] + link], s.RLINKS + link * s.LSIZE
    scheduled = I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1
    r, low, high = 0, 0.0, -np.inf
    for j in range(first, end):
        now = F[ts + j] + shift
        tol = F[s.TOLT] * max(1.0, abs(now))
        at = now - off
        if not frozen:
            tol *= c
            at = c * at
            if scheduled:
                at, c = work(F, I, link, now - off)
        if at + tol >= high or at + tol < low:  # of two records that meet here, the later one
            if frozen:
                cursor, low, high = find_time(F, I, cursor, at + tol, 0.0, nrec)
            else:
                cursor, low, high = find_work(F, I, link, cursor, at + tol, 0.0, nrec)
            r = I[s.OHIST] + (cursor & I[s.MASK]) * I[s.STRIDE]
        b = r + skip
        if frozen:
            u = (at - F[r + s.RT0]) * F[r + s.RINVH]
            F[row + s.SDELAY * step + j] = constant + quartic(F, b, u) / F[b + s.LC]
        else:
            u = invert(F, b, at)
            F[row + s.SDELAY * step + j] = constant + now - (F[r + s.RT0] + u * F[r + s.RH])
        kept = keep(F, b, quartic(F, b + s.LY, u), c, buffer) if lossy else 1.0
        if marks:
            kept *= 1.0 - quartic(F, b + s.LMARK, u)
        F[row + s.SLOSS * step + j] = 1.0 - kept
        F[row + s.SPRICE * step + j] = quartic(F, b + s.LPRICE, u) if prices else 0.0


@njit(**_CFG)
def _class_samples(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of every flow of class `k`: row by row, since each row is contiguous."""
    nf, out, size = I[s.NF], I[s.OOUT], I[s.NSAMP]
    states = out + (s.SFLOWROWS * nf + s.SLINKROWS * I[s.NL]) * size
    told = I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]
    if I[I[s.JPATH] + k + 1] - I[I[s.JPATH] + k] == 1:
        _hop_samples(F, I, k, first, end, shift, out + told * size)
    else:
        _path_samples(F, I, k, first, end, shift, out + told * size)
    for m in range(I[I[s.JCFLOW] + k], I[I[s.JCFLOW] + k + 1]):
        i = I[I[s.JCFLOWV] + m]
        if i != told:
            for row in (s.SDELAY, s.SLOSS, s.SPRICE):
                _copy(F, out + (row * nf + told) * size, out + (row * nf + i) * size, first, end)
        off, step = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i]
        for n in range(I[I[s.JFN] + i]):
            _fill_state(F, I, off + n * step, states + (off + n * step) * size, first, end, shift)
        rates = out + (s.SRATE * nf + i) * size
        if not I[I[s.JON] + i]:
            _constant(F, 0.0, rates, first, end)
        elif I[I[s.JRATE] + i] >= 0:
            _copy(F, states + I[I[s.JRATE] + i] * size, rates, first, end)
        elif I[s.NODES]:
            _fill_nodes(F, I, i, rates, first, end, shift)
        else:
            _constant(F, F[I[s.ORN] + i], rates, first, end)


@njit(**_CFG)
def _link_samples(F: Any, I: Any, link: int, first: int, end: int) -> None:
    """Samples number `first` to `end` of a link."""
    size, nl, ts = I[s.NSAMP], I[s.NL], I[s.OTS]
    out = I[s.OOUT] + (s.SFLOWROWS * I[s.NF] + link) * size
    block = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE
    t, inverse = F[s.T], 1.0 / F[s.H]
    c, mode, done, ch = F[block + s.LC], F[block + s.LMODE], F[block + s.LS0], F[block + s.LCH]
    entered0, lost0 = F[I[s.OINT] + link], F[I[s.OINT] + nl + link]
    step = nl * size
    for j in range(first, end):
        o = out + j
        u = _place(F[ts + j], t, inverse)
        b = max(0.0, _value(F, block, u))
        y = _value(F, block + s.LY, u)
        F[o + s.SBACKLOG * step] = b
        F[o + s.SQDELAY * step] = finish(F, I, link, done + u * ch + b) - F[ts + j] if b > 0.0 else 0.0
        F[o + s.SARRIVAL * step] = y
        F[o + s.SDEPART * step] = y if mode == s.EMPTY else c
        F[o + s.SLLOSS * step] = 1.0 - c / y if mode == s.FULL and y > c else 0.0
        entered, lost = _amounts(F, block, u)
        F[o + s.SENTERED * step] = entered0 + entered
        F[o + s.SLOST * step] = lost0 + lost
        F[o + s.SLPRICE * step] = _value(F, block + s.LPRICE, u)


@njit(**_CFG)
def _value(F: Any, o: int, u: float) -> float:
    return F[o] + u * (F[o + 1] + u * (F[o + 2] + u * (F[o + 3] + u * F[o + 4])))


@njit(**_CFG)
def _amounts(F: Any, block: int, u: float) -> tuple[float, float]:
    """Bits that entered and were lost between the start of the step and u."""
    h = F[block + s.LCH] / F[block + s.LC]
    o = block + s.LY
    entered = u * (F[o] + u * (F[o + 1] / 2.0 + u * (F[o + 2] / 3.0 + u * (F[o + 3] / 4.0 + u * F[o + 4] / 5.0))))
    lost = h * (entered - u * F[block + s.LC]) if F[block + s.LMODE] == s.FULL else 0.0
    return h * entered, lost


@njit(**_CFG)
def add_totals(F: Any, I: Any) -> None:
    """Add the accepted step to what each link has taken in and lost."""
    record = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS
    for link in range(I[s.NL]):
        entered, lost = _amounts(F, record + link * s.LSIZE, 1.0)
        F[I[s.OINT] + link] += entered
        F[I[s.OINT] + I[s.NL] + link] += lost


@njit(**_CFG)
def sample_step(F: Any, I: Any, final: int) -> None:
    """Take every sample inside the accepted step; `final` includes its end."""
    end = np.inf if final else F[s.T] + F[s.H]
    size, ts = I[s.NSAMP], I[s.OTS]
    ready = 0
    for k in range(I[s.NC]):
        shift = F[I[s.OACC] + I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]]
        first = I[I[s.JCSAMP] + k]
        j = first
        while j < size and F[ts + j] + shift < end:
            j += 1
        if j == first:
            continue
        if not ready:
            _quartics(F, I)
            ready = 1
        _class_samples(F, I, k, first, j, shift)
        I[I[s.JCSAMP] + k] = j
    first = I[I[s.JLSAMP]]
    j = first
    while j < size and F[ts + j] < end:
        j += 1
    if j == first:
        return
    if not ready:
        _quartics(F, I)
    for link in range(I[s.NL]):
        _link_samples(F, I, link, first, j)
    base = I[s.OOUT] + (s.SFLOWROWS * I[s.NF] + s.SLINKROWS * I[s.NL]) * size
    for n in range(I[s.OB], I[s.NS]):
        _fill_state(F, I, n, base + n * size, first, j, 0.0)
    I[I[s.JLSAMP]] = j
