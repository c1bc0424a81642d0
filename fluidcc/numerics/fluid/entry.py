"""Where Python enters the compiled solver, with the arrays of a workspace.

All below works on pointers, not arrays: the compiler need then not provide for indices that count from the end. What
belongs to a run is in its two arrays and nowhere else, and no lock is held, so that threads may run many at once; for
many runs of one structure in one call see `many`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from numba import config, float64, int64

from ..compiling import njit, vectorised
from ..fluid import initial_history as prehistory
from ..fluid import slots as s
from .calls import pointer
from .driver import drive

__all__ = ["advance", "resume", "solver", "start_anew"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_begin, _resume, _start_anew = prehistory.begin, prehistory.resume, prehistory.start_anew


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
    """Go on at `time` from states and a history that are in place: see `prehistory.resume`."""
    _resume(pointer(F), pointer(I), time, first_step)


@njit(**_CFG)
def start_anew(F: Any, I: Any, flow: int) -> None:
    """The law of a flow has changed now: see `prehistory.start_anew`."""
    _start_anew(pointer(F), pointer(I), flow)


_TYPES = (float64[::1], int64[::1], int64, int64, float64)


@lru_cache(maxsize=1)
def solver() -> Callable[[Any, Any, int, int, float], int]:
    """`advance` for the arrays of a workspace, whose types it takes for granted; compiled or loaded at the first call.

    To look at the types of its arguments takes numba 3 us after some work in Python, and a short solve 50.
    """
    if config.DISABLE_JIT:
        return advance
    with vectorised():
        advance.compile(_TYPES)
    return advance.overloads[_TYPES].entry_point
