"""As many points as can be measured in some seconds, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.chunk import Piece, Variable
from fluidcc.sweeps.jobs import Jobs
from fluidcc.sweeps.pace import STEEP, Pace
from fluidcc.sweeps.timed import timed


def worker(takes: Callable[[np.ndarray], float | tuple[float, float]]) -> Callable[[range, float], Piece]:
    """A worker that measures what points it can in some seconds; `takes` says what a call takes, and of that once."""

    def measure(points: Any) -> Piece:
        seconds = takes(points)
        return Piece({"value": np.zeros(len(points))}, {}, *(seconds if isinstance(seconds, tuple) else (seconds,)))

    pace = Pace()
    return lambda points, seconds: timed(measure, {"value": Variable("float64")}, np.array(points), seconds, pace)


def test_a_job_ends_by_time_and_nothing_is_measured_twice() -> None:
    seen: list[float] = []

    def measured(point: Any) -> float:
        seen.append(point["x"])
        time.sleep(2e-3)
        return float(point["x"])

    task = make_task(measured, {"x": np.arange(1000.0)}, None, None, None, {}).probed()
    del seen[:]
    piece = task.evaluate(range(10, 1000), 0.05)
    count = len(piece)
    assert 1 <= count <= 30, "sleeping takes as long as it is told, or longer"
    assert seen == list(range(10, 10 + count))
    assert piece.values["value"].tolist() == seen
    assert 2e-3 / STEEP <= piece.each <= piece.seconds, "a slope between two calls, which may differ by chance"
    assert piece.seconds >= 2e-3 * count
    assert len(task.evaluate(range(5), 60.0)) == 5


@pytest.mark.parametrize(("size", "measured"), [(150, 150), (245, 245), (300, 200)])
def test_a_job_that_is_nearly_through_in_time_ends_all_of_its_points(size: int, measured: int) -> None:
    """What little is left would take a job of its own."""
    job = worker(lambda points: 1e-3 * len(points))
    job(range(500, 1000), 0.2)
    assert len(job(range(size), 0.2)) == pytest.approx(measured, abs=1)


def test_what_a_call_costs_is_told_from_what_its_points_do() -> None:
    """A call that takes 20 ms whatever its points looks dear at first; jobs must not be made small by it."""
    call, each = 20e-3, 0.2e-3
    piece = worker(lambda points: call + each * len(points))(range(1000), 0.05)
    assert piece.each == pytest.approx(each, rel=1e-6)
    assert piece.call == pytest.approx(call, rel=1e-6)
    assert piece.seconds < 0.05 + 2 * call, "the first call does not count, and the last may end late by one"
    jobs = Jobs(range(1000), 1000, workers=2, cluster=True)
    jobs.learn(next(jobs), piece)
    for job in jobs:
        assert each * len(job.points) > 3 * call or job.first + len(job.points) == 1000


def test_what_a_job_has_told_goes_for_the_next_one_of_a_worker() -> None:
    """It begins with as many points as fit, rather than with one."""
    calls: list[int] = []

    def takes(points: Any) -> float:
        calls.append(len(points))
        return 1e-3 * len(points)

    job = worker(takes)
    job(range(500), 0.2)
    assert calls[0] == 1
    del calls[:]
    assert len(job(range(500, 1000), 0.2)) == pytest.approx(200, abs=1)
    assert calls[0] >= 199


def test_a_job_measures_one_point_at_least() -> None:
    """Also where it is known that a call takes longer than it may."""
    job = worker(lambda points: 1.0 + 1e-3 * len(points))
    first = len(job(range(500), 0.2))
    assert first >= 1
    assert len(job(range(first, 500), 0.2)) >= 1


def test_what_is_made_once_is_no_cost_of_a_point() -> None:
    """Workspaces of a few places, which all points share, take longer than the points that are measured first."""
    made, each = 20e-3, 0.1e-3
    there: set[int] = set()

    def takes(points: Any) -> tuple[float, float]:
        places = {p % 20 for p in points.tolist()}
        once = made * len(places - there)
        there.update(places)
        return once + each * len(points), once

    piece = worker(takes)(range(1000), 0.2)
    assert len(piece) == 1000
    assert piece.once == pytest.approx(20 * made)
    assert piece.each == pytest.approx(each)


def test_workspaces_are_made_once() -> None:
    """Those of delays, of which there are few; of points that have each one of their own they are a cost."""
    net = fc.dumbbell([fc.LDCC], {"capacity": "2 Mbit/s"}, rtt="50 ms")
    few = {"return_delay": [0.02, 0.03], "w": np.linspace(1e4, 2e4, 30)}
    for grid, once in ((few, True), ({"return_delay": np.linspace(0.02, 0.05, 30)}, False)):
        task = make_task(net, grid, "mean_rate", 1.0, None, {}).probed()
        task.evaluate(range(1))
        assert (task.evaluate(range(1, 40 if once else 10)).once > 0.0) is once


def test_loading_code_is_no_cost_of_a_point() -> None:
    """The first point of a job that ends by time takes longer than that, and another one follows it."""
    first = [0.1, 0.1]  # that of the form of the results too

    def measured(point: Any) -> float:
        time.sleep(first.pop() if first else 1e-3)
        return 1.0

    piece = make_task(measured, {"x": range(90)}, None, None, None, {}).probed().evaluate(range(90), 0.01)
    assert len(piece) > 1
    assert 1e-3 <= piece.each < 0.1
