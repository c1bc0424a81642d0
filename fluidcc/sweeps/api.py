"""`sweep`: any measure over a grid of anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import choice, explained, shown, whole
from fluidcc.base.errors import InvalidCall, InvalidInput, Unsupported, warn
from fluidcc.base.units import to_si
from fluidcc.laws.parts import HEARD
from fluidcc.network import Network
from fluidcc.network.parameters import Parameters, Target
from fluidcc.network.patterns import ask_for_units, without_unit
from fluidcc.network.scenarios import MOST_FLOWS, RUN_FIELDS, Scenario
from fluidcc.network.specs import PACKET
from fluidcc.simulation.fused import fits
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import (
    _check_tolerance,
    _frozen,
    _positive,
    _sample_times,
)
from fluidcc.sweeps.axes import Grid, make_grid, rebuilt
from fluidcc.sweeps.execute import Execution, run
from fluidcc.sweeps.measures import OF_RUNS, find_measures
from fluidcc.sweeps.refine import Refine, refined
from fluidcc.sweeps.task import Task, empty_piece, labelled
from fluidcc.symbols import plain, unfold

if TYPE_CHECKING:
    import xarray as xr

WORTH = 2000  # points for which a fused step is compiled


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
        What is swept. A function is called with each point, a mapping from axes to values, and
        returns a Network, a Scenario, or results: a number, an array, or a mapping of these (then
        `measure` is left out).
    grid : mapping of str to values
        The axes: sequences of numbers, of text with units, or ``{"from": a, "to": b, "points": n,
        "scale": "log"}``. Of a network an axis is a parameter of the laws (``"beta"``: of every
        flow that has it, or of the links; or ``"a.beta"``, of flow or link a; ``"flows.beta"``,
        ``"links.beta"``), ``"capacity"``, ``"delay"``, ``"buffer"``, ``"access_delay"``,
        ``"return_delay"``, ``"packet"``, ``"start"``, ``"stop"``, ``"law"``, an initial state
        (``"initial.x"``, ``"a.initial.x"``), a number of flows (``"count"``, ``"a.count"``: so many
        copies of flow a), ``"rtt"`` (all propagation delays in proportion), ``"a.rtt"`` (the return
        delay of flow a, such that its round trip takes this long without queues), or ``"seed"`` and
        ``"until"`` of the runs.
    measure : str, function, or list or mapping of these
        See `fluidcc.sweeps.measures`. A function is called with a `Point`, which has ``.net``,
        ``.run``, ``.equilibrium`` and ``.stability``.
    executor : optional
        ``"threads"``, ``"processes"``, ``"serial"``, a Dask client, or an executor of
        `concurrent.futures`. By default threads for work in compiled code, and processes for other
        work and for runs of more than 20 s in all (if joblib and cloudpickle are there, of the
        extra ``cluster``), on all cores. The result is the same.
    workers : int, optional
        Number of workers.
    store : str or Path, optional
        Folder (Zarr) where finished chunks are kept: the same call with the same store goes on
        where it was.
    refine : str, sequence of str or Refine, optional
        Names of yes-or-no measures: only points near where one changes are measured; see
        `fluidcc.sweeps.Refine`.
    progress : bool, optional
        Show a progress bar; by default on sweeps over two seconds, in a terminal or notebook.
    chunk : int, optional
        Points in a chunk; by default about half a second of work, as measured.
    until : float or str, optional
        End of the runs [s], for measures of trajectories; a scenario has its own.
    window : pair, optional
        Span [s] of which the statistics are; by default the whole run.
    **options
        Of `fluidcc.simulate`: rtol, atol, delays, frozen_at, samples, losses, seed, max_step,
        engine. The engine ``"auto"`` is ``"fused"`` on grids of 2000 points and more of a network
        that is small enough, where neither laws nor numbers of flows are swept, and ``"array"`` on
        all others.

    Returns
    -------
    xarray.Dataset
        A variable for each measure over the axes of the grid (and over ``flow`` or ``link`` where
        it has a value for each). If points failed, their values are NaN and the variable ``error``
        says why; the attribute ``failed`` is their number. If results are doubtful, the variable
        ``warning`` says of each point why, in the words that a single run, equilibrium, verdict or
        limit cycle has for it; the attribute ``warned`` is the number of these.

    Warns
    -----
    FluidccWarning
        If points failed, and if results are doubtful: at how many points, and why at the first.

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
    >>> grid = {"beta": [0.1, 0.2], "capacity": ["1 Mbit/s", "2 Mbit/s"]}
    >>> ds = fc.sweep(net, grid, "equilibrium_rtt")
    >>> ds.equilibrium_rtt.dims, ds.sizes["capacity"]
    (('beta', 'capacity', 'flow'), 2)
    """
    task = make_task(model, grid, measure, until, window, options)
    _ask_for_units(task.grid.targets, grid)
    began = perf_counter()
    how = Execution(executor, workers, store, progress, chunk)
    if refine is None:
        points = task.order()
        task, piece = run(task, how, points)
        whole = empty_piece(task.schema, task.grid.size)
        whole.put(points, piece)
        data = labelled(task.grid, task.schema, whole)
    else:
        data = refined(task, refine, partial(run, how=how))
    data.attrs["seconds"] = perf_counter() - began
    for name, count, what in (
        ("error", "failed", "failed and are NaN there, with the reason in the variable 'error'"),
        ("warning", "warned", "carry a warning, in the variable 'warning'"),
    ):
        if data.attrs[count]:
            warn(f"{data.attrs[count]} of {_told(data, name, what)}", stacklevel=3)
    return data


