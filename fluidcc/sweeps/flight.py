"""The jobs that are out, and from what they take by when each worker is through."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heapreplace
from time import perf_counter
from typing import NamedTuple

from fluidcc.sweeps.timed import room

__all__ = ["Flight"]


class _Out(NamedTuple):
    """Points of a job, the seconds in which it is to end, when a worker began with it, and whether as its first.

    `begun` is None while no worker has.
    """

    points: int
    seconds: float
    begun: float | None
    new: bool


class Flight:
    """Jobs that are out. Workers are taken to begin with them in order, each as soon as it is through with another.

    Parameters
    ----------
    clock : callable
        Seconds, by which it is known for how long a job has been running.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._out: dict[int, _Out] = {}
        self._timed: set[int] = set()  # those of them that end by time
        self._running = self._met = 0  # workers that are at work, and that have been

    @property
    def timed(self) -> bool:
        """Whether some of them end by time."""
        return bool(self._timed)

    def add(self, first: int, count: int, seconds: float, workers: int) -> None:
        """A job goes out, of `count` points from `first` on."""
        free = self._running < workers
        self._running += free
        new = self._running > self._met
        self._met += new
        self._out[first] = _Out(count, seconds, self._clock() if free else None, new)
        if seconds < math.inf:
            self._timed.add(first)

    def end(self, first: int) -> None:
        """The result of a job is there, so that its worker begins with the next."""
        self._timed.discard(first)
        ended = self._out.pop(first, None)
        if ended is None or ended.begun is None:
            return
        self._running -= 1
        waiting = next((k for k, job in self._out.items() if job.begun is None), None)
        if waiting is not None:
            self._running += 1
            self._out[waiting] = self._out[waiting]._replace(begun=self._clock())

    def back(self, cost: float, call: float) -> int:
        """Points of jobs that are out of which it is foreseen that they are not measured in time, and come back."""
        timed = [self._out[first] for first in self._timed]
        return sum(job.points - _measured(job, cost, call) for job in timed)

    def gap(self, cost: float, call: float, once: float, left: int, workers: int) -> float:
        """For how long the worker that is through first has work yet, if all workers end together.

        Parameters
        ----------
        cost, call, once : float
            Seconds a point takes, a job besides, and a worker's first job besides that.
        left : int
            Points that have not gone out.
        workers : int
        """
        now, loads = self._clock(), [0.0] * workers
        for k, job in enumerate(self._out.values()):
            if k == workers:
                heapify(loads)
            load = call + _measured(job, cost, call) * cost + once * job.new
            load = load if job.begun is None else max(0.0, load - (now - job.begun))
            if k < workers:
                loads[k] = load
            else:
                heapreplace(loads, loads[0] + load)
        loads.sort()
        work, level = left * cost, 0.0
        for k, load in enumerate(loads, start=1):  # those that end later than the level have enough as it is
            if k > 1 and load >= level:
                break
            work += load
            level = work / k
        return level - loads[0]


def _measured(job: _Out, cost: float, call: float) -> int:
    """How many points of a job are measured in time."""
    if job.seconds == math.inf:
        return job.points
    return max(1, room(job.points, job.seconds - call, job.seconds, cost))
