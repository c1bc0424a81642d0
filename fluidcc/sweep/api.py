"""`sweep`: any measure over a grid of anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.arguments import explained
from fluidcc.engine.fused import fits
from fluidcc.engine.layout import lay_out
from fluidcc.errors import InvalidInput
from fluidcc.network import Network
from fluidcc.progress import Progress
from fluidcc.scenarios import Scenario
from fluidcc.simulate import _positive
from fluidcc.sweep.grid import Grid, make_grid
from fluidcc.sweep.identity import identity
from fluidcc.sweep.jobs import SPAN, Chunks, Jobs, Points, work_in_a_job
from fluidcc.sweep.measures import find_measures
from fluidcc.sweep.options import checked, span
from fluidcc.sweep.pool import Pool, make_pool
from fluidcc.sweep.refine import Refine, refined
from fluidcc.sweep.results import labelled
from fluidcc.sweep.store import Store
from fluidcc.sweep.structures import can_batch_some, structural
from fluidcc.sweep.targets import changed, find_targets
from fluidcc.sweep.task import Piece, Task, empty_piece

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Execution", "make_task", "run", "sweep"]

WORTH = 2000  # points for which a fused step is compiled
SMALL = 1.0  # seconds of work in all that are not worth starting workers
ENOUGH, TRIES = 0.02, 2  # seconds of work from which its cost is taken, and how often it is measured
BAR = "{l_bar}{bar}| {n:.0f} of {total:.0f} points [{rate_noinv_fmt}, {elapsed} so far, {remaining} to go]"


@explained
def sweep(
    model: Network | Scenario | Callable[[Mapping[str, Any]], Any],
    grid: Mapping[str, Any],
    measure: Any = None,
    *,
    executor: Any = None,
    workers: int | None = None,
    store: str | Path | None = None,
    refine: str | Sequence[str] | Refine | None = None,
    progress: bool | None = None,
    chunk: int | None = None,
    until: float | str | None = None,
    window: tuple[Any, Any] | None = None,
    **options: Any,
) -> xr.Dataset:
    """Measure a network at every point of a grid.

    Parameters
    ----------
    model : Network, Scenario or function
        What is swept. A function is called with each point, a mapping from axes to values, and returns a Network, a
        Scenario, or results: a number, an array, or a mapping of these (then `measure` is left out).
    grid : mapping of str to values
        The axes: sequences of numbers, of text with units, or ``{"from": a, "to": b, "points": n, "scale": "log"}``.
        Of a network an axis is a parameter of the laws (``"beta"``: of every flow that has it, or of the links; or
        ``"a.beta"``, of flow or link a; ``"flows.beta"``, ``"links.beta"``), ``"capacity"``, ``"delay"``, ``"buffer"``,
        ``"access_delay"``, ``"return_delay"``, ``"packet"``, ``"start"``, ``"stop"``, ``"law"``, an initial state
        (``"initial.x"``, ``"a.initial.x"``), a number of flows (``"count"``, ``"a.count"``: so many copies of flow a),
        ``"rtt"`` (all propagation delays in proportion), ``"a.rtt"`` (the return delay of flow a, such that its round
        trip takes this long without queues), or ``"seed"`` and ``"until"`` of the runs.
    measure : str, function, or list or mapping of these
        See `fluidcc.sweep.measures`. A function is called with a `Point`, which has ``.net``, ``.run``,
        ``.equilibrium`` and ``.stability``.
    executor : optional
        ``"threads"``, ``"processes"``, ``"serial"``, a Dask client, or an executor of `concurrent.futures`. By default
        threads for work that releases the GIL, and processes for other work, on all cores. The result is the same.
    workers : int, optional
        Number of workers.
    store : str or Path, optional
        Folder (Zarr) where finished chunks are kept: the same call with the same store goes on where it was.
    refine : str, sequence of str or Refine, optional
        Names of yes-or-no measures: only points near where one changes are measured; see `fluidcc.sweep.Refine`.
    progress : bool, optional
        Show a progress bar; by default on sweeps over two seconds, in a terminal or notebook.
    chunk : int, optional
        Points in a chunk; by default about half a second of work, as measured.
    until : float or str, optional
        End of the runs [s], for measures of trajectories; a scenario has its own.
    window : pair, optional
        Span [s] of which the statistics are; by default the whole run.
    **options
        Of `fluidcc.simulate`: rtol, atol, delays, frozen_at, samples, seed, max_step, engine.

    Returns
    -------
    xarray.Dataset
        A variable for each measure over the axes of the grid (and over ``flow`` or ``link`` where it has a value for
        each). If points failed, their values are NaN and the variable ``error`` says why; the attribute ``failed``
        is their number.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or `store` belongs to another sweep.
    SweepFailed
        If no point can be measured.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell({"a": fc.LDCC, "b": fc.LDCC}, dict(capacity="2 Mbit/s"), rtt="50 ms")
    >>> ds = fc.sweep(net, {"beta": [0.1, 0.2], "capacity": ["1 Mbit/s", "2 Mbit/s"]}, "equilibrium_rtt")
    >>> ds.equilibrium_rtt.dims, ds.sizes["capacity"]
    (('beta', 'capacity', 'flow'), 2)
    """
    task = make_task(model, grid, measure, until, window, options)
    began = perf_counter()
    how = Execution(executor, workers, store, progress, chunk)
    if refine is None:
        task, piece = run(task, how, range(task.grid.size))
        data = labelled(task, piece)
    else:
        data = refined(task, refine, partial(run, how=how))
    data.attrs["seconds"] = perf_counter() - began
    return data


@dataclass(frozen=True)
class Execution:
    """How a sweep is computed: arguments of `sweep`."""

    executor: Any = None
    workers: int | None = None
    store: str | Path | None = None
    progress: bool | None = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        if self.store is not None and not isinstance(self.store, str | Path):
            raise InvalidInput(f"store is {self.store!r}; give the name of a folder, such as 'sweep.zarr'")
        if self.chunk is not None and (isinstance(self.chunk, bool) or not isinstance(self.chunk, int)):
            raise InvalidInput(f"chunk is {self.chunk!r}; give a number of points from 1 on")
        if self.chunk is not None and self.chunk < 1:
            raise InvalidInput(f"chunk is {self.chunk!r}; give a number of points from 1 on")


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
        with _pool(task, how, points) as (task, pool):
            done = set() if kept is None else kept.finished()
            span = work_in_a_job(task.cost * len(points), pool.workers, pool.longest)
            chunk = _chunk(how, len(points), span / max(task.cost, 1e-9), pool.workers, kept)
            fixed = how.chunk is not None
            jobs = Jobs(points, chunk, done, workers=pool.workers, cost=task.cost, span=span, fixed=fixed)
            if kept is not None and not kept.begun:
                kept.begin(task.schema, len(points), chunk, task.cost)
            return task, _computed(task, how, pool, jobs, kept)
    finally:
        if kept is not None:
            kept.close()


def _computed(task: Task, how: Execution, pool: Pool, jobs: Jobs, kept: Store | None) -> Piece:
    """All results, with those that were in the store."""
    whole = empty_piece(task.schema, jobs.size) if kept is None else Piece({}, {})
    chunks = Chunks(jobs.chunk, jobs.size)
    count = jobs.size - jobs.left
    with Progress(jobs.size, how.progress, about="sweep", form=BAR, unit="points", start=count) as bar:
        for first, piece in pool.run(task, jobs):
            if kept is None:
                whole.put(first, piece)
            else:
                for number, part in chunks.add(first, piece):
                    kept.write(number, part)
            count += len(piece)
            bar.reach(count)
    return whole if kept is None else kept.read()


def _formed(task: Task, kept: Store | None) -> Task:
    """The task with its schema; with its cost too if it is known from the store."""
    if kept is not None and kept.begun:
        return replace(task, schema=kept.schema(), cost=task.cost or kept.cost)
    return task if task.schema else task.probed()


@contextmanager
def _pool(task: Task, how: Execution, points: Points) -> Iterator[tuple[Task, Pool]]:
    """The workers, and the task with its cost. Workers that are given get ready while the cost is measured here."""
    with ExitStack() as open_pools:
        pool = None
        if how.executor is not None:
            pool = open_pools.enter_context(make_pool(how.executor, how.workers, task.free, False))
            pool.prepare(task)
        if not task.cost:
            task = replace(task, cost=_cost(task, points))
        if pool is None:
            small = task.cost * len(points) < SMALL
            pool = open_pools.enter_context(make_pool(None, how.workers, task.free, small))
        yield task, pool


def _chunk(how: Execution, size: int, many: float, workers: int, kept: Store | None) -> int:
    """Points that are kept together: as many as go out together, but four chunks for each worker at least."""
    if kept is not None and kept.begun:
        return kept.chunk
    if how.chunk is not None:
        return how.chunk
    return size if kept is None else max(1, min(int(many), math.ceil(size / (4 * workers))))


def _cost(task: Task, points: Points) -> float:
    """Seconds a point takes: measured on ever more points, from the middle on, until that says something."""
    middle = len(points) // 2

    def seconds(count: int) -> float:
        some = np.asarray(points[middle : middle + count])
        return min(task.evaluate(some).seconds for _ in range(TRIES)) / len(some) * count

    first = task.evaluate(np.asarray(points[middle : middle + 1])).seconds
    if first > SPAN:  # too dear to be measured again
        return first
    # What is done once, such as loading code, is no point's cost; nor is what a call costs, of many points at once.
    count, single, fixed = 1, seconds(1), 3.0 if task.free else 1.0
    found = single
    while (found < ENOUGH or found < fixed * single) and found < SPAN and count < len(points) - middle:
        count *= 4
        found = seconds(count)
    return found / count


def make_task(model: Any, given: Any, measure: Any, until: Any, window: Any, options: dict[str, Any]) -> Task:
    """The work that the arguments of `sweep` mean; `given` is its grid."""
    measures = () if measure is None else find_measures(measure)
    net = model.net if isinstance(model, Scenario) else model if isinstance(model, Network) else None
    if isinstance(model, Scenario):
        own = {key: getattr(model, key) for key in ("seed", "delays")}
        options = {**own, **{k: v for k, v in options.items() if v is not None}}
        until = model.until if until is None else until
    end = None if until is None else _positive(until, "until")
    chosen: dict[str, Any] = {"until": end, **checked(options, net), "window": span(window, end)}
    if net is not None:
        if not measures:
            raise InvalidInput("the measure is missing; give a name such as 'mean_rate', or a function of a point")
        targets = find_targets(net, given)
        packets = {name: size for name, t in targets.items() if (size := t.packet(net)) is not None}
        grid = make_grid(given, {name: t.unit for name, t in targets.items() if t.unit}, packets)
        _check_values(net, grid, targets)
    elif callable(model):
        targets, grid = {}, make_grid(given, {})
    else:
        ready = f", such as fluidcc.Scenario.load({model!r})" if isinstance(model, str) else ""
        raise InvalidInput(f"what is swept is {model!r}; give a Network, a Scenario{ready}, or a function of a point")
    trajectories = any(m.kind == "trajectory" for m in measures)
    if trajectories and net is not None and end is None and "until" not in grid.names:
        raise InvalidInput("trajectories are measured, but their end is not known; give until=, such as '60 s'")
    chosen["engine"] = _engine(chosen.get("engine"), net, grid, structural(targets))
    task = Task(model if net is None else net, grid, targets, measures, chosen)
    return replace(task, batched=trajectories and can_batch_some(task))


def _engine(given: str | None, net: Network | None, grid: Grid, differ: bool) -> str:
    """The same on every machine, whatever has been compiled there before, since results differ in their last bits.

    Where numbers of flows or laws are swept, no step is compiled: there would be one for each.
    """
    if given not in (None, "auto"):
        return str(given)
    return "fused" if net is not None and grid.size >= WORTH and not differ and fits(lay_out(net)) else "array"


def _check_values(net: Network, grid: Grid, targets: Mapping[str, Any]) -> None:
    """Refuse a value that no point can take, before anything is computed."""
    moved = any(t.key in ("delay", "access_delay") for t in targets.values())
    for axis in grid.axes:
        kind = targets[axis.name].kind
        if kind == "option" or (kind == "trip" and moved):
            continue
        for value in axis.values:
            changed(net, {axis.name: targets[axis.name]}, {axis.name: value})
