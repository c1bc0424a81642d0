"""A task is sent to workers once: with every job if it is small, and to those that ask for it if it is large."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.sweeps import work
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.jobs import Jobs
from fluidcc.sweeps.pool import Pool


class Pickling:
    """A worker that gets what it is sent as bytes, and counts them."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def submit(self, function: Any, *args: Any) -> Future[Any]:
        data = pickle.dumps((function, args))
        self.sent.append(len(data))
        future: Future[Any] = Future()
        function, args = pickle.loads(data)
        future.set_result(function(*args))
        return future


def test_a_large_task_goes_out_once() -> None:
    table = np.random.default_rng(1).normal(size=20_000)
    task = make_task(lambda p: float(table[int(p["x"])]), {"x": range(200)}, None, None, None, {}).probed()
    worker = Pickling()
    with Pool(lambda: worker, 1, end=False, apart=True) as pool:
        found = list(pool.run(task, Jobs(range(200), 10, fixed=True)))
    assert sum(size > table.nbytes for size in worker.sent) <= 2, "to a worker that has not got it, once or twice"
    assert sum(size < 2000 for size in worker.sent) >= 20
    values = np.concatenate([piece.values["value"] for _, piece in sorted(found, key=lambda one: one[0])])
    np.testing.assert_array_equal(values, table[:200])


def test_small_tasks_go_out_with_each_job_and_points_as_a_range() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "3 Mbit/s"}, rtt="50 ms")
    task = make_task(net, {"beta": np.linspace(0.1, 0.2, 3000)}, "equilibrium_rtt", None, None, {}).probed()
    worker = Pickling()
    with Pool(lambda: worker, 1, end=False, apart=True) as pool:
        found = list(pool.run(task, Jobs(range(3000), 1000, fixed=True)))
    assert len(worker.sent) == 3
    assert max(worker.sent) < work.LIGHT + 3000
    assert sum(len(piece) for _, piece in found) == 3000


def test_a_worker_keeps_few_tasks() -> None:
    for k in range(3 * work.TASKS):
        task = make_task(lambda p, k=k: p["x"] + k, {"x": [1.0]}, None, None, None, {}).probed()
        piece = work.Sent(task).whole(range(1))
        assert piece is not None
        assert piece.values["value"].tolist() == [1.0 + k]
    assert len(work._tasks) <= work.TASKS
    assert work._evaluate("unknown", None, None, range(1)) is None
