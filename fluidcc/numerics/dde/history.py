"""The past of a delay equation: the given history, the polynomial pieces of the steps taken since,
its breaking points, and which smooth piece of it each delayed argument is in.

A delay carries every kink of the solution forward: where ``t - lag`` passes a point at which the
derivative of order p jumps, the derivative of order p + 1 jumps. Points of order up to that of the
method must be mesh points; those whose image still matters are kept in a table, and cut the past
into smooth intervals.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.compiling import njit

__all__ = [
    "Array", "BreakingPoints", "Delays", "History", "Pieces", "delayed_states", "returned",
    "shift_polynomial",
]  # fmt: skip

Array = NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def delayed_states(  # type: ignore[no-untyped-def]
    starts, widths, values, slopes, first, last, count, at, now, width, y, q, top, out
):
    """Fill ``out[:, j]`` with the states from ``top[j]`` on at time ``at[j]``, from pieces
    ``first[j] .. last[j] - 1``.

    ``first[j] < 0``: the column is left alone (it lies in the history). ``last[j] < 0``: the newest
    interval, which goes on into the step being taken, ``y + q @ (u, u^2, u^3, u^4)`` with ``u = (t
    - now) / width``. A time outside its interval is extrapolated from the nearest piece, so that a
    step sees a smooth delayed state. Returns whether a time later than `now` was asked for.
    """
    implicit = False
    n = out.shape[0]
    for j in range(at.size):
        if first[j] < 0:
            continue
        t, a = at[j], top[j]
        end = last[j]
        if end < 0:
            end = count
            if t > now or first[j] >= count:
                implicit = implicit or t > now
                u = (t - now) / width
                for i in range(n):
                    c = q[a + i]
                    out[i, j] = y[a + i] + u * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
                continue
        low = first[j]
        while end - low > 1:
            middle = (low + end) // 2
            if starts[middle] <= t:
                low = middle
            else:
                end = middle
        u = (t - starts[low]) / widths[low]
        for i in range(n):
            c = slopes[low, a + i]
            out[i, j] = values[low, a + i] + u * (c[0] + u * (c[1] + u * (c[2] + u * c[3])))
    return implicit


@njit(cache=True, nogil=True, error_model="numpy")
def shift_polynomial(q, start, stretch):  # type: ignore[no-untyped-def]
    """Coefficients of ``p(start + stretch v) - p(start)`` in v, where ``p(u) = q @ (u, u^2, u^3,
    u^4)``.
    """
    shifted = np.zeros_like(q)
    u, r = start, stretch
    for i in range(q.shape[0]):
        a, b, c, d = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        shifted[i, 0] = (a + u * (2 * b + u * (3 * c + u * 4 * d))) * r
        shifted[i, 1] = (b + u * (3 * c + u * 6 * d)) * r**2
        shifted[i, 2] = (c + u * 4 * d) * r**3
        shifted[i, 3] = d * r**4
    return shifted


def returned(value: object, size: int, what: str, t: float) -> Array:
    """What a function of the user returned, as that many floats; `what` names it, such as
    ``"fun"``.

    Raises
    ------
    InvalidInput
        If they are not numbers, complex, or not so many.
    """
    array = np.asarray(value)
    if array.dtype != np.float64:
        array = numbers(value, f"{what} at t = {t:.10g}", "real numbers", finite=False)
    if array.size != size:
        raise InvalidInput(
            f"{what} returned shape {array.shape} at t = {t:.10g}; give {size} "
            f"number{'s'[: size != 1]}"
        )
    return array.reshape(size)


class Pieces:
    """Growing arrays of polynomial pieces; piece i starts at ``starts[i]`` and ends where piece i +
    1 starts.

    Indices count from the first piece ever stored; `forget` drops the oldest, so that memory stays
    bounded.
    """

    def __init__(self, n: int) -> None:
        self.count = 0  # pieces in the arrays now
        self.base = 0  # pieces forgotten
        self.end = -math.inf  # where the last piece ends
        self.starts, self.widths = np.empty(64), np.empty(64)
        self.values, self.slopes = np.empty((64, n)), np.empty((64, n, 4))

    @property
    def total(self) -> int:
        """How many pieces were ever stored."""
        return self.base + self.count

    def append(self, start: float, width: float, y: Array, q: Array, end: float) -> None:
        if self.count == self.starts.size:
            self._resize(2 * self.count)
        i = self.count
        self.starts[i], self.widths[i], self.values[i], self.slopes[i] = start, width, y, q
        self.count, self.end = i + 1, end

    def _resize(self, size: int, drop: int = 0) -> None:
        for name in ("starts", "widths", "values", "slopes"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]))
            new[: self.count - drop] = old[drop : self.count]
            setattr(self, name, new)
        self.count -= drop
        self.base += drop

    def forget(self, before: float) -> bool:
        """Drop the pieces that end before that time, if they are at least half of a full store."""
        if self.count < self.starts.size:
            return False
        drop = int(np.searchsorted(self.starts[: self.count], before, side="right")) - 1
        if drop < self.count // 2:
            return False
        self._resize(self.starts.size, drop)
        return True

    def __call__(self, t: Array, side: str = "right") -> Array:
        """The states at those times, shape (n, t.size), each from the piece that holds it."""
        starts = self.starts[: self.count]
        i = np.clip(np.searchsorted(starts, t, side=side) - 1, 0, self.count - 1)  # type: ignore[call-overload]
        u = ((t - starts[i]) / self.widths[i])[:, None]
        c = self.slopes[i]
        p = self.values[i] + u * (c[..., 0] + u * (c[..., 1] + u * (c[..., 2] + u * c[..., 3])))
        result: Array = p.T
        return result


class History:
    """The given past: constants or a function of time, with one-sided values at its own breaking
    points.
    """

    def __init__(
        self, function: Callable[[float], Array] | None, constant: Array, t0: float
    ) -> None:
        self.function, self.constant, self.t0 = function, constant, t0
        self.earliest = math.inf  # time at which it was needed

    def __call__(self, t: float) -> Array:
        if self.function is None:
            return self.constant
        return returned(self.function(t), self.constant.size, "history", t)

    def piece(self, t: float, low: float, high: float) -> Array:
        """The value at t of the smooth piece between two breaking points, continued beyond them if
        t lies there.

        A function cannot be trusted after its end or beyond a break, so the continuation is the
        cubic through four points before it, at the distance of the overshoot; but none of them
        earlier than has been needed for the solution, since the function may be defined no further
        back.
        """
        if self.function is None:
            return self.constant
        if t <= low:
            return self(math.nextafter(low, math.inf))
        inside = math.nextafter(
            high, -math.inf
        )  # the state may jump at the end, even at the start of the run
        if t < high:
            self.earliest = min(self.earliest, t)
            return self(t)
        over = t - high
        back = min(over, (high - self.earliest) / 3.0) if self.earliest < high else over
        if over <= 1e-14 * max(1.0, abs(t)) or high - 3.0 * back <= low:
            return self(inside)
        u = over / back
        a, b, c = u + 1.0, u + 2.0, u + 3.0
        near, far = a * b * c / 6.0 * self(inside), 0.5 * u * a * c * self(high - 2.0 * back)
        return (
            near
            - 0.5 * u * b * c * self(high - back)
            + far
            - u * a * b / 6.0 * self(high - 3.0 * back)
        )


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
