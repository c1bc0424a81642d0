"""Where jobs are computed: here, in threads, in processes, or on a cluster; all of them `concurrent.futures` pools.

Processes are joblib's loky, which sends functions of notebooks and lambdas too. A Dask client is used through its own
`get_executor`; the scheduler gives the work of a worker that dies to another. Any other pool with ``submit`` will do.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, Self
from weakref import WeakKeyDictionary

from fluidcc.base.arguments import shown, whole
from fluidcc.base.errors import FluidccWarning, InvalidInput, SweepFailed
from fluidcc.sweeps.chunk import Piece, empty_piece
from fluidcc.sweeps.jobs import Job, Jobs
from fluidcc.sweeps.task import Task
from fluidcc.sweeps.work import Near, Sent

__all__ = ["Pool", "cores", "make_pool"]

AHEAD = 2  # jobs in flight for each worker, once it is known what is left: one that runs, and one for when it ends
LIVES = 2  # workers that a job may take with it before it is split, and a single point before it is given up
_asked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # workers by client that can import fluidcc
MOST_WORKERS = 10_000  # more threads or processes than any machine has room for
PATIENCE = 10.0  # seconds without a result after which it is asked whether a cluster is still there


class Pool:
    """Workers behind one call; as a context, they are let go at its end.

    Parameters
    ----------
    make : callable
        Makes the executor; called again when a worker's death has broken it.
    workers : int
    end : bool
        Whether to shut the executor down at the end.
    lost : tuple of exception types
        What a future raises when its worker has died.
    apart : bool
        Whether workers are other processes: the task is then sent as bytes, and read once by each.
    ahead : int
        Jobs in flight for each worker.
    present : callable, optional
        Number of workers that are there now, of a cluster; None when its scheduler is gone.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        workers: int,
        *,
        end: bool,
        lost: tuple[type[BaseException], ...] = (),
        apart: bool = False,
        ahead: int = AHEAD,
        present: Callable[[], int | None] | None = None,
    ) -> None:
        self._apart = apart
        self._make = make
        self._executor: Any = None
        self._pending: list[Future[Any]] = []
        self.workers = workers
        self._end = end
        self._stop = Event()
        self._lost: tuple[type[BaseException], ...] = (BrokenExecutor, *lost)
        self._ahead = ahead
        self._present = present

    @property
    def cluster(self) -> bool:
        """Whether the workers are a cluster's, with one scheduler."""
        return self._present is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        if about[0] is not None:
            self._stop.set()
        for future in self._pending:
            future.cancel()
        if self._end and self._executor is not None:
            self._executor.shutdown(wait=not self._stop.is_set())

    def run(self, task: Task, jobs: Jobs) -> Iterator[tuple[int, Piece]]:
        """Results of the jobs, by where their points begin, as they come."""
        self._executor = self._executor or self._make()
        work = Sent(task) if self._apart else Near(task, self._stop)
        running: dict[Future[Piece | None], tuple[Job, int]] = {}
        ended: SimpleQueue[Future[Piece | None]] = SimpleQueue()  # a look at all would cost more, the more workers
        again: list[tuple[Job | None, int, Callable[..., Any]]] = []
        try:
            while True:
                while len(running) < self.workers * (1 if jobs.timed else self._ahead):
                    one, deaths, call = again.pop() if again else (next(jobs, None), 0, work.usual)
                    if one is None:
                        break
                    if deaths >= LIVES:
                        jobs.give_up(one)
                        yield one.first, self._alone(task, one)
                        continue
                    try:
                        future = self._executor.submit(call, one.points, one.seconds)
                    except BrokenExecutor:
                        again.append((one, deaths, call))
                        self._executor = self._make()
                        continue
                    running[future] = (one, deaths)
                    future.add_done_callback(ended.put)
                if not running:
                    return
                future = self._next(ended)
                one, deaths = running.pop(future)
                try:
                    piece = future.result()
                except self._lost:
                    self._still_there()
                    again.append((one, deaths + 1, work.whole))
                    continue
                if piece is None:
                    again.append((one, deaths, work.whole))
                    continue
                jobs.learn(one, piece)
                yield one.first, piece
        finally:
            self._pending += running

    def _next(self, ended: SimpleQueue[Future[Piece | None]]) -> Future[Piece | None]:
        """The next future that ends. While none does, see whether the cluster is still there."""
        warned = False
        while True:
            try:
                return ended.get(timeout=PATIENCE if self._present else None)
            except Empty:
                if self._still_there() == 0 and not warned:
                    text = "the Dask cluster has no workers now; the sweep waits until one is started (dask worker)"
                    warnings.warn(text, FluidccWarning, stacklevel=2)
                    warned = True

    def _still_there(self) -> int:
        """Number of workers, or 1 where that is no question."""
        count = 1 if self._present is None else self._present()
        if count is None:
            raise SweepFailed(
                "the Dask scheduler is gone; start it and its workers again, and repeat the call (with store= it goes "
                "on where it was)"
            )
        return count

    def _alone(self, task: Task, job: Job) -> Piece:
        """A job that loses its workers, point by point, each in a worker of its own."""
        piece, work = empty_piece(task.schema, len(job.points)), Sent(task) if self._apart else Near(task, self._stop)
        for row in range(len(job.points)):
            for life in range(LIVES):
                executor = self._make()
                try:
                    one = executor.submit(work.whole, job.points[row : row + 1]).result()
                except self._lost as error:
                    if life == LIVES - 1:
                        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                        piece.errors[row] = f"its worker died, {LIVES} times ({said})"
                    continue
                piece.put(row, one)
                break
        return piece


