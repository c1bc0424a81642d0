"""The driver: step control, events, breaking points and samples. One for every network, compiled once."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from . import slots as s
from .breaks import bend, emit, forward, forward_class, keep_rates, news, pop, repeat_jumps
from .calls import call_step
from .guess import learn
from .hybrid import act, crossed, restart
from .limits import start
from .modes import first_event
from .passes import forget
from .reads import work
from .sample import add_totals, sample_step
from .step import step_array

__all__ = ["drive"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}

SAFETY, SHRINK, GROWTH = 0.9, 0.2, 5.0
TELLING = 0.05  # share of a planned step that tells something about the rest of it
EPS = 2.220446049250313e-16
LET_PASS = 100  # steps of a hair in a row at most


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


@njit(**_CFG)
def _arrive(F: Any, I: Any) -> int:
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
def _next_break(F: Any, I: Any) -> float:
    stop = F[s.TSTOP]
    if I[s.ISCHED] < I[s.NSCHED]:
        stop = min(stop, F[I[s.OSCHED] + 2 * I[s.ISCHED]])
    if I[s.NHEAP] > 0:
        stop = min(stop, F[I[s.OHEAP]])
    if F[s.HYNEXT] <= stop + F[s.TOLT] * max(1.0, abs(stop)):  # a tick is met to the last bit
        return F[s.HYNEXT]
    return stop


@njit(**_CFG)
def _flip(F: Any, I: Any, index: int, mode: int) -> None:
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
    told = -1
    for k in range(I[s.NSW]):
        if k == index - nl or I[I[s.JPEND] + k]:
            F[I[s.OSW] + k] = 0.0 if F[I[s.OSW] + k] > 0.5 else 1.0
            if crossed(F, I, k):
                continue  # the condition of a jump, which is no kink
            owner = I[I[s.JSWOWN] + k]
            link = I[I[s.JFIRST] + owner] if owner >= 0 else -1 - owner
            if link != told:
                forward_class(F, I, link, 1)
                if owner < 0:
                    bend(F, I, link)
            told = link


@njit(**_CFG)
def _accept(F: Any, I: Any, end: float) -> None:
    """Take the step over: samples, totals, and the state at its end, which stands at `end` exactly."""
    sample_step(F, I, 1 if end >= F[s.TEND] else 0)
    add_totals(F, I)
    learn(F, I)
    n, nl, nf = I[s.NS], I[s.NL], I[s.NF]
    F[s.HPREV] = F[s.H]
    F[s.T] = end
    I[s.NREC] += 1
    I[s.STEPS] += 1
    for i in range(n):
        F[I[s.OY] + i] = F[I[s.OY1] + i]
        F[I[s.OK] + i] = F[I[s.OK] + 6 * n + i]
    for i in range(nf):
        F[I[s.ORN] + i] = F[I[s.ORN] + 4 * nf + i]
    for link in range(nl):
        F[I[s.OAN] + link] = F[I[s.OAN] + 4 * nl + link]
        F[I[s.OMN] + link] = F[I[s.OMN] + 4 * nl + link]
        F[I[s.OPN] + link] = F[I[s.OPN] + 4 * nl + link]
        F[I[s.OS0] + link] = work(F, I, link, end)[0]
        if not I[s.NODES]:
            F[I[s.OAK] + link] = F[I[s.OAK] + 6 * nl + link]
    size = s.XSIZE * I[s.NACT]
    for k in range(size):
        F[I[s.OACTN] + k] = F[I[s.OACTN] + 4 * size + k]
    oldest = I[s.NREC]
    for j in range(I[s.NN]):
        I[I[s.JNCUR0] + j] = I[I[s.JNCUR] + j]
        oldest = min(oldest, I[I[s.JNCUR] + j])
    I[s.FIRST] = max(I[s.FIRST], oldest - 1)
    I[s.FRESH] = 0


@njit(**_CFG)
def _bad_rate(F: Any, I: Any) -> int:
    for i in range(I[s.NF]):
        if F[I[s.ORN] + 4 * I[s.NF] + i] < -1e-6 * F[I[s.OCAP] + I[I[s.JFIRST] + i]]:
            return i
    return -1


@njit(**_CFG)
def _advance(F: Any, I: Any, address: int) -> int:
    """One accepted step, with what happens at its end. Return 0, or a code that ends the run."""
    stop = _next_break(F, I)
    pending, mode, near = -1, 0, 1e-6
    h = F[s.HNEXT]
    end = stop if F[s.T] + 1.05 * h >= stop else F[s.T] + h
    hmin = 16.0 * EPS * max(abs(F[s.T]), 1e-3)
    while True:
        h = end - F[s.T]
        if h <= hmin and end < stop:
            I[s.CODE] = s.NONFINITE if F[s.ERR] > 1e300 else s.COLLAPSE
            return 1
        F[s.H] = h
        status = call_step(address, F, I) if address else step_array(F, I)
        if status:  # the passes diverge
            I[s.REJECTED] += 1
            pending = -1
            end = F[s.T] + 0.4 * h
            F[s.HNEXT] = 0.4 * h
            F[s.HPASS] = 0.8 * h
            forget(F, I)
            continue
        err = F[s.ERR]
        if err > 1.0:
            I[s.REJECTED] += 1
            pending = -1
            factor = max(SHRINK, SAFETY * err ** (-0.2)) if err < 1e300 else 0.1
            F[s.HNEXT] = factor * h
            end = F[s.T] + factor * h
            continue
        u, index, new = first_event(F, I)
        # The step that leads to an event ends there, up to rounding; another event at that instant is the next step's.
        if u >= 2.0 or (pending >= 0 and u >= 1.0 - near):
            if h > _hair(F):
                I[s.LETPASS] = 0
            break
        near = min(1e-3, 4.0 * near)  # each attempt looks back a little differently
        if u * h <= F[s.TOLT] * max(1.0, abs(F[s.T])):
            if not _chatters(F, I) or I[s.LETPASS] >= LET_PASS:
                return _flip_here(F, I, index, new)
            if h <= _hair(F):  # between two breaking points that are one but for rounding, say: no mode is to be had
                pending = -1
                I[s.LETPASS] += 1
                break
            pending, end = -1, F[s.T] + 0.5 * _hair(F)
            continue
        pending, mode = index, new
        for k in range(I[s.NSW]):
            I[I[s.JPEND] + k] = I[I[s.JTOGETHER] + k]
        end = F[s.T] + u * h
    return _finish_step(F, I, end, stop, pending, mode)


@njit(**_CFG)
def _hair(F: Any) -> float:
    """A time that is hardly more than rounding, within which a change of mode does not matter."""
    return 100.0 * F[s.TOLT] * max(1.0, abs(F[s.T]))


@njit(**_CFG)
def _chatters(F: Any, I: Any) -> bool:
    """Whether modes have changed so often at this instant that they will without end."""
    return F[s.TFLIP] == F[s.T] and I[s.MODEFLIPS] >= 20 + 4 * (I[s.NL] + I[s.NSW])


@njit(**_CFG)
def _flip_here(F: Any, I: Any, index: int, mode: int) -> int:
    """A mode changes at the very start of the step: no time passes."""
    if _chatters(F, I):
        I[s.CODE] = s.CHATTER
        I[s.WHERE] = index
        return 1
    if F[s.TFLIP] == F[s.T]:
        I[s.MODEFLIPS] += 1
    else:
        I[s.MODEFLIPS] = 0
        F[s.TFLIP] = F[s.T]
    for k in range(I[s.NSW]):
        I[I[s.JPEND] + k] = I[I[s.JTOGETHER] + k]
    _flip(F, I, index, mode)
    return _anew(F, I, index)


@njit(**_CFG)
def _anew(F: Any, I: Any, flipped: int) -> int:
    """Right-hand limits at F[T], and all that happens there. Return 0, or 1 with the reason in I[CODE]."""
    if not I[s.NT]:
        start(F, I, flipped)
        return act(F, I)
    keep_rates(F, I)
    start(F, I, flipped)
    code = act(F, I)
    repeat_jumps(F, I)
    return code


@njit(**_CFG)
def _bound_by_passes(F: Any, passes: int, h: float) -> None:
    """Keep the next step below those that took many passes, which one lucky step does not refute."""
    if passes > 2:
        F[s.HNEXT] = min(F[s.HNEXT], (1.25 if passes == 3 else (1.0 if passes == 4 else 0.85)) * h)
    if passes > 4:
        F[s.HPASS] = 0.85 * h
    elif passes < 4:
        F[s.HPASS] *= 1.08
    F[s.HNEXT] = min(F[s.HNEXT], F[s.HPASS])


@njit(**_CFG)
def _proportional(before: float, err: float) -> float:
    """PI control: before^(1/16) / err^(1/8), by roots, which cost a third of powers."""
    return math.sqrt(math.sqrt(math.sqrt(math.sqrt(before) / err)))


@njit(**_CFG)
def _finish_step(F: Any, I: Any, end: float, stop: float, pending: int, mode: int) -> int:
    h, err = F[s.H], max(F[s.ERR], 1e-10)
    i = _bad_rate(F, I)
    if i >= 0:
        I[s.CODE] = s.NEGATIVE
        I[s.WHERE] = i
        return 1
    factor = min(GROWTH, max(SHRINK, SAFETY * _proportional(max(F[s.ERRPREV], 1e-10), err)))
    cut = pending >= 0 or end >= stop  # by an event or breaking point: that says nothing against the step planned
    plan = factor * h
    if cut and factor >= 1.0 and plan < F[s.HNEXT]:
        plan = F[s.HNEXT] if h < TELLING * F[s.HNEXT] else min(F[s.HNEXT], SAFETY * err ** (-0.2) * h)
    F[s.HNEXT] = plan
    _bound_by_passes(F, I[s.SWEEPS] - I[s.ATONCE], h)
    F[s.HNEXT] = min(F[s.HNEXT], F[s.HMAX])
    F[s.ERRPREV] = err
    _accept(F, I, end)
    fresh = 0
    if pending >= 0:
        _flip(F, I, pending, mode)
        fresh = 1
    if _arrive(F, I) or fresh or F[s.HYNEXT] <= end + F[s.TOLT] * max(1.0, abs(end)):
        return _anew(F, I, pending)
    return 0


@njit(**_CFG)
def drive(F: Any, I: Any, address: int) -> int:
    """Integrate until F[TSTOP], or until there is a reason to return to Python: I[CODE] says which."""
    I[s.CODE] = s.DONE
    budget = I[s.STEPS] + I[s.BUDGET]
    while F[s.T] < F[s.TSTOP]:
        if I[s.NREC] - I[s.FIRST] >= I[s.MASK] - 1:
            I[s.CODE] = s.GROW_RING
            break
        if I[s.NHEAP] > I[s.HEAPCAP] // 2:
            I[s.CODE] = s.GROW_HEAP
            break
        if I[s.NLOG] > I[s.LOGCAP] // 2:
            I[s.CODE] = s.DRAIN
            break
        if I[s.STEPS] >= budget:
            I[s.CODE] = s.PAUSED
            break
        if _advance(F, I, address):
            break
    return I[s.CODE]
