"""Two Dask workers against one, and one against this process, on sweeps of 10^4 points.

A machine's speed wanders by more than what is looked for, so that the ways are tried in turn, many
times, and each round gives ratios of its own; the medians are what counts, and their quartiles say
how much they wander. In each round both worker processes also run the whole sweep at once, each by
itself: that is what the cores can give, without Dask.

What keeps two workers from being twice one, besides the cores: the probe, of 0.1 s by one worker;
each worker prepares the task for itself; after its first chunk a worker waits 6 to 12 ms for the
next, and from then on 1 to 4 ms; at the end one waits for the other. The scheduler and the client,
which share the two cores with the workers here, take what `job` says for a chunk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time, sleep
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from benchmarks.networks import as_network, delays
from benchmarks.reference.cases import P1
from benchmarks.speed import Row, Skipped
from benchmarks.sweep import GRID, MARGINS, MEASURES, THREE, three_flows
from fluidcc.sweeps.execute import DASK_CONFIG

__all__ = ["CASES", "cluster", "job"]

ROUNDS, FEWEST = 5, 3  # rounds at least, and at least where they are long
SECONDS = 60.0  # in which more rounds are begun, and from which one is long
WORTHWHILE = 2.0  # seconds of work from which two workers are asked to be worth it
JOBS = 300


def _p1(until: float, executor: Any) -> Any:
    return fc.sweep(
        as_network(P1), GRID, MEASURES, until=until, delays=delays(P1), executor=executor
    )


def _margins(executor: Any) -> Any:
    return fc.sweep(three_flows(), THREE, [*MARGINS, "stable", "rightmost_root"], executor=executor)


def _own(executor: Any) -> Any:
    return fc.sweep(three_flows(), THREE, _round_trips, executor=executor)


def _dear(executor: Any) -> Any:
    return fc.sweep(three_flows(), THREE, _decay_rate, executor=executor)


def _decay_rate(point: Any) -> float:
    """What a user's own measure may ask for at a point, one by one: here a whole verdict, of
    some milliseconds.
    """
    return float(point.stability.decay_rate)


def _round_trips(point: Any) -> float:
    """What a user's own measure may do at a point, one by one: here the sum of the flows' round
    trips.
    """
    return sum(point.net.base_rtt(name) for name in point.net.flows)


CASES: dict[str, Callable[[Any], Any]] = {
    "p1": partial(_p1, 60.0),
    "p1-long": partial(_p1, 300.0),
    "margins": _margins,
    "own": _own,
    "dear": _dear,
}


class Round(NamedTuple):
    """Seconds that each way took, and parts of them."""

    here: float
    one: float
    two: float
    both: float  # two workers, each with the whole sweep
    alone: float  # one worker with the whole sweep, by itself
    # without what they take when nothing is done, or what a sweep takes here besides its points
    scheduling: float
    worker: (
        float  # what the one worker took of the processor more than by itself, as a part of that
    )
    busy: float  # part of the two workers' time in which they measured


class _Only:
    """A Dask client of one of a cluster's workers."""

    def __init__(self, client: Any, worker: str) -> None:
        self._client, self._worker = client, worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_executor(self, **options: Any) -> Any:
        return self._client.get_executor(workers=[self._worker], **options)

    def nthreads(self) -> dict[str, int]:
        return {self._worker: 1}


