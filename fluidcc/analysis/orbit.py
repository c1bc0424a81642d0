"""Limit cycles of networks whose laws jump or tick: period, extremes, means, utilisation and convergence."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.returns import Section, events, natural_sizes, state_names, states_at
from fluidcc.arguments import explained, flag, number
from fluidcc.errors import FluidccWarning, SolverError, Unsupported
from fluidcc.law import Law
from fluidcc.network import Network, require_network
from fluidcc.numerics.periodic import find_recurrence, smooth_pieces
from fluidcc.patterns import quantity
from fluidcc.progress import BARE, Progress
from fluidcc.simulate import simulate
from fluidcc.symbols import plain

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LimitCycle", "limit_cycle"]

_FIRST, _MOST = 400, 400_000  # round trips of the first and the longest run
_NEWTON = 8  # steps at most
_MISFIT = 0.05  # of the map of returns, above which its multipliers are in doubt
_MARKS = 1600  # that are compared; four of the longest cycle


@dataclass(frozen=True)
class LimitCycle:
    """A periodic orbit.

    Attributes
    ----------
    period : float
        [s]
    error : float
        Largest change from one cycle to the next: of the period relative to itself, of the states at the jump where it
        begins relative to their sizes, over what the slowest multiplier makes of all later ones.
    jumps : DataArray over "jump"
        When each jump (or, in networks without jumps, tick) of the cycle happens after the first one [s]; whose it is
        stands in the coordinate ``of``, and which of its law's in ``rule``.
    mean, least, most : Dataset over "flow", "link"
        Time averages and extremes over the cycle, of ``rate``, ``one_way_delay``, ``rtt``, ``backlog``,
        ``queueing_delay``, ``throughput``, ``utilisation`` and each law's states, in the units of `simulate`; one-sided
        limits at jumps count.
    loss : DataArray over "link"
        Bits lost over bits arrived, over the cycle [1].
    orbit : Dataset over "time", "flow", "link"
        One cycle, the time from its first jump [s].
    steps : int
        Newton steps on the return map that were made.
    """

    period: float
    error: float
    jumps: xr.DataArray
    mean: xr.Dataset
    least: xr.Dataset
    most: xr.Dataset
    loss: xr.DataArray
    orbit: xr.Dataset
    steps: int
    _section: Section = field(repr=False, compare=False)

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:
        """Multipliers of the return map, the largest first: by what a small disturbance is multiplied in a cycle.

        Those that can be told from what is left of the approach and of rounding, to about a thousandth. They are
        measured: every state that a disturbance moves (see `inputs`) is moved a little both ways, and the map that
        takes what is left after a cycle to what is left after the next is fitted. What only jumps set, or the data
        under way, is a parameter of the cycle.

        Warns if what is left after a cycle does not tell what is left after the next, as with an exact ack clock, in
        which any pattern of the rate comes round for ever.
        """
        found = self._section.map
        if found.misfit > _MISFIT:
            warnings.warn(
                f"multipliers are in doubt: {100 * found.misfit:.0f} % of what is left of a disturbance after a cycle "
                "do not follow from what was left before, as the data under way keep it; give laws an ack clock with "
                "pace > 0, or follow a disturbance by simulate",
                FluidccWarning,
                stacklevel=2,
            )
        return found.multipliers

    @property
    def contraction(self) -> float:
        """Modulus of the largest multiplier: the factor by which the orbit is approached from cycle to cycle."""
        return float(np.abs(self.multipliers).max(initial=0.0))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The states that were disturbed for `multipliers`, as ``flow.state``."""
        net = self._section.net
        found = []
        for kind, name, place in self._section.inputs:
            law = (net.flows if kind == "flow" else net.links)[name].law
            found.append(f"{name}.{plain([z for z in law.states if z != getattr(law, 'queue', None)][place])}")
        return tuple(found)


