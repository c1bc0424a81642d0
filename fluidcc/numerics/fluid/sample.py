"""Samples at given times, taken inside the step, so that no polynomial of a single flow is ever stored.

A sample belongs to the step that begins at or before it: at a jump it shows the value after. Flows are integrated
at the clock of their first queue, so that a flow's sample at t is taken at t + access delay. Samples are taken four
at a time: see `lanes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from . import slots as s
from .breaks import finish
from .lanes import LANES, Four, find_places, places, put, quartic_lanes, state_quartic
from .pieces import quartic, share
from .sample_paths import sample_path
from .told import drop_place, drops

__all__ = ["add_totals", "sample_step"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}


@njit(**_CFG)
def _node_quartic(F: Any, o: int, stride: int, u: float) -> float:
    """Lagrange interpolation through values at u = 0, 1/4, 1/2, 3/4, 1."""
    a, b, c, d, e = u, u - 0.25, u - 0.5, u - 0.75, u - 1.0
    v = F[o] * b * c * d * e * (32.0 / 3.0) - F[o + stride] * a * c * d * e * (128.0 / 3.0)
    v += F[o + 2 * stride] * a * b * d * e * 64.0 - F[o + 3 * stride] * a * b * c * e * (128.0 / 3.0)
    return v + F[o + 4 * stride] * a * b * c * d * (32.0 / 3.0)


@njit(**_CFG)
def _fill(F: Any, I: Any, quartic: int, target: int, first: int, end: int) -> None:
    """Samples number `first` to `end` of a quartic of the step, into the row at `target`."""
    for j in range(first, end, LANES):
        put(F, target + j, quartic_lanes(F, quartic, places(F, I, j)))


@njit(**_CFG)
def _flow_samples(F: Any, I: Any, i: int, first: int, end: int) -> None:
    """States and rate of a flow."""
    nf, out, size = I[s.NF], I[s.OOUT], I[s.NSAMP] + s.PAD
    states = out + (nf + s.SCLASSROWS * I[s.NC] + s.SLINKROWS * I[s.NL]) * size
    off, step, rate = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i], I[I[s.JRATE] + i]
    target, on = out + i * size, I[I[s.JON] + i]
    for n in range(off, off + I[I[s.JFN] + i] * step, step):
        quartic = state_quartic(F, I, n)
        _fill(F, I, quartic, states + n * size, first, end)
        if n == rate and on:
            _fill(F, I, quartic, target, first, end)
    if on and rate >= 0:
        return
    for j in range(first, end):
        if on and I[s.NODES]:
            F[target + j] = _node_quartic(F, I[s.ORN] + i, nf, F[I[s.OPLACE] + j])
        else:
            F[target + j] = F[I[s.ORN] + i] if on else 0.0


@njit(**_CFG)
def _class_samples(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of every flow of class `k`, and of what they share."""
    sample_path(F, I, k, first, end, shift)
    find_places(F, I, first, end, shift)
    for m in range(I[I[s.JCFLOW] + k], I[I[s.JCFLOW] + k + 1]):
        _flow_samples(F, I, I[I[s.JCFLOWV] + m], first, end)


@njit(**_CFG)
def _link_lanes(F: Any, I: Any, link: int, at: Four, j: int, end: int) -> None:
    """Backlog, delay and rates of a link, for four samples from number `j`."""
    size, nl = I[s.NSAMP] + s.PAD, I[s.NL]
    o, step = I[s.OOUT] + (I[s.NF] + s.SCLASSROWS * I[s.NC] + link) * size + j, nl * size
    block = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS + link * s.LSIZE
    c, mode = F[block + s.LC], F[block + s.LMODE]
    w, x, y, z = quartic_lanes(F, block, at)
    w, x, y, z = max(0.0, w), max(0.0, x), max(0.0, y), max(0.0, z)
    put(F, o, (w, x, y, z))
    if I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1:
        for i in range(j, min(j + LANES, end)):
            b, t = F[o + i - j], F[I[s.OTS] + i]
            done = F[block + s.LS0] + at[i - j] * F[block + s.LCH]
            F[o + s.SQDELAY * step + i - j] = finish(F, I, link, done + b) - t if b > 0.0 else 0.0
    else:
        inverse = 1.0 / c
        put(F, o + s.SQDELAY * step, (w * inverse, x * inverse, y * inverse, z * inverse))
    arrived = quartic_lanes(F, block + s.LY, at)
    put(F, o + s.SARRIVAL * step, arrived)
    put(F, o + s.SDEPART * step, arrived if mode == s.EMPTY else (c, c, c, c))
    if I[s.PRICES]:
        put(F, o + s.SLPRICE * step, quartic_lanes(F, block + s.LPRICE, at))
    entered = F[I[s.OINT] + link]
    h = F[s.H]
    (a, b, p, q), v = at, block + s.LY
    a, b = entered + h * _area(F, v, a), entered + h * _area(F, v, b)
    put(F, o + s.SENTERED * step, (a, b, entered + h * _area(F, v, p), entered + h * _area(F, v, q)))
    if I[s.LOSSY]:
        _loss_lanes(F, I, link, block, at, o, step)
    if drops(I, link):
        _drop_lanes(F, I, link, at, o, step)


