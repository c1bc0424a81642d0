"""Measuring the points of a sweep: a timed probe here, then chunks of equal size by workers.

The probe measures the first points and tells what a point costs. A chunk then takes half a second
or more, unless there would be fewer than four for each worker. Workers are executors of
`concurrent.futures`: threads for compiled work, which releases the GIL; processes of joblib's loky,
which sends functions of notebooks too; the executor of a Dask client, which gives the work of a
worker that has died to another; or any other with ``submit``.
"""

from __future__ import annotations

import math
import os
import pickle
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from fluidcc.base.arguments import flag, shown, whole
from fluidcc.base.errors import FluidccWarning, InvalidInput, SweepFailed
from fluidcc.base.extras import installed, need
from fluidcc.base.files import check_local
from fluidcc.base.progress import Progress, unless
from fluidcc.sweeps.evaluate import Points, evaluate, probed, releases_gil
from fluidcc.sweeps.store import Store, identity, versions
from fluidcc.sweeps.task import Piece, Task, empty_piece, reason

DASK_CONFIG = Path(__file__).with_name(
    "dask.yaml"
)  # settings that leave more of the cores to a sweep
LOOK = 0.05  # seconds that the last block of the probe takes at least
DEAR = 20.0  # seconds of a first point that are its cost; loading and compiling code takes less
SMALL = 1.0  # seconds of work in all that are not worth starting workers
SPAN = 0.5  # seconds of work in a chunk: sending it costs little, and little is lost with it
FEWEST = 4  # chunks for each worker at least
LONGEST, MANY = 5.0, 100  # on a cluster a chunk may be longer, where each worker gets that many
SENDING = (
    5e-3  # seconds that a chunk costs the scheduler of a cluster, half of whose time is for that
)
AHEAD = 2  # chunks that are out for each worker: one that runs, and one for when it ends
LIVES = 2  # workers that a point may take with it before it has failed
TASKS = 4  # tasks that a worker keeps
PATIENCE = 10.0  # seconds without a result after which it is asked whether a cluster is still there
MOST_WORKERS = 10_000  # more threads or processes than any machine has room for
BAR = (
    "{l_bar}{bar}| {n:.0f} of {total:.0f} points "
    "[{rate_noinv_fmt}, {elapsed} so far, {remaining} to go]"
)


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
            raise InvalidInput(
                f"store is {shown(self.store)}; give the name of a folder, such as 'sweep.zarr'"
            )
        if self.store is not None:
            check_local(self.store, "store")
            need("zarr", "store", "store=")
        flag(self.progress, "progress", unset=True)
        if self.chunk is not None:
            whole(self.chunk, "chunk", least=1)
        if self.workers is not None:
            whole(self.workers, "workers", least=1, most=MOST_WORKERS)


class Job(NamedTuple):
    """The points of a chunk that are to be measured: its number, and rows from where to where."""

    chunk: int
    start: int
    stop: int


def run(task: Task, how: Execution, points: Points, folder: str = "") -> tuple[Task, Piece]:
    """Measure these points, but those that are in the store.

    Parameters
    ----------
    task : Task
    how : Execution
    points : array or range
        Numbers of the points in the task's grid.
    folder : str
        Inside the store, for sweeps of several parts.

    Returns
    -------
    task : Task
        With the form of its results.
    piece : Piece
        The results, in the order of the points.
    """
    kept = None
    if how.store is not None:
        chosen = None if len(points) == task.grid.size else np.asarray(points)
        kept = Store(Path(how.store) / folder, identity(task, chosen))
    with nullcontext() if kept is None else closing(kept):
        if kept is not None and kept.begun:
            task = replace(task, schema=kept.schema)
            found, done = kept.read()
        else:
            task = task if task.schema else probed(task)
            found, done = empty_piece(task.schema, len(points)), set()
        return task, _computed(task, how, points, found, done, kept)


