"""`simulate`: a network in time, as a labelled dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import choice, explained, flag, number, numbers, shown, whole
from fluidcc.base.errors import (
    InvalidInput,
    NegativeRate,
    NotFinite,
    SolverError,
    StepCollapse,
    Zeno,
    warn,
)
from fluidcc.base.progress import Progress
from fluidcc.base.units import to_si
from fluidcc.laws.parts import HEARD
from fluidcc.network.network import Network
from fluidcc.network.specs import LinkSpec
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.entry import resume, solver, start_anew
from fluidcc.simulation.diagnostics import doubts, endless, foreseen, means
from fluidcc.simulation.fused import fused_address
from fluidcc.simulation.layout import Layout, lay_out, require_runnable
from fluidcc.simulation.losses import with_losses
from fluidcc.simulation.restart import FinalState, snapshot
from fluidcc.simulation.results import dataset
from fluidcc.simulation.tables import event_of
from fluidcc.simulation.workspace import Workspace, sample_rows

if TYPE_CHECKING:
    import xarray as xr

LONGEST = 1e12  # [s] of a run and of a delay
PATIENCE = 10.0  # seconds after which it is told how long a run will take
HOURS = 1.0  # if it is more than that
SAMPLES = 10_000_000  # sample times of a run, at most
USUAL = 601  # samples of a run
VALUES = 2**28  # numbers that all samples of a run are, at most: 2 GiB
STEPS = 100_000_000  # steps that max_step asks for, at most


@explained
def simulate(
    net: Network,
    until: float | str,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    delays: str = "fifo",
    frozen_at: Mapping[str, float] | None = None,
    t_eval: Any = None,
    samples: int = USUAL,
    losses: str = "ratio",
    seed: int = 0,
    first_step: float | str | None = None,
    max_step: float | str = math.inf,
    engine: str = "auto",
    restart: xr.Dataset | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Integrate a network of flows and links, from time 0 or from where another run ended.

    Parameters
    ----------
    net : Network
    until : float or str
        End of the run: seconds, or text with a unit such as "9 min".
    rtol, atol : float
        Relative tolerance, and absolute tolerance as a fraction of each state's natural size: the
        largest capacity on the route for rates, the base round-trip time for times, both multiplied
        for backlogs and what else has a unit; for plain numbers and packets one, or what the law
        begins with if that is less. So no unit of time or data is preferred.
    delays : {"fifo", "frozen"}
        ``"fifo"``: delays follow the queues, and queues conserve flow. ``"frozen"``: constant
        forward and backward delays, as equations (8) and (30)-(31) of the LDCC paper print them;
        arrivals are then not thinned or stretched by upstream queues.
    frozen_at : mapping of str to float, optional
        Queueing delay [s] of each link for the constant delays; by default none, so that they are
        the propagation delays.
    t_eval : array_like, optional
        Sample times [s]; by default `samples` of them, evenly from 0 to `until`.
    samples : int
        Number of samples, 10^7 at most. All variables together may be 2^28 numbers, which are 2
        GiB.
    losses : {"ratio", "mean", "packets", "random"}
        When laws that jump at losses or marks (``Jump(on=...)``, such as `fluidcc.AIMD` and
        `fluidcc.CUBIC`) hear of one: at any ratio above 0; in the mean over chance, at most once
        in the refractory time, which makes them smooth; when a whole packet of the flow is lost
        or marked; at random, each packet with that chance, drawn by `seed`. The last is nearest to
        packets where many flows meet at a full buffer, and what random losses do to one flow.
    seed : int
        Seed of the random generators of modulated flows and of losses, one for each flow.
    first_step, max_step : float, optional
        Bounds of the step size [s]. Set `max_step` if a law depends on time explicitly while its
        state is at a bound; the step control does not see such terms. At most 10^8 steps.
    engine : {"auto", "array", "fused"}
        ``"array"`` runs every network at once; ``"fused"`` compiles its structure first, once for
        a few seconds, and is then about twice as fast on small networks. They differ in the last
        digits. ``"auto"`` is ``"array"`` in a single run, whatever has been compiled before; a
        sweep takes ``"fused"`` from 2000 points on where it can: see `fluidcc.sweep`.
    restart : xarray.Dataset, optional
        A result of `simulate`, which this run continues: from its end at the time it has, with the
        queues, the data under way and the history that sources have still to hear of. Times go on,
        so that `until` lies after its end. The flows and links are those of that run, in its order;
        parameters of laws, capacities, buffers and later starts and stops may be others (a flow
        that is to come has its `start` in the first run). What is continued is the attribute
        ``final_state``, a text; it survives NetCDF, Zarr and pickling. Both runs together:
        ``xarray.concat([first, second], "time")``.
    progress : bool, optional
        Show a progress bar; by default on runs over two seconds, in a terminal or notebook.

    Returns
    -------
    xarray.Dataset
        ``rate``, ``one_way_delay``, ``rtt``, ``loss``, ``mark`` over (time, flow): what the source
        sends and knows at that time. ``queueing_delay``, ``backlog``, ``arrival_rate``,
        ``throughput``, ``utilisation``, ``link_loss``, ``link_mark``, ``link_drop`` over (time,
        link); ``price`` and ``link_price`` where a link has one. Each law's own states, as
        ``AIMD_w``, and as ``w`` where one law alone has a state of that name. Units are in the
        attributes of each variable, solver statistics and warnings in those of the dataset. At the
        instant of a jump a sample shows what holds just after it. The instants of jumps and ticks:
        `fluidcc.metrics.jumps`, `fluidcc.metrics.ticks`, `fluidcc.metrics.breaks`.

    Warns
    -----
    FluidccWarning
        If a flow needs router feedback that no link on its route sends; if a law jumps at
        any ratio of losses or marks above 0, over a link whose ratio is hardly ever 0
        (`fluidcc.AIMD` over `fluidcc.PI`), or is the mean of one that jumps, over a buffer that
        is full at times (`fluidcc.Reno` over `fluidcc.DropTail`); after ten seconds, if the run
        will take more than an hour. Other caveats, such as windows of few packets or flows that
        ignore losses, are in ``run.attrs["warnings"]``.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or `restart` does not fit the network.
    SolverError
        `StepCollapse`, `NotFinite`, `NegativeRate` or `Zeno`: the message says what, where and what
        to try.

    Notes
    -----
    Jumps are located on the dense output, ticks are met exactly; both end a step, and their
    consequences are breaking points wherever they arrive later. After each, links decide afresh
    whether they are empty, busy or full. What happens at one instant has a fixed order: see `Jump`.
    ``loss`` is what is lost on the way, and ``mark`` what routers mark of the rest; laws hear both,
    and as ``pi`` either, 1 - (1 - loss)(1 - mark). A source whose law hears none, as `fluidcc.CBR`,
    has no ECN: what a router marks of others counts as lost of that one. Its queue takes it in all
    the same, as the law says: only what is dropped (``link_drop``) or does not fit is missing
    there.

    Consequences so many that it would not pay to follow them are counted in
    ``untracked_breaking_points``; error control meets them, which costs steps and no accuracy.
    ``slides`` counts how often a law began to slide along a switch to which both branches lead
    back, by Filippov's mean of them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="25 ms")
    >>> net = net.flow("a", fc.LDCC, route=["l"]).flow("b", fc.LDCC, route=["l"])
    >>> run = fc.simulate(net, until="60 s")
    >>> (run.rate[-1] / 1e6).round(3).values.tolist()  # Mbit/s
    [1.5, 1.5]
    >>> run.queueing_delay.dims
    ('time', 'link')
    """
    require_runnable(net)
    flag(progress, "progress", unset=True)
    seed = whole(seed, "seed")
    stop = _positive(until, "until")
    if choice(losses, "losses", HEARD) != HEARD[0]:
        net = with_losses(net, losses, seed)
    before = None if restart is None else FinalState.of(restart)
    since = 0.0 if before is None else before.time
    times = _sample_times(t_eval, samples, since, stop)
    frozen = _frozen(net, delays, frozen_at)
    _check_tolerance(rtol, atol)
    at = lay_out(net if before is None else before.continued(net, frozen), frozen)
    _require_room(at, len(times))
    longest = _positive(max_step, "max_step", math.inf)
    if stop - since > STEPS * longest:
        raise InvalidInput(
            f"max_step is {longest:g} s, of which {stop - since:g} s have more than {STEPS:g}; "
            f"give at least {(stop - since) / STEPS:.3g} s, or a smaller rtol for accuracy"
        )
    patterns = at.patterns(seed, stop)
    first = 0.0 if first_step is None else _positive(first_step, "first_step")
    space = Workspace(
        at, times, stop, rtol=rtol, atol=atol, patterns=patterns, max_step=longest, since=since
    )
    address = _step_address(at, engine)
    with Progress(stop - since, progress) as bar:
        final, seconds = run(space, stop, before, first, address, bar)
    used = {
        "rtol": rtol,
        "atol": atol,
        "delays": delays,
        "losses": losses,
        "seed": seed,
        "engine": "fused" if address else "array",
    }
    result = dataset(net, space, times, seconds, used, final)
    smooth = (text for told, text in means(space) if told)
    for text in (*foreseen(space), *smooth, *endless(space)):
        warn(text, stacklevel=3)
    result.attrs["warnings"] = "; ".join(doubts(space))
    return result


