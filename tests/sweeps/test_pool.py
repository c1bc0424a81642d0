"""How jobs are handed to workers."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.jobs import Jobs
from fluidcc.sweeps.pool import Pool


def test_nothing_is_sent_ahead_until_it_is_known_what_is_left() -> None:
    """First jobs give points back when their time is over; only then has each worker a job that waits for it."""

    def measured(point: Any) -> float:
        time.sleep(1e-3)
        return float(point["x"])

    class Executor(ThreadPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **more: Any) -> Future[Any]:
            future = super().submit(function, *args, **more)
            out[future] = args[1] < math.inf
            future.add_done_callback(out.pop)
            seen.append((len(out), any(out.values())))
            return future

    out: dict[Future[Any], bool] = {}  # whether they end by time
    seen: list[tuple[int, bool]] = []
    task = make_task(measured, {"x": np.arange(1000.0)}, None, None, None, {}).probed()
    with Executor(2) as executor:
        found = dict(Pool(lambda: executor, 2, end=False).run(task, Jobs(range(1000), 1000, workers=2)))
    assert sum(len(piece) for piece in found.values()) == 1000
    assert seen[0] == (1, True)
    assert max(count for count, timed in seen if timed) == 2
    assert max(count for count, _ in seen) == 4
