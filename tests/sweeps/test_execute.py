"""Every point is measured once, in chunks that follow from its cost, by whatever workers."""

import os
import pickle
import signal
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, SweepFailed
from fluidcc.sweeps import execute
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import evaluate, with_schema
from fluidcc.sweeps.execute import (
    CHUNK_SECONDS,
    MIN_CHUNKS,
    SENDING,
    Workers,
    seconds_in_a_chunk,
    timed,
)
from fluidcc.sweeps.store import versions
from fluidcc.sweeps.task import Piece, empty_piece


class Pickling:
    """An executor that gets what it is sent as bytes, and counts them."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def submit(self, function: Any, *args: Any) -> Future[Any]:
        data = pickle.dumps((function, args))
        self.sent.append(len(data))
        future: Future[Any] = Future()
        function, args = pickle.loads(data)
        future.set_result(function(*args))
        return future


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "chunk", "stored"),
    [("serial", 7, False), ("serial", None, True), ("threads", 7, True), ("threads", None, False),
     ("processes", 7, True), (None, 7, False), (None, None, True)],
)  # fmt: skip
def test_every_point_once(executor: Any, chunk: Any, stored: bool, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def measured(point: Any) -> float:
        with log.open("a") as file:
            file.write(f"{point['x']:g}\n")
        return 2.0 * float(point["x"])

    store: dict[str, Any] = {"store": tmp_path / "s"} if stored else {}
    grid = {"x": np.arange(40.0)}
    found = fc.sweep(measured, grid, executor=executor, workers=2, chunk=chunk, **store)
    assert found.value.values.tolist() == [2.0 * x for x in range(40)]
    seen = log.read_text().split()
    assert sorted(map(float, seen)) == [0, *range(40)], "the first one tells the form of results"


@pytest.mark.parametrize("workers", [1, 50, 2000])
@pytest.mark.parametrize("seconds", [0.3, 10.0, 1e3, 1e5])
def test_a_scheduler_keeps_up_with_a_long_sweep(seconds: float, workers: int) -> None:
    """Half of its time is for sending chunks, unless they would be too few for all to work."""
    here = seconds_in_a_chunk(seconds, workers)
    assert here == min(CHUNK_SECONDS, seconds / (MIN_CHUNKS * workers))
    there = seconds_in_a_chunk(seconds, workers, cluster=True)
    chunks = seconds / there
    assert there >= here
    few = chunks <= MIN_CHUNKS * workers * (1 + 1e-9)
    assert few or chunks * SENDING <= 0.51 * seconds / workers


def test_the_probe_times_a_block_of_points_after_the_first() -> None:
    """That one loads code, and so does another worker at the third: they take a second here. Later
    blocks take 20 ms and 1 ms a point.
    """
    calls: list[int] = []

    def measure(points: Any) -> Piece:
        calls.append(len(points))
        seconds = 2e-2 + 1e-3 * len(points) + (1.0 if len(calls) in (1, 3) else 0.0)
        return Piece({"a": np.asarray(points, dtype=float)}, seconds, fresh=len(calls) == 3)

    found = Piece({"a": np.zeros(5000)})
    count, cost = timed(measure, range(5000), range(100, 5000), found)
    assert count == sum(calls) < 5000
    assert calls[:2] == [1, 1]
    np.testing.assert_array_equal(found.values["a"][100 : 100 + count], np.arange(100, 100 + count))
    assert cost == pytest.approx(1e-3, rel=0.1)
    calls.clear()
    assert timed(measure, range(3), range(3), found)[0] == 3


def test_a_task_goes_out_small_with_points_as_a_range() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    worker: Any = Pickling()
    grid = {"beta": np.linspace(0.1, 0.2, 3000)}
    found = fc.sweep(net, grid, "equilibrium_rtt", executor=worker, chunk=1000)
    assert len(worker.sent) == 3
    assert max(worker.sent) < 60_000
    assert found.attrs["failed"] == 0


class Mortal:
    """An executor of one worker, which some points kill, as `concurrent.futures` tells it."""

    def __init__(self, deadly: set[float], made: list[Any]) -> None:
        self.deadly, self.dead = deadly, False
        made.append(self)

    def submit(self, function: Any, points: Any) -> Future[Any]:
        if self.dead:
            raise BrokenExecutor("it is gone")
        future: Future[Any] = Future()
        if self.deadly & {float(p) for p in points}:
            self.dead = True
            future.set_exception(BrokenExecutor("it has died"))
        else:
            future.set_result(function(points))
        return future


@pytest.mark.parametrize("chunk", [1, 3, 4, 16])
@pytest.mark.parametrize("deadly", [set(), {3.0}, {0.0, 9.0, 10.0}])
def test_points_that_kill_their_workers_fail_alone(deadly: set[float], chunk: int) -> None:
    task = with_schema(make_task(lambda p: p["x"], {"x": np.arange(16.0)}, None, None, None, {}))
    made: list[Any] = []
    workers = Workers(task, lambda: Mortal(deadly, made))
    found = empty_piece(task.schema, 16)
    jobs = [range(k, min(k + chunk, 16)) for k in range(0, 16, chunk)]
    assert {*workers.run(range(16), jobs, found)} == {*jobs}
    errors = dict(enumerate(found.values["error"]))
    assert {k for k, why in errors.items() if why} == deadly
    assert all("its worker died, " in errors[int(k)] for k in deadly)
    assert [float(x) for x in found.values["value"] if x == x] == sorted({*range(16)} - deadly)
    assert len(made) <= 1 + len(deadly) * (2 + np.log2(chunk))


@pytest.mark.slow
def test_a_point_that_kills_its_process_fails_alone() -> None:
    """In a process of joblib: it dies of two points together, and of one alone."""

    def measured(point: Any) -> float:
        if point["x"] == 1.0 and os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(point["x"])

    home = os.getpid()
    with pytest.warns(FluidccWarning, match="1 of 3 points failed"):
        ds = fc.sweep(measured, {"x": np.arange(3.0)}, executor="processes", workers=1, chunk=2)
    assert ds.attrs["failed"] == 1
    assert "its worker died, 2 times" in ds.error.values[1]
    assert ds.value.values[[0, 2]].tolist() == [0, 2]


# --- clusters -------------------------------------------------------------------------------------


def squared(point: Any) -> float:
    return float(point["x"]) ** 2


class Client:
    """What a sweep asks of a Dask client; some of its workers lack the package."""

    scheduler_info, scheduler = None, SimpleNamespace(address="tcp://here:1")

    def __init__(self, workers: str, lacking: str = "", status: str = "running") -> None:
        self.workers, self.lacking, self.status = workers, lacking, status

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def get_executor(self, pure: bool) -> Any:
        return Pickling()

    def run(self, asked: Any, on_error: str) -> dict[str, bool]:
        return {name: asked() or name in self.lacking for name in self.workers}


def test_a_cluster_must_be_there_and_have_fluidcc() -> None:
    how: Any = {"x": [1.0, 3.0]}
    assert fc.sweep(squared, how, executor=Client("abc")).value.values.tolist() == [1.0, 9.0]
    for client, says in (
        (Client(""), "tcp://here:1 has no workers; start dask worker"),
        (Client("a", status="closed"), "not connected to a scheduler; make a new"),
        (Client("abc", "ca"), "Dask worker a cannot import fluidcc, nor can 1 more; install it"),
    ):
        with pytest.raises(InvalidInput, match=says):
            fc.sweep(squared, how, executor=client)


def test_workers_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = with_schema(make_task(squared, {"x": [1.0]}, None, None, None, {}))
    workers = Workers(task, Pickling, apart=True)
    monkeypatch.setattr(execute, "versions", lambda: {**versions(), "NumPy": "99.0"})
    with pytest.raises(InvalidInput, match=r"a worker on .* has NumPy 99.0, and the sweep"):
        workers.one(range(1))


def test_when_the_scheduler_of_a_cluster_is_gone_the_sweep_ends() -> None:
    """Dask then cancels what it was to do."""

    class Executor:
        def submit(self, function: Any, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    task = with_schema(make_task(squared, {"x": [2.0]}, None, None, None, {}))
    workers = Workers(task, Executor, apart=True, client=Client("a", status="connecting"))
    with pytest.raises(SweepFailed, match="the Dask scheduler is gone"):
        list(workers.run(range(1), [range(1)], empty_piece(task.schema, 1)))


def test_a_sweep_that_waits_for_the_workers_of_a_cluster_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execute, "PATIENCE", 0.05)
    task = with_schema(make_task(squared, {"x": [2.0]}, None, None, None, {}))

    class Executor:
        def submit(self, function: Any, *args: Any) -> Future[Any]:
            late: Future[Any] = Future()
            Timer(0.3, lambda: late.set_result(evaluate(task, *args))).start()
            return late

    workers, found = Workers(task, Executor, client=Client("")), empty_piece(task.schema, 1)
    with pytest.warns(FluidccWarning, match="has no workers now"):
        list(workers.run(range(1), [range(1)], found))
    assert found.values["value"].tolist() == [4.0]
