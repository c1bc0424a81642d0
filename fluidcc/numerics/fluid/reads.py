"""Looking up the past: which data, sent when, is what a path delivers now.

A read node inverts one queue. Its entry time theta solves W(theta) = S(T), where T is the departure time, S the
work the link can do up to a time, and W = S + backlog: first in, first out. Nodes form chains backwards along a
route, and equal chains are shared. With frozen delays theta is T minus a constant.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from . import slots as s

__all__ = ["invert", "read_nodes", "work"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def work(F: Any, I: Any, link: int, time: float) -> tuple[float, float]:
    """The work the link can have done at `time` [bit], and its capacity then [bit/s]."""
    first = I[I[s.JSEG] + link]
    k = I[I[s.JSEG] + link + 1] - 1
    while k > first and time < F[I[s.OSEGT] + k]:
        k -= 1
    c = F[I[s.OSEGC] + k]
    return F[I[s.OSEGS] + k] + c * (time - F[I[s.OSEGT] + k]), c


@njit(**_CFG)
def invert(F: Any, block: int, target: float) -> float:
    """Local position u in a record where W(u) = target, by Newton inside a bracket."""
    b1 = F[block + 1] + F[block + s.LCH]
    rhs = target - F[block + s.LS0] - F[block]
    if F[block + s.LMODE] == s.EMPTY:
        return rhs / F[block + s.LCH]
    b2 = F[block + 2]
    b3 = F[block + 3]
    b4 = F[block + 4]
    top = (rhs + F[block]) / F[block + s.LCH]  # a backlog is not negative: theta <= T
    rise = b1 + b2 + b3 + b4
    if rise <= 1e-14 * F[block + s.LCH]:  # nothing arrived while the queue was busy: the largest theta
        return min(1.0, top)
    u = rhs / rise
    for _ in range(12):
        g = u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs
        slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
        if slope <= 1e-3 * rise:
            return _bisect(b1, b2, b3, b4, rhs, min(u, 0.0) - 1.0, max(min(1.0, top), 0.0))
        du = g / slope
        u -= du
        if abs(du) < 1e-9:  # the convergence is quadratic
            break
    return min(u, top)


@njit(**_CFG)
def _bisect(b1: float, b2: float, b3: float, b4: float, rhs: float, low: float, high: float) -> float:
    for _ in range(80):
        u = 0.5 * (low + high)
        if u * (b1 + u * (b2 + u * (b3 + u * b4))) > rhs:
            high = u
        else:
            low = u
    return high


@njit(**_CFG)
def _seek_work(F: Any, I: Any, link: int, k: int, target: float, tol: float, right: int, last: int) -> int:
    """The record in which the link's W reaches `target`; at a joint, the side that `right` says."""
    base = I[s.OHIST] + s.RLINKS + link * s.LSIZE
    mask = I[s.MASK]
    stride = I[s.STRIDE]
    up = -tol if right else tol
    if k > last:
        k = last
    while k < last:
        nxt = base + ((k + 1) & mask) * stride
        if target >= F[nxt + s.LS0] + F[nxt] + up:
            k += 1
        else:
            break
    first = I[s.FIRST]
    while k > first:
        here = base + (k & mask) * stride
        if target < F[here + s.LS0] + F[here] - tol:
            k -= 1
        else:
            break
    return k


@njit(**_CFG)
def _seek_time(F: Any, I: Any, k: int, time: float, tol: float, right: int, last: int) -> int:
    mask = I[s.MASK]
    stride = I[s.STRIDE]
    up = -tol if right else tol
    if k > last:
        k = last
    while k < last and time >= F[I[s.OHIST] + ((k + 1) & mask) * stride + s.RT0] + up:
        k += 1
    while k > I[s.FIRST] and time < F[I[s.OHIST] + (k & mask) * stride + s.RT0] - tol:
        k -= 1
    return k


