"""What happens at one instant: scheduled changes, landings of breaking points, and changes of mode."""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .breaks import bend, emit, forward, forward_class, news, pop
from .jumps_and_ticks import crossed, restart

__all__ = ["arrive", "due", "flip", "next_break"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def _apply(F: Any, I: Any, kind: int, index: int, value: float, generation: int) -> None:
    """One scheduled change or landing at F[T]."""
    if kind == s.AT_LINK:
        forward(F, I, index, generation)
    elif kind == s.AT_CLASS:
        forward_class(F, I, I[I[s.JCFIRST] + index], generation + 1)
    elif kind == s.CAPACITY:
        F[I[s.OCAP] + index] = value
        forward(F, I, index, 0)
        if not I[s.FROZEN]:
            emit(F, I, index, F[s.T], 0)
    else:
        _flow_change(F, I, kind, index, value)
        forward_class(F, I, I[I[s.JFIRST] + index], 0)


@njit(**_CFG)
def _flow_change(F: Any, I: Any, kind: int, i: int, value: float) -> None:
    if kind == s.FLOW_RATE:
        F[I[s.OPAT] + i] = value
        F[I[s.OU] + s.UNOISE * I[s.NF] + i] = value
        return
    if kind == s.FLOW_RELEASE:
        I[I[s.JON] + i] = s.ON
        return
    I[I[s.JON] + i] = s.ON if kind == s.FLOW_ON else s.OFF
    off, step = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i]
    for k in range(I[I[s.JFN] + i]):  # a source starts anew each time
        F[I[s.OY] + off + k * step] = F[I[s.OINIT] + off + k * step]
    if I[s.LOCATE]:
        for k in range(I[s.NSW]):
            if I[I[s.JSWOWN] + k] == i:
                F[I[s.OSW] + k] = 2.0  # undecided
    restart(F, I, i)


@njit(**_CFG, forceinline=True)
def due(F: Any, I: Any) -> bool:
    """Whether anything lands at F[T], of which `arrive` takes care."""
    now = F[s.T] + F[s.TOLT] * max(1.0, abs(F[s.T]))
    if I[s.NHEAP] > 0 and F[I[s.OHEAP]] <= now:
        return True
    return I[s.ISCHED] < I[s.NSCHED] and F[I[s.OSCHED] + 2 * I[s.ISCHED]] <= now


@njit(**_CFG)
def arrive(F: Any, I: Any) -> int:
    """Handle all that lands at F[T]; return how many."""
    t = F[s.T]
    tol = F[s.TOLT] * max(1.0, abs(t))
    count = 0
    while I[s.ISCHED] < I[s.NSCHED] and F[I[s.OSCHED] + 2 * I[s.ISCHED]] <= t + tol:
        k = I[s.ISCHED]
        I[s.ISCHED] = k + 1
        _apply(F, I, I[I[s.JSCHED] + 2 * k], I[I[s.JSCHED] + 2 * k + 1], F[I[s.OSCHED] + 2 * k + 1], 0)
        count += 1
    while I[s.NHEAP] > 0 and F[I[s.OHEAP]] <= t + tol:
        kind, index, generation = pop(F, I)
        if news(F, I, kind, index, generation, tol):
            _apply(F, I, kind, index, 0.0, generation)
        count += 1
    if count:
        I[s.BREAKS] += 1
    return count


@njit(**_CFG)
def next_break(F: Any, I: Any) -> float:
    stop = F[s.TSTOP]
    if I[s.ISCHED] < I[s.NSCHED]:
        stop = min(stop, F[I[s.OSCHED] + 2 * I[s.ISCHED]])
    if I[s.NHEAP] > 0:
        stop = min(stop, F[I[s.OHEAP]])
    if F[s.HYNEXT] <= stop + F[s.TOLT] * max(1.0, abs(stop)):  # a tick is met to the last bit
        return F[s.HYNEXT]
    return stop


@njit(**_CFG)
def flip(F: Any, I: Any, index: int, mode: int) -> None:
    """Change a mode at F[T], with the switches that change together with it, and send the kink on."""
    I[s.EVENTS] += 1
    nl = I[s.NL]
    if index < nl:
        I[I[s.JMODE] + index] = mode
        if mode == s.EMPTY:
            F[I[s.OY] + I[s.OB] + index] = 0.0
        elif mode == s.FULL:
            F[I[s.OY] + I[s.OB] + index] = F[I[s.OBUF] + index]
        forward(F, I, index, 0)
        bend(F, I, index)
        return
    told, landed = -1, False
    for k in range(I[s.NSW]):
        if k == index - nl or I[I[s.JPEND] + k]:
            F[I[s.OSW] + k] = 0.0 if F[I[s.OSW] + k] > 0.5 else 1.0
            landed |= I[I[s.JHSW] + k] == s.OF_BOUND and F[I[s.OSW] + k] < 0.5
    for k in range(I[s.NSW]):
        if k == index - nl or I[I[s.JPEND] + k]:
            if crossed(F, I, k, landed):
                continue  # the condition of a jump, which is no kink
            owner = I[I[s.JSWOWN] + k]
            link = I[I[s.JFIRST] + owner] if owner >= 0 else -1 - owner
            if link != told:
                forward_class(F, I, link, 1)
                if owner < 0:
                    bend(F, I, link)
            told = link
