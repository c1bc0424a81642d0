"""Looking up the past: which data, sent when, is what a path delivers now.

A read node inverts one queue. Its entry time theta solves W(theta) = S(T), where T is the departure
time, S the work the link can do up to a time, and W = S + backlog: first in, first out. Nodes form
chains backwards along a route, and equal chains are shared. With frozen delays theta is T minus a
constant.

A breaking point is met but for the resolution of time. No record is extrapolated that far: a very
short one would give anything.

What a queue does to what passes is a function each, which the fused steps use too (see
`fluidcc.simulation.fused`). Their `F` and `I` are pointers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s

__all__ = [
    "act_place", "drift", "factor", "find_time", "find_work", "invert", "keep", "lost", "near_time",
    "near_work", "norm", "pick", "quartic", "read_list", "read_nodes", "share", "stretch",
    "thinned", "work",
]  # fmt: skip

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_INLINE = {**_CFG, "fastmath": {"arcp", "contract"}, "forceinline": True}
ROUNDING = 16.0 * 2.220446049250313e-16  # of a product of ratios along a path

Range = tuple[int, int, float, float]  # record, its place in F, its range


@njit(**_INLINE)
def quartic(F: Any, o: int, u: float) -> float:
    """Value at `u` of the quartic whose coefficients stand at `o`."""
    return F[o] + u * (F[o + 1] + u * (F[o + 2] + u * (F[o + 3] + u * F[o + 4])))


@njit(**_CFG)
def work(F: Any, I: Any, link: int, time: float) -> tuple[float, float]:
    """The work the link can have done at `time` [bit], and its capacity then [bit/s]."""
    first = I[I[s.JSEG] + link]
    k = I[I[s.JSEG] + link + 1] - 1
    while k > first and time < F[I[s.OSEGT] + k]:
        k -= 1
    c = F[I[s.OSEGC] + k]
    return F[I[s.OSEGS] + k] + c * (time - F[I[s.OSEGT] + k]), c


# --- the record that is looked for ----------------------------------------------------------------


@njit(**_CFG)
def find_work(
    F: Any, I: Any, link: int, k: int, target: float, tol: float, last: int
) -> tuple[int, float, float]:
    """The record in which the link's W reaches `target`, searched from `k`: its number and range of
    W.
    """
    base, mask, stride, first = (
        I[s.OHIST] + s.RLINKS + link * s.LSIZE,
        I[s.MASK],
        I[s.STRIDE],
        I[s.FIRST],
    )
    k = min(k, last)
    low, high = -np.inf, np.inf
    while k < last:
        there = base + ((k + 1) & mask) * stride
        high = F[there + s.LS0] + F[there]
        if target - tol < high:
            break
        k += 1
        high = np.inf
    while k > first:
        here = base + (k & mask) * stride
        low = F[here + s.LS0] + F[here]
        if target + tol >= low:
            break
        k -= 1
        high = low
        low = -np.inf
    return k, low, high


@njit(**_CFG)
def find_time(
    F: Any, I: Any, k: int, time: float, tol: float, last: int
) -> tuple[int, float, float]:
    """The record that covers `time`, searched from `k`: its number and range of time."""
    base, mask, stride, first = I[s.OHIST] + s.RT0, I[s.MASK], I[s.STRIDE], I[s.FIRST]
    k = min(k, last)
    low, high = -np.inf, np.inf
    while k < last:
        high = F[base + ((k + 1) & mask) * stride]
        if time - tol < high:
            break
        k += 1
        high = np.inf
    while k > first:
        low = F[base + (k & mask) * stride]
        if time + tol >= low:
            break
        k -= 1
        high = low
        low = -np.inf
    return k, low, high


@njit(**_INLINE)
def near_work(
    F: Any,
    I: Any,
    link: int,
    k: int,
    r: int,
    low: float,
    high: float,
    target: float,
    tol: float,
    last: int,
) -> Range:
    """The record in which the link's W reaches `target`, searched only beyond the range of the one
    before.
    """
    if target - tol >= high or target + tol < low:
        k, low, high = find_work(F, I, link, k, target, tol, last)
        r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    return k, r, low, high


@njit(**_INLINE)
def near_time(
    F: Any, I: Any, k: int, r: int, low: float, high: float, time: float, tol: float, last: int
) -> Range:
    """The same for a time."""
    if time - tol >= high or time + tol < low:
        k, low, high = find_time(F, I, k, time, tol, last)
        r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    return k, r, low, high


# --- the place in it ------------------------------------------------------------------------------


@njit(**_INLINE)
def invert(F: Any, block: int, target: float) -> float:
    """Return the local position u in a record where W(u) = target.

    One step of Halley's method, which triples the number of correct digits, and one of Newton's,
    which doubles it, do for all but strange quartics.
    """
    whole = F[
        block + s.LCH
    ]  # what the link can do in the step, beside which nothing that arrives is no slope
    top = target - F[block + s.LS0]
    if F[block + s.LMODE] == s.EMPTY:
        return (top - F[block]) / whole
    b1, b2, b3, b4 = F[block + 1] + whole, F[block + 2], F[block + 3], F[block + 4]
    rhs, rise = top - F[block], b1 + b2 + b3 + b4
    u = rhs / rise
    g = u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    bend = b2 + u * (3.0 * b3 + u * 6.0 * b4)  # half of the second derivative
    u -= g * slope / (slope * slope - g * bend)
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    du = (u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs) / slope
    u -= du
    fine = (abs(du) < 1e-6) & (slope > 1e-3 * rise) & (rise > 1e-14 * whole)
    return (
        u if fine & (u * whole <= top) else _search(F, block, target)
    )  # a backlog is not negative: theta <= T


@njit(**_CFG)
def _search(F: Any, block: int, target: float) -> float:
    """The same by Newton inside a bracket."""
    b1 = F[block + 1] + F[block + s.LCH]
    rhs = target - F[block + s.LS0] - F[block]
    b2 = F[block + 2]
    b3 = F[block + 3]
    b4 = F[block + 4]
    top = (rhs + F[block]) / F[block + s.LCH]
    rise = b1 + b2 + b3 + b4
    if (
        rise <= 1e-14 * F[block + s.LCH]
    ):  # nothing arrived while the queue was busy: the largest theta
        return min(1.0, top)
    u = rhs / rise
    for _ in range(12):
        g = u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs
        slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
        if slope <= 1e-3 * rise:
            return _bisect(b1, b2, b3, b4, rhs, min(u, 0.0) - 1.0, max(min(1.0, top), 0.0))
        du = g / slope
        u -= du
        if abs(du) < 1e-7:  # the convergence is quadratic, and W nearly linear
            break
    return min(u, top)


@njit(**_CFG)
def _bisect(
    b1: float, b2: float, b3: float, b4: float, rhs: float, low: float, high: float
) -> float:
    for _ in range(80):
        u = 0.5 * (low + high)
        if u * (b1 + u * (b2 + u * (b3 + u * b4))) > rhs:
            high = u
        else:
            low = u
    return high


# --- what a queue does to what passes -------------------------------------------------------------


@njit(**_INLINE)
def stretch(F: Any, b: int, y: float, c: float, inverse: float) -> float:
    """D' of the queue whose block stands at `b`, for arrivals `y` and the capacity `c` when they
    leave.
    """
    mode, let_in = F[b + s.LMODE], F[b + s.LC]
    full = mode == s.FULL
    let_in = (let_in if full else y) * inverse
    return let_in if full | (mode == s.BUSY) else 1.0


@njit(**_INLINE)
def drift(F: Any, b: int, y: float, inverse: float) -> float:
    """q' of the queue whose block stands at `b`, for frozen delays."""
    if F[b + s.LMODE] == s.BUSY:
        return (y - F[b + s.LC]) * inverse
    return 0.0