class _Here:
    """The calling thread as an executor."""

    def submit(self, function: Callable[..., Piece], *args: Any) -> Future[Piece]:
        future: Future[Piece] = Future()
        future.set_result(function(*args))
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Nothing to end."""


def make_pool(executor: Any, workers: int | None, threads: bool, small: bool) -> Pool:
    """The pool meant by the argument `executor` of a sweep.

    Parameters
    ----------
    threads : bool
        Whether the work releases the GIL, so that threads do it best.
    small : bool
        Whether the work is too little for workers.

    Raises
    ------
    InvalidInput
        If it is not one.
    """
    if workers is not None:
        workers = whole(workers, "workers", least=1, most=MOST_WORKERS)
    if executor is None:
        executor = "serial" if small or workers == 1 else "threads" if threads else "processes"
    if isinstance(executor, str):
        return _local(executor, workers)
    if hasattr(executor, "get_executor") and hasattr(executor, "scheduler_info"):
        return _cluster(executor, workers)
    if not callable(getattr(executor, "submit", None)):
        raise InvalidInput(
            f"executor is {shown(executor)}; give 'serial', 'threads', 'processes', a Dask client, or an executor of "
            "concurrent.futures"
        )
    return Pool(lambda: executor, workers or cores(), end=False, apart=not isinstance(executor, ThreadPoolExecutor))


def _cluster(client: Any, workers: int | None) -> Pool:
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
            f"executor is {client!r}, which is not connected to a scheduler; make a new distributed.Client"
        )
    if not there:
        raise InvalidInput(f"the Dask client {client.scheduler.address} has no workers; start dask worker first")
    _require_fluidcc(client)
    lost = (KilledWorker, FutureCancelledError, CancelledError, CommClosedError)
    return Pool(
        lambda: client.get_executor(pure=False),
        workers or there,
        end=False,
        lost=lost,
        apart=True,
        present=present,
    )


def _require_fluidcc(client: Any) -> None:
    """Ask workers that have not been asked yet: one that lacks the package would die of the first job it gets."""
    new = set(client.nthreads()) - _asked.setdefault(client, set())
    if not new:
        return

    def lacks_fluidcc() -> bool:  # inside, so that it goes out as it is, and not by the name of a module of fluidcc
        from importlib.util import find_spec

        return find_spec("fluidcc") is None

    answers = client.run(lacks_fluidcc, workers=sorted(new), on_error="return")
    without = sorted(worker for worker, answer in answers.items() if answer is True)
    if without:
        raise InvalidInput(
            f"Dask worker {without[0]} cannot import fluidcc"
            f"{f', nor can {len(without) - 1} more' if without[1:] else ''}; install it for the Python that "
            "'dask worker' runs with, and start the workers again"
        )
    _asked[client] |= new


def _local(name: str, workers: int | None) -> Pool:
    count = workers or cores()
    if name == "serial":
        return Pool(_Here, 1, end=True, ahead=1)  # what is finished is kept at once
    if name == "threads":
        return Pool(lambda: ThreadPoolExecutor(count, thread_name_prefix="fluidcc-sweep"), count, end=True)
    if name == "processes":
        from joblib.externals.loky import get_reusable_executor

        return Pool(
            lambda: get_reusable_executor(max_workers=count, timeout=60, kill_workers=False),
            count,
            end=False,
            apart=True,
        )
    client = f", here distributed.Client({name!r})" if "://" in name else ""
    raise InvalidInput(f"executor is {shown(name)}; give 'serial', 'threads', 'processes' or a Dask client{client}")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
