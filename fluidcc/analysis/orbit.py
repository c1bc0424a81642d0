"""Limit cycles of networks whose laws jump or tick: period, extremes, means, utilisation and convergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.errors import InvalidInput, SolverError, Unsupported
from fluidcc.law import Law
from fluidcc.network import Network, require_network
from fluidcc.numerics.periodic import HAIR, Recurrence, find_recurrence, smooth_pieces
from fluidcc.simulate import simulate
from fluidcc.units import to_si

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LimitCycle", "limit_cycle"]

_FIRST, _MOST = 400, 400_000  # round trips of the first and the longest run


@dataclass(frozen=True)
class LimitCycle:
    """A periodic orbit.

    Attributes
    ----------
    period : float
        [s]
    error : float
        Largest change from the last cycle but one to the last: of the intervals between jumps relative to the period,
        of the states at the first jump relative to their size.
    contraction : float
        The factor by which the states at the first jump approach the orbit from cycle to cycle, in the end: the modulus
        of the largest multiplier of the return map. 0 if they are on it within two cycles, NaN if they got there too
        fast to tell.
    jumps : DataArray over "jump"
        When each jump (or, in networks without jumps, tick) of the cycle happens after the first one [s]; whose it is
        stands in the coordinate ``of``.
    mean, least, most : Dataset over "flow", "link"
        Time averages and extremes over the cycle, of ``rate``, ``one_way_delay``, ``rtt``, ``backlog``,
        ``queueing_delay``, ``throughput``, ``utilisation`` and each law's states, in the units of `simulate`; one-sided
        limits at jumps count.
    loss : DataArray over "link"
        Bits lost over bits arrived, over the cycle [1].
    orbit : Dataset over "time", "flow", "link"
        One cycle, the time from its first jump [s].
    """

    period: float
    error: float
    contraction: float
    jumps: xr.DataArray
    mean: xr.Dataset
    least: xr.Dataset
    most: xr.Dataset
    loss: xr.DataArray
    orbit: xr.Dataset


def limit_cycle(net: Network, *, tol: float = 1e-9, rtol: float = 1e-9, until: float | str | None = None) -> LimitCycle:
    """Find the attracting limit cycle of a network whose laws jump or tick.

    The network is run until its jumps repeat, in which order and at what intervals, to `tol`; then one cycle is
    integrated by Gauss-Lobatto quadrature between all points where anything is not smooth.

    Parameters
    ----------
    net : Network
        Capacities and the set of flows must come to rest; the cycle is that at the end.
    tol : float
        Largest relative change of any interval between jumps from one cycle to the next.
    rtol : float
        Tolerance of the integration.
    until : float or str, optional
        How long to run at most [s]; by default up to 400000 of the longest base round trips.

    Returns
    -------
    LimitCycle

    Raises
    ------
    Unsupported
        If no law jumps or ticks: then use `simulate`, and `stability` for what grows from an equilibrium.
    SolverError
        If the jumps do not repeat within `until`, or there are none.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay="25 ms", buffer="300 kbit")
    >>> cycle = fc.limit_cycle(net.flow("f", fc.AIMD, route=["l"]))
    >>> round(cycle.period, 4), round(float(cycle.mean.utilisation[0]), 4)
    (3.1238, 0.9794)
    """
    require_network(net)
    laws: list[Law] = [*(f.law for f in net.flows.values()), *(k.law for k in net.links.values())]
    if not any(law.jumps or law.ticks for law in laws):
        raise Unsupported("no law of the network jumps or ticks: simulate it, and ask stability() why it oscillates")
    if not 1e-12 <= tol <= 1e-2:
        raise InvalidInput(f"tol is {tol!r}; give a number between 1e-12 and 0.01")
    trip = max(net.base_rtt(name) for name in net.flows)
    longest = to_si(until, "s", "until") if until is not None else _MOST * trip
    stop = min(_FIRST * trip, longest)
    while True:
        run = simulate(net, stop, samples=2, rtol=rtol, atol=1e-3 * rtol)
        found, why = _recurrence(run)
        if found is not None:
            change, name = _changes(net, run, found, rtol)
            error = max(float(found.errors[-1]), float(change[-1]))
            if error <= tol:
                return _measured(net, run, found, error, _contraction(change, 30 * rtol), rtol)
            why = f"they still change by {error:.1e} of their size from cycle to cycle, most of all {name}"
        if stop >= longest:
            raise SolverError(
                f"no limit cycle within {stop:.6g} s: {why}; give a larger tol or until, or simulate it and look"
            )
        stop = min(3.0 * stop, longest)


def _instants(run: xr.Dataset) -> tuple[str, NDArray[np.float64], NDArray[Any]]:
    """What marks the cycle: the jumps, or where there are none the ticks; when, and whose."""
    kind = "jump" if run.attrs["jumps"] or "tick_time" not in run else "tick"
    return kind, run[f"{kind}_time"].values, run[f"{kind}_of"].values


def _recurrence(run: xr.Dataset) -> tuple[Recurrence | None, str]:
    kind, times, owners = _instants(run)
    if len(times) < 2:
        return None, f"there {'was one' if len(times) else 'was no'} {kind}"
    return find_recurrence(times, owners), f"the {kind}s do not repeat"


def _state_names(run: xr.Dataset) -> list[str]:
    """Variables that must return: backlogs, and each law's own states."""
    own = [name for name, v in run.items() if str(v.attrs.get("long_name", "")).startswith("state of ")]
    return ["backlog", *map(str, own)]


