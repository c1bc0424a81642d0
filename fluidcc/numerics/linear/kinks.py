"""When the signals of a block with delays have kinks after a step in its inputs: a mesh on which they are smooth.

A kink keeps its order from a channel straight into another, and is one order smoother after a passage through states.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["different", "kink_times"]

Floats = NDArray[np.float64]


def kink_times(block: Blocks, until: float, most: int, orders: int) -> Floats:
    """Times before `until` [s] at which a channel hands on a kink of an order up to `orders`; at least `most` if more.

    Parameters
    ----------
    block : Blocks
        A, B, C, D and the delays of its channels [s].
    until : float
        End [s].
    most : int
        Where to give up looking for more.
    orders : int
        A kink of this order is a jump of this derivative.
    """
    channels = _Channels(block, until)
    fresh = [channels.add(k, lag) for k, lag in enumerate(channels.first(0))]
    for order in range(1, orders + 2):
        level = fresh
        while any(map(len, fresh)) and channels.count() < most:  # ends unless channels feed each other in a ring
            fresh = [channels.add(k, channels.handed(fresh, channels.straight, k)) for k in range(channels.n)]
            level = [np.concatenate(pair) for pair in zip(level, fresh, strict=True)]
        if order > orders or channels.count() >= most:
            break
        first = channels.first(order)
        fresh = [
            channels.add(k, np.concatenate([channels.handed(level, channels.smooth, k), first[k]]))
            for k in range(channels.n)
        ]
    return different(np.concatenate([np.empty(0), *channels.known]), channels.apart)


class _Channels:
    """Which channel hands a kink to which, and the times known of each."""

    def __init__(self, block: Blocks, until: float) -> None:
        m, p = block.ports
        A, B, C, D = (part != 0 for part in (block.A, block.B, block.C, block.D))
        reach = np.eye(len(A), dtype=bool) | A
        for _ in range(int(np.ceil(np.log2(max(len(A), 2))))):
            reach = reach @ reach
        self.delays, self.n = block.delays, len(block.delays)
        self.until, self.apart = until, 1e-13 * until
        self.straight, self.smooth = D[p:, m:], C[p:] @ reach @ B[:, m:]
        self.inputs = D[p:, :m].any(axis=1), (C[p:] @ reach @ B[:, :m]).any(axis=1)
        self.known = [np.empty(0)] * self.n

    def first(self, order: int) -> list[Floats]:
        """What the step itself makes of that order in each channel."""
        if order > 1:
            return [np.empty(0)] * self.n
        return [self.delays[k : k + 1] if heard else np.empty(0) for k, heard in enumerate(self.inputs[order])]

    def handed(self, of: list[Floats], to: NDArray[np.bool_], k: int) -> Floats:
        """Kinks that reach the end of channel `k` from those at the ends of others."""
        return np.concatenate([np.empty(0), *(times for i, times in enumerate(of) if to[k, i])]) + self.delays[k]

    def add(self, k: int, times: Floats) -> Floats:
        """Those of the times that are new to channel `k`."""
        times, old = different(times[times < self.until], self.apart), self.known[k]
        if len(old) and len(times):
            after = np.searchsorted(old, times)
            gaps = [np.abs(times - old[np.clip(after - back, 0, len(old) - 1)]) for back in (0, 1)]
            times = times[np.minimum(*gaps) > self.apart]
        self.known[k] = np.sort(np.concatenate([old, times]))
        return times

    def count(self) -> int:
        """How many times are known, over all channels."""
        return sum(map(len, self.known))


def different(values: Floats, apart: float) -> Floats:
    """The values in order, without those nearer than that to the one before."""
    values = np.sort(values)
    return values[np.r_[True, np.diff(values) > apart]] if len(values) else values
