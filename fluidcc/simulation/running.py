"""Driving the compiled solver through a run: growing its room, reporting its progress, and saying
why it failed.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import (
    InvalidInput,
    NegativeRate,
    NotFinite,
    SolverError,
    StepCollapse,
    Zeno,
)
from fluidcc.base.progress import Progress
from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.entry import resume, solver, start_anew
from fluidcc.simulation.layout import Layout
from fluidcc.simulation.restart import FinalState, snapshot
from fluidcc.simulation.tables import event_of
from fluidcc.simulation.workspace import Workspace

__all__ = ["pause_after", "run"]


def run(
    space: Workspace,
    until: float,
    before: FinalState | None,
    first_step: float,
    address: int,
    bar: Progress,
) -> tuple[NDArray[np.uint8] | None, float]:
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
    final : array of bytes
        The final state.
    seconds : float
        Real time that the solution took, without writing down the final state.

    Raises
    ------
    SolverError
        Saying what went wrong, where, and what to try.
    """
    at, end, final = space.at, float(space.F[s.TEND]), None
    space.I[s.BUDGET] = pause_after(at)
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
        resume(space.F, space.I, before.time, first_step or before.step)
        hops = 0
    seconds = 0.0
    for when, flow, parameters in stops:
        seconds += _drive(space, min(when, end), address, bar, hops, first_step)
        hops = 0
        if flow < 0:
            final = snapshot(space)
        else:
            space.F[space.parameter_places(flow)] = parameters
            start_anew(space.F, space.I, flow)
    if space.F[s.T] < end:
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
    space.F[s.TSTOP] = stop
    advance = solver()
    began = perf_counter()
    while True:
        code = advance(space.F, space.I, address, hops, first_step)
        ended = perf_counter()
        hops = 0
        if space.I[s.NLOG]:
            space.drain_log()
        if code == s.DONE:
            return ended - began
        if code == s.GROW_RING:
            if not space.grow_ring():
                raise _too_many_steps(space)
        elif code == s.GROW_HEAP:
            space.grow_heap()
        elif code == s.DRAIN:
            continue
        elif code == s.PAUSED:
            bar.reach(float(space.F[s.T]) - space.since)
        else:
            raise _failure(space, space.at, code)


def pause_after(at: Layout) -> int:
    """Steps that take some tens of milliseconds, whatever the size: for the bar, and so that Ctrl-C
    is heard.
    """
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
    remedy = "try a larger rtol or atol, or look for a jump in its law that is not declared"
    if at.frozen is not None and any(len(f.route) > 1 for f in at.flows):
        remedy = (
            "with frozen delays the queues of a route may together drain by a second a second, so "
            "that 1 + e', by "
            f"which laws divide, reaches 0: take delays='fifo', or {remedy}"
        )
    return StepCollapse(
        f"the step fell below the resolution of time at {time:.9g} s, at "
        f"{_worst_state(space, at)}; {remedy}"
    )


def _too_many_steps(space: Workspace) -> StepCollapse:
    """Steps so short that those which the flows look back upon do not fit into memory."""
    return StepCollapse(
        f"more than {int(space.I[s.MASK]) + 1:,} steps within the longest delay before "
        f"{space.F[s.T]:.9g} s, the last "
        f"of {space.F[s.H]:.2g} s, at {_worst_state(space, space.at)}: the network is too stiff "
        f"for this solver; look "
        "for a price or gain that grows without bound, or give a larger rtol or atol"
    )


def _event_failure(space: Workspace, at: Layout, code: int) -> SolverError:
    """A jump without end, or a time that is none."""
    row, time = space.event_rows[int(space.I[s.WHERE])], space.F[s.T]
    what = event_of(at, row)
    if code == s.ZENO:
        return Zeno(
            f"{what} happens without end at {time:.9g} s: its reset leaves its condition true, or "
            "ever faster jumps "
            "pile up; give it a refractory time, or once=True"
        )
    value = space.F[space.I[s.OHNEW]]
    return NotFinite(
        f"{what} has a {'refractory time' if row[s.HKIND] > s.SOURCE_TICK else 'period or phase'} "
        f"of {value:.6g} s at "
        f"{time:.9g} s; it must be finite, and "
        f"{'not negative' if row[s.HKIND] > s.SOURCE_TICK else 'positive'}"
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
        return (
            f"the backlog of link {at.links[k].name!r}"
            if k < len(at.links)
            else "the state of a link"
        )
    for g in at.groups:
        if g.states <= worst < g.states + g.size * len(g.own):
            j, i = divmod(worst - g.states, g.size)
            return f"state {g.own[j]} of flow {at.flows[g.members[i]].name!r}"
    return "a state"