@njit(**_INLINE)
def factor(F: Any, b: int, y: float, c: float) -> float:
    """Departures over arrivals."""
    mode = F[b + s.LMODE]
    if mode == s.BUSY or mode == s.FULL:
        return c / y if y > 0.0 else 0.0
    if mode == s.HELD:
        return c / y if y > 0.0 and (F[b] > 0.0 or y > c) else 1.0
    return 1.0


@njit(**_INLINE)
def keep(F: Any, b: int, y: float, c: float, buffer: float) -> float:
    """What is not lost of the arrivals."""
    mode = F[b + s.LMODE]
    if mode == s.FULL:
        return F[b + s.LC] / y if y > F[b + s.LC] else 1.0
    if mode == s.HELD:
        return c / y if y > c and F[b] >= buffer else 1.0
    return 1.0


@njit(**_INLINE)
def thinned(F: Any, b: int, y: float, c: float, dropped: float) -> float:
    """Departures over what came, of a queue that lets in only a part of it, `y`."""
    come, mode = y + dropped, F[b + s.LMODE]
    if mode == s.BUSY or mode == s.FULL:
        return c / come if come > 0.0 else 0.0
    return factor(F, b, y, c) * share(y, dropped)


@njit(**_INLINE)
def share(let_in: float, dropped: float) -> float:
    """What is let in of what comes."""
    return let_in / (let_in + dropped) if let_in + dropped > 0.0 else 1.0


@njit(**_INLINE)
def lost(kept: float) -> float:
    """The loss or mark ratio of a path that lets through `kept`: 0 where it differs from that by
    rounding alone.
    """
    ratio = 1.0 - kept
    return ratio if abs(ratio) > ROUNDING else 0.0


@njit(**_INLINE)
def pick(condition: bool, a: float, b: float) -> float:
    """`a` if the condition holds, else `b`; without a branch in the text that calls it."""
    return a if condition else b