def _positive(value: Any, what: str, most: float = LONGEST) -> float:
    number = to_si(value, "s", what, allow_inf=True)
    if not 0.0 < number <= most:
        raise InvalidInput(f"{what} is {shown(value)}; give a positive time in seconds")
    return number


def _sample_times(t_eval: Any, samples: int, since: float, until: float) -> NDArray[np.float64]:
    if until <= since:
        raise InvalidInput(
            f"until is {until:g} s, and restart ends at {since:g} s; give a later time"
        )
    if t_eval is not None and samples != USUAL:
        raise InvalidInput(f"samples is {shown(samples)} beside t_eval; leave one of them out")
    if t_eval is None:
        return np.linspace(since, until, whole(samples, "samples", least=2, most=SAMPLES))
    times = np.atleast_1d(numbers(t_eval, "t_eval", "a list of times in seconds", finite=False))
    if (
        times.ndim != 1
        or not np.all(np.isfinite(times))
        or np.any(np.diff(times) <= 0)
        or len(times) == 0
    ):
        raise InvalidInput(
            f"t_eval is {shown(t_eval)}; give a list of finite times that increase strictly"
        )
    if times[0] < since or times[-1] > until:
        raise InvalidInput(
            f"t_eval runs from {times[0]:g} to {times[-1]:g} s; it must lie within {since:g} and "
            f"until, {until:g} s"
        )
    return times


