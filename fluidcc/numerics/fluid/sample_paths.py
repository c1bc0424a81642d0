"""Samples of what a path does: its delay, loss and price, once a class of flows that share it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .lanes import LANES, put, quartic_lanes
from .pieces import find_time, find_work, keep, quartic
from .reads import invert, lost, read_list, solve, work
from .vectors import all_of, choose, leading, vector_at

__all__ = ["hop", "sample_path"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}


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
        F[row + s.SLOSS * step + j] = lost(F[ocs])
        F[row + s.SPRICE * step + j] = F[ocp] if prices else 0.0


@njit(**_INLINE)
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
        if not alone:
            times = vector_at(F, ts + j, LANES)
            here = rate * (times + (shift - off)) + tol < high
            count = max(1, min(end - j, leading(here)))
            times = choose(here, times, F[ts + j])  # all in this record
            if frozen:
                u = (times + (shift - off) - F[r + s.RT0]) * F[r + s.RINVH]
                put(F, row + j, constant + quartic_lanes(F, b, 1, u) * (1.0 / F[b + s.LC]))
            if frozen or _waits(F, b, r, times, row + j, constant + shift, off - shift, c):
                j += count
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


@njit(**_INLINE)
def _waits(F: Any, b: int, r: int, times: Any, target: int, constant: float, off: float, c: float) -> bool:
    """Delays of samples in one record at once, or False where one of them needs more care."""
    if F[b + s.LMODE] == s.EMPTY:
        return False
    whole, leave = F[b + s.LCH], times - off
    rhs = c * leave - (F[b + s.LS0] + F[b])
    u, fine = solve(F[b + 1] + whole, F[b + 2], F[b + 3], F[b + 4], rhs, whole)
    if not all_of(fine):
        return False
    enter = F[r + s.RT0] + u * F[r + s.RH]
    put(F, target, constant + (times - choose(enter < leave, enter, leave)))  # nobody enters after he leaves
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