def _computed(
    task: Task, how: Execution, points: Points, found: Piece, done: set[int], kept: Store | None
) -> Piece:
    """All results: `found`, which has those of the chunks that are done, with the others put in."""
    size = len(points)
    chunk = kept.chunk if kept is not None and kept.begun else how.chunk or 0
    todo = [n for n in range(math.ceil(size / chunk)) if n not in done] if chunk else [0]
    if not todo:
        return found
    first = todo[0] * chunk
    count = size if not chunk else sum(min(chunk, size - n * chunk) for n in todo)  # to be measured
    bar = Progress(size, how.progress, about="sweep", form=BAR, unit="points", start=size - count)
    with bar, ExitStack() as stack:
        known, cost = first, 0.0  # where the probe has come to, and what it has told
        workers = stack.enter_context(_workers(how.executor or "serial", how.workers, task))
        if how.executor is None or not chunk:
            last = min(first + chunk, size) if chunk else size
            measured, cost = _probe(workers.one, points[first:last], found, first)
            known, count = first + measured, count - measured
            bar.reach(size - count)
        if how.executor is None and how.workers != 1 and cost * count >= SMALL:
            apart = "processes" if installed("joblib", "cloudpickle") else "serial"
            best = "threads" if releases_gil(task) else apart
            workers = stack.enter_context(_workers(best, how.workers, task))
        if not chunk:
            cluster = workers.present is not None
            span = seconds_in_a_chunk(cost * count, workers.count, cluster)
            chunk = max(known, math.ceil(span / cost))
            todo = list(range(math.ceil(size / chunk)))
        if kept is not None and not kept.begun:
            kept.begin(task.schema, size, chunk)
        jobs = [Job(n, max(n * chunk, known), min((n + 1) * chunk, size)) for n in todo]
        for job in workers.run(points, jobs, found):
            if kept is not None:
                kept.write(job.chunk, found.part(job.chunk * chunk, job.stop))
            count -= job.stop - job.start
            bar.reach(size - count)
    return found


def _probe(
    measure: Callable[[Points], Piece], points: Points, found: Piece, first: int
) -> tuple[int, float]:
    """Put results of the first of some points into `found`, from row `first` on.

    Blocks of points grow until one takes long enough to be timed. The first point does not count,
    since it may load and compile code.

    Returns
    -------
    count : int
        How many points these are.
    cost : float
        Seconds that a point takes.
    """
    count, size = 0, 1
    while True:
        piece = measure(points[count : count + size])
        found.put(range(first + count, first + count + len(piece)), piece)
        known = count > 0 or piece.seconds > DEAR
        count += len(piece)
        if count == len(points) or (known and piece.seconds >= LOOK):
            return count, max(piece.seconds / len(piece), 1e-9)
        size = 4 * size if piece.seconds < LOOK else 1


def seconds_in_a_chunk(seconds: float, workers: int, cluster: bool = False) -> float:
    """Return how long a chunk takes of a sweep that takes so many seconds of work in all.

    Parameters
    ----------
    seconds : float
    workers : int
    cluster : bool
        Whether one scheduler serves all workers: it is then to be busy for half of the time at
        most.
    """
    span = SPAN
    if cluster:
        span = max(SPAN, min(seconds / (MANY * workers), LONGEST), 2 * SENDING * workers)
    return min(span, seconds / (FEWEST * workers))


# --- workers --------------------------------------------------------------------------------------