def _require_room(at: Layout, samples: int) -> None:
    """Refuse samples for which there may be no memory."""
    rows = sample_rows(at)
    if samples * rows > VALUES:
        raise InvalidInput(
            f"{samples} samples of {rows} variables are {samples * rows} numbers, and a run takes "
            f"{VALUES}; "
            f"give samples or t_eval of at most {VALUES // rows} times, or sweep statistics instead"
        )


def _frozen(
    net: Network, delays: str, frozen_at: Mapping[str, float] | None
) -> dict[str, float] | None:
    if choice(delays, "delays", ("fifo", "frozen")) == "fifo":
        if frozen_at is not None:
            raise InvalidInput(
                "frozen_at is given, but delays='fifo' follows the queues; give delays='frozen'"
            )
        return None
    held = dict.fromkeys(net.link_names, 0.0)
    if frozen_at is not None and not hasattr(frozen_at, "items"):  # a pandas Series has them too
        raise InvalidInput(
            f"frozen_at is {shown(frozen_at)}; give the queueing delay of each link by name, such "
            f"as {{'l': 0.1}}"
        )
    for name, value in ({} if frozen_at is None else dict(frozen_at)).items():
        if name not in held:
            raise InvalidInput(f"frozen_at names link {name!r}; the network has {', '.join(held)}")
        held[name] = _frozen_delay(net.links[name], value)
    return held


def _frozen_delay(link: LinkSpec, value: Any) -> float:
    what = f"frozen_at of link {link.name!r}"
    delay = to_si(value, "s", what)
    slowest = min(rate for _, rate in ((0.0, link.capacity), *link.schedule))
    longest = min(link.buffer / slowest, LONGEST)
    if not 0 <= delay <= longest * (1 + 1e-6):
        raise InvalidInput(
            f"{what} is {shown(value)}; give a queueing delay from 0 to "
            f"{f'{longest:g} s, which its buffer holds' if longest < LONGEST else f'{LONGEST:g} s'}"
        )
    return delay


def _check_tolerance(rtol: float, atol: float) -> None:
    number(rtol, "rtol", "a number between 1e-13 and 0.1", least=1e-13, most=0.1)
    number(
        atol,
        "atol",
        "a positive fraction of each state's size, such as rtol/1000",
        above=0.0,
        most=0.1,
    )


def _step_address(at: Layout, engine: str) -> int:
    choice(engine, "engine", ("auto", "array", "fused"))
    return fused_address(at) if engine == "fused" else 0


# --- driving the solver: growing its room, showing its progress, and saying why it failed --------


