"""What happens at one instant: scheduled changes, landings of breaking points, changes of mode,
jumps and ticks.

After each of them the right-hand limits are found: arrivals, modes, and the first stage of the step
to come. Jumps and ticks change states at once, after these limits are known.

The order at one instant is that of the rows of JHY: ticks of links, ticks of sources, jumps of
links, jumps of sources. Ticks see what was known before any of them. Then jumps are looked for
until there are none. After each of these rounds all modes are decided afresh. What has changed is a
breaking point of order zero for all who will hear of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .breaking_points import bend, emit, forward, forward_class, news, pop, send_kink, speak
from .calls import call_kernel
from .modes import settle_links
from .reads import work
from .records import keep_node, linear_record
from .rhs import count_crossing, evaluate

__all__ = ["act", "arrive", "due", "flip", "next_break", "start"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}

SAME = 10.0  # resolutions of time within which two jumps are at the same instant
FELL = (
    2  # of HDUE: the condition has just become false, whatever its sign is by the error of the step
)
QUICK = 4  # so many jumps of one kind at the same instant are without end


# --- right-hand limits ----------------------------------------------------------------------------


@njit(**_CFG)
def _decide(F: Any, I: Any, flipped: int, before: int, afresh: bool) -> int:
    """Decide switches: those undecided, and `afresh` also kinks that a jump carries over zero; how
    many change.

    The values of the switches before the jump stand at F[before]. One that was on the other side
    already, as at an event that is located but for rounding, stays as it is, and so do those that
    have just `flipped`.
    """
    changed, told = 0, I[s.NL]
    for k in range(I[s.NSW]):
        mode, old, value = F[I[s.OSW] + k], F[before + k], F[I[s.OGS] + k]
        if mode == 2.0:
            F[I[s.OSW] + k] = 1.0 if value > 0.0 else 0.0
            changed += 1
            continue
        on = mode > 0.5
        if not afresh or on == (value > 0.0) or value == 0.0 or (old != 0.0 and on != (old > 0.0)):
            continue
        owner = I[I[s.JSWOWN] + k]
        if not I[I[s.JKINK] + k] or (owner >= 0 and I[I[s.JON] + owner] != s.ON):
            continue
        if flipped >= I[s.NL] and (k == flipped - I[s.NL] or I[I[s.JPEND] + k]):
            continue
        F[I[s.OSW] + k] = 0.0 if on else 1.0
        changed += 1
        told = send_kink(F, I, k, told)
    return changed


@njit(**_CFG)
def start(F: Any, I: Any, flipped: int, jumped: bool) -> None:
    """Right-hand limits at F[T] after a breaking point: arrivals, modes, then the first stage.

    `flipped` is the link whose mode has just changed at an event, or the number of links plus that
    of the switch, or -1. `jumped` says that signals may have jumped from what switches were last
    computed of.
    """
    for j in range(I[s.NN]):
        I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
    for link in range(I[s.NL]):
        F[I[s.OS0] + link] = work(F, I, link, F[s.T])[0]
    if I[s.COUNTED]:
        count_crossing(F, I)
    last = I[s.NREC] - 1
    hops, before = I[s.ATONCE], I[s.OSWITCHED]
    for sweep in range(3 + 3 * hops):
        for k in range(I[s.NSW]):
            F[before + k] = F[I[s.OGS] + k]
        evaluate(F, I, F[s.T], I[s.OY], I[s.OK], 0, 1, last, 1)
        changed = settle_links(F, I, flipped)
        changed += _decide(F, I, flipped, before, I[s.LOCATE] > 0 and (jumped or sweep > 0))
        if not changed and sweep >= hops:
            break
        # what enters one link is at the next at once: look into the step to come, by the new modes
        if hops:
            keep_node(F, I, 0)
            linear_record(F, I, 1.0)
            last = I[s.NREC]
    keep_node(F, I, 0)
    for j in range(I[s.NN]):
        I[I[s.JNCUR0] + j] = I[I[s.JNCUR] + j]
    I[s.FRESH] = 1


# --- jumps and ticks ------------------------------------------------------------------------------


@njit(**_CFG)
def _log(F: Any, I: Any, number: int) -> None:
    o = I[s.OLOG] + 2 * I[s.NLOG]
    F[o] = F[s.T]
    F[o + 1] = number
    I[s.NLOG] += 1


@njit(**_CFG)
def _on(I: Any, row: int) -> bool:
    kind = I[row + s.HKIND]
    return kind == s.LINK_TICK or kind == s.LINK_JUMP or I[I[s.JON] + I[row + s.HOWNER]] == s.ON


@njit(**_CFG)
def _of_source(I: Any, row: int) -> bool:
    return I[row + s.HKIND] == s.SOURCE_TICK or I[row + s.HKIND] == s.SOURCE_JUMP


@njit(**_CFG)
def restart(F: Any, I: Any, flow: int) -> None:
    """Flow `flow` starts or stops: its ticks and jumps are as new."""
    for k in range(I[s.NHY]):
        row = I[s.JHY] + s.HSIZE * k
        if _of_source(I, row) and I[row + s.HOWNER] == flow:
            I[row + s.HCOUNT] = -1
            I[row + s.HDUE] = 0
            F[I[s.OHTIME] + k] = np.inf


@njit(**_CFG)
def crossed(F: Any, I: Any, switch: int, landed: bool) -> bool:
    """Whether this switch is the condition of a jump, which is now due if the condition has become
    true.

    Not so where a state has `landed` on its bound just then: beyond it the condition may never be
    true. It is looked at again once the state is there exactly.
    """
    if I[s.NHY] == 0 or I[I[s.JHSW] + switch] < 0:
        return False
    k = I[I[s.JHSW] + switch]
    row = I[s.JHY] + s.HSIZE * k
    if F[I[s.OSW] + switch] > 0.5:
        I[row + s.HDUE] = 0 if landed else 1
    else:
        I[row + s.HDUE] = FELL
        if F[s.T] > F[I[s.OHLAST] + k]:
            I[row + s.HCOUNT] = 0
    return True


@njit(**_CFG)
def _compute(F: Any, I: Any, row: int) -> None:
    """New states at OSCRATCH, and two times at OHNEW."""
    z = I[row + s.HZ]
    call_kernel(
        I[row + s.HKERNEL], I[row + s.HN], I[row + s.HSU], F, I[s.OY] + z, I[row + s.HU],
        I[row + s.HP], I[s.OSW],
        I[s.OSCRATCH] + z, I[s.OHNEW], I[s.OGS], I[row + s.HWANT],
    )  # fmt: skip


@njit(**_CFG)
def _change(F: Any, I: Any, k: int) -> None:
    """Take the new states over, decide the owner's switches anew, and send the jump on."""
    row = I[s.JHY] + s.HSIZE * k
    z, owner = I[row + s.HZ], I[row + s.HOWNER]
    for j in range(I[row + s.HNZ]):
        F[I[s.OY] + z + j * I[row + s.HN]] = F[I[s.OSCRATCH] + z + j * I[row + s.HN]]
    source = _of_source(I, row)
    if I[s.LOCATE]:
        told = owner if source else -1 - owner
        for m in range(I[s.NSW]):
            if I[I[s.JSWOWN] + m] == told and I[I[s.JHSW] + m] < 0:
                F[I[s.OSW] + m] = 2.0
    if source:
        forward_class(F, I, I[I[s.JFIRST] + owner], 0)
    else:
        forward(F, I, owner, 0)
        if I[row + s.HTELLS]:
            speak(F, I, owner, 0)
    _log(F, I, k)