def _ask_for_units(targets: Mapping[str, Target], given: Mapping[str, Any]) -> None:
    """Warn of values without a unit that hardly mean the unit they are read in, once an axis."""
    for name, target in targets.items():
        key = {"argument": target.key, "rtt": "rtt", "trip": "rtt"}.get(target.kind, "")
        if key not in ("start", "stop", ""):
            values = given[name]
            some = [values["from"], values["to"]] if isinstance(values, Mapping) else list(values)
            plain = [v for v in map(without_unit, some) if v is not None]
            late = key in ("delay", "access_delay", "return_delay", "rtt")
            odd = {key: (max if late else min)(plain)} if plain else {}
            ask_for_units(odd, f"axis {name!r}", PACKET, stacklevel=5)


def _told(data: xr.Dataset, name: str, what: str) -> str:
    """What is the matter with some points, and with which one first."""
    texts = data[name]
    first = texts[np.unravel_index(int(np.argmax(texts.values.ravel() != "")), texts.shape)]
    at = {axis: first[axis].item() for axis in texts.dims}
    where = ", ".join(
        f"{axis} = {value:.6g}" if isinstance(value, float) else f"{axis} = {value}"
        for axis, value in at.items()
    )
    return f"{data.attrs['points']} points {what}; the first, at {where}: {first.item()}"


def make_task(
    model: Any, given: Any, measure: Any, until: Any, window: Any, options: dict[str, Any]
) -> Task:
    """The work that the arguments of `sweep` mean; `given` is its grid."""
    measures = () if measure is None else find_measures(measure)
    net = (
        model.net if isinstance(model, Scenario) else model if isinstance(model, Network) else None
    )
    asked = {"until": until, "window": window, **options}
    if isinstance(model, Scenario):
        own = {key: getattr(model, key) for key in RUN_FIELDS}
        options = {**own, **{k: v for k, v in options.items() if v is not None}}
        until = model.until if until is None else until
    end = None if until is None else _positive(until, "until")
    chosen: dict[str, Any] = {"until": end, **_checked(options, net), "window": _span(window, end)}
    if net is not None:
        if not measures:
            raise InvalidCall(
                "the measure is missing; give a name such as 'mean_rate', or a function of a point"
            )
    elif not callable(model):
        ready = f", such as fluidcc.Scenario.load({model!r})" if isinstance(model, str) else ""
        raise InvalidInput(
            f"what is swept is {model!r}; give a Network, a Scenario{ready}, or a function of a "
            "point"
        )
    grid = make_grid(given, net)
    if net is not None:
        _check_values(net, grid)
    _check_use(asked, {m.kind for m in measures})
    trajectories = any(m.kind == "trajectory" for m in measures)
    if trajectories and net is not None and end is None and "until" not in grid.names:
        raise InvalidInput(
            "trajectories are measured, but their end is not known; give until=, such as '60 s'"
        )
    chosen["engine"] = _engine(chosen.get("engine"), net, grid)
    return Task(model if net is None else net, grid, measures, chosen)


