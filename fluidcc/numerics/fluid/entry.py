"""Where Python enters the compiled solver, with the arrays of a workspace.

All below works on pointers, not arrays: the compiler need then not provide for indices that count
from the end. What belongs to a run is in its two arrays and nowhere else, and no lock is held, so
that threads may run many at once; for many runs of one structure in one call see `many`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import config, float64, int64

from ..compiling import njit
from ..fluid import slots as s
from .breaking_points import forward_class
from .calls import pointer
from .driver import drive
from .events import act, arrive, start
from .records import keep_node, linear_record
from .rhs import evaluate

__all__ = ["advance", "resume", "solver", "start_anew"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


# --- what was before the start: constant rates and backlogs, or the run before --------------------


@njit(**_CFG)
def _begin(F: Any, I: Any, hops: int, first_step: float) -> None:
    """Write the record of the past, apply the changes of time 0 and choose the first step."""
    F[s.T] = 0.0
    F[s.H] = 1.0
    n = I[s.NS]
    for i in range(7 * n):
        F[I[s.OK] + i] = 0.0
    linear_record(F, I, 1.0)
    for _ in range(hops + 2):  # what leaves one link enters the next
        evaluate(F, I, 0.0, I[s.OY], I[s.OSCRATCH], -1, 0, 0, 1)
        for k in range(I[s.NSW]):
            if F[I[s.OSW] + k] == 2.0:
                F[I[s.OSW] + k] = 1.0 if F[I[s.OGS] + k] > 0.0 else 0.0
        keep_node(F, I, 0)
        linear_record(F, I, 1.0)
    I[s.NREC] = 1
    _resume(F, I, 0.0, first_step)


@njit(**_CFG)
def _resume(F: Any, I: Any, time: float, first_step: float) -> None:
    """Go on at `time` from states and a history that are in place: apply its changes and choose the
    first step.
    """
    F[s.T] = time
    arrive(F, I)
    for k in range(I[s.NSW]):
        if I[s.LOCATE]:
            F[I[s.OSW] + k] = 2.0
    start(F, I, -1, True)
    act(F, I)
    arrive(F, I)
    F[s.HPREV] = 0.0
    F[s.HNEXT] = min(F[s.HMAX], first_step if first_step > 0.0 else _first_step(F, I))


@njit(**_CFG)
def _start_anew(F: Any, I: Any, flow: int) -> None:
    """The law of a flow has changed now: decide its modes afresh, and send the kink on."""
    for k in range(I[s.NSW]):
        if I[s.LOCATE] and I[I[s.JSWOWN] + k] == flow:
            F[I[s.OSW] + k] = 2.0
    forward_class(F, I, I[I[s.JFIRST] + flow], 0)
    arrive(F, I)
    start(F, I, -1, True)


@njit(**_CFG)
def _first_step(F: Any, I: Any) -> float:
    """Hairer, Norsett and Wanner's first guess: a hundredth of the time in which the states would
    double.
    """
    d0, d1 = 0.0, 0.0
    for i in range(I[s.NS]):
        scale = F[I[s.OATOL] + i] + F[s.RTOL] * abs(F[I[s.OY] + i])
        d0 = max(d0, abs(F[I[s.OY] + i]) / scale)
        d1 = max(d1, abs(F[I[s.OK] + i]) / scale)
    guess = 0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-3
    return min(guess, 0.01 * d1 ** (-0.2) * np.float64(10.0)) if d1 > 1.0 else guess


# --- for Python -----------------------------------------------------------------------------------


@njit(**_CFG)
def advance(F: Any, I: Any, address: int, hops: int, first_step: float) -> int:
    """Integrate until F[TSTOP], or until there is a reason to return to Python: I[CODE] says which.

    Parameters
    ----------
    F, I : arrays
        The workspace.
    address : int
        Of a fused step, or 0.
    hops : int
        Number of links on the longest route if the run begins now; 0 to go on.
    first_step : float
        [s] if the run begins now; 0 to let the solver choose.

    Returns
    -------
    int
        I[CODE]: `slots.DONE`, or what Python has to do.
    """
    f, i = pointer(F), pointer(I)
    if hops > 0:
        _begin(f, i, hops, first_step)
        if i[s.CODE] != s.DONE:
            return i[s.CODE]
    return drive(f, i, address)


@njit(**_CFG)
def resume(F: Any, I: Any, time: float, first_step: float) -> None:
    """Go on at `time` from states and a history that are in place: see `_resume`."""
    _resume(pointer(F), pointer(I), time, first_step)


@njit(**_CFG)
def start_anew(F: Any, I: Any, flow: int) -> None:
    """The law of a flow has changed now: see `_start_anew`."""
    _start_anew(pointer(F), pointer(I), flow)


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
