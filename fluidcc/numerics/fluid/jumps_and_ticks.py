"""Jumps and ticks: what changes states at once, at a mesh point, after the right-hand limits there are known.

The order at one instant is that of the rows of JHY: ticks of links, ticks of sources, jumps of links, jumps of sources.
Ticks see what was known before any of them. Then jumps are looked for until there are none. After each of these rounds
all modes are decided afresh. What has changed is a breaking point of order zero for all who will hear of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .breaks import forward, forward_class, speak
from .calls import call_kernel
from .limits import start

__all__ = ["act", "crossed", "restart"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}

SAME = 10.0  # resolutions of time within which two jumps are at the same instant
FELL = 2  # of HDUE: the condition has just become false, whatever its sign is by the error of the step
QUICK = 4  # so many jumps of one kind at the same instant are without end


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
    """Whether this switch is the condition of a jump, which is now due if the condition has become true.

    Not so where a state has `landed` on its bound just then: beyond it the condition may never be true. It is looked
    at again once the state is there exactly.
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
        I[row + s.HKERNEL], I[row + s.HN], I[row + s.HSU], F, I[s.OY] + z, I[row + s.HU], I[row + s.HP], I[s.OSW],
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
        # a condition that was located is 0 but for the error of the step: only clearly below is it false again
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
