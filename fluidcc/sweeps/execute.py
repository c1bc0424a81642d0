"""Measuring the points of a sweep: the first ones here, timed, then chunks of one size by workers.

What the first points take tells what a point costs. A chunk then takes half a second or more,
unless there would be fewer than four for each worker. Workers are executors of
`concurrent.futures`: threads for compiled work, which releases the GIL; processes of joblib's loky,
which sends functions of notebooks too; the executor of a Dask client, which gives the work of a
worker that has died to another; or any other with ``submit``.
"""

from __future__ import annotations

import math
import os
import pickle
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from fluidcc.base.arguments import flag, shown, whole
from fluidcc.base.errors import InvalidInput, SweepFailed, warn
from fluidcc.base.extras import installed, need
from fluidcc.base.files import check_local
from fluidcc.base.progress import Progress, unless
from fluidcc.sweeps.evaluate import evaluate, found_together, with_schema
from fluidcc.sweeps.store import Store, identity, versions
from fluidcc.sweeps.task import Piece, Points, Task, empty_piece, reason

# settings that leave more of the cores to a sweep
DASK_CONFIG = Path(__file__).with_name("dask.yaml")
SLOW_POINT = 20.0  # seconds beyond which a first point tells its cost: compiling takes less
WORTH_WORKERS = 1.0  # seconds of work in all that are worth starting workers
WORTH_PROCESSES = 20.0  # and processes for what threads do too, if less well
CHUNK_SECONDS = 0.5  # of work: sending a chunk costs little, and little is lost with it
MIN_CHUNKS = 4  # for each worker
# seconds that a chunk costs the scheduler of a cluster, half of whose time is for that
SENDING = 5e-3
PATIENCE = 10.0  # seconds without a result after which it is asked whether a cluster has workers
CHUNKS_AHEAD = 2  # sent to each worker: one that runs, and one for when it ends
MOST_DEATHS = 2  # of workers that had a point: then it has failed
MOST_TASKS = 4  # that a worker keeps
MOST_WORKERS = 10_000  # more threads or processes than any machine has room for
BAR = (
    "{l_bar}{bar}| {n:.0f} of {total:.0f} points "
    "[{rate_noinv_fmt}, {elapsed} elapsed, {remaining} to go]"
)
# what a future raises when its worker has died; Dask's are named, since it need not be there
LOST = {"BrokenExecutor", "KilledWorker", "FutureCancelledError", "CancelledError",
        "CommClosedError"}  # fmt: skip


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

    Raises
    ------
    SweepFailed
        If none of the first part's points can be measured.
    """
    kept, first = None, not task.schema
    if how.store is not None:
        chosen = None if len(points) == task.grid.size else np.asarray(points)
        kept = Store(Path(how.store) / folder, identity(task, chosen))
    with nullcontext() if kept is None else closing(kept):
        if kept is not None and kept.header is not None:
            task = replace(task, schema=kept.header.schema)
            found, done = kept.read()
        else:
            task = with_schema(task) if first else task
            found, done = empty_piece(task.schema, len(points)), set()
        _compute(task, how, points, found, done, kept)
    if first:
        _require_one(found)
    return task, found


def _compute(
    task: Task, how: Execution, points: Points, found: Piece, done: set[int], kept: Store | None
) -> None:
    """Put the results of all chunks but those that are done into `found`, and into the store."""
    size, begun = len(points), kept is not None and kept.header is not None
    chunk = kept.header.chunk if kept is not None and kept.header is not None else how.chunk or 0
    jobs = [job for n, job in enumerate(_jobs(size, chunk or size)) if n not in done]
    if not jobs:
        return
    left = sum(map(len, jobs))
    bar = Progress(size, how.progress, about="sweep", form=BAR, unit="points", start=size - left)
    with bar, ExitStack() as stack:
        workers, cost = stack.enter_context(make_workers(how.executor or "serial", how, task)), 0.0
        if how.executor is None or not chunk:
            count, cost = timed(workers.one, points, jobs[0], found)
            if not begun and found.part(0, count).nothing():
                _require_one(workers.one(np.array(task.probes())))
            jobs[0] = jobs[0][count:]
            left -= count
            bar.reach(size - left)
        if how.executor is None and how.workers != 1 and cost * left >= WORTH_WORKERS:
            workers = stack.enter_context(make_workers(best_executor(task, cost * left), how, task))
        if not chunk:
            span = seconds_in_a_chunk(cost * left, workers.count, workers.client is not None)
            chunk = max(size - left, math.ceil(span / cost))
            jobs = [range(max(job.start, size - left), job.stop) for job in _jobs(size, chunk)]
        if kept is not None and not begun:
            kept.begin(task.schema, size, chunk)
        for job in workers.run(points, jobs, found):
            if kept is not None:
                n = (job.stop - 1) // chunk
                kept.write(n, found.part(n * chunk, job.stop))
            left -= len(job)
            bar.reach(size - left)


def best_executor(task: Task, seconds: float) -> str:
    """Return where so many seconds of work are done best: in threads where all is compiled, and
    in processes what holds the GIL, as a third of each run does.
    """
    together = found_together(task)
    runs = any(m.kind == "trajectory" for m in task.measures)
    apart = installed("joblib", "cloudpickle") and seconds >= (WORTH_PROCESSES if together else 0)
    if apart and not (together and not runs):
        return "processes"
    return "threads" if together else "serial"


def _jobs(size: int, chunk: int) -> list[range]:
    """The rows of each chunk."""
    return [range(first, min(first + chunk, size)) for first in range(0, size, chunk)]


def _require_one(piece: Piece) -> None:
    if piece.nothing():
        raise SweepFailed(
            f"none of {len(piece)} points could be measured; the first says: "
            f"{piece.values['error'][0]}"
        )


def timed(
    measure: Callable[[Points], Piece], points: Points, rows: range, found: Piece
) -> tuple[int, float]:
    """Put results of the first of some rows into `found`, and time them.

    Blocks of points grow until one takes as long as a chunk should: a part of what a small one
    takes does not depend on its size. What a worker does first does not count, since it may load
    and compile code.

    Returns
    -------
    count : int
        How many points these are.
    cost : float
        Seconds that a point takes.
    """
    count, size = 0, 1
    while True:
        block = rows[count : count + size]
        piece = measure(points[block.start : block.stop])
        found.put(block, piece)
        begins = piece.fresh or not count
        count += len(block)
        if count == len(rows) or piece.seconds >= (SLOW_POINT if begins else CHUNK_SECONDS):
            return count, max(piece.seconds / len(block), 1e-9)
        size *= 1 if begins else 4


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
    span = max(CHUNK_SECONDS, 2 * SENDING * workers if cluster else 0.0)
    return min(span, seconds / (MIN_CHUNKS * workers))


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
    client : optional
        Of Dask, where they are those of a cluster.
    """

    task: Task
    make: Callable[[], Any] | None = None
    count: int = 1
    own: bool = False
    apart: bool = False
    client: Any = None

    def __post_init__(self) -> None:
        self._executor: Any = None
        self._out: dict[Future[Piece], range] = {}
        self._stop = Event()
        self._work: Callable[[Points], Piece] = partial(unless, self._stop, evaluate, self.task)
        if self.apart:
            cloudpickle = need("cloudpickle", "cluster", "a sweep in other processes")
            self._work = partial(
                _evaluated, cloudpickle.dumps(self.task), tuple(versions().items())
            )

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
        return evaluate(self.task, points) if self.make is None else self._piece(points)

    def run(self, points: Points, jobs: Sequence[range], found: Piece) -> Iterator[range]:
        """Put the results of jobs, which are rows of the points, into `found`; give each job when
        it is done.
        """
        yield from (job for job in jobs if not job)  # nothing is left of it
        left = iter([job for job in jobs if job])
        if self.make is None:
            for job in left:
                found.put(job, self.one(points[job.start : job.stop]))
                yield job
            return
        while True:
            for job in islice(left, CHUNKS_AHEAD * self.count - len(self._out)):
                self._out[self._submit(points[job.start : job.stop])] = job
            if not self._out:
                return
            future = self._next()
            job = self._out.pop(future)
            found.put(job, self._piece(points[job.start : job.stop], future))
            yield job

    def _next(self) -> Future[Piece]:
        """The next future that ends; a cluster that has lost its workers meanwhile is told of."""
        said = self.client is None
        while not (ended := wait(self._out, None if said else PATIENCE, FIRST_COMPLETED).done):
            if self.client.status == "running" and not self.client.nthreads():
                said = True
                warn("the Dask cluster has no workers now; the sweep waits until one is started")
        return ended.pop()

    def _submit(self, points: Points) -> Future[Piece]:
        assert self.make is not None
        self._executor = self._executor or self.make()
        try:
            return self._executor.submit(self._work, points)
        except BrokenExecutor:
            self._executor = self.make()
            return self._executor.submit(self._work, points)

    def _piece(self, points: Points, future: Future[Piece] | None = None, deaths: int = 0) -> Piece:
        """Results of points. If their worker dies, other ones get a half each, down to the point
        that it dies of.
        """
        try:
            return (future or self._submit(points)).result()
        except BaseException as error:
            if not any(kind.__name__ in LOST for kind in type(error).__mro__):
                raise
            why = reason(error)
        if self.client is not None and self.client.status != "running":
            raise SweepFailed(
                "the Dask scheduler is gone; start it and its workers again, and repeat the call "
                "(with store= it resumes)"
            )
        count, deaths = len(points), deaths + 1
        piece = empty_piece(self.task.schema, count)
        if count == 1 and deaths >= MOST_DEATHS:
            piece.fail(0, {"": f"its worker died, {deaths} times ({why})"})
            return piece
        for rows in _jobs(count, math.ceil(count / 2)):
            piece.put(rows, self._piece(points[rows.start : rows.stop], None, deaths))
        return piece


