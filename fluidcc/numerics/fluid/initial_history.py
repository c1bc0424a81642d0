"""What was before the start: constant rates and backlogs, or the run before; then the first step size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .breaks import forward_class
from .happenings import arrive
from .jumps_and_ticks import act
from .limits import start
from .records import keep_node, linear_record
from .rhs import evaluate

__all__ = ["begin", "resume", "start_anew"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def begin(F: Any, I: Any, hops: int, first_step: float) -> None:
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
    resume(F, I, 0.0, first_step)


@njit(**_CFG)
def resume(F: Any, I: Any, time: float, first_step: float) -> None:
    """Go on at `time` from states and a history that are in place: apply its changes and choose the first step."""
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
def start_anew(F: Any, I: Any, flow: int) -> None:
    """The law of a flow has changed now: decide its modes afresh, and send the kink on."""
    for k in range(I[s.NSW]):
        if I[s.LOCATE] and I[I[s.JSWOWN] + k] == flow:
            F[I[s.OSW] + k] = 2.0
    forward_class(F, I, I[I[s.JFIRST] + flow], 0)
    arrive(F, I)
    start(F, I, -1, True)


@njit(**_CFG)
def _first_step(F: Any, I: Any) -> float:
    """Hairer, Norsett and Wanner's first guess: a hundredth of the time in which the states would double."""
    d0, d1 = 0.0, 0.0
    for i in range(I[s.NS]):
        scale = F[I[s.OATOL] + i] + F[s.RTOL] * abs(F[I[s.OY] + i])
        d0 = max(d0, abs(F[I[s.OY] + i]) / scale)
        d1 = max(d1, abs(F[I[s.OK] + i]) / scale)
    guess = 0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-3
    return min(guess, 0.01 * d1 ** (-0.2) * np.float64(10.0)) if d1 > 1.0 else guess
