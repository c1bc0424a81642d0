"""How the points of a sweep are measured: from the store, or by workers, in jobs by what a point costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.base.arguments import shown, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.base.progress import Progress
from fluidcc.sweeps.chunk import Piece, empty_piece
from fluidcc.sweeps.identity import identity
from fluidcc.sweeps.jobs import Chunks, Jobs, Points, work_in_a_job
from fluidcc.sweeps.pool import make_pool
from fluidcc.sweeps.store import Store
from fluidcc.sweeps.task import Task

__all__ = ["Execution", "run"]

LOOK = 0.05  # seconds of work here, by which the workers are chosen
SMALL = 1.0  # seconds of work in all that are not worth starting workers
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
        if self.store is not None and (not isinstance(self.store, str | Path) or self.store == ""):
            raise InvalidInput(f"store is {shown(self.store)}; give the name of a folder, such as 'sweep.zarr'")
        if self.progress is not None and not isinstance(self.progress, bool):
            raise InvalidInput(
                f"progress is {shown(self.progress)}; give True, False, or nothing for a bar on long sweeps"
            )
        if self.chunk is not None:
            whole(self.chunk, "chunk", least=1)


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
        done: set[int] = set()
        if kept is not None and kept.begun:
            piece, done = kept.read()
            if len(done) == math.ceil(len(points) / kept.chunk):
                return task, piece
        chunk = how.chunk or len(points) if kept is None or not kept.begun else kept.chunk
        jobs = Jobs(points, chunk, done, cost=task.cost, fixed=how.chunk is not None)
        piece = _computed(task, how, jobs, kept)
        return replace(task, cost=jobs.cost), piece
    finally:
        if kept is not None:
            kept.close()


def _computed(task: Task, how: Execution, jobs: Jobs, kept: Store | None) -> Piece:
    """All results, with those that were in the store."""
    whole = empty_piece(task.schema, jobs.size) if kept is None else Piece({}, {})
    chunks = None
    count = jobs.size - jobs.left
    with Progress(jobs.size, how.progress, about="sweep", form=BAR, unit="points", start=count) as bar:
        for first, piece in _results(task, how, jobs):
            if kept is None:
                whole.put(first, piece)
            else:
                if chunks is None:
                    chunks = _chunks(task, jobs, kept)
                for number, part in chunks.add(first, piece):
                    kept.write(number, part)
            count += len(piece)
            bar.reach(count)
    if kept is None:
        return whole
    whole, there = kept.read()
    if len(there) < math.ceil(jobs.size / kept.chunk):
        raise OSError(f"store {str(kept.path)!r} has lost results while it was written; sweep again to complete it")
    return whole


def _results(task: Task, how: Execution, jobs: Jobs) -> Iterator[tuple[int, Piece]]:
    """Results by where their points begin. Where the workers are not given, they are chosen by what the first cost."""
    here, small = [], False
    if how.executor is None:
        if not jobs.cost:
            job = next(jobs)
            here = [(job.first, task.evaluate(job.points, LOOK))]
            jobs.learn(job, here[0][1])
        small = jobs.cost * jobs.left < SMALL
    with make_pool(how.executor, how.workers, how.executor is None and not small and task.free, small) as pool:
        jobs.workers, jobs.cluster = pool.workers, pool.cluster
        yield from here
        yield from pool.run(task, jobs)


def _chunks(task: Task, jobs: Jobs, kept: Store) -> Chunks:
    """Chunks of a store; one that is new has chunks of what goes out together, but four for each worker at least."""
    if not kept.begun:
        if not jobs.fixed:
            span, _ = work_in_a_job(jobs.cost * jobs.size, jobs.workers, jobs.cluster)
            jobs.chunk = max(1, min(int(span / jobs.cost), math.ceil(jobs.size / (4 * jobs.workers))))
        kept.begin(task.schema, jobs.size, jobs.chunk, jobs.cost)
    return Chunks(jobs.chunk, jobs.size)


def _formed(task: Task, kept: Store | None) -> Task:
    """The task with its schema; with its cost too if it is known from the store."""
    if kept is not None and kept.begun:
        return replace(task, schema=kept.schema, cost=task.cost or kept.cost)
    return task if task.schema else task.probed()
