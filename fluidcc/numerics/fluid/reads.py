"""Looking up the past: which data, sent when, is what a path delivers now.

A read node inverts one queue. Its entry time theta solves W(theta) = S(T), where T is the departure time, S the
work the link can do up to a time, and W = S + backlog: first in, first out. Nodes form chains backwards along a
route, and equal chains are shared. With frozen delays theta is T minus a constant.

A breaking point is met but for the resolution of time. No record is extrapolated that far: a very short one would give
anything.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .vectors import all_of, beside, lanes

__all__ = ["Four", "act_place", "invert", "invert_four", "lost", "read_list", "read_nodes", "solve", "work"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
ROUNDING = 16.0 * 2.220446049250313e-16  # of a product of ratios along a path
Four = tuple[float, float, float, float]
_INLINE = {**_CFG, "fastmath": {"arcp", "contract"}, "forceinline": True}


@njit(**_INLINE)
def lost(kept: float) -> float:
    """The loss or mark ratio of a path that lets through `kept`: 0 where it differs from that by rounding alone."""
    ratio = 1.0 - kept
    return ratio if abs(ratio) > ROUNDING else 0.0


@njit(**_CFG)
def work(F: Any, I: Any, link: int, time: float) -> tuple[float, float]:
    """The work the link can have done at `time` [bit], and its capacity then [bit/s]."""
    first = I[I[s.JSEG] + link]
    k = I[I[s.JSEG] + link + 1] - 1
    while k > first and time < F[I[s.OSEGT] + k]:
        k -= 1
    c = F[I[s.OSEGC] + k]
    return F[I[s.OSEGS] + k] + c * (time - F[I[s.OSEGT] + k]), c


@njit(**_INLINE)
def solve(b1: Any, b2: Any, b3: Any, b4: Any, rhs: Any, whole: Any) -> tuple[Any, Any]:
    """Where b1 u + b2 u^2 + b3 u^3 + b4 u^4 = rhs, and whether that may be trusted; of numbers or vectors.

    `whole` is what the link can do in the step, beside which nothing that arrives is no slope. One step of Halley's
    method, which triples the number of correct digits, and one of Newton's, which doubles it, do for all but strange
    quartics. There is no branch.
    """
    rise = b1 + b2 + b3 + b4
    u = rhs / rise
    g = u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    bend = b2 + u * (3.0 * b3 + u * 6.0 * b4)  # half of the second derivative
    u = u - g * slope / (slope * slope - g * bend)
    slope = b1 + u * (2.0 * b2 + u * (3.0 * b3 + u * 4.0 * b4))
    du = (u * (b1 + u * (b2 + u * (b3 + u * b4))) - rhs) / slope
    return u - du, (abs(du) < 1e-6) & (slope > 1e-3 * rise) & (rise > 1e-14 * whole)


@njit(**_INLINE)
def invert(F: Any, block: int, target: float) -> float:
    """Local position u in a record where W(u) = target."""
    whole = F[block + s.LCH]
    top = target - F[block + s.LS0]
    if F[block + s.LMODE] == s.EMPTY:
        return (top - F[block]) / whole
    u, fine = solve(F[block + 1] + whole, F[block + 2], F[block + 3], F[block + 4], top - F[block], whole)
    return u if fine & (u * whole <= top) else _search(F, block, target)  # a backlog is not negative: theta <= T


@njit(**_INLINE)
def invert_four(F: Any, a: int, b: int, c: int, d: int, p: float, q: float, v: float, w: float) -> Four:
    """`invert` in the blocks at `a` to `d`, for the targets `p` to `w`, at once."""
    busy = (F[a + s.LMODE] != s.EMPTY) & (F[b + s.LMODE] != s.EMPTY)
    if busy & (F[c + s.LMODE] != s.EMPTY) & (F[d + s.LMODE] != s.EMPTY):
        whole = _four(F, a, b, c, d, s.LCH)
        top = beside(p, q, v, w) - _four(F, a, b, c, d, s.LS0)
        b1, b2 = _four(F, a, b, c, d, 1) + whole, _four(F, a, b, c, d, 2)
        b3, b4 = _four(F, a, b, c, d, 3), _four(F, a, b, c, d, 4)
        u, fine = solve(b1, b2, b3, b4, top - _four(F, a, b, c, d, 0), whole)
        if all_of(fine & (u * whole <= top)):
            return lanes(u)
    return _one(F, a, p), _one(F, b, q), _one(F, c, v), _one(F, d, w)


@njit(**_INLINE)
def _four(F: Any, a: int, b: int, c: int, d: int, k: int) -> Any:
    return beside(F[a + k], F[b + k], F[c + k], F[d + k])


@njit(**_CFG)
def _one(F: Any, block: int, target: float) -> float:
    return invert(F, block, target)


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
        if abs(du) < 1e-7:  # the convergence is quadratic, and W nearly linear
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
def act_place(I: Any, act: int) -> int:
    """Where in a record the quartics of acting link number `act` begin; its first is what it drops."""
    return s.RLINKS + I[s.NL] * s.LSIZE + 5 * (I[s.NX] + I[s.NT]) + 5 * s.XSIZE * act


@njit(**_CFG)
def read_list(F: Any, I: Any, nodes: int, count: int, cursors: int, now: float, right: int, last: int) -> int:
    """Evaluate the `count` nodes whose numbers stand at I[nodes], parents before their children, at time `now`.

    Each starts at its cursor in I[cursors] and leaves its new one in I[JNCUR]. The sizes and offsets are taken out of
    the loop, since the compiler cannot know that the stores leave them alone. Return 1 if a node looked into the step
    in progress.
    """
    frozen, prices, marks, streams, acts = I[s.FROZEN], I[s.PRICES], I[s.MARKS], I[s.NSTR], I[s.NACT]
    stride, mask, ring, first = I[s.STRIDE], I[s.MASK], I[s.OHIST], I[s.FIRST]
    jpar, jlink, jcur, off, cap, seg = I[s.JNPAR], I[s.JNLINK], I[s.JNCUR], I[s.OOFF], I[s.OCAP], I[s.JSEG]
    oth, oun, oce, ocs, ocf, ocp, ocq = I[s.OTH], I[s.OUN], I[s.OCE], I[s.OCS], I[s.OCF], I[s.OCP], I[s.OCQ]
    tolt = F[s.TOLT] * max(1.0, abs(now))
    begun = F[s.T] + tolt
    inside = 0
    for m in range(count):
        n = I[nodes + m]
        parent, link = I[jpar + n], I[jlink + n]
        depart = (now if parent < 0 or frozen else F[oth + parent]) - F[off + n]
        block0 = s.RLINKS + link * s.LSIZE
        k = min(I[cursors + n], last)
        c = F[cap + link]
        if frozen or parent == s.TOLD:
            up = depart + tolt if right else depart - tolt
            while k < last and up >= F[ring + ((k + 1) & mask) * stride + s.RT0]:
                k += 1
            while k > first and depart + tolt < F[ring + (k & mask) * stride + s.RT0]:
                k -= 1
            record = ring + (k & mask) * stride
            block = record + block0
            u = (depart - F[record + s.RT0]) * F[record + s.RINVH]
        else:
            target = c * depart
            if I[seg + link + 1] - I[seg + link] > 1:
                target, c = work(F, I, link, depart)
            tol = tolt * c
            up = target + tol if right else target - tol
            while k < last:
                nxt = ring + ((k + 1) & mask) * stride + block0
                if up < F[nxt + s.LS0] + F[nxt]:
                    break
                k += 1
            while k > first:
                here = ring + (k & mask) * stride + block0
                if target + tol >= F[here + s.LS0] + F[here]:
                    break
                k -= 1
            record = ring + (k & mask) * stride
            block = record + block0
            u = invert(F, block, target)
        theta = F[record + s.RT0] + u * F[record + s.RH]
        u = min(max(u, 0.0), 1.0)
        I[jcur + n] = k
        F[oun + n] = u
        F[oth + n] = theta
        inside |= k >= I[s.NREC] or theta > begun
        # what this queue does is multiplied (or added) onto what the rest of the path did
        mode = F[block + s.LMODE]
        y = _quartic(F, block + s.LY, u)
        here_c = F[block + s.LC]
        stretch, factor, keep = 1.0, 1.0, 1.0
        if mode == s.BUSY:
            stretch = y / c
            if streams:
                factor = c / y if y > 0.0 else 0.0
        elif mode == s.FULL:
            stretch = here_c / c
            factor = c / y if y > 0.0 else 0.0
            keep = here_c / y if y > here_c else 1.0
        elif mode == s.HELD:
            factor = c / y if y > 0.0 and (F[block] > 0.0 or y > c) else 1.0
            keep = c / y if y > c and F[block] >= F[I[s.OBUF] + link] else 1.0
        if marks:
            keep *= 1.0 - _quartic(F, block + s.LMARK, u)
        if acts and streams and I[I[s.JACT] + link] >= 0:  # of what came, this was let in
            come = y + _quartic(F, record + act_place(I, I[I[s.JACT] + link]), u)
            if mode == s.BUSY or mode == s.FULL:  # what leaves is c, also of the first that is let in again
                factor = c / come if come > 0.0 else 0.0
            elif come > 0.0:
                factor *= y / come
        if frozen:
            drift = (y - here_c) / here_c if mode == s.BUSY else 0.0
            wait = _quartic(F, block, u) / here_c
            F[oce + n] = drift if parent < 0 else F[oce + parent] + drift
            F[ocq + n] = wait if parent < 0 else F[ocq + parent] + wait
            factor = 1.0
        else:
            F[oce + n] = stretch if parent < 0 else F[oce + parent] * stretch
        F[ocs + n] = keep if parent < 0 else F[ocs + parent] * keep
        F[ocf + n] = factor if parent < 0 else F[ocf + parent] * factor
        if prices:
            p = _quartic(F, block + s.LPRICE, u)
            F[ocp + n] = p if parent < 0 else F[ocp + parent] + p
    return inside


@njit(**_CFG)
def _quartic(F: Any, o: int, u: float) -> float:
    return F[o] + u * (F[o + 1] + u * (F[o + 2] + u * (F[o + 3] + u * F[o + 4])))


@njit(**_CFG)
def read_nodes(F: Any, I: Any, now: float, right: int, last: int) -> int:
    """Evaluate every node at `now`; return 1 if one of them looked into the step in progress."""
    return read_list(F, I, I[s.JALL], I[s.NN], I[s.JNCUR], now, right, last)
