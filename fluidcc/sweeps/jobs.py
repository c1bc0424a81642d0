"""Which points go out together: jobs that follow what points cost, and shrink toward the end.

The first jobs are to take a certain time: a worker measures as many of their points as it can in it, and what is left
goes out again. So nothing is measured only to learn what it costs. They go out in rounds of one for each worker, all
of a round alike, so that it does not matter which worker gets which. On a cluster, whose scheduler takes milliseconds
for each job, the first round is each worker's share of all points: a sweep that ends within that time is one job for
each, and a longer one loses at most that time. From then on this is guided self-scheduling: a job takes a fixed part of
what is left for each worker, so that the first ones are large, and later ones make up for what was not foreseen; what
is left includes what will come back of first jobs that are out. The last ones are as long as it takes for all workers
to end together, by what is known of the jobs that are out. Chunks, by which results are kept, are put together from the
results of jobs.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.sweeps.chunk import Piece
from fluidcc.sweeps.flight import Flight
from fluidcc.sweeps.pace import STEEP

__all__ = ["FIRST", "LEAST", "LONGEST", "SENDING", "SPAN", "Chunks", "Job", "Jobs", "Points", "work_in_a_job"]

SPAN = 0.5  # seconds of work sent at once: long enough that sending it costs little, short enough to lose little
LONGEST, MANY = 5.0, 100  # on a cluster it may be more, of a sweep with that many jobs for each worker
SENDING = 5e-3  # seconds of processor time that a job costs the scheduler and the client of a cluster, as measured
WORTH = 20  # times what a job costs besides its points in the smallest jobs
FEWEST = 4  # jobs for each worker at least
SHARES = 2  # what is sent at once is at most this part of what is left for each worker
CRUMB = 4  # of the smallest job: less than this part of it is not left for another
LEAST = 0.03  # seconds of work from which that matters
FIRST, SOME = 0.2, 16384  # seconds, and points at most, of a job while nothing is known
TINY = 1e-9  # seconds that a point takes at least

Points = NDArray[np.int64] | range


class Job(NamedTuple):
    """Where its points begin among all of the sweep, its points, and the seconds in which it is to end."""

    first: int
    points: Points
    seconds: float = math.inf


def work_in_a_job(seconds: float, workers: int, cluster: bool = False, call: float = 0.0) -> tuple[float, float]:
    """Seconds of work in the largest and the smallest jobs of a sweep that takes so many seconds in all.

    Long enough that `call`, the seconds that a job costs whatever its points, matters little; on a cluster also that
    its one scheduler is busy for half of the time at most.
    """
    if not cluster:
        return SPAN, min(max(LEAST, WORTH * call), SPAN)
    most = max(SPAN, min(seconds / (workers * MANY), LONGEST), 2 * SENDING * workers)
    most = min(most, max(SPAN, seconds / (workers * FEWEST)))
    return most, min(max(LEAST, WORTH * (SENDING + call), SENDING * workers), most)


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
        Seconds a point takes, as far as it is known; 0 sends the first points to learn it.
    cluster : bool
        Whether the workers have one scheduler, which must keep up with them.
    fixed : bool
        Whether chunks go out one by one, whatever they cost.
    clock : callable
        Seconds, by which it is known how far the jobs are that are out.

    Attributes
    ----------
    size, left : int
        Points in all, and of these the ones that have not gone out.
    cost, call, once : float
        Seconds a point takes, a job besides, and a worker's first job besides that, as far as they are known.
    """

    def __init__(
        self,
        points: Points,
        chunk: int,
        done: Collection[int] = (),
        *,
        workers: int = 1,
        cost: float = 0.0,
        cluster: bool = False,
        fixed: bool = False,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._points, self.chunk, self.fixed = points, chunk, fixed
        self.workers, self.cluster = workers, cluster
        self.cost, self.call, self.once = max(cost, TINY) if cost else 0.0, 0.0, 0.0
        self._calls: list[float] = []  # what jobs have told of it, of which one may be odd
        self.size = len(points)
        self._known = 0  # points of the largest job whose cost is known
        self._alike, self._share = 0, 0.0  # jobs of this round that are to go out yet, and points of each
        todo = (n for n in range(-(-self.size // chunk)) if n not in done)
        self._spans = _joined((n * chunk, min((n + 1) * chunk, self.size)) for n in todo)
        self._flight = Flight(clock)

    @property
    def left(self) -> int:
        """Points that have not gone out."""
        return sum(last - first for first, last in self._spans)

    @property
    def timed(self) -> bool:
        """Whether jobs are out that end by time, so that it is not known what is left."""
        return self._flight.timed

    def __next__(self) -> Job:
        if not self._spans:
            raise StopIteration
        back = self._flight.back(self.cost, self.call) if self.cost else 0
        wanted, least, seconds = self._wanted(self.left + back)
        first, end = self._spans.pop(0)
        last = min(first + wanted, end)
        whole = last // self.chunk * self.chunk  # to the end of a chunk, where there is one
        if self.fixed:
            last, seconds = min((first // self.chunk + 1) * self.chunk, end), math.inf
        elif first < whole and last < end:
            last = whole
        elif (self._spans or back) and 2 * (end - last) < least:  # no crumbs, where points are taken back
            last = end
        if last < end:
            self._spans.insert(0, (last, end))
        self._flight.add(first, last - first, seconds, self.workers)
        return Job(first, self._points[first:last], seconds)

    def _wanted(self, left: int) -> tuple[int, int, float]:
        """Points of the next job and of the smallest, and seconds for it, if so many points are still to go out."""
        share = left / (SHARES * self.workers) if self.workers > 1 else left
        if not self.cost:
            if not self._alike:
                self._alike, self._share = self.workers, left / self.workers if self.cluster else share
            self._alike -= 1
            most = max(1, math.ceil(min(self._share, SOME)))
            return most, most, FIRST
        span, least = work_in_a_job(self.cost * self.size, self.workers, self.cluster, self.call)
        size = max(share, least / self.cost)
        if self.workers > 1 and share * self.cost < least:
            size = self._last(least, share, left)
        most = max(1, math.floor(min(size, span / self.cost)))
        return most, min(most, math.ceil(least / self.cost)), math.inf

    def _last(self, least: float, share: float, left: int) -> float:
        """Points of one of the last jobs: of as many of about the smallest size as fill the time to the common end."""
        gap = self._flight.gap(self.cost, self.call, self.once, left, self.workers)
        size = max(share, math.ceil(gap / max(1, round(gap / least)) / self.cost))
        return left if (left - size) * self.cost < least / CRUMB else size

    def learn(self, job: Job, piece: Piece) -> None:
        """Take in what a job has cost, and take its points back that it has not measured."""
        count = len(piece)
        self._flight.end(job.first)
        self._back(job.first + count, job.first + len(job.points))
        if not count:
            return
        if piece.each:
            self._calls.append(piece.call)
            self.call = median(self._calls)
        self.once = max(self.once, piece.once)
        mean = (piece.seconds - piece.once) / count
        each = max(piece.each or max(mean - self.call / count, mean / STEEP), TINY)
        if count > self._known:  # what is done once, such as loading code, is the less of it, the larger a job
            self.cost, self._known = each, count
        else:
            self.cost = math.sqrt(each * self.cost)  # one odd job does not decide

    def give_up(self, job: Job) -> None:
        """A job is over that has told nothing of what points cost."""
        self._flight.end(job.first)

    def _back(self, first: int, last: int) -> None:
        """Put points in, in order, with those that they adjoin."""
        if first < last:
            insort(self._spans, (first, last))
            self._spans = _joined(self._spans)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that adjoin as one."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


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
            part = piece.part(start, stop)
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
