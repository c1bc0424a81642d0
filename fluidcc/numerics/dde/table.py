"""Breaking points of a delay equation, and which smooth piece of the past each delayed argument is
in.

A delay carries every kink of the solution forward: where ``t - lag`` passes a point at which the
derivative of order p jumps, the derivative of order p + 1 jumps. Points of order up to that of the
method must be mesh points; those whose image still matters are kept in the table, and cut the past
into smooth intervals.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.dde.history import Array, History, Pieces, delayed_states, returned

__all__ = ["BreakingPoints", "Delays"]


class BreakingPoints:
    """The points in order of time; interval k lies between points k - 1 and k."""

    def __init__(self, max_order: int) -> None:
        self.max_order = max_order  # the highest order that is landed on
        self.times: list[float] = []
        self.orders: list[int] = []
        self.first_piece: list[int] = []
        self.initial = 0  # index of the initial point
        self.landed: list[tuple[float, int]] = []  # every point after the start, for the statistics

    def add(self, t: float, order: int, piece: int, record: bool = True) -> int | None:
        """Put a point at t, before piece number `piece`; its index, or None when nothing of it
        is carried on.
        """
        if record and order <= self.max_order:
            if self.landed and self.landed[-1][0] == t:
                order = min(order, self.landed.pop()[1])
            self.landed.append((t, order))
        if order >= self.max_order:
            return None
        if self.times and self.times[-1] == t:
            self.orders[-1] = min(order, self.orders[-1])
        else:
            self.times.append(t)
            self.orders.append(order)
            self.first_piece.append(piece)
        return len(self.times) - 1

    def interval(self, k: int) -> tuple[float, float]:
        """Where interval k begins and ends."""
        low = self.times[k - 1] if k > 0 else -math.inf
        return low, (self.times[k] if k < len(self.times) else math.inf)


class Delays:
    """Delayed arguments and states: the lags, and the interval of the past (`branch`) that each
    lag looks into.
    """

    def __init__(
        self,
        lags: Array | Callable[..., Array],
        args: tuple[object, ...],
        history: History,
        points: BreakingPoints,
        pieces: Pieces,
        count: int,
        lag_states: NDArray[np.int64] | None = None,
    ) -> None:
        self.function = lags if callable(lags) else None
        self.constant = np.zeros(count) if callable(lags) else lags
        self.args, self.history, self.points, self.pieces = args, history, points, pieces
        self.count, self.single = count, lag_states is not None
        self.top = np.zeros(count, dtype=np.int64) if lag_states is None else lag_states
        self.rows = (
            1 if self.single else history.constant.size
        )  # states that a lag is read for, from `top` on
        self.past = history.constant[
            self.top + np.arange(self.rows)[:, None]
        ]  # if that is constant
        self.zero = [] if callable(lags) else [int(j) for j in np.flatnonzero(lags == 0)]
        positive = self.constant[self.constant > 0]
        self.least = (
            0.0 if callable(lags) else float(positive.min(initial=np.inf))
        )  # no step so short sees itself
        self.branch = [0] * count
        self.first, self.last = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.in_history: list[int] = []  # lags that look into a history that is a function
        self.landings: list[
            tuple[float, int, int]
        ] = []  # (time, lag, point), a heap: constant lags only
        self.smallest = 0.0  # the least lag seen at the last call of `arguments`

    def refresh(self) -> None:
        """Renew the ranges of pieces after a branch, the table or the store has changed."""
        if not self.count:
            return
        k, initial = np.array(self.branch), self.points.initial
        low = max(int(k.min()) - 1, 0)  # what lies further back is not looked into
        ends = np.append(
            np.array(self.points.first_piece[low:], dtype=np.int64) - self.pieces.base, -1
        )
        self.first = np.where(k > initial, np.maximum(ends[np.maximum(k - 1 - low, 0)], 0), -1)
        self.last = ends[k - low]
        self.first[self.zero] = -1  # no delay at all: the stage itself, so nothing to look up
        past = k <= initial
        past[self.zero] = False
        self.in_history = np.flatnonzero(past).tolist() if self.history.function is not None else []

    def arguments(self, t: float, y: Array) -> Array:
        """The delayed times ``t - lag``, shape (m,)."""
        if self.function is None:
            return t - self.constant
        lags = returned(self.function(t, y, *self.args), self.count, "lags", t)
        self.smallest = float(lags.min()) if self.count else 0.0
        arguments: Array = t - lags
        return arguments

    def states(
        self, t: float, y: Array, now: float, width: float, y_now: Array, q: Array
    ) -> tuple[Array, bool]:
        """Delayed states Z seen from (t, y) in a step from `now`, and whether the step looks into
        itself.

        Z has the shape (n, m), or (m,) where each lag is read for one state.
        """
        at = self.arguments(t, y)
        out = self.past.copy()
        p, top, rows = self.pieces, self.top, self.rows
        implicit = delayed_states(
            p.starts,
            p.widths,
            p.values,
            p.slopes,
            self.first,
            self.last,
            p.count,
            at,
            now,
            width,
            y_now,
            q,
            top,
            out,
        )
        for j in self.in_history:
            value = self.history.piece(at[j], *self.points.interval(self.branch[j]))
            out[:, j] = value[top[j] : top[j] + rows]
        for j in self.zero:
            out[:, j] = y[top[j] : top[j] + rows]
        return (out[0] if self.single else out), implicit

    def at_mesh(self, t: float, y: Array) -> Array:
        """Delayed states at a mesh point, on its later side."""
        return self.states(t, y, t, 1.0, y, np.zeros((y.size, 4)))[0]

    def locate(self, t: float, y: Array, rate: Array, probe: float) -> None:
        """Set every branch from scratch: where the arguments are a little after t."""
        at = self.arguments(t + probe, y + probe * rate)
        self.branch = [int(np.searchsorted(self.points.times, a, side="left")) for a in at]
        self.refresh()

    def schedule(self, index: int | None, after: float) -> None:
        """Note when each constant lag will carry that point forward."""
        if index is None or self.function is not None:
            return
        for j, lag in enumerate(self.constant):
            landing = self.points.times[index] + lag
            if lag > 0 and landing >= after:
                heapq.heappush(self.landings, (float(landing), j, index))

    def land(self, t: float, tolerance: float) -> int | None:
        """Move the branches of the landings due at t; the order of the discontinuity, None if
        there is none.
        """
        order = None
        while self.landings and self.landings[0][0] <= t + tolerance:
            _, j, index = heapq.heappop(self.landings)
            self.branch[j] = max(self.branch[j], index + 1)
            new = self.points.orders[index] + 1
            order = new if order is None else min(order, new)
        return order
