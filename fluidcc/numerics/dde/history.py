"""The past of a delay equation: the given history, and the polynomial pieces of the steps taken
since.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.compiling import njit

__all__ = ["Array", "History", "Pieces", "delayed_states", "returned", "shift_polynomial"]

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