def run(
    space: Workspace,
    until: float,
    before: FinalState | None,
    first_step: float,
    address: int,
    bar: Progress,
) -> tuple[str | None, float]:
    """Run a filled workspace to its end.

    Parameters
    ----------
    space : Workspace
    until : float
        When the final state is taken [s]; the workspace's clock goes on a little, for flows with an
        access delay.
    before : FinalState, optional
        What the run goes on from.
    first_step : float
        [s]; 0 to let the solver choose.
    address : int
        Of a fused step, or 0.
    bar : Progress

    Returns
    -------
    final : str
        The final state.
    seconds : float
        Real time that the solution took, without writing down the final state.

    Raises
    ------
    SolverError
        Saying what went wrong, where, and what to try.
    """
    at, end, final = space.at, float(space.state.t_end), None
    space.state.budget = pause_after(at)
    stops: list[tuple[float, int, Any]] = [(until, -1, None)]  # where Python has something to do
    hops = max(len(f.route) for f in at.flows)
    if before is not None:
        stops += before.place(space)
        if late := [at.flows[i].name for time, i, _ in stops if time > until]:
            raise InvalidInput(
                f"until is {until:g} s, before the new parameters of flow {late[0]!r} are felt at "
                "its first queue, an "
                "access_delay after the restart; give a later time"
            )
        stops.sort(key=lambda stop: stop[:2])
    if before is not None:
        asked = space.state.slide_of[: int(space.state.n_switches)]
        for switch in np.flatnonzero(asked == s.NOT_ASKED):
            space.let_slide(int(switch))  # it may be in the middle of sliding
        resume(space.state, before.time, first_step or before.about["step"])
        hops = 0
    seconds = 0.0
    for when, flow, parameters in stops:
        seconds += _drive(space, min(when, end), address, bar, hops, first_step)
        hops = 0
        if flow < 0:
            final = snapshot(space)
        else:
            space.flow_parameters(flow)[:] = parameters
            start_anew(space.state, flow)
    if space.state.t < end:
        seconds += _drive(space, end, address, bar)
    return final, seconds


def _drive(
    space: Workspace,
    stop: float,
    address: int,
    bar: Progress,
    hops: int = 0,
    first_step: float = 0.0,
) -> float:
    """Go on to `stop`, and return how long that took [s]; with `hops` the run begins."""
    space.state.t_stop = stop
    advance = solver()
    began, first, told = perf_counter(), float(space.state.t), False
    while True:
        code = advance(space.F, space.I, address, hops, first_step)
        ended = perf_counter()
        hops = 0
        if space.state.n_logged:
            space.drain_log()
        if code == s.DONE:
            return ended - began
        if code == s.GROW_RING:
            if not space.grow_ring():
                raise _too_many_steps(space)
        elif code == s.GROW_LANDINGS:
            space.grow_landings()
        elif code == s.DRAIN:
            continue
        elif code == s.ASKED:
            space.let_slide(int(space.state.where) - len(space.at.links))
        elif code == s.PAUSED:
            now = float(space.state.t)
            bar.reach(now - space.since)
            if not told and ended - began > PATIENCE and now > first:
                told = True
                _estimate(now, stop, (ended - began) / (now - first))
        else:
            raise _failure(space, space.at, code)


def _estimate(now: float, stop: float, pace: float) -> None:
    """Warn of a run that will take hours, at `pace` seconds for one of its own."""
    hours = (stop - now) * pace / 3600
    if hours > HOURS:
        long = f"{hours:.2g} hours" if hours < 100 else f"{hours / 24:.3g} days"
        warn(
            f"the run has come to {now:.3g} of {stop:.3g} s, and at this pace takes {long} more; "
            "stop it by Ctrl-C, and give a smaller until or a larger rtol",
            stacklevel=6,
        )