@njit(**_CFG)
def _loss_lanes(F: Any, I: Any, link: int, block: int, at: Four, o: int, step: int) -> None:
    c, before, entered = F[block + s.LC], F[I[s.OINT] + I[s.NL] + link], F[I[s.OINT] + link]
    full, h = F[block + s.LMODE] == s.FULL, F[s.H]
    for i in range(LANES):
        y, new = F[o + s.SARRIVAL * step + i], F[o + s.SENTERED * step + i] - entered
        F[o + s.SLLOSS * step + i] = 1.0 - c / y if full and y > c else 0.0
        F[o + s.SLOST * step + i] = before + (new - at[i] * h * c if full else 0.0)


@njit(**_CFG)
def _drop_lanes(F: Any, I: Any, link: int, at: Four, o: int, step: int) -> None:
    """Add what was dropped before the queue to what arrived and what was lost."""
    place, h = drop_place(I, link), F[s.H]
    for i in range(LANES):
        rate, total = quartic(F, place, at[i]), h * _area(F, place, at[i])
        let_in = F[o + s.SARRIVAL * step + i]
        kept = share(let_in, rate)
        F[o + s.SARRIVAL * step + i] += rate
        F[o + s.SENTERED * step + i] += total
        F[o + s.SLLOSS * step + i] = 1.0 - kept * (1.0 - F[o + s.SLLOSS * step + i])
        F[o + s.SLOST * step + i] += total


@njit(**_CFG)
def _link_samples(F: Any, I: Any, first: int, end: int) -> None:
    """Samples number `first` to `end` of all links."""
    size, nl = I[s.NSAMP] + s.PAD, I[s.NL]
    states = I[s.OOUT] + (I[s.NF] + s.SCLASSROWS * I[s.NC] + s.SLINKROWS * nl) * size
    own = I[s.OB] + nl
    find_places(F, I, first, end, 0.0)
    for j in range(first, end, LANES):
        at = places(F, I, j)
        for link in range(nl):
            _link_lanes(F, I, link, at, j, end)
    for n in range(own, I[s.NS]):
        _fill(F, I, state_quartic(F, I, n), states + n * size, first, end)


@njit(**_CFG)
def _area(F: Any, o: int, u: float) -> float:
    """Integral from 0 to `u` of the quartic whose coefficients stand at `o`."""
    c, d, e = F[o + 2] * (1.0 / 3.0), F[o + 3] * 0.25, F[o + 4] * 0.2
    return u * (F[o] + u * (F[o + 1] * 0.5 + u * (c + u * (d + u * e))))


@njit(**_CFG)
def add_totals(F: Any, I: Any) -> None:
    """Add the accepted step to what each link has taken in and lost."""
    record, h = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS, F[s.H]
    for link in range(I[s.NL]):
        block = record + link * s.LSIZE
        entered = h * _area(F, block + s.LY, 1.0)
        F[I[s.OINT] + link] += entered
        if F[block + s.LMODE] == s.FULL:
            F[I[s.OINT] + I[s.NL] + link] += entered - F[block + s.LCH]
        if drops(I, link):
            dropped = h * _area(F, drop_place(I, link), 1.0)
            F[I[s.OINT] + link] += dropped
            F[I[s.OINT] + I[s.NL] + link] += dropped


@njit(**_CFG)
def _until(F: Any, I: Any, first: int, end: float) -> int:
    """Number of the first sample at or after `end`."""
    size, ts, j = I[s.NSAMP], I[s.OTS], first
    while j < size and F[ts + j] < end:
        j += 1
    return j


@njit(**_CFG)
def sample_step(F: Any, I: Any, final: int) -> None:
    """Take every sample inside the accepted step; `final` includes its end."""
    end = np.inf if final else F[s.T] + F[s.H]
    for k in range(I[s.NC]):
        shift, first = F[I[s.OACC] + I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]], I[I[s.JCSAMP] + k]
        j = _until(F, I, first, end - shift)
        if j > first:
            _class_samples(F, I, k, first, j, shift)
            I[I[s.JCSAMP] + k] = j
    first = I[I[s.JLSAMP]]
    j = _until(F, I, first, end)
    if j > first:
        _link_samples(F, I, first, j)
        I[I[s.JLSAMP]] = j
