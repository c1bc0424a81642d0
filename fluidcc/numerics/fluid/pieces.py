"""Where fused steps look into the history: the record, and how far it reaches, so that they look again only beyond.

`F` and `I` are pointers here (or arrays, without the JIT). What is found is what `reads.read_list` finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from . import slots as s

__all__ = ["find_time", "find_work"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def find_work(F: Any, I: Any, link: int, k: int, target: float, tol: float, last: int) -> tuple[int, int, float, float]:
    """The record in which the link's W reaches `target`, searched from `k`: its number, block, and range of W."""
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
    return k, base + (k & mask) * stride, low, high


@njit(**_CFG)
def find_time(F: Any, I: Any, skip: int, k: int, time: float, tol: float, last: int) -> tuple[int, int, float, float]:
    """The record that covers `time`, searched from `k`: its number, the place `skip` in it, and its range of time."""
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
    return k, I[s.OHIST] + (k & mask) * stride + skip, low, high
