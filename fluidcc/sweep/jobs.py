"""Which points go out together: chunks by number, several at once where points turn out to be cheap."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from fluidcc.sweep.task import Piece

__all__ = ["SPAN", "Job", "Jobs", "Points", "split"]

SPAN = 0.5  # seconds of work sent at once: long enough that sending it costs little, short enough to lose little
SHARES = 4  # what is sent at once is at most this part of what is left for each worker, so that all end together

Job = tuple[int, NDArray[np.int64]]  # number of its first chunk, its points
Points = NDArray[np.int64] | range


class Jobs(Iterator[Job]):
    """The chunks that are still to be computed, in order.

    Parameters
    ----------
    points : array or range
        All points of the sweep.
    chunk : int
        Points in a chunk, the last one may have fewer.
    done : collection of int
        Numbers of the chunks that are finished.
    workers : int
    fixed : bool
        Whether chunks go out one by one, whatever they cost.
    """

    def __init__(
        self, points: Points, chunk: int, done: Collection[int] = (), *, workers: int = 1, fixed: bool = False
    ) -> None:
        self._points, self._chunk, self._done = points, chunk, done
        self._workers, self._fixed = workers, fixed
        self._count = -(-len(points) // chunk)
        self._next = 0
        self._left = self._count - len(done)
        self._many = 1

    def __next__(self) -> Job:
        while self._next in self._done:
            self._next += 1
        if self._next >= self._count:
            raise StopIteration
        first = self._next
        most = first + max(1, min(self._many, math.ceil(self._left / (SHARES * self._workers))))
        while self._next < min(most, self._count) and self._next not in self._done:
            self._next += 1
        self._left -= self._next - first
        return first, np.asarray(self._points[first * self._chunk : self._next * self._chunk], dtype=np.int64)

    def learn(self, seconds: float, points: int) -> None:
        """Take in what some points have cost."""
        if not self._fixed and points:
            self._many = max(1, int(SPAN / max(seconds / points * self._chunk, 1e-9)))


def split(first: int, piece: Piece, chunk: int) -> Iterator[tuple[int, Piece]]:
    """The results of a job by chunk."""
    size = len(next(iter(piece.values.values())))
    for start in range(0, size, chunk):
        stop = min(start + chunk, size)
        errors = {row - start: text for row, text in piece.errors.items() if start <= row < stop}
        values = {name: v[start:stop] for name, v in piece.values.items()}
        yield first + start // chunk, Piece(values, errors, piece.seconds * (stop - start) / size)