def _changes(net: Network, run: xr.Dataset, found: Recurrence, rtol: float) -> tuple[NDArray[np.float64], str]:
    """Largest change of a state from one first jump of a cycle to the next, relative to its size, and whose it is."""
    _, times, _ = _instants(run)
    marks = np.unique(times[:: -found.events][::-1])
    marks = marks + HAIR * max(1.0, marks[-1])  # surely after the jump
    names = _state_names(run)
    at = simulate(net, float(marks[-1]), t_eval=marks, rtol=rtol, atol=1e-3 * rtol)
    worst, name = np.zeros(len(marks) - 1), names[0]
    for which in names:
        values = at[which].values
        size = np.nanmax(np.abs(values), axis=0, initial=1e-300, where=~np.isnan(values))
        change = np.nanmax(np.abs(np.diff(values, axis=0)) / size, axis=1, initial=0.0)
        if change[-1] > worst[-1]:
            name = which
        worst = np.maximum(worst, change)
    return worst, name


def _contraction(change: NDArray[np.float64], floor: float) -> float:
    """Ratio of the last two changes that stand clear of rounding."""
    clear = np.flatnonzero(change > floor)
    if len(clear) == 0 or clear[-1] < 2:
        return 0.0
    last = clear[-1]
    if change[last - 1] > 0.03:
        return math.nan
    return float(change[last] / change[last - 1])


_VARIABLES = ("rate", "one_way_delay", "rtt", "backlog", "queueing_delay", "arrival_rate", "throughput", "utilisation")


def _measured(
    net: Network, run: xr.Dataset, found: Recurrence, error: float, contraction: float, rtol: float
) -> LimitCycle:
    import xarray as xr

    kind, times, owners = _instants(run)
    start, end = found.start, found.start + found.period
    pieces = smooth_pieces(start, end, run["break_time"].values)
    nodes = pieces.nodes.ravel()
    fine = simulate(net, float(end), t_eval=nodes, rtol=rtol, atol=1e-3 * rtol)
    names = [*_VARIABLES, *_state_names(fine)[1:]]
    mean, least, most = (fine[names].isel(time=0, drop=True).copy(deep=True) for _ in range(3))
    for name in names:
        for k in range(fine[name].shape[1]):
            values = pieces.limits(fine[name].values[:, k].reshape(pieces.nodes.shape))
            mean[name].values[k] = pieces.mean(values)
            least[name].values[k], most[name].values[k] = pieces.extremes(values)
    lost, arrived = (
        [pieces.mean(pieces.limits(v.values[:, k].reshape(pieces.nodes.shape))) for k in range(v.shape[1])]
        for v in (fine.link_loss * fine.arrival_rate, fine.arrival_rate)
    )
    loss = xr.DataArray(np.divide(lost, arrived), {"link": fine.link}, ("link",), "loss", {"units": "1"})
    inside = (times >= start) & (times < end)
    about = {"units": "s", "long_name": f"{kind}s of one cycle"}
    jumps = xr.DataArray(times[inside] - start, {"of": ("jump", owners[inside])}, ("jump",), "jumps", about)
    orbit = fine[names].assign_coords(time=("time", nodes - start, {"units": "s"}))
    return LimitCycle(found.period, error, contraction, jumps, mean, least, most, loss, orbit)
