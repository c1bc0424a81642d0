"""The driver: step control. One for every network, compiled once."""

from __future__ import annotations

import math
from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .breaking_points import (
    keep_rates,
    repeat_jumps,
    repeat_kinks,
    roughness,
    straighten,
    unfollowed,
)
from .calls import call_step
from .events import act, arrive, due, flip, next_break, start
from .fixed_point import forget, learn
from .modes import all_stay, first_event
from .reads import work
from .records import place
from .sampling import add_totals, sample_step
from .step import step_array

__all__ = ["drive"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_ONCE = {**_CFG, "inline": "always"}  # what is called from one place alone is compiled there alone

SAFETY, SHRINK, GROWTH = 0.9, 0.2, 5.0
NONE, LEAP = (
    1e-8,
    100.0,
)  # error of a step that has none, as on a straight line, and how much longer the next may be
STEADY = 0.98  # safety where steps follow each other smoothly
# error of the dense output inside a step, where the past is looked up, over that of its end
BETWEEN = 4.0
READ = (
    4  # records of the past that a step may look through: what a held state hears enters no error
)
TELLING = 0.05  # share of a planned step that tells something about the rest of it
EPS = 2.220446049250313e-16
LET_PASS = 100  # steps of a hair in a row at most
ATTEMPTS = 2000  # at one step, some times as many as it takes from the longest to the shortest one


@njit(**_CFG)
def _bad_rate(F: Any, I: Any) -> int:
    for i in range(I[s.NF]):
        if F[I[s.ORN] + 4 * I[s.NF] + i] < -1e-6 * F[I[s.OCAP] + I[I[s.JFIRST] + i]]:
            return i
    return -1


@njit(**_ONCE)
def _advance(F: Any, I: Any, address: int) -> int:
    """One accepted step, with what happens at its end. Return 0, or a code that ends the run."""
    stop = next_break(F, I)
    pending, mode, near = -1, 0, 1e-6
    h = F[s.HNEXT]
    end = stop if F[s.T] + 1.05 * h >= stop else F[s.T] + h
    hmin = 16.0 * EPS * max(abs(F[s.T]), 1e-3)
    attempts = 0
    while True:
        h = end - F[s.T]
        attempts += 1
        if (h <= hmin and end < stop) or not h > 0.0 or attempts > ATTEMPTS:
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
        err = BETWEEN * F[s.ERR]
        if err > 1.0:
            I[s.REJECTED] += 1
            pending = -1
            factor = max(SHRINK, SAFETY * err ** (-0.2)) if err < 1e300 else 0.1
            F[s.HNEXT] = factor * h
            end = F[s.T] + factor * h
            continue
        rough = roughness(F, I)
        if rough > 1.0:
            I[s.REJECTED] += 1
            pending = -1
            F[s.HNEXT] = max(SHRINK, SAFETY / rough) * h
            end = F[s.T] + F[s.HNEXT]
            continue
        u, index, new = (
            (2.0, -1, 0)
            if all_stay(F, I)
            else first_event(F, I, 2.0 if pending < 0 else 1.0 - near)
        )
        # The step that leads to an event ends there, up to rounding; another event at that instant
        # is the next step's.
        if u >= 2.0 or (pending >= 0 and u >= 1.0 - near):
            if h > _hair(F):
                I[s.LETPASS] = 0
            break
        near = min(1e-3, 4.0 * near)  # each attempt looks back a little differently
        if u * h <= F[s.TOLT] * max(1.0, abs(F[s.T])):
            if not _chatters(F, I) or I[s.LETPASS] >= LET_PASS:
                return _flip_here(F, I, index, new)
            # between two breaking points that are one but for rounding, say: no mode is to be had
            if h <= _hair(F):
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


@njit(**_ONCE)
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
    flip(F, I, index, mode)
    return _anew(F, I, index, False)


@njit(**_CFG)
def _anew(F: Any, I: Any, flipped: int, jumped: bool) -> int:
    """Right-hand limits at F[T], and all that happens there. Return 0, or 1 with the reason in
    I[CODE].
    """
    if I[s.NT]:
        keep_rates(F, I)
    start(F, I, flipped, jumped)
    code = act(F, I)
    if I[s.NT]:
        repeat_jumps(F, I)
    arrive(F, I)  # what reaches the next link at this very instant: no step could end there
    return code


@njit(**_CFG)
def _bound_by_passes(F: Any, passes: int, h: float) -> None:
    """Keep the next step below those that took many passes: one lucky step does not refute them."""
    if passes > 2:
        F[s.HNEXT] = min(F[s.HNEXT], (1.25 if passes == 3 else (1.0 if passes == 4 else 0.85)) * h)
    if passes > 4:
        F[s.HPASS] = 0.85 * h
    elif passes < 4:
        F[s.HPASS] *= 1.08
    F[s.HNEXT] = min(F[s.HNEXT], F[s.HPASS])


@njit(**_CFG)
def _bound_by_past(F: Any, I: Any) -> None:
    """Keep the next step from leaping over what took the past many steps, as a pulse that frees a
    held state.

    Where switches are not located any state with a bound may be held.
    """
    held = False
    for k in range(I[s.NSW]):
        held |= I[I[s.JHSW] + k] == s.OF_BOUND and F[I[s.OSW] + k] < 0.5
    for j in range(I[s.NN] if held else 0):
        k = I[I[s.JNCUR0] + j] + READ
        if k < I[s.NREC]:
            record = place(I, k)
            ahead = F[record + s.RT0] + F[record + s.RH] - F[I[s.OTH] + j]
            F[s.HNEXT] = min(F[s.HNEXT], max(ahead, F[s.BRIEF]))


@njit(**_CFG)
def _proportional(before: float, err: float) -> float:
    """PI control: before^(1/16) / err^(1/8), by roots, which cost a third of powers."""
    return math.sqrt(math.sqrt(math.sqrt(math.sqrt(before) / err)))


@njit(**_ONCE)
def _finish_step(F: Any, I: Any, end: float, stop: float, pending: int, mode: int) -> int:
    h, err = F[s.H], max(BETWEEN * F[s.ERR], 1e-10)
    i = _bad_rate(F, I)
    if i >= 0:
        I[s.CODE] = s.NEGATIVE
        I[s.WHERE] = i
        return 1
    factor = min(GROWTH, max(SHRINK, STEADY * _proportional(max(F[s.ERRPREV], 1e-10), err)))
    if err <= NONE and I[s.REJECTED] == 0:  # from the first step, a guess; later on kinks lie ahead
        factor = LEAP
    cut = (
        pending >= 0 or end >= stop
    )  # by an event or breaking point: that says nothing against the step planned
    plan = factor * h
    if cut and factor >= 1.0 and plan < F[s.HNEXT]:
        plan = (
            F[s.HNEXT] if h < TELLING * F[s.HNEXT] else min(F[s.HNEXT], SAFETY * err ** (-0.2) * h)
        )
    F[s.HNEXT] = plan
    _bound_by_passes(F, I[s.SWEEPS] - I[s.ATONCE], h)
    F[s.HNEXT] = min(F[s.HNEXT], F[s.HMAX])
    F[s.ERRPREV] = err
    if I[s.ECHO] and I[s.FRESH]:
        repeat_kinks(F, I)
    _accept(F, I, end)
    _bound_by_past(F, I)
    fresh = 0
    if pending >= 0:
        flip(F, I, pending, mode)
        fresh = 1
    if due(F, I):
        fresh |= arrive(F, I)
    if fresh or F[s.HYNEXT] <= end + F[s.TOLT] * max(1.0, abs(end)):
        return _anew(F, I, pending, True)
    return 0


@njit(**_ONCE)
def _accept(F: Any, I: Any, end: float) -> None:
    """Take over the step, which ends at `end` exactly: its samples and totals, what is learned, and
    its end.
    """
    final = end >= F[s.TEND]
    swings = unfollowed(F, I)
    sample_step(F, I, final)
    add_totals(F, I)
    learn(F, I, I[s.NQ], I[s.NQL])
    _hand_over(F, I)
    if swings:  # what was sampled is better than what is good to look back at
        straighten(F, I)
    F[s.HPREV] = F[s.H]
    F[s.T] = end
    I[s.NREC] += 1
    I[s.STEPS] += 1
    for link in range(I[s.NL]):
        F[I[s.OS0] + link] = work(F, I, link, end)[0]
    oldest, first, cursors = I[s.NREC], I[s.JNCUR0], I[s.JNCUR]
    for j in range(I[s.NN]):
        I[first + j] = I[cursors + j]
        oldest = min(oldest, I[cursors + j])
    I[s.FIRST] = max(I[s.FIRST], oldest - 1)
    I[s.FRESH] = 0


@njit(**_CFG)
def _hand_over(F: Any, I: Any) -> None:
    """Let what holds at the end of the step just taken hold at the start of the next one."""
    ns, nf, nl, acting = I[s.NS], I[s.NF], I[s.NL], s.XSIZE * I[s.NACT]
    y, y1, k = I[s.OY], I[s.OY1], I[s.OK]
    for i in range(ns):
        F[y + i] = F[y1 + i]
        F[k + i] = F[k + 6 * ns + i]
    rates, arrivals, marks, prices, slopes = I[s.ORN], I[s.OAN], I[s.OMN], I[s.OPN], I[s.OAK]
    for i in range(nf):
        F[rates + i] = F[rates + 4 * nf + i]
    for link in range(nl):
        F[arrivals + link] = F[arrivals + 4 * nl + link]
        F[marks + link] = F[marks + 4 * nl + link]
        F[prices + link] = F[prices + 4 * nl + link]
        if not I[s.NODES]:
            F[slopes + link] = F[slopes + 6 * nl + link]
    first = I[s.OACTN]
    for i in range(acting):
        F[first + i] = F[first + 4 * acting + i]


@njit(**_ONCE)
def drive(F: Any, I: Any, address: int) -> int:
    """Integrate until F[TSTOP], or until Python has something to do: I[CODE] says what."""
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
