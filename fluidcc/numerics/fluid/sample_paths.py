"""Samples of what a path does: its delay, loss and price, once a class of flows that share it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from . import slots as s
from .lanes import LANES, put, quartic_lanes
from .pieces import find_time, find_work, keep, quartic
from .reads import invert, read_list, work

__all__ = ["hop", "sample_path"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}


@njit(**_CFG)
def sample_path(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of class `k`."""
    if I[I[s.JPATH] + k + 1] - I[I[s.JPATH] + k] == 1:
        leaf = I[I[s.JPATHV] + I[I[s.JPATH] + k]]
        link, thins = I[I[s.JNLINK] + leaf], I[s.MARKS] or I[s.PRICES] or I[s.LOSSY]
        scheduled = I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1
        hop(F, I, k, leaf, link, first, end, shift, I[s.FROZEN] > 0, scheduled, thins > 0)
    else:
        _hops(F, I, k, first, end, shift)


@njit(**_CFG)
def _row(I: Any, k: int) -> tuple[int, int]:
    """Where the first row of class `k` begins, and how far it is to the next."""
    size = I[s.NSAMP] + s.PAD
    return I[s.OOUT] + (I[s.NF] + k) * size, I[s.NC] * size


@njit(**_CFG)
def _constant(F: Any, I: Any, k: int, shift: float) -> float:
    return shift + (F[I[s.OCPROP] + k] if I[s.FROZEN] else -F[I[s.OCLAG] + k])