@explained
def limit_cycle(
    net: Network,
    *,
    tol: float = 1e-9,
    rtol: float = 1e-9,
    until: float | str | None = None,
    progress: bool | None = None,
) -> LimitCycle:
    """Find the attracting limit cycle of a network whose laws jump or tick.

    The network is run until one of its jumps comes back at the same intervals with the same states, about. From there
    on the orbit is approached by itself where that is fast, else by Newton's method on the return map; then one cycle
    is integrated by Gauss-Lobatto quadrature between all points where anything is not smooth.

    Parameters
    ----------
    net : Network
        Capacities and the set of flows must come to rest; the cycle is that at the end.
    tol : float
        Largest relative change of the period and of any state from one cycle to the next.
    rtol : float
        Accuracy of the integration over a cycle; steps are controlled to a tenth of it.
    until : float or str, optional
        How long to run at most before the orbit is near [s]; by default up to 400000 of the longest base round trips.
    progress : bool, optional
        As for `fluidcc.simulate`.

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
    for name, value in (("tol", tol), ("rtol", rtol)):
        number(value, name, "a number between 1e-12 and 0.01", least=1e-12, most=1e-2)
    flag(progress, "progress", unset=True)
    trip = max(net.base_rtt(name) for name in net.flows)
    longest = _MOST * trip if until is None else quantity(until, "s", "until", positive=True)
    first = min(_FIRST * trip, longest)
    runs = 1 + math.ceil(math.log2(longest / first))
    with Progress(runs + _NEWTON + 1, progress, about="limit cycle", form=BARE, unit="runs") as bar:
        section = _near(net, max(0.1 * rtol, 1e-12), first, longest, bar)
        return _settled(section, tol, runs, bar)


# --- coming near ------------------------------------------------------------------------------------------------------


def _near(net: Network, rtol: float, stop: float, longest: float, bar: Progress) -> Section:
    """Run until something repeats to three digits, and a little on."""
    before, done = None, 0
    while True:
        run = _go(net, rtol, before, stop, [stop])
        section, why = _section(net, rtol, before, run, stop)
        if section is not None:
            return section
        if stop >= longest:
            raise SolverError(
                f"no limit cycle within {stop:.6g} s: {why}; give a larger until, or simulate it and look"
            )
        before, stop, done = run, min(2.0 * stop, longest), done + 1
        bar.reach(done)


def _go(net: Network, rtol: float, before: xr.Dataset | None, stop: float, at: Any) -> xr.Dataset:
    run = simulate(net, stop, t_eval=at, rtol=rtol, atol=1e-3 * rtol, restart=before, progress=False)
    run.attrs["end"] = stop
    return run


def _section(
    net: Network, rtol: float, before: xr.Dataset | None, run: xr.Dataset, stop: float
) -> tuple[Section | None, str]:
    """The rarest event that still comes back, if it does so with the same states."""
    kind, times, labels = events(run)
    counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
    often = {label: n for label, n in counts.items() if n >= 4 and _late(label, labels, times, stop)}
    if not often:
        return None, f"there was no {kind}" if len(times) == 0 else f"no {kind} comes back often enough"
    label = min(often, key=lambda one: often[one])
    marks = times[[one == label for one in labels]][-_MARKS:]
    there = _go(net, rtol, before, stop, marks)
    states, _ = states_at(there)
    floor = natural_sizes(there, net)
    size = np.maximum(np.abs(states).max(axis=0), floor)
    found = find_recurrence(marks, states / size)
    if found is None:
        return None, f"the {kind}s of {label[0]!r} do not repeat with the same states"
    ahead = _go(net, rtol, run, stop + 2.5 * found.period, np.linspace(stop, stop + 2 * found.period, 201)[1:])
    size = np.maximum(np.abs(states_at(ahead)[0]).max(axis=0), size)
    _, times, labels = events(ahead)
    marks = times[[one == label for one in labels]]
    gap = np.diff(marks)
    middle = float(marks[0] + 0.37 * gap[0])
    base = _go(net, rtol, run, middle, [middle])
    return Section(net, label, found.marks, found.period, base, size, rtol), ""


def _late(label: Any, labels: list[Any], times: NDArray[np.float64], stop: float) -> bool:
    """Whether an event still happens at the end, as often as it did."""
    own = times[[one == label for one in labels]]
    return bool(stop - own[-1] <= 2.0 * np.diff(own).max())


# --- onto it ----------------------------------------------------------------------------------------------------------


def _settled(section: Section, tol: float, done: int, bar: Progress) -> LimitCycle:
    """The cycle to `tol`: by waiting where that is fast, else by Newton's method."""
    best, steps = math.inf, 0
    for k in range(_NEWTON + 1):
        bar.reach(done + k)
        marks, states = section.walk(section.base, 4)
        changes = _changes(marks, states)
        ratio = changes[-1] / changes[-2] if changes[-2] > 0 else 0.0
        if changes[-1] <= tol:
            return _measured(section, _left(changes, section.rtol), steps)
        if changes[-1] < 0.1 * best and ratio < 0.3:
            best = changes[-1]
            section = section.later(4)  # it comes by itself
            continue
        if changes[-1] > 0.5 * best:  # disturbances reached over a kink of the map
            section = replace(section, step=section.step / 30)
        best = min(best, changes[-1])
        section, steps = section.corrected(), steps + 1
    raise SolverError(
        f"no limit cycle near {section.start:.6g} s: from cycle to cycle something still changes by {changes[-1]:.1e} "
        "of its size; give a larger tol or a smaller rtol, or simulate it and look"
    )


def _changes(marks: NDArray[np.float64], states: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest changes from cycle to cycle."""
    period = np.diff(marks)
    by_time = np.abs(np.diff(period)) / period[-1]
    by_state = np.abs(np.diff(states, axis=0)).max(axis=1, initial=0.0)[1:]
    return np.maximum(by_time, by_state)


def _left(changes: NDArray[np.float64], floor: float) -> float:
    """How far it still is to the orbit, if the changes go on falling as they did."""
    last, ratio = float(changes[-1]), float(changes[-1] / max(changes[-2], 1e-300))
    return last if last <= floor or ratio >= 1 else last / (1 - ratio)


_VARIABLES = ("rate", "one_way_delay", "rtt", "backlog", "queueing_delay", "arrival_rate", "throughput", "utilisation")


def _measured(section: Section, error: float, steps: int) -> LimitCycle:
    import xarray as xr

    marks, _ = section.walk(section.base, 1)
    start, end = marks
    until = float(end + 0.5 * (end - start))
    ahead = section.run(section.base, until, t_eval=[until])
    pieces = smooth_pieces(start, end, ahead["break_time"].values)
    nodes = pieces.nodes.ravel()
    fine = section.run(section.base, until, t_eval=nodes)
    names = [*_VARIABLES, *state_names(fine)[1:]]
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
    kind, times, labels = events(fine)
    inside = np.flatnonzero((times > start - 1e-9 * (end - start)) & (times < end - 1e-9 * (end - start)))
    of = {"of": ("jump", [labels[k][0] for k in inside]), "rule": ("jump", [labels[k][1] for k in inside])}
    about = {"units": "s", "long_name": f"{kind}s of one cycle"}
    after = times[inside] - start
    jumps = xr.DataArray(np.where(after < 1e-12 * (end - start), 0.0, after), of, ("jump",), "jumps", about)
    orbit = fine[names].assign_coords(time=("time", nodes - start, {"units": "s"}))
    return LimitCycle(float(end - start), error, jumps, mean, least, most, loss, orbit, steps, section)
