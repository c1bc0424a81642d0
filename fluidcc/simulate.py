"""`simulate`: a network in time, as a labelled dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.engine.fused import fused_address
from fluidcc.engine.hybrid import event_of
from fluidcc.engine.layout import Layout, lay_out
from fluidcc.engine.results import dataset
from fluidcc.engine.workspace import Workspace
from fluidcc.errors import InvalidInput, NegativeRate, NotFinite, SolverError, StepCollapse, Zeno
from fluidcc.network import Network, require_network, resolve_pattern
from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.freshness import prepare
from fluidcc.progress import Progress
from fluidcc.units import to_si

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["simulate"]


def simulate(
    net: Network,
    until: float | str,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    delays: str = "fifo",
    frozen_at: Mapping[str, float] | None = None,
    t_eval: Any = None,
    samples: int = 601,
    seed: int = 0,
    first_step: float | None = None,
    max_step: float | str = math.inf,
    engine: str = "auto",
    progress: bool | None = None,
) -> xr.Dataset:
    """Integrate a network of flows and links from time 0.

    Parameters
    ----------
    net : Network
    until : float or str
        End of the run [s].
    rtol, atol : float
        Relative tolerance, and absolute tolerance as a fraction of each state's natural size: the largest capacity on
        the route for rates, the capacity times the base round-trip time for backlogs, one for all other states.
    delays : {"fifo", "frozen"}
        ``"fifo"``: delays follow the queues, and queues conserve flow. ``"frozen"``: constant forward and backward
        delays, as equations (8) and (30)-(31) of the LDCC paper print them; arrivals are then not thinned or
        stretched by upstream queues.
    frozen_at : mapping of str to float, optional
        Queueing delay [s] of each link for the constant delays; by default none, so that they are the propagation
        delays.
    t_eval : array_like, optional
        Sample times [s]; by default `samples` of them, evenly from 0 to `until`.
    samples : int
        Number of samples.
    seed : int
        Of modulated flows.
    first_step, max_step : float, optional
        Bounds of the step size [s].
    engine : {"auto", "array", "fused"}
        ``"array"`` runs every network at once; ``"fused"`` compiles its structure first and is faster on small
        networks; ``"auto"`` takes the fused step if it is already compiled.
    progress : bool, optional
        Show a progress bar; by default on runs over two seconds, in a terminal or notebook.

    Returns
    -------
    xarray.Dataset
        ``rate``, ``one_way_delay``, ``rtt``, ``loss`` over (time, flow): what the source sends and knows at that
        time. ``queueing_delay``, ``backlog``, ``arrival_rate``, ``throughput``, ``utilisation`` over (time, link).
        Each law's own states. Units are in the attributes of each variable, solver statistics and warnings in those of
        the dataset. At the instant of a jump a sample shows what holds just after it. Where laws jump or tick,
        ``jump_time``, ``jump_of`` over jump and ``tick_time``, ``tick_of`` over tick list every instant and the flow
        or link whose it was.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.
    SolverError
        `StepCollapse`, `NotFinite`, `NegativeRate` or `Zeno`: the message says what, where and what to try.

    Notes
    -----
    Jumps are located on the dense output, ticks are met exactly; both end a step, and their consequences are breaking
    points wherever they arrive later. After each, links decide afresh whether they are empty, busy or full. What
    happens at one instant has a fixed order: see `Jump`.
    """
    require_network(net)
    stop = _positive(until, "until")
    times = _sample_times(t_eval, samples, stop)
    frozen = _frozen(net, delays, frozen_at)
    _check_tolerance(rtol, atol)
    _check_network(net)
    at = lay_out(net, frozen)
    patterns = {f.name: p for f in at.flows if (p := resolve_pattern(f, seed, stop)) is not None}
    longest = _positive(max_step, "max_step", math.inf)
    space = Workspace(at, times, stop, rtol=rtol, atol=atol, patterns=patterns, max_step=longest)
    address = _step_address(at, engine)
    prepare()
    began = perf_counter()
    hops = max(len(f.route) for f in at.flows)
    with Progress(stop, progress) as bar:
        _run(space, at, hops, first_step or 0.0, address, bar)
    seconds = perf_counter() - began
    used = {"rtol": rtol, "atol": atol, "delays": delays, "seed": seed, "engine": "fused" if address else "array"}
    return dataset(space, times, seconds, used)


def _positive(value: Any, what: str, most: float = 1e12) -> float:
    number = to_si(value, "s", what, allow_inf=True)
    if not 0.0 < number <= most:
        raise InvalidInput(f"{what} is {value!r}; give a positive time in seconds")
    return number


def _sample_times(t_eval: Any, samples: int, until: float) -> NDArray[np.float64]:
    if t_eval is None:
        if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2:
            raise InvalidInput(f"samples is {samples!r}; give a whole number of at least 2")
        return np.linspace(0.0, until, int(samples))
    times = np.atleast_1d(np.asarray(t_eval, dtype=float))
    if times.ndim != 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0) or len(times) == 0:
        raise InvalidInput("t_eval must be a list of finite times that increase strictly")
    if times[0] < 0 or times[-1] > until:
        raise InvalidInput(
            f"t_eval runs from {times[0]:g} to {times[-1]:g} s; it must lie within 0 and until, {until:g} s"
        )
    return times


def _frozen(net: Network, delays: str, frozen_at: Mapping[str, float] | None) -> dict[str, float] | None:
    if delays not in ("fifo", "frozen"):
        raise InvalidInput(f"delays is {delays!r}; give 'fifo' or 'frozen'")
    if delays == "fifo":
        if frozen_at is not None:
            raise InvalidInput("frozen_at is given, but delays='fifo' follows the queues; give delays='frozen'")
        return None
    held = dict.fromkeys(net.link_names, 0.0)
    for name, value in ({} if frozen_at is None else dict(frozen_at)).items():
        if name not in held:
            raise InvalidInput(f"frozen_at names link {name!r}; the network has {', '.join(held)}")
        held[name] = to_si(value, "s", f"frozen_at of link {name!r}")
    return held


def _check_tolerance(rtol: float, atol: float) -> None:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, Real):
            raise InvalidInput(f"{name} is {value!r}; give a number, such as 1e-6")
    if not 1e-13 <= rtol <= 0.1:
        raise InvalidInput(f"rtol is {rtol!r}; give a number between 1e-13 and 0.1")
    if not 0.0 < atol <= 0.1:
        raise InvalidInput(f"atol is {atol!r}; give a positive fraction of each state's size, such as rtol/1000")


def _check_network(net: Network) -> None:
    if not net.flows:
        raise InvalidInput("the network has no flows; add one with .flow(name, law, route=[...])")
    for f in net.flows.values():
        if net.base_rtt(f.name) <= 0.0:
            raise InvalidInput(
                f"flow {f.name!r} has no propagation delay on its way there and back, an algebraic loop; "
                "give a link delay, access_delay or return_delay above 0"
            )


def _step_address(at: Layout, engine: str) -> int:
    if engine not in ("auto", "array", "fused"):
        raise InvalidInput(f"engine is {engine!r}; give 'auto', 'array' or 'fused'")
    return 0 if engine == "array" else fused_address(at, build=engine == "fused")


def _run(space: Workspace, at: Layout, hops: int, first_step: float, address: int, bar: Progress) -> None:
    from fluidcc.numerics.fluid.driver import drive
    from fluidcc.numerics.fluid.prehistory import begin

    begin(space.F, space.I, hops, first_step)
    if space.I[s.CODE] != s.DONE:
        raise _failure(space, at, int(space.I[s.CODE]))
    space.I[s.BUDGET] = _pause_after(at)
    while True:
        code = drive(space.F, space.I, address)
        space.drain_log()
        if code == s.DONE:
            return
        if code == s.GROW_RING:
            space.grow_ring()
        elif code == s.GROW_HEAP:
            space.grow_heap()
        elif code == s.DRAIN:
            continue
        elif code == s.PAUSED:
            bar.reach(float(space.F[s.T]))
        else:
            raise _failure(space, at, code)


def _pause_after(at: Layout) -> int:
    """Steps that take some tens of milliseconds, whatever the size: for the bar, and so that Ctrl-C is heard."""
    return max(1, 200_000 // (100 + sum(len(f.route) for f in at.flows)))


def _failure(space: Workspace, at: Layout, code: int) -> SolverError:
    """What went wrong, where, and what to try."""
    time, where = space.F[s.T], int(space.I[s.WHERE])
    if code == s.NEGATIVE:
        return NegativeRate(
            f"the rate of flow {at.flows[where].name!r} became negative at {time:.9g} s; "
            "give its law a lower bound for the state that is its rate, or a smaller rtol"
        )
    if code in (s.ZENO, s.PERIOD):
        return _event_failure(space, at, code)
    stages = space.F[space.I[s.OK] :][: at.n_states]
    if code == s.NONFINITE or not np.all(np.isfinite(stages)):
        return NotFinite(
            f"{_worst_state(space, at)} became NaN or infinite at {time:.9g} s; "
            "look for a division by zero in its law, or a parameter of wrong size"
        )
    if code == s.CHATTER:
        links = len(at.links)
        name = f"link {at.links[where].name!r}" if where < links else "a switch of a law"
        return StepCollapse(
            f"{name} changes its mode without end at {time:.9g} s (sliding); "
            "smooth the law's switch, or change the capacity a little"
        )
    return StepCollapse(
        f"the step fell below the resolution of time at {time:.9g} s, at {_worst_state(space, at)}; "
        "try a larger rtol or atol, or look for a jump in its law that is not declared"
    )


def _event_failure(space: Workspace, at: Layout, code: int) -> SolverError:
    """A jump without end, or a time that is none."""
    row, time = space.event_rows[int(space.I[s.WHERE])], space.F[s.T]
    what = event_of(at, row)
    if code == s.ZENO:
        return Zeno(
            f"{what} happens without end at {time:.9g} s: its reset leaves its condition true, or ever faster jumps "
            "pile up; give it a refractory time, or once=True"
        )
    value = space.F[space.I[s.OHNEW]]
    return NotFinite(
        f"{what} has a {'refractory time' if row[s.HKIND] > s.SOURCE_TICK else 'period or phase'} of {value:.6g} s at "
        f"{time:.9g} s; it must be finite, and {'not negative' if row[s.HKIND] > s.SOURCE_TICK else 'positive'}"
    )


def _worst_state(space: Workspace, at: Layout) -> str:
    """Name of the state with the largest error in the last attempt."""
    F, I = space.F, space.I
    n = at.n_states
    err, y, tol = (F[I[k] :][:n] for k in (s.OZ, s.OY, s.OATOL))
    if not np.all(np.isfinite(F[I[s.OK] :][:n])):
        err = F[I[s.OK] :][:n]
    ratio = np.abs(err) / (tol + F[s.RTOL] * np.abs(y))
    worst = int(np.argmax(np.where(np.isnan(ratio), np.inf, ratio)))
    if worst >= at.backlog:
        k = worst - at.backlog
        return f"the backlog of link {at.links[k].name!r}" if k < len(at.links) else "the state of a link"
    for g in at.groups:
        if g.states <= worst < g.states + g.size * len(g.own):
            j, i = divmod(worst - g.states, g.size)
            return f"state {g.own[j]} of flow {at.flows[g.members[i]].name!r}"
    return "a state"