def _check_use(given: Mapping[str, Any], kinds: set[str]) -> None:
    """Refuse what is of runs where none is measured, and verdicts with frozen delays."""
    if given.get("delays") == "frozen" and kinds & {"stability", "critical"}:
        raise Unsupported(
            "delays is 'frozen', and a sweep judges with 'fifo'; give a function as the measure, "
            "such as lambda point: fluidcc.stability(point.net, delays='frozen').stable, or "
            "lambda point: fluidcc.stability_boundary(point.net, 'eta', delays='frozen').value"
        )
    if kinds and not kinds & {"trajectory", "own"}:
        for name in (k for k, v in given.items() if v not in (None, "fifo")):
            raise InvalidInput(f"{name} is of runs, and no measure here is of one; leave it out")


def _engine(given: str | None, net: Network | None, grid: Grid) -> str:
    """The same on every machine, whatever has been compiled there before, since results differ in
    their last bits.

    Where numbers of flows or laws are swept, no step is compiled: there would be one for each.
    """
    if given not in (None, "auto"):
        return str(given)
    alike = not any(target.structural for target in grid.targets.values())
    return (
        "fused"
        if net is not None and grid.size >= WORTH and alike and fits(lay_out(net))
        else "array"
    )


def _check_values(net: Network, grid: Grid) -> None:
    """Refuse a value that no point can take, before anything is computed.

    Numbers that can be taken are those between two bounds, so the least and the greatest are tried.
    """
    targets = grid.targets
    moved = any(t.key in ("delay", "access_delay") for t in targets.values())
    for axis in grid.axes:
        target, what = targets[axis.name], f"axis {axis.name!r} of the grid"
        alone, ends = {axis.name: target}, axis.ends()
        if target.key == "until":
            _positive(ends[0], what)
        elif target.key == "count":
            whole(ends[-1], what, most=MOST_FLOWS)
        others = {t.key for t in targets.values() if t.kind == "parameter" and t is not target}
        if (target.kind == "trip" and moved) or _bears_on(net, target, others):
            continue
        if target.numeric:
            errors = Parameters.of(net, alone, {axis.name: ends}).errors()
            if errors:
                raise errors[min(errors)]
            continue
        for value in ends:
            rebuilt(net, alone, {axis.name: value})


def _bears_on(net: Network, target: Target, others: set[str]) -> bool:
    """Whether the values that a parameter may have depend on those of others."""
    for kind, name in target.owners if target.kind == "parameter" else ():
        for relation in getattr(net, f"{kind}s")[name].law.where:
            names = {*map(plain, unfold(relation).free_symbols)}
            if target.key in names and names & others:
                return True
    return False


def _checked(given: Mapping[str, Any], net: Network | None) -> dict[str, Any]:
    """Options of `fluidcc.simulate`, each as it would check them; times in seconds.

    Raises
    ------
    InvalidInput
        If there is no such option, or its value cannot be used.
    """
    if given.get("step") is not None:
        raise InvalidInput(
            f"step is {shown(given['step'])}; steps follow from rtol and atol: leave it out, or "
            "bound them by max_step="
        )
    for name in given:
        if name not in OF_RUNS:
            raise InvalidInput(
                f"sweep() has no argument {name!r}; of simulate() it takes {', '.join(OF_RUNS)}"
            )
    options = {k: v for k, v in given.items() if v is not None}
    if not options:
        return options
    used = {**OF_RUNS, **options}
    _check_tolerance(used["rtol"], used["atol"])
    _sample_times(None, used["samples"], 0.0, 1.0)
    choice(used["engine"], "engine", ("auto", "array", "fused"))
    choice(used["losses"], "losses", HEARD)
    whole(used["seed"], "seed")
    for name in ("first_step", "max_step"):
        if name in options:
            options[name] = _positive(options[name], name, np.inf)
    if net is not None:
        _frozen(net, used["delays"], used["frozen_at"])
    return options


def _span(window: Any, until: float | None) -> tuple[float, float] | None:
    """The part of a run of which the statistics are [s].

    Raises
    ------
    InvalidInput
        If it is no span, or not within the run.
    """
    if window is None:
        return None
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise InvalidInput(
            f"window is {window!r}; give its start and its end, such as ('30 s', '60 s')"
        )
    first, last = (to_si(v, "s", "window") for v in window)
    if not 0 <= first < last or (until is not None and last > until):
        end = "" if until is None else f" = {until:g} s"
        raise InvalidInput(
            f"window is {first:g} to {last:g} s; it must lie within 0 and until{end}"
        )
    return first, last
