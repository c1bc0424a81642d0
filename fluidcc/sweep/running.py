"""How the points of a sweep are measured: from the store, or by workers, in jobs by what a point costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.errors import InvalidInput
from fluidcc.progress import Progress
from fluidcc.sweep.identity import identity
from fluidcc.sweep.jobs import SPAN, Chunks, Jobs, Points, work_in_a_job
from fluidcc.sweep.pool import Pool, make_pool
from fluidcc.sweep.store import Store
from fluidcc.sweep.task import DEAR, Piece, Task, empty_piece

__all__ = ["Execution", "run"]

SMALL = 1.0  # seconds of work in all that are not worth starting workers
ENOUGH, TRIES = 0.02, 2  # seconds of work from which its cost is taken, and how often it is measured
BAR = "{l_bar}{bar}| {n:.0f} of {total:.0f} points [{rate_noinv_fmt}, {elapsed} so far, {remaining} to go]"


@dataclass(frozen=True)
class Execution:
    """How a sweep is computed: arguments of `sweep`."""

    executor: Any = None
    workers: int | None = None
    store: str | Path | None = None
    progress: bool | None = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        if self.store is not None and not isinstance(self.store, str | Path):
            raise InvalidInput(f"store is {self.store!r}; give the name of a folder, such as 'sweep.zarr'")
        if self.chunk is not None and (isinstance(self.chunk, bool) or not isinstance(self.chunk, int)):
            raise InvalidInput(f"chunk is {self.chunk!r}; give a number of points from 1 on")
        if self.chunk is not None and self.chunk < 1:
            raise InvalidInput(f"chunk is {self.chunk!r}; give a number of points from 1 on")


def run(task: Task, how: Execution, points: Points, folder: str = "") -> tuple[Task, Piece]:
    """Measure these points, but those that are in the store; the task with its schema, and the results.

    Parameters
    ----------
    folder : str
        Inside the store, for sweeps of several parts.
    """
    kept = None
    if how.store is not None:
        chosen = None if len(points) == task.grid.size else np.asarray(points)
        kept = Store(Path(how.store) / folder, identity(task, chosen))
    try:
        task = _formed(task, kept)
        if kept is not None and kept.begun and len(kept.finished()) == -(-len(points) // kept.chunk):
            return task, kept.read()
        with _pool(task, how, points) as (task, pool):
            done = set() if kept is None else kept.finished()
            span, least = work_in_a_job(task.cost * len(points), pool.workers, pool.cluster)
            chunk = _chunk(how, len(points), span / max(task.cost, 1e-9), pool.workers, kept)
            fixed = how.chunk is not None
            jobs = Jobs(points, chunk, done, workers=pool.workers, cost=task.cost, span=span, least=least, fixed=fixed)
            if kept is not None and not kept.begun:
                kept.begin(task.schema, len(points), chunk, task.cost)
            return task, _computed(task, how, pool, jobs, kept)
    finally:
        if kept is not None:
            kept.close()


def _computed(task: Task, how: Execution, pool: Pool, jobs: Jobs, kept: Store | None) -> Piece:
    """All results, with those that were in the store."""
    whole = empty_piece(task.schema, jobs.size) if kept is None else Piece({}, {})
    chunks = Chunks(jobs.chunk, jobs.size)
    count = jobs.size - jobs.left
    with Progress(jobs.size, how.progress, about="sweep", form=BAR, unit="points", start=count) as bar:
        for first, piece in pool.run(task, jobs):
            if kept is None:
                whole.put(first, piece)
            else:
                for number, part in chunks.add(first, piece):
                    kept.write(number, part)
            count += len(piece)
            bar.reach(count)
    return whole if kept is None else kept.read()


def _formed(task: Task, kept: Store | None) -> Task:
    """The task with its schema; with its cost too if it is known from the store."""
    if kept is not None and kept.begun:
        return replace(task, schema=kept.schema(), cost=task.cost or kept.cost)
    return task if task.schema else task.probed()


@contextmanager
def _pool(task: Task, how: Execution, points: Points) -> Iterator[tuple[Task, Pool]]:
    """The workers, and the task with its cost. Workers that are given get ready while the cost is measured here."""
    with ExitStack() as open_pools:
        pool = None
        if how.executor is not None:
            pool = open_pools.enter_context(make_pool(how.executor, how.workers, task.free, False))
            pool.prepare(task)
        if not task.cost:
            task = replace(task, cost=_cost(task, points))
        if pool is None:
            small = task.cost * len(points) < SMALL
            pool = open_pools.enter_context(make_pool(None, how.workers, task.free, small))
        yield task, pool


def _chunk(how: Execution, size: int, many: float, workers: int, kept: Store | None) -> int:
    """Points that are kept together: as many as go out together, but four chunks for each worker at least."""
    if kept is not None and kept.begun:
        return kept.chunk
    if how.chunk is not None:
        return how.chunk
    return size if kept is None else max(1, min(int(many), math.ceil(size / (4 * workers))))


def _cost(task: Task, points: Points) -> float:
    """Seconds a point takes: measured on ever more points, from the middle on, until that says something."""
    middle = len(points) // 2

    def seconds(count: int) -> float:
        some = np.asarray(points[middle : middle + count])
        return min(task.evaluate(some).seconds for _ in range(TRIES)) / len(some) * count

    def once() -> float:
        return task.evaluate(np.asarray(points[middle : middle + 1])).seconds

    first = once()
    if SPAN < first <= DEAR and task.compiled:  # what is done once, such as loading code, is no point's cost
        first = once()
    if first > SPAN:
        return first
    # Nor is what a call costs, of many points at once.
    count, single, fixed = 1, seconds(1), 3.0 if task.free else 1.0
    found = single
    while (found < ENOUGH or found < fixed * single) and found < SPAN and count < len(points) - middle:
        count *= 4
        found = seconds(count)
    return found / count