def pause_after(at: Layout) -> int:
    """Steps that take some tens of milliseconds, whatever the size: for the bar, and so that Ctrl-C
    is heard.
    """
    return max(1, 200_000 // (100 + sum(len(f.route) for f in at.flows)))


def _failure(space: Workspace, at: Layout, code: int) -> SolverError:
    """What went wrong, where, and what to try."""
    time, where = space.state.t, int(space.state.where)
    if code == s.NEGATIVE:
        return NegativeRate(
            f"the rate of flow {at.flows[where].name!r} became negative at {time:.9g} s; "
            "give its law a lower bound for the state that is its rate, or a smaller rtol"
        )
    if code in (s.ZENO, s.PERIOD):
        return _event_failure(space, at, code)
    stages = space.state.slopes[: at.n_states]
    if code == s.NONFINITE or not np.all(np.isfinite(stages)):
        return NotFinite(
            f"{_worst_state(space, at)} became NaN or infinite at {time:.9g} s; "
            "look for a division by zero in its law, or a parameter of wrong size"
            f"{', or a lag of ago() that more than doubles within itself' if at.lags else ''}"
        )
    if code == s.CHATTER:
        links = len(at.links)
        if where >= links:
            return StepCollapse(
                f"{_switch_owner(space, where - links)} changes its mode without end at "
                f"{time:.9g} s: it slides together with another switch, or compares states with "
                "signals of which no rate of change is known; smooth the law's switch"
            )
        return StepCollapse(
            f"link {at.links[where].name!r} changes its mode without end at {time:.9g} s "
            "(sliding); change the capacity a little"
        )
    remedy = "try a larger rtol or atol, or look for a jump in its law that is not declared"
    if at.frozen is not None and any(len(f.route) > 1 for f in at.flows):
        remedy = (
            "with frozen delays the queues of a route may together drain by a second a second, so "
            "that 1 + e', by "
            f"which laws divide, reaches 0: take delays='fifo', or {remedy}"
        )
    worst, state, slope = _worst_state(space, at), space.state, stages[_worst(space, at)]
    value = float(state.y[_worst(space, at)])
    if time == space.since and abs(slope) * state.h > abs(value):
        remedy = (
            f"it begins at {value:.3g} with a slope of {slope:.2g} a second, too steep to follow; "
            f"let it begin {'lower' if slope < 0 else 'higher'}, by initial={{...}} of that flow "
            "or link"
        )
    return StepCollapse(
        f"the step fell below the resolution of time at {time:.9g} s, at {worst}; {remedy}"
    )


def _switch_owner(space: Workspace, switch: int) -> str:
    at, owner = space.at, int(space.state.switch_owner[switch])
    spec: Any = at.flows[owner] if owner >= 0 else at.links[-1 - owner]
    return f"a switch of {'flow' if owner >= 0 else 'link'} {spec.name!r} ({spec.law.name})"


def _too_many_steps(space: Workspace) -> StepCollapse:
    """Steps so short that those which the flows look back upon do not fit into memory."""
    return StepCollapse(
        f"more than {int(space.state.ring_mask) + 1:,} steps within the longest delay before "
        f"{space.state.t:.9g} s, the last "
        f"of {space.state.h:.2g} s, at {_worst_state(space, space.at)}: the network is too stiff "
        f"for this solver; look "
        "for a price or gain that grows without bound, or give a larger rtol or atol"
    )


def _event_failure(space: Workspace, at: Layout, code: int) -> SolverError:
    """Zeno jumps, or an event time that is not finite."""
    row, time = space.event_rows[int(space.state.where)], space.state.t
    what = event_of(at, row)
    if code == s.ZENO:
        return Zeno(
            f"at {time:.9g} s {what} repeats without time advancing: its condition is still true "
            "after the reset, or ever faster jumps accumulate; give it a refractory time, or "
            "once=True"
        )
    value, jump = space.state.rule_result[0], what.kind == "jump"
    return NotFinite(
        f"{what} has a {'refractory time' if jump else 'period or phase'} of {value:.6g} s at "
        f"{time:.9g} s; it must be finite, and {'not negative' if jump else 'positive'}"
    )


def _worst(space: Workspace, at: Layout) -> int:
    """Number of the state with the largest error in the last attempt."""
    state, n = space.state, at.n_states
    err, slopes = state.stage[:n], state.slopes[:n]
    if not np.all(np.isfinite(slopes)):
        err = slopes
    ratio = np.abs(err) / (state.atol[:n] + state.rtol * np.abs(state.y[:n]))
    return int(np.argmax(np.where(np.isnan(ratio), np.inf, ratio)))


def _worst_state(space: Workspace, at: Layout) -> str:
    """Its name."""
    worst = _worst(space, at)
    if worst >= at.backlog:
        k = worst - at.backlog
        return (
            f"the backlog of link {at.links[k].name!r}"
            if k < len(at.links)
            else "the state of a link"
        )
    for g in at.groups:
        if g.states <= worst < g.states + g.size * len(g.own):
            j, i = divmod(worst - g.states, g.size)
            return f"state {g.own[j]} of flow {g.specs[i].name!r}"
    return "a state"
