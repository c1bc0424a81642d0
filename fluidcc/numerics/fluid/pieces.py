"""What fused steps are put together from: looking into the history, and what a queue does to what passes.

`F` and `I` are pointers here (or arrays, without the JIT). All is inlined into the fused step, whose text so has no
branches of its own, which would make it slow to compile. What is found is what `reads.read_list` finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .reads import Four, invert, invert_four

__all__ = [
    "call_invert", "call_invert_four", "drift", "factor", "find_time", "find_work", "keep", "near_time", "near_work",
    "norm", "pick", "quartic", "seek_time", "seek_work", "share", "stretch", "thinned",
]  # fmt: skip

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_INLINE = {**_CFG, "forceinline": True, "fastmath": {"arcp", "contract"}}

Range = tuple[int, int, float, float]  # record, its place in F, its range


@njit(**_CFG)
def find_work(F: Any, I: Any, link: int, k: int, target: float, tol: float, last: int) -> tuple[int, float, float]:
    """The record in which the link's W reaches `target`, searched from `k`: its number and range of W."""
    base, mask, stride, first = I[s.OHIST] + s.RLINKS + link * s.LSIZE, I[s.MASK], I[s.STRIDE], I[s.FIRST]
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
def find_time(F: Any, I: Any, k: int, time: float, tol: float, last: int) -> tuple[int, float, float]:
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
    F: Any, I: Any, link: int, k: int, r: int, low: float, high: float, target: float, tol: float, last: int
) -> Range:
    """The record in which the link's W reaches `target`, searched only beyond the range of the one before."""
    if target - tol >= high or target + tol < low:
        k, low, high = find_work(F, I, link, k, target, tol, last)
        r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    return k, r, low, high


@njit(**_INLINE)
def near_time(F: Any, I: Any, k: int, r: int, low: float, high: float, time: float, tol: float, last: int) -> Range:
    """The same for a time."""
    if time - tol >= high or time + tol < low:
        k, low, high = find_time(F, I, k, time, tol, last)
        r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    return k, r, low, high


@njit(**_INLINE)
def seek_work(
    F: Any, I: Any, link: int, k: int, target: float, tol: float, right: bool, last: int
) -> tuple[int, int, float, float]:
    """Where the link's W reaches `target`; of two records that meet there the later one if `right`."""
    k = find_work(F, I, link, k, target + tol if right else target, 0.0 if right else tol, last)[0]
    r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    u = invert(F, r + s.RLINKS + link * s.LSIZE, target)
    return k, r, min(max(u, 0.0), 1.0), F[r + s.RT0] + u * F[r + s.RH]


@njit(**_INLINE)
def seek_time(F: Any, I: Any, k: int, time: float, tol: float, right: bool, last: int) -> tuple[int, int, float, float]:
    """The same for a time."""
    k = find_time(F, I, k, time + tol if right else time, 0.0 if right else tol, last)[0]
    r = I[s.OHIST] + (k & I[s.MASK]) * I[s.STRIDE]
    u = (time - F[r + s.RT0]) * F[r + s.RINVH]
    return k, r, min(max(u, 0.0), 1.0), F[r + s.RT0] + u * F[r + s.RH]


@njit(**_CFG)
def call_invert(F: Any, block: int, target: float) -> float:
    """`invert` as a call, which saves time to compile where there are many."""
    return invert(F, block, target)


@njit(**_CFG)
def call_invert_four(F: Any, a: int, b: int, c: int, d: int, p: float, q: float, v: float, w: float) -> Four:
    """`invert_four` as a call."""
    return invert_four(F, a, b, c, d, p, q, v, w)


@njit(**_INLINE)
def quartic(F: Any, o: int, u: float) -> float:
    """Value at `u` of the quartic whose coefficients stand at `o`."""
    return F[o] + u * (F[o + 1] + u * (F[o + 2] + u * (F[o + 3] + u * F[o + 4])))


@njit(**_INLINE)
def stretch(F: Any, b: int, y: float, c: float, inverse: float) -> float:
    """D' of the queue whose block stands at `b`, for arrivals `y` and the capacity `c` when they leave."""
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
def pick(condition: bool, a: float, b: float) -> float:
    """`a` if the condition holds, else `b`; without a branch in the text that calls it."""
    return a if condition else b


@njit(**_INLINE)
def norm(worst: float, value: float, atol: float, rtol: float, before: float, after: float) -> float:
    """The larger of `worst` and |value| over its tolerance; infinite once there was a NaN."""
    ratio = abs(value) / (atol + rtol * max(abs(before), abs(after)))
    if ratio > worst:
        return ratio
    return worst if ratio == ratio else np.inf