def make_workers(executor: Any, how: Execution, task: Task) -> Workers:
    """Return the workers that an executor, as `sweep` takes it, and a number of them mean.

    Raises
    ------
    InvalidInput
        If they are none.
    """
    count = how.workers or cores()
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
        make = partial(executor.get_executor, pure=False)
        return Workers(task, make, how.workers or _checked(executor), apart=True, client=executor)
    if not callable(getattr(executor, "submit", None)):
        text = isinstance(executor, str)
        client = f", here distributed.Client({executor!r})" if text and "://" in executor else ""
        raise InvalidInput(
            f"executor is {shown(executor)}; give 'serial', 'threads', 'processes', an executor of "
            f"concurrent.futures or a Dask client{client}"
        )
    apart = not isinstance(executor, ThreadPoolExecutor)
    return Workers(task, lambda: executor, count, apart=apart)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _checked(client: Any) -> int:
    """Number of workers of a Dask client's cluster, each of which can import fluidcc: one that
    cannot would die of its first chunk.

    Raises
    ------
    InvalidInput
        If there are none, or one cannot.
    """
    if client.status != "running":
        raise InvalidInput(
            f"executor is {client!r}, which is not connected to a scheduler; make a new "
            "distributed.Client"
        )

    # inside, so that it is sent as it is, and not by its module's name
    def lacks_fluidcc() -> bool:
        from importlib.util import find_spec

        return find_spec("fluidcc") is None

    answers = client.run(lacks_fluidcc, on_error="return")
    if not answers:
        raise InvalidInput(
            f"the Dask client {client.scheduler.address} has no workers; start dask worker first"
        )
    without = sorted(worker for worker, answer in answers.items() if answer is True)
    if without:
        raise InvalidInput(
            f"Dask worker {without[0]} cannot import "
            f"fluidcc{f', nor can {len(without) - 1} more' if without[1:] else ''}; install it for "
            "the Python that 'dask worker' runs with, and start the workers again"
        )
    return sum(client.nthreads().values())


# --- in other processes ---------------------------------------------------------------------------


def _evaluated(pickled: bytes, wanted: tuple[tuple[str, str], ...], points: Points) -> Piece:
    """Results of some points, in a worker."""
    read = _read.cache_info().misses
    piece = evaluate(_read(pickled, wanted), points)
    piece.fresh = _read.cache_info().misses > read
    return piece


@lru_cache(MOST_TASKS)  # reading takes milliseconds
def _read(pickled: bytes, wanted: tuple[tuple[str, str], ...]) -> Task:
    """The task that was sent to this worker.

    Raises
    ------
    InvalidInput
        If this worker has other versions than the sweep, with which results may differ.
    """
    here = versions()
    for what in [k for k, v in wanted if here[k] != v and k != "processor"]:
        raise InvalidInput(
            f"a worker on {platform.node()} has {what} {here[what]}, and the sweep "
            f"{dict(wanted)[what]}, with which results may differ; install the same on all "
            "machines and start the workers again"
        )
    task: Task = pickle.loads(pickled)
    return task