@njit(**_CFG)
def _stop(I: Any, code: int, k: int) -> int:
    I[s.CODE] = code
    I[s.WHERE] = k
    return 1


@njit(**_CFG)
def _begin_ticks(F: Any, I: Any) -> int:
    """The first tick of each owner that has just started."""
    for k in range(I[s.NHY]):
        row = I[s.JHY] + s.HSIZE * k
        if I[row + s.HCOUNT] >= 0 or not _on(I, row):
            continue
        I[row + s.HCOUNT] = 0
        if I[row + s.HKIND] == s.LINK_JUMP or I[row + s.HKIND] == s.SOURCE_JUMP:
            F[I[s.OHTIME] + k] = -np.inf
            continue
        _compute(F, I, row)
        period, phase = F[I[s.OHNEW]], F[I[s.OHNEW] + 1]
        first = F[s.T] + phase
        F[I[s.OHTIME] + k] = first
        F[I[s.OHPER] + k] = period
        F[I[s.OHBASE] + k] = first
        if phase == period:  # then ticks are at multiples of the period to the last bit
            F[I[s.OHBASE] + k] = F[s.T]
            I[row + s.HCOUNT] = 1
        if not F[s.T] <= first < np.inf:
            F[I[s.OHNEW]] = phase
            return _stop(I, s.PERIOD, k)
    return 0


