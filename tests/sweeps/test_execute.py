"""Every point is measured once, in chunks that follow from its cost, by whatever workers."""

import pickle
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.sweeps import execute
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import probed
from fluidcc.sweeps.execute import FEWEST, SENDING, SPAN, Workers, _probe, seconds_in_a_chunk
from fluidcc.sweeps.task import Piece


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
@pytest.mark.parametrize("executor", ["serial", "threads", "processes", None])
@pytest.mark.parametrize("chunk", [7, None])
@pytest.mark.parametrize("stored", [False, True])
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
    assert here == min(SPAN, seconds / (FEWEST * workers))
    there = seconds_in_a_chunk(seconds, workers, cluster=True)
    chunks = seconds / there
    assert there >= here
    assert chunks <= FEWEST * workers * (1 + 1e-9) or chunks * SENDING <= 0.51 * seconds / workers


def test_the_probe_times_a_block_of_points_after_the_first() -> None:
    """That one loads code: it takes a second here. Later blocks take 2 ms and 0.1 ms a point."""
    calls: list[int] = []

    def measure(points: Any) -> Piece:
        calls.append(len(points))
        seconds = 2e-3 + 1e-4 * len(points) + (1.0 if len(calls) == 1 else 0.0)
        return Piece({"a": np.asarray(points, dtype=float)}, seconds=seconds)

    found = Piece({"a": np.zeros(5000)})
    count, cost = _probe(measure, range(100, 5000), found, 100)
    assert count == sum(calls) < 5000
    assert calls[:2] == [1, 1]
    np.testing.assert_array_equal(found.values["a"][100 : 100 + count], np.arange(100, 100 + count))
    assert cost == pytest.approx(1e-4, rel=0.1)
    calls.clear()
    assert _probe(measure, range(3), found, 0)[0] == 3


def test_a_task_goes_out_small_with_points_as_a_range() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    worker: Any = Pickling()
    grid = {"beta": np.linspace(0.1, 0.2, 3000)}
    found = fc.sweep(net, grid, "equilibrium_rtt", executor=worker, chunk=1000)
    assert len(worker.sent) == 3
    assert max(worker.sent) < 60_000
    assert found.attrs["failed"] == 0


def test_a_worker_keeps_few_tasks() -> None:
    for k in range(3 * execute.TASKS):
        task = probed(make_task(lambda p, k=k: p["x"] + k, {"x": [1.0]}, None, None, None, {}))
        worker: Any = Pickling()
        piece = Workers(task, lambda of=worker: of, apart=True).one(range(1))  # type: ignore[misc]
        assert piece.values["value"].tolist() == [1.0 + k]
    assert len(execute._tasks) <= execute.TASKS