@njit(**_INLINE)
def norm(
    worst: float, value: float, atol: float, rtol: float, before: float, after: float
) -> float:
    """The larger of `worst` and |value| over its tolerance; infinite once there was a NaN."""
    ratio = abs(value) / (atol + rtol * max(abs(before), abs(after)))
    if ratio > worst:
        return ratio
    return worst if ratio == ratio else np.inf


# --- all nodes ------------------------------------------------------------------------------------


@njit(**_CFG)
def act_place(I: Any, act: int) -> int:
    """Return where in a record the quartics of acting link `act` begin, what it drops first."""
    return s.RLINKS + I[s.NL] * s.LSIZE + 5 * (I[s.NX] + I[s.NT]) + 5 * s.XSIZE * act


@njit(**_CFG)
def read_list(
    F: Any, I: Any, nodes: int, count: int, cursors: int, now: float, right: int, last: int
) -> int:
    """Evaluate the `count` nodes whose numbers stand at I[nodes], parents before their children, at
    time `now`.

    Each starts at its cursor in I[cursors] and leaves its new one in I[JNCUR]. The sizes and
    offsets are taken out of the loop, since the compiler cannot know that the stores leave them
    alone. Return 1 if a node looked into the step in progress.
    """
    frozen, prices, marks, streams, acts = (
        I[s.FROZEN],
        I[s.PRICES],
        I[s.MARKS],
        I[s.NSTR],
        I[s.NACT],
    )
    stride, mask, ring = I[s.STRIDE], I[s.MASK], I[s.OHIST]
    jpar, jlink, jcur, off, cap, seg = (
        I[s.JNPAR],
        I[s.JNLINK],
        I[s.JNCUR],
        I[s.OOFF],
        I[s.OCAP],
        I[s.JSEG],
    )
    oth, oun, oce, ocs, ocf, ocp, ocq = (
        I[s.OTH],
        I[s.OUN],
        I[s.OCE],
        I[s.OCS],
        I[s.OCF],
        I[s.OCP],
        I[s.OCQ],
    )
    tolt = F[s.TOLT] * max(1.0, abs(now))
    begun = F[s.T] + tolt
    inside = 0
    for m in range(count):
        n = I[nodes + m]
        parent, link = I[jpar + n], I[jlink + n]
        depart = (now if parent < 0 or frozen else F[oth + parent]) - F[off + n]
        c = F[cap + link]
        if frozen or parent == s.TOLD:
            up, slack = (depart + tolt, 0.0) if right else (depart, tolt)
            k = find_time(F, I, I[cursors + n], up, slack, last)[0]
            record = ring + (k & mask) * stride
            u = (depart - F[record + s.RT0]) * F[record + s.RINVH]
        else:
            target = c * depart
            if I[seg + link + 1] - I[seg + link] > 1:
                target, c = work(F, I, link, depart)
            up, slack = (target + tolt * c, 0.0) if right else (target, tolt * c)
            k = find_work(F, I, link, I[cursors + n], up, slack, last)[0]
            record = ring + (k & mask) * stride
            u = invert(F, record + s.RLINKS + link * s.LSIZE, target)
        block = record + s.RLINKS + link * s.LSIZE
        theta = F[record + s.RT0] + u * F[record + s.RH]
        u = min(max(u, 0.0), 1.0)
        I[jcur + n] = k
        F[oun + n] = u
        F[oth + n] = theta
        inside |= k >= I[s.NREC] or theta > begun
        # what this queue does is multiplied (or added) onto what the rest of the path did
        y = quartic(F, block + s.LY, u)
        kept = keep(F, block, y, c, F[I[s.OBUF] + link])
        if marks:
            kept *= 1.0 - quartic(F, block + s.LMARK, u)
        F[ocs + n] = kept if parent < 0 else F[ocs + parent] * kept
        if frozen:
            inverse = 1.0 / F[block + s.LC]
            change, wait = drift(F, block, y, inverse), quartic(F, block, u) * inverse
            F[oce + n] = change if parent < 0 else F[oce + parent] + change
            F[ocq + n] = wait if parent < 0 else F[ocq + parent] + wait
            F[ocf + n] = 1.0
        else:
            stretched, passed = stretch(F, block, y, c, 1.0 / c), 1.0
            F[oce + n] = stretched if parent < 0 else F[oce + parent] * stretched
            if streams:
                passed = factor(F, block, y, c)
                if acts and I[I[s.JACT] + link] >= 0:  # of what came, this was let in
                    dropped = quartic(F, record + act_place(I, I[I[s.JACT] + link]), u)
                    passed = thinned(F, block, y, c, dropped)
            F[ocf + n] = passed if parent < 0 else F[ocf + parent] * passed
        if prices:
            p = quartic(F, block + s.LPRICE, u)
            F[ocp + n] = p if parent < 0 else F[ocp + parent] + p
    return inside


@njit(**_CFG)
def read_nodes(F: Any, I: Any, now: float, right: int, last: int) -> int:
    """Evaluate every node at `now`; return 1 if one of them looked into the step in progress."""
    return read_list(F, I, I[s.JALL], I[s.NN], I[s.JNCUR], now, right, last)
