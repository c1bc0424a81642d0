"""Where Python enters the compiled solver, with the arrays of a workspace.

What belongs to a run is in its two arrays and nowhere else, and no lock is held, so
that threads may run many at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from numba import config, float64, int64

from fluidcc.numerics.layout import clear

from ..compiling import njit
from ..fluid import state as s
from .breaking_points import forward_class, recall
from .calls import state
from .driver import drive
from .events import act, arrive, leave_undecided, start
from .records import keep_node, linear_record
from .rhs import evaluate


@njit()
def _begin(run: s.State, hops: int, first_step: float) -> None:
    """Write the record of the past, apply the changes of time 0 and choose the first step."""
    run.t = 0.0
    run.h = run.natural
    clear(run.slopes, 7 * run.n_states)
    linear_record(run, run.natural)
    for _ in range(hops + 2):  # what leaves one link enters the next
        evaluate(run, 0.0, run.y, run.scratch, -1, 0, 0, 1)
        for k in range(run.n_switches):
            if run.switch[k] == s.UNDECIDED:
                run.switch[k] = 1.0 if run.switch_value[k] > 0.0 else 0.0
        keep_node(run, 0)
        linear_record(run, run.natural)
    run.n_records = 1
    for i in range(run.n_flows):
        if run.flow_on[i] == s.ON:
            recall(run, i, 1, 1)
    resume(run, 0.0, first_step)


@njit(entry=True)
def resume(run: s.State, time: float, first_step: float) -> None:
    """Go on at `time` from states and a history that are in place: apply its changes and choose the
    first step.
    """
    run.t = time
    arrive(run)
    for k in range(run.n_switches):
        if run.locate:
            run.switch[k] = s.UNDECIDED
    start(run, -1, True)
    act(run)
    arrive(run)
    run.h_before = 0.0
    run.h_next = min(run.h_max, first_step if first_step > 0.0 else _first_step(run))


@njit()
def _first_step(run: s.State) -> float:
    """Hairer, Norsett and Wanner's first guess: a hundredth of the time in which the states would
    double.
    """
    d0, d1, unit = 0.0, 0.0, run.natural
    for i in range(run.n_states):
        scale = run.atol[i] + run.rtol * abs(run.y[i])
        d0 = max(d0, abs(run.y[i]) / scale)
        d1 = max(d1, unit * abs(run.slopes[i]) / scale)
    guess = 0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-3
    return unit * (min(guess, 0.1 * d1 ** (-0.2)) if d1 > 1.0 else guess)


@njit(entry=True)
def advance(F: Any, I: Any, address: int, hops: int, first_step: float) -> int:
    """Integrate until `t_stop`, or until there is a reason to return to Python.

    Parameters
    ----------
    F, I : arrays
        Of the workspace: see `state.State`.
    address : int
        Of a fused step, or 0.
    hops : int
        Number of links on the longest route if the run begins now; 0 to go on.
    first_step : float
        [s] if the run begins now; 0 to let the solver choose.

    Returns
    -------
    int
        `state.DONE`, or what Python has to do.
    """
    run = state(F, I)
    if hops > 0:
        _begin(run, hops, first_step)
        if run.code != s.DONE:
            return run.code
    return drive(run, address)


@njit(entry=True)
def start_anew(run: s.State, flow: int) -> None:
    """The law of a flow has changed now: decide its modes afresh, and send the kink on."""
    leave_undecided(run, flow)
    forward_class(run, run.first_link[flow], 0)
    arrive(run)
    start(run, -1, True)


_TYPES = (float64[::1], int64[::1], int64, int64, float64)


@lru_cache(maxsize=1)
def solver() -> Callable[[Any, Any, int, int, float], int]:
    """`advance` for the arrays of a workspace, whose types it takes for granted; compiled or loaded
    at the first call.

    To look at the types of its arguments takes numba 3 us after some work in Python, and a short
    solve 50.
    """
    if config.DISABLE_JIT:
        return advance
    advance.compile(_TYPES)
    return advance.overloads[_TYPES].entry_point