@contextmanager
def _two_workers() -> Iterator[Any]:
    """A cluster on this machine, with the settings that the README names."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as problem:
        raise Skipped(f"distributed is not installed ({problem})") from problem
    os.environ.setdefault("DASK_CONFIG", str(DASK_CONFIG))
    dask.config.refresh()
    how: dict[str, Any] = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "silence_logs": 50,
    }
    with LocalCluster(**how) as local, Client(local) as client:
        yield client


def cluster(name: str) -> Iterator[Row]:
    """The rows of one case."""
    with _two_workers() as client:
        sweep, only = CASES[name], _Only(client, min(client.nthreads()))
        sweep(client)  # code is loaded where it is used
        sweep("serial")
        rounds: list[Round] = []
        began = perf_counter()
        while len(rounds) < _least(rounds) or perf_counter() - began < SECONDS * len(rounds) / (
            len(rounds) + 1
        ):
            rounds.append(_round(sweep, client, only))
    here, one, two = (
        float(np.median([getattr(r, way) for r in rounds])) for way in ("here", "one", "two")
    )
    each = here / int(
        np.prod([len(axis) for axis in (GRID if name.startswith("p1") else THREE).values()])
    )
    said = f"{here:.2f} s here, {one:.2f} s on one worker, {two:.2f} s on two, {len(rounds)} rounds"
    yield Row(f"{name}, {each * 1e6:.0f} us", said)
    yield Row(
        "  one worker",
        f"{_spread([100 * (r.one / r.alone - 1) for r in rounds])} % longer than by itself",
    )
    yield Row("", f"{_spread([100 * r.worker for r in rounds])} % more of its processor")
    scheduling = [100 * r.scheduling / r.here for r in rounds]
    text = f"{_spread(scheduling)} % of the points' time, in scheduler and client"
    yield Row("  scheduling", text, "< 5 %", float(np.median(scheduling)) < 5.0)
    gains = [r.one / r.two for r in rounds]
    dear = here >= WORTHWHILE
    value = (
        f"{_spread(gains)} times one; busy {100 * float(np.median([r.busy for r in rounds])):.0f} %"
    )
    yield Row(
        "  two workers",
        value,
        ">= 1.7" if dear else "",
        float(np.median(gains)) >= 1.7 if dear else None,
    )
    yield Row(
        "  the cores",
        f"{_spread([2 * r.alone / r.both for r in rounds])} times one, a sweep for each, no Dask",
    )


def _least(rounds: Sequence[Round]) -> int:
    """How many rounds there are at least: fewer where one takes a minute or more."""
    return FEWEST if rounds and sum(rounds[0][:5]) > SECONDS else ROUNDS


def _round(sweep: Callable[[Any], Any], client: Any, only: Any) -> Round:
    first, second = sorted(client.nthreads())
    here = sweep("serial")
    began = process_time()
    sleep(0.5)
    idle = (process_time() - began) / 0.5
    before = client.run(process_time)[first]
    began = process_time()
    one = sweep(only)
    scheduling = process_time() - began - idle * one.attrs["seconds"]
    scheduling -= (
        here.attrs["seconds"] - here.attrs["point_seconds"]
    )  # the task and the dataset, without any workers
    after = client.run(process_time)[first]
    two = sweep(client)
    for found in (one, two):
        if not found.drop_attrs().equals(here.drop_attrs()):
            raise AssertionError("the cluster's results differ from those of one process")
    at_once = [
        client.submit(_itself, sweep, workers=[worker], pure=False) for worker in (first, second)
    ]
    both = float(np.mean([future.result() for future in at_once]))
    middle = client.run(process_time)[first]
    alone = client.submit(_itself, sweep, workers=[first], pure=False).result()
    spent = client.run(process_time)[first] - middle
    worker = (after - before) / spent - 1.0
    seconds = (one.attrs["seconds"], two.attrs["seconds"])
    busy = two.attrs["point_seconds"] / (2 * two.attrs["seconds"])
    return Round(here.attrs["seconds"], *seconds, both, alone, scheduling, worker, busy)


def _itself(sweep: Callable[[Any], Any]) -> float:
    """Seconds in which a worker computes the whole sweep."""
    return float(sweep("serial").attrs["seconds"])


def _spread(values: Sequence[float]) -> str:
    low, median, high = np.percentile(values, [25, 50, 75])
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


def job() -> Iterator[Row]:
    """What a job takes of the processor in this process, in which scheduler and client are; and
    Dask's own task.
    """
    with _two_workers() as client:
        one = _Only(client, min(client.nthreads()))
        grid = {"x": np.arange(float(JOBS))}
        ways = {
            "a job": lambda: fc.sweep(_nothing, grid, executor=one, chunk=1),
            "  Dask's own": lambda: _tasks(one.get_executor(pure=False)),
        }
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS + 1):
            for name, way in ways.items():
                began = process_time()
                way()
                spent[name].append(1e3 * (process_time() - began) / JOBS)
    for name, values in spent.items():
        yield Row(
            name, f"{_spread(values[1:])} ms of processor time of the scheduler and the client"
        )


def _tasks(executor: Any) -> None:
    """Tasks that do nothing, two at a time."""
    running = []
    for k in range(JOBS):
        running.append(executor.submit(_nothing, {"x": k}))
        if len(running) > 1:
            running.pop(0).result()
    running.pop().result()


def _nothing(point: Any) -> float:
    return float(point["x"])
