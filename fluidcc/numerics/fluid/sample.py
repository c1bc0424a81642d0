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
from .reads import read_list

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
def _state(F: Any, I: Any, u: float, n: int) -> float:
    ns = I[s.NS]
    o = I[s.OQ] + n
    return F[I[s.OY] + n] + u * (F[o] + u * (F[o + ns] + u * (F[o + 2 * ns] + u * F[o + 3 * ns])))


@njit(**_CFG)
def _node_quartic(F: Any, o: int, stride: int, u: float) -> float:
    """Lagrange interpolation through values at u = 0, 1/4, 1/2, 3/4, 1."""
    a, b, c, d, e = u, u - 0.25, u - 0.5, u - 0.75, u - 1.0
    v = F[o] * b * c * d * e * (32.0 / 3.0) - F[o + stride] * a * c * d * e * (128.0 / 3.0)
    v += F[o + 2 * stride] * a * b * d * e * 64.0 - F[o + 3 * stride] * a * b * c * e * (128.0 / 3.0)
    return v + F[o + 4 * stride] * a * b * c * d * (32.0 / 3.0)


@njit(**_CFG)
def _class_sample(F: Any, I: Any, k: int, j: int, now: float, u: float) -> None:
    """Sample number `j` of every flow of class `k`."""
    nf, out, size = I[s.NF], I[s.OOUT], I[s.NSAMP]
    path = I[I[s.JPATH] + k]
    count = I[I[s.JPATH] + k + 1] - path
    read_list(F, I, I[s.JPATHV] + path, count, I[s.JNCUR0], now, 1, I[s.NREC])
    leaf = I[I[s.JPATHV] + path + count - 1]
    if I[s.FROZEN]:
        delay = F[I[s.OCPROP] + k] + F[I[s.OCQ] + leaf]
    else:
        delay = now - F[I[s.OCLAG] + k] - F[I[s.OTH] + leaf]
    lost = 1.0 - F[I[s.OCS] + leaf]
    for m in range(I[I[s.JCFLOW] + k], I[I[s.JCFLOW] + k + 1]):
        i = I[I[s.JCFLOWV] + m]
        F[out + (s.SDELAY * nf + i) * size + j] = delay + F[I[s.OACC] + i]
        F[out + (s.SLOSS * nf + i) * size + j] = lost
        F[out + (s.SPRICE * nf + i) * size + j] = F[I[s.OCP] + leaf] if I[s.PRICES] else 0.0
        row = out + (s.SFLOWROWS * nf + s.SLINKROWS * I[s.NL]) * size + j
        off, step = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i]
        for n in range(I[I[s.JFN] + i]):
            F[row + (off + n * step) * size] = _state(F, I, u, off + n * step)
        rate = 0.0
        if I[I[s.JON] + i]:
            if I[I[s.JRATE] + i] >= 0:
                rate = F[row + I[I[s.JRATE] + i] * size]
            elif I[s.NODES]:
                rate = _node_quartic(F, I[s.ORN] + i, nf, u)
            else:
                rate = F[I[s.ORN] + i]
        F[out + (s.SRATE * nf + i) * size + j] = rate


@njit(**_CFG)
def _link_sample(F: Any, I: Any, link: int, j: int, now: float, u: float) -> None:
    size, nl = I[s.NSAMP], I[s.NL]
    out = I[s.OOUT] + (s.SFLOWROWS * I[s.NF] + link) * size + j
    block = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE
    b = max(0.0, _value(F, block, u))
    y = _value(F, block + s.LY, u)
    c = F[block + s.LC]
    mode = F[block + s.LMODE]
    step = nl * size
    F[out + s.SBACKLOG * step] = b
    F[out + s.SQDELAY * step] = (
        finish(F, I, link, F[block + s.LS0] + u * F[block + s.LCH] + b) - now if b > 0.0 else 0.0
    )
    F[out + s.SARRIVAL * step] = y
    F[out + s.SDEPART * step] = y if mode == s.EMPTY else c
    F[out + s.SLLOSS * step] = 1.0 - c / y if mode == s.FULL and y > c else 0.0
    entered, lost = _amounts(F, block, u)
    F[out + s.SENTERED * step] = F[I[s.OINT] + link] + entered
    F[out + s.SLOST * step] = F[I[s.OINT] + nl + link] + lost
    F[out + s.SLPRICE * step] = _value(F, block + s.LPRICE, u)


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
    t, h = F[s.T], F[s.H]
    end = np.inf if final else t + h
    size = I[s.NSAMP]
    ready = 0
    for k in range(I[s.NC]):
        shift = F[I[s.OACC] + I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]]
        j = I[I[s.JCSAMP] + k]
        while j < size and F[I[s.OTS] + j] + shift < end:
            now = F[I[s.OTS] + j] + shift
            u = min(1.0, max(0.0, (now - t) / h))
            if not ready:
                _quartics(F, I)
                ready = 1
            _class_sample(F, I, k, j, now, u)
            j += 1
        I[I[s.JCSAMP] + k] = j
    j = I[I[s.JLSAMP]]
    base = s.SFLOWROWS * I[s.NF] + s.SLINKROWS * I[s.NL]
    while j < size and F[I[s.OTS] + j] < end:
        u = min(1.0, max(0.0, (F[I[s.OTS] + j] - t) / h))
        if not ready:
            _quartics(F, I)
            ready = 1
        for link in range(I[s.NL]):
            _link_sample(F, I, link, j, F[I[s.OTS] + j], u)
        for n in range(I[s.OB], I[s.NS]):
            F[I[s.OOUT] + (base + n) * size + j] = _state(F, I, u, n)
        j += 1
    I[I[s.JLSAMP]] = j