@njit(**_CFG)
def _hops(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Several links: the read nodes of the path, one sample after the other."""
    path = I[I[s.JPATH] + k]
    count, nodes = I[I[s.JPATH] + k + 1] - path, I[s.JPATHV] + path
    leaf, ts = I[nodes + count - 1], I[s.OTS]
    row, step = _row(I, k)
    oth, ocq, ocs, ocp = I[s.OTH] + leaf, I[s.OCQ] + leaf, I[s.OCS] + leaf, I[s.OCP] + leaf
    frozen, prices, nrec = I[s.FROZEN], I[s.PRICES], I[s.NREC]
    constant = _constant(F, I, k, shift)
    cursors = I[s.JNCUR0]  # of the start of the step; then each sample goes on from the one before
    for j in range(first, end):
        now = F[ts + j] + shift
        read_list(F, I, nodes, count, cursors, now, 1, nrec)
        cursors = I[s.JNCUR]
        F[row + s.SDELAY * step + j] = constant + (F[ocq] if frozen else now - F[oth])
        F[row + s.SLOSS * step + j] = 1.0 - F[ocs]
        F[row + s.SPRICE * step + j] = F[ocp] if prices else 0.0


@njit(**_CFG, forceinline=True)
def hop(
    F: Any, I: Any, k: int, leaf: int, link: int, first: int, end: int, shift: float, frozen: bool, scheduled: bool,
    thins: bool,
) -> None:  # fmt: skip
    """One link, much quicker: node `leaf` looks at `link`. `thins`: its law marks, or prices, or it may lose."""
    ts, cursor, nrec = I[s.OTS], I[I[s.JNCUR0] + leaf], I[s.NREC]
    row, step = _row(I, k)
    constant = _constant(F, I, k, shift)
    off, c, skip, tolt = F[I[s.OOFF] + leaf], F[I[s.OCAP] + link], s.RLINKS + link * s.LSIZE, F[s.TOLT]
    rate = 1.0 if frozen else c  # positions are times, or amounts of work
    alone = scheduled or thins
    r, low, high, j = 0, 0.0, -np.inf, first
    while j < end:
        now = F[ts + j] + shift
        at, tol = rate * (now - off), tolt * max(1.0, abs(now)) * rate
        if scheduled and not frozen:
            at, c = work(F, I, link, now - off)
        if at + tol >= high or at + tol < low:  # of two records that meet here, the later one
            if frozen:
                cursor, low, high = find_time(F, I, cursor, at + tol, 0.0, nrec)
            else:
                cursor, low, high = find_work(F, I, link, cursor, at + tol, 0.0, nrec)
            r = I[s.OHIST] + (cursor & I[s.MASK]) * I[s.STRIDE]
        b = r + skip
        if not alone and j + 1 < end and rate * (F[ts + min(j + LANES, end) - 1] + shift - off) + tol < high:
            if frozen:
                _four_waits(F, b, r, ts + j, ts + end - 1, row + j, constant, off - shift)
            if frozen or _four(F, b, r, ts + j, ts + end - 1, row + j, constant + shift, off - shift, c):
                j += LANES
                continue
        if frozen:
            u = (at - F[r + s.RT0]) * F[r + s.RINVH]
            F[row + j] = constant + quartic(F, b, u) / F[b + s.LC]
        else:
            u = invert(F, b, at)
            F[row + j] = constant + now - (F[r + s.RT0] + u * F[r + s.RH])
        if thins:
            _thin(F, I, b, link, u, c, row + j, step)
        j += 1


@njit(**{**_CFG, "forceinline": True})
def _solve(b1: float, b2: float, b3: float, b4: float, rhs: float, rise: float) -> tuple[float, float, float]:
    """As in `reads.invert`: the position, its last correction, and the slope there."""
    u = rhs / rise
    g = u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    bend = b2 + u * (3.0 * b3 + u * 6.0 * b4)
    u -= g * slope / (slope * slope - g * bend)
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    du = (u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs) / slope
    return u - du, du, slope


@njit(**_CFG)
def _four_waits(F: Any, b: int, r: int, times: int, last: int, target: int, constant: float, off: float) -> None:
    """Frozen delays of four samples in one record at once."""
    t, inverse, scale = F[r + s.RT0] + off, F[r + s.RINVH], 1.0 / F[b + s.LC]
    k, l, m, n = F[times], F[min(times + 1, last)], F[min(times + 2, last)], F[min(times + 3, last)]
    at = ((k - t) * inverse, (l - t) * inverse, (m - t) * inverse, (n - t) * inverse)
    k, l, m, n = quartic_lanes(F, b, 1, at)
    put(F, target, (constant + k * scale, constant + l * scale, constant + m * scale, constant + n * scale))


@njit(**_CFG)
def _four(F: Any, b: int, r: int, times: int, last: int, target: int, constant: float, off: float, c: float) -> bool:
    """Delays of four samples in one record at once, or False where one of them needs more care."""
    if F[b + s.LMODE] == s.EMPTY:
        return False
    whole = F[b + s.LCH]
    b1, b2, b3, b4 = F[b + 1] + whole, F[b + 2], F[b + 3], F[b + 4]
    rise, base, t, h = b1 + b2 + b3 + b4, F[b + s.LS0] + F[b], F[r + s.RT0], F[r + s.RH]
    k, l, m, n = F[times], F[min(times + 1, last)], F[min(times + 2, last)], F[min(times + 3, last)]
    u, du, p = _solve(b1, b2, b3, b4, c * (k - off) - base, rise)
    v, dv, q = _solve(b1, b2, b3, b4, c * (l - off) - base, rise)
    w, dw, x = _solve(b1, b2, b3, b4, c * (m - off) - base, rise)
    y, dy, z = _solve(b1, b2, b3, b4, c * (n - off) - base, rise)
    steep, error = min(min(p, q), min(x, z)), max(max(abs(du), abs(dv)), max(abs(dw), abs(dy)))
    if not (error < 1e-6 and steep > 1e-3 * rise and rise > 1e-14 * whole):
        return False
    # a backlog is not negative: nobody enters after he leaves
    k, l = k - min(t + u * h, k - off), l - min(t + v * h, l - off)
    m, n = m - min(t + w * h, m - off), n - min(t + y * h, n - off)
    put(F, target, (constant + k, constant + l, constant + m, constant + n))
    return True


@njit(**_CFG)
def _thin(F: Any, I: Any, b: int, link: int, u: float, c: float, target: int, step: int) -> None:
    """Loss and price of one sample."""
    kept = keep(F, b, quartic(F, b + s.LY, u), c, F[I[s.OBUF] + link])
    if I[s.MARKS]:
        kept *= 1.0 - quartic(F, b + s.LMARK, u)
    F[target + s.SLOSS * step] = 1.0 - kept
    if I[s.PRICES]:
        F[target + s.SPRICE * step] = quartic(F, b + s.LPRICE, u)