@dataclass
class Workers:
    """Workers behind one call; as a context, they are let go at its end.

    Attributes
    ----------
    task : Task
    make : callable, optional
        Makes the executor, again if a worker's death has broken it; None measures in this thread.
    count : int
        Number of workers.
    own : bool
        Whether to shut the executor down at the end.
    apart : bool
        Whether workers are other processes, to which the task is sent.
    lost : tuple of exception types
        What a future raises when its worker has died.
    present : callable, optional
        Of a cluster, number of workers that are there now; None when its scheduler is gone.
    """

    task: Task
    make: Callable[[], Any] | None = None
    count: int = 1
    own: bool = False
    apart: bool = False
    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    present: Callable[[], int | None] | None = None

    def __post_init__(self) -> None:
        self._executor: Any = None
        self._out: dict[Future[Piece], Job] = {}
        self._stop = Event()
        self._work: Callable[[Points], Piece] = partial(unless, self._stop, evaluate, self.task)
        if self.apart:
            self._work = partial(_evaluated, self.task.token, _pickled(self.task), versions())

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *about: object) -> None:
        if about[0] is not None:
            self._stop.set()
        for future in self._out:
            future.cancel()
        if self.own and self._executor is not None:
            self._executor.shutdown(wait=not self._stop.is_set())

    def one(self, points: Points) -> Piece:
        """Return the results of some points by one worker."""
        if self.make is None:
            return evaluate(self.task, points)
        try:
            return self._submit(points).result()
        except self.lost:
            return self._again(points)

    def run(self, points: Points, jobs: Sequence[Job], found: Piece) -> Iterator[Job]:
        """Put the results of jobs into `found`; give each job when it is done."""
        yield from (job for job in jobs if job.start >= job.stop)  # the probe has measured them
        left = iter([job for job in jobs if job.start < job.stop])
        if self.make is None:
            for job in left:
                found.put(range(job.start, job.stop), self.one(points[job.start : job.stop]))
                yield job
            return
        while True:
            for job in islice(left, AHEAD * self.count - len(self._out)):
                self._out[self._submit(points[job.start : job.stop])] = job
            if not self._out:
                return
            future = self._next()
            job = self._out.pop(future)
            try:
                piece = future.result()
            except self.lost:
                piece = self._again(points[job.start : job.stop])
            found.put(range(job.start, job.stop), piece)
            yield job

    def _submit(self, points: Points) -> Future[Piece]:
        assert self.make is not None
        self._executor = self._executor or self.make()
        try:
            return self._executor.submit(self._work, points)
        except BrokenExecutor:
            self._executor = self.make()
            return self._executor.submit(self._work, points)

    def _again(self, points: Points) -> Piece:
        """Results of points whose worker has died: by another one, or of each by one of its own."""
        self._still_there()
        try:
            return self._submit(points).result()
        except self.lost:
            piece, said = empty_piece(self.task.schema, len(points)), ""
        for row in range(len(points)):
            for _ in range(LIVES):
                try:
                    piece.put([row], self._submit(points[row : row + 1]).result())
                    break
                except self.lost as error:
                    said = reason(error)
            else:
                piece.fail(row, {"": f"its worker died, {LIVES} times ({said})"})
        return piece

    def _next(self) -> Future[Piece]:
        """The next future that ends. While none does, see whether the cluster is still there."""
        warned = False
        while True:
            if ended := wait(self._out, PATIENCE if self.present else None, FIRST_COMPLETED).done:
                return ended.pop()
            if self._still_there() == 0 and not warned:
                text = (
                    "the Dask cluster has no workers now; the sweep waits until one is started "
                    "(dask worker)"
                )
                warnings.warn(text, FluidccWarning, stacklevel=2)
                warned = True

    def _still_there(self) -> int:
        """Number of workers, or 1 where that is no question."""
        count = 1 if self.present is None else self.present()
        if count is None:
            raise SweepFailed(
                "the Dask scheduler is gone; start it and its workers again, and repeat the call "
                "(with store= it resumes)"
            )
        return count