@njit(**_CFG)
def read_node(F: Any, I: Any, n: int, cursor: int, now: float, right: int, last: int) -> int:
    """Evaluate node `n` at time `now`; return its record. Its parent must have been evaluated before."""
    parent = I[I[s.JNPAR] + n]
    link = I[I[s.JNLINK] + n]
    frozen = I[s.FROZEN]
    up = now if parent < 0 or frozen else F[I[s.OTH] + parent]
    depart = up - F[I[s.OOFF] + n]
    tolt = F[s.TOLT] * max(1.0, abs(now))
    mask = I[s.MASK]
    stride = I[s.STRIDE]
    c = F[I[s.OCAP] + link]
    if frozen:
        k = _seek_time(F, I, cursor, depart, tolt, right, last)
        record = I[s.OHIST] + (k & mask) * stride
        u = (depart - F[record + s.RT0]) * F[record + s.RINVH]
    else:
        target, c = work(F, I, link, depart)
        k = _seek_work(F, I, link, cursor, target, tolt * c, right, last)
        record = I[s.OHIST] + (k & mask) * stride
        u = invert(F, record + s.RLINKS + link * s.LSIZE, target)
    F[I[s.OUN] + n] = u
    F[I[s.OTH] + n] = F[record + s.RT0] + u * F[record + s.RH]
    _accumulate(F, I, n, parent, record + s.RLINKS + link * s.LSIZE, u, c, frozen)
    return k


@njit(**_CFG)
def _accumulate(F: Any, I: Any, n: int, parent: int, block: int, u: float, c: float, frozen: int) -> None:
    """Multiply (or add) what this queue does onto what the rest of the path did."""
    mode = F[block + s.LMODE]
    y = F[block + s.LY] + u * (
        F[block + s.LY + 1] + u * (F[block + s.LY + 2] + u * (F[block + s.LY + 3] + u * F[block + s.LY + 4]))
    )
    here = F[block + s.LC]
    stretch, factor, keep = 1.0, 1.0, 1.0
    if mode == s.BUSY:
        stretch = y / c
        factor = c / y if y > 0.0 else 0.0
    elif mode == s.FULL:
        stretch = here / c
        factor = c / y if y > 0.0 else 0.0
        keep = here / y if y > here else 1.0
    elif mode == s.HELD:
        factor = c / y if y > 0.0 and (F[block] > 0.0 or y > c) else 1.0
        keep = c / y if y > c and F[block] >= F[I[s.OBUF] + I[I[s.JNLINK] + n]] else 1.0
    if I[s.MARKS]:
        keep *= 1.0 - _quartic(F, block + s.LMARK, u)
    root = parent < 0
    if frozen:
        drift = (y - here) / here if mode == s.BUSY else 0.0
        b = _quartic(F, block, u)
        F[I[s.OCE] + n] = drift if root else F[I[s.OCE] + parent] + drift
        F[I[s.OCQ] + n] = b / here if root else F[I[s.OCQ] + parent] + b / here
        factor = 1.0
    else:
        F[I[s.OCE] + n] = stretch if root else F[I[s.OCE] + parent] * stretch
    F[I[s.OCS] + n] = keep if root else F[I[s.OCS] + parent] * keep
    F[I[s.OCF] + n] = factor if root else F[I[s.OCF] + parent] * factor
    if I[s.PRICES]:
        p = _quartic(F, block + s.LPRICE, u)
        F[I[s.OCP] + n] = p if root else F[I[s.OCP] + parent] + p


@njit(**_CFG)
def _quartic(F: Any, o: int, u: float) -> float:
    return F[o] + u * (F[o + 1] + u * (F[o + 2] + u * (F[o + 3] + u * F[o + 4])))


@njit(**_CFG)
def read_nodes(F: Any, I: Any, now: float, right: int, last: int) -> int:
    """Evaluate every node at `now`; return 1 if one of them looked into the step in progress."""
    cursors = I[s.JNCUR]
    start = F[s.T]
    inside = 0
    for n in range(I[s.NN]):
        k = read_node(F, I, n, I[cursors + n], now, right, last)
        I[cursors + n] = k
        if k >= I[s.NREC] or F[I[s.OTH] + n] > start:
            inside = 1
    return inside