@njit(**_CFG)
def _ticks(F: Any, I: Any, tol: float) -> int:
    """Carry out the ticks that are due; how many, or -1."""
    done = 0
    for k in range(I[s.NHY]):
        row = I[s.JHY] + s.HSIZE * k
        if I[row + s.HKIND] > s.SOURCE_TICK:
            break
        if not _on(I, row) or F[I[s.OHTIME] + k] > F[s.T] + tol:
            continue
        _compute(F, I, row)
        period = F[I[s.OHNEW]]
        if not SAME * tol < period < np.inf:
            return -_stop(I, s.PERIOD, k)
        I[row + s.HCOUNT] += 1
        F[I[s.OHTIME] + k] = F[s.T] + period
        if I[row + s.HCONST]:
            F[I[s.OHTIME] + k] = F[I[s.OHBASE] + k] + I[row + s.HCOUNT] * F[I[s.OHPER] + k]
        _change(F, I, k)
        done += 1
    I[s.TICKS] += done
    return done


@njit(**_CFG)
def _wanted(F: Any, I: Any, k: int, tol: float) -> bool:
    """Whether jump `k` happens now; its switch follows its condition."""
    row = I[s.JHY] + s.HSIZE * k
    switch = I[row + s.HSWITCH]
    g = F[I[s.OGS] + switch]
    due, held, fell = I[row + s.HDUE] == 1, I[row + s.HCOUNT] == 1, I[row + s.HDUE] == FELL
    I[row + s.HDUE] = 0
    if fell:
        return False
    F[I[s.OSW] + switch] = 1.0 if due or g > 0.0 else 0.0
    if not due and g <= 0.0:
        # a condition that was located is 0 but for the error of the step: only clearly below is it
        # false again
        if -g >= 4.0 * F[I[s.OHG] + k]:
            I[row + s.HCOUNT] = 0
        return False
    waiting = F[I[s.OHTIME] + k] > F[s.T] + tol
    if I[row + s.HONCE]:
        I[row + s.HCOUNT] = 1
        return not (held or waiting)
    return not waiting


@njit(**_CFG)
def _jump(F: Any, I: Any, k: int, tol: float) -> int:
    row = I[s.JHY] + s.HSIZE * k
    last = I[s.OHLAST] + k
    quick = F[s.T] - F[last] <= SAME * tol
    I[row + s.HREPEAT] = I[row + s.HREPEAT] + 1 if quick else 0
    F[last] = F[s.T]
    F[I[s.OHG] + k] = max(0.0, -F[I[s.OGS] + I[row + s.HSWITCH]])
    if I[row + s.HREPEAT] >= QUICK:
        return _stop(I, s.ZENO, k)
    _compute(F, I, row)
    wait = F[I[s.OHNEW]]
    if not 0.0 <= wait < np.inf:
        return _stop(I, s.PERIOD, k)
    F[I[s.OHTIME] + k] = F[s.T] + wait if wait > 0.0 else -np.inf
    _change(F, I, k)
    I[s.JUMPS] += 1
    return 0


@njit(**_CFG)
def _jumps(F: Any, I: Any, tol: float) -> int:
    """Carry out the jumps whose condition holds; how many, or -1."""
    done = 0
    for k in range(I[s.NHY]):
        row = I[s.JHY] + s.HSIZE * k
        if I[row + s.HKIND] <= s.SOURCE_TICK or not _on(I, row) or not _wanted(F, I, k, tol):
            continue
        if _jump(F, I, k, tol):
            return -1
        done += 1
    return done


@njit(**_CFG)
def _next_timer(F: Any, I: Any, tol: float) -> None:
    nearest = np.inf
    for k in range(I[s.NHY]):
        time = F[I[s.OHTIME] + k]
        if time > F[s.T] + tol and time < nearest and _on(I, I[s.JHY] + s.HSIZE * k):
            nearest = time
    F[s.HYNEXT] = nearest


@njit(**_CFG)
def act(F: Any, I: Any) -> int:
    """All that happens at F[T], after `start`. Return 0, or 1 with the reason in I[CODE]."""
    if I[s.NHY] == 0:
        return 0
    tol = F[s.TOLT] * max(1.0, abs(F[s.T]))
    _log(F, I, -1)
    if _begin_ticks(F, I):
        return 1
    done = _ticks(F, I, tol)
    if done > 0:
        start(F, I, -1, True)
    while done >= 0:
        done = _jumps(F, I, tol)
        if done == 0:
            break
        if done > 0:
            start(F, I, -1, True)
    _next_timer(F, I, tol)
    return 1 if done < 0 else 0


# --- scheduled changes, landings and modes --------------------------------------------------------


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
        _apply(
            F, I, I[I[s.JSCHED] + 2 * k], I[I[s.JSCHED] + 2 * k + 1], F[I[s.OSCHED] + 2 * k + 1], 0
        )
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
    """Change a mode at F[T], and the switches that change with it, and send the kink on."""
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
            told = send_kink(F, I, k, told)