def _workers(executor: Any, workers: int | None, task: Task) -> Workers:
    """The workers meant by the arguments `executor` and `workers` of a sweep.

    Raises
    ------
    InvalidInput
        If they are none.
    """
    count = workers or cores()
    if executor == "serial":
        return Workers(task)
    if executor == "threads":
        pool = partial(ThreadPoolExecutor, count, thread_name_prefix="fluidcc-sweep")
        return Workers(task, pool, count, own=True)
    if executor == "processes":
        loky = need("joblib.externals.loky", "cluster", "executor='processes'")
        make = partial(
            loky.get_reusable_executor, max_workers=count, timeout=60, kill_workers=False
        )
        return Workers(task, make, count, apart=True)
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        return _cluster(executor, workers, task)
    if not callable(getattr(executor, "submit", None)):
        text = isinstance(executor, str)
        client = f", here distributed.Client({executor!r})" if text and "://" in executor else ""
        raise InvalidInput(
            f"executor is {shown(executor)}; give 'serial', 'threads', 'processes', a Dask "
            f"client{client}{'' if text else ', or an executor of concurrent.futures'}"
        )
    apart = not isinstance(executor, ThreadPoolExecutor)
    return Workers(task, lambda: executor, count, apart=apart)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- a cluster ------------------------------------------------------------------------------------


_asked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # workers that can import fluidcc


def _cluster(client: Any, workers: int | None, task: Task) -> Workers:
    from distributed import CancelledError
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    def present() -> int | None:
        try:
            return sum(client.nthreads().values()) if client.status == "running" else None
        except (OSError, TimeoutError, RuntimeError, CancelledError):
            return None

    there = present()
    if there is None:
        raise InvalidInput(
            f"executor is {client!r}, which is not connected to a scheduler; make a new "
            "distributed.Client"
        )
    if not there:
        raise InvalidInput(
            f"the Dask client {client.scheduler.address} has no workers; start dask worker first"
        )
    _require_fluidcc(client)
    lost = (BrokenExecutor, KilledWorker, FutureCancelledError, CancelledError, CommClosedError)
    make = partial(client.get_executor, pure=False)
    return Workers(task, make, workers or there, apart=True, lost=lost, present=present)


def _require_fluidcc(client: Any) -> None:
    """Ask workers that have not been asked yet: one without the package would die of its first
    chunk.
    """
    new = set(client.nthreads()) - _asked.setdefault(client, set())
    if not new:
        return

    def lacks_fluidcc() -> (
        bool
    ):  # inside, so that it is sent as it is, and not by its module's name
        from importlib.util import find_spec

        return find_spec("fluidcc") is None

    answers = client.run(lacks_fluidcc, workers=sorted(new), on_error="return")
    without = sorted(worker for worker, answer in answers.items() if answer is True)
    if without:
        raise InvalidInput(
            f"Dask worker {without[0]} cannot import "
            f"fluidcc{f', nor can {len(without) - 1} more' if without[1:] else ''}; install it for "
            "the Python that 'dask worker' runs with, and start the workers again"
        )
    _asked[client] |= new


# --- in other processes ---------------------------------------------------------------------------


_tasks: dict[str, Task] = {}  # of this process: a task is read once, since that takes milliseconds


def _pickled(task: Task) -> bytes:
    cloudpickle = need("cloudpickle", "cluster", "a sweep in other processes")
    return cloudpickle.dumps(task)


def _evaluated(token: str, pickled: bytes, wanted: dict[str, str], points: Points) -> Piece:
    """Results of some points, in a worker.

    Raises
    ------
    InvalidInput
        If this worker has other versions than the sweep, with which results may differ.
    """
    task = _tasks.get(token)
    if task is None:
        here = versions()
        for what in [k for k, v in wanted.items() if here[k] != v and k != "processor"]:
            raise InvalidInput(
                f"a worker on {platform.node()} has {what} {here[what]}, and the sweep "
                f"{wanted[what]}, with which results may differ; install the same on all machines "
                "and start the workers again"
            )
        task = pickle.loads(pickled)
        while len(_tasks) >= TASKS:
            _tasks.pop(next(iter(_tasks)), None)
        _tasks[token] = task
    return evaluate(task, points)
