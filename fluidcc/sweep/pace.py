"""What a call costs and what each of its points does, from calls of different sizes."""

from __future__ import annotations

__all__ = ["STEEP", "Pace"]

TINY = 1e-9  # seconds that a point takes at least
STEEP = 8.0  # times less than the mean of a call is the least that a point is believed to take


class Pace:
    """A straight line through the last two calls: seconds of a call of so many points.

    Attributes
    ----------
    each, call : float
        Seconds that one more point takes, and that a call takes besides.
    """

    def __init__(self) -> None:
        self.each, self.call = TINY, 0.0
        self._last = 0, 0.0

    def learn(self, count: int, seconds: float) -> None:
        """Take in what a call of `count` points took; the first call may have loaded code."""
        known, before = self._last
        mean = max(seconds / count, TINY)
        self.each = mean
        if known and count > known and seconds > before:
            self.each = min(mean, max((seconds - before) / (count - known), mean / STEEP))
        self.call = max(0.0, seconds - count * self.each)
        self._last = count, seconds
