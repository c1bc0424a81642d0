"""Which points go out together: jobs that follow what points cost, and shrink toward the end.

This is guided self-scheduling: a job takes a fixed part of what is left for each worker, so that the first ones are
large, and the last ones so small that all workers end together. Chunks, by which results are kept, are put together
from the results of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from fluidcc.sweep.task import Piece

__all__ = ["LEAST", "LONGEST", "SENDING", "SPAN", "Chunks", "Job", "Jobs", "Points", "work_in_a_job"]

SPAN = 0.5  # seconds of work sent at once: long enough that sending it costs little, short enough to lose little
LONGEST, MANY = 5.0, 100  # on a cluster it may be more, of a sweep with that many jobs for each worker
SENDING = 5e-3  # seconds of processor time that a job costs the scheduler and the client of a cluster, as measured
FEWEST = 4  # jobs for each worker at least
SHARES = 2  # what is sent at once is at most this part of what is left for each worker
LEAST = 0.03  # seconds of work from which that matters
TINY = 1e-9  # seconds that a point takes at least

Points = NDArray[np.int64] | range
Job = tuple[int, Points]  # where its points begin among all of the sweep, its points


def work_in_a_job(seconds: float, workers: int, cluster: bool = False) -> tuple[float, float]:
    """Seconds of work in the largest and the smallest jobs of a sweep that takes so many seconds in all.

    On a cluster large enough that its one scheduler is busy for half of the time at most.
    """
    if not cluster:
        return SPAN, LEAST
    most = max(SPAN, min(seconds / (workers * MANY), LONGEST), 2 * SENDING * workers)
    most = min(most, max(SPAN, seconds / (workers * FEWEST)))
    return most, min(max(LEAST, SENDING * workers), most)


class Jobs(Iterator[Job]):
    """The points that are still to be computed, in order.

    Parameters
    ----------
    points : array or range
        All points of the sweep.
    chunk : int
        Points that are kept together; the last chunk may have fewer.
    done : collection of int
        Numbers of the chunks that are finished.
    workers : int
    cost : float
        Seconds a point takes, as far as it is known; 0 sends the first points one by one.
    span, least : float
        Seconds of work in the largest jobs, and in the smallest.
    fixed : bool
        Whether chunks go out one by one, whatever they cost.

    Attributes
    ----------
    size, left : int
        Points in all, and of these the ones that have not gone out.
    """

    def __init__(
        self,
        points: Points,
        chunk: int,
        done: Collection[int] = (),
        *,
        workers: int = 1,
        cost: float = 0.0,
        span: float = SPAN,
        least: float = LEAST,
        fixed: bool = False,
    ) -> None:
        self._points, self.chunk, self._done = points, chunk, done
        self._workers, self._span, self._least, self._fixed = workers, span, least, fixed
        self._cost = max(cost, TINY) if cost else 0.0
        self.size = len(points)
        short = -(-self.size // chunk) * chunk - self.size  # the last chunk lacks so many
        self.left = self.size - chunk * len(done) + (short if self.size // chunk in done else 0)
        self._next = 0

    def __next__(self) -> Job:
        while self._next < self.size and self._next // self.chunk in self._done:
            self._next += self.chunk
        if self._next >= self.size:
            raise StopIteration
        first, wanted = self._next, self._wanted()
        last = first
        while last < self.size and last - first < wanted and last // self.chunk not in self._done:
            whole = min((last // self.chunk + 1) * self.chunk, self.size)  # the end of this chunk
            if whole > first + wanted and last > first:
                break  # whole chunks, where there is more than one
            last = min(whole, first + wanted)
        self._next = last
        self.left -= last - first
        return first, self._points[first:last]

    def _wanted(self) -> int:
        """Points of the next job."""
        if self._fixed:
            return self.chunk
        if not self._cost:
            return 1
        share = max(self.left / (SHARES * self._workers), self._least / self._cost)
        return max(1, math.floor(min(share, self._span / self._cost)))

    def learn(self, seconds: float, points: int) -> None:
        """Take in what some points have cost."""
        if points:
            each = max(seconds / points, TINY)
            self._cost = math.sqrt(each * self._cost) if self._cost else each  # one odd job does not decide


class Chunks:
    """Chunks that are put together from the results of jobs.

    Parameters
    ----------
    chunk : int
        Points in a chunk.
    size : int
        Points in all.
    """

    def __init__(self, chunk: int, size: int) -> None:
        self._chunk, self._size = chunk, size
        self._begun: dict[int, tuple[Piece, int]] = {}  # with the number of points that are there

    def add(self, first: int, piece: Piece) -> Iterator[tuple[int, Piece]]:
        """Take in results from point `first` on; give the chunks that are whole now, by number."""
        size, start = len(piece), 0
        while start < size:
            number, offset = divmod(first + start, self._chunk)
            whole = min(self._chunk, self._size - number * self._chunk)
            stop = min(start + whole - offset, size)
            part = _part(piece, start, stop, size)
            if stop - start == whole:
                yield number, part
            else:
                yield from self._put(number, offset, whole, part, stop - start)
            start = stop

    def _put(self, number: int, offset: int, whole: int, part: Piece, count: int) -> Iterator[tuple[int, Piece]]:
        if number not in self._begun:
            room = {name: np.empty((whole, *v.shape[1:]), dtype=v.dtype) for name, v in part.values.items()}
            self._begun[number] = Piece(room, {}), 0
        held, there = self._begun[number]
        held.put(offset, part)
        self._begun[number] = held, there + count
        if there + count == whole:
            del self._begun[number]
            yield number, held


def _part(piece: Piece, start: int, stop: int, size: int) -> Piece:
    """Some rows of some results."""
    errors = {row - start: text for row, text in piece.errors.items() if start <= row < stop}
    values = {name: v[start:stop] for name, v in piece.values.items()}
    return Piece(values, errors, piece.seconds * (stop - start) / size)
