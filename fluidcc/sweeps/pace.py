"""What a call costs and what each of its points does, from calls of different sizes, without what is made only once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from time import perf_counter

__all__ = ["STEEP", "Pace", "made_once", "making"]

TINY = 1e-9  # seconds that a point takes at least
STEEP = 8.0  # times less than the mean of a call is the least that a point is believed to take


class _Spent(local):
    """Seconds that this thread has spent on what it makes once, and whether it makes something now."""

    seconds, inside = 0.0, False


_spent = _Spent()


@contextmanager
def making() -> Iterator[None]:
    """Around the making of what later points use too, which is therefore no cost of the points that come first."""
    if _spent.inside:
        yield
        return
    began, _spent.inside = perf_counter(), True
    try:
        yield
    finally:
        _spent.inside = False
        _spent.seconds += perf_counter() - began


def made_once() -> float:
    """Seconds that this thread has spent on `making` so far."""
    return _spent.seconds


class Pace:
    """A straight line through the last two calls: seconds of a call of so many points.

    What a call costs besides its points is what the shortest call took besides its own, of which it has few: what is
    left of a long one would be a small difference between large numbers, that is mostly chance.

    Attributes
    ----------
    each, call : float
        Seconds that one more point takes, and that a call takes besides.
    count : int
        Points of the last call that has told something; 0 while nothing is known.
    """

    def __init__(self) -> None:
        self.each, self.call, self.count = TINY, 0.0, 0
        self._seconds, self._shortest, self._few = 0.0, math.inf, 0

    def learn(self, count: int, seconds: float) -> None:
        """Take in what a call of `count` points took; the first call may have loaded code.

        One of less than half the points of the last one tells nothing: mostly, it is the call that it has taken.
        """
        known, before = self.count, self._seconds
        if 2 * count < known:
            return
        mean = max(seconds / count, TINY)
        self.each = mean
        if known:
            if seconds < self._shortest:
                self._shortest, self._few = seconds, count
            rises = (seconds - before) * (count - known) > 0.0
            slope = (seconds - before) / (count - known) if rises else (seconds - self.call) / count
            self.each = min(mean, max(slope, mean / STEEP, (seconds - self._shortest) / count))
            if rises:
                self.call = max(0.0, self._shortest - self._few * self.each)
        self.count, self._seconds = count, seconds
